"""When a tile of `triton.gemm` is valid."""

from __future__ import annotations

from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.triton.common import arranged, device_rules, powers_of_two, shape_rules, step_bytes
from warptile.kernels.triton.gemm.tile import GemmTile
from warptile.kernels.triton.matrix import architecture, is_nvidia
from warptile.layouts.trits import TritPlane

OPERANDS = ("fp16", "bf16", "tf32", "ieee")
DECODES = ("half", "plain")
DTYPE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
LEAST_SIDE = 8
MOST_SUMS = 1 << 16


def shared_bytes(tile: GemmTile, problem: Problem, limits: Limits) -> int:
    """Shared bytes of a program: x in `stages` copies (one fewer where the matrix unit is synchronous), weights in
    stages - 1, or the tile of sums on its way out if that is more.

    Where x is rounded on its way, its copies have x's own type and one more tile the operand's. fp32 weights pass
    through shared memory, base-3 ones in fp32, others in half.
    """
    taken = tile.stages if architecture(limits).asynchronous else max(1, tile.stages - 1)
    x_bytes = DTYPE_BYTES[problem.x_dtype]
    rows = tile.tile_m * tile.tile_k
    operand = {"fp16": 2, "bf16": 2}.get(tile.operand, 4)
    activations = taken * rows * x_bytes if operand == x_bytes else (tile.stages - 1) * rows * x_bytes + rows * operand
    weights = max(1, tile.stages - 1) * step_bytes(arranged(problem), tile.tile_n)
    if not architecture(limits).asynchronous:
        weights += tile.tile_n * tile.tile_k * operand if tile.warps > 1 else 0
    elif operand == 4:
        trits = isinstance(arranged(problem).layout.codes, TritPlane)
        weights += tile.tile_n * tile.tile_k * (4 if trits else 2)
    return max(activations + weights, 4 * tile.tile_n * tile.tile_m)


def broken_rules(tile: GemmTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """Every rule the tile breaks."""
    broken = shape_rules(problem) or device_rules(limits)
    broken += powers_of_two(tile, ("tile_n", "tile_m", *(("split_k",) if tile.split_k else ()), "warps"))
    if (tile.programs < 1) if tile.split_k == 0 else tile.programs or tile.rest:
        numbers = f"{tile.programs}, {tile.rest}, {tile.split_k}"
        broken.append(BrokenRule("programs >= 1 with split_k = 0, else no programs and no rest", numbers))
    if tile.registers and not 32 <= tile.registers <= (limits.max_registers_per_thread or tile.registers):
        broken.append(BrokenRule("registers is 0 or 32 to the most a thread has", f"{tile.registers}"))
    if tile.paired not in (0, 1):
        broken.append(BrokenRule("paired is 0 or 1", f"{tile.paired}"))
    if (tile.registers or tile.paired) and not is_nvidia(limits):
        broken.append(BrokenRule("registers and paired are for NVIDIA", f"{tile.registers}, {tile.paired}", True))
    if tile.rest not in (0, 1, 2):
        broken.append(BrokenRule("rest is 0, 1 or 2", f"{tile.rest}"))
    if tile.operand not in OPERANDS:
        broken.append(BrokenRule(f"operand is one of {', '.join(OPERANDS)}", tile.operand))
    if tile.decode not in DECODES:
        broken.append(BrokenRule(f"decode is one of {', '.join(DECODES)}", tile.decode))
    if problem.x_dtype not in DTYPE_BYTES or problem.y_dtype not in DTYPE_BYTES:
        broken.append(BrokenRule("x and y are fp32, fp16 or bf16", f"{problem.x_dtype}, {problem.y_dtype}"))
    if problem.grouped:
        broken.append(BrokenRule("experts = 1", f"experts = {problem.experts}"))
    if broken:
        return broken
    step = arranged(problem).step
    if tile.tile_k != step:
        broken.append(BrokenRule("tile_k is the step of the weights' arrangement", f"{tile.tile_k} != {step}"))
    elif tile.split_k > problem.k // step:
        broken.append(BrokenRule("split_k <= k / tile_k", f"{tile.split_k} > {problem.k} / {step}"))
    if tile.group_m < 1 or tile.stages < 1:
        broken.append(BrokenRule("group_m, stages >= 1", f"{tile.group_m}, {tile.stages}"))
    if tile.tile_n < 16 or tile.tile_m < LEAST_SIDE:
        broken.append(BrokenRule("tile_n >= 16, tile_m >= 8", f"{tile.tile_n}, {tile.tile_m}"))
    if tile.tile_n * tile.tile_m > MOST_SUMS:
        broken.append(BrokenRule("tile_n * tile_m <= 65536", f"{tile.tile_n} * {tile.tile_m}"))
    if problem.x_dtype == "bf16" and tile.operand == "fp16":
        broken.append(BrokenRule("fp16 holds the range of x", "x is bf16"))
    if tile.paired and (tile.decode != "half" or arranged(problem).layout.scales.name != "k8"):
        broken.append(BrokenRule("paired is for scales of a byte made in fp16", f"{problem.format}, {tile.decode}"))
    if broken:
        return broken
    return _fits(tile, problem, limits)


def _fits(tile: GemmTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    broken = []
    needed = shared_bytes(tile, problem, limits)
    if limits.shared_bytes and needed > limits.shared_bytes:
        broken.append(BrokenRule("shared bytes fit a program", f"{needed} > {limits.shared_bytes}", True))
    threads = tile.warps * limits.subgroup
    if threads > limits.max_workgroup:
        broken.append(BrokenRule("warps * subgroup <= workgroup limit", f"{threads} > {limits.max_workgroup}", True))
    return broken
