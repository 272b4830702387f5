"""What races ask of the worker that holds the device: arguments and values pickle.

One bench is kept in `runtime.scratch`, for the problem and weights screened or raced last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warptile import formats, kernels
from warptile.contracts import Arm, DeviceWeights, Limits, Problem, Race, Runtime, UnusableInput
from warptile.layouts import PackedWeights, pack_experts, pack_repeated, packer, upload
from warptile.proof.jobs import scratch
from warptile.proof.weights import random_blocks
from warptile.race.bench import Bench, Resolve, close_bench, open_bench
from warptile.race.play_off import play_off
from warptile.race.racing import race
from warptile.race.screening import Screening, screen
from warptile.race.terms import Terms
from warptile.weights import QuantTensor

COPIES_BYTES = 192 << 20
DRAWN_ROWS = 64
_BENCH = "race.bench"


@dataclass(frozen=True)
class BenchWeights:
    """Which weights a bench holds: a tensor of a GGUF file, or drawn from `seed` where `path` is empty.

    copies_bytes: most bytes its copies may take together.
    """

    seed: int = 0
    path: str = ""
    tensor: str = ""
    copies_bytes: int = COPIES_BYTES


def screen_job(
    runtime: Runtime,
    problem: Problem,
    proved: Mapping[str, int],
    weights: BenchWeights,
    budget_seconds: float,
    seed: int,
    keep: int = 4,
    resolve: Resolve = kernels.parse_tile,
    thorough: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> Screening:
    """Screen tiles (text form -> id of the proved binary), in their order, on a bench kept for the next job.

    thorough: by a play-off down to the fastest, in place of a screening that keeps `keep`.

    resolve: finds the kernels of tiles; all want packed weights to lie the same way.
    """
    bench = bench_for(runtime, problem, weights, False, _arrangement(runtime, proved, resolve))
    arms = [Arm(tile, problem) for tile in proved]
    terms = Terms(bench, seed, budget_seconds, proved, resolve, clock)
    return play_off(runtime, arms, terms) if thorough else screen(runtime, arms, terms, keep=keep)


def race_job(
    runtime: Runtime,
    problem: Problem,
    incumbent: str,
    challengers: Sequence[str],
    proved: Mapping[str, int],
    weights: BenchWeights,
    budget_seconds: float,
    seed: int,
    confirm: bool = False,
    rounds: int = 40,
    resolve: Resolve = kernels.parse_tile,
    most_rounds: int = 0,
    clock: Callable[[], float] = time.monotonic,
) -> list[Race]:
    """Race proved tiles against the incumbent; `decide` takes the result.

    confirm: on fresh buffers, with everything uploaded anew, as the second race of a decision must be; the caller gives
    it another seed than the first. rounds, most_rounds: as `race` has them. resolve: as in `screen_job`.
    """
    arrangement = _arrangement(runtime, [incumbent, *challengers], resolve)
    bench = bench_for(runtime, problem, weights, confirm, arrangement)
    arms = [Arm(tile, problem) for tile in challengers]
    terms = Terms(bench, seed, budget_seconds, proved, resolve, clock)
    return race(runtime, Arm(incumbent, problem), arms, terms, rounds=rounds, most_rounds=most_rounds)


def release_job(runtime: Runtime) -> None:
    """Free the bench that is kept, if there is one."""
    held: tuple[object, Bench] | None = scratch(runtime).pop(_BENCH, None)
    if held is not None:
        close_bench(runtime, held[1])


def _arrangement(runtime: Runtime, tiles: Iterable[str], resolve: Resolve) -> str:
    """How the tiles' kernels want packed weights to lie. Raises UnusableInput where they differ."""
    limits = runtime.limits()
    found = {kernels.arrangement_of(resolve(tile)[0], limits) for tile in tiles}
    if len(found) > 1:
        raise UnusableInput(f"tiles of kernels with weights arranged as {' and '.join(sorted(found))} cannot race")
    return found.pop() if found else limits.arrangement


def bench_for(
    runtime: Runtime, problem: Problem, weights: BenchWeights, fresh: bool, arrangement: str | None = None
) -> Bench:
    """The bench kept for this problem and these weights, or a new one (always, where `fresh`) that replaces it.

    arrangement: how packed weights lie; None: as the device's kernels want them.
    """
    arrangement = arrangement or runtime.limits().arrangement
    key = (problem, weights, arrangement)
    held: tuple[object, Bench] | None = scratch(runtime).get(_BENCH)
    if held is not None and held[0] == key and not fresh:
        return held[1]
    release_job(runtime)
    copy = _copier(runtime, problem, weights, arrangement)
    bench = open_bench(runtime, problem, copy, weights.copies_bytes, weights.seed)
    scratch(runtime)[_BENCH] = (key, bench)
    return bench


def packed_weights(problem: Problem, weights: BenchWeights, limits: Limits, arrangement: str) -> PackedWeights:
    """The weights as the device's kernels want them; of a grouped problem every expert is the same."""
    fmt, blocks = formats.by_name(problem.format), weight_blocks(problem, weights)
    n, k, most = problem.n, problem.k, limits.max_buffer_bytes
    if problem.grouped:
        each = np.resize(blocks, (n, fmt.row_bytes(k)))
        return pack_experts(fmt, each, problem.experts, n, k, most, arrangement)
    return pack_repeated(fmt, blocks, n, k, most, arrangement)


def _copier(runtime: Runtime, problem: Problem, weights: BenchWeights, arrangement: str) -> Callable[[], DeviceWeights]:
    """A function that uploads one more copy of the weights; dense ones are packed on the card where it can."""
    if not problem.grouped:
        fmt = formats.by_name(problem.format)
        return packer(runtime, fmt, weight_blocks(problem, weights), problem.n, problem.k, arrangement)
    packed = packed_weights(problem, weights, runtime.limits(), arrangement)
    return lambda: upload(runtime, packed)


def weight_blocks(problem: Problem, weights: BenchWeights) -> NDArray[np.uint8]:
    """The tensor u8[n, row bytes], or at most 64 drawn rows, to be repeated along n (a large matrix takes seconds).

    Raises UnusableInput where the tensor is not the problem's.
    """
    fmt = formats.by_name(problem.format)
    row_bytes = fmt.row_bytes(problem.k)
    if weights.path:
        tensor = QuantTensor.from_gguf(weights.path, weights.tensor)
        if (tensor.format.name, *tensor.shape) != (problem.format, problem.n, problem.k):
            raise UnusableInput(
                f"tensor {weights.tensor} is {tensor.format.name} n={tensor.shape[0]} k={tensor.shape[1]},"
                f" the problem is {problem.text()}"
            )
        return tensor.blocks
    rows = min(problem.n, DRAWN_ROWS)
    drawn = random_blocks(fmt, rows * (problem.k // fmt.block_size), np.random.default_rng(weights.seed))
    return drawn.reshape(rows, row_bytes)
