"""Record A/A samples: one tile, launched again and again as races launch arms, and nothing compared.

    python benchmarks/race_noise.py --device vulkan:0 --out noise.npz --seconds 20 \
        --case "NAME|FORMAT NxK M DTYPE|TILE" [--case ...]

A submission holds as many launches as a round of a race (incumbent, its A/A arm, a challenger) on rotating weight
copies, timed by the shipped path (`race.bench`). Kept of each case: `NAME.seconds`, the median of a launch, and
`NAME.deviation`, i2[submissions, launches], round(1e4 ln(t / median)). A file that is there keeps its other cases.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "src")]

SCALE = 1e4
MOST_LAUNCHES = 12_000
WARM_UP_S = 1.0


def problem_of(text: str) -> Any:
    """FORMAT NxK M DTYPE."""
    from warptile.contracts import Problem

    name, shape, m, dtype = text.split()
    n, k = map(int, shape.split("x"))
    return Problem(name, n, k, int(m), dtype, dtype)


def record(runtime: Any, problem: Any, tile: str, seconds: float, copies_bytes: int) -> np.ndarray:
    """Seconds f64[submissions, launches a submission], in order of time, after a second of warm-up."""
    from warptile import kernels
    from warptile.contracts import Arm
    from warptile.race.bench import prepare
    from warptile.race.jobs import BenchWeights, bench_for
    from warptile.race.racing import MOST_REPEATS, SHORTEST_SAMPLE_S

    kernel, _ = kernels.parse_tile(tile)
    arrangement = kernels.arrangement_of(kernel, runtime.limits())
    bench = bench_for(runtime, problem, BenchWeights(copies_bytes=copies_bytes), True, arrangement)
    arm = prepare(runtime, bench, Arm(tile, problem))
    position, end = 0, time.monotonic() + WARM_UP_S
    taken: list[list[float]] = []
    times, warm = 3, True
    while True:
        launches = []
        for _ in range(times):
            launches += arm.launches[position % len(arm.launches)]
            position += 1
        spent = runtime.time(launches)
        if set(runtime.executed_ids()) - {launch.binary.id for launch in launches}:
            raise SystemExit(f"{tile}: another binary ran")
        if warm and time.monotonic() >= end:
            warm = False
            times = 3 * min(MOST_REPEATS, max(1, round(SHORTEST_SAMPLE_S * times / sum(spent))))
            end = time.monotonic() + seconds
        elif not warm:
            taken.append(_a_run(spent, times))
            if time.monotonic() >= end or len(taken) * times >= MOST_LAUNCHES:
                return np.array(taken)


def _a_run(spent: list[float], times: int) -> list[float]:
    """Seconds of each run; a run may be several launches (a pre-pass, slices)."""
    return [float(s) for s in np.array(spent).reshape(times, -1).sum(axis=1)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=10.0, help="a case")
    parser.add_argument("--copies-mib", type=int, default=128)
    parser.add_argument("--case", action="append", required=True)
    options = parser.parse_args()
    from warptile.contracts import WarptileError
    from warptile.places import Places
    from warptile.runtimes import open_device

    kept = dict(np.load(options.out)) if options.out.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        runtime = open_device(options.device, Places.under(folder).ready())
        for case in options.case:
            name, asked, tile = case.split("|")
            try:
                seconds = record(runtime, problem_of(asked), tile, options.seconds, options.copies_mib << 20)
            except WarptileError as error:
                print(f"{name}: {error}", flush=True)
                continue
            median = np.median(seconds)
            logs = np.clip(np.round(SCALE * np.log(seconds / median)), -32767, 32767)
            kept[f"{name}.seconds"], kept[f"{name}.deviation"] = np.float64(median), logs.astype(np.int16)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(options.out, **kept)
            spread = np.quantile(logs, [0.01, 0.25, 0.75, 0.99]) / SCALE
            print(f"{name}: {median * 1e6:.1f} us, {logs.shape}, quantiles of ln {np.round(spread, 4)}", flush=True)
        runtime.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
