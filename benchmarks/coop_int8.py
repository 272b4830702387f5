"""int8 cooperative matrices on one device: proofs, `rdna4-bigtile`'s arms, the search's tiles, the price's order.

    python benchmarks/coop_int8.py [--device vulkan:0] [--part proof arms rank] [--budget 120] [--json FILE]

proof: the quick proof of six tiles on ten formats. arms: the study's arms at the size that the device takes, the same
arms with scales met in lanes (or as matrices) with and without prefetch, the best of the price's first `--top` tiles,
and the fastest fp16 tile of its first three, raced against the study's control; every output is compared with the
control's first. Spearman of price and time is over `--drawn` tiles drawn with a committed seed, over the arms, and over
all int8 tiles timed. Printed: ratios with intervals, the driver's registers and shared bytes beside the price's (shared
above declared is a spill). Everything goes to the JSON file.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from warptile import kernels, studies
from warptile.contracts import Arm, CandidateRejected, Limits, Problem
from warptile.kernels.vulkan.mul_mm_coop import MulMmCoopTile
from warptile.places import Places
from warptile.proof import prove
from warptile.proof.references import ReferenceCache
from warptile.race.bench import Bench, Timer, prepare
from warptile.race.jobs import BenchWeights, bench_for
from warptile.race.racing import race
from warptile.race.terms import Terms
from warptile.runtimes import open_device
from warptile.runtimes.vulkan.runtime import VulkanRuntime
from warptile.search import rank

COOP = kernels.by_name("mul_mm_coop")
SEED = 20250
SHAPES = ((3072, 2048), (12288, 2048), (2048, 6144))
FORMATS = ("Q4_K", "Q6_K", "Q4_0", "Q8_0", "Q2_K", "Q3_K", "IQ4_XS", "TQ2_0", "MXFP4", "PTQ1_0")
PROVED = (
    "warps_n=2,warps_m=1,matrices_n=1,matrices_m=2,k_chunk=64,weights=warp,x_block=256,scales=META",
    "warps_n=2,warps_m=2,matrices_n=2,matrices_m=2,k_chunk=128,weights=block,x_block=128,scales=META",
    "warps_n=4,warps_m=1,matrices_n=1,matrices_m=1,k_chunk=32,weights=warp,x_block=32,split_k=2,scales=META",
    "warps_n=2,warps_m=1,matrices_n=1,matrices_m=1,k_chunk=128,weights=warp,activations=private,x_block=64,scales=broadcast",
    "warps_n=2,warps_m=1,matrices_n=1,matrices_m=3,k_chunk=128,weights=warp,x_block=256,scales=raw,pad=0,prefetch=0",
    "warps_n=2,warps_m=1,matrices_n=1,matrices_m=1,k_chunk=128,weights=warp,activations=private,x_block=64,scales=raw,pad=0",
)  # fmt: skip


class Run:
    """A device, what was measured on it, and when to stop."""

    def __init__(self, device: VulkanRuntime, budget: float) -> None:
        self.device, self.limits, self.rows = device, device.limits(), []
        self.start = time.monotonic()
        self.end = self.start + budget
        self.rows: list[dict[str, Any]] = []

    def left(self) -> float:
        return self.end - time.monotonic()

    def compile(self, wanted: list[tuple[MulMmCoopTile, Problem]]) -> None:
        begun = time.monotonic()
        sources = list(dict.fromkeys(COOP.source(tile, problem, self.limits) for tile, problem in wanted))
        found = self.device.compile_all(sources, 14)
        bad = [str(each) for each in found if isinstance(each, CandidateRejected)]
        print(f"{len(sources)} compiled in {time.monotonic() - begun:.1f} s, {len(bad)} refused {bad[:2]}", flush=True)


def own_scales(limits: Limits) -> str:
    return "lanes" if limits.matrix_order else "broadcast"


def proved_tiles(limits: Limits) -> Iterator[MulMmCoopTile]:
    """The tiles of `PROVED` on the device's int8 matrix."""
    matrix = next(c for c in limits.cooperative_matrices if (c.a_type, c.c_type) == ("s8", "s32"))
    for text in PROVED:
        decode = "fp32" if "raw" in text else "fp16"
        head = f"operands=int8,matrix={matrix.m}x{matrix.n}x{matrix.k},subgroup={limits.subgroup},decode={decode}"
        yield MulMmCoopTile.parse(f"{head},{text.replace('META', own_scales(limits))}")


