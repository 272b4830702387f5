"""`triton.gemv`: few tokens, fp32 multiply-adds outside the matrix unit."""

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
    UnusableInput,
)
from warptile.kernels.price_model import ceil_div, fill_of_last_wave, registers, residency
from warptile.kernels.triton import common
from warptile.kernels.triton.matrix import is_nvidia
from warptile.kernels.triton.program import Build, Program

DEVICE = "warptile.kernels.triton.gemv.device:gemv"
ENQUEUE = "warptile.kernels.triton.gemv.enqueue:enqueue"
DTYPE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
MOST_TOKENS = 64
SUMS = (8, 256)
# What adding up over warps takes, at most, for the tiles of `space`.
EXCHANGE_BYTES = 16384
# Instructions a weight, waiting included: measured on one H200 at one token.
SLOTS_A_WEIGHT = {"half": 26.0, "plain": 39.0}


@dataclass(frozen=True)
class GemvTile(Tile):
    """A program computes tile_n weight rows by tile_m tokens over all of k, `steps` steps along k at once.

    warps, stages: of a program, and loads in flight. decode: as in `triton.gemm`.
    """

    kernel: ClassVar[str] = "triton.gemv"

    tile_n: int
    tile_m: int
    steps: int
    warps: int = 4
    stages: int = 3
    decode: str = "half"


