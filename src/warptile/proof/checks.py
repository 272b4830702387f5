"""The proof's checks: each a named, pure question about what one launch left behind.

A check returns None, or a `Finding` with its own name. They are asked in the order of `CHECKS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warptile.contracts import FirstWrong, Observation
from warptile.contracts.samples import neighbours

NMSE_LIMIT = 5e-4
NMSE_ELEMENTS = 64
OVERFLOW = {"fp32": 2.0**128, "fp16": 65520.0, "bf16": 2.0**128 * (1 - 2.0**-9)}
"""From where on a number is rounded to infinity: half a unit in the last place above a type's largest."""

DIRECT = (
    "decode",
    "reached",
    "poisoned",
    "launch",
    "guards",
    "inputs",
    "written",
    "finite",
    "nmse",
    "bound",
    "exact",
    "special",
    "deterministic",
    "hazard",
)
"""Of every proof: what is asked of the binary as it is served."""

CHECKED = ("outside", "barrier", "race", "uninitialised", "once")
DELAYED = ("schedule",)
"""Of builds with the instrument of that name."""

CHECKS = (*DIRECT, *CHECKED, *DELAYED)


@dataclass(frozen=True)
class Finding:
    """What a check found wrong: its name, one line, and the first wrong element where there is one."""

    check: str
    detail: str
    first_wrong: FirstWrong | None = None


def launched(
    executed: Sequence[int], described: Sequence[int], binary: int, helpers: Set[int] = frozenset()
) -> Finding | None:
    """ "launch": every launch was described with the id of `binary` (one at least) or of one of its `helpers`, and the
    device wrote that very id for every launch.
    """
    if not described:
        return Finding("launch", "the kernel described no launch")
    for position, identity in enumerate(described):
        if identity != binary and identity not in helpers:
            return Finding("launch", f"launch {position} names binary {identity:08x}, compiled was {binary:08x}")
    if binary not in described:
        return Finding("launch", f"{len(described)} launches of helpers alone, none of binary {binary:08x}")
    if len(executed) != len(described):
        return Finding("launch", f"{len(described)} launches, the device reported {len(executed)}")
    for position, (identity, expected) in enumerate(zip(executed, described, strict=True)):
        if identity != expected:
            what = "did not run" if identity == 0 else f"ran binary {identity:08x}"
            return Finding("launch", f"launch {position} {what}, expected {expected:08x}")
    return None


def guards_intact(intact: Mapping[str, bool]) -> Finding | None:
    """ "guards": no byte outside any buffer was written. Keys are the buffers' names."""
    broken = [name for name, whole in intact.items() if not whole]
    return Finding("guards", f"written outside the bounds of {', '.join(broken)}") if broken else None


def unchanged(name: str, before: NDArray[Any], after: NDArray[Any]) -> Finding | None:
    """ "inputs": an input's bytes are what was uploaded."""
    one, other = (np.ascontiguousarray(a).reshape(-1).view(np.uint8) for a in (before, after))
    if one.size != other.size:
        return Finding("inputs", f"{name} has {other.size} bytes, {one.size} were uploaded")
    different = np.flatnonzero(one != other)
    if different.size:
        return Finding("inputs", f"{name} was written to: {different.size} bytes differ, first at {different[0]}")
    return None


def poisoned(before: NDArray[Any], poison: int) -> Finding | None:
    """ "poisoned": the output, read back before the launch, holds the poison and nothing an earlier run left."""
    other = before != poison
    if not other.any():
        return None
    return Finding(
        "poisoned",
        f"{int(other.sum())} of {other.size} elements of y held something else than their poison before the launch,"
        f" first element {int(np.argmax(other))}",
    )


def written(y: NDArray[Any], poison: int) -> Finding | None:
    """ "written": no element of y[m, n] still holds the bit pattern it was poisoned with."""
    left = y.view(np.dtype(f"u{y.dtype.itemsize}")) == poison
    if not left.any():
        return None
    row, column = _first(left)
    return Finding("written", f"{int(left.sum())} of {left.size} elements were not written, first y[{row}, {column}]")


