"""What a tune asks of a worker: module-level jobs on an open runtime.

`runtime.scratch` keeps the proof's references and the bench of the problem screened last, which later jobs reuse.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from warptile import formats, kernels
from warptile.contracts import Arm, Ceilings, DeviceWeights, Limits, Problem, Race, Runtime, Verdict
from warptile.layouts import PackedWeights, pack, upload
from warptile.proof.proving import prove
from warptile.proof.references import ReferenceCache
from warptile.proof.weights import random_blocks
from warptile.race import Bench, Screening, close_bench, open_bench, race, screen
from warptile.tuning.stand import Proof

COPIES_BYTES = 128 << 20
REFERENCE_BYTES = 96 << 20
DRAWN_ROWS = 64
_BENCH = "tune.bench"
_REFERENCES = "tune.references"


def ceilings_job(runtime: Runtime) -> Ceilings:
    """See `Runtime.ceilings`."""
    return runtime.ceilings()


def prove_job(
    runtime: Runtime, text: str, problems: Sequence[Problem], seed: int, deadline: float, level: str = "quick"
) -> Proof:
    """Compile a tile and prove it on each problem; the first wrong verdict ends it.

    The verdict covers all problems: shapes together, the worst error. Raises what `prove` raises.
    """
    kernel, tile = kernels.parse_tile(text)
    limits = runtime.limits()
    references = _scratch(runtime).setdefault(_REFERENCES, ReferenceCache(REFERENCE_BYTES))
    verdicts = []
    for problem in problems:
        verdicts.append(prove(runtime, kernel, tile, problem, level, seed, deadline=deadline, cache=references))
        if not verdicts[-1].right:
            break
    binary = runtime.compile(kernel.source(tile, problems[0], limits))
    return Proof(joined(verdicts), binary.key, binary.compile_seconds)


def screen_job(runtime: Runtime, problem: Problem, proved: Mapping[str, int], seconds: float, seed: int) -> Screening:
    """Screen proved tiles on the problem's bench, which is kept for the next screening of the same problem."""
    scratch = _scratch(runtime)
    held: Bench | None = scratch.get(_BENCH)
    if held is None or held.problem != problem:
        if held is not None:
            del scratch[_BENCH]
            close_bench(runtime, held)
        held = scratch[_BENCH] = bench_of(runtime, problem, seed)
    arms = [Arm(text, problem) for text in proved]
    return screen(runtime, arms, bench=held, seed=seed, budget_seconds=seconds, expected=proved)


def race_job(
    runtime: Runtime,
    problem: Problem,
    incumbent: str,
    challenger: str,
    proved: Mapping[str, int],
    seconds: float,
    rounds: int,
    seed: int,
) -> Race:
    """Race two proved tiles on buffers made for this race alone."""
    scratch = _scratch(runtime)
    if (held := scratch.pop(_BENCH, None)) is not None:
        close_bench(runtime, held)
    bench = bench_of(runtime, problem, seed)
    try:
        return race(
            runtime,
            Arm(incumbent, problem),
            [Arm(challenger, problem)],
            bench=bench,
            seed=seed,
            budget_seconds=seconds,
            expected=proved,
            rounds=rounds,
        )[0]
    finally:
        close_bench(runtime, bench)


def bench_of(runtime: Runtime, problem: Problem, seed: int) -> Bench:
    """A bench with random weights: 64 drawn rows, repeated along n, so that a large matrix takes no time to draw."""
    packed = packed_weights(problem, runtime.limits(), seed)

    def copy() -> DeviceWeights:
        return upload(runtime, packed)

    return open_bench(runtime, problem, copy, max(COPIES_BYTES, 2 * packed.nbytes), seed)


def packed_weights(problem: Problem, limits: Limits, seed: int) -> PackedWeights:
    """Packed random weights w[n, k] of the problem."""
    fmt = formats.by_name(problem.format)
    rows = min(problem.n, DRAWN_ROWS)
    drawn = random_blocks(fmt, rows * (problem.k // fmt.block_size), np.random.default_rng(seed))
    blocks = np.resize(drawn.reshape(rows, fmt.row_bytes(problem.k)), (problem.n, fmt.row_bytes(problem.k)))
    return pack(fmt, blocks, problem.n, problem.k, limits.max_buffer_bytes)


def joined(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict of several of the same binary: wrong where the last is, every shape, the worst errors."""
    return dataclasses.replace(
        verdicts[-1],
        shapes=tuple(dict.fromkeys(shape for verdict in verdicts for shape in verdict.shapes)),
        nmse=max(verdict.nmse for verdict in verdicts),
        worst_ratio=max(verdict.worst_ratio for verdict in verdicts),
    )


def _scratch(runtime: Runtime) -> dict[str, Any]:
    return cast(dict[str, Any], runtime.scratch)  # type: ignore[attr-defined]