class Gemv:
    """y[m, n] = sum_k x[m, k] * w[n, k] with fp32 sums in every thread, added up at the end."""

    name = "triton.gemv"
    runtime = "triton"
    tile_type: type[Tile] = GemvTile

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        """Tiles whose threads keep 8 to 256 sums, for up to 64 tokens."""
        try:
            step = common.arranged(problem).step
        except UnusableInput:
            return
        if problem.m > MOST_TOKENS:
            return
        tokens = [t for t in (1, 2, 4, 8) if t < 2 * problem.m]
        for tile_n, tile_m, steps, warps, stages in product((4, 8, 16, 32), tokens, (2, 4, 8), (4, 8), (1, 2, 3)):
            sums = tile_n * tile_m * steps * step // (warps * limits.subgroup)
            if SUMS[0] <= sums <= SUMS[1] and steps <= problem.k // step:
                yield GemvTile(tile_n, tile_m, steps, warps, stages)

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        return None

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        t = own(tile)
        broken = common.shape_rules(problem) or common.device_rules(limits)
        broken += common.powers_of_two(t, ("tile_n", "tile_m", "steps", "warps"))
        if t.decode not in SLOTS_A_WEIGHT:
            broken.append(BrokenRule("decode is half or plain", t.decode))
        if problem.x_dtype not in DTYPE_BYTES or problem.y_dtype not in DTYPE_BYTES:
            broken.append(BrokenRule("x and y are fp32, fp16 or bf16", f"{problem.x_dtype}, {problem.y_dtype}"))
        if problem.grouped:
            broken.append(BrokenRule("experts = 1", f"experts = {problem.experts}"))
        if problem.m > MOST_TOKENS:
            broken.append(BrokenRule(f"m <= {MOST_TOKENS}", f"m = {problem.m}"))
        if t.stages < 1:
            broken.append(BrokenRule("stages >= 1", f"{t.stages}"))
        if broken:
            return broken
        step = common.arranged(problem).step
        sums = t.tile_n * t.tile_m * t.steps * step // (t.warps * limits.subgroup)
        if sums > SUMS[1]:
            broken.append(BrokenRule("sums a thread <= 256", f"{sums}"))
        if t.warps * limits.subgroup > limits.max_workgroup:
            broken.append(BrokenRule("warps * subgroup <= workgroup limit", f"warps = {t.warps}", True))
        needed = _shared_bytes(t, problem)
        if limits.shared_bytes and needed > limits.shared_bytes:
            broken.append(BrokenRule("shared bytes fit a program", f"{needed} > {limits.shared_bytes}", True))
        return broken

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        t = own(tile)
        threads = t.warps * limits.subgroup
        step = common.arranged(problem).step
        sums = t.tile_n * t.tile_m * t.steps * step // threads
        held = registers(limits, sums, t.tile_n * t.steps * step // threads)
        shared = _shared_bytes(t, problem)
        resident = residency(limits, threads, shared, held.count)
        programs = ceil_div(problem.n, t.tile_n) * ceil_div(problem.m, t.tile_m)
        units = limits.units or 1
        capacity = units * max(1, resident.workgroups)
        waves = ceil_div(programs, capacity)
        weight_bytes = problem.n * problem.k * formats.by_name(problem.format).bits_per_weight / 8
        x_bytes = problem.m * problem.k * DTYPE_BYTES[problem.x_dtype]
        passes = ceil_div(problem.m, t.tile_m)
        vector = limits.fp32_tflops * 1e12 or 1e12
        work = problem.n * problem.k * (passes * SLOTS_A_WEIGHT[t.decode] + problem.m) / (vector / 2)
        bandwidth = limits.read_gb_per_s * 1e9 or 1e11
        busy = programs / (waves * capacity)
        return Price(
            accumulators=sums,
            registers=held.count,
            shared_bytes=shared,
            resident_threads=resident.threads,
            limited_by=resident.limited_by,
            barriers=1,
            intensity=problem.flops / (weight_bytes + x_bytes),
            workgroups=programs,
            fill=fill_of_last_wave(limits, programs, resident.workgroups),
            seconds=max(passes * weight_bytes / bandwidth, work / busy) * (2.0 if held.spills else 1.0) + 2e-6,
            spills=held.spills,
        )

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        t = own(tile)
        build = Build(
            function=DEVICE,
            pointers=(
                ("X", common.pointer(problem.x_dtype)),
                ("W", "*i32"),
                ("Y", common.pointer(problem.y_dtype)),
                ("Executed", "*u32"),
            ),
            constants=(
                ("L", common.parameters(problem)),
                ("TILE_N", t.tile_n),
                ("TILE_M", t.tile_m),
                ("STEPS", t.steps),
                ("STAGES", t.stages),
                ("DECODE", "ptx" if t.decode == "half" and is_nvidia(limits) else t.decode),
            ),
            aligned=common.ALIGNED,
            warps=t.warps,
            stages=t.stages,
        )
        program = Program(ENQUEUE, (build,))
        return program.source(3, common.SCALARS, t.warps * limits.subgroup, limits.subgroup)

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        t = own(tile)
        return tuple(
            Launch(
                binary=binary,
                buffers=(x, piece.buffer, y),
                scalars=common.scalars(problem, piece, problem.k, problem.n),
                grid=(ceil_div(piece.rows, t.tile_n), ceil_div(problem.m, t.tile_m), 1),
            )
            for piece in w.slices
        )

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        t = own(tile)
        return t.tile_m, t.tile_n, 128 * t.steps

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """Every term joins at most all others, in any order."""
        weights = "fp32" if own(tile).decode == "plain" else "fp16 from fp16 unit"
        return Arithmetic(weights, "fp32", "fp32", problem.k)


def _shared_bytes(tile: GemvTile, problem: Problem) -> int:
    arranged = common.arranged(problem)
    weights = common.step_bytes(arranged, tile.tile_n * tile.steps)
    activations = tile.tile_m * tile.steps * arranged.step * DTYPE_BYTES[problem.x_dtype]
    return max(max(0, tile.stages - 1) * (weights + activations), EXCHANGE_BYTES)


def own(tile: Tile) -> GemvTile:
    """`tile` as this kernel's. Raises TypeError for another's."""
    if not isinstance(tile, GemvTile):
        raise TypeError(f"{Gemv.name} takes a GemvTile, not {type(tile).__name__}")
    return tile


KERNEL = Gemv()
