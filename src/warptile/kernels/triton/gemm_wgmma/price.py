"""What a tile of `triton.gemm_wgmma` costs on paper."""

from __future__ import annotations

from math import exp

from warptile import formats
from warptile.contracts import Limits, Price, Problem
from warptile.kernels.price_model import ceil_div, fill_of_last_wave
from warptile.kernels.triton.common import arranged
from warptile.kernels.triton.gemm_wgmma.planes import lane_planes, row_bytes
from warptile.kernels.triton.gemm_wgmma.rules import PART, shared_bytes, shares_of, sums_of, tiles_of
from warptile.kernels.triton.gemm_wgmma.slots import slots_a_weight
from warptile.kernels.triton.gemm_wgmma.tile import WgmmaTile
from warptile.kernels.triton.matrix import architecture

DTYPE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
LANES_A_SCHEDULER = 32
SCHEDULERS = 4
CACHE_BANDWIDTH = 1.6
"""Bytes a second that the level 2 cache gives, over those of memory."""
LAUNCH_SECONDS, EARLY_SECONDS = 2.0e-6, 1.4e-6
REDUCE_SECONDS = 1.5e-6
PART_SECONDS = 6e-7
"""Adding one more part of 128 x 128 sums."""
WIDE_SUMS, WIDE_REDUCE, WIDE_ADDED = 128, 4.0, 2.5
"""Parts of more sums a lane are added one after the other, which takes so many times as long."""
FEW, FEW_EXPOSED, FEW_DRAIN, FEW_SHALLOW = 32, 1.3, 1e-7, 4.0
"""Up to so many tokens nothing hides what decoding waits for: its instructions take so many times their issue, a turn
of the loop ends with its barrier and loads, and two stages cost so much (three a quarter, and so on by squares)."""
LEAST_STEP_SECONDS = 2.5e-7
START_SECONDS = 1.5e-6
END_SECONDS = 1.5e-6
COPIED_END = 0.5
"""Of an end, where y leaves while the next tile begins."""
EXPOSED = ((64, 0.65), (128, 0.12), (256, 0.05))
"""Share of decode that matrix instructions of up to so many columns do not hide: both want the register file."""
DRAIN_SECONDS = ((64, 0.8e-7), (128, 1.5e-7), (256, 0.0))
"""What a turn of the loop costs, in which the matrix unit runs empty."""
HELD_SLOTS, MEETING_SLOTS = 1.15, 1.08
"""Instructions of a loop that holds its decode, whose warps meet; over one that does not."""
LEAN, MEETING = 0.97, 1.003
"""Steps of a lean tile of several steps a turn, and of one whose warps meet; over others'."""
SHALLOW = 0.12
"""What two stages cost, over many; three a quarter of it, and so on by squares."""
FIXED_REGISTERS = 56
SUSTAINED = 0.9
"""Matrix rate that the card holds under full load, over its data sheet's."""
HOT, HEATING_TOKENS = 0.08, 4096
"""Decoding costs power, and a card busy with many tokens is as fast as power allows: what an instruction a weight from
COOL to HOTTEST adds to a launch's time in the end, and the tokens at which most of it shows."""
COOL, HOTTEST = 2.0, 8.0
REST_HEAT = 0.2
"""The same for tiles whose last rounds are shared, beside whole ones: without it an H200 took 0 to 2 % more than their
price at 512 tokens, 3 to 13 % at 2048 and 4096. No unit idles then, whose power the others' clock would have: a guess.
"""
SPREAD, SCATTERED = 1.06, 1.15
"""Step of programs that share evenly, over one of programs side by side: they meet less of each other's in cache; the
same where all of more tiles than programs are shared, whose programs are tiles apart."""
TWO_INSTRUCTIONS = 1.12
"""Loop of 128 rows a consumer, over twice the loop of 64: fewer warps hide each other's waits."""


def _of(table: tuple[tuple[int, float], ...], tokens: int) -> float:
    return next((value for most, value in table if tokens <= most), table[-1][1])


