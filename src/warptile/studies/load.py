"""Study files: TOML, as docs/studies.md describes it. Whatever is wrong is named by its place."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from importlib.resources import files
from pathlib import Path
from typing import Any

from warptile import devices, formats, kernels
from warptile.contracts import Problem, UnusableInput
from warptile.gguf.escape import escaped, shown
from warptile.studies.study import EXPECTATIONS, Size, Study, StudyArm, StudyProblem, scaled

_MOST = 2**31 - 1
_MOST_BYTES = 1 << 20
_DEFAULT_SECONDS = 120.0


def names() -> tuple[str, ...]:
    """Names of the studies that ship with warptile."""
    folder = files("warptile.studies").joinpath("data")
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load(name_or_path: str | Path) -> Study:
    """A shipped study, by name, or one in a TOML file, by path.

    Raises UnusableInput: no such study or file, not TOML, a missing or unknown key, an unknown kernel, device or
    format, a tile its kernel cannot read, an arm or problem that does not exist.
    """
    name = str(name_or_path)
    if name in names():
        text = files("warptile.studies").joinpath("data", f"{name}.toml").read_text(encoding="utf-8")
        return parse(text, name, f"study {name}")
    path = Path(name_or_path)
    if path.suffix.lower() != ".toml":
        raise UnusableInput(f"no study {shown(path)} ships; there are {', '.join(names())}, or give a .toml file")
    return parse(_read(path), path.stem, shown(path))


def parse(text: str, name: str, where: str) -> Study:
    """A study from its file's text; `where` names the file in errors. Raises UnusableInput."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnusableInput(f"{where}: not TOML: {escaped(str(error))}") from None
    except RecursionError:
        raise UnusableInput(f"{where}: not a study: nested too deeply") from None
    top = _Entry(table, where)
    keys = ("question", "hypothesis", "source", "device", "control", "expected", "sizes", "seconds", "problem", "arm")
    top.only(keys)
    problems = tuple(_problem(entry) for entry in top.entries("problem"))
    sizes = tuple(top.texts("sizes", ("as written",)))
    arms = tuple(_arm(entry, sizes, [p.name for p in problems]) for entry in top.entries("arm"))
    found = [arm.name for arm in arms]
    _unique(found, f"{where}: arm")
    _unique([p.name for p in problems], f"{where}: problem")
    control = top.text("control")
    expected = tuple(top.texts("expected"))
    against = tuple(arm.against for arm in arms if arm.against)
    for key, wanted in (("control", (control,)), ("expected", expected), ("against", against)):
        for each in wanted:
            if each not in found:
                raise UnusableInput(f"{where}: {key} names arm {escaped(each)}; arms are {', '.join(found)}")
    device = top.text("device")
    if device not in devices.names():
        known = ", ".join(devices.names())
        raise UnusableInput(f"{where}: no data file for device {escaped(device)}; there are files for {known}")
    return Study(
        name,
        top.text("question"),
        top.text("hypothesis"),
        top.text("source", ""),
        device,
        control,
        expected,
        sizes,
        top.positive("seconds", _DEFAULT_SECONDS),
        problems,
        arms,
    )


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            raise UnusableInput(f"{shown(path)}: no such file")
        if path.stat().st_size > _MOST_BYTES:
            raise UnusableInput(f"{shown(path)}: larger than the {_MOST_BYTES} bytes a study may have")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UnusableInput(f"{shown(path)}: not a study: not UTF-8 at byte {error.start}") from None
    except (OSError, ValueError) as error:
        raise UnusableInput(f"{shown(path)}: cannot be opened: {error}") from None


def _problem(entry: _Entry) -> StudyProblem:
    entry.only(("name", "format", "n", "k", "m", "software"))
    name = entry.text("format")
    if name not in formats.all_formats():
        known = ", ".join(sorted(formats.all_formats()))
        raise UnusableInput(f"{entry.where}: format {escaped(name)} is unknown; known are {known}")
    problem = Problem(name, entry.whole("n"), entry.whole("k"), entry.whole("m"))
    software = None
    if "software" in entry.table:
        inner = entry.inner("software")
        inner.only(("n", "k", "m"))
        software = scaled(problem, {key: inner.whole(key) for key in inner.table})
    for each in (problem, software):
        if each is not None and each.k % formats.by_name(name).block_size:
            block = formats.by_name(name).block_size
            raise UnusableInput(f"{entry.where}: k = {each.k} is not a multiple of {name}'s block of {block}")
    return StudyProblem(entry.text("name"), problem, software)