def part_proof(run: Run) -> None:
    cache = ReferenceCache()
    cases = [
        (tile, problem)
        for name in FORMATS
        for problem in (Problem(name, 200, 768, 33),)
        for tile in proved_tiles(run.limits)
        if not COOP.broken_rules(tile, problem, run.limits)
    ]
    run.compile(cases)
    for tile, problem in cases:
        if run.left() < 2:
            print("proof: out of time", flush=True)
            break
        row = {"part": "proof", "format": problem.format, "tile": tile.text()}
        try:
            verdict = prove(run.device, COOP, tile, problem, "quick", 0, cache=cache)
            row |= {"right": verdict.right, "failed": verdict.failed, "detail": verdict.detail,
                    "worst_ratio": verdict.worst_ratio, "nmse": verdict.nmse}  # fmt: skip
        except CandidateRejected as error:
            row |= {"right": False, "failed": error.outcome, "detail": str(error)}
        run.rows.append(row)
        if not row["right"]:
            print("NOT RIGHT", row, flush=True)
    proofs = [r for r in run.rows if r["part"] == "proof"]
    took = time.monotonic() - run.start
    print(f"proof: {sum(r['right'] for r in proofs)} of {len(proofs)} right, {took:.0f} s", flush=True)


def study_arms(limits: Limits, problem: Problem) -> dict[str, MulMmCoopTile]:
    """The study's valid arms for a problem's format, then the same with other scales and padded, ahead or not."""
    found: dict[str, MulMmCoopTile] = {}
    for row in studies.paper(studies.load("rdna4-bigtile"), limits).rows:
        tile = kernels.parse_tile(row.tile)[1]
        if row.problem == f"qkv {problem.format}" and not row.broken and isinstance(tile, MulMmCoopTile):
            found[row.arm] = tile
    for name, tile in list(found.items()):
        for prefetch in (0, 1):
            changed = {"scales": own_scales(limits), "decode": "fp16", "pad": 16, "prefetch": prefetch}
            found[f"{name} {own_scales(limits)}{' ahead' if prefetch else ''}"] = dataclasses.replace(tile, **changed)  # type: ignore[arg-type]
    matrices = next(iter(found.values()))
    four = {"warps_n": 4, "scales": own_scales(limits), "decode": "fp16", "pad": 16, "prefetch": 0}
    found[f"default {own_scales(limits)} of 4 warps"] = dataclasses.replace(matrices, **four)  # type: ignore[arg-type]
    return {name: tile for name, tile in found.items() if not COOP.broken_rules(tile, problem, limits)}


def drawn(problem: Problem, limits: Limits, count: int) -> list[MulMmCoopTile]:
    """Valid int8 tiles of the space, in a random order that the seed fixes."""
    valid = [
        tile
        for tile in dict.fromkeys(COOP.space(problem, limits))
        if isinstance(tile, MulMmCoopTile) and tile.operands == "int8" and not COOP.broken_rules(tile, problem, limits)
    ]
    order = np.random.default_rng(SEED).permutation(len(valid))
    return [valid[i] for i in order[:count]]


def priced(problem: Problem, limits: Limits, count: int, operands: str = "int8") -> list[MulMmCoopTile]:
    """The best-priced tiles of the operands, cheapest first."""
    found = (c.tile for c in rank(problem, limits, [COOP]))
    return [tile for tile in found if isinstance(tile, MulMmCoopTile) and tile.operands == operands][:count]


def timed(
    run: Run, bench: Bench, tiles: dict[str, MulMmCoopTile], part: str, control: np.ndarray | None
) -> np.ndarray | None:
    """Check and time each tile a few times; rows with microseconds. Returns the first tile's output."""
    device, problem, timer = run.device, bench.problem, Timer(run.device, bench)
    for name, tile in tiles.items():
        if run.left() < 2:
            print("out of time", flush=True)
            break
        row: dict[str, Any] = {"part": part, "format": problem.format, "n": problem.n, "k": problem.k, "arm": name,
                               "tile": tile.text()}  # fmt: skip
        run.rows.append(row)
        try:
            contender = prepare(device, bench, Arm(tile.text(), problem))
        except CandidateRejected as error:
            row["failed"] = str(error)
            continue
        device.write(bench.y, np.full((problem.m, problem.n), np.nan, np.float32))
        device.execute(contender.launches[0])
        got = device.download(bench.y, np.float32, (problem.m, problem.n))
        control = got if control is None else control
        row["nmse"] = float(
            np.square(got - control, dtype=np.float64).sum() / np.square(control, dtype=np.float64).sum()
        )
        price, found = COOP.price(tile, problem, run.limits), device.resources(contender.binary)
        row |= {"price_us": 1e6 * price.seconds, "price_registers": price.registers, "price_shared": price.shared_bytes,
                "workgroups": price.workgroups, "resident": price.resident_threads}  # fmt: skip
        if found is not None:
            row |= {"registers": found.registers, "shared": found.shared_bytes, "spill": found.spill_bytes}
        first = timer.sample([contender], [2])[0]
        times = max(2, min(16, round(2e-3 / first)))
        row["us"] = 1e6 * float(np.median([timer.sample([contender], [times])[0] for _ in range(3)]))
        row["launch_us"] = [1e6 * s for s in device.time(contender.launches[1])]
        if not row["nmse"] < 1e-4:
            print("NOT RIGHT", row, flush=True)
    return control


