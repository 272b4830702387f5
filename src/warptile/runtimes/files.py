"""Cache files that are checked against their own hash when read, and replaced in one step when written."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from pathlib import Path

from warptile.contracts.errors import UnusableInput
from warptile.gguf.escape import shown

_DIGEST = hashlib.sha256().digest_size
_LOG = logging.getLogger("warptile")


def read_checked(path: Path) -> bytes | None:
    """The payload of `path`; None where there is no file or its SHA-256 (the first 32 bytes) does not match.

    A file that does not match is told in a line: whoever asked makes it anew.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnusableInput(f"cache file {path} cannot be read: {error.strerror}") from None
    digest, payload = content[:_DIGEST], content[_DIGEST:]
    if hashlib.sha256(payload).digest() == digest:
        return payload
    damaged(path)
    return None


def damaged(path: Path) -> None:
    """Say in one line that a cache file is not what was written and is made anew.

    It goes to the logger "warptile", which shows it on stderr where nobody set logging up.
    """
    _LOG.warning("cache file %s does not match its hash: it is not used, and made anew", shown(path))


def write_checked(path: Path, payload: bytes) -> None:
    """Write hash and payload; a reader sees the old file or the new one, never a part. Raises UnusableInput."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(payload).digest() + payload)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UnusableInput(f"cache file {path} cannot be written: {error.strerror}") from None
