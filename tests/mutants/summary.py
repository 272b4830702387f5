"""The line at the end of a test run: how many faults were planted, and which check caught each."""

from __future__ import annotations

from typing import Any


def write_summary(reporter: Any) -> None:
    """`N planted, N caught`, then a line a mutant: its pitfall's number, its name, the check that spoke."""
    planted = []
    for outcome in ("passed", "failed"):
        for report in reporter.stats.get(outcome, []):
            for name, value in getattr(report, "user_properties", ()):
                if name == "mutant" and report.when == "call":
                    planted.append((outcome == "passed", *value))
    if not planted:
        return
    caught = sum(good for good, *_ in planted)
    reporter.section("planted faults")
    for good, pitfall, fault, wanted, spoke in sorted(planted, key=lambda each: (each[1] or 99, each[2])):
        said = spoke or "nothing"
        verdict = f"{said}" if good else f"{said}, wanted {wanted}: NOT CAUGHT AS IT MUST BE"
        reporter.write_line(f"{pitfall or '-':>3}  {fault:<44} {verdict}")
    reporter.write_line(f"{len(planted)} planted, {caught} caught")
