"""When a tile of `triton.gemm_wgmma` is valid."""

from __future__ import annotations

from warptile.contracts import BrokenRule, Limits, Problem
from warptile.kernels.price_model import ceil_div
from warptile.kernels.triton.common import arranged, device_rules, parameters, powers_of_two, shape_rules
from warptile.kernels.triton.gemm_wgmma.planes import lane_planes, row_bytes
from warptile.kernels.triton.gemm_wgmma.tile import WgmmaTile
from warptile.kernels.triton.matrix import architecture
from warptile.kernels.triton.shares import Shares, shared_evenly

ARCHITECTURE = "sm_90"
PART = 64
LEAST_TOKENS = 8
MOST_LEAN = 128
MOST_SUMS = {1: 256, 2: 256, 4: 64}
"""Sums over 64 that a consuming warp group's registers hold, by the number of groups."""
OPERANDS = ("fp16", "bf16")
FLAGS = ("early", "pairs", "lean", "hold", "free", "direct", "copied", "joined")
TURNS = (1, 2, 4, 8)
BARRIER_BYTES = 16
LEAST_STAGES, LEAST_RING = 2, 3
MOST_COUNTED = 1 << 31
# A warp-specialized program keeps its partitions' arguments and states there.
FIXED_BYTES = 1024


def shared_bytes(tile: WgmmaTile, problem: Problem) -> int:
    """Shared bytes of a program's stages and barriers; the compiler adds up to `FIXED_BYTES`."""
    weights = sum(row_bytes(plane) for plane in lane_planes(arranged(problem))) * tile.tile_n
    if tile.ring:
        return tile.stages * (weights + BARRIER_BYTES) + tile.ring * (2 * tile.tile_m * PART + BARRIER_BYTES)
    return tile.stages * (2 * tile.tile_m * tile.tile_k + weights + BARRIER_BYTES)


def tiles_of(tile: WgmmaTile, m: int, n: int) -> int:
    """Tiles of y[m, n]."""
    return ceil_div(n, tile.tile_n) * ceil_div(m, tile.tile_m)