def price(tile: WgmmaTile, problem: Problem, limits: Limits) -> Price:
    """Seconds of the busiest unit: its steps by the largest of matrix time, decode, and what the cache can bring; not
    less than memory takes for everything."""
    step = tile.tile_k
    units = limits.units or 132
    vector = limits.fp32_tflops * 1e12 or 6.7e13
    bandwidth = limits.read_gb_per_s * 1e9 or 4.8e12
    tiles = tiles_of(tile, problem.m, problem.n)
    shares = shares_of(tile, problem.m, problem.n, problem.k)
    programs, shared = shares.programs, shares.rest
    steps = problem.k // step
    evenly = ceil_div(shared * steps, shares.sharers)
    if tile.split_k == 0:
        most = (tiles - shared) // programs * steps + evenly
    else:
        most = ceil_div(steps, tile.split_k) * ceil_div(tiles * tile.split_k, programs)
    rounds = ceil_div(programs, units)
    after = END_SECONDS * (COPIED_END if tile.copied else 1.0)
    ends = ceil_div(tiles, programs) * (after if programs < tiles else START_SECONDS + after)
    weights = sum(row_bytes(p) for p in lane_planes(arranged(problem))) * tile.tile_n
    held = max(1, tile.tile_m // 8)
    matrix = 2.0 * tile.tile_n * 8 * held * step / (SUSTAINED * vector * architecture(limits).matrix / units)
    clock = vector / units / (2 * LANES_A_SCHEDULER * SCHEDULERS)
    slots = slots_a_weight(problem, bool(tile.direct))
    issued = slots * (HELD_SLOTS if tile.hold else 1.0) * (1.0 if tile.free else MEETING_SLOTS)
    decode = tile.tile_n * step * issued / (LANES_A_SCHEDULER * SCHEDULERS) / clock
    busy = min(programs, units)
    cache = (weights + 2.0 * tile.tile_m * step) * busy / (bandwidth * CACHE_BANDWIDTH)
    few = tile.tile_m <= FEW
    hidden = max(decode - matrix, 0.0) + min(decode, matrix) * _of(EXPOSED, tile.tile_m)
    exposed = FEW_EXPOSED * decode if few else hidden
    one = (matrix + exposed) * (TWO_INSTRUCTIONS if tile.rows > 64 else 1.0)
    one *= (LEAN if tile.lean and tile.turn > 1 else 1.0) * (1.0 if tile.free else MEETING)
    one += (FEW_DRAIN * tile.rows / 64 if few else _of(DRAIN_SECONDS, tile.tile_m)) / tile.turn
    one = max(one, cache * (1.0 if tile.free else MEETING), LEAST_STEP_SECONDS)
    depth = tile.ring * PART / step if tile.ring else tile.stages
    one *= 1.0 + (FEW_SHALLOW if few else SHALLOW) / max(1.0, depth - 1) ** 2
    weight_bytes = problem.n * problem.k * formats.by_name(problem.format).bits_per_weight / 8
    x_bytes = problem.m * problem.k * DTYPE_BYTES[problem.x_dtype]
    y_bytes = problem.m * problem.n * DTYPE_BYTES[problem.y_dtype]
    parts_seconds = 8.0 * programs * tile.tile_n * tile.tile_m / (bandwidth * CACHE_BANDWIDTH)
    wide = (WIDE_ADDED if tile.added else WIDE_REDUCE) if sums_of(tile) > WIDE_SUMS else 1.0
    memory = (weight_bytes + x_bytes + y_bytes) / bandwidth
    if tile.rest and shared:
        # Every program keeps a part where a round of tiles is shared; else few do, and each sum has many.
        adding = PART_SECONDS * (ceil_div(shares.sharers, shared) + 1)
        adding += parts_seconds if tile.rest > 1 else 0.0
        reduce = REDUCE_SECONDS + wide * adding
    else:
        # Programs that share everything evenly leave up to two tiles each to be added up.
        left = 0.0 if tile.split_k == 1 or tile.rest else 1.0 if tile.split_k else 2.0
        reduce = left * (REDUCE_SECONDS + wide * parts_seconds)
    if tile.split_k == 0 and most:
        apart = SCATTERED if not tile.rest and tiles > programs else SPREAD
        one *= 1.0 + (apart - 1.0) * evenly / most
    seconds = max(rounds * most * one, memory) + rounds * ends + reduce
    seconds += EARLY_SECONDS if tile.early else LAUNCH_SECONDS
    heated = 1.0 - exp(-problem.m / HEATING_TOKENS)
    seconds *= 1.0 + (HOT * (min(slots, HOTTEST) - COOL) + (REST_HEAT if tile.rest else 0.0)) * heated
    accumulators = tile.tile_m * tile.rows // 128 * tile.sums
    parts = step // PART
    return Price(
        accumulators=accumulators,
        registers=accumulators + tile.rows // 4 * parts + FIXED_REGISTERS,
        shared_bytes=shared_bytes(tile, problem),
        resident_threads=128 * (tile.consumers + 1),
        limited_by="registers",
        barriers=2,
        intensity=problem.flops / (weight_bytes + x_bytes + y_bytes),
        workgroups=programs,
        fill=fill_of_last_wave(limits, programs, 1),
        seconds=seconds,
        notes=(f"{arranged(problem).name}, {most} steps a program",),
    )
