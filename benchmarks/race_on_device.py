"""Whole tunes over equal tiles on a real device, and over tiles of which one leaves out a little of the work.

    python benchmarks/race_on_device.py --device vulkan:0 --out result.json --seconds 60 --gain 1 --gain 1.02 \
        --case "NAME|FORMAT NxK M DTYPE|TILE" [--case ...]

Every tile is the same kernel and tile under another number; where sources have specialization constants each is a build
of its own (an unused constant differs). With --gain G tile 1 is launched with 1 / G of the workgroups, which is what a
tile faster by G would look like to the race; its results are wrong, and nothing is proved here. The shipped loop,
screening, play-off, race and decision run on it; cases and gains take turns until --seconds are over. Printed, and
written as it comes: how many tunes accepted a change, and how many found tile 1.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from warptile.contracts import Price, Problem, Tile, Verdict, Workload, WorkloadRow

TILES = 64
UNUSED_CONSTANT = 97


@dataclass(frozen=True)
class Copy(Tile):
    """One of the equal tiles."""

    kernel: ClassVar[str] = "race.copy"
    number: int = 0


class Copies:
    """A kernel whose tiles all are `tile` of `kernel`; number 1 is launched with `share` of its workgroups."""

    name, tile_type = "race.copy", Copy

    def __init__(self, kernel: Any, tile: Any, share: float) -> None:
        self._kernel, self._tile, self._share = kernel, tile, share
        self.runtime = kernel.runtime
        if hasattr(kernel, "arrangement"):
            self.arrangement = kernel.arrangement

    def space(self, problem: Problem, limits: Any) -> list[Copy]:
        return [Copy(number) for number in range(TILES)]

    def stock(self, problem: Problem, limits: Any) -> Copy:
        return Copy(0)

    def broken_rules(self, tile: Copy, problem: Problem, limits: Any) -> list[Any]:
        return []

    def price(self, tile: Copy, problem: Problem, limits: Any) -> Price:
        return Price(1, 32, 0, 0, "unknown", 0, 1.0, 1, 1.0, 1e-3 * (self._share if tile.number == 1 else 1.0))

    def source(self, tile: Copy, problem: Problem, limits: Any) -> Any:
        source = self._kernel.source(self._tile, problem, limits)
        if not source.constants:
            return source
        return dataclasses.replace(source, constants=(*source.constants, (UNUSED_CONSTANT, tile.number)))

    def launch(self, binary: Any, tile: Copy, *arguments: Any) -> tuple[Any, ...]:
        launches: tuple[Any, ...] = self._kernel.launch(binary, self._tile, *arguments)
        if tile.number != 1 or self._share == 1:
            return launches
        return tuple(dataclasses.replace(each, grid=less(each.grid, self._share)) for each in launches)


def less(grid: tuple[int, int, int], share: float) -> tuple[int, int, int]:
    """The grid with its longest side cut to `share`, rounded to a whole number of workgroups."""
    side = max(range(3), key=lambda i: grid[i])
    return tuple(max(1, round(share * g)) if i == side else g for i, g in enumerate(grid))  # type: ignore[return-value]


@dataclass
class Stand:
    """The loop's stand in this process: jobs of the worker, and proofs that only compile."""

    runtime: Any
    kernel: Copies
    copies_bytes: int

    def _resolve(self, text: str) -> tuple[Any, Any]:
        return self.kernel, Copy.parse(text)

    def _weights(self, seed: int) -> Any:
        from warptile.race.jobs import BenchWeights

        return BenchWeights(seed, copies_bytes=self.copies_bytes)

    def describe(self) -> tuple[Any, Any]:
        return self.runtime.limits(), self.runtime.identity()

    def ceilings(self) -> Any:
        return self.runtime.ceilings()

    def ahead(self, wanted: Sequence[Any], deadline: float) -> int:
        return 1

    def prove(self, tile: str, problems: Sequence[Problem], seed: int, deadline: float) -> Any:
        from warptile.proof.version import PROOF_VERSION
        from warptile.tuning.stand import Proof

        binary = self.runtime.compile(self.kernel.source(Copy.parse(tile), problems[0], self.runtime.limits()))
        return Proof(Verdict(True, (), binary=binary.id, version=PROOF_VERSION), binary.key, binary.compile_seconds)

    def screen(
        self, problem: Problem, proved: Mapping[str, int], seconds: float, seed: int, deadline: float, thorough: bool
    ) -> Any:
        from warptile.race.jobs import screen_job

        weights = self._weights(seed)
        return screen_job(
            self.runtime, problem, proved, weights, seconds, seed, resolve=self._resolve, thorough=thorough
        )

    def race(
        self,
        problem: Problem,
        incumbent: str,
        challenger: str,
        proved: Mapping[str, int],
        seconds: float,
        rounds: int,
        seed: int,
        deadline: float,
        fresh: bool,
        most_rounds: int,
    ) -> Any:
        from warptile.race.jobs import race_job

        arguments = (problem, incumbent, [challenger], proved, self._weights(seed), seconds, seed, fresh, rounds)
        return race_job(self.runtime, *arguments, resolve=self._resolve, most_rounds=most_rounds)[0]

    def watch(self, tile: str, problem: Problem, seed: int, deadline: float) -> None:
        return None

    def close(self) -> None:
        return None


