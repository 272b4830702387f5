"""Marks for what Gluon 3.6 cannot say; `runtimes.triton.marked` puts it into the PTX."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from warptile.kernels.triton.program import ARRIVE, FREE, MULTICAST

_MULTICAST = gl.constexpr("mov.u32 $0, 0; " + MULTICAST)
_ARRIVE = gl.constexpr("mov.u32 $0, 0; " + ARRIVE)
_FREE = gl.constexpr("mov.u32 $0, 0; " + FREE)


@gluon.jit
def mark_multicast():
    """The next bulk tensor copy, and the bytes it counts, go to the same place of every program of the cluster."""
    gl.inline_asm_elementwise(_MULTICAST, "=r", [], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def mark_arrive():
    """At the next arrival each warp counts by itself, at the same barrier of every program of the cluster."""
    gl.inline_asm_elementwise(_ARRIVE, "=r", [], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def mark_free():
    """Before the next wait for a barrier or matrix instruction, warps need not meet."""
    gl.inline_asm_elementwise(_FREE, "=r", [], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def meet():
    """Wait until every program of the cluster has come here, its barriers ready."""
    gl.inline_asm_elementwise(
        "fence.mbarrier_init.release.cluster; barrier.cluster.arrive.release; barrier.cluster.wait.acquire; "
        "mov.u32 $0, 0;",
        "=r", [], dtype=gl.int32, is_pure=False, pack=1,
    )  # fmt: skip
