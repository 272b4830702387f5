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
def share(program, programs, m, rows, steps, split, TILE_N: gl.constexpr, TILE_M: gl.constexpr):
    """[begin, end) of a program's steps, counted through all tiles: of its part of `split` of a tile, or, where split
    is 0, an even share of all."""
    total = ((rows + TILE_N - 1) // TILE_N) * ((m + TILE_M - 1) // TILE_M) * steps
    if split > 0:
        tile = program // split
        part = program - tile * split
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
