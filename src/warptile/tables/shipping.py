"""Tables that come with the package: measured elsewhere, on exactly the device that they name."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from importlib import resources
from pathlib import Path

from warptile.contracts import Identity, UnusableInput
from warptile.race.statistics import FEWEST_ROUNDS
from warptile.tables.table import Table, read_file, table_path


def shipped_folder() -> Path:
    """Where the package keeps its tables."""
    return Path(str(resources.files("warptile.tables"))) / "shipped"


def shipped_table(identity: Identity, folder: Path | None = None) -> Table | None:
    """The shipped table of exactly this device and runtime; None where there is none.

    Its points hold for the driver and compiler that they name: under others `Table.lookup` marks them stale.
    folder: in place of the package's.
    """
    at = folder or shipped_folder()
    return Table.load(at, identity) if table_path(at, identity).is_file() else None


def renew_shipped(identity: Identity, proof: int, artefacts: Set[str], folder: Path | None = None) -> int:
    """Keep points of a device's shipped table, which a gate before `proof` let through, as of `proof`: those whose
    compiled input is among `artefacts`, proved again on that device under its driver and compiler. How many they were.

    Raises UnusableInput where no table of the device is shipped.
    """
    table = shipped_table(identity, folder)
    if table is None:
        raise UnusableInput(f"no table of {identity.device} is shipped")
    every = [(row.key, point) for row in table.rows() for point in row.points]
    renewed = [
        table.renew(key.problem(point.m), key.layout, proof, point.validity.artefact)
        for key, point in every
        if point.validity.artefact in artefacts
    ]
    table.save()
    return sum(point is not None for point in renewed)


def ship(source: Path, folder: Path | None = None) -> tuple[Path, int, int]:
    """Put the table file `source` of a tuned device among the shipped ones: its path, points kept and points left out.

    Points that were not raced for at least 8 rounds are left out, and so are those of an older driver, compiler or
    proof than the newest point's. The reasons and intervals stay as they were measured. Raises UnusableInput where
    `source` is no table or holds nothing to ship.
    """
    identity, points = read_file(source)
    at = folder or shipped_folder()
    newest = max((p for of in points.values() for p in of.values()), key=lambda p: p.measured, default=None)
    if newest is None:
        raise UnusableInput(f"table {source}: holds nothing")
    wanted = replace(newest.validity, artefact="")
    every = [(key, point) for key, of in points.items() for point in of.values()]
    kept = [
        (key, point)
        for key, point in every
        if replace(point.validity, artefact="") == wanted and point.rounds >= FEWEST_ROUNDS
    ]
    if not kept:
        raise UnusableInput(f"table {source}: no point of it was raced for {FEWEST_ROUNDS} rounds")
    target = Table(table_path(at, identity), identity)
    target.path.unlink(missing_ok=True)
    for key, point in kept:
        target.apply(key, point)
    return target.save(), len(kept), len(every) - len(kept)