def finite(y: NDArray[Any], want: NDArray[np.float64]) -> Finding | None:
    """ "finite": no element of y[m, n] is NaN or infinite; inputs are finite, the bytes around them are NaN.

    want[m, period]: what it should be, repeated along n.
    """
    bad = ~np.isfinite(y)
    if not bad.any():
        return None
    row, column = _first(bad)
    return Finding(
        "finite",
        f"{int(bad.sum())} of {bad.size} elements are not finite, first y[{row}, {column}] = {float(y[row, column])}",
        FirstWrong(row, column, float(y[row, column]), float(want[row, column % want.shape[1]]), 0.0),
    )


def nmse(y: NDArray[Any], want: NDArray[np.float64]) -> float:
    """sum((y - want)^2) / sum(want^2); where want is all zero: 0.0 if y is too, else infinity."""
    error = float(np.square(y.astype(np.float64) - want).sum())
    scale = float(np.square(want).sum())
    if scale == 0.0:
        return 0.0 if error == 0.0 else float("inf")
    return error / scale


def normalised(value: float) -> Finding | None:
    """ "nmse": NMSE <= 5e-4, the limit public engines use; necessary, never sufficient.

    Asked of at least 64 elements: a few sums that happen to cancel have any NMSE, however well they are computed.
    """
    return None if value <= NMSE_LIMIT else Finding("nmse", f"NMSE {value:.3g} > {NMSE_LIMIT:g}")


def bounded(
    y: NDArray[Any],
    want: NDArray[np.float64],
    bound: NDArray[np.float64],
    ratios: NDArray[np.float64],
    column0: int = 0,
) -> Finding | None:
    """ "bound": |y[i, j] - want[i, j]| <= bound[i, j] for every element; y's first column is `column0` of the whole.

    ratios: what `ratios` says of the three.
    """
    bad = ~(ratios <= 1.0)
    if not bad.any():
        return None
    row, column = _first(bad)
    got, wanted, most = (float(a[row, column]) for a in (y, want, bound))
    wrong = FirstWrong(row, column0 + column, got, wanted, most)
    return Finding(
        "bound",
        f"{int(bad.sum())} of {bad.size} elements exceed their bound, first y[{row}, {wrong.column}] = {got:.9g},"
        f" want {wanted:.9g} +- {most:.3g}",
        wrong,
    )


def exact(y: NDArray[Any], want: NDArray[np.float64], y_dtype: str = "fp32") -> Finding | None:
    """ "exact": y is want to the bit, where every partial sum is representable; where want itself is no number of y's
    type, one of the two that enclose it (Vulkan and Triton's interpreter leave the direction of a conversion open).

    +0 and -0 are one value.
    """
    nearest, other = neighbours(want, y_dtype)
    bad = (y != nearest) & (y != other)
    if not bad.any():
        return None
    row, column = _first(bad)
    wrong = FirstWrong(row, column, float(y[row, column]), float(want[row, column]), 0.0)
    return Finding(
        "exact",
        f"{int(bad.sum())} of {bad.size} elements differ on integer inputs, first y[{row}, {column}] = {wrong.got:.9g},"
        f" want {wrong.want:.9g}",
        wrong,
    )


