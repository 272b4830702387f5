"""The per-element bound on |got - want|, derived from the format and the kernel's arithmetic.

Source: N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition (SIAM 2002), sections 2.2 (model
fl(a op b) = (a op b)(1 + delta), |delta| <= u; with underflow an absolute eta besides), 3.1 and 3.2 (inner products).

Notation: u = 2^-24 (fp32) or 2^-11 (fp16), gamma_n = n u / (1 - n u), w the weight in exact arithmetic, A the sum of
the magnitudes of the terms it is made of (|d q| + |m|; |w| where the format has no minimum), x the activation.

1. Decode. A weight is scale * (code - offset) - minimum. A device may round each term once (Higham 2.4) and their
   difference once, so |decoded - w| <= gamma_2 A: relative to A and not to |w|, since the terms may cancel. The
   reference decode is fp32 as well: gamma_2 A again.
2. Operands, of at most fp16's 65504 where they become fp16. Rounded to fp16, v moves by at most 2 u16 |v| + 2^-24:
   twice the unit roundoff and one subnormal spacing, because Vulkan leaves the direction of a conversion to fp16 to
   the device (specification, "Precision and Operation of SPIR-V Instructions"); activations that arrive as fp16 do not
   move. Rounded to bf16 or tf32, v moves by at most 2 u |v| with u = 2^-8 or 2^-11 (matrix units may cut tf32) and the
   smallest normal number. A weight made in fp16 over its row's unit ("fp16 unit": `layouts.triton.arrangement`) has
   scale and minimum rounded to fp16, then the product, then the difference: 2 u16 A + u16 |w|, and where one of the
   four is subnormal half a spacing of 2^-24 units each. Where the device then rounds scale and minimum to bf16 as well
   and makes the weight by one fused multiply-add in bf16 ("bf16 factors from fp16 unit"), they move by 2 u A more, and
   the result by 2 u |w| (u = 2^-8) in place of fp16's u16 |w|. With both, a weight is off by at most e_w = alpha A +
   beta |w| + eta_w + upsilon U (U: the unit) and an activation by e_x = xi |x| + eta_x (`Moves`), and |sum (x + dx)
   (w + dw) - sum x w| <= E = sum |x| e_w + e_x |w| + e_x e_w. Scales and minimums kept as fp16 pairs ("fp16 scales")
   move |d q| + |m| by at most 2 u16 A, and by one subnormal spacing for each of at most 128 steps and the minimum.
   Activations quantized to int8 in blocks ("q8_1": 32 elements; "q8_N": N): with a the largest |x| of the block, s =
   fl(a fl(1 / 127)) is a / 127 but for two roundings, and fl(x fl(1 / s)) is x / s but for six (Vulkan's division is
   exact to 2.5 units in the last place, five roundings). The code is the nearest whole number, so |s code - x| <= s /
   2 + gamma_8 |x| and e_x = a (1 + gamma_2) / 254 + gamma_8 |x| + eta_x: a block whose s underflows counts as zero,
   eta_x = 127 * 2^-126.
    Activations brought into fp16's upper range by a power of two, the largest magnitude a of their part of a row going
    into [2^14, 2^15) ("fp16 over its largest"), move by u16 |x| (bf16: not at all), or by half a subnormal spacing:
    2^-25 / 2^14 of a, which is at most sum |x|. Activations as whole numbers below 2^20 times a power of two, the
    largest magnitude a of a block of 128 within a factor of two of the largest ("fixed 128"), move by half of one:
    2^-20 of a, which is at most sum |x|, or 2^-114 where the power would be beyond its range; below 2^19 ("fixed 128, a
    bit less"), by twice that.
2a. llama.cpp's int8 kernel keeps scales of activations as fp16 ("q8_1 fp16"): s moves by at most 2 u16 s and one
    subnormal spacing, so s code, of magnitude at most a, by 2 u16 a (1 + gamma_2) + 127 * 2^-24. A minimum is
    multiplied by the sum of its block's activations, kept as fp16 too: its move counts as a second one of the weight's
    terms ("fp16 scales twice").
2b. A weight decoded in fp16 ("fp16 decode"): scale and minimum are rounded to fp16, each by 2 u16 of itself and one
    subnormal spacing, the code minus its offset (at most 255) is exact, and one fused multiply-add rounds the result:
    e_w = 2 u16 (1 + 2 u16)^2 A + 2 u16 |w| + (255 + 2) * 2^-24. Where minimum and
    result are kept in units of 2^6 and the scale in units of 2^-18 (`mul_mm_coop` with decode=subnormal) the spacings
    are 2^-18 for minimum and result and 15 * 2^-42 for code times scale, together less than that; an offset is part
    of its minimum, and of A. A row with a scale of 1/4 or more, s < 2^(E + 1) its largest, has units of 2^(E + 10) and
    spacings of at most 2^-13 s, next to 2 u16 15 s = 2^-6 s that A allows where the largest scale is.
3. Summation. A term passes one multiplication and at most `depth` additions in its accumulator, then `parts` additions
   where partial sums are combined; the first addition (to zero) is exact, so at most depth + parts roundings, in any
   order (Higham 3.5): gamma_{depth + parts} * (sum |x| |w| + E). A fused multiply-add rounds less often.
   A matrix unit keeps products exact, aligns b of them and the accumulator to the largest and cuts what lies below:
   each of b + 1 addends moves by at most 2 u of the sum of magnitudes (Fasi, Higham, Mikaitis, Pranesh, Numerical
   behavior of NVIDIA tensor cores, PeerJ Computer Science 7 (2021) e330; b = 4 on the first, more since). That is 2 (b
   + 1) / b u a term, at most 2.5 u, where a term above has 1: operands of fewer bits than fp32 may be multiplied
   there, so their depth counts 2.5 times.
   An "int32" accumulator sums the products of a block exactly; what is rounded are the block's scaled sum and minimum,
   so the same holds with A in place of |w|: their difference may cancel.
   An underflow costs at most the smallest normal number per operation (devices may flush): 2 k * 2^-126 (fp16: 2^-14).
4. Store. One rounding to y's type: u_y times the largest magnitude the sum can have; twice that for fp16 and bf16, as
   in step 2 (Triton's interpreter cuts, too).
5. The reference itself sums in float64: gamma_k(2^-53) * sum |x| |w|.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import Arithmetic, Wrong

ROUNDOFF = {"fp64": 2.0**-53, "fp32": 2.0**-24, "tf32": 2.0**-11, "fp16": 2.0**-11, "bf16": 2.0**-8}
SMALLEST_NORMAL = {"fp32": 2.0**-126, "fp16": 2.0**-14}
SUBNORMAL_SPACING_FP16 = 2.0**-24
LARGEST_CODE = 255
"""Of any format: codes are at most eight bits, codebook values at most a signed byte."""
LARGEST_STEP = 128
FIXED = "fixed 128"
"""Activations as whole numbers below 2^20, see step 2."""
FIXED_LESS = "fixed 128, a bit less"
"""The same below 2^19."""

MATRIX_UNIT = 2.5
"""Unit roundoffs a term of a matrix unit's sum, see step 3."""
ACTIVATION_BLOCKS: Mapping[str, int] = MappingProxyType(
    {"q8_1": 32, "q8_64": 64, "q8_128": 128, "q8_256": 256, "q8_1 fp16": 32}
)
"""Elements that share a scale in activations quantized to int8 codes of at most 127."""

