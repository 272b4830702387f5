"""How often simulated tunes accept a change that is none, and find one that is; with a plot for the docs.

    python benchmarks/race_errors.py run --out benchmarks/data/race_errors.json --tunes 1000 --gain 1 [--noise PART]
    python benchmarks/race_errors.py show|plot [--png docs/race.png]

`run` goes on where the file stopped: seed i of a noise and a gain is always the same tune. Tunes are whole ones over 64
tiles with the default budget of 300 s (`tests/support/simulated_tunes.py`): the shipped loop, screening, play-off, race
and decision on a clock of resampled A/A launches. `show` prints, and `plot` draws, the share of tunes that accepted
tile 1, which is faster by the gain, and at gain 1 of those that accepted any, with Clopper and Pearson's 95 % bounds
(1934).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

# Okabe and Ito's colours, told apart with any colour vision; markers differ as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vP*"


def bounds(hits: int, tunes: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval of a probability."""
    from scipy.stats import beta

    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(tail, hits, tunes - hits + 1))
    high = 1.0 if hits == tunes else float(beta.ppf(1 - tail, hits + 1, tunes - hits))
    return low, high


def run(options: argparse.Namespace) -> None:
    """Add tunes to the file until every chosen noise and gain has as many as asked for."""
    from tests.support.noise import noises
    from tests.support.simulated_tunes import tune_once

    known = noises()
    wanted = [
        name
        for part in options.noise or [""]
        for name in known
        if part in (name, "") or (part not in known and part in name)
    ]
    chosen = {name: known[name] for name in wanted}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for upto in range(options.step, options.tunes + options.step, options.step):
            for name, noise in chosen.items():
                for gain in options.gain:
                    row = read(options.out).get(f"{name}|{gain:g}", {"tunes": 0, "any": 0, "right": 0, "seconds": 0.0})
                    for seed in range(row["tunes"], min(upto, options.tunes)):
                        told = tune_once(noise, seed, gain, Path(folder))
                        accepted = told.outcome == "accept"
                        row["tunes"] += 1
                        row["any"] += accepted
                        row["right"] += accepted and told.tile == 1
                        row["seconds"] += told.seconds
                    write(options.out, f"{name}|{gain:g}", row)


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def write(path: Path, key: str, row: dict[str, Any]) -> None:
    """One row, between two reads of the file, so that several runs may fill different rows."""
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = read(path) | {key: row}
        path.write_text(json.dumps(dict(sorted(whole.items())), indent=1) + "\n")


def show(options: argparse.Namespace) -> None:
    """A Markdown table, a line a noise."""
    rows = read(options.out)
    gains = sorted({float(key.split("|")[1]) for key in rows} - {1.0})
    print("| noise | equal tiles: accepted |" + "".join(f" {100 * (g - 1):g} % found |" for g in gains) + " a tune |")
    print("|---|---|" + "---|" * (len(gains) + 1))
    for name in dict.fromkeys(key.split("|")[0] for key in rows):
        mine = [rows.get(f"{name}|{gain:g}") for gain in (1.0, *gains)]
        cells = [_share(row, "any" if i == 0 else "right") for i, row in enumerate(mine)]
        seconds = [row["seconds"] / row["tunes"] for row in mine if row]
        print(f"| {name} | {' | '.join(cells)} | {sum(seconds) / len(seconds):.0f} s |")


def _share(row: dict[str, Any] | None, what: str) -> str:
    if row is None:
        return "-"
    low, high = bounds(row[what], row["tunes"])
    return f"{row[what]} of {row['tunes']} [{100 * low:.2g} %, {100 * high:.3g} %]"


def plot(options: argparse.Namespace) -> None:
    """Left: how often a gain is found. Right: how often tunes of equal tiles accept a change."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = read(options.out)
    names = list(dict.fromkeys(key.split("|")[0] for key in rows))
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(3, 2), layout="constrained")
    for i, name in enumerate(names):
        gains = sorted(float(key.split("|")[1]) for key in rows if key.split("|")[0] == name)
        found = [rows[f"{name}|{gain:g}"] for gain in gains]
        shares = [row["right"] / row["tunes"] for row in found]
        ends = [bounds(row["right"], row["tunes"]) for row in found]
        style = {"color": COLOURS[i % 7], "marker": MARKERS[i // 7 * 3 % 7], "linestyle": ("-", "--")[i // 7]}
        x = [100 * (gain - 1) for gain in gains]
        left.plot(x, shares, label=name, **style)
        left.fill_between(x, *zip(*ends, strict=True), color=style["color"], alpha=0.1, linewidth=0)
        if (row := rows.get(f"{name}|1")) is not None:
            low, high = bounds(row["any"], row["tunes"])
            share = row["any"] / row["tunes"]
            right.errorbar(
                100 * share, len(names) - i, xerr=[[100 * (share - low)], [100 * (high - share)]], capsize=3, **style
            )
    left.axvline(2, color="0.7", linewidth=1)
    left.axhline(0.9, color="0.7", linewidth=1)
    left.set(xlabel="true gain of one of 64 tiles, %", ylabel="share of tunes that serve it", ylim=(-0.02, 1.02))
    left.legend(fontsize=7)
    right.axvline(1, color="0.7", linewidth=1)
    right.set_yticks([len(names) - i for i in range(len(names))], names, fontsize=7)
    right.set(xlabel="tunes of 64 equal tiles that accept a change, %", xlim=(-0.05, 1.6))
    figure.savefig(options.png, dpi=90)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("run", "show", "plot"))
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "data" / "race_errors.json")
    parser.add_argument("--png", type=Path, default=ROOT / "docs" / "race.png")
    parser.add_argument("--tunes", type=int, default=1000)
    parser.add_argument("--step", type=int, default=50, help="tunes of one kind before the next kind's turn")
    parser.add_argument("--gain", type=float, action="append")
    parser.add_argument("--noise", action="append", help="part of a noise's name")
    parser.add_argument("--folder", help="where tunes write their journals, best in memory")
    options = parser.parse_args()
    options.gain = options.gain or [1.0, 1.01, 1.02, 1.03, 1.05]
    {"run": run, "show": show, "plot": plot}[options.verb](options)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
