"""Registers of a tile on AMD's matrix units, where a wave holds the fragments of both operands for a whole step.

The limits are what LLVM made of every tile of 16 to 128 rows by 8 to 128 tokens, 4 and 8 waves, of Q4_K, Q6_K, Q8_0,
IQ4_XS, PTQ1_0 and TQ1_0 on gfx1100, gfx1200 and gfx942: beyond them a K loop spills. `benchmarks/offline_spills.py`
compiles what is picked by them.
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
WAVE32_CODES = 216


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
    if tile_m < SIDE and tile_n * step >= NARROW_ELEMENTS * threads:
        return True
    if threads > THREADS_A_ROW * tile_n:
        return True
    if limits.subgroup > 32:
        return False
    held = architecture(limits).fragment_copies * waves.columns * step * operand_bytes // 2
    # Loads of a stage beyond the second wait in registers.
    crowded = held * max(2, stages) > 2 * FRAGMENT_SHARE * min(tile_n, 2 * FEWEST_ROWS)
    return tile_n < FEWEST_ROWS or crowded or waves.rows * waves.columns > MOST_PRODUCTS


def codes_spill(limits: Limits, tile_n: int, step: int, warps: int, registers: int, trits: bool) -> bool:
    """Whether a tile that multiplies int8 codes spills in its K loop. registers: the paper's count, loads of x in
    flight included."""
    threads = warps * limits.subgroup
    if threads > THREADS_A_ROW * tile_n:
        return True
    if limits.subgroup > 32:
        return False
    return registers > WAVE32_CODES or tile_n * step > threads * NARROW_ELEMENTS * (1 if trits else 2)
