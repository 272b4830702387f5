"""Shape files: matmuls written down as TOML.

name = "llama-8b"
about = "where the shapes come from"

[[matmul]]
format = "Q4_K"                     # required: format, n, k
n = 4096
k = 4096
count = 64                          # how often one pass asks for it; default: one a tensor, else 1
tensors = ["attn_q", "attn_output"] # labels
role = "linear"                     # or "output", "experts", "experts_down" (a row of x an expert taken, y summed)
m = 128                             # the only m it is wanted at; default: any
experts = 8                         # of the roles of experts, with top_k
top_k = 2
routing = "zipf:1"                  # how tokens spread over them, see `experts`; default: uniformly
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from warptile.contracts.errors import UnusableInput
from warptile.contracts.problem import Workload, WorkloadRow
from warptile.gguf import type_by_name
from warptile.gguf.escape import escaped, shown
from warptile.workloads.experts import shares
from warptile.workloads.supported import format_names

_ROLES = ("linear", "output", "experts", "experts_down")
_NUMBERS = ("n", "k", "m", "count", "experts", "top_k")
_KEYS = frozenset({"format", "role", "tensors", "routing", *_NUMBERS})
_MOST = 2**31 - 1
_MOST_BYTES = 1 << 20


def shape_names() -> tuple[str, ...]:
    """Names of the shape files that ship with warptile."""
    folder = files("warptile.workloads").joinpath("shapes")
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml")))


def from_shapes(name_or_path: str | Path) -> Workload:
    """The workload of a shipped shape file (by name) or of a TOML file (by path).

    nbytes of a row is what its weights take packed as in a file: count * experts * n * k / block_size * block_bytes.
    Raises UnusableInput: no such file or name, not TOML, or an entry that is not usable, named by its place.
    """
    name = str(name_or_path)
    if name in shape_names():
        text, where, stem = _shipped(name), f"shape file {name}", name
    else:
        path = Path(name_or_path)
        if path.suffix.lower() != ".toml":
            raise UnusableInput(
                f"{shown(path)}: no shape file of that name ships; there are {', '.join(shape_names())}"
            )
        text, where, stem = _read(path), shown(path), path.stem
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnusableInput(f"{where}: not TOML: {escaped(str(error))}") from error
    except RecursionError as error:
        raise UnusableInput(f"{where}: not a shape file: nested too deeply") from error
    _only(table, {"name", "about", "matmul"}, where)
    entries = table.get("matmul")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise UnusableInput(f"{where}: no [[matmul]] entries")
    rows = tuple(_row(entry, f"{where}: [[matmul]] {index}") for index, entry in enumerate(entries, 1))
    title = table.get("name", stem)
    if not isinstance(title, str):
        raise UnusableInput(f"{where}: name is not text")
    return Workload(title, name, rows)


def _shipped(name: str) -> str:
    return files("warptile.workloads").joinpath("shapes", f"{name}.toml").read_text(encoding="utf-8")


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            raise UnusableInput(f"{shown(path)}: no such file")
        if path.stat().st_size > _MOST_BYTES:
            raise UnusableInput(f"{shown(path)}: larger than the {_MOST_BYTES} bytes a shape file may have")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UnusableInput(f"{shown(path)}: not a shape file: not UTF-8 at byte {error.start}") from error
    except (OSError, ValueError) as error:
        raise UnusableInput(f"{shown(path)}: cannot be opened: {error}") from error


def _only(table: dict[str, Any], keys: frozenset[str] | set[str], where: str) -> None:
    for key in table:
        if key not in keys:
            raise UnusableInput(f"{where}: unknown key {escaped(key)}; known are {', '.join(sorted(keys))}")


def _row(entry: dict[str, Any], where: str) -> WorkloadRow:
    _only(entry, _KEYS, where)
    for key in ("format", "n", "k"):
        if key not in entry:
            raise UnusableInput(f"{where}: {key} is missing")
    for key in _NUMBERS:
        value = entry.get(key, 1)
        if type(value) is not int or not 1 <= value <= _MOST:
            raise UnusableInput(f"{where}: {key} = {escaped(str(value))} is not a whole number from 1 to {_MOST}")
    role = entry.get("role", "linear")
    if role not in _ROLES:
        raise UnusableInput(f"{where}: role {escaped(str(role))} is none of {', '.join(_ROLES)}")
    experts, top_k = entry.get("experts", 1), entry.get("top_k", 1)
    if role.startswith("experts") != (experts > 1) or top_k > experts:
        raise UnusableInput(f"{where}: role {role} does not go with experts = {experts}, top_k = {top_k}")
    routing = entry.get("routing", "")
    if not isinstance(routing, str) or (routing and experts == 1):
        raise UnusableInput(f"{where}: routing {escaped(str(routing))} is no text, or of a row without experts")
    try:
        shares(routing, experts)
    except UnusableInput as error:
        raise UnusableInput(f"{where}: {error}") from None
    tensors = entry.get("tensors", [])
    if not isinstance(tensors, list) or not all(isinstance(t, str) for t in tensors):
        raise UnusableInput(f"{where}: tensors is not a list of names")
    name, n, k = entry["format"], entry["n"], entry["k"]
    kind = type_by_name(name) if isinstance(name, str) and name in format_names() else None
    if kind is None:
        raise UnusableInput(
            f"{where}: format {escaped(str(name))} is unknown; known are {', '.join(sorted(format_names()))}"
        )
    if k % kind.block_size:
        raise UnusableInput(f"{where}: k = {k} is not a multiple of {name}'s block of {kind.block_size}")
    count = entry.get("count", len(tensors) or 1)
    nbytes = count * experts * n * (k // kind.block_size) * kind.block_bytes
    return WorkloadRow(name, n, k, role, tuple(tensors), nbytes, experts, top_k, entry.get("m", 0), count, routing)
