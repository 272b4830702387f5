"""`vulkan.mul_mat_vec`: few rows of x against all rows of w; lanes along n, k shared by the workgroup's parts."""

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
from warptile.kernels.vulkan.mul_mat_vec import stock as table
from warptile.kernels.vulkan.mul_mat_vec.tile import MulMatVecTile

_THREAD_N = (1, 2, 4, 8)
_SPLIT_K = (1, 2, 4, 8)
_COLUMNS = (1, 2, 4, 8)


class MulMatVec:
    """Computes y[m, n] = sum_k x[m, k] * w[n, k] in fp32 for few m; the parts' sums are added in a fixed order."""

    name = "vulkan.mul_mat_vec"
    runtime = "vulkan"
    tile_type: type[Tile] = MulMatVecTile

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        """One and four subgroups along n, k split up to eight ways, the two largest columns that m can fill."""
        fitting = [c for c in _COLUMNS if c < 2 * problem.m]
        for subgroups, split_k, thread_n, columns, x_access in itertools.product(
            (1, 4), _SPLIT_K, _THREAD_N, fitting[-2:], register_tile.X_ACCESS
        ):
            load_n = register_tile.widest_load(problem.n, thread_n)
            yield MulMatVecTile(limits.subgroup * subgroups, split_k, thread_n, columns, load_n, x_access)

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        return table.stock(problem, limits)

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        own = _own(tile)
        if own.split_k < 1:
            return [BrokenRule("split_k >= 1", f"{own.split_k}")]
        broken = register_tile.broken_rules(
            problem, limits, own.lanes_n, own.workgroup, own.thread_n, own.columns, own.load_n, own.x_access
        )
        if own.shared_bytes > limits.shared_bytes:
            broken.append(
                BrokenRule(
                    "4 * (split_k - 1) * thread_n * columns * lanes_n bytes <= shared memory",
                    f"{own.shared_bytes} > {limits.shared_bytes}",
                    True,
                )
            )
        return broken or register_tile.grid_rule(own.grid(problem.n, problem.m), limits)

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        own = _own(tile)
        return register_tile_price.price(
            problem, limits, own.lanes_n, own.split_k, own.thread_n, own.columns, own.load_n, own.x_access
        )

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        own = _own(tile)
        body = resources.files(__package__).joinpath("mul_mat_vec.comp").read_text(encoding="utf-8")
        text = register_tile.translation_unit(
            problem,
            limits.subgroup,
            own.thread_n,
            own.columns,
            own.load_n,
            own.x_access,
            {"LANES_N": own.lanes_n, "SPLIT_K": own.split_k},
            f"#define SPLIT {int(own.split_k > 1)}\n{body}",
        )
        return register_tile.source(text, own.workgroup, limits.subgroup, own.x_access)

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        """One dispatch a weight slice. Raises InvalidTile where a slice's rows are no multiple of load_n."""
        own = _own(tile)
        return register_tile.launches(binary, problem, x, w, y, own.load_n, own.grid)

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        own = _own(tile)
        return own.columns, own.lanes_n * own.thread_n, register_tile.CHUNK * own.split_k

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """fp32 throughout; a part's sum takes part in as many additions as its chunks have elements."""
        own = _own(tile)
        chunks = -(-problem.k // (register_tile.CHUNK * own.split_k))
        return Arithmetic("fp32", "fp32", "fp32", depth=chunks * register_tile.CHUNK, parts=own.split_k)


def _own(tile: Tile) -> MulMatVecTile:
    if not isinstance(tile, MulMatVecTile):
        raise TypeError(f"{MulMatVec.name} takes a MulMatVecTile, not {type(tile).__name__}")
    return tile
