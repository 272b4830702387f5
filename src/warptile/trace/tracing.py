"""Tracing one prefill and one decoded token of a model."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from warptile.bench.model import backend_of, describe, random_tokens
from warptile.contracts import Ceilings, Problem, UnusableInput
from warptile.model.cuda import TorchBackend, TorchGroup
from warptile.model.runner import Runner
from warptile.model.vulkan import VulkanBackend
from warptile.roofline import floor_seconds
from warptile.runtimes.triton.ceilings import measure
from warptile.runtimes.triton.engine import DTYPES, engine_of
from warptile.trace.spans import Span, Trace
from warptile.trace.torch_trace import Event, events


def trace_model(model: Any, name: str, device: str, prompt: int = 128) -> Trace:
    """Device time by kernel and layer of a prefill of `prompt` random tokens and of the token after it.

    Wall times are taken without any tracing, kernels compiled. Raises UnusableInput for a decoded model, and where the
    prompt exceeds the model's context.
    """
    backend = backend_of(model)
    if backend is None:
        raise UnusableInput("a decoded model has no packed matmuls to trace")
    runner = Runner(model, prompt + 2)
    tokens = random_tokens(model, prompt)
    phases = {"prefill": lambda: runner.prefill(tokens), "decode": lambda: runner.decode(int(tokens[0]), 1)}
    wall, spans = {}, []
    ceilings = _ceilings(backend)
    runner.reset()
    for phase, work in phases.items():
        runner.mark()
        for _ in range(2):
            runner.restore()
            wall[phase] = _timed(work, runner)
        runner.restore()
        runner.replay = False
        spans += _traced(model, backend, phase, prompt if phase == "prefill" else 1, work, ceilings)
        runner.replay = True
    return Trace(name, describe(model, device), prompt, ceilings, wall, tuple(spans))


def _timed(work: Callable[[], Any], runner: Runner) -> float:
    start = time.perf_counter()
    work()
    if runner.device.type == "cuda":
        torch.cuda.synchronize(runner.device)
    return time.perf_counter() - start


def _ceilings(backend: Any) -> Ceilings:
    if isinstance(backend, VulkanBackend):
        return backend.session.runtime.ceilings()
    return measure(engine_of(backend.device).backend)


def _traced(model: Any, backend: Any, phase: str, m: int, work: Callable[[], Any], ceilings: Ceilings) -> list[Span]:
    if isinstance(backend, VulkanBackend):
        clock = backend.clock
        clock.reset()
        clock.tracing = True
        try:
            seen = events(model, work)
        finally:
            clock.tracing = False
        launched = list(clock.launches)
        clock.reset()
        found = []
        for path, timed in launched:
            problem = timed.product.problem
            floor = 0.0 if timed.helper else floor_seconds(problem, ceilings)
            kernel = "helper of " + timed.product.kernel.name if timed.helper else timed.product.tile.text()
            found.append(Span(phase, kernel, path, 1, timed.seconds, "device", problem.text(), floor))
        return found + [_plain(phase, event) for event in seen]
    assert isinstance(backend, TorchBackend)
    problems = _problems(model)
    spans: list[Span] = []
    counted: set[str] = set()
    for event in events(model, work):
        known = problems.get(event.layer) if event.matmul else None
        if known is None:
            spans.append(_plain(phase, event))
            continue
        own = known.at(1 if event.layer == "lm_head" else m)
        # The roofline is the whole matmul's: it counts once, however many kernels compute it.
        floor = 0.0 if event.layer in counted else floor_seconds(own, ceilings)
        counted.add(event.layer)
        spans.append(Span(phase, event.kernel, event.layer, 1, event.seconds, "device", own.text(), floor))
    return spans


def _problems(model: Any) -> dict[str, Problem]:
    """The matmul that each linear's module computes for its group, by the module's path; the first of a group's."""
    dtype = DTYPES[model.dtype]
    found = {}
    for path, module in model.named_modules():
        group = getattr(module, "group", None)
        if isinstance(group, TorchGroup) and len(group.parts) == 1:
            _, format, n, k, _ = group.parts[0]
            found[path] = Problem(format, n, k, 1, dtype, dtype)
    return found


def _plain(phase: str, event: Event) -> Span:
    return Span(phase, event.kernel, event.layer, 1, event.seconds, event.where)
