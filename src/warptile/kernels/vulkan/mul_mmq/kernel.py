"""`vulkan.mul_mmq`: int8 dot products of quantized activations and packed weights; llama.cpp's parameter space."""

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
from warptile.kernels.vulkan import abi, int_dot, q8_1
from warptile.kernels.vulkan.mul_mmq import price as pricing
from warptile.kernels.vulkan.mul_mmq import rules, shader
from warptile.kernels.vulkan.mul_mmq import space as tiles
from warptile.kernels.vulkan.mul_mmq import stock as table
from warptile.kernels.vulkan.mul_mmq.staging import staging
from warptile.kernels.vulkan.mul_mmq.tile import MulMmqTile

BK_STEP_CONSTANT = 11
"""Positions 0 to 10 are the warp tile's; llama.cpp leaves this one free in mul_mmq."""

ROUNDINGS_A_CHUNK = 4


class MulMmq:
    """Computes y[m, n] = sum_k xq[m, k] * w[n, k], xq the activations as int8 with an fp32 scale every 32.

    Whole-number products of a chunk are summed exactly, scaled in fp32, and added over k in order.
    """

    name = "vulkan.mul_mmq"
    runtime = "vulkan"
    tile_type: type[Tile] = MulMmqTile

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        return iter(tiles.space(problem, limits))

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        return table.stock(problem, limits, tiles.space(problem, limits))

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        return rules.broken_rules(_own(tile), problem, limits)

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        return pricing.price(_own(tile), problem, limits)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        own = _own(tile)
        layout = formats.by_name(problem.format).layout
        body = resources.files(__package__).joinpath("mul_mmq.comp").read_text(encoding="utf-8")
        text = abi.translation_unit(
            layout.glsl() + layout.glsl_int8(),
            shader.defines(own, layout) + shader.with_loader(body, own, layout),
            x_type="uint",
            extensions=int_dot.EXTENSIONS[own.dot],
        )
        return Source(
            language="glsl",
            text=text,
            constants=(*enumerate(own.numbers), (BK_STEP_CONSTANT, own.bk_step)),
            bindings=3,
            scalars=abi.SHARED_SCALARS,
            workgroup=own.block_size,
            features=int_dot.features(own.dot),
            helpers=(q8_1.source(),),
        )

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        own = _own(tile)
        (quantizer,) = binary.helpers
        products = tuple(
            Launch(
                binary=binary,
                buffers=(q8_1.scratch(problem), piece.buffer, y),
                scalars=abi.scalars(problem, piece),
                grid=(ceil_div(piece.rows, own.tile_n), ceil_div(problem.m, own.tile_m), 1),
            )
            for piece in w.slices
        )
        return (q8_1.launch(quantizer, problem, x), *products)

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        own = _own(tile)
        return own.tile_m, own.tile_n, own.step_k

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """Each chunk's sum is scaled, its minimums taken off, scaled again (`ROUNDINGS_A_CHUNK`) and added in order."""
        own = _own(tile)
        rounded = staging(own, formats.by_name(problem.format).layout).paired > 0
        return Arithmetic(
            weights="fp16 scales" if rounded else "fp32",
            activations="q8_1",
            accumulator="int32",
            depth=problem.k // q8_1.BLOCK + ROUNDINGS_A_CHUNK,
        )


def _own(tile: Tile) -> MulMmqTile:
    if not isinstance(tile, MulMmqTile):
        raise TypeError(f"{MulMmq.name} takes a MulMmqTile, not {type(tile).__name__}")
    return tile
