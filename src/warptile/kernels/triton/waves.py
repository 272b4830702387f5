"""Registers of a tile on matrix units whose warps hold the fragments of both operands for a whole step: AMD's, and
NVIDIA's before and beside Hopper's.

The limits are what LLVM and ptxas made of tiles of 16 to 128 rows by 8 to 128 tokens, 4 and 8 warps, of twelve formats
on gfx1100, gfx1200, gfx942, sm_80 and sm_86 (Triton 3.6 and 3.9): beyond them a K loop spills in one of them.
`benchmarks/offline_spills.py` compiles what is picked by them.
"""

from __future__ import annotations

from dataclasses import dataclass

from warptile.contracts import Limits
from warptile.kernels.triton.matrix import architecture

SIDE = 16
"""Rows and columns of a matrix instruction."""
OVERHEAD = 48
FEWEST_ROWS = 32
MOST_PRODUCTS = 512
FRAGMENT_SHARE = 128
THREADS_A_ROW = 8
NARROW_ELEMENTS = 64
WAVE32_CODES = 208
WAVE64_CODES = 160
STEP = 128
MMA_FRAGMENTS = 4096
"""Elements of x, columns of a warp by k of a step, that NVIDIA's warps hold beside the weights'."""


def is_amd(limits: Limits) -> bool:
    """Whether the device's matrix unit is one of AMD's."""
    return architecture(limits).name.startswith("gfx")


@dataclass(frozen=True)
class Waves:
    """How a program's waves share a tile: rows and columns of one wave, each at least a matrix instruction's."""

    rows: int
    columns: int

    @classmethod
    def of(cls, tile_n: int, tile_m: int, warps: int) -> Waves:
        """Waves lie along n first, then along m."""
        along_n = max(1, min(warps, tile_n // SIDE))
        return cls(max(SIDE, tile_n // along_n), max(SIDE, tile_m // max(1, warps // along_n)))


def fragments(limits: Limits, waves: Waves, step: int, operand_bytes: int) -> int:
    """Registers of both operands' fragments of a step: RDNA3 keeps two copies of each."""
    copies = architecture(limits).fragment_copies
    return copies * (waves.rows + waves.columns) * step * operand_bytes // 4 // limits.subgroup


def spills(limits: Limits, tile_n: int, tile_m: int, step: int, warps: int, stages: int, operand_bytes: int) -> bool:
    """Whether a tile that multiplies decoded weights spills in its K loop."""
    threads = warps * limits.subgroup
    waves = Waves.of(tile_n, tile_m, warps)
    held = waves.columns * step * operand_bytes // 2
    if not is_amd(limits):
        return not architecture(limits).asynchronous and held > MMA_FRAGMENTS
    if tile_m < SIDE and tile_n * step >= NARROW_ELEMENTS * threads:
        return True
    if threads > THREADS_A_ROW * tile_n:
        return True
    if limits.subgroup > 32:
        return False
    # Loads of a stage beyond the second wait in registers.
    crowded = stages > 2 or held * architecture(limits).fragment_copies > FRAGMENT_SHARE * min(tile_n, 2 * FEWEST_ROWS)
    return tile_n * STEP < FEWEST_ROWS * step or crowded or waves.rows * waves.columns > MOST_PRODUCTS


def codes_spill(limits: Limits, tile_n: int, step: int, warps: int, stages: int, registers: int, parts: int) -> bool:
    """Whether a tile that multiplies int8 codes spills in AMD's K loop. registers: the paper's count, loads of x in
    flight included. parts: scales a block."""
    threads = warps * limits.subgroup
    if limits.subgroup > 32:
        narrow = threads * max(2, stages) > 2 * THREADS_A_ROW * tile_n
        # Eight waves of 64 share a unit's registers: half as many a thread.
        return narrow or (warps >= 8 and registers > WAVE64_CODES)
    if threads > THREADS_A_ROW * tile_n or (stages > 2 and 2 * threads > THREADS_A_ROW * tile_n):
        return True
    # Codes masked for one scale live beside those masked for the next, those of a later stage beside both.
    widest = threads * NARROW_ELEMENTS // (2 if parts > 1 or stages > 2 else 1)
    return registers > WAVE32_CODES or tile_n * step > widest
