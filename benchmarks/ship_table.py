"""Puts a tuned device's table among those that the package ships: python benchmarks/ship_table.py TABLE.json"""

from __future__ import annotations

import argparse
from pathlib import Path

from warptile.tables import ship


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path, help="the file that `warptile tune` names at its end")
    path, kept, left = ship(parser.parse_args().table)
    print(f"{path}: {kept} points, {left} left out")


if __name__ == "__main__":
    main()
