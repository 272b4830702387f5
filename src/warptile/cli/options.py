"""Options several verbs share, and how their texts are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from warptile.cli.show import path
from warptile.contracts import UnusableInput
from warptile.journal import Asked
from warptile.places import Places

Device = Annotated[str, typer.Option("--device", help="vulkan:NUMBER or vulkan:PART_OF_NAME")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")]
State = Annotated[Path | None, typer.Option("--state", help="Folder of journal and tables; default: the user's own.")]
Cache = Annotated[Path | None, typer.Option("--cache", help="Folder of compiled code; default: the user's own.")]
Locks = Annotated[
    Path | None, typer.Option("--locks", hidden=True, help="Folder of device locks; default: the machine's.")
]
Ms = Annotated[str, typer.Option("--m", help="Numbers of tokens, such as 1,128,512.")]
Budget = Annotated[str, typer.Option("--budget", help="Time to spend, such as 90s, 5m or 1h.")]
LlamaCpp = Annotated[
    Path | None, typer.Option("--llama-cpp", metavar="PATH", help="A checkout of llama.cpp, read where it is.")
]
Dtype = Annotated[
    str | None, typer.Option("--dtype", help="Type of x and y: fp32, fp16 or bf16; default: the device's own.")
]
Routing = Annotated[
    str | None,
    typer.Option("--routing", help="How tokens spread over experts: uniform, zipf:S, or a JSON file of their counts."),
]
Because = Annotated[
    str, typer.Option("--because", metavar="TEXT", help="Why, in your words: the hypothesis that the journal keeps.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of weights, activations and orders.")]

FIRST_DEVICE = "vulkan:0"
DEFAULT_M = "128"
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_MOST_M = 1 << 20


def places(state: Path | None, cache: Path | None, locks: Path | None = None) -> Places:
    """The user's folders, each replaced where one is given."""
    default = Places.default()
    return Places(cache or default.cache, state or default.state, locks or default.locks)


def asked(context: typer.Context, verb: str, because: str = "") -> Asked:
    """What the journal keeps of a command line: the verb, every word after the program's name, and why."""
    words = context.find_root().obj
    return Asked(verb, tuple(str(word) for word in words) if isinstance(words, tuple) else (), because)


def given(
    device: str, state: Path | None, cache: Path | None, dtype: str | None = None, routing: str | None = None
) -> dict[str, tuple[str, ...]]:
    """The words of these options that were not left out, by name, paths as short as they may be."""
    words: dict[str, tuple[str, ...]] = {} if device == FIRST_DEVICE else {"device": ("--device", device)}
    words |= {} if dtype is None else {"dtype": ("--dtype", dtype)}
    words |= {} if routing is None else {"routing": ("--routing", routing)}
    folders = {"state": state, "cache": cache}
    return words | {name: (f"--{name}", path(where)) for name, where in folders.items() if where is not None}


def seconds(text: str) -> float:
    """Seconds of "90", "90s", "5m", "1.5h". Raises UnusableInput."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([smh]?)", text.strip())
    value = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 0 < value < float("inf"):
        raise UnusableInput(f"budget {text!r} is no time such as 90s, 5m or 1h")
    return value


def token_counts(text: str) -> tuple[int, ...]:
    """Whole numbers from "1,128,512", each once, in order. Raises UnusableInput."""
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"\d{1,7}", part) and 1 <= int(part) <= _MOST_M for part in parts):
        raise UnusableInput(f"--m {text!r} is no list of numbers of tokens such as 1,128,512")
    return tuple(dict.fromkeys(int(part) for part in parts))
