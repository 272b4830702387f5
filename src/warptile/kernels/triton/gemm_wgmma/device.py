"""Device code of `triton.gemm_wgmma`: Gluon, for Hopper's asynchronous copies and warp-group matrix instructions."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from warptile.kernels.triton.gluon_names import barrier, copy_box, reinterpreted
from warptile.layouts.triton.lane_decode import (
    as_operand,
    decode_part,
    element,
    factors,
    held_layout,
    held_shape,
    is_wide,
    lane_layout,
    load_plane,
    row_bytes,
)

MOST_BOX = gl.constexpr(256)


@gluon.constexpr_function
def stage_bytes(planes, rows, tokens, step):
    """Bytes that one stage brings: activations and every plane's part."""
    return tokens * step * 2 + sum(rows * p[0] * p[1] // 8 for p in planes)


@gluon.constexpr_function
def boxes(P, rows):
    """Copies that bring `rows` rows of a plane."""
    return 1 if P[0] * P[1] // 8 >= 16 else max(1, rows * P[1] // 256)


@gluon.jit
def tile_at(tile, rows, m, TILE_N: gl.constexpr, TILE_M: gl.constexpr, GROUP_M: gl.constexpr):
    """(m, n) of a tile: GROUP_M token tiles are walked through together, so that their weights are met in cache."""
    tiles_n = (rows + TILE_N - 1) // TILE_N
    tiles_m = (m + TILE_M - 1) // TILE_M
    together = GROUP_M * tiles_n
    first = tile // together * GROUP_M
    size = gl.minimum(tiles_m - first, GROUP_M)
    return first + tile % together % size, tile % together // size


@gluon.jit
def share(program, programs, m, rows, steps, split, TILE_N: gl.constexpr, TILE_M: gl.constexpr):
    """[begin, end) of a program's steps, counted through all tiles: of its part of `split` of a tile, or, where split
    is 0, an even share of all."""
    total = ((rows + TILE_N - 1) // TILE_N) * ((m + TILE_M - 1) // TILE_M) * steps
    if split > 0:
        tile = program // split
        part = program % split
        begin = tile * steps + steps * part // split
        end = tile * steps + steps * (part + 1) // split
    else:
        begin = total * program // programs
        end = total * (program + 1) // programs
    return begin, end


@gluon.jit
def tiles_of(
    program, programs, begin, end, m, rows, steps, TILE_N: gl.constexpr, TILE_M: gl.constexpr, WHOLE: gl.constexpr
):  # fmt: skip
    """(first, end, stride) of a program's tiles: with WHOLE every programs-th, else those its steps lie in."""
    if WHOLE:
        first, last, stride = program, ((rows + TILE_N - 1) // TILE_N) * ((m + TILE_M - 1) // TILE_M), programs
    else:
        first, last, stride = begin // steps, (end - 1) // steps + 1, 1
    return first, last, stride


@gluon.jit
def owners(tile, programs, m, rows, steps, split, TILE_N: gl.constexpr, TILE_M: gl.constexpr):
    """(first, last) of the programs that share a tile."""
    if split > 0:
        first = tile * split
        last = first + split - 1
    else:
        total = ((rows + TILE_N - 1) // TILE_N) * ((m + TILE_M - 1) // TILE_M) * steps
        first = ((tile * steps + 1) * programs - 1) // total
        last = ((tile * steps + steps) * programs - 1) // total
    return first, last


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
    X, sources, tokens, held, full, empty, m, rows, steps, programs, split, planes: gl.constexpr,
    TILE_N: gl.constexpr, TILE_M: gl.constexpr, STEP: gl.constexpr, STAGES: gl.constexpr, WHOLE: gl.constexpr,
    GROUP_M: gl.constexpr, EARLY: gl.constexpr,
):  # fmt: skip
    """The copying warp: fills stages as they fall empty."""
    PARTS: gl.constexpr = STEP // 64
    BYTES: gl.constexpr = stage_bytes(planes, TILE_N, TILE_M, STEP)
    begin, end = share(gl.program_id(0), programs, m, rows, steps, split, TILE_N, TILE_M)
    first_tile, end_tile, stride = tiles_of(
        gl.program_id(0), programs, begin, end, m, rows, steps, TILE_N, TILE_M, WHOLE
    )
    ahead = 0
    if EARLY:
        # Weights do not depend on the launch before; activations do.
        at_m, at_n = tile_at(first_tile, rows, m, TILE_N, TILE_M, GROUP_M)
        first = 0 if WHOLE else begin - first_tile * steps
        ahead = gl.minimum(steps - first if WHOLE else gl.minimum(end - begin, steps - first), STAGES)
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
    for tile in range(first_tile, end_tile, stride):
        at_m, at_n = tile_at(tile, rows, m, TILE_N, TILE_M, GROUP_M)
        first = gl.where(tile == first_tile, ahead, 0)
        last = steps
        if not WHOLE:
            first += gl.maximum(begin - tile * steps, 0)
            last = gl.minimum(end - tile * steps, steps)
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
            stage += 1
            if stage == STAGES:
                stage = 0
                phase ^= 1


@gluon.jit
def load_step(held, stage, group, CONSUMERS: gl.constexpr, planes: gl.constexpr, ROWS: gl.constexpr):
    """What every plane holds of a stage for a consumer's rows, as a tuple."""
    COUNT: gl.constexpr = len(planes)
    index = stage * CONSUMERS + group
    P0: gl.constexpr = planes[0]
    a = load_plane(view(held[0], CONSUMERS, P0, ROWS).index(index), P0, ROWS)
    if COUNT == 1:
        found = (a,)
    else:
        P1: gl.constexpr = planes[1]
        b = load_plane(view(held[1], CONSUMERS, P1, ROWS).index(index), P1, ROWS)
        if COUNT == 2:
            found = (a, b)
        else:
            P2: gl.constexpr = planes[2]
            c = load_plane(view(held[2], CONSUMERS, P2, ROWS).index(index), P2, ROWS)
            if COUNT == 3:
                found = (a, b, c)
            else:
                P3: gl.constexpr = planes[3]
                d = load_plane(view(held[3], CONSUMERS, P3, ROWS).index(index), P3, ROWS)
                if COUNT == 4:
                    found = (a, b, c, d)
                else:
                    P4: gl.constexpr = planes[4]
                    e = load_plane(view(held[4], CONSUMERS, P4, ROWS).index(index), P4, ROWS)
                    found = (a, b, c, d, e)
    return found


@gluon.jit
def view(held, CONSUMERS: gl.constexpr, P: gl.constexpr, ROWS: gl.constexpr):
    """A plane's stages as one buffer of ROWS rows for each consumer."""
    SHAPE: gl.constexpr = [held.shape[0] * CONSUMERS] + held_shape(P, ROWS)
    return reinterpreted(held, element(P), SHAPE, held_layout(P))


@gluon.jit
def row_numbers(LAYOUT: gl.constexpr, ROWS: gl.constexpr):
    """The rows of a consumer's tile that the matrix unit's rows stand for, i32[ROWS]."""
    rho = gl.arange(0, ROWS, layout=LAYOUT)
    reversed_group = ((rho & 1) << 3) | ((rho & 2) << 1) | ((rho & 4) >> 1)
    return (rho & 112) | reversed_group | ((rho >> 3) & 1)


@gluon.jit
def unit_exponents(W, unit, row, rows):
    """Biased exponents of the rows' units, i32."""
    bytes = (W + unit).to(gl.pointer_type(gl.uint8))
    return gl.load(bytes + row, mask=row < rows, other=127).to(gl.int32)


@gluon.jit
def store_tile(
    acc, exponent, Y, m, rows, row0, y_stride, at_m, row_first, TILE_M: gl.constexpr, PAIRS: gl.constexpr
):  # fmt: skip
    """y of a consumer's sums [rho, TILE_M], times the rows' units (biased exponents [rho]); with PAIRS two neighbouring
    rows in one store, for which y, its stride and row0 are even."""
    unit = gl.convert_layout((exponent << 23).to(gl.float32, bitcast=True), gl.SliceLayout(1, acc.type.layout))
    acc = acc * gl.expand_dims(unit, 1)
    PAIRED: gl.constexpr = acc.shape[0] // 2
    sums = gl.permute(gl.reshape(acc, (acc.shape[0] // 16, 2, 8, TILE_M)), (0, 2, 3, 1))
    even, odd = gl.split(sums)
    even = gl.reshape(even, (PAIRED, TILE_M))
    odd = gl.reshape(odd, (PAIRED, TILE_M))
    LAYOUT: gl.constexpr = even.type.layout
    pair = gl.arange(0, PAIRED, layout=gl.SliceLayout(1, LAYOUT))
    row = row_first + ((pair >> 3) << 4) + (((pair & 1) << 3) | ((pair & 2) << 1) | ((pair & 4) >> 1))
    token = gl.arange(0, TILE_M, layout=gl.SliceLayout(0, LAYOUT))
    row = gl.expand_dims(row, 1)
    token = gl.expand_dims(token, 0)
    left = m - at_m * TILE_M
    base = Y + (at_m * TILE_M).to(gl.int64) * y_stride + row0
    TYPE: gl.constexpr = Y.dtype.element_ty
    HALF: gl.constexpr = Y.dtype.element_ty == gl.float16
    if PAIRS:
        if HALF:
            both = gl.inline_asm_elementwise(
                "cvt.rn.f16x2.f32 $0, $2, $1;", "=r,f,f", [even, odd], dtype=gl.int32, is_pure=True, pack=1
            )
        else:
            both = gl.inline_asm_elementwise(
                "cvt.rn.bf16x2.f32 $0, $2, $1;", "=r,f,f", [even, odd], dtype=gl.int32, is_pure=True, pack=1
            )
        at = token * (y_stride // 2) + row // 2
        gl.store(base.to(gl.pointer_type(gl.int32), bitcast=True) + at, both, mask=(token < left) & (row < rows))
    else:
        at = token * y_stride + row
        gl.store(base + at, even.to(TYPE), mask=(token < left) & (row < rows))
        gl.store(base + at + 1, odd.to(TYPE), mask=(token < left) & (row + 1 < rows))


@gluon.jit
def in_parts(acc, TILE_M: gl.constexpr):
    """Sums [ROWS, TILE_M] flat: each lane's four next to each other, neighbouring lanes in neighbouring places."""
    flat = gl.reshape(acc, (acc.shape[0] // 16, 2, 8, TILE_M // 8, 4, 2))
    return gl.reshape(gl.permute(flat, (3, 0, 2, 4, 1, 5)), (acc.shape[0] * TILE_M,))


@gluon.jit
def from_parts(flat, TILE_M: gl.constexpr, LAYOUT: gl.constexpr):
    """Inverse of `in_parts`."""
    ROWS: gl.constexpr = flat.shape[0] // TILE_M
    found = gl.reshape(flat, (TILE_M // 8, ROWS // 16, 8, 4, 2, 2))
    found = gl.reshape(gl.permute(found, (1, 4, 2, 0, 3, 5)), (ROWS, TILE_M))
    return gl.convert_layout(found, LAYOUT, assert_trivial=True)


@gluon.jit
def place_of(
    program, tile, programs, m, rows, steps, split, TILE_N: gl.constexpr, TILE_M: gl.constexpr
):  # fmt: skip
    """Where a program keeps its part of a tile: its first tile and its last each have a place of their own."""
    begin, _ = share(program, programs, m, rows, steps, split, TILE_N, TILE_M)
    return 2 * program + gl.where(begin >= tile * steps, 0, 1)


@gluon.jit
def part_of(Part, place, own, inside, CONSUMERS: gl.constexpr, GROUP: gl.constexpr, SIZE: gl.constexpr):
    """A program's part of a tile as it was kept, or zero where it is not `inside`."""
    base = Part + (place * CONSUMERS + GROUP).to(gl.int64) * SIZE
    return gl.load(base + own, mask=inside & (own >= 0), other=0.0, cache_modifier=".cg")


@gluon.jit
def hold(pairs, Count, never):
    """Keeps the decode of `pairs` before what follows: within one block of instructions, ptxas moves it behind the wait
    for the matrix unit. `never` is not negative, which the compiler does not know."""
    if never < 0:
        gl.store(Count + pairs, pairs)


@gluon.jit
def consume(
    tokens, held, full, empty, W, Y, Part, Count, Executed, m, rows, steps, programs, split, row0, y_stride, unit,
    L: gl.constexpr, planes: gl.constexpr, TILE_N: gl.constexpr, TILE_M: gl.constexpr, STEP: gl.constexpr,
    STAGES: gl.constexpr, WHOLE: gl.constexpr, GROUP_M: gl.constexpr, SUMS: gl.constexpr, BF16: gl.constexpr,
    EARLY: gl.constexpr, PAIRS: gl.constexpr, CONSUMERS: gl.constexpr, BUILD_ID: gl.constexpr, GROUP: gl.constexpr,
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
    # Parts of a tile that are loaded at a time, by the registers they take.
    HELD: gl.constexpr = ROWS // 64 * TILE_M
    TOGETHER: gl.constexpr = 1 if HELD == 256 else (2 if HELD == 128 or CONSUMERS == 4 else 4)
    program = gl.program_id(0)
    begin, end = share(program, programs, m, rows, steps, split, TILE_N, TILE_M)
    stage = 0
    phase = 0
    first_tile, end_tile, stride = tiles_of(program, programs, begin, end, m, rows, steps, TILE_N, TILE_M, WHOLE)
    row = GROUP * ROWS + row_numbers(ROW, ROWS)
    _, at_n = tile_at(first_tile, rows, m, TILE_N, TILE_M, GROUP_M)
    next_exponent = unit_exponents(W, unit, at_n * TILE_N + row, rows)
    for tile in range(first_tile, end_tile, stride):
        at_m, at_n = tile_at(tile, rows, m, TILE_N, TILE_M, GROUP_M)
        first = 0
        last = steps
        if not WHOLE:
            first = gl.maximum(begin - tile * steps, 0)
            last = gl.minimum(end - tile * steps, steps)
        row_first = at_n * TILE_N + GROUP * ROWS
        exponent = next_exponent
        _, next_n = tile_at(gl.minimum(tile + stride, end_tile - 1), rows, m, TILE_N, TILE_M, GROUP_M)
        next_exponent = unit_exponents(W, unit, next_n * TILE_N + row, rows)
        up = ((278 - exponent) << 23).to(gl.float32, bitcast=True) * (L[10] if L[10] != 0 else 1)
        down = ((254 - exponent) << 23).to(gl.float32, bitcast=True)
        acc = gl.zeros((ROWS, TILE_M), gl.float32, SUM)
        if SUMS == 2:
            acc1 = gl.zeros((ROWS, TILE_M), gl.float32, SUM)
        mbarrier.wait(full.index(stage), phase)
        raw = load_step(held, stage, GROUP, CONSUMERS, planes, ROWS)
        scaled = factors(raw, first, up, down, L[15], L)
        pairs = decode_part(raw, scaled, planes, 0, PARTS, L, BF16)
        gl.assume(last > first)
        for at in range(first, last):
            a0 = as_operand(pairs, OPERAND, BF16)
            acc = hopper.warpgroup_mma(a0, tokens.index(stage * PARTS).permute((1, 0)), acc, is_async=True)
            if PARTS >= 2:
                a1 = as_operand(decode_part(raw, scaled, planes, 1, PARTS, L, BF16), OPERAND, BF16)
                x1 = tokens.index(stage * PARTS + 1).permute((1, 0))
                if SUMS == 2:
                    acc1 = hopper.warpgroup_mma(a1, x1, acc1, is_async=True)
                else:
                    acc = hopper.warpgroup_mma(a1, x1, acc, is_async=True)
            if PARTS == 4:
                a2 = as_operand(decode_part(raw, scaled, planes, 2, PARTS, L, BF16), OPERAND, BF16)
                acc = hopper.warpgroup_mma(a2, tokens.index(stage * PARTS + 2).permute((1, 0)), acc, is_async=True)
                a3 = as_operand(decode_part(raw, scaled, planes, 3, PARTS, L, BF16), OPERAND, BF16)
                x3 = tokens.index(stage * PARTS + 3).permute((1, 0))
                if SUMS == 2:
                    acc1 = hopper.warpgroup_mma(a3, x3, acc1, is_async=True)
                else:
                    acc = hopper.warpgroup_mma(a3, x3, acc, is_async=True)
            done = stage
            stage += 1
            if stage == STAGES:
                stage = 0
                phase ^= 1
            mbarrier.wait(full.index(stage), phase, pred=at + 1 < last)
            raw = load_step(held, stage, GROUP, CONSUMERS, planes, ROWS)
            scaled = factors(raw, at + 1, up, down, L[15], L)
            # The next part is decoded into the registers of the first, which the matrix unit has read by then.
            if PARTS == 1:
                pairs = decode_part(raw, scaled, planes, 0, PARTS, L, BF16)
                hold(pairs, Count, m + at)
                acc, a0, pairs = hopper.warpgroup_mma_wait(0, deps=(acc, a0, pairs))
            elif PARTS == 2:
                acc, a0 = hopper.warpgroup_mma_wait(1, deps=(acc, a0))
                pairs = decode_part(raw, scaled, planes, 0, PARTS, L, BF16)
                hold(pairs, Count, m + at)
                if SUMS == 2:
                    acc, acc1, a1, pairs = hopper.warpgroup_mma_wait(0, deps=(acc, acc1, a1, pairs))
                else:
                    acc, a1, pairs = hopper.warpgroup_mma_wait(0, deps=(acc, a1, pairs))
            else:
                acc, a0, a1, a2 = hopper.warpgroup_mma_wait(1, deps=(acc, a0, a1, a2))
                pairs = decode_part(raw, scaled, planes, 0, PARTS, L, BF16)
                hold(pairs, Count, m + at)
                if SUMS == 2:
                    acc, acc1, a3, pairs = hopper.warpgroup_mma_wait(0, deps=(acc, acc1, a3, pairs))
                else:
                    acc, a3, pairs = hopper.warpgroup_mma_wait(0, deps=(acc, a3, pairs))
            mbarrier.arrive(empty.index(done))
        if SUMS == 2:
            acc = acc + acc1
        if EARLY:
            gdc_wait()
        if WHOLE:
            store_tile(acc, exponent, Y, m, rows, row0, y_stride, at_m, row_first, TILE_M, PAIRS)
        else:
            SIZE: gl.constexpr = ROWS * TILE_M
            first_owner, last_owner = owners(tile, programs, m, rows, steps, split, TILE_N, TILE_M)
            if first_owner == last_owner:
                store_tile(acc, exponent, Y, m, rows, row0, y_stride, at_m, row_first, TILE_M, PAIRS)
            else:
                flat = in_parts(acc, TILE_M)
                FLAT: gl.constexpr = flat.type.layout
                own = gl.arange(0, SIZE, layout=FLAT)
                place = place_of(program, tile, programs, m, rows, steps, split, TILE_N, TILE_M)
                gl.store(Part + (place * CONSUMERS + GROUP).to(gl.int64) * SIZE + own, flat)
                barrier()
                count = Count + tile * CONSUMERS + GROUP
                if gl.atomic_add(count, 1, sem="acq_rel", scope="gpu") == last_owner - first_owner:
                    barrier()
                    total_sum = gl.zeros((SIZE,), gl.float32, FLAT)
                    for other in range(first_owner, last_owner + 1, TOGETHER):
                        place = place_of(other, tile, programs, m, rows, steps, split, TILE_N, TILE_M)
                        p0 = part_of(Part, place, own, other <= last_owner, CONSUMERS, GROUP, SIZE)
                        if TOGETHER >= 2:
                            place = place_of(other + 1, tile, programs, m, rows, steps, split, TILE_N, TILE_M)
                            p1 = part_of(Part, place, own, other + 1 <= last_owner, CONSUMERS, GROUP, SIZE)
                        if TOGETHER == 4:
                            place = place_of(other + 2, tile, programs, m, rows, steps, split, TILE_N, TILE_M)
                            p2 = part_of(Part, place, own, other + 2 <= last_owner, CONSUMERS, GROUP, SIZE)
                            place = place_of(other + 3, tile, programs, m, rows, steps, split, TILE_N, TILE_M)
                            p3 = part_of(Part, place, own, other + 3 <= last_owner, CONSUMERS, GROUP, SIZE)
                        total_sum += p0
                        if TOGETHER >= 2:
                            total_sum += p1
                        if TOGETHER == 4:
                            total_sum += p2
                            total_sum += p3
                    whole = from_parts(total_sum, TILE_M, SUM)
                    store_tile(whole, exponent, Y, m, rows, row0, y_stride, at_m, row_first, TILE_M, PAIRS)
                    gl.store(count, 0)
    if GROUP == 0:
        if program == 0:
            gl.store(Executed, gl.to_tensor(BUILD_ID).to(gl.uint32))


@gluon.jit
def gemm_wgmma(
    X, D0, D1, D2, D3, D4, W, Y, Part, Count, Executed, m, rows, k, programs, split, row0, y_stride, unit,
    L: gl.constexpr, PLANES: gl.constexpr, CONSUMERS: gl.constexpr, TILE_N: gl.constexpr, TILE_M: gl.constexpr,
    STEP: gl.constexpr, STAGES: gl.constexpr, WHOLE: gl.constexpr, GROUP_M: gl.constexpr, SUMS: gl.constexpr,
    BF16: gl.constexpr, EARLY: gl.constexpr, PAIRS: gl.constexpr, CONSUMER_REGISTERS: gl.constexpr,
    PRODUCER_REGISTERS: gl.constexpr, BUILD_ID: gl.constexpr,
):  # fmt: skip
    """y[i, row0 + r] = sum_k x[i, k] w[r, k] for one slice of weights; fp32 sums over k in order (over even and odd
    parts of 64 in order, then their sum, where SUMS is 2), then over the programs that share a tile in theirs.

    X: x[m, k] by boxes of [TILE_M, 64]; D0..: the planes by boxes. Grid: tiles * split, or where split is 0 any number
    of programs, which share all steps evenly; with WHOLE (split 1) fewer programs take several tiles each.
    Part: fp32[2 * programs * TILE_N * TILE_M]; Count: i32[tiles * CONSUMERS], zero before and after.
    EARLY: the next launch may start while this one ends.
    """
    if EARLY:
        gdc_launch_dependents()
    PARTS: gl.constexpr = STEP // 64
    XTYPE: gl.constexpr = gl.bfloat16 if BF16 else gl.float16
    steps = k // STEP
    tokens = gl.allocate_shared_memory(XTYPE, [STAGES * PARTS, TILE_M, 64], gl.NVMMASharedLayout(128, 16, 2))
    h0 = gl.allocate_shared_memory(element(PLANES[0]), [STAGES] + held_shape(PLANES[0], TILE_N), held_layout(PLANES[0]))
    if len(PLANES) == 1:
        sources, held = (D0,), (h0,)
    else:
        h1 = gl.allocate_shared_memory(
            element(PLANES[1]), [STAGES] + held_shape(PLANES[1], TILE_N), held_layout(PLANES[1])
        )
        if len(PLANES) == 2:
            sources, held = (D0, D1), (h0, h1)
        else:
            h2 = gl.allocate_shared_memory(
                element(PLANES[2]), [STAGES] + held_shape(PLANES[2], TILE_N), held_layout(PLANES[2])
            )
            if len(PLANES) == 3:
                sources, held = (D0, D1, D2), (h0, h1, h2)
            else:
                h3 = gl.allocate_shared_memory(
                    element(PLANES[3]), [STAGES] + held_shape(PLANES[3], TILE_N), held_layout(PLANES[3])
                )
                if len(PLANES) == 4:
                    sources, held = (D0, D1, D2, D3), (h0, h1, h2, h3)
                else:
                    h4 = gl.allocate_shared_memory(
                        element(PLANES[4]), [STAGES] + held_shape(PLANES[4], TILE_N), held_layout(PLANES[4])
                    )
                    sources, held = (D0, D1, D2, D3, D4), (h0, h1, h2, h3, h4)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), 1)
        mbarrier.init(empty.index(i), CONSUMERS)
    hopper.fence_async_shared()
    if CONSUMERS == 1:
        gl.warp_specialize(
            [
                (consume, (
                    tokens, held, full, empty, W, Y, Part, Count, Executed, m, rows, steps, programs, split,
                    row0, y_stride, unit, L, PLANES, TILE_N, TILE_M, STEP, STAGES, WHOLE, GROUP_M, SUMS, BF16, EARLY,
                    PAIRS, CONSUMERS, BUILD_ID, 0,
                )),
                (produce, (
                    X, sources, tokens, held, full, empty, m, rows, steps, programs, split, PLANES, TILE_N, TILE_M,
                    STEP, STAGES, WHOLE, GROUP_M, EARLY,
                )),
            ],
            [1], [PRODUCER_REGISTERS],
        )  # fmt: skip
    elif CONSUMERS == 2:
        gl.warp_specialize(
            [
                (consume, (
                    tokens, held, full, empty, W, Y, Part, Count, Executed, m, rows, steps, programs, split,
                    row0, y_stride, unit, L, PLANES, TILE_N, TILE_M, STEP, STAGES, WHOLE, GROUP_M, SUMS, BF16, EARLY,
                    PAIRS, CONSUMERS, BUILD_ID, 0,
                )),
                (consume, (
                    tokens, held, full, empty, W, Y, Part, Count, Executed, m, rows, steps, programs, split,
                    row0, y_stride, unit, L, PLANES, TILE_N, TILE_M, STEP, STAGES, WHOLE, GROUP_M, SUMS, BF16, EARLY,
                    PAIRS, CONSUMERS, BUILD_ID, 1,
                )),
                (produce, (
                    X, sources, tokens, held, full, empty, m, rows, steps, programs, split, PLANES, TILE_N, TILE_M,
                    STEP, STAGES, WHOLE, GROUP_M, EARLY,
                )),
            ],
            [4, 1], [CONSUMER_REGISTERS, PRODUCER_REGISTERS],
        )  # fmt: skip
    else:
        gl.static_assert(CONSUMERS == 4)
        gl.warp_specialize(
            [
                (consume, (
                    tokens, held, full, empty, W, Y, Part, Count, Executed, m, rows, steps, programs, split,
                    row0, y_stride, unit, L, PLANES, TILE_N, TILE_M, STEP, STAGES, WHOLE, GROUP_M, SUMS, BF16, EARLY,
                    PAIRS, CONSUMERS, BUILD_ID, 0,
                )),
                (consume, (
                    tokens, held, full, empty, W, Y, Part, Count, Executed, m, rows, steps, programs, split,
                    row0, y_stride, unit, L, PLANES, TILE_N, TILE_M, STEP, STAGES, WHOLE, GROUP_M, SUMS, BF16, EARLY,
                    PAIRS, CONSUMERS, BUILD_ID, 1,
                )),
                (consume, (
                    tokens, held, full, empty, W, Y, Part, Count, Executed, m, rows, steps, programs, split,
                    row0, y_stride, unit, L, PLANES, TILE_N, TILE_M, STEP, STAGES, WHOLE, GROUP_M, SUMS, BF16, EARLY,
                    PAIRS, CONSUMERS, BUILD_ID, 2,
                )),
                (consume, (
                    tokens, held, full, empty, W, Y, Part, Count, Executed, m, rows, steps, programs, split,
                    row0, y_stride, unit, L, PLANES, TILE_N, TILE_M, STEP, STAGES, WHOLE, GROUP_M, SUMS, BF16, EARLY,
                    PAIRS, CONSUMERS, BUILD_ID, 3,
                )),
                (produce, (
                    X, sources, tokens, held, full, empty, m, rows, steps, programs, split, PLANES, TILE_N, TILE_M,
                    STEP, STAGES, WHOLE, GROUP_M, EARLY,
                )),
            ],
            [4, 4, 4, 1], [CONSUMER_REGISTERS, CONSUMER_REGISTERS, CONSUMER_REGISTERS, PRODUCER_REGISTERS],
        )  # fmt: skip
