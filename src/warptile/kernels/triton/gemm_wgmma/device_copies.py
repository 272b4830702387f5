"""Device code of `triton.gemm_wgmma`: the copying warp, and what it brought as registers."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.language.extra.cuda import gdc_wait

from warptile.kernels.triton.gemm_wgmma.device_shares import met_at, walk_of
from warptile.kernels.triton.gemm_wgmma.device_steps import next_place
from warptile.kernels.triton.gluon_names import copy_box, reinterpreted
from warptile.layouts.triton.lane_layouts import element, held_layout, held_shape, is_wide, load_plane, row_bytes


@gluon.constexpr_function
def stage_bytes(planes, rows, tokens, step):
    """Bytes that one stage brings: activations and every plane's part."""
    return tokens * step * 2 + sum(rows * p[0] * p[1] // 8 for p in planes)


@gluon.constexpr_function
def boxes(P, rows):
    """Copies that bring `rows` rows of a plane."""
    return 1 if P[0] * P[1] // 8 >= 16 else max(1, rows * P[1] // 256)


@gluon.constexpr_function
def plane_of(planes, i):
    """The plane of that number."""
    return planes[i]


@gluon.jit
def copy_plane(
    source, held, arrived, row, at, rows, wanted, P: gl.constexpr, STEP: gl.constexpr, COUNT: gl.constexpr
):  # fmt: skip
    """Ask for a plane's part of a step, of rows `row` on, in COUNT copies."""
    first = (at // (P[2] // STEP)) * ((rows + 15) // 16 * 16) + row
    if is_wide(P):
        copy_box(source, [first * row_bytes(P) // 128, 0], arrived, held, pred=wanted)
    else:
        BOX: gl.constexpr = held.shape[0] // COUNT
        for b in gl.static_range(COUNT):
            part = held.slice(b * BOX, BOX)
            copy_box(source, [first * P[1] + b * BOX], arrived, part, pred=wanted)


@gluon.jit
def produce(
    X, sources, tokens, held, full, empty, m, rows, steps, programs, split, rest, sharers, TILE_N: gl.constexpr,
    TILE_M: gl.constexpr, STEP: gl.constexpr, TURN: gl.constexpr, WHOLE: gl.constexpr, EVEN: gl.constexpr,
    GROUP_M: gl.constexpr, planes: gl.constexpr, STAGES: gl.constexpr, EARLY: gl.constexpr,
):  # fmt: skip
    """The copying warp: fills stages as they fall empty."""
    PARTS: gl.constexpr = STEP // 64
    BYTES: gl.constexpr = stage_bytes(planes, TILE_N, TILE_M, STEP)
    program = gl.program_id(0)
    begin, end, first_turn, end_turn, stride = walk_of(
        program, programs, m, rows, steps, split, rest, sharers, TILE_N, TILE_M, TURN, WHOLE, EVEN
    )
    ahead = 0
    if EARLY:
        # Weights do not depend on the launch before; activations do.
        at_m, at_n, first, last = met_at(
            first_turn, program, programs, begin, end, m, rows, steps, rest, TILE_N, TILE_M, WHOLE, EVEN, GROUP_M
        )
        ahead = gl.minimum(last - first, STAGES)
        for j in gl.static_range(STAGES):
            arrived = full.index(j)
            mbarrier.expect(arrived, BYTES, pred=j < ahead)
            for i in gl.static_range(len(planes)):
                copy_plane(
                    sources[i], held[i].index(j), arrived, at_n * TILE_N, first + j, rows, j < ahead,
                    plane_of(planes, i), STEP, boxes(plane_of(planes, i), TILE_N),
                )  # fmt: skip
        gdc_wait()
        for j in gl.static_range(STAGES):
            for part in gl.static_range(PARTS):
                copy_box(
                    X, [at_m * TILE_M, (first + j) * STEP + part * 64], full.index(j), tokens.index(j * PARTS + part),
                    pred=j < ahead,
                )  # fmt: skip
    stage = ahead % STAGES
    phase = 1 - ahead // STAGES
    for place in range(first_turn, end_turn, stride):
        at_m, at_n, first, last = met_at(
            place, program, programs, begin, end, m, rows, steps, rest, TILE_N, TILE_M, WHOLE, EVEN, GROUP_M
        )
        first += gl.where(place == first_turn, ahead, 0)
        for at in range(first, last):
            mbarrier.wait(empty.index(stage), phase)
            arrived = full.index(stage)
            mbarrier.expect(arrived, BYTES)
            for i in gl.static_range(len(planes)):
                copy_plane(
                    sources[i], held[i].index(stage), arrived, at_n * TILE_N, at, rows, True,
                    plane_of(planes, i), STEP, boxes(plane_of(planes, i), TILE_N),
                )  # fmt: skip
            for part in gl.static_range(PARTS):
                copy_box(X, [at_m * TILE_M, at * STEP + part * 64], arrived, tokens.index(stage * PARTS + part))
            stage, phase = next_place(stage, phase, STAGES)


@gluon.constexpr_function
def stays(P, step, STEP):
    """Whether step number `step` finds the plane's elements in the registers of the step before it."""
    return step is not None and P[2] > STEP and step % (P[2] // STEP) != 0


@gluon.jit
def load_held(held, index, before, CONSUMERS: gl.constexpr, P: gl.constexpr, ROWS: gl.constexpr, STAYS: gl.constexpr):
    """What one plane holds of a consumer's stage, or what it held before."""
    if STAYS:
        found = before
    else:
        found = load_plane(view(held, CONSUMERS, P, ROWS).index(index), P, ROWS)
    return found


@gluon.jit
def load_step(
    held, stage, group, before, step: gl.constexpr, CONSUMERS: gl.constexpr, planes: gl.constexpr, ROWS: gl.constexpr,
    STEP: gl.constexpr,
):  # fmt: skip
    """What every plane holds of a stage for a consumer's rows, as a tuple; before: the same of the step before, of
    which is kept what did not change. step: the step's number where it is known when compiling, or None."""
    COUNT: gl.constexpr = len(planes)
    index = stage * CONSUMERS + group
    P0: gl.constexpr = planes[0]
    a = load_held(held[0], index, before[0], CONSUMERS, P0, ROWS, stays(P0, step, STEP))
    if COUNT == 1:
        found = (a,)
    else:
        P1: gl.constexpr = planes[1]
        b = load_held(held[1], index, before[1], CONSUMERS, P1, ROWS, stays(P1, step, STEP))
        if COUNT == 2:
            found = (a, b)
        else:
            P2: gl.constexpr = planes[2]
            c = load_held(held[2], index, before[2], CONSUMERS, P2, ROWS, stays(P2, step, STEP))
            if COUNT == 3:
                found = (a, b, c)
            else:
                P3: gl.constexpr = planes[3]
                d = load_held(held[3], index, before[3], CONSUMERS, P3, ROWS, stays(P3, step, STEP))
                if COUNT == 4:
                    found = (a, b, c, d)
                else:
                    P4: gl.constexpr = planes[4]
                    e = load_held(held[4], index, before[4], CONSUMERS, P4, ROWS, stays(P4, step, STEP))
                    found = (a, b, c, d, e)
    return found


@gluon.jit
def view(held, CONSUMERS: gl.constexpr, P: gl.constexpr, ROWS: gl.constexpr):
    """A plane's stages as one buffer of ROWS rows for each consumer."""
    SHAPE: gl.constexpr = [held.shape[0] * CONSUMERS] + held_shape(P, ROWS)
    return reinterpreted(held, element(P), SHAPE, held_layout(P))
