"""The dispatches of int8 operands: x quantized, the products of each weight slice, the sum of parts."""

from __future__ import annotations

from warptile.contracts import Arithmetic, Binary, Buffer, DeviceWeights, Launch, Problem, Scratch
from warptile.kernels.price_model import ceil_div
from warptile.kernels.vulkan import abi
from warptile.kernels.vulkan.mul_mm_coop.int8 import source
from warptile.kernels.vulkan.mul_mm_coop.int8.plan import Plan
from warptile.kernels.vulkan.mul_mm_coop.source import SUM_THREADS
from warptile.kernels.vulkan.mul_mm_coop.tile import MulMmCoopTile

MOST_ACROSS = 32768
"""Workgroups along x; further ones go along y, since no device need take more than 65535 along an axis."""

ROUNDINGS_A_BLOCK = 4


def launches(
    binary: Binary, tile: MulMmCoopTile, problem: Problem, x: Buffer, w: DeviceWeights, y: Buffer
) -> tuple[Launch, ...]:
    """One pre-pass, then a dispatch a weight slice; with split_k > 1 the parts, then their sum."""
    plan = Plan.for_problem(tile, problem)
    rows, k = plan.padded(problem)
    scales, sums, words = plan.scratch_words(problem)
    codes = Scratch(f"int8 x{tile.x_block}", 4 * words)
    own = (rows, k, scales, sums)
    groups = ceil_div(rows * k // 4, source.QUANTIZE_THREADS)
    across = min(groups, MOST_ACROSS)
    planes = (0,) * abi.PLANES
    found = [
        Launch(
            binary.helpers[0],
            (x, w.slices[0].buffer, codes),
            (problem.m, problem.n, problem.k, 0, problem.n, *planes, *own),
            (across, ceil_div(groups, across), 1),
        )
    ]
    part = part_k(plan, problem.k)
    for piece in w.slices:
        shared, grid = abi.scalars(problem, piece), tile.grid(piece.rows, problem.m)
        if tile.split_k == 1:
            found.append(Launch(binary, (codes, piece.buffer, y), (*shared, part, 0, *own), grid))
            continue
        area = problem.m * piece.rows
        parts = Scratch("parts", 4 * tile.split_k * area)
        m, n, whole, _, _, *starts = shared
        scalars = (m, n, whole, 0, n, *starts, part, area, *own)
        found.append(Launch(binary, (codes, piece.buffer, parts), scalars, grid))
        blocks = ceil_div(area, SUM_THREADS)
        found.append(Launch(binary.helpers[1], (x, parts, y), shared, (blocks, 1, 1)))
    return tuple(found)


def part_k(plan: Plan, k: int) -> int:
    """Elements of k a part takes: whole steps, the last part fewer."""
    return ceil_div(ceil_div(k, plan.step), plan.tile.split_k) * plan.step


def arithmetic(tile: MulMmCoopTile, problem: Problem) -> Arithmetic:
    """Each whole-number sum is scaled, its minimums taken off, scaled again (`ROUNDINGS_A_BLOCK`) and added in order.

    Minimums that are multiplied on matrices add a product a column; both numbers of a column are exact.
    """
    plan = Plan.for_problem(tile, problem)
    part = min(problem.k, part_k(plan, problem.k))
    depth = ceil_div(part, plan.fold) + ceil_div(part, plan.span) * plan.columns + ROUNDINGS_A_BLOCK
    block = "q8_1" if tile.x_block == 32 else f"q8_{tile.x_block}"
    return Arithmetic("fp16 scales" if plan.columns else "fp32", block, "int32", depth, tile.split_k)
