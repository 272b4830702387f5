"""How few measurements a search needs: it is replayed on recorded spaces, with no device.

    python benchmarks/search_replay.py --recorded recorded/journal [--recorded ...] [--limits h200] [--batch 16]

`benchmarks/search_record.py` recorded seconds of many tiles of each problem: these stand for the whole space, and the
fastest of them for the exhaustive best. A search measures tiles a batch at a time, by choosing as `warptile tune` does:

- paper: in order of the paper price;
- run: by expected improvement, prices corrected by what this search has measured;
- history: the same, knowing what was recorded of all other problems of the same device;
- format: the same, knowing other problems of another format, or another number of tokens, only;
- devices: the same, knowing what was recorded on other devices only (their kernels have to be the same).

Printed for each problem: tiles; Spearman's rho of paper price, and of the price corrected by history; for each search
the fastest tile found over the exhaustive best once 5 %, 10 % and 20 % of the recording's measuring time is spent (by
count of tiles, each of which costs about the same to compile and to time), and the share needed to be within 3 %.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from warptile import devices, kernels
from warptile.contracts import Identity, Limits, Problem
from warptile.journal import Journal, from_json
from warptile.search import Aim, Correction, Observation, Point, Points, chosen
from warptile.tuning.history import point_of
from warptile.tuning.result import bare
from warptile.tuning.scale import joined

MOST_HISTORY = 500
SHARES = (0.05, 0.1, 0.2)
WITHIN = 1.03
SEARCHES = ("paper", "run", "history", "format", "devices")


@dataclass(frozen=True)
class Space:
    """What was recorded of one problem on one device. seconds: of each point."""

    device: str
    limits: Limits
    problem: Problem
    points: tuple[Point, ...]
    seconds: tuple[float, ...]

    def observations(self, most: int) -> list[Observation]:
        """Up to `most` of them, evenly taken."""
        step = max(1, -(-len(self.points) // most))
        pairs = list(zip(self.points, self.seconds, strict=True))[::step]
        return [Observation(p, s, f"{self.device} {self.problem.text()}") for p, s in pairs]


def spaces(folders: Iterable[Path], given: str, fewest: int) -> list[Space]:
    """The recorded spaces of at least `fewest` tiles, at this version's prices; screenings of a problem are joined."""
    limits: dict[str, Limits] = {}
    timed: dict[tuple[str, Problem], dict[str, float]] = {}
    for folder in folders:
        for entry in Journal(folder).read().entries:
            if not entry.get("identity"):
                continue
            identity = from_json(Identity, entry["identity"])
            device = f"{identity.device} {identity.runtime}"
            if entry["kind"] == "device":
                limits[device] = from_json(Limits, entry["limits"])
            if entry["kind"] == "race" and entry["stage"] == "screen":
                named = devices.by_name if identity.runtime == "vulkan" else devices.compile_only
                limits.setdefault(device, named(given))
                at = (device, bare(from_json(Problem, entry["problem"])))
                measured = {str(a["tile"]): float(a["seconds"]) for a in entry["arms"] if a["seconds"]}
                timed[at] = joined(timed.get(at, {}), measured)
    found = []
    for (device, problem), tiles in timed.items():
        own = limits[device]
        pairs = [(point_of(text, problem, own, kernels.parse_tile), seconds) for text, seconds in tiles.items()]
        known = [(point, seconds) for point, seconds in pairs if point is not None]
        if len(known) >= fewest:
            points, seconds = zip(*known, strict=True)
            found.append(Space(device, own, problem, points, seconds))
    return found


def history_of(space: Space, others: Sequence[Space], search: str) -> list[Observation]:
    """What a search may know of other spaces."""
    kept = {
        "history": [o for o in others if o.device == space.device],
        "format": [
            o
            for o in others
            if o.device == space.device and (o.problem.format != space.problem.format or o.problem.m != space.problem.m)
        ],
        "devices": [o for o in others if o.device != space.device],
    }.get(search, [])
    return [observation for o in kept for observation in o.observations(max(1, MOST_HISTORY // len(kept)))]


def replay(space: Space, search: str, history: Sequence[Observation], batch: int) -> list[int]:
    """Places of the points in the order measured, until half of them are."""
    texts = [p.tile.text() for p in space.points]
    if search == "paper":
        return sorted(range(len(texts)), key=lambda i: (space.points[i].price.seconds, texts[i]))
    taken: list[int] = []
    while len(taken) < len(texts) / 2:
        own = [Observation(space.points[i], space.seconds[i], "now") for i in taken]
        left = [i for i in range(len(texts)) if i not in set(taken)]
        estimate = Correction([*own, *history], space.limits).of(
            Points([space.points[i] for i in left], space.limits), "now"
        )
        best = min((space.seconds[i] for i in taken), default=None)
        aim = Aim(1, estimate, np.arange(len(left)), best)
        taken += [left[i] for i in chosen([aim], [texts[i] for i in left], batch)]
    return taken


def found_after(space: Space, order: Sequence[int], share: float) -> float:
    """Fastest of the first `share` of the space over the fastest of all."""
    count = max(1, round(share * len(space.points)))
    return min(space.seconds[i] for i in order[:count]) / min(space.seconds)


def needed(space: Space, order: Sequence[int]) -> float:
    """Share of the space measured when a tile within 3 % of the fastest is."""
    enough = WITHIN * min(space.seconds)
    first = next((n for n, i in enumerate(order, 1) if space.seconds[i] <= enough), len(space.points))
    return first / len(space.points)


def rho(space: Space, history: Sequence[Observation]) -> float:
    """Spearman's correlation of corrected prices and seconds."""
    estimate = Correction(history, space.limits).of(Points(space.points, space.limits))
    return float(spearmanr(estimate.log_seconds, space.seconds).statistic)


def main() -> None:
    parser = argparse.ArgumentParser(description="replay searches on recorded spaces")
    parser.add_argument("--recorded", type=Path, action="append", required=True, help="folder of journals")
    parser.add_argument("--limits", default="h200", help="device of recordings that do not hold its limits")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--fewest", type=int, default=60)
    arguments = parser.parse_args()
    known = spaces(arguments.recorded, arguments.limits, arguments.fewest)
    table: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for space in known:
        others = [o for o in known if o is not space]
        line = [f"paper {rho(space, []):.2f}"]
        for search in SEARCHES:
            history = history_of(space, others, search)
            if search in ("history", "format", "devices"):
                usable = {p.kernel for p in space.points} & {o.point.kernel for o in history}
                if not usable:
                    continue
                line.append(f"{search} {rho(space, history):.2f}")
            order = replay(space, search, history, arguments.batch)
            row = (*(found_after(space, order, s) for s in SHARES), needed(space, order))
            table.setdefault((space.device, search), []).append(row)
            line.append(f"[{' '.join(f'{r:.3f}' for r in row[:-1])}; {row[-1]:.0%}]")
        print(f"{space.device[:12]} {space.problem.text()} {len(space.points)} tiles: {', '.join(line)}", flush=True)
    _print(table)


def _print(table: Mapping[tuple[str, str], Sequence[tuple[float, ...]]]) -> None:
    print("\nworst (median) of best found / exhaustive best after 5, 10, 20 %; share needed for 3 %: worst (median)")
    for (device, search), rows in table.items():
        cells = [f"{max(c):.3f} ({statistics.median(c):.3f})" for c in zip(*rows, strict=True)]
        within = sum(row[1] <= WITHIN for row in rows)
        print(f"{device[:24]:24} {search:8} {'  '.join(cells)}  within 3 % at 10 %: {within} of {len(rows)}")


if __name__ == "__main__":
    main()