FACTORS = "bf16 factors"
"""Weights made in bf16 of scales and minimums that are rounded to it, see step 2."""

OVER_LARGEST = "fp16 over its largest"
"""Activations in fp16 after a power of two of their row, see step 2."""

Array = NDArray[np.float64]


class Unbounded(Wrong):
    """The arithmetic has no error bound, so a result cannot be told right from wrong."""


def gamma(n: int, roundoff: float) -> float:
    """gamma_n = n u / (1 - n u) (Higham, lemma 3.1). Raises Unbounded where n u >= 1."""
    product = n * roundoff
    if product >= 1:
        raise Unbounded(f"no error bound: {n} roundings of unit roundoff {roundoff:g} are unbounded")
    return product / (1 - product)


@dataclass(frozen=True)
class Moves:
    """How far one operand may move: alpha A + beta |v| + eta + upsilon U + block a + spread S.

    A: the terms a weight is made of; U: its row's unit; a: the largest magnitude in an activation's block; S: the sum
    of all magnitudes of an activation's row.
    """

    alpha: float
    beta: float
    eta: float
    upsilon: float = 0.0
    block: float = 0.0
    spread: float = 0.0


@dataclass(frozen=True)
class BlockSums:
    """Sums with a, the largest |x| of each block along k, in place of |x|: products, terms f64[m, n], x f64[m, 1]."""

    products: Array
    terms: Array
    x: Array

    def part(self, m: int, n: int) -> BlockSums:
        """The sums of the first m activation rows and n weight rows."""
        return BlockSums(self.products[:m, :n], self.terms[:m, :n], self.x[:m])


