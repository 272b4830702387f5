"""Inputs and float64 references, computed once and shared by every tile that is proved on them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import UnusableInput
from warptile.contracts.runtime import sample_dtype
from warptile.formats import Format
from warptile.layouts import PackedWeights, pack
from warptile.proof.bounds import activation_error, weight_error
from warptile.proof.weights import EXACT_GRANULE, exact_blocks, random_blocks, terms

U8 = NDArray[np.uint8]
F64 = NDArray[np.float64]
Kind = Literal["random", "exact", "real"]

ROWS_AT_ONCE = 64
EXACT_BITS = {"fp32": 24, "fp16": 11}


@dataclass(frozen=True)
class Wanted:
    """What decides a case apart from its size.

    fmt: the weights' format; k: the reduction; kind: "random", "exact" or "real" weights; x_dtype, weights,
    activations, accumulator: types as in `Problem` and `Arithmetic`; seed: of everything drawn.
    """

    fmt: Format
    k: int
    kind: Kind
    seed: int
    x_dtype: str
    weights: str
    activations: str
    accumulator: str


@dataclass(frozen=True)
class Case:
    """Inputs and reference: x[m, k], blocks u8[n, row bytes], and f64[m, n] of

    want = sum_k x w; magnitude = sum_k |x| |w|; perturbed = sum_k (|x| + e_x)(|w| + e_w) (see `bounds`).
    """

    x: NDArray[np.float32] | NDArray[np.float16]
    blocks: U8
    want: F64
    magnitude: F64
    perturbed: F64

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(a.nbytes for a in (self.x, self.blocks, self.want, self.magnitude, self.perturbed))

    def part(self, m: int, n: int) -> Case:
        """The case of the first m activation rows and n weight rows."""
        return Case(self.x[:m], self.blocks[:n], *(a[:m, :n] for a in (self.want, self.magnitude, self.perturbed)))


class ReferenceCache:
    """Cases and packed weights, least recently used first out, within `max_bytes`.

    A random case's rows depend on their index and the seed alone, so a larger case starts with the smaller one, and
    every tile is proved on parts of one: all (m, n) of a k share one reference.
    """

    def __init__(self, max_bytes: int = 192 << 20) -> None:
        self._max_bytes = max_bytes
        self._cases: OrderedDict[object, Case] = OrderedDict()
        self._packed: OrderedDict[object, PackedWeights] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(c.nbytes for c in self._cases.values()) + sum(p.nbytes for p in self._packed.values())

    def case(self, wanted: Wanted, m: int, n: int, blocks: U8 | None = None) -> Case:
        """x[m, k], w[n, k] and their reference. blocks: the weights of kind "real", u8[>= n, row bytes].

        Raises UnusableInput where real weights decode to Inf or NaN.
        """
        key = (wanted, _digest(blocks))
        held = self._cases.get(key)
        if held is None or len(held.x) < m or len(held.blocks) < n:
            rows_m, rows_n = (0, 0) if held is None else (len(held.x), len(held.blocks))
            held = build(
                wanted, max(rows_m, _round_up(m)), n if blocks is not None else max(rows_n, _round_up(n)), blocks
            )
            self._cases[key] = held
        self._cases.move_to_end(key)
        self._trim()
        return held.part(m, n)

    def packed(self, wanted: Wanted, case: Case, slices: int) -> PackedWeights:
        """The case's weights in their layout, in at least `slices` slices where there are as many rows."""
        n = len(case.blocks)
        key = (wanted.fmt.name, wanted.k, slices, n, _digest(case.blocks))
        found = self._packed.get(key)
        if found is None:
            rows = -(-n // slices)
            most = None if slices == 1 else wanted.fmt.layout.offsets(rows, wanted.k)[1] * 4
            found = pack(wanted.fmt, np.ascontiguousarray(case.blocks), n, wanted.k, most)
            self._packed[key] = found
        self._packed.move_to_end(key)
        self._trim()
        return found

    def _trim(self) -> None:
        while self.nbytes > self._max_bytes and (len(self._packed) > 1 or len(self._cases) > 1):
            (self._packed if len(self._packed) > 1 else self._cases).popitem(last=False)


def build(wanted: Wanted, m: int, n: int, blocks: U8 | None = None) -> Case:
    """Draw x[m, k] and w[n, k] and compute their reference, 64 weight rows at a time.

    Exact cases: x is integers -3..3; where sum_k |x| A would pass 2^24 (fp16 accumulators: 2^11) granules of 1/4
    it is -1..1, and 0 but for a random choice, so that every partial sum in any order is representable.
    """
    if blocks is None:
        draw = exact_blocks if wanted.kind == "exact" else random_blocks
        fmt, per_row = wanted.fmt, wanted.k // wanted.fmt.block_size
        drawn: U8 = _rows(n, lambda rng, rows: draw(fmt, rows * per_row, rng).reshape(rows, -1), wanted.seed, 1)
        blocks = drawn
    x = _activations(wanted, m, blocks)
    size = np.abs(x.astype(np.float64))
    near = size + activation_error(size, wanted.activations, wanted.x_dtype)
    want, magnitude, perturbed = (np.empty((m, len(blocks))) for _ in range(3))
    for start in range(0, len(blocks), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        w, amplitude = _decode(wanted, blocks[part])
        if wanted.kind == "exact" and wanted.weights == "fp16" and (w != w.astype(np.float16)).any():
            raise UnusableInput(f"{wanted.fmt.name}: the exact weights do not fit fp16")
        if not np.isfinite(w).all():
            raise UnusableInput(f"{wanted.fmt.name} weights of k={wanted.k} decode to Inf or NaN in rows {start}..")
        want[:, part] = x.astype(np.float64) @ w.T
        magnitude[:, part] = size @ np.abs(w).T
        perturbed[:, part] = near @ (np.abs(w) + weight_error(np.abs(w), amplitude, wanted.weights)).T
    return Case(x, blocks, want, magnitude, perturbed)


def _activations(wanted: Wanted, m: int, blocks: U8) -> NDArray[np.float32] | NDArray[np.float16]:
    dtype = sample_dtype(wanted.x_dtype)
    k = wanted.k
    if wanted.kind != "exact":
        drawn = _rows(m, lambda rng, rows: rng.standard_normal((rows, k), np.float32), wanted.seed, 2)
        return _as(drawn, dtype)
    limit = EXACT_GRANULE * 2.0 ** EXACT_BITS.get(wanted.accumulator, 24)
    largest = np.zeros(k)
    for start in range(0, len(blocks), ROWS_AT_ONCE):
        largest = np.maximum(largest, _decode(wanted, blocks[start : start + ROWS_AT_ONCE])[1].max(axis=0))
    drawn = _rows(m, lambda rng, rows: rng.integers(-3, 4, (rows, k)).astype(np.float32), wanted.seed, 2)
    if float((np.abs(drawn).astype(np.float64) @ largest).max(initial=0.0)) > limit:
        drawn = _thinned(np.sign(drawn), largest, limit, wanted.seed)
    return _as(drawn, dtype)


def _thinned(x: NDArray[np.float32], largest: F64, limit: float, seed: int) -> NDArray[np.float32]:
    """x[m, k] with all but the first few elements of a random order set to 0: those with sum |x| * largest <= limit."""
    order = np.argsort(_rows(len(x), lambda rng, rows: rng.random((rows, x.shape[1])), seed, 3), axis=1)
    sizes = np.take_along_axis(np.abs(x).astype(np.float64) * largest, order, axis=1)
    kept = np.empty(x.shape, bool)
    np.put_along_axis(kept, order, np.cumsum(sizes, axis=1) <= limit, axis=1)
    return np.where(kept, x, np.float32(0))


def _as(x: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[np.float32] | NDArray[np.float16]:
    stored: NDArray[np.float32] | NDArray[np.float16] = x.astype(dtype)
    return stored


def _rows(n: int, draw: Callable[[np.random.Generator, int], Any], seed: int, stream: int) -> Any:
    """n rows, drawn 64 at a time from (seed, stream, index of the 64), so that they do not depend on n."""
    starts = range(0, n, ROWS_AT_ONCE)
    return np.concatenate([draw(np.random.default_rng((seed, stream, s)), ROWS_AT_ONCE) for s in starts])[:n]


def _decode(wanted: Wanted, blocks: U8) -> tuple[F64, F64]:
    w, amplitude = terms(wanted.fmt, blocks.reshape(-1, wanted.fmt.block_bytes))
    return w.reshape(len(blocks), wanted.k), amplitude.reshape(len(blocks), wanted.k)


def _digest(blocks: U8 | None) -> bytes:
    return b"" if blocks is None else hashlib.blake2b(np.ascontiguousarray(blocks).data, digest_size=16).digest()


def _round_up(rows: int) -> int:
    return -(-rows // ROWS_AT_ONCE) * ROWS_AT_ONCE
