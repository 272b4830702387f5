"""Compile, for cards that are not here, what stands for a matmul unmeasured, and say which tiles spill in their K loop.

    python benchmarks/offline_spills.py --out spills.json                       every format and card: hours
    python benchmarks/offline_spills.py --formats Q4_K,PTQ1_0 --devices gfx1100,sm_90 --m 128 --out spills.json
    python benchmarks/offline_spills.py --table TABLE.json --devices h200 --out spills.json   what that table serves

Each kernel's stock tile and its tile of least price, or with --table every point's tile; the same program is compiled
once. Results are added to --out, and what it holds of the same source and compiler is not compiled again. Exit code 1
where a tile spills in its loop or does not compile. The compiler is this process's Triton: a table's answer counts for
the version that its points name.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

if TYPE_CHECKING:
    from warptile.contracts import Kernel, Problem, Tile

DEVICES = ("gfx1100", "gfx1200", "gfx942", "sm_80", "sm_86", "sm_89", "sm_90", "sm_120")
TOKENS = (1, 16, 128, 512)
Wanted = tuple[str, "Problem", str]
"""(device, problem, tile)"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default=",".join(DEVICES), help="cards or architectures, separated by commas")
    parser.add_argument("--formats", default="", help="separated by commas; default: every format")
    parser.add_argument("--kernels", default="", help="separated by commas; default: every Triton kernel")
    parser.add_argument("--table", type=Path, help="a table's file: what it serves, on the one card of --devices")
    parser.add_argument("--m", default=",".join(map(str, TOKENS)))
    parser.add_argument("--dtype", default="fp16", help="type of x and y")
    parser.add_argument("--n", type=int, default=4096)
    parser.add_argument("--k", type=int, default=4096)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--seconds", type=float, default=86400.0, help="stop after this long")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def wanted(options: argparse.Namespace) -> Iterator[tuple[str, Wanted]]:
    """(key of the program and the card's compiler, what to compile), each key once."""
    from warptile import devices
    from warptile.kernels.triton.matrix import architecture
    from warptile.runtimes.triton.require import require_triton

    compiler = require_triton().__version__
    seen: set[str] = set()
    for device in options.devices.split(","):
        limits = devices.compile_only(device)
        for kernel, problem, tile in served(options.table) if options.table else unmeasured(options, device):
            text = kernel.source(tile, problem, limits).text
            parts = [compiler, architecture(limits).name, text, _device_code(text)]
            key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
            if key not in seen:
                seen.add(key)
                yield key, (device, problem, tile.text())


def unmeasured(options: argparse.Namespace, device: str) -> Iterator[tuple[Kernel, Problem, Tile]]:
    """What stands for each matmul of the options where nothing was measured."""
    from warptile import devices, formats, kernels, offline
    from warptile.check import problem_of

    only = [kernels.by_name(name) for name in options.kernels.split(",")] if options.kernels else None
    for name in options.formats.split(",") if options.formats else formats.all_formats():
        for m in map(int, options.m.split(",")):
            problem = problem_of(name, options.n, options.k, m, options.dtype)
            for kernel, tile, _ in offline.shipped_tiles(problem, devices.compile_only(device), only):
                yield kernel, problem, tile


def served(path: Path) -> Iterator[tuple[Kernel, Problem, Tile]]:
    """What each point of a table serves."""
    from warptile import kernels
    from warptile.tables.table import read_file

    for key, points in read_file(path)[1].items():
        for m, point in points.items():
            kernel, tile = kernels.parse_tile(point.tile)
            yield kernel, key.problem(m), tile


def _device_code(text: str) -> str:
    """Hash of the modules that a program's functions come from, and of the decoders."""
    root = Path(__file__).resolve().parent.parent / "src" / "warptile"
    modules = {b["function"].partition(":")[0] for b in json.loads(text)["builds"]}
    files = [root.parent / (m.replace(".", "/") + ".py") for m in modules]
    files += sorted((root / "layouts" / "triton").glob("*.py"))
    return hashlib.sha256(b"".join(f.read_bytes() for f in sorted(files))).hexdigest()


def compiled(item: Wanted) -> dict[str, Any]:
    """What the compiler says of one tile."""
    from warptile import devices, kernels, offline

    device, problem, text = item
    kernel, tile = kernels.parse_tile(text)
    report = offline.compile_tiles(problem, devices.compile_only(device), [(kernel, tile, "shipped")])
    (found,) = report.tiles
    return {
        "device": device,
        "format": problem.format,
        "n": problem.n,
        "k": problem.k,
        "m": problem.m,
        "dtype": problem.x_dtype,
        "tile": text,
        "failed": found.failed,
        "builds": [
            {
                "function": b.function,
                "registers": b.code.registers,
                "paper": found.price.registers if found.price else 0,
                "spill_bytes": b.code.spill_bytes,
                "in_loop": b.code.loop_accesses,
                "accesses": b.code.local_accesses,
                "loops": b.code.loops,
                "shared": b.shared_bytes,
            }
            for b in found.builds
        ],
        "bad": bool(found.failed) or any(b.spills_in_loop for b in found.builds),
    }


def main() -> int:
    options = arguments()
    if options.table and "," in options.devices:
        raise SystemExit("--table: name the one card that it is of with --devices")
    begin = time.monotonic()
    held: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    todo = list(wanted(options))
    missing = [(key, item) for key, item in todo if key not in held]
    print(f"{len(todo)} programs, {len(missing)} to compile", flush=True)
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        jobs = {pool.submit(compiled, item): key for key, item in missing}
        for job in as_completed(jobs):
            if job.cancelled():
                continue
            found = held[jobs[job]] = job.result()
            options.out.write_text(json.dumps(held, indent=1) + "\n")
            if found["bad"]:
                print(line(found), flush=True)
            if time.monotonic() - begin > options.seconds:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    mine = [held[key] for key, _ in todo if key in held]
    bad = [found for found in mine if found["bad"]]
    print(f"{len(mine)} of {len(todo)} programs compiled, {len(bad)} spill in their K loop or do not compile")
    return 1 if bad or len(mine) < len(todo) else 0


def line(found: dict[str, Any]) -> str:
    """One result in words."""
    what = found["failed"] or "; ".join(
        f"{b['function']} {b['registers']} registers (paper {b['paper']}), {b['spill_bytes']} bytes spilled, "
        f"{b['in_loop']} accesses in the loop"
        for b in found["builds"]
    )
    return f"{found['device']} {found['format']} m={found['m']} {found['tile']}: {what}"


if __name__ == "__main__":
    sys.exit(main())
