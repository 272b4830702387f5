"""The proof's version: part of a table's validity, raised when a check is added or a bound changes."""

from __future__ import annotations

PROOF_VERSION = 3
