"""Candidate tiles of `vulkan.mul_mat_vecq`."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from warptile.contracts import Limits, Problem
from warptile.kernels.vulkan.mul_mat_vecq.tile import CHUNK, MulMatVecqTile
from warptile.kernels.vulkan.register_tile import widest_load

LANES_N = (2, 4, 8, 16, 32)
CHUNKS = (1, 2, 4)
COLUMNS = (1, 2, 4, 8)
WORKGROUPS = (128, 256, 512, 1024)
LARGEST_WORKGROUP = 1024
MOST_STEPS = 8
MOST_AHEAD = 16
"""Chunks of a row that a lane loads in one step."""


def space(problem: Problem, limits: Limits) -> Iterator[MulMatVecqTile]:
    """Lanes along n, parts of k by powers of two and by what divides k evenly, rows a lane, chunks a step.

    The workgroup quantizes activations where they fit its shared memory, else a pre-pass does. Steps are not loaded
    ahead of each other: on an H200 that changed nothing, since other subgroups load meanwhile. Nothing on a software
    device, where `mul_mat_vec` and `mul_mmq` do the same with less to stage, and nothing where the device does not
    accelerate the dot product.
    """
    if limits.kind == "software" or not limits.has("int_dot_accelerated"):
        return
    all_chunks = problem.k // CHUNK
    sums = "shuffle" if limits.has("subgroup_shuffle") else "shared"
    widest = widest_load(problem.n, 4)
    columns = [c for c in COLUMNS if c < 2 * problem.m][-2:]
    for lanes_n, groups, chunks, column in itertools.product(LANES_N, (1, 2), CHUNKS, columns):
        thread_n = groups * widest
        if thread_n * chunks > MOST_AHEAD:
            continue
        for split_k in _parts(lanes_n, chunks, all_chunks, limits.subgroup):
            tile = MulMatVecqTile(lanes_n, split_k, thread_n, column, widest, chunks, 0, "shared", sums)
            if tile.shared_bytes(problem.k, limits.subgroup) > limits.shared_bytes:
                tile = dataclasses.replace(tile, staging="scratch")
            yield tile


def _parts(lanes_n: int, chunks: int, all_chunks: int, subgroup: int) -> list[int]:
    """Parts of k that make a workgroup of whole subgroups: of a usual size, or with every step of every part full."""
    usual = {size // lanes_n for size in WORKGROUPS if size % lanes_n == 0}
    whole = {all_chunks // (chunks * steps) for steps in range(1, MOST_STEPS + 1) if all_chunks % (chunks * steps) == 0}
    most = all_chunks // chunks
    return sorted(
        p for p in usual | whole if 1 <= p <= most and p * lanes_n % subgroup == 0 and p * lanes_n <= LARGEST_WORKGROUP
    )
