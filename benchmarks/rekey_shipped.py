"""Gives shipped points the key of the present sources where these compile to the code that was measured.

    python benchmarks/rekey_shipped.py OLD_SRC [--device h200]

A point's key is a hash of the lowered program: it changes with the sources even where the machine's code does not.
OLD_SRC is the source folder whose keys the shipped table has. Both are compiled here, with no card, by the compiler the
table was measured with; a point keeps its evidence where PTX is the same but for debug lines and the build's own
number, and is named where it is not. The exit code is 1 where one was not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT.parent / "src")]

DEBUG = re.compile(r"\s*(?:\.(?:loc|file|section|b8|b16|b32|b64)\b|\$L__tmp|//)")
COMPILE = """
import json, sys
from warptile import devices, kernels
from warptile.contracts import Problem
from warptile.kernels.triton.program import Program
from warptile.runtimes.triton.backends import compiled_key, binary_id
from warptile.runtimes.triton.compiling import gpu_target, machine_code
limits = devices.by_name(sys.argv[1], "cuda")
architecture = next(f for f in limits.features if f.startswith("sm_"))
target = gpu_target("cuda", architecture)
for format, n, k, m, x_dtype, y_dtype, text in json.load(sys.stdin):
    kernel, tile = kernels.parse_tile(text)
    program = Program.parse(kernel.source(tile, Problem(format, n, k, m, x_dtype, y_dtype), limits))
    key = compiled_key(program, target, False)
    ptx = [machine_code(build, target, key, None).kernel.asm["ptx"] for build in program.builds]
    print(json.dumps([key, binary_id(key), ptx]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="the source folder whose keys the table has")
    parser.add_argument("--device", default="h200")
    given = parser.parse_args()
    from warptile.tables.shipping import shipped_folder
    from warptile.tables.table import Table, read_file

    (path,) = shipped_folder().glob(f"cuda-nvidia-{given.device}-*.json")
    identity, _ = read_file(path)
    table = Table.load(path.parent, identity)
    every = [(row.key, point) for row in table.rows() for point in row.points]
    asked = [(k.format, k.n, k.k, p.m, k.x_dtype, k.y_dtype, p.tile) for k, p in every]
    old, new = (compiled(source, given.device, asked) for source in (given.old, ROOT.parent / "src"))
    missed = 0
    for (key, point), (was, was_id, before), (now, now_id, after) in zip(every, old, new, strict=True):
        about = f"{key.format} n={key.n} k={key.k} m={point.m}"
        if point.validity.artefact == now:
            print(f"{about}: the key is the present one")
        elif point.validity.artefact == was and code(before, was_id) == code(after, now_id):
            table.put(key.problem(point.m), key.layout, replace(point, validity=replace(point.validity, artefact=now)))
            print(f"{about}: the same code, key {now[:10]} for {was[:10]}")
        else:
            missed += 1
            print(f"{about}: other code than what was measured")
    table.save()
    return 1 if missed else 0


def compiled(source: Path, device: str, asked: list[tuple[Any, ...]]) -> list[tuple[str, int, list[str]]]:
    """(key, the build's number, PTX of each build) of each tile, from the sources in a folder."""
    path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(source.resolve())])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMPILE, device],
        input=json.dumps(asked), env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr[-600:])
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]  # type: ignore[misc]


def code(ptx: list[str], number: int) -> list[str]:
    """Lines that become instructions, the build's number taken out, whichever sign it is written with."""
    signed = number - (1 << 32) if number >> 31 else number
    lines = [line.split("//")[0].strip() for text in ptx for line in text.splitlines() if not DEBUG.match(line)]
    return [re.sub(rf"(?<![\w-])(?:{number}|{signed})\b", "NUMBER", line) for line in lines if line]


if __name__ == "__main__":
    sys.exit(main())
