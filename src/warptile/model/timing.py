"""What the host sees quantized matmuls take, on a device that it drives itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from warptile.together import Timed


@dataclass
class Clock:
    """Seconds spent inside quantized matmuls, copies to and from the device included.

    tracing: whether every launch is timed on the device as well; launches: (path of the group, launch) of those.
    """

    seconds: float = 0.0
    tracing: bool = False
    launches: list[tuple[str, Timed]] = field(default_factory=list)

    def add(self, path: str, seconds: float, timed: Sequence[Timed]) -> None:
        """Count one group."""
        self.seconds += seconds
        self.launches += [(path, each) for each in timed]

    def reset(self) -> None:
        """Start again at zero."""
        self.seconds = 0.0
        self.launches.clear()
