"""Asking a sensor while something runs."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from warptile.contracts import DeviceState, Identity, Limits
from warptile.telemetry.sensor import Sample, Sensor, Unknown, find

PERIOD_S = 0.25
SLOW_PERIOD_S = 2.0


class Watched:
    """What one span of watching found; `state` is complete when the span has ended."""

    def __init__(self, state: DeviceState) -> None:
        self.state = state


class Watcher:
    """Watches one device. sensor: None where nothing tells of it (`why`)."""

    def __init__(self, sensor: Sensor | None, why: str = "", period: float = PERIOD_S) -> None:
        self._sensor, self._why, self._period = sensor, why, period

    @classmethod
    def of(cls, identity: Identity, limits: Limits, uuid: str = "") -> Watcher:
        """A watcher of a device, with whatever sensor there is."""
        try:
            return cls(find(identity, limits, uuid))
        except Unknown as reason:
            return cls(None, str(reason))

    def now(self) -> DeviceState:
        """The state at this moment."""
        return summed(self._sensor, self._why, [self._sensor.read()] if self._sensor is not None else [])

    @contextmanager
    def watching(self) -> Iterator[Watched]:
        """Sample from now until the block ends, in a thread of its own.

        A quick sensor is asked four times a second and at both ends; of a slow one the answers that arrived by the end
        count, so that nothing waits for it. Both arms of a race run within one span, interleaved: asking costs them
        alike.
        """
        found = Watched(DeviceState(why=self._why))
        if self._sensor is None:
            yield found
            return
        sensor, ended = self._sensor, threading.Event()
        samples: list[Sample | None] = [sensor.read()] if sensor.quick else []

        def sample() -> None:
            if not sensor.quick:
                samples.append(sensor.read())
            while not ended.wait(self._period if sensor.quick else SLOW_PERIOD_S):
                samples.append(sensor.read())

        thread = threading.Thread(target=sample, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            ended.set()
            if sensor.quick:
                thread.join()
                samples.append(sensor.read())
            found.state = summed(sensor, self._why, tuple(samples))


def summed(sensor: Sensor | None, why: str, samples: Sequence[Sample | None]) -> DeviceState:
    """The state of several samples."""
    answered = [sample for sample in samples if sample is not None]
    if sensor is None or not answered:
        return DeviceState(why=why or "the driver did not answer in time")
    told = [sample.throttle for sample in answered if sample.throttle is not None]
    return DeviceState(
        sensor.source,
        "",
        len(answered),
        _spread([s.clock_mhz for s in answered]),
        _spread([s.memory_clock_mhz for s in answered]),
        _spread([s.temperature_c for s in answered]),
        _spread([s.power_w for s in answered]),
        tuple(dict.fromkeys(reason for reasons in told for reason in reasons)) if told else None,
    )


def _spread(values: Sequence[float | None]) -> tuple[float, float, float] | None:
    known = [value for value in values if value is not None]
    return (min(known), statistics.median(known), max(known)) if known else None
