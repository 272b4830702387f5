"""Device code of `triton.gemm_wgmma`: which steps of which tiles are a program's."""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def tile_at(tile, rows, m, TILE_N: gl.constexpr, TILE_M: gl.constexpr, GROUP_M: gl.constexpr):
    """(m, n) of a tile: GROUP_M token tiles are walked through together, so that their weights are met in cache."""
    at_m = 0 * tile
    at_n = tile
    # One token tile needs no division, of which there are enough before the first copy.
    if m > TILE_M:
        tiles_n = (rows + TILE_N - 1) // TILE_N
        tiles_m = (m + TILE_M - 1) // TILE_M
        together = GROUP_M * tiles_n
        first = tile // together * GROUP_M
        size = gl.minimum(tiles_m - first, GROUP_M)
        at_m = first + tile % together % size
        at_n = tile % together // size
    return at_m, at_n


@gluon.jit
def shared_steps(programs, m, rows, steps, TILE_N: gl.constexpr, TILE_M: gl.constexpr, REST: gl.constexpr):
    """(first, total): from which tile on steps are shared evenly, and how many those are.

    With REST 0 from the first tile on; else behind the full rounds of whole tiles that the programs take, but for the
    last REST - 1 of them, and for one more where programs would have no step.
    """
    tiles = ((rows + TILE_N - 1) // TILE_N) * ((m + TILE_M - 1) // TILE_M)
    first = 0 * tiles
    if REST > 0:
        rounds = gl.maximum(tiles // programs - (REST - 1), 0)
        left = (tiles - rounds * programs) * steps
        rounds = gl.where((left > 0) & (left < programs), gl.maximum(rounds - 1, 0), rounds)
        first = rounds * programs
    return first, (tiles - first) * steps


@gluon.jit
def share(
    program, programs, m, rows, steps, split, TILE_N: gl.constexpr, TILE_M: gl.constexpr, REST: gl.constexpr
):  # fmt: skip
    """[begin, end) of a program's steps, counted through all tiles: of its part of `split` of a tile, or, where split
    is 0, an even share of those that are shared."""
    if split > 0:
        tile = program // split
        part = program - tile * split
        begin = tile * steps + steps * part // split
        end = tile * steps + steps * (part + 1) // split
    else:
        first, total = shared_steps(programs, m, rows, steps, TILE_N, TILE_M, REST)
        begin = first * steps + total * program // programs
        end = first * steps + total * (program + 1) // programs
    return begin, end


@gluon.jit
def tiles_of(
    program, programs, begin, end, m, rows, steps, turns, TILE_N: gl.constexpr, TILE_M: gl.constexpr,
    WHOLE: gl.constexpr, REST: gl.constexpr,
):  # fmt: skip
    """(shared, count): tiles that a program's shared steps lie in, which come first, and all its tiles."""
    if WHOLE:
        shared = 0 * program
        tiles = ((rows + TILE_N - 1) // TILE_N) * ((m + TILE_M - 1) // TILE_M)
        count = (tiles - program + programs - 1) // programs
    else:
        shared = gl.where(end > begin, (end - 1) // steps + 1 - begin // steps, 0)
        count = shared
        if REST > 0:
            first, _ = shared_steps(programs, m, rows, turns, TILE_N, TILE_M, REST)
            count = shared + first // programs
    return shared, count


@gluon.jit
def tile_of(number, program, programs, begin, shared, steps, WHOLE: gl.constexpr, REST: gl.constexpr):
    """A program's tile of that number."""
    if WHOLE:
        tile = program + number * programs
    else:
        tile = begin // steps + number
        if REST > 0:
            tile = gl.where(number < shared, tile, program + (number - shared) * programs)
    return tile


@gluon.jit
def steps_of(number, tile, begin, end, shared, steps, WHOLE: gl.constexpr, REST: gl.constexpr):
    """[first, last) of a program's steps of a tile."""
    first = 0 * tile
    last = steps
    if not WHOLE:
        first = gl.maximum(begin - tile * steps, 0)
        last = gl.minimum(end - tile * steps, steps)
        if REST > 0:
            first = gl.where(number < shared, first, 0)
            last = gl.where(number < shared, last, steps)
    return first, last


@gluon.jit
def owners(
    tile, programs, m, rows, steps, split, TILE_N: gl.constexpr, TILE_M: gl.constexpr, REST: gl.constexpr
):  # fmt: skip
    """(first, last) of the programs that share a tile."""
    if split > 0:
        first = tile * split
        last = first + split - 1
    else:
        start, total = shared_steps(programs, m, rows, steps, TILE_N, TILE_M, REST)
        at = (tile - start) * steps
        first = ((at + 1) * programs - 1) // gl.maximum(total, 1)
        last = ((at + steps) * programs - 1) // gl.maximum(total, 1)
    return first, last
