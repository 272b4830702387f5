"""`vulkan.mul_mat_vec_id`: the tiles of `vulkan.mul_mat_vec`, a slot at a time: for few tokens."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import ClassVar, cast

from warptile.contracts import BrokenRule, Limits, Problem, Source, Tile
from warptile.kernels.vulkan import register_tile
from warptile.kernels.vulkan.by_experts import ByExperts
from warptile.kernels.vulkan.mul_mat_vec.kernel import MulMatVec
from warptile.kernels.vulkan.mul_mat_vec.tile import MulMatVecTile


@dataclass(frozen=True)
class MulMatVecIdTile(MulMatVecTile):
    """As `MulMatVecTile`; columns is 1, since a workgroup has the row of x of one slot."""

    kernel: ClassVar[str] = "vulkan.mul_mat_vec_id"


class MulMatVecId(ByExperts):
    """See `ByExperts`; fp32 throughout."""

    name = "vulkan.mul_mat_vec_id"
    tile_type: type[Tile] = MulMatVecIdTile
    order = "slots"

    def __init__(self) -> None:
        super().__init__(MulMatVec())

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        """The dense kernel's for one row, where there is one token."""
        return super().stock(problem, limits) if problem.m == 1 else None

    def tile_m(self, tile: Tile) -> int:
        return 1

    def grid(self, tile: Tile, rows: int, tiles: int) -> tuple[int, int, int]:
        across, folds, _ = cast(MulMatVecIdTile, tile).grid(rows, 1)
        return across, folds, tiles

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        columns = cast(MulMatVecIdTile, self.own(tile)).columns
        if columns != 1:
            return [BrokenRule("columns = 1: a slot at a time", f"{columns}")]
        return super().broken_rules(tile, problem, limits)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        own = cast(MulMatVecIdTile, self.own(tile))
        body = resources.files("warptile.kernels.vulkan.mul_mat_vec").joinpath("mul_mat_vec.comp").read_text("utf-8")
        text = register_tile.translation_unit(
            problem,
            limits.subgroup,
            own.thread_n,
            own.columns,
            own.load_n,
            own.x_access,
            {"LANES_N": own.lanes_n, "SPLIT_K": own.split_k},
            f"#define SPLIT {int(own.split_k > 1)}\n{body}",
            (self.order, "gl_WorkGroupID.z"),
        )
        source = register_tile.source(text, own.workgroup, limits.subgroup, own.x_access)
        return self.with_experts(source, problem, limits)
