"""Traces of other programs: what they say of each kernel, in one form."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warptile.contracts import Ceilings, UnusableInput
from warptile.gguf.escape import shown
from warptile.journal import from_json
from warptile.trace.spans import Span, Trace

MOST_BYTES = 1 << 30
_NCU_TIME = "gpu__time_duration.sum"
_UNITS = {
    "s": 1.0, "sec": 1.0, "second": 1.0, "ms": 1e-3, "msecond": 1e-3, "us": 1e-6, "usecond": 1e-6,
    "ns": 1e-9, "nsecond": 1e-9,
}  # fmt: skip


@dataclass(frozen=True)
class KernelTime:
    """A kernel of some trace: its name, how often it ran, seconds of all runs together.

    quantized: whether the trace itself says that it belongs to a packed matmul.
    """

    kernel: str
    calls: int
    seconds: float
    quantized: bool = False


def read_trace(path: Path) -> tuple[str, list[KernelTime]]:
    """(what wrote it, its kernels, the longest first).

    Read are: this program's own `trace --json`; rocprofv3's kernel CSV; nsys' CSV exports of cuda_gpu_trace,
    cuda_gpu_kern_sum and their like; ncu's CSV (raw or details page) with gpu__time_duration.sum; Chrome traces
    (torch.profiler's among them). Raises UnusableInput, saying what was expected, for anything else, and where no
    kernel is found.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UnusableInput(f"{shown(path)}: larger than {MOST_BYTES >> 30} GiB")
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise UnusableInput(f"{shown(path)}: cannot be read: {error.strerror or error}") from None
    try:
        source, times = _json(text) if text.lstrip()[:1] in ("{", "[") else _csv(text)
    except (ValueError, KeyError, TypeError, AttributeError, csv.Error, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnusableInput(f"{shown(path)}: not a trace that can be read: {reason}") from None
    merged = _merged(times)
    if not merged:
        raise UnusableInput(f"{shown(path)}: {source}: no kernel in it")
    return source, merged


def read_own_trace(path: Path) -> Trace:
    """The whole trace that `trace --json` wrote. Raises UnusableInput where the file is not one."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return Trace(
            str(document["model"]),
            str(document["device"]),
            from_json(int, document["prompt"]),
            from_json(Ceilings, document["ceilings"]),
            {str(phase): _number(seconds) for phase, seconds in document["wall"].items()},
            tuple(from_json(Span, span) for span in document["spans"]),
        )
    except OSError as error:
        raise UnusableInput(f"{shown(path)}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UnusableInput(f"{shown(path)}: not a file of `trace --json`: {reason}") from None


def _merged(times: Iterable[KernelTime]) -> list[KernelTime]:
    found: dict[tuple[str, bool], tuple[int, float]] = {}
    for each in times:
        calls, seconds = found.get((each.kernel, each.quantized), (0, 0.0))
        found[each.kernel, each.quantized] = (calls + each.calls, seconds + each.seconds)
    kernels = [KernelTime(name, calls, seconds, own) for (name, own), (calls, seconds) in found.items()]
    return sorted(kernels, key=lambda kernel: -kernel.seconds)


def _json(text: str) -> tuple[str, list[KernelTime]]:
    document = json.loads(text)
    if isinstance(document, dict) and "spans" in document:
        spans = document["spans"]
        return "a warptile trace", [
            KernelTime(str(s["kernel"]), int(s["calls"]), _number(s["seconds"]), bool(s["matmul"])) for s in spans
        ]
    events = document["traceEvents"] if isinstance(document, dict) else document
    kernels = [
        KernelTime(str(e["name"]), 1, _number(e["dur"]) * 1e-6)
        for e in events
        if e.get("ph") == "X" and str(e.get("cat", "kernel")).lower() in ("kernel", "gpu_memcpy", "gpu_memset")
    ]
    return "a Chrome trace", kernels


def _csv(text: str) -> tuple[str, list[KernelTime]]:
    rows = _table(text)
    first: Mapping[str, str] = rows[0]
    if {"Kernel_Name", "Start_Timestamp", "End_Timestamp"} <= first.keys():
        return "rocprofv3", [
            KernelTime(r["Kernel_Name"], 1, (_number(r["End_Timestamp"]) - _number(r["Start_Timestamp"])) * 1e-9)
            for r in rows
        ]
    if "Kernel Name" in first and "Metric Name" in first:
        return "ncu", [
            KernelTime(r["Kernel Name"], 1, _number(r["Metric Value"]) * _UNITS[r["Metric Unit"]])
            for r in rows
            if r["Metric Name"] in (_NCU_TIME, "Duration")
        ]
    if "Kernel Name" in first and _NCU_TIME in first:
        unit = 1e-9
        if not first["Kernel Name"]:  # the raw page's second line holds units
            unit, rows = _UNITS[first[_NCU_TIME]], rows[1:]
        return "ncu", [KernelTime(r["Kernel Name"], 1, _number(r[_NCU_TIME]) * unit) for r in rows]
    return _nsys(rows, first)


def _nsys(rows: list[dict[str, str]], first: Mapping[str, str]) -> tuple[str, list[KernelTime]]:
    name = next((c for c in ("Name", "Kernel Name", "KernelName") if c in first), None)
    total = _timed_column(first, ("Total Time", "Duration", "Kernel Dur"))
    if name is None or total is None:
        columns = ", ".join(list(first)[:8])
        raise ValueError(f"its columns ({columns}) are none of rocprofv3's, nsys' or ncu's")
    column, unit = total
    calls = next((c for c in ("Instances", "Count") if c in first), None)
    return "nsys", [
        KernelTime(r[name], int(_number(r[calls])) if calls else 1, _number(r[column]) * unit)
        for r in rows
        if r[column]
    ]


def _timed_column(first: Mapping[str, str], starts: tuple[str, ...]) -> tuple[str, float] | None:
    """A column such as "Total Time (ns)" and the seconds of its unit; nanoseconds where none is named."""
    for start in starts:
        for column in first:
            if column.startswith(start):
                unit = column.removeprefix(start).strip(" ()")
                return column, _UNITS[unit or "ns"]
    return None


def _table(text: str) -> list[dict[str, str]]:
    """Rows after the header: the first line with two columns or more that has a name among its cells."""
    lines = text.splitlines()
    start = next(
        (i for i, line in enumerate(lines) if line.count(",") >= 1 and "name" in line.lower()),
        None,
    )
    if start is None:
        raise ValueError("neither JSON nor a CSV with a header that names kernels")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))
    if not rows:
        raise ValueError("a header and no rows")
    return [{str(key): value or "" for key, value in row.items() if isinstance(value, str | None)} for row in rows]


def _number(value: Any) -> float:
    found = float(str(value).replace(",", ""))
    if not math.isfinite(found) or found < 0:
        raise ValueError(f"{value} is no time")
    return found
