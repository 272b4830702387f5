"""The gate on a CUDA card: shipped kernels and shipped winners must be right, planted faults must be caught.

    PYTHONPATH=src:. python benchmarks/mutants_card.py --out FOLDER --seconds 40

Writes FOLDER/gate.json as it goes. Parts, in order: a tile of every kernel; every tile of the shipped table of this
card, with the key of its compiled input (benchmarks/ship_table.py --proved takes them); faults of `triton.gemv`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.mutants.faulty_triton import FAULTS, faulty
from warptile import kernels, search
from warptile.contracts import Identity, Kernel, Problem, Runtime, Tile, WarptileError
from warptile.journal import to_json
from warptile.places import Places
from warptile.proof import PROOF_VERSION, ReferenceCache, prove
from warptile.runtimes import open_device
from warptile.tables import shipped_table

SHAPES = {"cuda": (512, 1024), "interpreter": (16, 512)}
FORMATS = {"cuda": ("Q4_K", "Q6_K", "Q4_0", "MXFP4"), "interpreter": ("Q8_0",)}
NAMES = ("gemm_wgmma", "gemv_mma", "gemm", "gemv", "dequantize", "gemm_int8")
FAULTY_TILE = "triton.gemv:tile_n=8,tile_m=2,steps=2,warps=1,decode=half"
FAULTY_PROBLEM = Problem("Q8_0", 20, 160, 3, "fp16", "fp16")


class Report:
    """Lines on stdout and rows in a file, written as they come."""

    def __init__(self, out: Path, end: float, identity: Identity) -> None:
        self.identity = to_json(identity)
        self.path, self.rows = out / "gate.json", list[dict[str, Any]]()
        self.end = end

    def late(self) -> bool:
        return time.monotonic() > self.end

    def add(self, part: str, what: str, ask: Callable[[], dict[str, Any]]) -> None:
        start = time.monotonic()
        try:
            row = ask()
        except WarptileError as error:
            row = {"failed": type(error).__name__, "detail": str(error)}
        row = {"part": part, "what": what, **row, "seconds": round(time.monotonic() - start, 2)}
        self.rows.append(row)
        self.path.write_text(
            json.dumps({"proof": PROOF_VERSION, "identity": self.identity, "rows": self.rows}, indent=1)
        )
        print(
            f"{part:<8} {row['seconds']:6.2f} s  {what}  {row.get('failed') or 'right'}  {row['detail'][:160]}",
            flush=True,
        )


def asked(runtime: Runtime, kernel: Kernel, tile: Tile, problem: Problem, cache: ReferenceCache) -> dict[str, Any]:
    verdict = prove(runtime, kernel, tile, problem, cache=cache, deadline=20.0)
    key = runtime.compile(kernel.source(tile, problem, runtime.limits())).key
    kept = {n: getattr(verdict, n) for n in ("right", "failed", "detail", "nmse", "worst_ratio", "version")}
    return {**kept, "shapes": len(verdict.shapes), "artefact": key, "first_wrong": to_json(verdict.first_wrong)}


def candidates(runtime: Runtime) -> list[tuple[Kernel, Tile, Problem]]:
    """The best-priced tile of every kernel at a few tokens and at many, of every format."""
    limits, found = runtime.limits(), []
    kind = "cuda" if limits.kind == "gpu" else "interpreter"
    n, k = SHAPES[kind]
    for name in FORMATS[kind]:
        for short in NAMES:
            kernel = kernels.by_name(f"triton.{short}")
            for m in (5, 128) if kind == "cuda" else (3,):
                problem = Problem(name, n, k, m, "fp16", "fp16")
                for one in search.rank(problem, limits, [kernel])[:1]:
                    found.append((kernel, one.tile, problem))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--seconds", type=float, default=40.0)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    end, cache = time.monotonic() + given.seconds, ReferenceCache()
    with tempfile.TemporaryDirectory() as folder:
        runtime = open_device(given.device, Places.under(Path(folder)).ready())
        ahead: Callable[..., None] = getattr(runtime, "compile_ahead", lambda sources: None)
        limits = runtime.limits()
        report = Report(given.out, end, runtime.identity())
        shipped = shipped_table(runtime.identity())
        served = (
            [(*kernels.parse_tile(r.tile), r.key.problem(p.m)) for r in shipped.rows() for p in r.points]
            if shipped
            else []
        )
        mine = candidates(runtime)
        mutants = {fault: faulty(Path(folder) / "faults", fault) for fault in FAULTS}
        _, tile = kernels.parse_tile(FAULTY_TILE)
        every = [*mine[:12], *served, *((m, tile, FAULTY_PROBLEM) for m in mutants.values())]
        ahead([kernel.source(own, problem, limits) for kernel, own, problem in every])
        for part, wanted in (("kernel", mine[:12]), ("shipped", served)):
            for kernel, own, problem in wanted:
                if not report.late():
                    what = f"{problem.text()} {own.text()}"
                    report.add(part, what, lambda a=kernel, b=own, c=problem: asked(runtime, a, b, c, cache))
        for fault, mutant in mutants.items():
            if not report.late():
                report.add(
                    "fault",
                    f"{fault}, wanted {FAULTS[fault][0]}",
                    lambda a=mutant: asked(runtime, a, tile, FAULTY_PROBLEM, cache),
                )
        for kernel, own, problem in mine[12:]:
            if not report.late():
                what = f"{problem.text()} {own.text()}"
                report.add("kernel", what, lambda a=kernel, b=own, c=problem: asked(runtime, a, b, c, cache))
        runtime.close()
    planted = [row for row in report.rows if row["part"] == "fault"]
    caught = sum(row.get("failed") == row["what"].rpartition(" ")[2] for row in planted)
    wrong = [row["what"] for row in report.rows if row["part"] != "fault" and row.get("failed")]
    sound = len(report.rows) - len(planted)
    print(f"{len(planted)} planted, {caught} caught; {sound} sound, {len(wrong)} rejected: {wrong}")


if __name__ == "__main__":
    main()
