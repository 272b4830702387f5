"""`mul_mat_vecq` and `mul_mat_vec` at m = 1 beside a pure read of as many bytes."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Sequence

import numpy as np

from vulkan_parts.bench import COPIES, Arm, Bench, statistics
from warptile import formats, kernels
from warptile.contracts import Launch, Problem, Source
from warptile.kernels.vulkan.mul_mat_vec import MulMatVecTile
from warptile.proof.weights import terms
from warptile.runtimes.vulkan import ceilings
from warptile.search import rank


def read_source(threads: int, steps: int) -> Source:
    """The runtime's own read shader."""
    return ceilings._source("read.comp", threads, steps)


VEC_WITHOUT = {
    "nothing": ("void main() {", "void main() {"),
    "quantizing": ("void stage_x(uint at, vec4 x) {", "void stage_x(uint at, vec4 x) {\n    if (P.k != 7u) return;"),
    "dot products": ("+= dot4(codes[i], int(x.codes[i / 4u][i % 4u]));", "+= codes[i] ^ int(x.codes[i / 4u][i % 4u]);"),
}
"""What is taken out of the fastest tile, to see what it costs: results are wrong."""

BEST_PRICED = 48
HEAT_SECONDS = 2.0


def heat(bench: Bench, launches: Sequence[Launch]) -> None:
    """Long submissions, so that clocks are up: a kernel of 10 us alone does not raise them."""
    count = max(1, min(1000, int(0.1 / sum(bench.device.time(list(launches))))))
    until = time.monotonic() + HEAT_SECONDS
    while time.monotonic() < until:
        bench.device.time(list(launches) * count)


def quantized(x: np.ndarray) -> np.ndarray:
    """x[1, k] after int8 blocks of 32, f64."""
    groups = x.reshape(-1, 32)
    scale = np.abs(groups).max(1, keepdims=True) * np.float32(1 / 127)
    return (np.rint(groups / scale) * scale).reshape(x.shape).astype(np.float64)


def part_vec(bench: Bench, keep: int) -> None:
    device, limits, n, k = bench.device, bench.device.limits(), bench.n, bench.k
    vec, vecq = kernels.by_name("vulkan.mul_mat_vec"), kernels.by_name("vulkan.mul_mat_vecq")
    problem = Problem("Q4_K", n, k, 1)
    rng = np.random.default_rng(3)
    x_host = rng.standard_normal((1, k), np.float32)
    x, y = device.upload(x_host), device.upload(np.zeros((1, n), np.float32))
    copies = [w.slices[0].buffer for w in bench.weights]
    reads = []
    for threads, steps in itertools.product((128, 256, 512, 1024), (1, 2, 4, 8, 16, 32)):
        groups = bench.bytes // (16 * threads * steps)
        binary = device.compile(read_source(threads, steps))
        launches = [(Launch(binary, (c, y), (groups,), (groups, 1, 1)),) for c in copies]
        row = {"part": "read", "threads": threads, "steps": steps, "bytes": groups * 16 * threads * steps}
        reads.append(Arm(MulMatVecTile(1, 1, 1), launches, row))
    heat(bench, reads[0].launches[0])
    bench.rounds(reads, 9)
    floor = min(reads, key=lambda arm: arm.row["us"])
    bench.rows += [arm.row for arm in reads]
    print("read:", floor.row, flush=True)

    w = np.concatenate(
        [terms(formats.by_name("Q4_K"), bench.blocks[r : r + 256].reshape(-1, 144))[0].reshape(-1, k)
         for r in range(0, n, 256)]
    ).T  # fmt: skip
    wants = {vec.name: x_host.astype(np.float64) @ w, vecq.name: quantized(x_host) @ w}
    tiles = [(vecq, c.tile) for c in rank(problem, limits, [vecq])[:BEST_PRICED]]
    tiles += [
        (vec, MulMatVecTile(lanes, parts, rows, 1, min(rows, 4), "direct"))
        for lanes, parts, rows in ((8, 112, 4), (8, 128, 4), (16, 64, 2), (32, 32, 2))
    ]
    tiles = [(kernel, t) for kernel, t in tiles if not kernel.broken_rules(t, problem, limits)]
    device.compile_all([kernel.source(t, problem, limits) for kernel, t in tiles], 14)
    arms = []
    for kernel, tile in tiles:
        row = {"part": "vec", "m": 1, "tile": tile.text()}
        bench.rows.append(row)
        binary = device.compile(kernel.source(tile, problem, limits))
        launches = [kernel.launch(binary, tile, problem, x, weights, y) for weights in bench.weights]
        device.write(y, np.full((1, n), np.nan, np.float32))
        device.execute(launches[0])
        got, want = device.download(y, np.float32, (1, n)), wants[kernel.name]
        row["nmse"] = float(np.square(got - want).sum() / np.square(want).sum())
        row["right"] = bool(row["nmse"] < 1e-9)
        row |= statistics(device, kernel, tile, problem)
        if row["right"]:
            arms.append(Arm(tile, launches, row))
        else:
            print("NOT RIGHT", row)
    heat(bench, arms[0].launches[0])
    screened = np.median([[bench.sample([arm], [2 * COPIES])[0] for _ in range(3)] for arm in arms], axis=1)
    for arm, seconds in zip(arms, screened, strict=True):
        arm.row["screened_us"] = 1e6 * float(seconds)
    order = [arms[i] for i in np.argsort(screened)]
    best = order[:keep] + [a for a in order[keep:] if a.tile.kernel == vec.name][:1]
    bench.rounds(best, 21, floor)
    tile = min((a for a in best if a.tile.kernel == vecq.name), key=lambda arm: arm.row["us"]).tile
    source = vecq.source(tile, problem, limits)
    without = []
    for name, (text, instead) in VEC_WITHOUT.items():
        if text not in source.text:
            continue
        binary = device.compile(dataclasses.replace(source, text=source.text.replace(text, instead)))
        launches = [vecq.launch(binary, tile, problem, x, weights, y) for weights in bench.weights]
        without.append(Arm(tile, launches, {"part": "without", "m": 1, "tile": tile.text(), "change": name}))
    bench.rounds(without, 15, floor)
    for arm in without:
        bench.rows.append(arm.row)
        print(f"    {arm.row['us']:8.2f} us, {arm.row['to_read']:.3f} x read  {arm.row['change']}", flush=True)
