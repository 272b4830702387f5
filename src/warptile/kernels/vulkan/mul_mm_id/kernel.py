"""`vulkan.mul_mm_id`: the tiles of `vulkan.mul_mm`, each on rows of x that go to one expert."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import ClassVar, cast

from warptile import formats
from warptile.contracts import Limits, Problem, Source, Tile
from warptile.kernels.price_model import ceil_div
from warptile.kernels.vulkan import abi, experts
from warptile.kernels.vulkan.by_experts import ByExperts
from warptile.kernels.vulkan.mul_mm.kernel import FP16_EXTENSION, PAIR_TYPES, PARTS_CONSTANT, MulMm, parts
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile


@dataclass(frozen=True)
class MulMmIdTile(MulMmTile):
    """As `MulMmTile`; tile_m rows of x are such that go to one expert."""

    kernel: ClassVar[str] = "vulkan.mul_mm_id"


class MulMmId(ByExperts):
    """See `ByExperts`; fp32 sums over k in order."""

    name = "vulkan.mul_mm_id"
    tile_type: type[Tile] = MulMmIdTile
    order = "sorted"

    def __init__(self) -> None:
        super().__init__(MulMm())

    def tile_m(self, tile: Tile) -> int:
        return cast(MulMmIdTile, tile).tile_m

    def grid(self, tile: Tile, rows: int, tiles: int) -> tuple[int, int, int]:
        return ceil_div(rows, cast(MulMmIdTile, tile).tile_n), tiles, 1

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        own = cast(MulMmIdTile, self.own(tile))
        body = resources.files("warptile.kernels.vulkan.mul_mm").joinpath("mul_mm.comp").read_text(encoding="utf-8")
        fp16 = own.shared == "fp16"
        text = abi.translation_unit(
            experts.decoder(formats.by_name(problem.format).layout.glsl(), self.order, "gl_WorkGroupID.y"),
            f"#define PAIR {PAIR_TYPES[own.shared]}\n{body}",
            bindings=experts.BINDINGS[self.order],
            extensions=(FP16_EXTENSION,) if fp16 else (),
            own_scalars=experts.OWN_SCALARS,
        )
        source = Source(
            language="glsl",
            text=text,
            constants=(*enumerate(own.numbers), (PARTS_CONSTANT, parts(own))),
            bindings=experts.BINDINGS[self.order],
            scalars=experts.SCALARS,
            workgroup=own.block_size,
            features=frozenset({"fp16"}) if fp16 else frozenset(),
        )
        return self.with_experts(source, problem, limits)
