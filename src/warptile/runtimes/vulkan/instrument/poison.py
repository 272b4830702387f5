"""A launch that leaves NaN in shared memory: what it does not clear, the next kernel finds where it reads too early."""

from __future__ import annotations

from importlib import resources

from warptile.contracts.launch import Source
from warptile.contracts.limits import Limits

POISONED_GROUPS = 1024
"""Workgroups, each with all the shared memory it may have: several times those of the largest card at once."""

_INVOCATIONS = 128


def poison_source(limits: Limits) -> Source:
    """A kernel without buffers that fills all shared memory a workgroup may have with NaN (as fp32 and as fp16)."""
    text = resources.files(__package__).joinpath("poison.comp").read_text(encoding="utf-8")
    constants = ((0, _INVOCATIONS), (1, limits.shared_bytes // 4))
    return Source("glsl", text, constants, 0, 0, _INVOCATIONS)
