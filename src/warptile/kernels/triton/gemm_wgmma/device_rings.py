"""Device code of `triton.gemm_wgmma`: two copying warps, where activations have a ring of their own."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.language.extra.cuda import gdc_wait

from warptile.kernels.triton.gemm_wgmma.device_copies import boxes, copy_plane, plane_of, stage_bytes
from warptile.kernels.triton.gemm_wgmma.device_shares import met_at, walk_of
from warptile.kernels.triton.gemm_wgmma.device_steps import next_place
from warptile.kernels.triton.gluon_names import copy_box


@gluon.jit
def produce_weights(
    sources, held, full, empty, m, rows, steps, programs, split, rest, sharers, TILE_N: gl.constexpr,
    TILE_M: gl.constexpr, STEP: gl.constexpr, TURN: gl.constexpr, WHOLE: gl.constexpr, EVEN: gl.constexpr,
    GROUP_M: gl.constexpr, planes: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """Fills stages of weights as they fall empty; weights do not depend on the launch before."""
    BYTES: gl.constexpr = stage_bytes(planes, TILE_N, 0, STEP)
    program = gl.program_id(0)
    begin, end, first_turn, end_turn, stride = walk_of(
        program, programs, m, rows, steps, split, rest, sharers, TILE_N, TILE_M, TURN, WHOLE, EVEN
    )
    stage = 0
    phase = 1
    for walked in range(first_turn, end_turn, stride):
        _, at_n, first, last = met_at(
            walked, program, programs, begin, end, m, rows, steps, rest, TILE_N, TILE_M, WHOLE, EVEN, GROUP_M
        )
        for at in range(first, last):
            mbarrier.wait(empty.index(stage), phase)
            mbarrier.expect(full.index(stage), BYTES)
            for i in gl.static_range(len(planes)):
                copy_plane(
                    sources[i], held[i].index(stage), full.index(stage), at_n * TILE_N, at, rows, True,
                    plane_of(planes, i), STEP, boxes(plane_of(planes, i), TILE_N),
                )  # fmt: skip
            stage, phase = next_place(stage, phase, STAGES)


@gluon.jit
def produce_tokens(
    X, tokens, full, empty, m, rows, steps, programs, split, rest, sharers, TILE_N: gl.constexpr,
    TILE_M: gl.constexpr, STEP: gl.constexpr, TURN: gl.constexpr, WHOLE: gl.constexpr, EVEN: gl.constexpr,
    GROUP_M: gl.constexpr, RING: gl.constexpr, EARLY: gl.constexpr,
):  # fmt: skip
    """Fills the ring's places, 64 elements of k each, as they fall empty."""
    program = gl.program_id(0)
    begin, end, first_turn, end_turn, stride = walk_of(
        program, programs, m, rows, steps, split, rest, sharers, TILE_N, TILE_M, TURN, WHOLE, EVEN
    )
    place = 0
    phase = 1
    if EARLY:
        gdc_wait()
    for walked in range(first_turn, end_turn, stride):
        at_m, _, first, last = met_at(
            walked, program, programs, begin, end, m, rows, steps, rest, TILE_N, TILE_M, WHOLE, EVEN, GROUP_M
        )
        for part in range(first * (STEP // 64), last * (STEP // 64)):
            mbarrier.wait(empty.index(place), phase)
            mbarrier.expect(full.index(place), TILE_M * 128)
            copy_box(X, [at_m * TILE_M, part * 64], full.index(place), tokens.index(place))
            place, phase = next_place(place, phase, RING)
