"""How numbers, matmuls and tiles are written for people, on a terminal or a page."""

from __future__ import annotations

import dataclasses

from warptile.contracts import Problem, UnusableInput
from warptile.kernels import parse_tile
from warptile.race.statistics import UNBOUNDED


def duration(seconds: float | None) -> str:
    """Three digits and a unit: "21.6 ms"."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size or unit == "us":
            return f"{significant(seconds / size)} {unit}"
    raise AssertionError


def significant(value: float) -> str:
    """Three significant digits without an exponent."""
    if value >= 100 or value == 0:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def tile(full: str) -> str:
    """A tile in short, as `--tile` reads it back: bare kernel name, positional values, other fields where not default.

    A tile of a kernel that is not here is shown as it is.
    """
    try:
        kernel, parsed = parse_tile(full)
    except UnusableInput:
        return full
    order = parsed.positional or tuple(parsed.fields())
    defaults = {field.name: field.default for field in dataclasses.fields(parsed)}
    values = parsed.fields()
    rest = [f"{name}={value}" for name, value in values.items() if name not in order and value != defaults[name]]
    return f"{kernel.name.split('.', 1)[-1]}:" + ",".join([*(str(values[name]) for name in order), *rest])


def matmul(problem: Problem) -> str:
    """A problem without its m; its type where that is not fp32."""
    experts = ""
    if problem.grouped:
        kind = "recorded" if problem.routing.startswith("recorded") else problem.routing
        experts = f" e={problem.experts}" + (f" {kind}" if kind not in ("", "uniform") else "")
    kind = f" {problem.x_dtype}" if problem.x_dtype != "fp32" else ""
    return f"{problem.format} n={problem.n} k={problem.k}{experts}{kind}"


def interval(low: float, high: float) -> str:
    """ "[5.67, 7.17]"; "few rounds" where there were too few for an interval."""
    return f"[{low:.2f}, {high:.2f}]" if high < UNBOUNDED else "few rounds"


def ratio(middle: float, low: float, high: float) -> str:
    """ "6.51x [5.67, 7.17]"."""
    return f"{middle:.2f}x {interval(low, high)}"


def floor(value: float) -> str:
    """An A/A floor, "0.4%"; "unknown" where there were too few rounds for one."""
    return f"{value:.1%}" if value < UNBOUNDED - 1 else "unknown"


def span(seconds: float) -> str:
    """ "19 s", "3 min 41 s"."""
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


def short(words: str) -> str:
    """Words of a progress line, two spaces apart, with every tile in short."""
    return "  ".join(tile(word) if ":" in word else word for word in words.split("  "))


def clock(seconds: float) -> str:
    """Minutes and seconds: "4:05"."""
    whole = int(seconds)
    return f"{whole // 60}:{whole % 60:02d}"


def rate(flops_per_s: float) -> str:
    """Three digits and a unit: "312 GFLOP/s"."""
    for unit, size in (("TFLOP/s", 1e12), ("GFLOP/s", 1e9)):
        if flops_per_s >= size:
            return f"{significant(flops_per_s / size)} {unit}"
    return f"{significant(flops_per_s / 1e6)} MFLOP/s"
