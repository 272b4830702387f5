"""Device code of `triton.gemm_wgmma`: a warp group that decodes weights and multiplies."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.language.extra.cuda import gdc_wait

from warptile.kernels.triton.gemm_wgmma.device_copies import load_step
from warptile.kernels.triton.gemm_wgmma.device_ends import (
    add_parts,
    copy_tile,
    in_parts,
    place_of,
    row_numbers,
    store_tile,
    unit_exponents,
)
from warptile.kernels.triton.gemm_wgmma.device_shares import owners, span_of, tile_at, tile_of, walk_of
from warptile.kernels.triton.gemm_wgmma.device_steps import (
    arrived,
    copied,
    give_back,
    hold,
    known,
    next_place,
    numbered,
)
from warptile.kernels.triton.gluon_marks import mark_free
from warptile.kernels.triton.gluon_names import barrier
from warptile.layouts.triton.lane_decode import as_operand, decode_part
from warptile.layouts.triton.lane_layouts import lane_layout
from warptile.layouts.triton.lane_scales import factors


@gluon.jit
def consume(
    tokens, held, full, empty, ring_full, ring_empty, both, Out, W, Y, Part, Count, Executed, m, rows, steps,
    programs, split, rest, sharers, row0, y_stride, unit,
    TILE_N: gl.constexpr, TILE_M: gl.constexpr, STEP: gl.constexpr, TURN: gl.constexpr, WHOLE: gl.constexpr,
    EVEN: gl.constexpr, GROUP_M: gl.constexpr, L: gl.constexpr, planes: gl.constexpr, STAGES: gl.constexpr,
    BF16: gl.constexpr, ADDED: gl.constexpr, EARLY: gl.constexpr, PAIRS: gl.constexpr, AHEAD: gl.constexpr,
    HOLD: gl.constexpr, FREE: gl.constexpr, RING: gl.constexpr, COPIED: gl.constexpr, CONSUMERS: gl.constexpr,
    DIRECT: gl.constexpr, BUILD_ID: gl.constexpr, GROUP: gl.constexpr,
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
    HELD: gl.constexpr = ROWS // 64 * ADDED
    SUM_ADDED: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, ADDED, 16]
    )
    TOGETHER: gl.constexpr = 1 if HELD == 256 else (2 if HELD == 128 or CONSUMERS == 4 else 4)
    program = gl.program_id(0)
    turns = steps // TURN
    begin, end, first_turn, end_turn, stride = walk_of(
        program, programs, m, rows, steps, split, rest, sharers, TILE_N, TILE_M, TURN, WHOLE, EVEN
    )
    stage = 0
    phase = 0
    place = 0
    ring_phase = 0
    walks = 0
    row = GROUP * ROWS + row_numbers(ROW, ROWS)
    tile = tile_of(first_turn, program, programs, begin, end, steps, rest, EVEN)
    _, at_n = tile_at(tile, rows, m, TILE_N, TILE_M, GROUP_M)
    next_exponent = unit_exponents(W, unit, at_n * TILE_N + row, rows)
    for walked in range(first_turn, end_turn, stride):
        tile = tile_of(walked, program, programs, begin, end, steps, rest, EVEN)
        at_m, at_n = tile_at(tile, rows, m, TILE_N, TILE_M, GROUP_M)
        first, last = span_of(tile, begin, end, steps, rest, WHOLE, EVEN)
        row_first = at_n * TILE_N + GROUP * ROWS
        exponent = next_exponent
        following = gl.minimum(walked + stride, end_turn - 1)
        following = tile_of(following, program, programs, begin, end, steps, rest, EVEN)
        _, next_n = tile_at(following, rows, m, TILE_N, TILE_M, GROUP_M)
        next_exponent = unit_exponents(W, unit, next_n * TILE_N + row, rows)
        up = ((278 - exponent) << 23).to(gl.float32, bitcast=True) * (L[10] if L[10] != 0 else 1)
        down = ((254 - exponent) << 23).to(gl.float32, bitcast=True)
        acc = gl.zeros((ROWS, TILE_M), gl.float32, SUM)
        mbarrier.wait(full.index(stage), phase)
        raw = load_step(held, stage, GROUP, held, None, CONSUMERS, planes, ROWS, STEP)
        scaled = factors(raw, first, up, down, L[15], L, DIRECT)
        gl.assume(last > first)
        pairs = decode_part(raw, scaled, planes, 0, PARTS, L, BF16, DIRECT)
        if COPIED:
            if walked > first_turn:
                # The last activations of the tile before gave their room to its output until here.
                copied()
                give_back(empty.index((stage + STAGES - 1) % STAGES), FREE)
        for turn in range(first, last, TURN):
            ended = as_operand(pairs, OPERAND, BF16)
            older = ended
            done = stage
            used = place
            for step in gl.static_range(TURN):
                at = turn + step
                here = step % STAGES if FIXED else stage
                newer = as_operand(pairs, OPERAND, BF16)
                if RING > 0:
                    arrived(ring_full.index(place), ring_phase, True, FREE)
                    x = tokens.index(place).permute((1, 0))
                else:
                    x = tokens.index(here * PARTS).permute((1, 0))
                if FREE:
                    mark_free()
                acc = hopper.warpgroup_mma(newer, x, acc, is_async=True)
                if step > 0:
                    acc, ended = hopper.warpgroup_mma_wait(1, deps=(acc, ended))
                    give_back(empty.index(done), FREE)
                    if RING > 0:
                        give_back(ring_empty.index(used), FREE)
                done = here
                used = place
                if RING > 0:
                    place, ring_phase = next_place(place, ring_phase, RING)
                if FIXED:
                    slot = (step + 1) % STAGES
                    if (step + 1) % STAGES == 0:
                        phase ^= 1
                else:
                    stage, phase = next_place(stage, phase, STAGES)
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
                    if RING > 0:
                        arrived(ring_full.index(place), ring_phase, True, FREE)
                        x = tokens.index(place).permute((1, 0))
                    else:
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
                if RING > 0:
                    give_back(ring_empty.index(used), FREE)
                    used = place
                    place, ring_phase = next_place(place, ring_phase, RING)
                pairs = decode_part(raw, scaled, planes, 0, PARTS, L, BF16, DIRECT)
                if HOLD:
                    hold(pairs, m + at)
                ended = newer
                if step == TURN - 1:
                    acc, ended, pairs = hopper.warpgroup_mma_wait(0, deps=(acc, ended, pairs))
                    if COPIED:
                        if turn + TURN < last:
                            give_back(empty.index(done), FREE)
                    else:
                        give_back(empty.index(done), FREE)
                        if RING > 0:
                            give_back(ring_empty.index(used), FREE)
        if EARLY:
            gdc_wait()
        if COPIED:
            give_back(both, FREE)
            arrived(both, walks, True, FREE)
            walks ^= 1
            alone = True
            if EVEN:
                first_owner, last_owner = owners(tile, turns, split, rest, sharers, EVEN)
                alone = first_owner == last_owner
            if alone:
                room = tokens.index((stage + STAGES - 1) % STAGES * PARTS + GROUP)
                copy_tile(acc, exponent, Out, room, at_m * TILE_M, row_first)
        elif WHOLE:
            store_tile(acc, exponent, Y, m, rows, row0, y_stride, at_m, row_first, TILE_M, PAIRS)
        if not WHOLE:
            SIZE: gl.constexpr = ROWS * TILE_M
            first_owner, last_owner = owners(tile, turns, split, rest, sharers, EVEN)
            if first_owner == last_owner:
                if not COPIED:
                    store_tile(acc, exponent, Y, m, rows, row0, y_stride, at_m, row_first, TILE_M, PAIRS)
            else:
                flat = in_parts(acc, TILE_M)
                own = gl.arange(0, SIZE, layout=flat.type.layout)
                kept = place_of(program, tile, turns, split, rest, sharers, EVEN)
                gl.store(Part + (kept * CONSUMERS + GROUP).to(gl.int64) * SIZE + own, flat)
                barrier()
                count = Count + tile * CONSUMERS + GROUP
                if gl.atomic_add(count, 1, sem="acq_rel", scope="gpu") == last_owner - first_owner:
                    barrier()
                    for block in range(TILE_M // ADDED):
                        summed = add_parts(
                            Part, first_owner, last_owner, tile, turns, split, rest, sharers, block * ROWS * ADDED,
                            SUM_ADDED, ROWS, ADDED, SIZE, EVEN, CONSUMERS, GROUP, TOGETHER,
                        )  # fmt: skip
                        store_tile(
                            summed, exponent, Y, m, rows, row0, y_stride, at_m * (TILE_M // ADDED) + block, row_first,
                            ADDED, PAIRS,
                        )  # fmt: skip
                    gl.store(count, 0)
    if COPIED:
        tma.store_wait(0)
    if GROUP == 0:
        if program == 0:
            gl.store(Executed, gl.to_tensor(BUILD_ID).to(gl.uint32))