@dataclass(frozen=True)
class Sums:
    """Sums over k of magnitudes, rounded up, all f64: products[m, n] = |x| |w|, terms[m, n] = |x| A, x[m, 1] = |x|,

    w[1, n] = |w|, amplitudes[1, n] = A; and units[1, n] = U, not summed. blocks: the same by blocks of quantized
    activations, where asked for.
    """

    products: Array
    terms: Array
    x: Array
    w: Array
    amplitudes: Array
    units: Array = field(default_factory=lambda: np.zeros((1, 1)))
    blocks: BlockSums | None = None

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        arrays = [self.products, self.terms, self.x, self.w, self.amplitudes, self.units]
        if self.blocks is not None:
            arrays += [self.blocks.products, self.blocks.terms, self.blocks.x]
        return sum(a.nbytes for a in arrays)

    def of_terms(self) -> Sums:
        """The sums with A in place of |w|."""
        blocks = self.blocks and BlockSums(self.blocks.terms, self.blocks.terms, self.blocks.x)
        return Sums(self.terms, self.terms, self.x, self.amplitudes, self.amplitudes, self.units, blocks)

    def part(self, m: int, n: int) -> Sums:
        """The sums of the first m activation rows and n weight rows."""
        blocks = self.blocks and self.blocks.part(m, n)
        columns = self.w[:, :n], self.amplitudes[:, :n], self.units[:, :n]
        return Sums(self.products[:m, :n], self.terms[:m, :n], self.x[:m], *columns, blocks)


def weight_moves(kind: str) -> Moves:
    """e_w of a weight that is multiplied as `kind`: decode on both sides, then the conversion.

    kind: "fp32", "fp16", "bf16" or "tf32"; after " from fp16 unit": converted to that from fp16 over its row's unit;
    "fp16 scales" (a whole-number code with its scale and minimum rounded to fp16) or "fp16 decode" (step 2b).
    """
    decode = gamma(2, ROUNDOFF["fp32"])
    if kind == "fp16 scales twice":
        once = 2 * ROUNDOFF["fp16"] * (1 + decode)
        return Moves(2 * decode + once + once * (1 + once), 0.0, 2 * (LARGEST_STEP + 1) * SUBNORMAL_SPACING_FP16)
    if kind == "fp16 scales":
        return Moves(2 * decode + 2 * ROUNDOFF["fp16"] * (1 + decode), 0.0, (LARGEST_STEP + 1) * SUBNORMAL_SPACING_FP16)
    if kind == "fp16 decode":
        u = 2 * ROUNDOFF["fp16"]
        alpha = 2 * decode + u * (1 + u) ** 2
        return Moves(alpha, u, SUBNORMAL_SPACING_FP16 * (LARGEST_CODE + 2))
    last, _, first = kind.partition(" from ")
    converted = _conversion("bf16" if last == FACTORS else last)
    if not first:
        return Moves(2 * decode + converted.beta * decode, converted.beta, converted.eta)
    if first != "fp16 unit":
        raise Unbounded(f"the proof has no error bound for weights made as {first!r}")
    u = ROUNDOFF["fp16"]
    made = 2 * decode + gamma(2, u)
    result = u
    if last == FACTORS:
        # Scale and minimum are rounded once more, and the multiply-add's result is not fp16's.
        made, result = made + 2 * ROUNDOFF["bf16"] * (1 + made), 0.0
    further = converted.beta if last != "fp16" else 0.0
    alpha = made + (further + result) * made
    upsilon = 2 * SUBNORMAL_SPACING_FP16 * (1 + further)
    return Moves(alpha, result + further * (1 + result), converted.eta if last != "fp16" else 0.0, upsilon)


