"""`warptile prove --level deep`: random shapes under a time budget, and the vendor's own checkers where installed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from warptile.cli import show
from warptile.cli.prove_view import Proved
from warptile.contracts import CandidateRejected, Limits, Problem, UnusableInput
from warptile.places import Places
from warptile.proof import layers, sanitizer
from warptile.proof.sanitizer import Sanitized
from warptile.tuning.worker_stand import WorkerStand

CASES_A_RUN = 24
Tool = Callable[[Sequence[tuple[str, Problem]], float], list[Sanitized]]


def checkers(limits: Limits, device: str, places: Places, seed: int) -> tuple[dict[str, Tool], list[str]]:
    """The vendor's tools for a device, by name, and what is missing here, one line each."""

    def cuda(tool: str) -> Tool:
        return lambda cases, seconds: sanitizer.sanitize(tool, device, cases, places, seed, seconds)

    def vulkan(tool: str) -> Tool:
        return lambda cases, seconds: layers.validate(tool, device, cases, places, seed, seconds)

    if limits.runtime == "cuda" and limits.kind == "gpu":
        try:
            sanitizer.sanitizer()
        except UnusableInput as error:
            return {}, [str(error)]
        return {tool: cuda(tool) for tool in sanitizer.TOOLS}, []
    if limits.runtime == "vulkan":
        if layers.find_layer() is None:
            return {}, [f"{' and '.join(layers.TOOLS)} validation: {layers.LAYER} is not installed"]
        return {tool: vulkan(tool) for tool in layers.TOOLS}, []
    return {}, [f"a vendor's checker: warptile knows none for {limits.runtime} on {limits.name}"]


def with_random_shapes(
    stand: WorkerStand, results: Sequence[Proved], budget: float, seed: int, deadline: float, errors: Console
) -> list[Proved]:
    """The right ones of `results` proved on random shapes, each in an even share of `budget` seconds."""
    dense = [each for each in results if each.right and not each.problem.grouped]
    found = []
    for each in results:
        if each not in dense:
            found.append(each)
            continue
        errors.print(Text(f"random shapes  {each.problem.text()}  {show.tile(each.tile)}"), soft_wrap=True)
        share = budget / len(dense)
        try:
            verdict = stand.prove_random(each.tile, each.problem, seed, share, share + deadline)
        except CandidateRejected as error:
            found.append(dataclasses.replace(each, right=False, reason=f"{error.outcome}: {error}"))
            continue
        said = verdict.detail if verdict.right else f"{verdict.failed}: {verdict.detail}"
        reason = "; ".join(text for text in (each.reason, said) if text)
        found.append(dataclasses.replace(each, right=verdict.right, reason=reason, random=verdict))
    return found


def under_checkers(tools: dict[str, Tool], results: Sequence[Proved], seconds: float, errors: Console) -> list[Proved]:
    """The right ones of `results` proved again under each tool; wrong where one objects. seconds: for each proof."""
    held = list(results)
    right = [number for number, each in enumerate(held) if each.right]
    for name, tool in tools.items():
        for start in range(0, len(right), CASES_A_RUN):
            part = right[start : start + CASES_A_RUN]
            errors.print(Text(f"{name} over {len(part)} tiles"), soft_wrap=True)
            cases = [(held[number].tile, held[number].problem) for number in part]
            for number, found in zip(part, tool(cases, seconds * len(part)), strict=True):
                one = held[number]
                said = "; ".join(text for text in (one.reason, found.text()) if text)
                held[number] = dataclasses.replace(
                    one, right=one.right and found.good, reason=said, sanitized=(*one.sanitized, found)
                )
    return held
