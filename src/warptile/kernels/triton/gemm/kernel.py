"""`triton.gemm`: weights decoded in flight, multiplied on the matrix unit."""

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
    WeightSlice,
)
from warptile.kernels.price_model import ceil_div
from warptile.kernels.triton import common
from warptile.kernels.triton.gemm import price as pricing
from warptile.kernels.triton.gemm import rules
from warptile.kernels.triton.gemm import space as tiles
from warptile.kernels.triton.gemm.tile import GemmTile
from warptile.kernels.triton.matrix import architecture, is_nvidia
from warptile.kernels.triton.program import Build, Program
from warptile.kernels.triton.shares import Shares, shared_evenly

DEVICE = "warptile.kernels.triton.gemm.device:gemm"
ENQUEUE = "warptile.kernels.triton.gemm.enqueue:enqueue"


class Gemm:
    """y[m, n] = sum_k x[m, k] * w[n, k]; fp32 sums over k in order, splits of k added in their own order."""

    name = "triton.gemm"
    runtime = "triton"
    tile_type: type[Tile] = GemmTile

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
        operand = t.operand
        if operand == "bf16" and limits.kind == "software":
            operand = "widened bf16"
        decode = t.decode
        if decode == "half" and is_nvidia(limits):
            decode = "paired" if t.paired else "ptx"
        build = Build(
            function=DEVICE,
            pointers=(
                ("X", common.pointer(problem.x_dtype)),
                ("W", "*i32"),
                ("Y", common.pointer(problem.y_dtype)),
                ("Part", "*fp32"),
                ("Count", "*i32"),
                ("Executed", "*u32"),
            ),
            constants=(
                ("L", common.parameters(problem)),
                ("TILE_N", t.tile_n),
                ("TILE_M", t.tile_m),
                ("SPLIT_K", t.split_k),
                ("GROUP_M", t.group_m),
                ("OPERAND", operand),
                ("DECODE", decode),
                ("DRAIN", architecture(limits).asynchronous),
            ),
            aligned=(*common.ALIGNED, "Part"),
            warps=t.warps,
            stages=t.stages,
            registers=t.registers,
        )
        program = Program(ENQUEUE, (build,))
        return program.source(3, common.SCALARS + 5, t.warps * limits.subgroup, limits.subgroup)

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        t = own(tile)
        return tuple(self._launch(binary, t, problem, x, piece, y) for piece in w.slices)

    def _launch(
        self, binary: Binary, t: GemmTile, problem: Problem, x: Buffer, piece: WeightSlice, y: Buffer
    ) -> Launch:
        tiles = ceil_div(piece.rows, t.tile_n) * ceil_div(problem.m, t.tile_m)
        if t.split_k:
            shares = Shares(tiles * t.split_k, 0, 1)
            places, counts = (0, 0) if t.split_k == 1 else (shares.programs, tiles)
        else:
            shares = shared_evenly(tiles, problem.k // t.tile_k, t.programs, t.rest)
            places, counts = 2 * shares.sharers, tiles
        return Launch(
            binary=binary,
            buffers=(x, piece.buffer, y),
            scalars=(
                *common.scalars(problem, piece, problem.k, problem.n),
                shares.rest,
                shares.sharers,
                places,
                t.tile_n * t.tile_m,
                counts,
            ),
            grid=(shares.programs, 1, 1),
        )

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        t = own(tile)
        return t.tile_m, t.tile_n, t.tile_k * max(1, t.split_k)

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """A term joins at most all terms of its split, in any order, then the other splits."""
        t = own(tile)
        operand = "fp32" if t.operand == "ieee" else t.operand
        weights = operand if t.decode == "plain" else f"{operand} from fp16 unit"
        parts = t.split_k or min(problem.k // t.tile_k, t.programs)
        return Arithmetic(weights, operand, "fp32", problem.k, parts)


def own(tile: Tile) -> GemmTile:
    """`tile` as this kernel's. Raises TypeError for another's."""
    if not isinstance(tile, GemmTile):
        raise TypeError(f"{Gemm.name} takes a GemmTile, not {type(tile).__name__}")
    return tile


KERNEL = Gemm()
