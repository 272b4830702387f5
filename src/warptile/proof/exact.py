"""Activations whose matmul with exact weights has no rounding, or one at the store.

Exact weights are multiples of g = 1/4 (`weights.exact_blocks`), exact activations whole numbers (quantized ones: whole
numbers times a block scale of 1). A sum is a multiple of g, and is representable in a type of p significant bits where
its magnitude is at most g 2^p. With A the magnitudes a weight is made of (`weights.terms`):

- Dense rows: sum_k |x| A <= g 2^p with p the accumulator's bits, so that every partial sum in any order is exact, and
  sum_k |x| |w| <= the largest number of y's type. y is then the sum, rounded to nearest once where y has fewer bits.
- Sparse rows (every other one, where y has fewer bits than the accumulator): sum_k |x| A <= g 2^p with p of y's type,
  at least one element: y is the sum itself, so that a wrong code shows however small it is. A quantized block needs one
  element of 127 for its scale, whose product with a weight may take more bits than y has: rounded once.

fp16: integers to 2048 are exact, 65504 is the largest; bf16: to 256; fp32: to 2^24.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warptile.proof.drawn import drawn_rows
from warptile.proof.weights import EXACT_GRANULE

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

SIGNIFICANT_BITS = {"fp32": 24, "fp16": 11, "bf16": 8}
LARGEST = {"fp32": 3.4e38, "fp16": 65504.0, "bf16": 3.38e38}
LARGEST_CODE = 127
_MOST = 3


@dataclass(frozen=True)
class Reach:
    """How large sums may become. amplitudes, weights: f64[k], the largest A and |w| of each column over all rows.

    bits: significant bits of the accumulator; y_dtype: the output's type.
    """

    amplitudes: F64
    weights: F64
    bits: int
    y_dtype: str

    def limits(self, rows: int) -> tuple[F64, float]:
        """(the most sum |x| A of each row, f64[rows, 1]; the most sum |x| |w|)."""
        own = min(self.bits, SIGNIFICANT_BITS[self.y_dtype])
        sparse = np.arange(rows) % 2 == 1
        most = EXACT_GRANULE * np.exp2(np.where(sparse, own, self.bits).astype(np.float64))
        return most[:, None], LARGEST[self.y_dtype]

    def kept(self, x: F32, order: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which elements of x[m, k], taken in `order` [m, k], stay within the limits; the first that is not 0 does."""
        most, largest = self.limits(len(x))
        size = np.take_along_axis(np.abs(x).astype(np.float64), order, axis=1)
        terms, products = (np.cumsum(size * of[order], axis=1) for of in (self.amplitudes, self.weights))
        first = np.cumsum(size != 0, axis=1) <= 1
        kept = np.empty(x.shape, bool)
        np.put_along_axis(kept, order, ((terms <= most) & (products <= largest)) | first, axis=1)
        return kept


def whole_numbers(m: int, reach: Reach, seed: int) -> F32:
    """x f32[m, k] of whole numbers -3..3; in a row whose sums would pass the limits -1..1, most of them 0."""
    k = len(reach.weights)
    drawn: F32 = drawn_rows(m, lambda rng, n: rng.integers(-_MOST, _MOST + 1, (n, k)).astype(np.float32), seed, 2)
    most, largest = reach.limits(m)
    sizes = np.abs(drawn).astype(np.float64)
    fits = (sizes @ reach.amplitudes[:, None] <= most) & (sizes @ reach.weights[:, None] <= largest)
    if fits.all():
        return drawn
    signs = np.sign(drawn)
    order = np.argsort(drawn_rows(m, lambda rng, n: rng.random((n, k)), seed, 3), axis=1)
    thinned = np.where(reach.kept(signs, order), signs, np.float32(0))
    return np.where(fits, drawn, thinned)


def with_block_scales(m: int, reach: Reach, block: int, seed: int) -> F32:
    """x f32[m, k] that quantizes to known codes: one element of each block is 127 or -127, so that its scale is 1.

    The others lie up to a quarter beside whole numbers -3..3, which are the codes nearest to them. What would pass the
    limits is 0: elements are kept block by block in a random order, the 127 of a block first.
    """
    k = len(reach.weights)
    blocks = k // block
    drawn = drawn_rows(m, lambda rng, n: rng.integers(-_MOST, _MOST + 1, (n, k)).astype(np.float32), seed, 2)
    at = drawn_rows(m, lambda rng, n: rng.integers(0, block, (n, blocks)), seed, 4)
    sign = drawn_rows(m, lambda rng, n: rng.choice([-1.0, 1.0], (n, blocks)) * LARGEST_CODE, seed, 5)
    beside = drawn_rows(m, lambda rng, n: rng.choice([-0.25, 0.0, 0.25], (n, k)), seed, 7)
    x = (drawn + beside).astype(np.float32).reshape(m, blocks, block)
    np.put_along_axis(x, at[:, :, None], sign[:, :, None].astype(np.float32), axis=2)
    turn = np.argsort(drawn_rows(m, lambda rng, n: rng.random((n, blocks)), seed, 6), axis=1)
    inside = np.argsort(-np.abs(x), axis=2, kind="stable")
    order = turn[:, :, None] * block + np.take_along_axis(inside, turn[:, :, None], axis=1)
    flat = x.reshape(m, k)
    kept = reach.kept(np.rint(flat), order.reshape(m, k))
    # A block whose 127 is gone has no scale of 1: nothing beside a whole number may be left of it.
    kept &= np.repeat(
        np.take_along_axis(kept.reshape(m, blocks, block), at[:, :, None], axis=2)[:, :, 0], block, axis=1
    )
    return np.where(kept, flat, np.float32(0))
