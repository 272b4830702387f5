"""`triton.gemm_int8`: activations quantized on the device, weights' codes and theirs multiplied as int8."""

from __future__ import annotations

from collections.abc import Iterator

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
from warptile.kernels.triton import common
from warptile.kernels.triton.gemm_int8 import price as pricing
from warptile.kernels.triton.gemm_int8 import rules
from warptile.kernels.triton.gemm_int8 import space as tiles
from warptile.kernels.triton.gemm_int8.blocks import blocks_of
from warptile.kernels.triton.gemm_int8.tile import GemmInt8Tile
from warptile.kernels.triton.matrix import architecture
from warptile.kernels.triton.program import Build, Program

MODULE = "warptile.kernels.triton.gemm_int8"
ELEMENTS_A_PROGRAM = 512
QUANTIZE_WARPS = 4
# A block's sum is scaled, its minimums taken off, and scaled again.
ROUNDINGS_A_BLOCK = 4


class GemmInt8:
    """y[m, n] = sum_k x[m, k] * w[n, k], x cut to int8 codes in blocks; whole-number sums of a block, scaled and
    added in fp32 in the order of k."""

    name = "triton.gemm_int8"
    runtime = "triton"
    tile_type: type[Tile] = GemmInt8Tile

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        return iter(tiles.space(problem, limits))

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        return tiles.stock(problem, limits)

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        return rules.broken_rules(own(tile), problem, limits)

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        return pricing.price(own(tile), problem, limits)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        """Depends on k through the arrangement alone."""
        t = own(tile)
        blocks, parameters = blocks_of(problem), common.parameters(problem)
        quantizer = Build(
            function=f"{MODULE}.device:quantize",
            pointers=(("X", common.pointer(problem.x_dtype)), ("Q", "*i8"), ("S", "*fp32"), ("T", "*fp32")),
            constants=(("BLOCK", blocks.size), ("PARTS", blocks.parts), ("BLOCKS", _together(blocks.size))),
            aligned=("X", "Q", "x_stride", "k"),
            warps=QUANTIZE_WARPS,
            stages=1,
        )
        product = Build(
            function=f"{MODULE}.device:gemm_int8",
            pointers=(
                ("Q", "*i8"),
                ("S", "*fp32"),
                ("T", "*fp32"),
                ("W", "*i32"),
                ("Y", common.pointer(problem.y_dtype)),
                ("Executed", "*u32"),
            ),
            constants=(
                ("L", parameters),
                ("OFFSET", int(parameters[9])),
                ("BLOCK", blocks.size),
                ("PARTS", blocks.parts),
                ("TILE_N", t.tile_n),
                ("TILE_M", t.tile_m),
                ("GROUP_M", t.group_m),
                ("DRAIN", architecture(limits).asynchronous),
            ),
            aligned=("Q", "W", "k", *common.PLANE_ARGUMENTS[:-1]),
            warps=t.warps,
            stages=t.stages,
        )
        program = Program(f"{MODULE}.enqueue:enqueue", (quantizer, product))
        return program.source(3, common.SCALARS + 3, t.warps * limits.subgroup, limits.subgroup)

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        """One a weight slice; each quantizes the activations for itself."""
        t, blocks = own(tile), blocks_of(problem)
        return tuple(
            Launch(
                binary=binary,
                buffers=(x, piece.buffer, y),
                scalars=(
                    *common.scalars(problem, piece, problem.k, problem.n),
                    blocks.size,
                    blocks.parts,
                    _together(blocks.size),
                ),
                grid=(ceil_div(piece.rows, t.tile_n) * ceil_div(problem.m, t.tile_m), 1, 1),
            )
            for piece in w.slices
        )

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        t = own(tile)
        return t.tile_m, t.tile_n, t.tile_k

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """Blocks of activations, int32 in each, fp32 across them in the order of k."""
        blocks = blocks_of(problem)
        return Arithmetic("fp32", blocks.name, "int32", problem.k // blocks.size * blocks.parts + ROUNDINGS_A_BLOCK)


def _together(block: int) -> int:
    """Blocks that a program of the quantizer takes."""
    return max(1, ELEMENTS_A_PROGRAM // block)


def own(tile: Tile) -> GemmInt8Tile:
    """`tile` as this kernel's. Raises TypeError for another's."""
    if not isinstance(tile, GemmInt8Tile):
        raise TypeError(f"{GemmInt8.name} takes a GemmInt8Tile, not {type(tile).__name__}")
    return tile


KERNEL = GemmInt8()
