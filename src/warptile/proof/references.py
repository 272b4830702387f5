"""Inputs and float64 references, computed once and shared by every tile that is proved on them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import UnusableInput
from warptile.contracts.samples import rounded
from warptile.formats import Format
from warptile.layouts import PackedWeights, pack, pack_repeated, slice_bytes
from warptile.proof.bounds import ROUNDOFF, BlockSums, Sums, gamma
from warptile.proof.checks import Finding
from warptile.proof.decoders import decoded
from warptile.proof.drawn import ROWS_AT_ONCE, drawn_rows
from warptile.proof.exact import Reach, whole_numbers, with_block_scales
from warptile.proof.special import LARGE_OCTAVES, special_rows, wild_rows, with_zero_rows
from warptile.proof.weights import exact_blocks, random_blocks, row_units, terms

U8 = NDArray[np.uint8]
F64 = NDArray[np.float64]
Kind = Literal["random", "exact", "real", "special", "whole"]

PERIOD = 61
"""Rows drawn for a whole problem, repeated along n: a prime, so that a row wrong by any tile's size is another row."""

EXACT_BITS = {"fp32": 24, "fp16": 11}
"""Significant bits of an accumulator."""


@dataclass(frozen=True)
class Wanted:
    """What decides a case apart from its size.

    fmt: the weights' format; k: the reduction; kind: "random", "exact" or "real" weights, or "special" (see there);
    seed: of everything drawn;
    x_dtype: type of the activations; exact_bits: bits within which the sums of exact inputs stay; y_dtype: type that
    their sums must fit (see `exact`). x_block: elements along k that quantized activations share a scale in (the case
    then has sums by blocks, and the codes of its exact activations are known: the largest of each block is 127); 0: not
    quantized. operand_bits: significant bits that exact weights must fit to be multiplied unrounded.
    """

    fmt: Format
    k: int
    kind: Kind
    seed: int
    x_dtype: str = "fp32"
    exact_bits: int = 24
    x_block: int = 0
    y_dtype: str = "fp32"
    operand_bits: int = 24


@dataclass(frozen=True)
class Case:
    """Inputs and reference: x[m, k], blocks u8[n, row bytes], want f64[m, n] = sum_k x w, and the bound's sums.

    x of bf16 is held as fp32. sums: None for exact inputs, whose result has no error to bound. Rows of special inputs
    that hold NaN or Inf count as 0 in want and sums.
    """

    x: NDArray[np.float32] | NDArray[np.float16]
    blocks: U8
    want: F64
    sums: Sums | None

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(a.nbytes for a in (self.x, self.blocks, self.want)) + (self.sums.nbytes if self.sums else 0)

    def part(self, m: int, n: int) -> Case:
        """The case of the first m activation rows and n weight rows."""
        sums = self.sums.part(m, n) if self.sums else None
        return Case(self.x[:m], self.blocks[:n], self.want[:m, :n], sums)


