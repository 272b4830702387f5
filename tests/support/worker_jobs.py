"""Jobs for the worker tests: a child process must be able to import them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from warptile.contracts import DeviceLost, DoesNotFit, MissingExtra, Runtime, UnusableInput


def add(runtime: Runtime, a: int, b: int) -> int:
    return a + b


def pid(runtime: Runtime) -> int:
    return os.getpid()


def parent_session(runtime: Runtime) -> int:
    return os.getsid(0)


def sleep(runtime: Runtime, seconds: float) -> None:
    time.sleep(seconds)


def pid_then_sleep(runtime: Runtime, seconds: float, report: Callable[[int], None]) -> None:
    report(os.getpid())
    time.sleep(seconds)


def count(runtime: Runtime, upto: int, report: Callable[[int], None]) -> int:
    for i in range(upto):
        report(i)
    return upto


def end(runtime: Runtime, number: int) -> None:
    os.kill(os.getpid(), number)


def refuse(runtime: Runtime, kind: str) -> None:
    if kind == "fit":
        raise DoesNotFit("m <= 4", "5 > 4")
    if kind == "extra":
        raise MissingExtra("cuda:0", "torch")
    if kind == "input":
        raise UnusableInput("no such thing")
    if kind == "lost":
        raise DeviceLost("running: the driver lost the device")
    if kind == "memory":
        np.empty(1 << 60, np.uint8)
    raise KeyError("a bug")


def unpicklable(runtime: Runtime) -> Any:
    return lambda: None


def keep(runtime: Any, values: list[int]) -> None:
    runtime.scratch["kept"] = runtime.upload(np.array(values, np.int32))


def kept(runtime: Any, count: int) -> list[int]:
    found = runtime.download(runtime.scratch["kept"], np.int32, (count,))
    return [int(value) for value in found]


INTERRUPT = signal.SIGINT
