"""The per-element bound on |got - want|, derived from the format and the kernel's arithmetic.

Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition (SIAM 2002), sections 2.2 (model
fl(a op b) = (a op b)(1 + delta), |delta| <= u; with underflow an absolute eta besides), 3.1 and 3.2 (inner products).

Notation: u = 2^-24 (fp32) or 2^-11 (fp16), gamma_n = n u / (1 - n u), w the weight in exact arithmetic, A the sum of
the magnitudes of the terms it is made of (|d q| + |m|; |w| where the format has no minimum), x the activation.

1. Decode. A weight is scale * (code - offset) - minimum. A device may round each term once (Higham 2.4) and their
   difference once, so |decoded - w| <= gamma_2 A: relative to A and not to |w|, since the terms may cancel. The
   reference decode is fp32 as well: gamma_2 A again.
2. Operands. Rounded to fp16, v moves by at most 2 u16 |v| + 2^-24: twice the unit roundoff and one subnormal spacing,
   because Vulkan leaves the direction of a conversion to fp16 to the device (specification, "Precision and Operation
   of SPIR-V Instructions"); activations that arrive as fp16 do not move.
   With e_w and e_x the sums of 1. and 2.: |sum (x + dx)(w + dw) - sum x w| <= sum (|x| + e_x)(|w| + e_w) - sum |x| |w|.
3. Summation. A term passes one multiplication and at most `depth` additions in its accumulator, then `parts` additions
   where partial sums are combined; the first addition (to zero) is exact, so at most depth + parts roundings, in any
   order (Higham 3.5): gamma_{depth + parts} * sum (|x| + e_x)(|w| + e_w). A fused multiply-add rounds less often.
   An underflow costs at most the smallest normal number per operation (devices may flush): 2 k * 2^-126 (fp16: 2^-14).
4. Store. One rounding to y's type: u_y times the largest magnitude the sum can have.
5. The reference itself sums in float64: gamma_k(2^-53) * sum |x| |w|.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import Arithmetic, UnusableInput

ROUNDOFF = {"fp64": 2.0**-53, "fp32": 2.0**-24, "fp16": 2.0**-11}
SMALLEST_NORMAL = {"fp32": 2.0**-126, "fp16": 2.0**-14}
SUBNORMAL_SPACING_FP16 = 2.0**-24

Array = NDArray[np.float64]


def gamma(n: int, roundoff: float) -> float:
    """gamma_n = n u / (1 - n u) (Higham, lemma 3.1). Raises UnusableInput where n u >= 1: nothing is bounded then."""
    product = n * roundoff
    if product >= 1:
        raise UnusableInput(f"no error bound: {n} roundings of unit roundoff {roundoff:g} are unbounded")
    return product / (1 - product)


def weight_error(magnitude: Array, terms: Array, kind: str) -> Array:
    """e_w: how far a weight of |w| = magnitude, made of terms A, may be from the reference's. Same shape as its inputs.

    kind: the type it has when multiplied, "fp32" or "fp16".
    """
    decode = gamma(2, ROUNDOFF["fp32"]) * terms
    return 2 * decode + _conversion_error(magnitude + decode, kind)


def activation_error(magnitude: Array, kind: str, stored: str) -> Array:
    """e_x: how far an activation of |x| = magnitude, of type `stored`, may be from itself when multiplied as `kind`."""
    if kind == stored:
        return np.zeros_like(magnitude)
    return _conversion_error(magnitude, kind)


def _conversion_error(magnitude: Array, kind: str) -> Array:
    if kind == "fp32":
        return np.zeros_like(magnitude)
    if kind == "fp16":
        return 2 * ROUNDOFF["fp16"] * magnitude + SUBNORMAL_SPACING_FP16
    raise UnusableInput(f"the proof has no error bound for operands of type {kind!r}; it knows fp32 and fp16")


def element_bound(
    want: Array, magnitude: Array, perturbed: Array, arithmetic: Arithmetic, k: int, y_dtype: str = "fp32"
) -> Array:
    """The bound on |got[i, j] - want[i, j]|, f64[m, n].

    want = sum_k x w, magnitude = sum_k |x| |w|, perturbed = sum_k (|x| + e_x)(|w| + e_w), all f64[m, n].
    Raises UnusableInput where the arithmetic has no bound.
    """
    if arithmetic.accumulator not in SMALLEST_NORMAL:
        raise UnusableInput(f"the proof has no error bound for accumulators of type {arithmetic.accumulator!r}")
    roundings = arithmetic.depth + arithmetic.parts
    operands = np.maximum(perturbed - magnitude, 0.0)
    summation = gamma(roundings, ROUNDOFF[arithmetic.accumulator]) * perturbed
    underflow = 2 * k * SMALLEST_NORMAL[arithmetic.accumulator]
    reference = gamma(k, ROUNDOFF["fp64"]) * magnitude
    computed = operands + summation + underflow
    store = ROUNDOFF[y_dtype] * (np.abs(want) + computed)
    if y_dtype == "fp16":
        store = store + SUBNORMAL_SPACING_FP16
    bound: Array = computed + store + reference
    return bound
