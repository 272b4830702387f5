"""A thousand devices that are not there, under the fleet's real schedule: makespan against its lower bound, and the
driver's memory.

    python benchmarks/fleet_simulation.py [--devices 1000] [--kinds 12] [--models 200] [--seeds 3] [--json FILE]

Each model asks for seven matmuls at two numbers of tokens, drawn from shapes that models share; every kind of device
searches each once and checks its winner on eight cards more. Cards fail, die for good and straggle (`Weather`).
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import time
from pathlib import Path

from warptile.contracts import Problem
from warptile.fleet.items import Card, Item
from warptile.fleet.simulation import Weather, simulate

MATMULS = 7
MS = (1, 128)


def shelf(devices: int, kinds: int) -> list[Card]:
    return [Card(f"kind {i % kinds}", f"node{i // 4}", f"vulkan:{i % 4}") for i in range(devices)]


def work(kinds: int, models: int, seed: int) -> list[Item]:
    """Items of all kinds; two models in three share their shapes with another."""
    chance = random.Random(seed)
    shapes: list[tuple[str, int, int]] = []
    for _ in range(models):
        if shapes and chance.random() < 2 / 3:
            continue
        format_name = chance.choice(["Q4_K", "Q6_K", "Q8_0", "Q4_0"])
        shapes += [(format_name, 256 * chance.randint(2, 64), 256 * chance.randint(2, 64)) for _ in range(MATMULS)]
    problems = [Problem(f, n, k, m) for f, n, k in dict.fromkeys(shapes) for m in MS]
    return [
        Item(f"kind {kind}", p, seconds=15 + p.n * p.k / 1e6 * p.m**0.5 / 20) for kind in range(kinds) for p in problems
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("devices", 1000), ("kinds", 12), ("models", 200), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    for seed in range(given.seeds):
        cards, items = shelf(given.devices, given.kinds), work(given.kinds, given.models, seed)
        start = time.perf_counter()
        found = simulate(cards, items, Weather(), seed)
        rows.append(
            {
                "seed": seed, "searches": len(items), "done": found.done, "lost": found.lost, "begun": found.begun,
                "makespan_s": found.makespan, "bound_s": found.bound, "ratio": found.makespan / found.bound,
                "scheduling_us_an_item": 1e6 * (time.perf_counter() - start) / found.begun,
                "driver_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )  # fmt: skip
        print("  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in rows[-1].items()))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
