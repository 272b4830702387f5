"""Marks for what Gluon 3.6 cannot say; `runtimes.triton.marked` puts it into the PTX."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from warptile.kernels.triton.program import ARRIVE, CLUSTER_WAIT, FREE, FROM, MULTICAST, OWN

_MULTICAST = gl.constexpr("mov.u32 $0, 0; " + MULTICAST)
_ARRIVE = gl.constexpr("mov.u32 $0, 0; " + ARRIVE)
_WRITTEN = gl.constexpr("mov.u32 $0, 0; " + ARRIVE + " written")
_FREE = gl.constexpr("mov.u32 $0, 0; " + FREE)
_OWN = gl.constexpr("mov.u32 $0, 0; " + OWN)
_CLUSTER_WAIT = gl.constexpr("mov.u32 $0, 0; " + CLUSTER_WAIT)


@gluon.constexpr_function
def _from(rank):
    return f"mov.u32 $0, 0; {FROM} {rank};"


@gluon.jit
def mark_multicast():
    """The next bulk tensor copy, and the bytes it counts, go to the same place of every program of the cluster."""
    gl.inline_asm_elementwise(_MULTICAST, "=r", [], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def mark_arrive():
    """At the next arrival each warp counts by itself, at the same barrier of every program of the cluster."""
    gl.inline_asm_elementwise(_ARRIVE, "=r", [], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def mark_written():
    """The same, and whoever waits there sees what was written before."""
    gl.inline_asm_elementwise(_WRITTEN, "=r", [], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def mark_free():
    """Before the next wait for a barrier or matrix instruction, warps need not meet."""
    gl.inline_asm_elementwise(_FREE, "=r", [], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def mark_from(RANK: gl.constexpr):
    """Shared memory is read from the cluster's program RANK from here on."""
    gl.inline_asm_elementwise(_from(RANK), "=r", [], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def mark_own():
    """Shared memory is the program's own again."""
    gl.inline_asm_elementwise(_OWN, "=r", [], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def mark_cluster_wait():
    """What the cluster's programs wrote before they arrived is seen after the next wait."""
    gl.inline_asm_elementwise(_CLUSTER_WAIT, "=r", [], dtype=gl.int32, is_pure=False, pack=1)


@gluon.jit
def come():
    """Tell the cluster's programs that this one's barriers are ready."""
    gl.inline_asm_elementwise(
        "fence.mbarrier_init.release.cluster; barrier.cluster.arrive.release; mov.u32 $0, 0;",
        "=r", [], dtype=gl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@gluon.jit
def meet():
    """Wait until every program of the cluster has come."""
    gl.inline_asm_elementwise(
        "barrier.cluster.wait.acquire; mov.u32 $0, 0;", "=r", [], dtype=gl.int32, is_pure=False, pack=1
    )
