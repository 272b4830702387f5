"""Device code of `triton.gemm_wgmma`: what becomes of a tile's sums."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper

from warptile.kernels.triton.gemm_wgmma.device_shares import share
from warptile.kernels.triton.gluon_names import barrier, copy_out


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
def copy_tile(acc, exponent, Out, held, token, row):
    """y of a consumer's sums [64, tokens] through shared memory `held` [tokens, 64], copied while others go on."""
    unit = gl.convert_layout((exponent << 23).to(gl.float32, bitcast=True), gl.SliceLayout(1, acc.type.layout))
    TOKENS: gl.constexpr = acc.shape[1]
    sums = (acc * gl.expand_dims(unit, 1)).to(Out.dtype)
    # The rows' order, as in `row_numbers`.
    sums = gl.permute(gl.reshape(sums, (4, 2, 2, 2, 2, TOKENS)), (5, 0, 4, 3, 2, 1))
    held.store(gl.reshape(sums, (TOKENS, 64)))
    hopper.fence_async_shared()
    barrier()
    copy_out(Out, [token, row], held)


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
def place_of(program, tile, steps, split, rest, sharers, EVEN: gl.constexpr):
    """Where a program keeps its part of a tile: its first tile and its last each have a place of their own."""
    begin, _ = share(program, steps, split, rest, sharers, EVEN)
    return 2 * program + gl.where(begin >= tile * steps, 0, 1)


@gluon.jit
def part_of(Part, place, own, inside, CONSUMERS: gl.constexpr, GROUP: gl.constexpr, SIZE: gl.constexpr):
    """A program's part of a tile as it was kept, or zero where it is not `inside`."""
    base = Part + (place * CONSUMERS + GROUP).to(gl.int64) * SIZE
    return gl.load(base + own, mask=inside & (own >= 0), other=0.0, cache_modifier=".cg")


@gluon.jit
def add_parts(
    Part, first_owner, last_owner, tile, steps, split, rest, sharers, start, SUM: gl.constexpr, ROWS: gl.constexpr,
    TOKENS: gl.constexpr, SIZE: gl.constexpr, EVEN: gl.constexpr, CONSUMERS: gl.constexpr, GROUP: gl.constexpr,
    TOGETHER: gl.constexpr,
):  # fmt: skip
    """Sums [ROWS, TOKENS] of a group's rows of a tile and so many tokens, whose part begins at `start` of SIZE: what
    the programs from first_owner to last_owner kept, in that order. TOGETHER parts are loaded at a time."""
    total_sum = in_parts(gl.zeros((ROWS, TOKENS), gl.float32, SUM), TOKENS)
    own = start + gl.arange(0, ROWS * TOKENS, layout=total_sum.type.layout)
    for other in range(first_owner, last_owner + 1, TOGETHER):
        place = place_of(other, tile, steps, split, rest, sharers, EVEN)
        p0 = part_of(Part, place, own, other <= last_owner, CONSUMERS, GROUP, SIZE)
        if TOGETHER >= 2:
            place = place_of(other + 1, tile, steps, split, rest, sharers, EVEN)
            p1 = part_of(Part, place, own, other + 1 <= last_owner, CONSUMERS, GROUP, SIZE)
        if TOGETHER == 4:
            place = place_of(other + 2, tile, steps, split, rest, sharers, EVEN)
            p2 = part_of(Part, place, own, other + 2 <= last_owner, CONSUMERS, GROUP, SIZE)
            place = place_of(other + 3, tile, steps, split, rest, sharers, EVEN)
            p3 = part_of(Part, place, own, other + 3 <= last_owner, CONSUMERS, GROUP, SIZE)
        total_sum += p0
        if TOGETHER >= 2:
            total_sum += p1
        if TOGETHER == 4:
            total_sum += p2
            total_sum += p3
    return from_parts(total_sum, TOKENS, SUM)
