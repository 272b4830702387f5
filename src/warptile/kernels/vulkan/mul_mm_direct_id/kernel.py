"""`vulkan.mul_mm_direct_id`: the tiles of `vulkan.mul_mm_direct`, each on rows of x that go to one expert."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import ClassVar, cast

from warptile.contracts import Limits, Problem, Source, Tile
from warptile.kernels.price_model import ceil_div
from warptile.kernels.vulkan import register_tile
from warptile.kernels.vulkan.by_experts import ByExperts
from warptile.kernels.vulkan.mul_mm_direct.kernel import MulMmDirect
from warptile.kernels.vulkan.mul_mm_direct.tile import MulMmDirectTile


@dataclass(frozen=True)
class MulMmDirectIdTile(MulMmDirectTile):
    """As `MulMmDirectTile`; thread_m rows of x are such that go to one expert."""

    kernel: ClassVar[str] = "vulkan.mul_mm_direct_id"


class MulMmDirectId(ByExperts):
    """See `ByExperts`; fp32 throughout, sums over k in order."""

    name = "vulkan.mul_mm_direct_id"
    tile_type: type[Tile] = MulMmDirectIdTile
    order = "sorted"

    def __init__(self) -> None:
        super().__init__(MulMmDirect())

    def tile_m(self, tile: Tile) -> int:
        return cast(MulMmDirectIdTile, tile).thread_m

    def grid(self, tile: Tile, rows: int, tiles: int) -> tuple[int, int, int]:
        own = cast(MulMmDirectIdTile, tile)
        across = ceil_div(rows, own.lanes * own.thread_n)
        return (tiles, across, 1) if own.first == "m" else (across, tiles, 1)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        own = cast(MulMmDirectIdTile, self.own(tile))
        body = resources.files("warptile.kernels.vulkan.mul_mm_direct").joinpath("mul_mm_direct.comp")
        text = register_tile.translation_unit(
            problem,
            limits.subgroup,
            own.thread_n,
            own.thread_m,
            own.load_n,
            own.x_access,
            {"LANES": own.lanes, "M_FIRST": own.first == "m"},
            body.read_text(encoding="utf-8"),
            (self.order, "gl_WorkGroupID.x" if own.first == "m" else "gl_WorkGroupID.y"),
        )
        source = register_tile.source(text, own.lanes, limits.subgroup, own.x_access)
        return self.with_experts(source, problem, limits)
