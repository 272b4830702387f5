"""`triton.gemm_id`: grouped matmul by expert ids, fused decode and matrix unit, with one source for CUDA and ROCm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warptile.contracts import (
    Arithmetic,
    Binary,
    BrokenRule,
    Buffer,
    Chosen,
    DeviceWeights,
    DoesNotFit,
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
from warptile.kernels.triton.gemm_id import price as pricing
from warptile.kernels.triton.gemm_id import rules
from warptile.kernels.triton.gemm_id import space as tiles
from warptile.kernels.triton.gemm_id.tile import GemmIdTile
from warptile.kernels.triton.matrix import architecture, is_nvidia
from warptile.kernels.triton.program import Build, Program

MODULE = "warptile.kernels.triton.gemm_id"
CHUNK = 256
COMBINED = 1024
ENTRIES = 64
# Slots that the placing pass compares its chunk with at once.
PART = 32
SORT_WARPS = 8
# Counts that one load of the placing pass takes.
COUNTS_AT_ONCE = 8192


class GemmId:
    """y[slot, n] = sum_k x[row of slot, k] * w[ids[slot], n, k]; fp32 sums over k in order, then over its parts; where
    y is summed, over a token's slots, each rounded to y's type before where rows are sorted."""

    name = "triton.gemm_id"
    runtime = "triton"
    tile_type: type[Tile] = GemmIdTile

    def space(self, problem: Problem, limits: Limits) -> Iterator[Tile]:
        return iter(tiles.space(problem, limits))

    def stock(self, problem: Problem, limits: Limits) -> Tile | None:
        return tiles.stock(problem, limits) if problem.grouped else None

    def broken_rules(self, tile: Tile, problem: Problem, limits: Limits) -> list[BrokenRule]:
        return rules.broken_rules(own(tile), problem, limits)

    def price(self, tile: Tile, problem: Problem, limits: Limits) -> Price:
        return pricing.price(own(tile), problem, limits)

    def source(self, tile: Tile, problem: Problem, limits: Limits) -> Source:
        """Depends on n through its divisibility by 16, on k through the arrangement, and on experts."""
        t = own(tile)
        builds = (_alone(t, problem, limits),) if t.order == "slots" else _sorted(t, problem, limits)
        program = Program(f"{MODULE}.enqueue:enqueue_{t.order}", builds)
        return program.source(5, common.SCALARS + (4 if t.order == "slots" else 7), builds[0].warps * 32, 32)

    def launch(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
    ) -> tuple[Launch, ...]:
        """Raises UnusableInput: see `launch_grouped`."""
        raise UnusableInput(f"{self.name} takes expert ids")

    def launch_grouped(
        self, binary: Binary, tile: Tile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer, chosen: Chosen
    ) -> tuple[Launch, ...]:
        """One launch. Raises DoesNotFit where the experts lie in more than one buffer."""
        t, p = own(tile), problem
        if len(w.slices) != 1:
            raise DoesNotFit("all experts lie in one buffer", f"{len(w.slices)} buffers")
        piece = w.slices[0]
        grouped = (p.experts, piece.stride, 1 if p.x_slots else p.top_k, p.top_k)
        scalars = (*common.scalars(p, piece, p.k, p.n), *grouped)
        grid_n = ceil_div(p.n, t.tile_n)
        if t.order == "slots":
            grid = (grid_n, p.y_rows, 1)
        else:
            scalars += (p.slots, t.tile_m, int(p.summed))
            grid = (ceil_div(grid_n, t.span) * most_tiles(p.slots, p.experts, t.tile_m), 1, 1)
        weights = chosen.ids if chosen.weights is None else chosen.weights
        return (Launch(binary, (x, piece.buffer, y, chosen.ids, weights), scalars, grid),)

    def boundaries(self, tile: Tile) -> tuple[int, int, int]:
        t = own(tile)
        return t.rows, t.tile_n, t.tile_k * t.steps

    def arithmetic(self, tile: Tile, problem: Problem) -> Arithmetic:
        """A term joins at most all terms of its part of k, in any order, then the other parts."""
        t = own(tile)
        operand = "fp32" if t.operand == "ieee" else t.operand
        weights = operand if t.decode == "plain" else f"{operand} from fp16 unit"
        return Arithmetic(weights, operand, "fp32", problem.k, t.steps)


def most_tiles(slots: int, experts: int, tile_m: int) -> int:
    """Row tiles that `slots` slots can make at most, whichever expert each goes to: slots / tile_m, and one more for
    each expert that has a slot, the ids that name none counted as one."""
    return slots // tile_m + min(slots, experts + 1)


def _product(t: GemmIdTile, problem: Problem, limits: Limits, function: str, extra: tuple[Any, ...], own: Any) -> Build:
    operand = t.operand
    if operand == "bf16" and limits.kind == "software":
        operand = "widened bf16"
    return Build(
        function=f"{MODULE}.device:{function}",
        pointers=(
            ("X", common.pointer(problem.x_dtype)),
            ("W", "*i32"),
            ("Y", common.pointer(problem.y_dtype)),
            *extra,
            ("Executed", "*u32"),
        ),
        constants=(
            ("L", common.parameters(problem)),
            ("TILE_N", t.tile_n),
            ("TILE_M", t.tile_m),
            ("OPERAND", operand),
            ("DECODE", "ptx" if t.decode == "half" and is_nvidia(limits) else t.decode),
            *own,
        ),
        aligned=(*common.ALIGNED, "stride", *(("rows", "y_stride") if problem.n % 16 == 0 else ())),
        warps=t.warps,
        stages=t.stages,
    )


def _alone(t: GemmIdTile, problem: Problem, limits: Limits) -> Build:
    together = rules.slots_together(problem)
    own = (("STEPS", t.steps), ("SLOTS", together), ("STAGES", t.stages))
    return _product(t, problem, limits, "gemm_slots", (("Ids", "*i32"), ("Weights", "*fp32")), own)


def _sorted(t: GemmIdTile, problem: Problem, limits: Limits) -> tuple[Build, ...]:
    buckets = 1 << (problem.experts + 1).bit_length()
    shared = (("CHUNK", CHUNK), ("BUCKETS", buckets))
    ids = (("Ids", "*i32"), ("Counts", "*i32"))
    count = Build(f"{MODULE}.device:count_slots", ids, shared, ("Ids",), 4, 1)
    placing = (
        *shared,
        ("TILE_M", t.tile_m),
        ("ROWS", max(1, COUNTS_AT_ONCE // buckets)),
        ("PART", PART),
        ("ENTRIES", ENTRIES),
    )
    lists = (*ids, ("Order", "*i32"), ("Work", "*i32"))
    place = Build(f"{MODULE}.device:place_slots", lists, placing, ("Ids", "Work"), SORT_WARPS, 1)
    product = _product(
        t,
        problem,
        limits,
        "gemm_sorted",
        (("Order", "*i32"), ("Work", "*i32")),
        (("TAIL", t.tail), ("SPAN", t.span), ("DRAIN", architecture(limits).asynchronous)),
    )
    if not problem.summed:
        return count, place, product
    dtype = common.pointer(problem.y_dtype)
    pointers = (("Slots", dtype), ("Ids", "*i32"), ("Weights", "*fp32"), ("Y", dtype))
    aligned = ("Slots", "Y", *(("n", "y_stride") if problem.n % 16 == 0 else ()))
    combine = Build(
        f"{MODULE}.device:combine", pointers, (("TOP_K", problem.top_k), ("BLOCK", COMBINED)), aligned, 4, 1
    )
    return count, place, product, combine


def own(tile: Tile) -> GemmIdTile:
    """`tile` as this kernel's. Raises TypeError for another's."""
    if not isinstance(tile, GemmIdTile):
        raise TypeError(f"{GemmId.name} takes a GemmIdTile, not {type(tile).__name__}")
    return tile


KERNEL = GemmId()
