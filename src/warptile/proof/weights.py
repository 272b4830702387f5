"""Weights to prove on: blocks of any format, drawn field by field so that their values are sane."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import UnusableInput
from warptile.formats import Format
from warptile.layouts import Fields
from warptile.layouts.small_scales import OddScale
from warptile.layouts.triton.arrangement import unit_exponents
from warptile.layouts.trits import HalfInTrits

U8 = NDArray[np.uint8]
F64 = NDArray[np.float64]

EXACT_GRANULE = 0.25
_SMALL, _SMALLER = 3.0, 2.0
_EXPONENT = "e"
_MINI_FLOAT = "s"


def random_blocks(fmt: Format, count: int, rng: np.random.Generator, octaves: tuple[float, float] = (-8.0, -4.0)) -> U8:
    """u8[count, block_bytes] of random codes and group scales, with scales like a trained model's.

    Random bytes as fp16 are often Inf or NaN, so the fp16 fields are drawn: the block's root mean square is
    log-uniform in `octaves` (powers of two); d has either sign; another fp16 field (a minimum) is 4 to 12 times d,
    either sign. One block in 32 has a subnormal d of at most 2^-15, one in 64 is zero.
    """
    codes, scales = _split(fmt, rng.integers(0, 256, (count, fmt.block_bytes), np.uint8))
    if _EXPONENT in scales:
        scales[_EXPONENT] = rng.integers(118, 126, scales[_EXPONENT].shape, np.uint8)
    if _MINI_FLOAT in scales:
        scales[_MINI_FLOAT] = rng.integers(8, 56, scales[_MINI_FLOAT].shape, np.uint8)
    if "d" in scales:
        shape = scales["d"].shape
        one = dict(scales) | {name: _half(np.full(a.shape, name == "d", float)) for name, a in _halves(scales).items()}
        unit = fmt.decode(_join(fmt, codes, one)).astype(np.float64)
        rms = np.sqrt(np.square(unit).mean(axis=1, keepdims=True))
        d = np.exp2(rng.uniform(*octaves, shape)) / np.maximum(rms, 1.0) * rng.choice([-1.0, 1.0], shape)
        d = np.where(rng.random(shape) < 1 / 32, d * 2.0**-15 / np.abs(d), d)
        d = np.where(rng.random(shape) < 1 / 64, 0.0, d)
        for name, array in _halves(scales).items():
            factor = rng.uniform(4, 12, array.shape) * rng.choice([-1.0, 1.0], array.shape)
            scales[name] = _half(d if name == "d" else np.abs(d) * factor)
    return _join(fmt, codes, scales)


def exact_blocks(fmt: Format, count: int, rng: np.random.Generator, bits: int = 24) -> U8:
    """u8[count, block_bytes] whose scales, minimums and values are small multiples of 1/4.

    d times the scale kind's factor is 1/4, 1/2 or 1; other fp16 fields are -1, -1/2, 0, 1/2 or 1; group scales and
    minimums are those integers that mean at most 3; codes are any. Every product and partial sum of such weights with
    small integers is representable. bits: significant bits each weight must fit by itself; below 11, group scales are
    1 and 2 alone, so that a weight has no more bits than its code.
    """
    codes, scales = _split(fmt, rng.integers(0, 256, (count, fmt.block_bytes), np.uint8))
    for name, array in scales.items():
        if array.dtype.itemsize == 2:
            choices = [0.25, 0.5, 1.0] if name == "d" else [-1.0, -0.5, 0.0, 0.5, 1.0]
            scales[name] = _half(rng.choice(choices, array.shape) / _factor(fmt))
        else:
            scales[name] = rng.choice(_small_values(fmt, name, _SMALL if bits >= 11 else _SMALLER), array.shape).astype(
                array.dtype
            )
    return _join(fmt, codes, scales)


def terms(fmt: Format, blocks: U8) -> tuple[F64, F64]:
    """(w, A) of u8[count, block_bytes], each f64[count, block_size].

    w is the reference decode. A is the sum of the magnitudes of the terms a device may build w from:
    |scale| (|code| + |offset|) + |minimum|, with |codebook value - first| + |first| for a codebook's code.
    """
    fields = fmt.split(blocks)
    layout = fmt.layout
    w = layout.values(fields).astype(np.float64)
    scale, minimum = layout.scales.values(fields)
    codes = layout.codes.values(fields.codes)
    if layout.codebook is not None:
        book = np.array(layout.codebook.values, np.float64)
        steps = np.abs(book - book[0])[codes] + abs(book[0])
    else:
        steps = codes.astype(np.float64) + abs(layout.offset)
    amplitude = steps.reshape(len(scale), scale.shape[1], -1) * np.abs(scale.astype(np.float64))[:, :, None]
    if minimum is not None:
        amplitude += np.abs(minimum.astype(np.float64))[:, :, None]
    return w, amplitude.reshape(w.shape)


def row_units(fmt: Format, blocks: U8) -> F64:
    """The units of rows u8[rows, row bytes]: see `layouts.triton.arrangement.Arrangement`."""
    with np.errstate(invalid="ignore"):
        scale, _ = fmt.layout.scales.values(fmt.split(blocks.reshape(-1, fmt.block_bytes)))
    exponents = unit_exponents(np.abs(scale.reshape(len(blocks), -1)).max(axis=1))
    units: F64 = np.exp2(exponents.astype(np.float64) - 127)
    return units


def _split(fmt: Format, blocks: U8) -> tuple[U8, dict[str, NDArray[Any]]]:
    """Codes and scale arrays; an fp16 scale that a layout keeps among its code bytes is a scale here."""
    fields = fmt.split(blocks)
    if isinstance(fmt.layout.scales, HalfInTrits):
        return fields.codes, {"d": np.ascontiguousarray(fields.codes[:, -2:]).view("<u2")}
    return fields.codes, dict(fields.scales)


def _join(fmt: Format, codes: U8, scales: dict[str, NDArray[Any]]) -> U8:
    """Inverse of `_split`."""
    if isinstance(fmt.layout.scales, HalfInTrits):
        return fmt.join(Fields(np.concatenate([codes[:, :-2], scales["d"].view(np.uint8)], axis=1)))
    return fmt.join(Fields(codes, scales))


def _halves(scales: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: a for name, a in scales.items() if a.dtype.itemsize == 2}


def _factor(fmt: Format) -> float:
    """The power of two that the scale kind multiplies d by."""
    return fmt.layout.scales.factor if isinstance(fmt.layout.scales, OddScale) else 1.0


def _half(values: NDArray[Any]) -> NDArray[np.uint16]:
    bits: NDArray[np.uint16] = np.asarray(values, np.float64).astype("<f2").view("<u2")
    return bits


def _small_values(fmt: Format, name: str, most: float) -> NDArray[np.uint8]:
    """The stored values of an integer scale field that mean a scale or minimum of at most `most`, scales not 0."""
    fields = fmt.split(np.zeros((256, fmt.block_bytes), np.uint8))
    scales = {
        field: _half(np.ones(a.shape) / _factor(fmt)) if a.dtype.itemsize == 2 else np.ones_like(a)
        for field, a in fields.scales.items()
    }
    scales[name] = np.broadcast_to(np.arange(256, dtype=np.uint8)[:, None], scales[name].shape).copy()
    try:
        stored = fmt.split(fmt.join(dataclasses.replace(fields, scales=scales))).scales[name]
    except (ValueError, OverflowError):
        raise UnusableInput(f"{fmt.name}: field {name!r} has no small exact values") from None
    kept = (stored == scales[name]).all(axis=1)
    scale, minimum = fmt.layout.scales.values(dataclasses.replace(fields, scales=scales))
    small = kept & (np.abs(scale) <= most).all(axis=1) & (scale != 0).all(axis=1) & _whole(scale)
    if minimum is not None:
        small &= (np.abs(minimum) <= most).all(axis=1) & _whole(minimum)
    found = np.flatnonzero(small).astype(np.uint8)
    if not found.size:
        raise UnusableInput(f"{fmt.name}: field {name!r} has no small exact values")
    return found


def _whole(values: NDArray[np.float32]) -> NDArray[np.bool_]:
    whole: NDArray[np.bool_] = (values == np.round(values)).all(axis=1)
    return whole
