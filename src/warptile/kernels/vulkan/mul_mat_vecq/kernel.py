"""`vulkan.mul_mat_vecq`: few rows of x, quantized to int8, against all rows of w."""

from __future__ import annotations

from collections.abc import Iterator

from warptile.contracts import (
    Arithmetic,
    Binary,
    BrokenRule,
    Buffer,
    DeviceWeights,
    InvalidTile,
    Launch,
    Limits,
    Price,
    Problem,
    Source,
    Tile,
)
from warptile.kernels.vulkan import abi
from warptile.kernels.vulkan.mul_mat_vecq import price as pricing
from warptile.kernels.vulkan.mul_mat_vecq import rules, source
from warptile.kernels.vulkan.mul_mat_vecq import space as tiles
from warptile.kernels.vulkan.mul_mat_vecq.tile import CHUNK, MulMatVecqTile

ROUNDINGS_A_CHUNK = 4


class MulMatVecq:
    """Computes y[m, n] = sum_k xq[m, k] * w[n, k], xq the activations as int8 with an fp32 scale every 32.

    Whole-number products of a group are summed exactly, scaled in fp32, and added over k in an order of the tile's own,
    the same every time.
    """

    name = "vulkan.mul_mat_vecq"
    runtime = "vulkan"
    tile_type: type[Tile] = MulMatVecqTile

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        return iter(tiles.space(problem, limits))

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        """None: llama.cpp's tile for few rows is `mul_mat_vec`'s."""
        return None

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        return rules.broken_rules(_own(tile), problem, limits)

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        return pricing.price(_own(tile), problem, limits)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        """The text holds k: a workgroup's activations lie in an array of that size."""
        return source.source(_own(tile), problem, limits)

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        """The pre-pass where the tile has one, then a dispatch a weight slice. Raises InvalidTile.

        InvalidTile: a slice starts or ends inside a group of load_n rows.
        """
        own = _own(tile)
        launches: list[Launch] = []
        if binary.helpers:
            launches.append(source.quantize_launch(binary.helpers[0], problem, x, w.slices[0].buffer))
        staged = source.scratch(problem) if binary.helpers else x
        for piece in w.slices:
            if piece.rows % own.load_n or piece.row0 % own.load_n:
                raise InvalidTile("a slice's rows are a multiple of load_n", f"rows {piece.rows}, load_n {own.load_n}")
            scalars = abi.scalars(problem, piece)
            launches.append(Launch(binary, (staged, piece.buffer, y), scalars, own.grid(piece.rows, problem.m)))
        return tuple(launches)

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        own = _own(tile)
        return own.columns, own.lanes_n * own.thread_n, CHUNK * own.split_k * own.chunks

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """Each chunk's sum is scaled, its minimums taken off, scaled again (`ROUNDINGS_A_CHUNK`) and added in order."""
        own = _own(tile)
        chunks = own.steps(problem.k) * own.chunks
        return Arithmetic("fp32", "q8_1", "int32", depth=chunks + ROUNDINGS_A_CHUNK, parts=own.split_k)


def _own(tile: Tile) -> MulMatVecqTile:
    if not isinstance(tile, MulMatVecqTile):
        raise TypeError(f"{MulMatVecq.name} takes a MulMatVecqTile, not {type(tile).__name__}")
    return tile
