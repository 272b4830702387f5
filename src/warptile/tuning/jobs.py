"""What a tune asks of a worker beyond the jobs of proof and race."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

from warptile import kernels
from warptile.contracts import Ceilings, Problem, Runtime, Source, Verdict
from warptile.proof.jobs import RealWeights, Resolve, prove_job
from warptile.tuning.stand import Proof


def ceilings_job(runtime: Runtime) -> Ceilings:
    """See `Runtime.ceilings`."""
    return runtime.ceilings()


def uuid_job(runtime: Runtime) -> str:
    """The UUID by which the device's driver knows it; "" where the runtime does not say."""
    return str(getattr(runtime, "uuid", ""))


def compile_ahead_job(
    runtime: Runtime, wanted: Sequence[tuple[str, Problem]], resolve: Resolve = kernels.parse_tile
) -> int:
    """Compile tiles side by side where the runtime can (`compile_ahead`); how many at once, 1 where it cannot."""
    ahead: Callable[[Sequence[Source]], int] | None = getattr(runtime, "compile_ahead", None)
    if ahead is None:
        return 1
    sources = []
    for text, problem in wanted:
        kernel, tile = resolve(text)
        sources.append(kernel.source(tile, problem, runtime.limits()))
    return ahead(sources)


def prove_all_job(
    runtime: Runtime,
    text: str,
    problems: Sequence[tuple[Problem, RealWeights | None]],
    level: str,
    seed: int,
    deadline: float,
    resolve: Resolve = kernels.parse_tile,
) -> Proof:
    """Prove a tile on problems that share one binary, each beside its real weights; the first wrong verdict ends it.

    A shape that two problems ask for is proved once.

    Raises what `prove_job` raises.
    """
    kernel, tile = resolve(text)
    first, limits = problems[0][0], runtime.limits()
    if not kernel.broken_rules(tile, first, limits):
        # So that what follows is proving alone; a tile that the proof refuses is never compiled.
        runtime.compile(kernel.source(tile, first, limits))
    start = time.perf_counter()
    verdicts: list[Verdict] = []
    seen: set[object] = set()
    for problem, real in problems:
        verdicts.append(prove_job(runtime, text, problem, level, seed, real, deadline, resolve, seen))
        if not verdicts[-1].right:
            break
    spent = time.perf_counter() - start
    binary = runtime.compile(kernel.source(tile, first, limits))
    return Proof(joined(verdicts), binary.key, binary.compile_seconds, runtime.resources(binary), spent)


def joined(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict of several of the same binary: wrong where the last is, every shape, the worst errors."""
    return dataclasses.replace(
        verdicts[-1],
        shapes=tuple(dict.fromkeys(shape for verdict in verdicts for shape in verdict.shapes)),
        nmse=max(verdict.nmse for verdict in verdicts),
        worst_ratio=max(verdict.worst_ratio for verdict in verdicts),
    )