def activation_moves(kind: str, stored: str) -> Moves:
    """e_x of an activation of type `stored` that is multiplied as `kind`."""
    if kind == FIXED_LESS:
        return Moves(0.0, 0.0, 2.0**-114, spread=2.0**-19)
    if kind == FIXED:
        return Moves(0.0, 0.0, 2.0**-114, spread=2.0**-20)
    if kind in ACTIVATION_BLOCKS:
        near = gamma(2, ROUNDOFF["fp32"])
        if kind.endswith(" fp16"):
            block = (1 + near) / 254 + 2 * ROUNDOFF["fp16"] * (1 + near)
            return Moves(0.0, gamma(8, ROUNDOFF["fp32"]), 127 * SUBNORMAL_SPACING_FP16, block=block)
        return Moves(0.0, gamma(8, ROUNDOFF["fp32"]), 127 * SMALLEST_NORMAL["fp32"], block=(1 + near) / 254)
    if kind == OVER_LARGEST:
        return Moves(0.0, 0.0 if stored == "bf16" else ROUNDOFF["fp16"], SMALLEST_NORMAL["fp32"], spread=2.0**-39)
    return Moves(0.0, 0.0, 0.0) if kind == stored else _conversion(kind)


def _conversion(kind: str) -> Moves:
    if kind == "fp32":
        return Moves(0.0, 0.0, 0.0)
    if kind == "fp16":
        return Moves(0.0, 2 * ROUNDOFF["fp16"], SUBNORMAL_SPACING_FP16)
    if kind in ("bf16", "tf32"):
        return Moves(0.0, 2 * ROUNDOFF[kind], SMALLEST_NORMAL["fp32"])
    known = ", ".join(
        ("fp32", "fp16", "bf16", "tf32", OVER_LARGEST, FIXED, FIXED_LESS, "fp16 scales", *ACTIVATION_BLOCKS)
    )
    raise Unbounded(f"the proof has no error bound for operands of type {kind!r}; it knows {known}")


def operand_error(sums: Sums, w: Moves, x: Moves, k: int) -> Array:
    """E = sum |x| e_w + e_x |w| + e_x e_w, f64[m, n], with e_w and e_x as `Moves`.

    Raises Unbounded where activations move by blocks and the sums are not by blocks.
    """
    eta = w.eta + w.upsilon * sums.units
    x_e_w = w.alpha * sums.terms + w.beta * sums.products + eta * sums.x
    e_w = w.alpha * sums.amplitudes + w.beta * sums.w + k * eta
    x_eta = x.eta + x.spread * sums.x
    error: Array = (1 + x.beta) * x_e_w + x_eta * e_w + x.beta * sums.products + x_eta * sums.w
    if x.block:
        if sums.blocks is None:
            raise Unbounded("no error bound: activations are quantized in blocks, the reference has no sums of blocks")
        blocks = sums.blocks
        a_e_w = w.alpha * blocks.terms + w.beta * blocks.products + eta * blocks.x
        error = error + x.block * (blocks.products + a_e_w)
    return error


def element_bound(
    want: Array, sums: Sums, arithmetic: Arithmetic, k: int, x_dtype: str = "fp32", y_dtype: str = "fp32"
) -> Array:
    """The bound on |got[i, j] - want[i, j]|, f64[m, n], for want = sum_k x w.

    Raises Unbounded where the arithmetic has no bound.
    """
    in_blocks = arithmetic.accumulator == "int32"
    accumulator = "fp32" if in_blocks else arithmetic.accumulator
    if accumulator not in SMALLEST_NORMAL:
        raise Unbounded(f"the proof has no error bound for accumulators of type {arithmetic.accumulator!r}")
    moved = weight_moves(arithmetic.weights), activation_moves(arithmetic.activations, x_dtype)
    operands = operand_error(sums, *moved, k)
    on_matrix_unit = not in_blocks and accumulator == "fp32" and not arithmetic.weights.startswith("fp32")
    roundings = math.ceil(arithmetic.depth * (MATRIX_UNIT if on_matrix_unit else 1.0)) + arithmetic.parts
    summed = sums.products + operands
    underflow: Array | float = 2 * k * SMALLEST_NORMAL[accumulator]
    if in_blocks:
        summed = sums.terms + operand_error(sums.of_terms(), *moved, k)
        # What underflows within a block is multiplied by the block's scale, less than the sum of all a.
        underflow = underflow * (1 + sums.x if sums.blocks is None else 1 + sums.blocks.x)
    summation = gamma(roundings, ROUNDOFF[accumulator]) * summed
    computed = operands + summation + underflow
    store = ROUNDOFF[y_dtype] * (1 if y_dtype == "fp32" else 2) * (np.abs(want) + computed)
    if y_dtype == "fp16":
        store = store + SUBNORMAL_SPACING_FP16
    bound: Array = computed + store + gamma(k, ROUNDOFF["fp64"]) * sums.products
    return bound
