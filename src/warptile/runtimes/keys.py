"""Identity of a build."""

from __future__ import annotations

import hashlib
import json

from warptile.contracts.launch import Source
from warptile.contracts.runtime import Instrument


def binary_key(source: Source, instrument: Instrument) -> str:
    """SHA-256, hexadecimal, of what decides the machine code: language, text, constants, subgroup, instrument.

    Helpers, each decided by the same, are part of it.
    """
    helpers = [binary_key(helper, instrument) for helper in source.helpers]
    parts = [source.language, source.text, sorted(source.constants), source.subgroup, instrument, helpers]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def binary_id(key: str) -> int:
    """The first 32 bits of a key that are not zero: zero means "did not run"."""
    words = (int(key[i : i + 8], 16) for i in range(0, len(key), 8))
    return next(word for word in words if word)
