"""Activations and outputs as a device keeps them: fp32, fp16, and bf16, which numpy has no type for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.contracts.errors import UnusableInput

_STORAGE: dict[str, np.dtype[Any]] = {
    "fp32": np.dtype(np.float32),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype("<u2"),
}
SAMPLE_TYPES = tuple(_STORAGE)
_QUIET_NAN = 0x7FC0


def storage_dtype(name: str) -> np.dtype[Any]:
    """numpy type of the stored elements: float32, float16, or uint16 for the bits of bf16. Raises UnusableInput."""
    try:
        return _STORAGE[name]
    except KeyError:
        raise UnusableInput(f"activations and outputs are {', '.join(_STORAGE)}; not {name!r}") from None


def sample_type(name: str | None, default: str) -> str:
    """A type of activations and outputs that a person named in any case, or the default. Raises UnusableInput."""
    storage_dtype(chosen := default if name is None else name.strip().lower())
    return chosen


def stored(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Values as they are stored: rounded to nearest, ties to even; what exceeds the type is infinite."""
    kind = storage_dtype(name)
    if name != "bf16":
        with np.errstate(over="ignore"):
            return values.astype(kind, copy=False)
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(_QUIET_NAN), rounded)


def widened(data: NDArray[Any], name: str) -> NDArray[Any]:
    """What stored elements stand for, exact: fp32 and fp16 as they are, bf16 as fp32."""
    if name != "bf16":
        return data
    return (data.astype(np.uint32) << np.uint32(16)).view(np.float32)


def rounded(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Values rounded to a type once, as `widened` gives them."""
    return widened(stored(values, name), name)


def neighbours(values: NDArray[np.float64], name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The two numbers of a type that enclose each value, the nearest first; both the value itself where it is one."""
    bits = stored(values, name).view(np.dtype(f"u{storage_dtype(name).itemsize}"))
    nearest = widened(bits.view(storage_dtype(name)), name)
    # Of one sign, numbers are ordered as their bits are.
    magnitude = np.abs(nearest.astype(np.float64))
    step = np.sign(np.abs(values) - magnitude).astype(np.int64)
    other = (bits.astype(np.int64) + step).astype(bits.dtype)
    return nearest, widened(other.view(storage_dtype(name)), name)
