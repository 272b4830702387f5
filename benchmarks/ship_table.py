"""Puts a tuned device's table among those that the package ships, or keeps shipped points that were proved again.

python benchmarks/ship_table.py TABLE.json
python benchmarks/ship_table.py --proved gate.json      (what benchmarks/mutants_card.py wrote on that device)
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from warptile.contracts import Identity
from warptile.tables import renew_shipped, ship


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, nargs="?", help="the file that `warptile tune` names at its end")
    parser.add_argument("--proved", type=Path, help="verdicts of the shipped tiles under the present proof")
    given = parser.parse_args()
    if given.proved is not None:
        found = json.loads(given.proved.read_text("utf-8"))
        right = {row["artefact"] for row in found["rows"] if row["part"] == "shipped" and row.get("right")}
        count = renew_shipped(Identity(**found["identity"]), found["proof"], right)
        print(f"{count} points are of proof version {found['proof']} now")
    if given.table is not None:
        path, kept, left = ship(given.table)
        print(f"{path}: {kept} points, {left} left out")


if __name__ == "__main__":
    main()
