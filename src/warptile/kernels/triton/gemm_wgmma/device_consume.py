"""Device code of `triton.gemm_wgmma`: a warp group that decodes weights and multiplies."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.language.extra.cuda import gdc_wait

from warptile.kernels.triton.gemm_wgmma.device_copies import load_step
from warptile.kernels.triton.gemm_wgmma.device_ends import (
    from_parts,
    in_parts,
    part_of,
    place_of,
    row_numbers,
    store_tile,
    unit_exponents,
)
from warptile.kernels.triton.gemm_wgmma.device_shares import owners, share, steps_of, tile_at, tile_of, tiles_of
from warptile.kernels.triton.gemm_wgmma.device_steps import arrived, give_back, hold, known, numbered
from warptile.kernels.triton.gluon_marks import mark_free
from warptile.kernels.triton.gluon_names import barrier
from warptile.layouts.triton.lane_decode import as_operand, decode_part
from warptile.layouts.triton.lane_layouts import lane_layout
from warptile.layouts.triton.lane_scales import factors


@gluon.jit
def consume(
    tokens, held, full, empty, W, Y, Part, Count, Executed, m, rows, steps, programs, split, row0,
    y_stride, unit,
    L: gl.constexpr, planes: gl.constexpr, TILE_N: gl.constexpr, TILE_M: gl.constexpr, STEP: gl.constexpr,
    STAGES: gl.constexpr, WHOLE: gl.constexpr, GROUP_M: gl.constexpr, BF16: gl.constexpr,
    EARLY: gl.constexpr, PAIRS: gl.constexpr, TURN: gl.constexpr, AHEAD: gl.constexpr, HOLD: gl.constexpr,
    FREE: gl.constexpr, CONSUMERS: gl.constexpr, REST: gl.constexpr, DIRECT: gl.constexpr,
    BUILD_ID: gl.constexpr, GROUP: gl.constexpr,
):  # fmt: skip
    """A consuming warp group: ROWS rows of each tile of its program.

    The next part is decoded while the matrix unit works on this one. No matrix instruction is in flight when a stage is
    given back or the loop turns: Triton 3.6's wait does not hold register operands over the turn.
    """
    SUM: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, TILE_M, 16])
    OPERAND: gl.constexpr = gl.DotOperandLayout(0, SUM, 2)
    ROWS: gl.constexpr = TILE_N // CONSUMERS
    ROW: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(1, lane_layout(ROWS, [1])))
    PARTS: gl.constexpr = STEP // 64
    # Whether a turn begins with the first stage each time.
    FIXED: gl.constexpr = TURN % STAGES == 0
    # Parts of a tile that are loaded at a time, by the registers they take.
    HELD: gl.constexpr = ROWS // 64 * TILE_M
    TOGETHER: gl.constexpr = 1 if HELD == 256 else (2 if HELD == 128 or CONSUMERS == 4 else 4)
    program = gl.program_id(0)
    turns = steps // TURN
    begin, end = share(program, programs, m, rows, turns, split, TILE_N, TILE_M, REST)
    begin *= TURN
    end *= TURN
    stage = 0
    phase = 0
    shared, count = tiles_of(program, programs, begin, end, m, rows, steps, turns, TILE_N, TILE_M, WHOLE, REST)
    row = GROUP * ROWS + row_numbers(ROW, ROWS)
    first_tile = tile_of(0, program, programs, begin, shared, steps, WHOLE, REST)
    _, at_n = tile_at(first_tile, rows, m, TILE_N, TILE_M, GROUP_M)
    next_exponent = unit_exponents(W, unit, at_n * TILE_N + row, rows)
    for number in range(count):
        tile = tile_of(number, program, programs, begin, shared, steps, WHOLE, REST)
        at_m, at_n = tile_at(tile, rows, m, TILE_N, TILE_M, GROUP_M)
        first, last = steps_of(number, tile, begin, end, shared, steps, WHOLE, REST)
        row_first = at_n * TILE_N + GROUP * ROWS
        exponent = next_exponent
        coming = tile_of(gl.minimum(number + 1, count - 1), program, programs, begin, shared, steps, WHOLE, REST)
        _, next_n = tile_at(coming, rows, m, TILE_N, TILE_M, GROUP_M)
        next_exponent = unit_exponents(W, unit, next_n * TILE_N + row, rows)
        up = ((278 - exponent) << 23).to(gl.float32, bitcast=True) * (L[10] if L[10] != 0 else 1)
        down = ((254 - exponent) << 23).to(gl.float32, bitcast=True)
        acc = gl.zeros((ROWS, TILE_M), gl.float32, SUM)
        mbarrier.wait(full.index(stage), phase)
        raw = load_step(held, stage, GROUP, held, None, CONSUMERS, planes, ROWS, STEP)
        scaled = factors(raw, first, up, down, L[15], L, DIRECT)
        gl.assume(last > first)
        pairs = decode_part(raw, scaled, planes, 0, PARTS, L, BF16, DIRECT)
        for turn in range(first, last, TURN):
            ended = as_operand(pairs, OPERAND, BF16)
            older = ended
            done = stage
            for step in gl.static_range(TURN):
                at = turn + step
                here = step % STAGES if FIXED else stage
                newer = as_operand(pairs, OPERAND, BF16)
                if FREE:
                    mark_free()
                acc = hopper.warpgroup_mma(newer, tokens.index(here * PARTS).permute((1, 0)), acc, is_async=True)
                if step > 0:
                    acc, ended = hopper.warpgroup_mma_wait(1, deps=(acc, ended))
                    give_back(empty.index(done), FREE)
                done = here
                if FIXED:
                    slot = (step + 1) % STAGES
                    if (step + 1) % STAGES == 0:
                        phase ^= 1
                else:
                    stage += 1
                    if stage == STAGES:
                        stage = 0
                        phase ^= 1
                    slot = stage
                if AHEAD:
                    arrived(full.index(slot), phase, at + 1 < last, FREE)
                    next_raw = load_step(
                        held, slot, GROUP, raw, known(step + 1, TURN, planes, STEP), CONSUMERS, planes, ROWS, STEP
                    )
                for part in gl.static_range(1, PARTS):
                    if part > 1:
                        acc, older = hopper.warpgroup_mma_wait(1, deps=(acc, older))
                    older = newer
                    newer = as_operand(decode_part(raw, scaled, planes, part, PARTS, L, BF16, DIRECT), OPERAND, BF16)
                    x = tokens.index(done * PARTS + part).permute((1, 0))
                    if FREE:
                        mark_free()
                    acc = hopper.warpgroup_mma(newer, x, acc, is_async=True)
                if AHEAD:
                    raw = next_raw
                else:
                    arrived(full.index(slot), phase, at + 1 < last, FREE)
                    raw = load_step(
                        held, slot, GROUP, raw, known(step + 1, TURN, planes, STEP), CONSUMERS, planes, ROWS, STEP
                    )
                scaled = factors(raw, numbered(at + 1, known(step + 1, TURN, planes, STEP)), up, down, L[15], L, DIRECT)
                # The next part is decoded into the registers of the last but one, which has been read by then.
                if PARTS > 1:
                    acc, older = hopper.warpgroup_mma_wait(1, deps=(acc, older))
                pairs = decode_part(raw, scaled, planes, 0, PARTS, L, BF16, DIRECT)
                if HOLD:
                    hold(pairs, m + at)
                ended = newer
                if step == TURN - 1:
                    acc, ended, pairs = hopper.warpgroup_mma_wait(0, deps=(acc, ended, pairs))
                    give_back(empty.index(done), FREE)
        if EARLY:
            gdc_wait()
        if WHOLE:
            store_tile(acc, exponent, Y, m, rows, row0, y_stride, at_m, row_first, TILE_M, PAIRS)
        else:
            SIZE: gl.constexpr = ROWS * TILE_M
            first_owner, last_owner = owners(tile, programs, m, rows, turns, split, TILE_N, TILE_M, REST)
            alone = first_owner == last_owner
            if REST > 0:
                alone = alone | (number >= shared)
            if alone:
                store_tile(acc, exponent, Y, m, rows, row0, y_stride, at_m, row_first, TILE_M, PAIRS)
            else:
                flat = in_parts(acc, TILE_M)
                FLAT: gl.constexpr = flat.type.layout
                own = gl.arange(0, SIZE, layout=FLAT)
                place = place_of(program, tile, programs, m, rows, turns, split, TILE_N, TILE_M, REST)
                gl.store(Part + (place * CONSUMERS + GROUP).to(gl.int64) * SIZE + own, flat)
                barrier()
                arrivals = Count + tile * CONSUMERS + GROUP
                if gl.atomic_add(arrivals, 1, sem="acq_rel", scope="gpu") == last_owner - first_owner:
                    barrier()
                    total_sum = gl.zeros((SIZE,), gl.float32, FLAT)
                    for other in range(first_owner, last_owner + 1, TOGETHER):
                        place = place_of(other, tile, programs, m, rows, turns, split, TILE_N, TILE_M, REST)
                        p0 = part_of(Part, place, own, other <= last_owner, CONSUMERS, GROUP, SIZE)
                        if TOGETHER >= 2:
                            place = place_of(other + 1, tile, programs, m, rows, turns, split, TILE_N, TILE_M, REST)
                            p1 = part_of(Part, place, own, other + 1 <= last_owner, CONSUMERS, GROUP, SIZE)
                        if TOGETHER == 4:
                            place = place_of(other + 2, tile, programs, m, rows, turns, split, TILE_N, TILE_M, REST)
                            p2 = part_of(Part, place, own, other + 2 <= last_owner, CONSUMERS, GROUP, SIZE)
                            place = place_of(other + 3, tile, programs, m, rows, turns, split, TILE_N, TILE_M, REST)
                            p3 = part_of(Part, place, own, other + 3 <= last_owner, CONSUMERS, GROUP, SIZE)
                        total_sum += p0
                        if TOGETHER >= 2:
                            total_sum += p1
                        if TOGETHER == 4:
                            total_sum += p2
                            total_sum += p3
                    whole = from_parts(total_sum, TILE_M, SUM)
                    store_tile(whole, exponent, Y, m, rows, row0, y_stride, at_m, row_first, TILE_M, PAIRS)
                    gl.store(arrivals, 0)
    if GROUP == 0:
        if program == 0:
            gl.store(Executed, gl.to_tensor(BUILD_ID).to(gl.uint32))
