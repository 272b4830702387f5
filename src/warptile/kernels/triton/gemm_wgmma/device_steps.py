"""Device code of `triton.gemm_wgmma`: what a consuming warp group's loop is made of besides decoding."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

from warptile.kernels.triton.gluon_marks import mark_arrive, mark_free
from warptile.kernels.triton.gluon_names import barrier
from warptile.layouts.triton.lane_layouts import lane_layout


@gluon.jit
def quarter(pairs, Q: gl.constexpr):
    """A matrix instruction's two of a part's eight slots, i32[rows, 4, 2]."""
    ROWS: gl.constexpr = pairs.shape[0]
    first, second = gl.split(gl.permute(gl.reshape(pairs, (ROWS, 4, 2, 4)), (0, 1, 3, 2)))
    if Q < 2:
        half = first
    else:
        half = second
    low, high = gl.split(gl.permute(gl.reshape(half, (ROWS, 4, 2, 2)), (0, 1, 3, 2)))
    if Q % 2 == 0:
        found = low
    else:
        found = high
    return gl.convert_layout(found, lane_layout(ROWS, [2]), assert_trivial=True)


@gluon.jit
def hold(pairs, never):
    """Keeps the decode of `pairs` before what follows: within one block of instructions, ptxas moves it behind the wait
    for the matrix unit. A store needs them, four registers as a matrix instruction takes them, if `never` is negative:
    it never is, which the compiler does not know."""
    ROWS: gl.constexpr = pairs.shape[0]
    for q in gl.static_range(4):
        even, odd = gl.split(quarter(pairs, q))
        e0, e1 = gl.split(gl.permute(gl.reshape(even, (ROWS // 16, 2, 8, 4)), (0, 2, 3, 1)))
        o0, o1 = gl.split(gl.permute(gl.reshape(odd, (ROWS // 16, 2, 8, 4)), (0, 2, 3, 1)))
        gl.inline_asm_elementwise(
            """{
            .reg .pred p;
            .reg .b64 a;
            mov.u64 a, 0;
            setp.lt.s32 p, $5, 0;
            @p st.global.v4.b32 [a], {$1, $2, $3, $4};
            mov.u32 $0, 0;
            }""",
            "=r,r,r,r,r,r", [e0, e1, o0, o1, never], dtype=gl.int32, is_pure=False, pack=1,
        )  # fmt: skip


@gluon.constexpr_function
def known(step, turn, planes, length):
    """A step's number as far as decoding depends on it, where a turn holds whole superblocks; else None."""
    return step if all(turn % max(1, plane[2] // length) == 0 for plane in planes) else None


@gluon.jit
def numbered(at, KNOWN: gl.constexpr):
    """The step's number, when compiling where it is known then."""
    if KNOWN is None:
        found = at
    else:
        found = KNOWN
    return found


@gluon.jit
def arrived(full, phase, wanted, FREE: gl.constexpr):
    """Wait for a stage, if it is `wanted`."""
    if FREE:
        mark_free()
    mbarrier.wait(full, phase, pred=wanted)


@gluon.jit
def give_back(empty, FREE: gl.constexpr):
    """A stage may be filled again."""
    if FREE:
        mark_arrive()
    mbarrier.arrive(empty)


@gluon.jit
def next_place(place, phase, COUNT: gl.constexpr):
    """The place after this one in a ring of COUNT, and its phase."""
    place += 1
    if place == COUNT:
        place = 0
        phase ^= 1
    return place, phase


@gluon.jit
def copied():
    """Wait until what is copied out of shared memory has been read there."""
    tma.store_wait(0)
    barrier()
