"""A race's clocks and throttling are what the driver said, and unknown where it said nothing."""

import contextlib
import os
import sys
import time
import types
from pathlib import Path

import pytest

from warptile import devices
from warptile.contracts import DeviceState, Identity
from warptile.telemetry import Sample, Unknown, Watcher, find
from warptile.telemetry.amdgpu import open_sensor
from warptile.telemetry.sensor import throttle_of

H200 = Identity("NVIDIA H200", "580", "triton 3.6.0", "cuda")
SMI = r"""#!/bin/sh
case "$*" in
  *name,uuid*) echo "NVIDIA H200, GPU-aa"; echo "NVIDIA H200, GPU-bb";;
  *clocks.sm*clocks_event_reasons*) echo "1755, 3201, 61, 699.5, 0x0000000000000024";;
  *clocks_event_reasons*) echo 0x24;;
  *) exit 6;;
esac
"""


def fake_nvml(names: list[str]) -> types.ModuleType:
    lib = types.ModuleType("pynvml")

    class NVMLError(Exception):
        pass

    def refuse(handle: int) -> float:
        raise NVMLError("Not Supported")

    vars(lib).update(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: len(names),
        nvmlDeviceGetHandleByIndex=lambda i: i,
        nvmlDeviceGetName=lambda i: names[i].encode(),
        nvmlDeviceGetUUID=lambda i: f"GPU-{i}",
        nvmlDeviceGetClockInfo=lambda i, which: {1: 1980, 2: 3201}[which],
        nvmlDeviceGetTemperature=lambda i, sensor: 40 + i,
        nvmlDeviceGetPowerUsage=refuse,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda i: 0x1 | 0x4,
    )
    return lib


def test_nvml_tells_of_the_only_card_and_of_one_of_several_by_its_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = devices.by_name("h200")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(["NVIDIA L4", "NVIDIA H200"]))
    state = Watcher.of(H200, limits).now()
    assert state == DeviceState(
        "nvml", "", 1, (1980.0,) * 3, (3201.0,) * 3, (41.0,) * 3, None, ("software power cap",)
    )  # idle holds nothing back, and power was refused
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(["NVIDIA H200", "NVIDIA H200"]))
    with pytest.raises(Unknown, match="2 devices called NVIDIA H200; there is no nvidia-smi"):
        find(H200, limits)
    told = find(H200, limits, uuid="1").read()
    assert told is not None
    assert told.temperature_c == 41.0


def test_nvidia_smi_where_there_is_no_nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia-smi").write_text(SMI)
    os.chmod(tmp_path / "nvidia-smi", 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    watcher = Watcher.of(H200, devices.by_name("h200"), "GPU-bb")
    with watcher.watching() as watched:
        pass
    assert watched.state in (DeviceState(why="the driver did not answer in time"), watcher.now())
    until = time.monotonic() + 20
    while watched.state.samples == 0 and time.monotonic() < until:
        with watcher.watching() as watched:
            time.sleep(0.3)
    assert watched.state.source == "nvidia-smi"
    assert watched.state.samples == 1
    assert watched.state.power_w == (699.5, 699.5, 699.5)
    assert watched.state.throttle == ("software power cap", "software thermal slowdown")


def test_amdgpu_by_sysfs(tmp_path: Path) -> None:
    hwmon = tmp_path / "card1" / "device" / "hwmon" / "hwmon3"
    hwmon.mkdir(parents=True)
    (tmp_path / "card1-HDMI-A-1").mkdir()
    (hwmon.parent.parent / "vendor").write_text("0x1002\n")
    for name, value in (("freq1_input", "2500000000"), ("temp1_input", "54000"), ("power1_average", "150000000")):
        (hwmon / name).write_text(value + "\n")
    assert open_sensor("AMD Radeon RX 9060 XT", drm=tmp_path).read() == Sample(2500.0, None, 54.0, 150.0, None)
    with pytest.raises(Unknown, match="no AMD card"):
        open_sensor("AMD Radeon RX 9060 XT", drm=tmp_path / "none")


def test_a_software_device_is_unknown_and_says_why() -> None:
    state = Watcher.of(Identity("llvmpipe", "", "", "vulkan"), devices.by_name("lavapipe")).now()
    assert state.source == "unknown"
    assert "software" in state.why
    assert state.throttle is None


def test_a_span_is_sampled_while_it_lasts_and_ends_with_its_error() -> None:
    class Rising:
        source, quick = "nvml", True
        clock = 0.0

        def read(self) -> Sample:
            self.clock += 100
            return Sample(clock_mhz=self.clock)

    watcher = Watcher(Rising(), period=0.01)
    with contextlib.suppress(ValueError), watcher.watching() as watched:
        time.sleep(0.2)
        raise ValueError("the race was lost")
    assert watched.state.samples >= 4
    assert watched.state.clock_mhz is not None
    assert watched.state.clock_mhz[0] == 100
    assert watched.state.clock_mhz[2] == 100 * watched.state.samples


def test_a_reason_without_a_name_is_kept() -> None:
    assert throttle_of(0x1) == ()
    assert throttle_of(0x400 | 0x8) == ("hardware slowdown", "bit 10")
