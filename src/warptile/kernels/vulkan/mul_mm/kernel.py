"""`vulkan.mul_mm`: weights decoded to shared memory, scalar register tiles; llama.cpp's parameter space."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

from warptile import formats
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
from warptile.kernels.price_model import ceil_div
from warptile.kernels.vulkan import abi
from warptile.kernels.vulkan.mul_mm import price as pricing
from warptile.kernels.vulkan.mul_mm import rules
from warptile.kernels.vulkan.mul_mm import space as tiles
from warptile.kernels.vulkan.mul_mm import stock as table
from warptile.kernels.vulkan.mul_mm.tile import MulMmTile
from warptile.kernels.vulkan.warp_tile import CHUNK

PAIR_TYPES = {"fp16": "f16vec2", "fp32": "vec2"}
FP16_EXTENSION = "GL_EXT_shader_explicit_arithmetic_types_float16"
CHUNK_QUADS = 8
PARTS_CONSTANT = 11


class MulMm:
    """Computes y[m, n] = sum_k x[m, k] * w[n, k], fp32 sums over k in order, from weights in any bit-plane layout."""

    name = "vulkan.mul_mm"
    runtime = "vulkan"
    tile_type: type[Tile] = MulMmTile

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        return iter(tiles.space(problem, limits))

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        return table.stock(problem, limits, tiles.space(problem, limits))

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        return rules.broken_rules(_own(tile), problem, limits)

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        found = formats.by_name(problem.format)
        return pricing.price(_own(tile), problem, limits, 8 * found.block_bytes / found.block_size)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        own = _own(tile)
        body = resources.files(__package__).joinpath("mul_mm.comp").read_text(encoding="utf-8")
        fp16 = own.shared == "fp16"
        text = abi.translation_unit(
            formats.by_name(problem.format).layout.glsl(),
            f"#define PAIR {PAIR_TYPES[own.shared]}\n{body}",
            extensions=(FP16_EXTENSION,) if fp16 else (),
        )
        return Source(
            language="glsl",
            text=text,
            constants=(*enumerate(own.numbers), (PARTS_CONSTANT, parts(own))),
            bindings=3,
            scalars=abi.SHARED_SCALARS,
            workgroup=own.block_size,
            features=frozenset({"fp16"}) if fp16 else frozenset(),
        )

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        own = _own(tile)
        return tuple(
            Launch(
                binary=binary,
                buffers=(x, piece.buffer, y),
                scalars=abi.scalars(problem, piece),
                grid=(ceil_div(piece.rows, own.tile_n), ceil_div(problem.m, own.tile_m), 1),
            )
            for piece in w.slices
        )

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        own = _own(tile)
        return own.tile_m, own.tile_n, own.tile_k

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        own = _own(tile)
        return Arithmetic(weights=own.shared, activations=own.shared, accumulator=own.accumulator, depth=problem.k)


def _own(tile: Tile) -> MulMmTile:
    if not isinstance(tile, MulMmTile):
        raise TypeError(f"{MulMm.name} takes a MulMmTile, not {type(tile).__name__}")
    return tile


def parts(tile: MulMmTile) -> int:
    """Threads a chunk of a row is decoded by: as many as keep all busy, at most one a quad of weights."""
    chunks = tile.tile_n * tile.tile_k // CHUNK
    parts = 1
    while parts < CHUNK_QUADS and chunks * parts < tile.block_size:
        parts *= 2
    return parts
