"""What a trace holds: device time by kernel and layer, against what the device's ceilings allow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from warptile.contracts import Ceilings


@dataclass(frozen=True)
class Span:
    """One kernel in one place of the model.

    phase: "prefill" or "decode". kernel: its name, on a matmul of this project's its tile. layer: the module's path, ""
    outside modules. where: "device", or "host" for operators that ran on the processor. matmul: `Problem.text` of a
    quantized matmul, else "". seconds: of all `calls` together. floor_seconds: what the ceilings allow them at best, 0
    where nothing is known.
    """

    phase: str
    kernel: str
    layer: str
    calls: int
    seconds: float
    where: str = "device"
    matmul: str = ""
    floor_seconds: float = 0.0


@dataclass(frozen=True)
class Trace:
    """Spans of one prefill of `prompt` tokens and one decoded token. wall: seconds of each phase, untraced."""

    model: str
    device: str
    prompt: int
    ceilings: Ceilings
    wall: dict[str, float]
    spans: tuple[Span, ...]


def merged(spans: Iterable[Span], by: tuple[str, ...]) -> list[Span]:
    """Spans with equal fields `by` added up, the longest first; the other fields of a sum are ""."""
    found: dict[tuple[object, ...], Span] = {}
    blank: dict[str, Any] = {name: "" for name in ("phase", "kernel", "layer", "where", "matmul") if name not in by}
    for span in spans:
        key = tuple(getattr(span, name) for name in by)
        have = found.get(key)
        found[key] = (
            replace(span, **blank)
            if have is None
            else replace(
                have,
                calls=have.calls + span.calls,
                seconds=have.seconds + span.seconds,
                floor_seconds=have.floor_seconds + span.floor_seconds,
            )
        )
    return sorted(found.values(), key=lambda span: -span.seconds)
