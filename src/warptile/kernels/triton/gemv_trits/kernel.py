"""`triton.gemv_trits`: one or two tokens by base-3 weights on int8 matrix instructions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

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
from warptile.kernels.triton.gemv_mma.rules import DEPENDENT_LAUNCH
from warptile.kernels.triton.gemv_trits import price as pricing
from warptile.kernels.triton.gemv_trits import rules
from warptile.kernels.triton.gemv_trits.tile import GemvTritsTile
from warptile.kernels.triton.matrix import architecture
from warptile.kernels.triton.program import Build, Program

DEVICE = "warptile.kernels.triton.gemv_trits.device:gemv_trits"
TWIN = "warptile.kernels.triton.gemv_trits.twin:gemv_trits"
ENQUEUE = "warptile.kernels.triton.gemv_mma.enqueue:enqueue"


class GemvTrits:
    """y[m, n] = sum_k x[m, k] * w[n, k]: whole numbers within a block of 128, fp32 over blocks, warps, parts of k."""

    name = "triton.gemv_trits"
    runtime = "triton"
    tile_type: type[Tile] = GemvTritsTile

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        """1 to 16 warps over rows, parts of k that make at most 8 programs a unit."""
        try:
            common.arranged(problem)
        except UnusableInput:
            return
        if problem.m > rules.MOST_TOKENS or common.parameters(problem)[3:6] != rules.STAGES:
            return
        units = limits.units or 1
        dependent = 1 if architecture(limits).name in DEPENDENT_LAUNCH else 0
        for row_warps, warps, steps, ahead in product(rules.ROW_WARPS, (4, 8, 16), rules.STEPS[1:], (1, 2)):
            for split in (1, 2, 4, 8):
                if split > 1 and ceil_div(problem.n, 16 * row_warps) * split > 8 * units:
                    break
                yield GemvTritsTile(row_warps, min(problem.m, 2), split, warps, steps, ahead, dependent, 128)

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        return None

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        return rules.broken_rules(own(tile), problem, limits)

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        return pricing.price(own(tile), problem, limits)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        """Depends on k: what a program holds of x does."""
        t = own(tile)
        software = limits.kind == "software"
        build = Build(
            function=TWIN if software else DEVICE,
            pointers=(
                ("X", common.pointer(problem.x_dtype)),
                ("W", "*i32"),
                ("Y", common.pointer(problem.y_dtype)),
                ("Part", "*fp32"),
                ("Count", "*i32"),
                ("Executed", "*u32"),
            ),
            constants=(
                ("TOKENS", t.tile_m),
                ("WARPS", t.warps // t.row_warps),
                ("N", t.row_warps),
                ("U", t.steps),
                ("SPLIT_K", t.split_k),
                ("STRETCHES", rules.stretches(t, problem)),
                ("STEPS", rules.staged_steps(t, problem)),
                ("FULL", rules.full(t, problem)),
                ("AHEAD", t.ahead),
                ("PDL", t.pdl),
                ("UPPER", t.upper),
            ),
            aligned=(*common.ALIGNED, "Part"),
            warps=t.warps,
            stages=1,
            language="triton" if software else "gluon",
            early=bool(t.pdl),
            registers=t.registers,
        )
        program = Program(ENQUEUE, (build,))
        return program.source(3, common.SCALARS + 2, t.warps * limits.subgroup, limits.subgroup)

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        t = own(tile)
        rows = 16 * t.row_warps
        return tuple(
            Launch(
                binary=binary,
                buffers=(x, piece.buffer, y),
                scalars=(*common.scalars(problem, piece, problem.k, problem.n), t.split_k, rows * rules.MOST_TOKENS),
                grid=(ceil_div(piece.rows, rows) * t.split_k, ceil_div(problem.m, t.tile_m), 1),
            )
            for piece in w.slices
        )

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        t = own(tile)
        return t.tile_m, 16 * t.row_warps, rules.STEP * rules.stretch(t)

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """Products of a block are whole numbers, summed exactly; blocks then join in any order, then parts of k."""
        numbers = "fixed 128, a bit less" if own(tile).upper else "fixed 128"
        return Arithmetic("fp32", numbers, "fp32", problem.k // rules.STEP + 8, own(tile).split_k)


def own(tile: Tile) -> GemvTritsTile:
    """`tile` as this kernel's. Raises TypeError for another's."""
    if not isinstance(tile, GemvTritsTile):
        raise TypeError(f"{GemvTrits.name} takes a GemvTritsTile, not {type(tile).__name__}")
    return tile


KERNEL = GemvTrits()