class ReferenceCache:
    """Cases and packed weights, least recently used first out, within `max_bytes`.

    A random case's rows depend on their index and the seed alone, so a larger case starts with the smaller one, and
    every tile is proved on parts of one: all (m, n) of a k share one reference.
    """

    def __init__(self, max_bytes: int = 192 << 20) -> None:
        self._max_bytes = max_bytes
        self._cases: OrderedDict[object, Case] = OrderedDict()
        self._packed: OrderedDict[object, PackedWeights] = OrderedDict()
        self._large: tuple[object, PackedWeights] | None = None
        self._decoded: dict[str, Finding | None] = {}

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(c.nbytes for c in self._cases.values()) + sum(p.nbytes for p in self._packed.values())

    def decoded(self, fmt: Format, seed: int) -> Finding | None:
        """ "decode" of a format on drawn bytes, asked once; see `decoders`."""
        if fmt.name not in self._decoded:
            self._decoded[fmt.name] = decoded(fmt, seed)
        return self._decoded[fmt.name]

    def case(self, wanted: Wanted, m: int, n: int, blocks: U8 | None = None) -> Case:
        """x[m, k], w[n, k] and their reference. blocks: the weights of kind "real", u8[>= n, row bytes].

        Raises UnusableInput where real weights decode to Inf or NaN.
        """
        key = (wanted, _digest(blocks))
        held = self._cases.get(key)
        rows_m, rows_n = (0, 0) if held is None else (len(held.x), len(held.blocks))
        if held is None or rows_m < m or rows_n < n:
            rows_m = rows_m if rows_m >= m else max(_round_up(m), rows_m * 3 // 2)
            rows_n = rows_n if rows_n >= n else max(_round_up(n), rows_n * 3 // 2)
            held = build(wanted, rows_m, rows_n, blocks)
            self._cases[key] = held
        self._cases.move_to_end(key)
        self._trim()
        return held.part(m, n)

    def packed(self, wanted: Wanted, case: Case, slice_rows: int = 0, arrangement: str = "rows") -> PackedWeights:
        """The case's weights in their layout, in slices of at most `slice_rows` rows (0: in one)."""
        n = len(case.blocks)
        most = slice_bytes(wanted.fmt, slice_rows, wanted.k, arrangement) if slice_rows else None
        key = (wanted.fmt.name, wanted.k, slice_rows, n, arrangement, _digest(case.blocks))
        blocks = np.ascontiguousarray(case.blocks)
        return self._kept(key, lambda: pack(wanted.fmt, blocks, n, wanted.k, most, arrangement))

    def whole(
        self, wanted: Wanted, case: Case, n: int, max_bytes: int, arrangement: str = "rows", keep_large: bool = False
    ) -> PackedWeights:
        """The case's rows repeated to n rows, in slices of at most `max_bytes`.

        keep_large: keep the last one that takes more than half of the room too, where the host's memory does not hold
        the device's buffers as well.
        """
        key = (wanted.fmt.name, wanted.k, "whole", n, max_bytes, arrangement, _digest(case.blocks))

        def make() -> PackedWeights:
            return pack_repeated(wanted.fmt, case.blocks, n, wanted.k, max_bytes, arrangement)

        if self._large is not None and self._large[0] == key:
            return self._large[1]
        found = self._kept(key, make)
        if keep_large and key not in self._packed:
            self._large = (key, found)
        return found

    def _kept(self, key: object, make: Callable[[], PackedWeights]) -> PackedWeights:
        """A packed weight kept under `key`; one that takes more than half of the room is not kept."""
        found = self._packed.get(key)
        if found is None:
            found = make()
            if found.nbytes > self._max_bytes // 2:
                return found
            self._packed[key] = found
        self._packed.move_to_end(key)
        self._trim()
        return found

    def _trim(self) -> None:
        while self.nbytes > self._max_bytes and (len(self._packed) > 1 or len(self._cases) > 1):
            (self._packed if len(self._packed) > 1 else self._cases).popitem(last=False)


def build(wanted: Wanted, m: int, n: int, blocks: U8 | None = None) -> Case:
    """Draw x[m, k] and w[n, k] and compute their reference, 64 weight rows at a time.

    Exact cases: see `exact`; their fp32 products are exact. The bound's sums are taken in fp32 and raised by
    gamma_{k + 2}, which fp32 sums of positive terms cannot exceed.
    """
    if blocks is None:
        fmt, per_row = wanted.fmt, wanted.k // wanted.fmt.block_size

        def draw(rng: np.random.Generator, rows: int) -> U8:
            if wanted.kind == "exact":
                return exact_blocks(fmt, rows * per_row, rng, wanted.operand_bits).reshape(rows, -1)
            if wanted.kind == "special":
                return random_blocks(fmt, rows * per_row, rng, LARGE_OCTAVES).reshape(rows, -1)
            return random_blocks(fmt, rows * per_row, rng).reshape(rows, -1)

        drawn: U8 = drawn_rows(n, draw, wanted.seed, 1)
        blocks = with_zero_rows(drawn) if wanted.kind == "special" else drawn
    x = _activations(wanted, m, blocks)
    exact = wanted.kind == "exact"
    known = np.where(wild_rows(m)[:, None], 0, x) if wanted.kind == "special" else x
    left = known.astype(np.float32 if exact else np.float64)
    if exact and wanted.x_block:
        left = np.rint(left)
    size = np.abs(known).astype(np.float32)
    n = len(blocks)
    want, products, of_terms = np.empty((m, n)), np.empty((m, n)), np.empty((m, n))
    of_w, of_a = np.empty((1, n)), np.empty((1, n))
    units = np.empty((1, n))
    largest = None if exact or not wanted.x_block else _block_largest(size, wanted.x_block)
    sized = (m, n) if largest is not None else (0, 0)
    block_products, block_terms = np.empty(sized), np.empty(sized)
    for start in range(0, n, ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        w, amplitude = _decode(wanted, blocks[part])
        if not np.isfinite(w).all():
            raise UnusableInput(f"{wanted.fmt.name} weights of k={wanted.k} decode to Inf or NaN in rows {start}..")
        want[:, part] = left @ w.astype(left.dtype).T
        if exact:
            continue
        products[:, part] = size @ np.abs(w).astype(np.float32).T
        of_terms[:, part] = size @ amplitude.astype(np.float32).T
        of_w[0, part], of_a[0, part] = np.abs(w).sum(axis=1), amplitude.sum(axis=1)
        units[0, part] = row_units(wanted.fmt, blocks[part])
        if largest is not None:
            block_products[:, part] = largest @ np.abs(w).astype(np.float32).T
            block_terms[:, part] = largest @ amplitude.astype(np.float32).T
    if exact:
        return Case(x, blocks, want, None)
    up = 1 + gamma(wanted.k + 2, ROUNDOFF["fp32"])
    of_x = size.sum(axis=1, dtype=np.float64, keepdims=True)
    by_blocks = None
    if largest is not None:
        of_largest = largest.sum(axis=1, dtype=np.float64, keepdims=True)
        by_blocks = BlockSums(block_products * up, block_terms * up, of_largest * up)
    sums = Sums(products * up, of_terms * up, of_x * up, of_w * up, of_a * up, units, by_blocks)
    return Case(x, blocks, want, sums)


def _block_largest(size: NDArray[np.float32], block: int) -> NDArray[np.float32]:
    """f32[m, k]: the largest of each block of `block` magnitudes, in each of its places."""
    m, k = size.shape
    top: NDArray[np.float32] = np.repeat(size.reshape(m, k // block, block).max(axis=2), block, axis=1)
    return top


def _activations(wanted: Wanted, m: int, blocks: U8) -> NDArray[np.float32] | NDArray[np.float16]:
    k = wanted.k
    if wanted.kind == "special":
        return rounded(special_rows(m, k, wanted.seed), wanted.x_dtype)
    if wanted.kind != "exact":
        drawn = drawn_rows(m, lambda rng, rows: rng.standard_normal((rows, k), np.float32), wanted.seed, 2)
        return rounded(drawn, wanted.x_dtype)
    amplitudes, weights = np.zeros(k), np.zeros(k)
    for start in range(0, len(blocks), ROWS_AT_ONCE):
        w, of = _decode(wanted, blocks[start : start + ROWS_AT_ONCE])
        amplitudes = np.maximum(amplitudes, of.max(axis=0))
        weights = np.maximum(weights, np.abs(w).max(axis=0))
    reach = Reach(amplitudes, weights, wanted.exact_bits, wanted.y_dtype)
    if wanted.x_block:
        return rounded(with_block_scales(m, reach, wanted.x_block, wanted.seed), wanted.x_dtype)
    return rounded(whole_numbers(m, reach, wanted.seed), wanted.x_dtype)


def _decode(wanted: Wanted, blocks: U8) -> tuple[F64, F64]:
    w, amplitude = terms(wanted.fmt, blocks.reshape(-1, wanted.fmt.block_bytes))
    return w.reshape(len(blocks), wanted.k), amplitude.reshape(len(blocks), wanted.k)


def _digest(blocks: U8 | None) -> bytes:
    return b"" if blocks is None else hashlib.blake2b(np.ascontiguousarray(blocks).data, digest_size=16).digest()


def _round_up(rows: int) -> int:
    return -(-rows // ROWS_AT_ONCE) * ROWS_AT_ONCE
