"""The command line that repeats a row, from any folder of any machine with such a device."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import PurePath

from warptile.contracts import Identity, UnusableInput
from warptile.handover.rows import Row
from warptile.journal.facts import Run
from warptile.kernels import parse_tile
from warptile.studies.pair import RACE_SHARE, ROUNDS
from warptile.workloads.texts import words_of

LEAST_BUDGET_S = 60
_FOLDERS = ("--state", "--cache", "--locks")
_WORDS = ("--because", "--problem")


def device_words(identity: Identity) -> tuple[str, str]:
    """`--device` by runtime and name, which holds on a machine that numbers its devices otherwise."""
    return "--device", f"{identity.runtime}:{identity.device}"


def known(tile: str) -> bool:
    """Whether this version can read a tile."""
    try:
        parse_tile(tile)
    except UnusableInput:
        return False
    return True


def reproduce(row: Row, runs: Mapping[str, Run], rounds: int = 0) -> str:
    """A command that races the row again and says whether its interval is met; "" where this version cannot.

    rounds: in place of as many as it had.
    """
    if not (known(row.control) and known(row.arm)):
        return ""
    run = runs.get(row.run)
    words = ["warptile", "study", "--arms", row.control, row.arm, "--problem", words_of(row.problem)]
    words += device_words(row.identity)
    model = model_of(run)
    words += ["--model", model] if model else []
    seed = run.facts.get("seed") if run is not None else None
    words += ["--seed", str(seed)] if type(seed) is int and seed else []
    wanted = rounds or max((r.race.rounds for r in row.races), default=ROUNDS)
    words += ["--rounds", str(wanted)] if wanted != ROUNDS else []
    slowest = max((2 * r.race.incumbent_seconds + r.race.challenger_seconds for r in row.races), default=0.0)
    budget = math.ceil(1.5 * wanted * slowest / RACE_SHARE)
    words += ["--budget", f"{budget}s"] if budget > LEAST_BUDGET_S else []
    if row.interval is not None and not rounds:
        low, high = row.interval
        words += ["--recorded", f"{low:.4f},{high:.4f},{row.floor:.4f}"]
    return shlex.join(words)


def model_of(run: Run | None) -> str:
    """The file name of the model whose own weights a run raced with; "" where it drew them."""
    source = str(run.facts.get("source") or "") if run is not None else ""
    return PurePath(source).name if source.lower().endswith(".gguf") else ""


def command_of(run: Run) -> str:
    """A run's command line as another machine can give it: files by their names, this machine's folders left out."""
    words: list[str] = []
    before = ""
    for word in run.command:
        option, _, value = word.partition("=")
        if before not in _FOLDERS and word not in _FOLDERS and not (option in _FOLDERS and value):
            plain = before in _WORDS or ":" in word
            words.append(word if plain else f"{option}={_name(value)}" if value and option[:2] == "--" else _name(word))
        before = word if before not in _FOLDERS else ""
    return shlex.join(["warptile", *words]) if words else ""


def _name(word: str) -> str:
    return PurePath(word).name if "/" in word else word
