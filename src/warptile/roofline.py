"""The roofline of a matmul: the bytes it must move, and the seconds that a device's measured ceilings allow at best.

S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model", CACM 52 (2009).
"""

from __future__ import annotations

from warptile import formats
from warptile.contracts import Ceilings, Problem
from warptile.contracts.samples import storage_dtype


def moved_bytes(problem: Problem) -> int:
    """Bytes moved at least: w as its file holds it and x read once, y written once.

    A grouped matmul reads min(experts, m * top_k) experts, the most that its tokens can need.
    """
    matrices = min(problem.experts, problem.slots) if problem.grouped else 1
    weights = matrices * problem.n * formats.by_name(problem.format).row_bytes(problem.k)
    x_bytes, y_bytes = (storage_dtype(kind).itemsize for kind in (problem.x_dtype, problem.y_dtype))
    return weights + problem.x_rows * problem.k * x_bytes + problem.y_rows * problem.n * y_bytes


def intensity(problem: Problem) -> float:
    """FLOP a byte: problem.flops / moved_bytes(problem)."""
    return problem.flops / moved_bytes(problem)


def arithmetic(runtime: str) -> str:
    """What `Ceilings.flops_per_s` was measured with on a runtime's devices."""
    return "dense fp16" if runtime in ("cuda", "hip") else "fp32"


def floor_seconds(problem: Problem, ceilings: Ceilings) -> float:
    """max(FLOP / (FLOP/s), moved bytes / (bytes/s))."""
    return max(problem.flops / ceilings.flops_per_s, moved_bytes(problem) / ceilings.read_bytes_per_s)
