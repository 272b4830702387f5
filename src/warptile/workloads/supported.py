"""Which formats a matmul can be asked for in."""

from __future__ import annotations

from warptile import formats


def format_names() -> frozenset[str]:
    """Names of every format that decodes."""
    return frozenset(formats.all_formats())
