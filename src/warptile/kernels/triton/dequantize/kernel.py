"""`triton.dequantize`: weights decoded to a dense matrix, then the library's own matmul."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

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
from warptile.kernels.triton import common
from warptile.kernels.triton.matrix import architecture, is_nvidia
from warptile.kernels.triton.program import Build, Program

DEVICE = "warptile.kernels.triton.dequantize.device:dequantize"
ENQUEUE = "warptile.kernels.triton.dequantize.enqueue:enqueue"
DTYPE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
TILES_N = (16, 32, 64)
# A dense matmul library reaches about this share of the matrix unit's peak.
LIBRARY_SHARE = 0.75
# Measured on one H200: share of the bandwidth that reading words and writing the dense matrix reaches, and instructions
# a weight that codes of two planes take.
STREAMED = 0.87
TWO_PLANE_SLOTS = 25.0


@dataclass(frozen=True)
class DequantizeTile(Tile):
    """A program decodes tile_n rows of `steps` steps along k; the dense matrix has x's type.

    warps, stages: of a program, and loads in flight. decode: as in `triton.gemm`, "half" for fp16 and bf16 alone.
    """

    kernel: ClassVar[str] = "triton.dequantize"

    tile_n: int = 32
    warps: int = 4
    decode: str = "half"
    steps: int = 4
    stages: int = 2


class Dequantize:
    """dense[n, k] = w rounded to x's type, then y = x dense^T by the library."""

    name = "triton.dequantize"
    runtime = "triton"
    tile_type: type[Tile] = DequantizeTile

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        for tile_n in TILES_N:
            for warps, steps in product((4, 8), (1, 4, 8)):
                yield DequantizeTile(tile_n, warps, "plain" if problem.x_dtype == "fp32" else "half", steps)

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        return None

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        t = own(tile)
        broken = common.shape_rules(problem) or common.device_rules(limits)
        broken += common.powers_of_two(t, ("tile_n", "warps"))
        if problem.x_dtype != problem.y_dtype or problem.x_dtype not in DTYPE_BYTES:
            broken.append(BrokenRule("x and y share a type", f"{problem.x_dtype}, {problem.y_dtype}"))
        if t.decode not in ("half", "plain") or (t.decode == "half" and problem.x_dtype == "fp32"):
            broken.append(BrokenRule("decode is plain, or half for fp16 and bf16", f"{t.decode}, {problem.x_dtype}"))
        if t.steps < 1 or t.stages < 1:
            broken.append(BrokenRule("steps and stages >= 1", f"{t.steps}, {t.stages}"))
        if problem.grouped:
            broken.append(BrokenRule("experts = 1", f"experts = {problem.experts}"))
        if t.warps * limits.subgroup > limits.max_workgroup:
            broken.append(BrokenRule("warps * subgroup <= workgroup limit", f"warps = {t.warps}", True))
        return broken

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        t = own(tile)
        size = DTYPE_BYTES[problem.x_dtype]
        packed = problem.n * problem.k * formats.by_name(problem.format).bits_per_weight / 8
        dense = float(problem.n * problem.k * size)
        inout = float(size * (problem.m * problem.k + problem.m * problem.n))
        bandwidth = limits.read_gb_per_s * 1e9 or 1e11
        vector = limits.fp32_tflops * 1e12 or 1e12
        ratio = architecture(limits).matrix if size == 2 else 1.0
        library = max((dense + inout) / bandwidth, problem.flops / (vector * ratio * LIBRARY_SHARE))
        decode = (packed + dense) / (bandwidth * STREAMED)
        if len(common.arranged(problem).code_planes) == 2:
            decode = max(decode, problem.n * problem.k * TWO_PLANE_SLOTS / (vector / 2))
        programs = ceil_div(problem.n, t.tile_n) * (problem.k // common.arranged(problem).step)
        return Price(
            accumulators=0,
            registers=0,
            shared_bytes=0,
            resident_threads=t.warps * limits.subgroup,
            limited_by="unknown",
            barriers=0,
            intensity=problem.flops / (packed + 2 * dense + inout),
            workgroups=programs,
            fill=1.0,
            seconds=decode + library + 4e-6,
            notes=("the dense matmul is the library's",),
        )

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        t = own(tile)
        decode = "ptx" if t.decode == "half" and is_nvidia(limits) else t.decode
        build = Build(
            function=DEVICE,
            pointers=(("W", "*i32"), ("Out", common.pointer(problem.x_dtype)), ("Executed", "*u32")),
            constants=(
                ("L", common.parameters(problem)),
                ("TILE_N", t.tile_n),
                ("STEPS", t.steps),
                ("STAGES", t.stages),
                ("DECODE", decode),
            ),
            aligned=("W", "Out", "k", *common.PLANE_ARGUMENTS),
            warps=t.warps,
            stages=t.stages,
        )
        program = Program(ENQUEUE, (build,))
        return program.source(3, common.SCALARS + 1, t.warps * limits.subgroup, limits.subgroup)

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        t = own(tile)
        step = common.arranged(problem).step
        return tuple(
            Launch(
                binary=binary,
                buffers=(x, piece.buffer, y),
                scalars=(*common.scalars(problem, piece, problem.k, problem.n), problem.n),
                grid=(ceil_div(problem.k // step, t.steps), ceil_div(piece.rows, t.tile_n), 1),
            )
            for piece in w.slices
        )

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        return 1, own(tile).tile_n, 256

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """The library's order of additions is not known: any order of all terms."""
        weights = problem.x_dtype if own(tile).decode == "plain" else f"{problem.x_dtype} from fp16 unit"
        return Arithmetic(weights, problem.x_dtype, "fp32", problem.k)


def own(tile: Tile) -> DequantizeTile:
    """`tile` as this kernel's. Raises TypeError for another's."""
    if not isinstance(tile, DequantizeTile):
        raise TypeError(f"{Dequantize.name} takes a DequantizeTile, not {type(tile).__name__}")
    return tile


KERNEL = Dequantize()
