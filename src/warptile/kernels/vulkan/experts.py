"""What grouped kernels share: slots sorted by expert on the device, sums over a token's slots, and their launches.

A grouped kernel is a dense one whose workgroups find their rows of x and y, and their expert's words, by
`experts.glsl`.
Order "sorted": a first dispatch sorts slots by expert and lists tiles of rows; the product takes as many workgroups as
any ids can make tiles, and those past the last tile end at once. "slots": a tile is one slot, nothing is sorted.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources

from warptile.contracts import (
    Binary,
    BrokenRule,
    Buffer,
    Chosen,
    DeviceWeights,
    Launch,
    Limits,
    Problem,
    Scratch,
    Source,
)
from warptile.kernels.price_model import ceil_div
from warptile.kernels.vulkan import abi
from warptile.workloads.experts import expected_tiles

OWN_SCALARS = ("experts", "expert0", "held", "stride", "x_share")
SCALARS = abi.SHARED_SCALARS + len(OWN_SCALARS)
BINDINGS = {"sorted": 5, "slots": 4}
MOST_EXPERTS = 1023
_SORT_THREADS = 256
_SUM_THREADS = 64
_MOST_ACROSS = 32768
_MOST_WORDS = 1 << 32


def dense(problem: Problem, m: int) -> Problem:
    """The dense matmul of m rows by one expert."""
    return Problem(problem.format, problem.n, problem.k, max(1, m), problem.x_dtype, problem.y_dtype)


def most_tiles(problem: Problem, tile_m: int) -> int:
    """Tiles of rows that a problem's slots can make at most: slots / tile_m, and one more for each expert that has a
    slot, the ids that name none counted as one."""
    return problem.slots // tile_m + min(problem.slots, problem.experts + 1)


def mean_tiles(problem: Problem, tile_m: int) -> tuple[int, float]:
    """(rows of the tiles that the routing's groups make, whole tiles counted; experts with a row), both in the mean."""
    tiles, touched = expected_tiles(problem, tile_m)
    return max(1, round(tiles * tile_m)), touched


def decoder(glsl: str, order: str, entry: str) -> str:
    """A layout's decoder that reads the workgroup's expert, after `experts.glsl`. entry: GLSL of the tile's number."""
    prelude = resources.files(__package__).joinpath("experts.glsl").read_text(encoding="utf-8")
    head = f"#define SORTED {int(order == 'sorted')}\n#define ENTRY ({entry})\n"
    return head + prelude + glsl.replace("P.plane[", "expert_at + P.plane[")


def rules(problem: Problem, limits: Limits) -> list[BrokenRule]:
    """What a grouped problem must keep, whatever the tile."""
    broken: list[BrokenRule] = []

    def rule(holds: bool, text: str, numbers: str, well_formed: bool = False) -> None:
        if not holds:
            broken.append(BrokenRule(text, numbers, well_formed))

    rule(problem.grouped, "the problem has experts", "experts = 1")
    rule(problem.experts <= MOST_EXPERTS, f"experts <= {MOST_EXPERTS}", f"{problem.experts}")
    rows = 4 * problem.slots * problem.n
    if problem.summed:
        rule(rows <= limits.max_buffer_bytes, "rows of all slots fit a buffer", f"{rows} bytes", well_formed=True)
    rule(problem.slots * max(problem.n, problem.k) < _MOST_WORDS, "elements of x and y < 2^32", problem.text())
    shared = 4 * (3 * (problem.experts + 1) + 1)
    rule(shared <= limits.shared_bytes, "counts of slots fit shared memory", f"{shared} bytes", well_formed=True)
    return broken


def helpers(problem: Problem, order: str, limits: Limits) -> tuple[Source, ...]:
    """The dispatches before and after the product: sorting, where rows are sorted; sums, where y is summed."""
    found = []
    if order == "sorted":
        threads = min(_SORT_THREADS, limits.max_workgroup)
        constants = ((0, threads), (1, problem.experts + 1))
        found.append(Source("glsl", _text("sort_slots.comp"), constants, bindings=3, scalars=4, workgroup=threads))
    if problem.summed:
        text = _text("sum_slots.comp")
        found.append(Source("glsl", text, ((0, _SUM_THREADS),), bindings=4, scalars=4, workgroup=_SUM_THREADS))
    return tuple(found)


def launches(
    binary: Binary,
    problem: Problem,
    x: Buffer,
    w: DeviceWeights,
    y: Buffer,
    chosen: Chosen,
    order: str,
    tile_m: int,
    grid: Callable[[int, int], tuple[int, int, int]],
) -> tuple[Launch, ...]:
    """Sort, multiply (a dispatch a buffer of experts), sum. grid(rows of w, tiles of rows of x)."""
    tiles = most_tiles(problem, tile_m) if order == "sorted" else problem.slots
    found: list[Launch] = []
    remaining = list(binary.helpers)
    places: tuple[Buffer | Scratch, ...] = (chosen.ids,)
    if order == "sorted":
        places = (Scratch("slots by expert", 4 * problem.slots), Scratch("tiles of slots", 16 * tiles))
        numbers = (problem.slots, problem.experts, tile_m, tiles)
        found.append(Launch(remaining.pop(0), (chosen.ids, *places), numbers, (1, 1, 1)))
    rows: Buffer | Scratch = Scratch("rows of slots", 4 * problem.slots * problem.n) if problem.summed else y
    share = 1 if problem.x_slots else problem.top_k
    for piece in w.slices:
        own = (problem.experts, piece.expert0, piece.experts, piece.stride, share)
        scalars = abi.scalars(problem, piece, *own)
        found.append(Launch(binary, (x, piece.buffer, rows, *places), scalars, grid(piece.rows, tiles)))
    if problem.summed:
        weights = chosen.ids if chosen.weights is None else chosen.weights
        groups = ceil_div(problem.m * problem.n, _SUM_THREADS)
        across = min(groups, _MOST_ACROSS)
        numbers = (problem.m, problem.n, problem.top_k, problem.experts)
        buffers = (rows, chosen.ids, weights, y)
        found.append(Launch(remaining.pop(0), buffers, numbers, (across, ceil_div(groups, across), 1)))
    return tuple(found)


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
