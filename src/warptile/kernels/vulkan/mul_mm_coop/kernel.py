"""`vulkan.mul_mm_coop`: cooperative matrices (VK_KHR_cooperative_matrix) of fp16 or int8."""

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
    Scratch,
    Source,
    Tile,
)
from warptile.kernels.price_model import ceil_div
from warptile.kernels.vulkan import abi
from warptile.kernels.vulkan.mul_mm_coop import price as pricing
from warptile.kernels.vulkan.mul_mm_coop import rules, source
from warptile.kernels.vulkan.mul_mm_coop import space as tiles
from warptile.kernels.vulkan.mul_mm_coop.int8 import launch as int8_launch
from warptile.kernels.vulkan.mul_mm_coop.int8 import price as int8_pricing
from warptile.kernels.vulkan.mul_mm_coop.int8 import source as int8_source
from warptile.kernels.vulkan.mul_mm_coop.tile import MulMmCoopTile


class MulMmCoop:
    """Computes y[m, n] = sum_k x[m, k] * w[n, k] with the device's matrix units, k a multiple of 32."""

    name = "vulkan.mul_mm_coop"
    runtime = "vulkan"
    tile_type: type[Tile] = MulMmCoopTile

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        return iter(tiles.space(problem, limits))

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        """None: no static table has this kernel."""
        return None

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        return rules.broken_rules(_own(tile), problem, limits)

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        if _own(tile).operands == "int8":
            return int8_pricing.price(_own(tile), problem, limits)
        return pricing.price(_own(tile), problem, limits)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        if _own(tile).operands == "int8":
            return int8_source.source(_own(tile), problem, limits)
        return source.source(_own(tile), problem, limits)

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        """One dispatch a weight slice; with split_k > 1 the parts, then their sum. Raises InvalidTile.

        InvalidTile: weights in registers, and a slice's rows are no multiple of 4.
        """
        own = _own(tile)
        if own.operands == "int8":
            return int8_launch.launches(binary, own, problem, x, w, y)
        launches: list[Launch] = []
        for piece in w.slices:
            if own.weights == "registers" and (piece.rows % 4 or piece.row0 % 4):
                raise InvalidTile("weights in registers: a slice's rows are a multiple of 4", f"rows {piece.rows}")
            shared = abi.scalars(problem, piece)
            part_k, grid = own.part_k(problem.k), own.grid(piece.rows, problem.m)
            if own.split_k == 1:
                launches.append(Launch(binary, (x, piece.buffer, y), (*shared, part_k, 0), grid))
                continue
            area = problem.m * piece.rows
            parts = Scratch("parts", 4 * own.split_k * area)
            m, rows, k, _, _, *planes = shared
            launches.append(
                Launch(binary, (x, piece.buffer, parts), (m, rows, k, 0, rows, *planes, part_k, area), grid)
            )
            groups = ceil_div(area // source.sum_vector(own), source.SUM_THREADS)
            launches.append(Launch(binary.helpers[0], (x, parts, y), shared, (groups, 1, 1)))
        return tuple(launches)

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        own = _own(tile)
        return own.tile_m, own.tile_n, max(own.k_chunk, own.x_block) * own.split_k

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        own = _own(tile)
        if own.operands == "int8":
            return int8_launch.arithmetic(own, problem)
        depth = min(problem.k, own.part_k(problem.k))
        weights = "fp16" if own.decode == "fp32" else "fp16 decode"
        return Arithmetic(weights, "fp16", own.accumulator, depth, own.split_k)


def _own(tile: Tile) -> MulMmCoopTile:
    if not isinstance(tile, MulMmCoopTile):
        raise TypeError(f"{MulMmCoop.name} takes a MulMmCoopTile, not {type(tile).__name__}")
    return tile
