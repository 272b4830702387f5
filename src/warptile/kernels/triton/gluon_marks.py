"""Marks for what Gluon cannot say; `runtimes.triton.marked` puts it into the PTX."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from warptile.kernels.triton.program import ARRIVE, FREE

_ARRIVE = gl.constexpr("mov.u32 $0, 0; " + ARRIVE)
_FREE = gl.constexpr("mov.u32 $0, 0; " + FREE)


@gluon.jit
def mark_arrive():
    """At the next arrival each warp counts by itself, without meeting the others."""
    gl.inline_asm_elementwise(_ARRIVE, "=r", [], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def mark_free():
    """Before the next wait for a barrier or matrix instruction, warps need not meet."""
    gl.inline_asm_elementwise(_FREE, "=r", [], dtype=gl.int32, is_pure=False, pack=1)