def shares_of(tile: WgmmaTile, m: int, n: int, k: int) -> Shares:
    """How a launch's programs share the tiles of y[m, n]: no step of a share is empty."""
    tiles = tiles_of(tile, m, n)
    if tile.split_k:
        programs = min(tile.programs, tiles) if tile.programs else tiles * tile.split_k
        return Shares(programs, 0, programs)
    return shared_evenly(tiles, k // tile.tile_k // tile.turn, tile.programs, tile.rest, tile.parts)


def broken_rules(tile: WgmmaTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    """Every rule the tile breaks."""
    broken = shape_rules(problem) or device_rules(limits)
    if architecture(limits).name != ARCHITECTURE:
        found = architecture(limits).name
        broken.append(BrokenRule("the device has sm_90's warp-group matrix instructions", f"it is {found}", True))
    if problem.x_dtype not in OPERANDS or problem.y_dtype not in ("fp32", *OPERANDS):
        broken.append(BrokenRule("x is fp16 or bf16", f"{problem.x_dtype}, {problem.y_dtype}"))
    if problem.grouped:
        broken.append(BrokenRule("experts = 1", f"experts = {problem.experts}"))
    if broken:
        return broken
    broken += powers_of_two(tile, ("tile_m",))
    step = arranged(problem).step
    if tile.tile_k != step:
        broken.append(BrokenRule("tile_k is the step of the weights' arrangement", f"{tile.tile_k} != {step}"))
    elif step % PART:
        broken.append(BrokenRule("k is a multiple of 64", f"k = {problem.k}"))
    elif tile.split_k > problem.k // step:
        broken.append(BrokenRule("split_k <= k / tile_k", f"{tile.split_k} > {problem.k} / {step}"))
    if tile.consumers not in MOST_SUMS or tile.rows not in (64, 128):
        broken.append(BrokenRule("consumers is 1, 2 or 4, rows 64 or 128", f"{tile.consumers}, {tile.rows}"))
    elif tile.tile_m < LEAST_TOKENS or sums_of(tile) > MOST_SUMS[tile.consumers] // (2 if step > 2 * PART else 1):
        most = MOST_SUMS[tile.consumers] // (2 if step > 2 * PART else 1)
        rule = f"tile_m >= {LEAST_TOKENS}, tile_m * rows / 64 * sums <= {most} with {tile.consumers} consumers"
        broken.append(BrokenRule(rule, f"{tile.tile_m}, {sums_of(tile)}"))
    if tile.sums != 1:
        broken.append(BrokenRule("sums is 1", f"{tile.sums}"))
    if tile.split_k < 0 or (tile.split_k == 0 and tile.programs < 1) or (tile.split_k > 1 and tile.programs):
        numbers = f"{tile.split_k}, {tile.programs}"
        broken.append(BrokenRule("programs >= 1 with split_k = 0, none with split_k > 1", numbers))
    if tile.rest not in (0, 1, 2) or tile.parts < 0 or (tile.split_k and (tile.rest or tile.parts)):
        numbers = f"{tile.rest}, {tile.parts}, {tile.split_k}"
        broken.append(BrokenRule("rest is 0, 1 or 2, parts >= 0, both 0 unless split_k = 0", numbers))
    if tile.ring and (tile.ring < LEAST_RING or tile.consumers != 2 or step != 2 * PART):
        rule = f"ring >= {LEAST_RING}, for two consumers and steps of {2 * PART}"
        broken.append(BrokenRule(rule, f"{tile.ring}, {tile.consumers}, {step}"))
    elif tile.ring and (tile.programs or tile.split_k < 1 or tile.copied):
        numbers = f"{tile.split_k}, {tile.programs}, {tile.copied}"
        broken.append(BrokenRule("ring is for one tile a program, not copied", numbers))
    if tile.copied and (tile.consumers * PART != step or tile.rows != 64 or tile.split_k > 1 or problem.n % 8):
        rule = "copied is for as many consumers of 64 rows as a step has parts, without split_k, n % 8 = 0"
        broken.append(BrokenRule(rule, f"{tile.consumers}, {tile.rows}, {tile.split_k}, n = {problem.n}"))
    elif tile.copied and problem.x_dtype != problem.y_dtype:
        broken.append(BrokenRule("copied: y has x's type", f"{problem.x_dtype}, {problem.y_dtype}"))
    if tile.added and (tile.split_k == 1 or not LEAST_TOKENS <= tile.added <= tile.tile_m or tile.tile_m % tile.added):
        rule = f"added, where tiles are shared, divides tile_m and is at least {LEAST_TOKENS}"
        broken.append(BrokenRule(rule, f"{tile.added}, {tile.tile_m}"))
    # A stage is asked for before the one before it is given back.
    if tile.stages < LEAST_STAGES or tile.group_m < 1:
        broken.append(BrokenRule(f"stages >= {LEAST_STAGES}, group_m >= 1", f"{tile.stages}, {tile.group_m}"))
    flags = {name: getattr(tile, name) for name in FLAGS}
    if set(flags.values()) - {0, 1}:
        broken.append(BrokenRule(f"{', '.join(FLAGS)} are 0 or 1", ", ".join(map(str, flags.values()))))
    if tile.turn not in TURNS or (tile.turn > 1 and (problem.k // step) % (tile.turn * max(1, tile.split_k))):
        rule = f"turn is one of {', '.join(map(str, TURNS))} and divides a program's steps"
        broken.append(BrokenRule(rule, f"{tile.turn}, {problem.k // step} / {tile.split_k}"))
    if tile.lean and (tile.consumers != 2 or sums_of(tile) > MOST_LEAN):
        rule = f"lean is for 2 consumers of up to {MOST_LEAN} sums"
        broken.append(BrokenRule(rule, f"{tile.consumers}, {sums_of(tile)}"))
    if tile.joined and not joins(problem):
        broken.append(BrokenRule("joined is for codes of six bits in two planes and base-3 digits", problem.format))
    if tile.direct and problem.x_dtype != "bf16":
        broken.append(BrokenRule("direct is for bf16", problem.x_dtype))
    if tile.pairs and (problem.n % 2 or problem.y_dtype == "fp32"):
        broken.append(BrokenRule("pairs of rows are stored where n is even and y has 16 bits", f"n = {problem.n}"))
    return broken or _fits(tile, problem, limits)


def sums_of(tile: WgmmaTile) -> int:
    """Sums over 64 of a consuming warp group."""
    return tile.tile_m * tile.rows // 64 * tile.sums


def _fits(tile: WgmmaTile, problem: Problem, limits: Limits) -> list[BrokenRule]:
    broken = []
    needed = shared_bytes(tile, problem) + FIXED_BYTES
    if limits.shared_bytes and needed > limits.shared_bytes:
        broken.append(BrokenRule("shared bytes fit a program", f"{needed} > {limits.shared_bytes}", True))
    steps = tiles_of(tile, problem.m, problem.n) * (problem.k // tile.tile_k)
    if steps * max(tile.programs, 1) >= MOST_COUNTED:
        broken.append(BrokenRule("steps * programs < 2^31", f"{steps} * {tile.programs}"))
    return broken


def joins(problem: Problem) -> bool:
    """Whether `joined` makes anything of the format in another way."""
    found = parameters(problem)
    return found[:2] == (4, 2) or found[3] != 0