def special(
    y: NDArray[Any],
    want: NDArray[np.float64],
    bound: NDArray[np.float64],
    wild: NDArray[np.bool_],
    y_dtype: str = "fp32",
    most: NDArray[np.float64] | None = None,
) -> Finding | None:
    """ "special": what is not finite stays so, what overflows is infinite, and neither touches another row.

    wild: bool[m], rows of x that hold NaN or Inf: no element of their y is finite (w is: NaN w is NaN, Inf w is Inf,
    or NaN where w is 0, and sums of these stay NaN or Inf, so that a device may say either). Elsewhere |y - want| <=
    bound; where |want| + bound passes the largest number of y's type y may be infinite with want's sign, and must be
    where |want| - bound does. most: f64[m, n], magnitudes a sum may reach on its way where its accumulator is fp16: an
    element of more than 65504 may overflow there.
    """
    lost = wild[:, None] & np.isfinite(y)
    if lost.any():
        row, column = _first(lost)
        return Finding(
            "special", f"x[{row}] holds NaN or Inf, y[{row}, {column}] = {float(y[row, column]):.9g} is finite"
        )
    top = OVERFLOW[y_dtype]
    size = np.abs(want)
    may = size + bound >= top
    if most is not None:
        may |= most >= OVERFLOW["fp16"]
    infinite = np.isinf(y) & (np.sign(y.astype(np.float64)) == np.sign(want))
    error = np.abs(np.where(np.isfinite(y), y, 0).astype(np.float64) - want)
    near = np.isfinite(y) & ((error <= bound) | (error == 0)) & ~(size - bound >= top)
    if most is not None:
        # A sum that overflowed may meet one of the other sign.
        near |= ~np.isfinite(y) & (most >= OVERFLOW["fp16"])
    bad = ~wild[:, None] & ~(near | (may & infinite))
    if not bad.any():
        return None
    row, column = _first(bad)
    got, wanted, allowed = (float(a[row, column]) for a in (y, want, bound))
    return Finding(
        "special",
        f"{int(bad.sum())} of {bad.size} elements are wrong beside rows of NaN, Inf, zeros, subnormal or large numbers,"
        f" first y[{row}, {column}] = {got:.9g}, want {wanted:.9g} +- {allowed:.3g}",
        FirstWrong(row, column, got, wanted, allowed),
    )


def repeated(first: NDArray[Any], second: NDArray[Any]) -> Finding | None:
    """ "deterministic": two runs on equal inputs are equal in every byte."""
    unsigned = np.dtype(f"u{first.dtype.itemsize}")
    bad = first.view(unsigned) != second.view(unsigned)
    if not bad.any():
        return None
    row, column = _first(bad)
    return Finding(
        "deterministic",
        f"two runs differ in {int(bad.sum())} of {bad.size} elements, first y[{row}, {column}] ="
        f" {float(first[row, column]):.9g} then {float(second[row, column]):.9g}",
    )


def faultless(observation: Observation) -> Finding | None:
    """The first fault that an instrumented run reports, named by its kind: "launch" (every workgroup of the very binary
    began and ended), "outside", "barrier", "race", "uninitialised" or "once"."""
    if not observation.faults:
        return None
    first, *others = observation.faults
    more = f"; and {len(others)} more of {', '.join(dict.fromkeys(f.kind for f in others))}" if others else ""
    return Finding(first.kind, f"{first.text}{more}")


def unscheduled(first: NDArray[Any], second: NDArray[Any], seed: int) -> Finding | None:
    """ "schedule": y is equal in every byte when workgroups and warps run in another order and at other speeds."""
    found = repeated(first, second)
    return None if found is None else Finding("schedule", f"order of seed {seed}: {found.detail}")


def unwavering(hazard: str, runs: Sequence[NDArray[Any]]) -> Finding | None:
    """ "hazard": many runs on the same buffers are equal in every byte, where the compiled code is of a kind that may
    be wrong now and then (`hazard` says which)."""
    for number, y in enumerate(runs[1:], start=2):
        found = repeated(runs[0], y)
        if found is not None:
            return Finding("hazard", f"{hazard}: run {number} of {len(runs)}: {found.detail}")
    return None


def ratios(y: NDArray[Any], want: NDArray[np.float64], bound: NDArray[np.float64]) -> NDArray[np.float64]:
    """|y - want| / bound of every element; 0 / 0 is 0, anything else over 0 is infinite."""
    error = np.abs(y.astype(np.float64) - want)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: NDArray[np.float64] = np.divide(error, bound, out=np.zeros_like(error), where=error != 0.0)
    return found


def _first(mask: NDArray[np.bool_]) -> tuple[int, int]:
    row, column = np.unravel_index(int(np.argmax(mask)), mask.shape)
    return int(row), int(column)