def part_arms(run: Run, m: int, top: int, count: int, formats: list[str]) -> None:
    shapes = [Problem(name, n, k, m) for name in formats for n, k in SHAPES]
    if run.limits.kind == "software":
        shapes = [Problem(name, 64, 512, 32) for name in formats]
    arms = {p: study_arms(run.limits, p) for p in shapes}
    best = {p: priced(p, run.limits, top) for p in shapes}
    # One draw serves all shapes of a format, so that fewer tiles are compiled.
    draws = {name: drawn(next(p for p in shapes if p.format == name), run.limits, count) for name in formats[:1]}
    random = {p: [t for t in draws.get(p.format, []) if not COOP.broken_rules(t, p, run.limits)] for p in shapes}
    half = {p: priced(p, run.limits, 3, "fp16") for p in shapes}
    everything = [(t, p) for p in shapes for t in (*arms[p].values(), *best[p], *random[p], *half[p])]
    run.compile(everything)
    for problem in shapes:
        if run.left() < 6:
            print("out of time", flush=True)
            return
        bench = bench_for(run.device, problem, BenchWeights(SEED), fresh=False)
        names = arms[problem]
        control = next(iter(names.values()))
        warm = prepare(run.device, bench, Arm(control.text(), problem))
        until = time.monotonic() + 0.8
        while time.monotonic() < until:
            run.device.execute(warm.launches[0])
        y = timed(run, bench, names, "arm", None)
        timed(run, bench, {f"price {i}": t for i, t in enumerate(best[problem])}, "price", y)
        timed(run, bench, {f"fp16 {i}": t for i, t in enumerate(half[problem])}, "fp16", y)
        timed(run, bench, {f"drawn {i}": t for i, t in enumerate(random[problem])}, "drawn", y)
        mine = [r for r in run.rows if r.get("n") == problem.n and r.get("k") == problem.k and "us" in r
                and r["format"] == problem.format]  # fmt: skip
        whole = [r for r in mine if r["part"] != "fp16"]
        for label, rows in (("drawn", [r for r in mine if r["part"] == "drawn"]), ("all int8", whole),
                            ("arms", [r for r in mine if r["part"] == "arm"])):  # fmt: skip
            if len(rows) > 2:
                rho = spearmanr([r["price_us"] for r in rows], [r["us"] for r in rows]).statistic
                print(f"{problem.text()}: Spearman of price and time, {label}: {rho:.2f} over {len(rows)}", flush=True)
        fastest = sorted(whole, key=lambda r: r["us"])[:4]
        quickest = min((r for r in mine if r["part"] == "fp16"), key=lambda r: r["us"], default=None)
        challengers = dict.fromkeys([*(t.text() for t in names.values()), *(r["tile"] for r in fastest)])
        if quickest is not None:
            challengers[quickest["tile"]] = None
        challengers.pop(control.text(), None)
        raced = race(
            run.device,
            Arm(control.text(), problem),
            [Arm(t, problem) for t in challengers],
            Terms(bench, SEED, 5.0),
            rounds=20,
        )
        by_tile = {r["tile"]: r for r in mine}
        print(f"{problem.text()}: control {by_tile[control.text()]['us']:.1f} us, A/A {raced[0].floor:.3f}", flush=True)
        for each in raced:
            row = by_tile[each.challenger.tile]
            row |= {"ratio": each.ratio, "low": each.low, "high": each.high, "raced_us": 1e6 * each.challenger_seconds}
            tile = "" if row["part"] == "arm" else " " + row["tile"].split(":")[1]
            print(
                f"  {each.ratio:.3f} [{each.low:.3f}, {each.high:.3f}] {row['us']:.1f} us, price {row['price_us']:.1f},"
                f" registers {row.get('registers')} shared {row.get('shared')}/{row['price_shared']}"
                f" {row['arm']}{tile}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--part", nargs="+", default=["proof", "arms"])
    parser.add_argument("--format", nargs="+", default=["Q4_K", "Q6_K"])
    parser.add_argument("--m", type=int, default=128)
    parser.add_argument("--top", type=int, default=24)
    parser.add_argument("--drawn", type=int, default=40)
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--json", type=Path, default=Path("coop_int8.json"))
    parser.add_argument("--cache", type=Path, default=Path("/tmp/warptile-bench"))
    own = parser.parse_args()
    device = open_device(own.device, Places.under(own.cache).ready())
    assert isinstance(device, VulkanRuntime)
    run = Run(device, own.budget)
    print(device.identity(), "matrix order", run.limits.matrix_order or "unknown", flush=True)
    try:
        if "arms" in own.part:
            part_arms(run, own.m, own.top, own.drawn, own.format)
        if "proof" in own.part:
            part_proof(run)
    finally:
        own.json.write_text(json.dumps({"device": device.identity().to_json(), "rows": run.rows}, indent=1))
        print(f"{time.monotonic() - run.start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
