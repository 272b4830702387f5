"""How well prices ranked what was measured: per device, over every screening of a journal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

FEWEST_TILES = 5
TOP = 5


@dataclass(frozen=True)
class Ranked:
    """One price over the searches of a device: each is a problem in one run, with five tiles measured or more.

    searches: how many. correlation: median over them of Spearman's rho of price and measured seconds, with the lowest
    and highest quarter's end. top: in how many the fastest tile was among the price's first five of those measured.
    """

    searches: int
    correlation: tuple[float, float, float]
    top: int


@dataclass(frozen=True)
class Accuracy:
    """A device's prices against its measurements. tiles: measured, each once a search and problem.

    paper: the price before any measurement; corrected: the price as it was when the search chose the tile, corrected
    by what had been measured until then; None where no search has enough tiles. considered: tiles of the spaces
    searched, refused: by rules on paper, screened and proved of them; 0 where the journal's runs did not say.
    """

    device: str
    runtime: str
    tiles: int
    paper: Ranked | None
    corrected: Ranked | None
    considered: int
    refused: int
    screened: int
    proved: int

    @property
    def pruned(self) -> float | None:
        """Share of the tiles considered that was never run; None where that is not known."""
        return 1 - self.screened / self.considered if self.considered else None


def accuracies(entries: Iterable[Mapping[str, Any]]) -> list[Accuracy]:
    """Of a journal's entries, one for each device and runtime in it, by name. Entries of another shape are passed over.

    A search is one run's tiles on one problem; the last timing of a tile counts. A paper price is the one written
    with the timing.
    """
    searches: dict[tuple[str, str], dict[tuple[str, str], dict[str, _Timed]]] = defaultdict(lambda: defaultdict(dict))
    spaces: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for entry in entries:
        try:
            who = (str(entry["identity"]["device"]), str(entry["identity"]["runtime"]))
            if entry["kind"] == "race" and entry["stage"] == "screen":
                at = (str(entry.get("run", "")), _problem(entry["problem"]))
                for arm in entry["arms"]:
                    if arm["seconds"] is not None and arm["predicted"] is not None:
                        _take(searches[who][at], arm)
            elif entry["kind"] == "run":
                spaces[who] += entry.get("searched", [])
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
    return [_accuracy(who, list(found.values()), spaces[who]) for who, found in sorted(searches.items())]


@dataclass(frozen=True)
class _Timed:
    seconds: float
    paper: float
    corrected: float | None


def _problem(fields: Mapping[str, Any]) -> str:
    return str(sorted((name, value) for name, value in fields.items() if name != "count"))


def _take(search: dict[str, _Timed], arm: Mapping[str, Any]) -> None:
    corrected = arm.get("corrected")
    known = search.get(arm["tile"])
    # What was expected before the first timing is the prediction; later ones know the answer.
    said = known.corrected if known is not None else float(corrected["seconds"]) if corrected else None
    search[arm["tile"]] = _Timed(float(arm["seconds"]), float(arm["predicted"]["seconds"]), said)


def _accuracy(
    who: tuple[str, str], searches: Sequence[Mapping[str, _Timed]], spaces: Sequence[Mapping[str, Any]]
) -> Accuracy:
    def total(name: str) -> int:
        return sum(int(space.get(name, 0)) for space in spaces)

    corrected = [[(t.corrected, t.seconds) for t in s.values() if t.corrected is not None] for s in searches]
    return Accuracy(
        *who,
        tiles=sum(map(len, searches)),
        paper=_ranked([[(t.paper, t.seconds) for t in s.values()] for s in searches]),
        corrected=_ranked(corrected),
        considered=total("considered"),
        refused=total("refused"),
        screened=total("screened"),
        proved=total("proved"),
    )


def _ranked(searches: Sequence[Sequence[tuple[float, float]]]) -> Ranked | None:
    enough = [np.array(pairs, np.float64) for pairs in searches if len(pairs) >= FEWEST_TILES]
    rhos = [rank_correlation(pairs[:, 0], pairs[:, 1]) for pairs in enough]
    known = [rho for rho in rhos if np.isfinite(rho)]
    if not known:
        return None
    low, middle, high = (float(q) for q in np.atleast_1d(np.quantile(known, [0.25, 0.5, 0.75])))
    top = sum(int((pairs[:, 0] < pairs[np.argmin(pairs[:, 1]), 0]).sum() < TOP) for pairs in enough)
    return Ranked(len(enough), (middle, low, high), top)


def rank_correlation(first: F64, second: F64) -> float:
    """Spearman's rho; NaN where either is constant."""
    from scipy.stats import spearmanr

    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(spearmanr(first, second).statistic)
