"""What a grouped matmul costs on paper: a dense one of the tiles that its groups make, in the mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from warptile import formats
from warptile.contracts import Limits, Price, Problem
from warptile.kernels.vulkan import experts

# A pass over the ids by one workgroup, and a second dispatch's start.
SORT_SECONDS = 5e-6
SORT_SECONDS_A_SLOT = 2e-9


def grouped_price(
    problem: Problem, limits: Limits, tile_m: int, price_of: Callable[[Problem], Price], sorts: bool = True
) -> Price:
    """price_of: the price of a dense problem. Its rows are the tiles of tile_m rows that the routing's groups make in
    the mean over drawn groups, last tiles counted whole; weights are read from the experts that have a row."""
    rows, touched = experts.mean_tiles(problem, tile_m)
    if not sorts:
        rows = problem.slots
    dense = price_of(experts.dense(problem, rows))
    expert_bytes = problem.n * problem.k * formats.by_name(problem.format).bits_per_weight / 8
    read = touched * expert_bytes / (limits.read_gb_per_s * 1e9) if limits.read_gb_per_s else 0.0
    seconds = max(dense.seconds, read)
    if sorts:
        seconds += SORT_SECONDS + problem.slots * SORT_SECONDS_A_SLOT
    note = (
        f"routing {problem.routing or 'uniform'}: {touched:.1f} of {problem.experts} experts, "
        f"{problem.slots / rows:.0%} of the tiles' rows in use, in the mean"
    )
    return dataclasses.replace(dense, seconds=seconds, notes=(*dense.notes, note))
