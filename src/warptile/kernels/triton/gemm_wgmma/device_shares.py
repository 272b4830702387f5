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
def share(program, steps, split, rest, sharers, EVEN: gl.constexpr):
    """[begin, end) of a program's steps, counted through all tiles: of its part of `split` of a tile; with EVEN, an
    even share of those of the first `rest` tiles, of which programs from `sharers` on have none."""
    if EVEN:
        total = rest * steps
        begin = total
        end = total
        if program < sharers:
            begin = total * program // sharers
            end = total * (program + 1) // sharers
    else:
        tile = program // split
        part = program - tile * split
        begin = tile * steps + steps * part // split
        end = tile * steps + steps * (part + 1) // split
    return begin, end


@gluon.jit
def turns_of(
    program, programs, begin, end, m, rows, steps, rest, TILE_N: gl.constexpr, TILE_M: gl.constexpr,
    WHOLE: gl.constexpr, EVEN: gl.constexpr,
):  # fmt: skip
    """(first, end, stride) of a program's walk through its tiles: with WHOLE every programs-th tile, with EVEN numbers
    that `tile_of` takes, else the tiles in which its steps lie."""
    if WHOLE:
        first, last, stride = program, ((rows + TILE_N - 1) // TILE_N) * ((m + TILE_M - 1) // TILE_M), programs
    elif EVEN:
        first, stride = 0, 1
        last = (((rows + TILE_N - 1) // TILE_N) * ((m + TILE_M - 1) // TILE_M) - rest) // programs
        if end > begin:
            last += (end - 1) // steps + 1 - begin // steps
    else:
        first, last, stride = begin // steps, (end - 1) // steps + 1, 1
    return first, last, stride


@gluon.jit
def walk_of(
    program, programs, m, rows, steps, split, rest, sharers, TILE_N: gl.constexpr, TILE_M: gl.constexpr,
    TURN: gl.constexpr, WHOLE: gl.constexpr, EVEN: gl.constexpr,
):  # fmt: skip
    """(begin, end) of a program's steps, whole turns of TURN, and (first, end, stride) of its walk: `share` and
    `turns_of`."""
    begin, end = share(program, steps // TURN, split, rest, sharers, EVEN)
    begin *= TURN
    end *= TURN
    first, last, stride = turns_of(program, programs, begin, end, m, rows, steps, rest, TILE_N, TILE_M, WHOLE, EVEN)
    return begin, end, first, last, stride


@gluon.jit
def tile_of(at, program, programs, begin, end, steps, rest, EVEN: gl.constexpr):
    """The tile at a place of a program's walk. With EVEN, those it shares come first: what they cost besides is hidden
    behind whole tiles, which then end together."""
    found = at
    if EVEN:
        shared = 0
        if end > begin:
            shared = (end - 1) // steps + 1 - begin // steps
        if at < shared:
            found = begin // steps + at
        else:
            found = rest + program + (at - shared) * programs
    return found


@gluon.jit
def span_of(tile, begin, end, steps, rest, WHOLE: gl.constexpr, EVEN: gl.constexpr):
    """[first, last) of a tile's steps that are the program's."""
    first = 0
    last = steps
    if not WHOLE:
        if begin > tile * steps:
            first = begin - tile * steps
        if end - tile * steps < steps:
            last = end - tile * steps
        if EVEN:
            if tile >= rest:
                last = steps
    return first, last


@gluon.jit
def met_at(
    place, program, programs, begin, end, m, rows, steps, rest, TILE_N: gl.constexpr, TILE_M: gl.constexpr,
    WHOLE: gl.constexpr, EVEN: gl.constexpr, GROUP_M: gl.constexpr,
):  # fmt: skip
    """(m, n) of the tile at a place of a program's walk, and the [first, last) of its steps that are the program's."""
    tile = tile_of(place, program, programs, begin, end, steps, rest, EVEN)
    at_m, at_n = tile_at(tile, rows, m, TILE_N, TILE_M, GROUP_M)
    first, last = span_of(tile, begin, end, steps, rest, WHOLE, EVEN)
    return at_m, at_n, first, last


@gluon.jit
def owners(tile, steps, split, rest, sharers, EVEN: gl.constexpr):
    """(first, last) of the programs that share a tile; the same number twice where it is one program's."""
    if EVEN:
        first = 0
        last = 0
        if tile < rest:
            total = rest * steps
            first = ((tile * steps + 1) * sharers - 1) // total
            last = ((tile * steps + steps) * sharers - 1) // total
    else:
        first = tile * split
        last = first + split - 1
    return first, last
