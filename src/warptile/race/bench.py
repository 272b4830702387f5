"""Device memory that arms are timed on: one activation, one output, and weights in enough copies to leave the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warptile import kernels
from warptile.contracts import (
    Arm,
    Binary,
    Buffer,
    Chosen,
    DeviceWeights,
    Kernel,
    Launch,
    Problem,
    Runtime,
    Tile,
    UnusableInput,
    Wrong,
    launches_of,
)
from warptile.contracts.runtime import all_ids
from warptile.contracts.samples import storage_dtype, stored
from warptile.workloads.experts import draw_ids, expected_tiles

Resolve = Callable[[str], tuple[Kernel, Tile]]
MOST_COPIES = 256
UNPROVED = 0
"""In place of a proved binary's id (which is never 0): the tile is timed to see whether its proof is worth while."""


@dataclass(frozen=True)
class Bench:
    """Buffers for one problem. x[m, k] and y[m, n] are shared by all arms; `copies` are equal weights, apart in memory.

    rotated_bytes: the copies together. cache_bytes: `Limits.cache_to_exceed`; where rotated_bytes
    does not exceed it, the memory allowed was too little and timings may be of cached weights.
    """

    problem: Problem
    x: Buffer
    y: Buffer
    copies: tuple[DeviceWeights, ...]
    rotated_bytes: int
    cache_bytes: int
    chosen: tuple[Chosen, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of every buffer together."""
        return self.x.nbytes + self.y.nbytes + sum(b.nbytes for w in self.copies for b in _buffers(w))

    @property
    def rotation(self) -> tuple[tuple[DeviceWeights, Chosen | None], ...]:
        """What successive runs take: weight copies in turn, and of a grouped problem sets of ids in turn."""
        if not self.chosen:
            return tuple((w, None) for w in self.copies)
        count = max(len(self.copies), len(self.chosen))
        return tuple((self.copies[i % len(self.copies)], self.chosen[i % len(self.chosen)]) for i in range(count))


def open_bench(
    runtime: Runtime, problem: Problem, upload: Callable[[], DeviceWeights], memory_bytes: int, seed: int
) -> Bench:
    """Upload activations from `seed` and weight copies until they exceed the device's cache.

    A run of a grouped problem reads only the experts that its ids take: there are as many sets of ids, drawn from its
    routing, as read more than the cache together, and rotated_bytes counts what they read.

    upload: makes one more copy of the weights. memory_bytes: what the copies may take together; one copy is made in
    any case. At most 256 copies.
    """
    cache = runtime.limits().cache_to_exceed
    rng = np.random.default_rng(seed)
    x = stored(rng.standard_normal((problem.x_rows, problem.k), np.float32), problem.x_dtype)
    y = np.zeros((problem.y_rows, problem.n), storage_dtype(problem.y_dtype))
    held: list[Buffer] = []
    try:
        held += [runtime.upload(x), runtime.upload(y)]
        copies = [upload()]
        held += _buffers(copies[-1])
        each = sum(b.nbytes for b in _buffers(copies[0]))
        wanted = min(MOST_COPIES, cache // max(1, each) + 1, max(1, memory_bytes // max(1, each)))
        while len(copies) < wanted:
            copies.append(upload())
            held += _buffers(copies[-1])
        rotated, chosen = each * len(copies), []
        if problem.grouped:
            share = expected_tiles(problem, 1)[1] / problem.experts
            sets = min(MOST_COPIES, max(len(copies), int(cache // max(1.0, share * each)) + 1))
            chosen = _draw_chosen(runtime, problem, sets, seed, held)
            rotated = min(rotated, int(sets * share * each))
    except BaseException:
        runtime.free(held)
        raise
    return Bench(problem, held[0], held[1], tuple(copies), rotated, cache, tuple(chosen))


def _draw_chosen(runtime: Runtime, problem: Problem, sets: int, seed: int, held: list[Buffer]) -> list[Chosen]:
    """Sets of ids, and weights where y is summed, uploaded; the buffers are added to `held` as they are made."""
    found = []
    for i in range(sets):
        ids = draw_ids(problem.routing, problem.experts, problem.m, problem.top_k, seed + i)
        held.append(runtime.upload(ids))
        mine = held[-1]
        weights = None
        if problem.summed:
            held.append(runtime.upload(np.full(ids.shape, 1.0 / problem.top_k, np.float32)))
            weights = held[-1]
        found.append(Chosen(mine, weights))
    return found


def close_bench(runtime: Runtime, bench: Bench) -> None:
    """Free the bench's buffers."""
    taken = [b for c in bench.chosen for b in (c.ids, c.weights) if b is not None]
    runtime.free([bench.x, bench.y, *taken, *(b for w in bench.copies for b in _buffers(w))])


def _buffers(weights: DeviceWeights) -> list[Buffer]:
    unique = {id(piece.buffer): piece.buffer for piece in weights.slices}
    return list(unique.values())


@dataclass
class Contender:
    """An arm, compiled, with its launches for every weight copy; `next` walks the copies."""

    arm: Arm
    binary: Binary
    launches: tuple[tuple[Launch, ...], ...]


def prepare(
    runtime: Runtime,
    bench: Bench,
    arm: Arm,
    expected: Mapping[str, int] | None = None,
    resolve: Resolve = kernels.parse_tile,
) -> Contender:
    """Compile an arm and describe its launches.

    expected: the proved binary's id for each tile text; an arm that is missing there or compiles to another binary
    raises Wrong, since what is raced must be what was proved. `UNPROVED` in an id's place: the arm is only screened.
    Raises CompileFailed, DoesNotFit, UnusableInput.
    """
    if arm.problem != bench.problem:
        raise UnusableInput(f"arm {arm.tile} is for {arm.problem.text()}, the bench for {bench.problem.text()}")
    kernel, tile = resolve(arm.tile)
    binary = runtime.compile(kernel.source(tile, arm.problem, runtime.limits()))
    proved = binary.id if expected is None else expected.get(arm.tile)
    if proved not in (binary.id, UNPROVED):
        raise Wrong(
            f"{arm.tile}: compiled to {binary.id:08x}, proved was {'nothing' if proved is None else f'{proved:08x}'}"
        )
    launches = tuple(
        launches_of(kernel, binary, tile, arm.problem, bench.x, w, bench.y, chosen) for w, chosen in bench.rotation
    )
    return Contender(arm, binary, launches)


class Timer:
    """Times contenders, each sample on the next weight copies, and checks what ran.

    The walk over the copies is shared by all contenders, so a copy is met again only after all others were read.
    """

    def __init__(self, runtime: Runtime, bench: Bench) -> None:
        self._runtime = runtime
        self._bench = bench
        self._position = 0

    def sample(self, contenders: Sequence[Contender], repeats: Sequence[int]) -> list[float]:
        """Device seconds of one run of each contender (all its launches), timed in the order given in one submission.

        repeats: runs a contender makes, its sample being their mean. Raises Wrong where the device ran another binary.
        """
        return self.runs(contenders, [(i, True) for i, times in enumerate(repeats) for _ in range(times)])

    def runs(self, contenders: Sequence[Contender], plan: Sequence[tuple[int, bool]]) -> list[float]:
        """The mean device seconds of each contender's counted runs.

        plan: (index of a contender, whether its run counts) in the order of one submission; every contender has a run
        that counts. Raises Wrong as `sample` does.
        """
        launches: list[Launch] = []
        owners: list[int] = []
        counted: list[bool] = []
        allowed = [all_ids(contender.binary) for contender in contenders]
        for index, counts in plan:
            run = contenders[index].launches[self._position % len(contenders[index].launches)]
            self._position += 1
            launches += run
            owners += [index] * len(run)
            counted += [counts] * len(run)
        seconds = self._runtime.time(launches)
        executed = self._runtime.executed_ids()
        if len(executed) != len(launches):
            raise Wrong(f"{len(launches)} timed launches, the device reported {len(executed)}")
        for owner, launch, identity in zip(owners, launches, executed, strict=True):
            tile, expected = contenders[owner].arm.tile, launch.binary.id
            if expected not in allowed[owner]:
                raise Wrong(f"{tile}: a launch names binary {expected:08x}, which is not of the arm's")
            if identity != expected:
                raise Wrong(f"{tile}: timed binary {identity:08x}, expected {expected:08x}")
        totals = np.bincount(owners, np.where(counted, seconds, 0.0), len(contenders))
        means = totals / np.bincount([i for i, counts in plan if counts], minlength=len(contenders))
        if not (means > 0).all():
            raise Wrong(f"{contenders[int(np.argmin(means))].arm.tile}: the device's clock showed no time passing")
        return [float(s) for s in means]
