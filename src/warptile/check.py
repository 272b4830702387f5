"""Whether one tile is valid on one device, and what it costs on paper: the logic behind `warptile check`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from warptile import formats, kernels
from warptile.contracts import BrokenRule, Limits, Price, Problem

DEFAULT_N, DEFAULT_K, DEFAULT_M = 4096, 4096, 512


@dataclass(frozen=True)
class CheckReport:
    """A tile held against a kernel's rules on one device and problem.

    broken: every rule it breaks; price: what it costs, None where it is not valid.
    """

    kernel: str
    tile: str
    problem: Problem
    device: str
    runtime: str
    broken: tuple[BrokenRule, ...]
    price: Price | None

    @property
    def valid(self) -> bool:
        """Whether no rule is broken."""
        return not self.broken

    @property
    def exit_code(self) -> int:
        """0 where the tile is valid, 1 where it is not."""
        return 0 if self.valid else 1

    def to_json(self) -> dict[str, Any]:
        """One plain dictionary: everything the text form says."""
        return {
            "kernel": self.kernel,
            "tile": self.tile,
            "device": self.device,
            "runtime": self.runtime,
            "problem": dataclasses.asdict(self.problem),
            "valid": self.valid,
            "broken": [
                {"rule": b.rule, "numbers": b.numbers, "only_exceeds_device": b.well_formed} for b in self.broken
            ],
            "price": None if self.price is None else dataclasses.asdict(self.price),
        }


def check(
    tile: str,
    limits: Limits,
    format_name: str,
    *,
    kernel: str | None = None,
    n: int = DEFAULT_N,
    k: int = DEFAULT_K,
    m: int = DEFAULT_M,
    dtype: str = "fp32",
) -> CheckReport:
    """Check a tile's text form on a device's limits, for a matmul of `format_name` weights [n, k] and m tokens in
    `dtype`.

    kernel: needed where the text does not name it. Raises UnusableInput for an unknown kernel, field or format.
    """
    found, parsed = kernels.parse_tile(tile, kernel)
    problem = problem_of(format_name, n, k, m, dtype)
    broken = tuple(found.broken_rules(parsed, problem, limits))
    price = None if broken else found.price(parsed, problem, limits)
    return CheckReport(found.name, parsed.text(), problem, limits.name, limits.runtime, broken, price)


def problem_of(format_name: str, n: int, k: int, m: int, dtype: str = "fp32") -> Problem:
    """The matmul of weights [n, k] in a format (its name in any case) and m tokens, in and out in `dtype`.

    Raises UnusableInput for an unknown format.
    """
    return Problem(_known_format(format_name), n, k, m, dtype, dtype)


def _known_format(name: str) -> str:
    known = {known.lower(): known for known in formats.all_formats()}
    return formats.by_name(known.get(name.lower(), name)).name


def rows(report: CheckReport) -> list[tuple[str, str]]:
    """The report as (what, value) lines."""
    lines = [
        ("tile", report.tile),
        ("device", f"{report.device} through {report.runtime} (from its limits; nothing was run)"),
        ("matmul", report.problem.text()),
        ("verdict", "valid" if report.valid else "invalid" if _malformed(report) else "does not fit this device"),
    ]
    lines += [("broken rule", rule.text()) for rule in report.broken]
    price = report.price
    if price is not None:
        lines += [
            ("accumulators", f"{price.accumulators} a thread"),
            ("registers", f"{price.registers} a thread, estimated{', expected to spill' if price.spills else ''}"),
            ("shared bytes", f"{price.shared_bytes} a workgroup"),
            ("threads resident", f"{price.resident_threads} a unit, limited by {price.limited_by}"),
            ("barriers", f"{price.barriers} a K-step"),
            ("workgroups", f"{price.workgroups}, last wave {price.fill:.0%} full"),
            ("intensity", f"{price.intensity:.1f} FLOP a byte"),
        ]
        lines += [("note", note) for note in price.notes]
    return lines


def plain(report: CheckReport) -> str:
    """The report as aligned plain text."""
    lines = rows(report)
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


def _malformed(report: CheckReport) -> bool:
    return any(not rule.well_formed for rule in report.broken)
