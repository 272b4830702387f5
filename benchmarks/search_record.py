"""Times many tiles of the whole space, good and bad alike, so that searches can be replayed without the device.

    python benchmarks/search_record.py --device vulkan:0 --problem Q4_1,1536,576,128 --tiles 0 --out recorded
    python benchmarks/search_record.py --device cuda:0 --problem Q4_K,4096,4096,8 --tiles 200 --out recorded

Problems (FORMAT,N,K,M) of one format, k and m are a group that shares binaries. Of a group, `--tiles` tiles (0: all)
are taken: those of least price of each problem and of each kernel, the rest drawn with `--seed`. They are compiled
side by side where the runtime can, timed in interleaved passes of random order on rotated copies of the weights, and
written to a journal under `--out` as one screening a problem; `benchmarks/search_replay.py` reads it. Nothing is
proved here: a recording ranks tiles, it decides nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from warptile import kernels
from warptile.contracts import Arm, CandidateRejected, Problem, Runtime
from warptile.journal import Journal, entries
from warptile.journal.record import Record
from warptile.places import Places
from warptile.race.bench import Contender, Timer, prepare
from warptile.race.jobs import BenchWeights, bench_for, release_job
from warptile.runtimes import open_device
from warptile.search import Candidate, rank
from warptile.tuning.notes import source_hash

Group = list[tuple[Problem, list[Candidate]]]
CHUNK = 24
COPIES_BYTES = 160 << 20
HOPELESS = 6.0
SAMPLE_SECONDS = 150e-6


def problems_of(texts: Sequence[str], dtype: str) -> list[list[Problem]]:
    """Problems of FORMAT,N,K,M texts, in groups of one format, k and m, in the order given."""
    groups: dict[tuple[str, int, int], list[Problem]] = defaultdict(list)
    for text in texts:
        name, n, k, m = text.split(",")
        groups[name, int(k), int(m)].append(Problem(name, int(n), int(k), int(m), dtype, dtype))
    return list(groups.values())


def drawn(runtime: Runtime, problems: Sequence[Problem], tiles: int, best: int, seed: int) -> Group:
    """Candidates of each problem that belong to the group's choice of about `tiles` tiles."""
    usable = kernels.for_runtime(runtime.limits().runtime)
    ranked = {p: rank(p, runtime.limits(), usable) for p in problems}
    everything = list(dict.fromkeys(c.tile.text() for found in ranked.values() for c in found))
    chosen: dict[str, None] = {}
    for found in ranked.values():
        chosen |= dict.fromkeys(c.tile.text() for c in found[:best])
        for kernel in usable:
            chosen |= dict.fromkeys([c.tile.text() for c in found if c.kernel == kernel.name][: best // 4])
    rest = [text for text in everything if text not in chosen]
    order = np.random.default_rng(seed).permutation(len(rest))
    wanted = len(everything) if not tiles else max(0, tiles - len(chosen))
    chosen |= dict.fromkeys(rest[i] for i in order[:wanted])
    return [(p, [c for c in found if c.tile.text() in chosen]) for p, found in ranked.items()]


def compile_group(runtime: Runtime, group: Group) -> None:
    """Fill the runtime's cache with the group's binaries, where it can."""
    ahead = getattr(runtime, "compile_ahead", None)
    if ahead is None:
        return
    sources = {}
    for problem, candidates in group:
        for c in candidates:
            source = kernels.by_name(c.kernel).source(c.tile, problem, runtime.limits())
            sources.setdefault(source.text, source)
    ahead(list(sources.values()))


def measured(
    runtime: Runtime, problem: Problem, candidates: Sequence[Candidate], passes: int, end: float, seed: int
) -> dict[str, list[float]]:
    """Samples of each tile that runs, by its text; tiles over 6 times the fastest have one sample."""
    bench = bench_for(runtime, problem, BenchWeights(seed=seed, copies_bytes=COPIES_BYTES), False)
    timer = Timer(runtime, bench)
    taken: dict[str, list[float]] = {}
    ready: dict[str, Contender] = {}
    for c in candidates:
        text = c.tile.text()
        if time.monotonic() > end:
            break
        try:
            contender = prepare(runtime, bench, Arm(text, problem))
            timer.sample([contender], [1])
            taken[text] = timer.sample([contender], [1])
            ready[text] = contender
        except CandidateRejected as error:
            print(f"  {text}: {error}", flush=True)
    fastest = min((s[0] for s in taken.values()), default=0.0)
    live = [text for text, s in taken.items() if s[0] <= HOPELESS * fastest]
    rng = np.random.default_rng(seed)
    again: dict[str, list[float]] = {text: [] for text in live}
    for _ in range(passes):
        order = [live[i] for i in rng.permutation(len(live))]
        for start in range(0, len(order), CHUNK):
            if time.monotonic() > end:
                break
            part = order[start : start + CHUNK]
            repeats = [max(1, min(8, int(SAMPLE_SECONDS / taken[text][0]))) for text in part]
            for text, seconds in zip(part, timer.sample([ready[t] for t in part], repeats), strict=True):
                again[text].append(seconds)
    return taken | {text: samples for text, samples in again.items() if samples}


def record(
    runtime: Runtime,
    journal: Journal,
    problem: Problem,
    candidates: Sequence[Candidate],
    samples: dict[str, list[float]],
) -> None:
    """One screening of everything measured on a problem."""
    arms: list[dict[str, Any]] = []
    for c in candidates:
        mine = samples.get(c.tile.text())
        source = kernels.by_name(c.kernel).source(c.tile, problem, runtime.limits())
        arms.append(
            {
                "tile": c.tile.text(),
                "source": source_hash(source),
                "seconds": float(np.median(mine)) if mine else None,
                "samples": len(mine or ()),
                "predicted": c.price,
            }
        )
    journal.append(entries.screening(runtime.identity(), problem, arms))


def main() -> None:
    parser = argparse.ArgumentParser(description="record times of many tiles for search_replay.py")
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--problem", action="append", required=True, metavar="FORMAT,N,K,M")
    parser.add_argument("--dtype", default="")
    parser.add_argument("--tiles", type=int, default=200, help="tiles a group of problems; 0: all")
    parser.add_argument("--best", type=int, default=24, help="tiles of least price taken for certain, a problem")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=20260)
    parser.add_argument("--out", type=Path, required=True, help="folder; the journal is OUT/journal")
    parser.add_argument("--cache", type=Path, default=None)
    arguments = parser.parse_args()
    start = time.monotonic()
    end = start + arguments.seconds
    under = Places.under(arguments.out)
    places = replace(under, cache=arguments.cache or under.cache)
    with contextlib.closing(open_device(arguments.device, places.ready())) as runtime:
        dtype = arguments.dtype or runtime.limits().activations
        journal = Journal(arguments.out / "journal")
        notebook = Record(journal, runtime.identity(), runtime.limits())
        notebook.start(source="search_record", problems=arguments.problem)
        groups = [
            drawn(runtime, problems, arguments.tiles, arguments.best, arguments.seed)
            for problems in problems_of(arguments.problem, dtype)
        ]
        compiling = _ahead(runtime, groups[:1])
        for i, group in enumerate(groups):
            compiling.join(max(0.0, end - time.monotonic()))
            if compiling.is_alive() or time.monotonic() > end:
                break
            compiling = _ahead(runtime, groups[i + 1 : i + 2])
            for problem, candidates in group:
                began = time.monotonic()
                samples = measured(runtime, problem, candidates, arguments.passes, end, arguments.seed)
                release_job(runtime)
                if samples:
                    record(runtime, journal, problem, candidates, samples)
                fastest = min(samples, key=lambda t: float(np.median(samples[t])), default="")
                print(
                    f"{time.monotonic() - start:6.1f} s  {problem.text()}: {len(samples)} of {len(candidates)} tiles in"
                    f" {time.monotonic() - began:.1f} s; {fastest}"
                    f" {np.median(samples[fastest]) * 1e6 if fastest else 0:.2f} us",
                    flush=True,
                )
        notebook.end(seconds=time.monotonic() - start)
    print(journal.path)


def _ahead(runtime: Runtime, groups: Sequence[Group]) -> threading.Thread:
    """A thread that compiles the first of these groups."""
    thread = threading.Thread(target=lambda: [compile_group(runtime, g) for g in groups], daemon=True)
    thread.start()
    return thread


if __name__ == "__main__":
    main()
