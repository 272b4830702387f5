"""Clocks, temperature, power and throttling of a device while it is measured, where its driver tells.

`sensor.find` picks a source (`nvml` through nvidia-ml-py where that is installed, `smi` through nvidia-smi, `amdgpu`
through sysfs); `watch.Watcher` asks it while something runs. What is not told is unknown, never guessed.
"""

from warptile.telemetry.sensor import Sample, Sensor, Unknown, find
from warptile.telemetry.watch import Watcher

__all__ = ["Sample", "Sensor", "Unknown", "Watcher", "find"]