def _arm(entry: _Entry, sizes: tuple[str, ...], problems: list[str]) -> StudyArm:
    entry.only(("name", "tile", "size", "against", "expect", "source", "why", "also"))
    expect = entry.text("expect", "open")
    if expect not in EXPECTATIONS:
        raise UnusableInput(f"{entry.where}: expect {escaped(expect)} is none of {', '.join(EXPECTATIONS)}")
    found = [_size(entry, problems)]
    if "size" in entry.table:
        found += [_size(inner, problems, ("tile",)) for inner in entry.entries("size")]
    if len(found) != len(sizes):
        raise UnusableInput(
            f"{entry.where}: {len(found)} sizes, the study has {len(sizes)} ({', '.join(sizes)}):"
            " the arm's own tile, then one [[arm.size]] for each further one"
        )
    also = entry.texts("also", ())
    for text in also:
        _tile(text, f"{entry.where}: also")
    return StudyArm(
        entry.text("name"),
        tuple(found),
        entry.text("against", ""),
        expect,
        entry.text("source", ""),
        entry.text("why", ""),
        tuple(also),
    )


def _size(entry: _Entry, problems: list[str], only: tuple[str, ...] = ()) -> Size:
    if only:
        entry.only(only)
    value = entry.table.get("tile")
    if value is None:
        raise UnusableInput(f"{entry.where}: tile is missing")
    tiles = value if isinstance(value, dict) else dict.fromkeys(problems, value)
    for problem, text in tiles.items():
        if problem not in problems:
            raise UnusableInput(
                f"{entry.where}: tile names problem {escaped(problem)}; problems are {', '.join(problems)}"
            )
        if not isinstance(text, str):
            raise UnusableInput(f"{entry.where}: tile is not text")
        _tile(text, f"{entry.where}: tile")
    return Size({name: kernels.parse_tile(text)[1].text() for name, text in tiles.items()})


def _tile(text: str, where: str) -> None:
    try:
        kernels.parse_tile(text)
    except UnusableInput as error:
        raise UnusableInput(f"{where}: {error}") from None


def _unique(found: list[str], where: str) -> None:
    for name in found:
        if found.count(name) > 1:
            raise UnusableInput(f"{where} {escaped(name)} is there {found.count(name)} times")


class _Entry:
    """A table of the file with its place, read key by key."""

    def __init__(self, table: dict[str, Any], where: str) -> None:
        self.table = table
        self.where = where

    def only(self, keys: Collection[str]) -> None:
        for key in self.table:
            if key not in keys:
                raise UnusableInput(f"{self.where}: unknown key {escaped(key)}; known are {', '.join(sorted(keys))}")

    def _value(self, key: str) -> Any:
        if key not in self.table:
            raise UnusableInput(f"{self.where}: {key} is missing")
        return self.table[key]

    def text(self, key: str, default: str | None = None) -> str:
        value = self.table.get(key, default) if default is not None else self._value(key)
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise UnusableInput(f"{self.where}: {key} is not text")
        return value

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> list[str]:
        value = self.table.get(key, default) if default is not None else self._value(key)
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise UnusableInput(f"{self.where}: {key} is not a list of texts")
        return list(value)

    def whole(self, key: str) -> int:
        value = self._value(key)
        if type(value) is not int or not 1 <= value <= _MOST:
            raise UnusableInput(f"{self.where}: {key} = {escaped(str(value))} is not a whole number from 1 to {_MOST}")
        return value

    def positive(self, key: str, default: float) -> float:
        value = self.table.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise UnusableInput(f"{self.where}: {key} = {escaped(str(value))} is not a number above 0")
        return float(value)

    def inner(self, key: str) -> _Entry:
        value = self.table[key]
        if not isinstance(value, dict):
            raise UnusableInput(f"{self.where}: {key} is not a table")
        return _Entry(value, f"{self.where}: {key}")

    def entries(self, key: str) -> list[_Entry]:
        value = self._value(key)
        if not isinstance(value, list) or not value or not all(isinstance(v, dict) for v in value):
            raise UnusableInput(f"{self.where}: no [[{key}]] entries")
        found = []
        for index, each in enumerate(value, 1):
            name = each.get("name")
            label = f" ({escaped(name)})" if isinstance(name, str) else ""
            found.append(_Entry(each, f"{self.where}: [[{key}]] {index}{label}"))
        return found
