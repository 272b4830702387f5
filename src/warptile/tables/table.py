"""The table of one exact device: a file, a lookup, changes that are kept by an atomic replace."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from warptile.contracts import Identity, Problem, UnusableInput
from warptile.journal import from_json, to_json
from warptile.tables.pipelines import PipelineKey, Pipelines
from warptile.tables.points import Key, Point, Row, rows_of

SCHEMA = 1


@dataclass(frozen=True)
class Served:
    """What a table says for one problem.

    status: "tuned" (measured here, valid), "stale" (measured under another driver, compiler, kernel input or
    proof), "untuned" (measured at another m only). why: what makes it stale or untuned, in words.
    """

    tile: str
    status: Literal["tuned", "stale", "untuned"]
    point: Point
    why: str = ""


def table_path(folder: Path, identity: Identity) -> Path:
    """The file of a device: its name readable, a hash of runtime and device to keep siblings apart."""
    slug = re.sub(r"[^a-z0-9]+", "-", identity.device.lower()).strip("-")[:60]
    digest = hashlib.sha256(f"{identity.runtime}\0{identity.device}".encode()).hexdigest()[:8]
    return folder / f"{identity.runtime}-{slug}-{digest}.json"


NEAR = 4
"""How many times more or fewer tokens than a measured m its winner may serve, marked `untuned`."""


class Table:
    """Measured winners of the device that `identity` names. Changes are kept by `save`."""

    def __init__(self, path: Path, identity: Identity, points: Mapping[Key, Mapping[int, Point]] | None = None) -> None:
        self.path = path
        self.identity = identity
        self._points: dict[Key, dict[int, Point]] = {k: dict(v) for k, v in (points or {}).items()}
        self._changes: list[tuple[Key, Point | None]] = []
        self._pipelines: dict[PipelineKey, Pipelines] = {}
        self._pipeline_changes: dict[PipelineKey, Pipelines | None] = {}

    @classmethod
    def load(cls, folder: Path, identity: Identity) -> Self:
        """The device's table in `folder`, empty where there is no file yet.

        Raises UnusableInput, naming the file, where it is corrupt, of a newer schema, of another device, or
        cannot be read; the file is left as it is.
        """
        path = table_path(folder, identity)
        points, pipelines = _read(path, identity)
        table = cls(path, identity, points)
        table._pipelines = pipelines
        return table

    def rows(self) -> list[Row]:
        """Every row, by key and m."""
        return [row for key in sorted(self._points) for row in rows_of(key, self._points[key].values())]

    def point(self, problem: Problem, layout: str) -> Point | None:
        """What was measured at exactly this problem's m, valid or not."""
        return self._points.get(Key.of(problem, layout), {}).get(problem.m)

    def lookup(
        self, problem: Problem, layout: str, proof: int, artefact: Callable[[str], str] | None = None
    ) -> Served | None:
        """What serves a problem; None where nothing of its format, layout, dtypes, n, k, experts was measured.

        The rule, by m: a measured m serves itself. Between two neighbouring measured ms whose winners are the
        same tile that tile serves, since both ends of the interval were measured. Any other m gets the winner
        of the measured m nearest in log2 (the smaller of two as near), marked `untuned`, where that is at most
        `NEAR` times off: kernels cross over within a few doublings of m, so farther away a measured winner says
        nothing, and None is the answer as where nothing was measured. A point whose driver,
        compiler or proof version is not the current one, or whose artefact differs from `artefact(tile)` where
        that is given, is marked `stale`. A point that nothing was raced for (`Point.serves`) is as good as none.
        Another device's table is never looked at.
        """
        kept = self._points.get(Key.of(problem, layout), {})
        points = {m: point for m, point in kept.items() if point.serves}
        if not points:
            return None
        m = problem.m
        below = max((q for q in points if q <= m), default=None)
        above = min((q for q in points if q >= m), default=None)
        nearest = min(points, key=lambda q: (abs(math.log2(q / max(m, 1))), q))
        point = points[nearest]
        inside = below is not None and above is not None and points[below].tile == points[above].tile
        if not inside and not nearest / NEAR <= max(m, 1) <= nearest * NEAR:
            return None
        if not inside:
            return Served(point.tile, "untuned", point, f"m = {m} was not measured; nearest is m = {nearest}")
        ends = {points[q] for q in (below, above) if q is not None}
        current = artefact(point.tile) if artefact is not None else None
        for end in sorted(ends, key=lambda p: p.m):
            if why := end.validity.stale(self.identity, proof, current):
                return Served(point.tile, "stale", point, why)
        return Served(point.tile, "tuned", point)

    def pipelines(self) -> list[Pipelines]:
        """Every kernel's pipelines, by key."""
        return [self._pipelines[key] for key in sorted(self._pipelines)]

    def pipelines_of(self, key: PipelineKey) -> Pipelines | None:
        """One kernel's pipelines on one format, None where none was tuned."""
        return self._pipelines.get(key)

    def put_pipelines(self, pipelines: Pipelines) -> None:
        """Keep a kernel's pipelines, replacing its entry. Raises ValueError where sizes or thresholds are amiss."""
        if not pipelines.valid():
            raise ValueError(f"pipelines of {pipelines.key.kernel}: sizes or thresholds are amiss")
        self._pipelines[pipelines.key] = self._pipeline_changes[pipelines.key] = pipelines

    def forget_pipelines(self, key: PipelineKey) -> bool:
        """Drop a kernel's pipelines on one format; whether there were any."""
        self._pipeline_changes[key] = None
        return self._pipelines.pop(key, None) is not None

    def put(self, problem: Problem, layout: str, point: Point) -> Key:
        """Keep the winner at `problem.m`, replacing what was there. Raises ValueError for another m."""
        if point.m != problem.m or point.m < 1:
            raise ValueError(f"a point at m = {point.m} cannot be kept for m = {problem.m}")
        key = Key.of(problem, layout)
        self.apply(key, point)
        return key

    def renew(self, problem: Problem, layout: str, proof: int, artefact: str) -> Point | None:
        """The point at a problem's m, which a gate before `proof` let through, kept as one of `proof`: its tile,
        compiled to `artefact`, was proved again. None, and nothing is changed, where nothing was measured there, it is
        as new already, or driver, compiler or compiled input are others.
        """
        point = self.point(problem, layout)
        if point is None or point.validity.proof >= proof:
            return None
        renewed = replace(point, validity=replace(point.validity, proof=proof))
        if renewed.validity.stale(self.identity, proof, artefact):
            return None
        self.put(problem, layout, renewed)
        return renewed

    def forget(self, key: Key) -> bool:
        """Drop every point of a key; whether there was any."""
        found = key in self._points
        self.apply(key, None)
        return found

    def apply(self, key: Key, point: Point | None) -> None:
        """One change: a point put under a key, or (None) the key forgotten."""
        self._changes.append((key, point))
        _apply(self._points, key, point)

    def save(self) -> Path:
        """Write the file by an atomic replace, this table's changes applied to what stands there now.

        Raises UnusableInput where the file there is corrupt or newer (it is left alone) or cannot be written.
        """
        points, pipelines = _read(self.path, self.identity)
        for key, point in self._changes:
            _apply(points, key, point)
        changed = pipelines | self._pipeline_changes
        self._points, self._pipelines = points, {key: p for key, p in changed.items() if p is not None}
        text = json.dumps(self.to_json(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("x", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise UnusableInput(f"table {self.path}: cannot be written: {error.strerror or error}") from None
        self._changes.clear()
        self._pipeline_changes.clear()
        return self.path

    def to_json(self) -> dict[str, Any]:
        """The file's content."""
        rows = []
        for row in self.rows():
            points = [{k: v for k, v in to_json(point).items() if k != "tile"} for point in row.points]
            rows.append({**to_json(row.key), "m_low": row.m_low, "m_high": row.m_high, "tile": row.tile})
            rows[-1]["points"] = points
        content = {"schema": SCHEMA, "runtime": self.identity.runtime, "device": self.identity.device, "rows": rows}
        if self._pipelines:
            content["pipelines"] = [to_json(pipelines) for pipelines in self.pipelines()]
        return content


def _apply(points: dict[Key, dict[int, Point]], key: Key, point: Point | None) -> None:
    if point is None:
        points.pop(key, None)
    else:
        points.setdefault(key, {})[point.m] = point


def read_file(path: Path) -> tuple[Identity, dict[Key, dict[int, Point]]]:
    """A table file without knowing its device: its identity (driver and compiler are the points') and its points.

    Raises UnusableInput where there is no such file or it is no table.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        identity = Identity(str(value["device"]), "", "", str(value["runtime"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UnusableInput(f"table {path}: cannot be read: {_line(error)}") from None
    return identity, _read(path, identity)[0]


def _read(path: Path, identity: Identity) -> tuple[dict[Key, dict[int, Point]], dict[PipelineKey, Pipelines]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, {}
    except UnicodeDecodeError:
        raise UnusableInput(f"table {path}: corrupt: not UTF-8 text") from None
    except OSError as error:
        raise UnusableInput(f"table {path}: cannot be read: {error.strerror or error}") from None
    try:
        value = json.loads(text)
        schema = value["schema"]
        if type(schema) is not int:
            raise ValueError("schema is not a whole number")
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise UnusableInput(f"table {path}: corrupt: {_line(error)}") from None
    if schema > SCHEMA:
        raise UnusableInput(f"table {path}: schema {schema} is newer than this warptile's {SCHEMA}")
    if (value.get("device"), value.get("runtime")) != (identity.device, identity.runtime):
        raise UnusableInput(f"table {path}: was measured on {value.get('device')!r}, not on {identity.device!r}")
    points: dict[Key, dict[int, Point]] = {}
    try:
        for row in value["rows"]:
            key = from_json(Key, row)
            for raw in row["points"]:
                point = from_json(Point, {**raw, "tile": row["tile"]})
                if point.m < 1:
                    raise ValueError(f"m = {point.m}")
                for name in ("seconds", "stock_seconds", "ratio"):
                    if not 0 < getattr(point, name) < math.inf:
                        raise ValueError(f"{name} = {getattr(point, name)}")
                points.setdefault(key, {})[point.m] = point
        found = [from_json(Pipelines, raw) for raw in value.get("pipelines", [])]
        if not all(pipelines.valid() for pipelines in found):
            raise ValueError("pipelines with sizes or thresholds amiss")
    except (ValueError, TypeError, KeyError) as error:
        raise UnusableInput(f"table {path}: corrupt: {_line(error)}") from None
    return points, {pipelines.key: pipelines for pipelines in found}


def _line(error: Exception) -> str:
    text = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
    return " ".join(text.split())
