"""`vulkan.mul_mm_direct`: a register tile a lane, lanes along the rows of w, nothing shared."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from importlib import resources

from warptile.contracts import (
    Arithmetic,
    Binary,
    BrokenRule,
    Buffer,
    DeviceWeights,
    Launch,
    Limits,
    Price,
    Problem,
    Source,
    Tile,
)
from warptile.kernels.vulkan import register_tile, register_tile_price
from warptile.kernels.vulkan.mul_mm_direct.tile import MulMmDirectTile

FIRST = ("n", "m")
_THREAD_N = (2, 4, 8)
_THREAD_M = (1, 2, 4, 8, 16, 32)


class MulMmDirect:
    """Computes y[m, n] = sum_k x[m, k] * w[n, k] in fp32, sums over k in order; any layout, k a multiple of 32."""

    name = "vulkan.mul_mm_direct"
    runtime = "vulkan"
    tile_type: type[Tile] = MulMmDirectTile

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        """One and eight subgroups a workgroup; the four largest thread_m that m can fill; every way to read x."""
        tiles_m = [t for t in _THREAD_M if t < 2 * problem.m][-4:]
        order = FIRST if problem.m > tiles_m[0] else FIRST[:1]
        for subgroups, thread_n, thread_m, x_access, first in itertools.product(
            (1, 8), _THREAD_N, tiles_m, register_tile.X_ACCESS, order
        ):
            load_n = register_tile.widest_load(problem.n, thread_n)
            yield MulMmDirectTile(limits.subgroup * subgroups, thread_n, thread_m, load_n, x_access, first)

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        """None: no static table has this kernel."""
        return None

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        own = _own(tile)
        broken = register_tile.broken_rules(
            problem, limits, own.lanes, own.lanes, own.thread_n, own.thread_m, own.load_n, own.x_access
        )
        if own.first not in FIRST:
            broken.append(BrokenRule("first is n or m", own.first))
        return broken or register_tile.grid_rule(own.grid(problem.n, problem.m), limits)

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        own = _own(tile)
        return register_tile_price.price(
            problem, limits, own.lanes, 1, own.thread_n, own.thread_m, own.load_n, own.x_access
        )

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        own = _own(tile)
        text = register_tile.translation_unit(
            problem,
            limits.subgroup,
            own.thread_n,
            own.thread_m,
            own.load_n,
            own.x_access,
            {"LANES": own.lanes, "M_FIRST": own.first == "m"},
            resources.files(__package__).joinpath("mul_mm_direct.comp").read_text(encoding="utf-8"),
        )
        return register_tile.source(text, own.lanes, limits.subgroup, own.x_access)

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        """One dispatch a weight slice. Raises InvalidTile where a slice's rows are no multiple of load_n."""
        own = _own(tile)
        return register_tile.launches(binary, problem, x, w, y, own.load_n, own.grid)

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        own = _own(tile)
        return own.thread_m, own.lanes * own.thread_n, register_tile.CHUNK

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """fp32 throughout; one sum takes part in k additions."""
        return Arithmetic(weights="fp32", activations="fp32", accumulator="fp32", depth=problem.k)


def _own(tile: Tile) -> MulMmDirectTile:
    if not isinstance(tile, MulMmDirectTile):
        raise TypeError(f"{MulMmDirect.name} takes a MulMmDirectTile, not {type(tile).__name__}")
    return tile
