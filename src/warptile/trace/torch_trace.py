"""Kernels of a card, and operators of the processor, from torch's profiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function

OP = "warptile::matmul"
_MARK = "module "


@dataclass(frozen=True)
class Event:
    """One kernel on a card, or one operator's own time on the processor. matmul: whether it is a packed matmul's."""

    kernel: str
    layer: str
    seconds: float
    where: str
    matmul: bool


def events(model: nn.Module, work: Callable[[], Any]) -> list[Event]:
    """What `work` runs, by the innermost module that runs it."""
    card = torch.cuda.is_available()
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if card else [])]
    with named_modules(model), profile(activities=activities) as profiler:
        work()
        if card:
            torch.cuda.synchronize()
    found: list[Event] = []
    alone: Counter[tuple[str, float]] = Counter()
    for event in profiler.events():
        name = str(event.name)
        if event.device_type != DeviceType.CPU:
            if not name.startswith(_MARK) and not getattr(event, "is_user_annotation", False):
                alone[name, float(event.time_range.elapsed_us())] += 1
            continue
        layer, matmul = _place(event)
        for kernel in event.kernels or ():
            found.append(Event(str(kernel.name), layer, kernel.duration * 1e-6, "device", matmul))
            alone[str(kernel.name), float(kernel.duration)] -= 1
        own = float(event.self_cpu_time_total) * 1e-6
        if not card and own > 0 and name.startswith("aten::"):
            found.append(Event(name, layer, own, "host", matmul))
    # Kernels that no operator launched, as a step's own are, belong to no operator.
    for (name, duration), count in alone.items():
        found += [Event(name, "", duration * 1e-6, "device", False)] * max(0, count)
    return found


def matmul_share(work: Callable[[], Any]) -> float | None:
    """Share of a card's busy time that packed matmuls take in `work`; None where no kernel ran."""
    found = [event for event in events(nn.Module(), work) if event.where == "device"]
    total = sum(event.seconds for event in found)
    return sum(event.seconds for event in found if event.matmul) / total if total else None


@contextmanager
def named_modules(model: nn.Module) -> Iterator[None]:
    """While it lasts, the profiler sees which module of `model` runs."""
    open_ranges: list[Any] = []
    handles = []

    def enter(path: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            marked: Any = record_function(_MARK + path)
            marked.__enter__()
            open_ranges.append(marked)

        return hook

    def leave(*_: Any) -> None:
        open_ranges.pop().__exit__(None, None, None)

    try:
        for path, module in model.named_modules():
            if path:
                handles.append(module.register_forward_pre_hook(enter(path)))
                handles.append(module.register_forward_hook(leave))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _place(event: Any) -> tuple[str, bool]:
    """(path of the innermost module around an event, whether it is inside a packed matmul)."""
    matmul = event.name == OP
    at = event
    while at is not None:
        matmul = matmul or at.name == OP
        if str(at.name).startswith(_MARK):
            return str(at.name).removeprefix(_MARK).removesuffix(".group"), matmul
        at = at.cpu_parent
    return "", matmul
