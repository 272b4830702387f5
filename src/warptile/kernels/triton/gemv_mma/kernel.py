"""`triton.gemv_mma`: few tokens on the matrix unit, every warp with a part of k of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

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
from warptile.kernels.price_model import ceil_div
from warptile.kernels.triton import common
from warptile.kernels.triton.gemv_mma import price as pricing
from warptile.kernels.triton.gemv_mma import rules
from warptile.kernels.triton.gemv_mma.tile import GemvMmaTile
from warptile.kernels.triton.matrix import architecture
from warptile.kernels.triton.program import Build, Program

DEVICE = "warptile.kernels.triton.gemv_mma.device:gemv_mma"
TWIN = "warptile.kernels.triton.gemv_mma.twin:gemv_mma"
ENQUEUE = "warptile.kernels.triton.gemv_mma.enqueue:enqueue"


class GemvMma:
    """y[m, n] = sum_k x[m, k] * w[n, k]; fp32 sums in every warp, then over warps, then over the parts of k."""

    name = "triton.gemv_mma"
    runtime = "triton"
    tile_type: type[Tile] = GemvMmaTile

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        """16 or 32 rows a warp, 1 to 16 warps over rows, parts of k that make at most 8 programs a unit."""
        try:
            common.arranged(problem)
        except UnusableInput:
            return
        if problem.m > rules.MOST_TOKENS:
            return
        units = limits.units or 1
        held = next(t for t in (1, 2, 4, 8, 16, 32, 64) if t >= problem.m)
        ways = [(tokens, 0) for tokens in sorted({held, min(held, 8)})]
        if problem.x_dtype in rules.COPIED:
            ways += [(tokens, 1) for tokens in sorted({max(held, 8), min(max(held, 8), 16)})]
        dependent = 1 if architecture(limits).name in rules.DEPENDENT_LAUNCH else 0
        for row_warps, warps, twice, steps, ahead in product(rules.ROW_WARPS, (4, 8, 16), (1, 2), (1, 2), (1, 2)):
            tile_n = 16 * row_warps * twice
            for split in (1, 2, 4, 8, 16):
                if split > 1 and ceil_div(problem.n, tile_n) * split > 8 * units:
                    break
                for tokens, direct in ways:
                    tile = GemvMmaTile(tile_n, tokens, split, warps, row_warps, steps, ahead, dependent, 0, direct)
                    for registers in rules.allowed_registers(tile, problem):
                        yield replace(tile, registers=registers)

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        return None

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        return rules.broken_rules(own(tile), problem, limits)

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        return pricing.price(own(tile), problem, limits)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        """Depends on k: what a program holds of x does."""
        t = own(tile)
        common_constants: tuple[tuple[str, Any], ...] = (
            ("L", common.parameters(problem)),
            ("ROWS", t.tile_n),
            ("TOKENS", t.tile_m),
            ("WARPS", t.warps // t.row_warps),
            ("N", t.row_warps),
            ("U", t.steps),
            ("SPLIT_K", t.split_k),
            ("STRETCHES", rules.stretches(t, problem)),
            ("FULL", rules.full(t, problem)),
            ("AHEAD", t.ahead),
            ("PDL", t.pdl),
            ("DIRECT", t.direct),
            ("LEAN", t.lean),
        )
        build = Build(
            function=TWIN if limits.kind == "software" else DEVICE,
            pointers=(
                ("X", common.pointer(problem.x_dtype)),
                ("W", "*i32"),
                ("Y", common.pointer(problem.y_dtype)),
                ("Part", "*fp32"),
                ("Count", "*i32"),
                ("Executed", "*u32"),
            ),
            constants=common_constants,
            aligned=(*common.ALIGNED, "Part"),
            warps=t.warps,
            stages=1,
            language="triton" if limits.kind == "software" else "gluon",
            early=bool(t.pdl),
            registers=t.registers,
        )
        program = Program(ENQUEUE, (build,))
        return program.source(3, common.SCALARS + 2, t.warps * limits.subgroup, limits.subgroup)

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        t = own(tile)
        return tuple(
            Launch(
                binary=binary,
                buffers=(x, piece.buffer, y),
                scalars=(*common.scalars(problem, piece, problem.k, problem.n), t.split_k, t.tile_n * rules.columns(t)),
                grid=(ceil_div(piece.rows, t.tile_n) * t.split_k, ceil_div(problem.m, t.tile_m), 1),
            )
            for piece in w.slices
        )

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        t = own(tile)
        return t.tile_m, t.tile_n, 128 * rules.stretch(t)

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """A term joins at most all terms of its part of k, in any order, then the other parts."""
        kind = "fp16" if problem.x_dtype == "fp16" else "fp16 over its largest"
        return Arithmetic("fp16 from fp16 unit", kind, "fp32", problem.k, own(tile).split_k)


def own(tile: Tile) -> GemvMmaTile:
    """`tile` as this kernel's. Raises TypeError for another's."""
    if not isinstance(tile, GemvMmaTile):
        raise TypeError(f"{GemvMma.name} takes a GemvMmaTile, not {type(tile).__name__}")
    return tile


KERNEL = GemvMma()
