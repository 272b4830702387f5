"""Numbers at the edges: activations that are NaN, infinite, zero, subnormal or large, over weights with zero rows.

Row r of x is of kind r mod 8:

    0  normal, one element NaN             4  all zero
    1  normal                              5  subnormal as fp16: magnitudes in [2^-24, 2^-14)
    2  normal, one element Inf or -Inf     6  normal, the last element NaN
    3  large: magnitudes in [2^11, 2^15)   7  magnitudes near 2^-10 beside one of 2^14

Rows 0, 2 and 6 are wild: no element of their y is finite. All others are held to the bound of their arithmetic, which
says nothing of numbers beyond fp16's 65504, so x stays below 2^15; sums of row 3 pass fp16's largest, and y of fp16 is
infinite there, as a conversion of the sum is (IEEE 754-2019, 7.4). Every 16th row of w, from the third on, is of
blocks whose bytes are all 0; the others are as large as a trained model's largest: SmolLM2-135M has Q4_1 scales up to
0.77 and minimums up to 9.25, where the random inputs end at 0.01 and 0.11. Activations quantized to int8 codes have no
code for NaN and Inf: wild rows are not asked of kernels that quantize, but the rows beside them are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warptile.proof.drawn import drawn_rows

KINDS = 8
WILD = (0, 2, 6)
ZERO_ROW, ZERO_EVERY = 3, 16
LARGE_OCTAVES = (-5.0, 3.0)
_STREAM = 8

F32 = NDArray[np.float32]


def wild_rows(m: int) -> NDArray[np.bool_]:
    """bool[m]: rows of x that hold NaN or Inf."""
    return np.isin(np.arange(m) % KINDS, WILD)


def special_rows(m: int, k: int, seed: int) -> F32:
    """x f32[m, k] as above."""
    x: F32 = drawn_rows(m, lambda rng, rows: _rows(rng, rows, k), seed, _STREAM)
    return x


def with_zero_rows(blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A copy of u8[n, row bytes] with every 16th row zero."""
    found = blocks.copy()
    found[ZERO_ROW::ZERO_EVERY] = 0
    return found


def _rows(rng: np.random.Generator, rows: int, k: int) -> F32:
    x = rng.standard_normal((rows, k)).astype(np.float32)
    sign = rng.choice(np.array([-1, 1], np.float32), (rows, k))
    large = sign * np.exp2(rng.uniform(11, 14.99, (rows, k))).astype(np.float32)
    tiny = sign * np.exp2(rng.uniform(-24, -14.01, (rows, k))).astype(np.float32)
    at = rng.integers(0, k, rows)
    for row in range(rows):
        kind = row % KINDS
        if kind == 0:
            x[row, at[row]] = np.nan
        elif kind == 2:
            x[row, at[row]] = sign[row, 0] * np.float32(np.inf)
        elif kind == 3:
            x[row] = large[row]
        elif kind == 4:
            x[row] = 0
        elif kind == 5:
            x[row] = tiny[row]
        elif kind == 6:
            x[row, -1] = np.nan
        elif kind == 7:
            x[row] *= np.float32(2.0**-10)
            x[row, at[row]] = sign[row, 0] * np.float32(2.0**14)
    return x