def one_tune(runtime: Any, problem: Problem, tile: str, gain: float, seed: int, copies_bytes: int) -> dict[str, Any]:
    """Outcome, number of the tile kept, seconds, and the decision's reason of one tune."""
    from warptile import kernels
    from warptile.places import Places
    from warptile.tune import tune_on
    from warptile.tuning.budget import Budget

    kernel, parsed = kernels.parse_tile(tile)
    copies = Copies(kernel, parsed, 1 / gain)
    row = WorkloadRow(problem.format, problem.n, problem.k, "linear", ("w",), 1)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = tune_on(
            Stand(runtime, copies, copies_bytes),  # type: ignore[arg-type]
            Workload("copies", "copies.toml", (row,)),
            (problem.m,),
            Budget(300.0),
            Places.under(folder).ready(),
            seed=seed,
            kernels=[copies],  # type: ignore[list-item]
            dtype=problem.x_dtype,
        )
    (found,) = result.rows
    number = Copy.parse(found.tile).number
    return {
        "outcome": found.decision.outcome,
        "tile": number,
        "seconds": time.monotonic() - start,
        "tried": result.tried,
        "why": found.decision.reason,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--copies-mib", type=int, default=128)
    parser.add_argument("--gain", type=float, action="append", required=True)
    parser.add_argument("--case", action="append", required=True)
    options = parser.parse_args()
    from race_noise import problem_of

    from warptile.places import Places
    from warptile.runtimes import open_device

    end = time.monotonic() + options.seconds
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        runtime = open_device(options.device, Places.under(folder).ready())
        seed = 0
        while time.monotonic() < end:
            for case in options.case:
                name, asked, tile = case.split("|")
                for gain in options.gain:
                    if time.monotonic() >= end:
                        break
                    told = one_tune(runtime, problem_of(asked), tile, gain, seed, options.copies_mib << 20)
                    found.setdefault(f"{name}, gain {gain:g}", []).append(told)
                    options.out.write_text(json.dumps(found))
            seed += 1
        runtime.close()
    for name, tunes in found.items():
        counts = Counter(each["outcome"] for each in tunes)
        right = sum(each["outcome"] == "accept" and each["tile"] == 1 for each in tunes)
        mean = math.fsum(each["seconds"] for each in tunes) / len(tunes)
        print(f"{name}: {len(tunes)} tunes, {dict(counts)}, tile 1 accepted {right}, {mean:.1f} s each", flush=True)
        print(f"  {tunes[-1]['why']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
