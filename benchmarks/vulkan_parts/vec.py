"""`mul_mat_vec` at m = 1 beside a pure read of as many bytes."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from vulkan_parts.bench import COPIES, Arm, Bench, statistics
from warptile import formats, kernels
from warptile.contracts import Launch, Problem, Source
from warptile.kernels.vulkan.mul_mat_vec import MulMatVecTile
from warptile.proof.weights import terms
from warptile.runtimes.vulkan import ceilings


def read_source(threads: int, steps: int) -> Source:
    """The runtime's own read shader."""
    return ceilings._source("read.comp", threads, steps)


VEC_WITHOUT = {
    "nothing": ("void main() {", "void main() {"),
    "sum of parts": ("p < SPLIT_K - 1u;", "p < 1u;"),
    "decode": ("return vec4(bytes4(codes4(c, i))) * c.d - c.m;", "return vec4(uintBitsToFloat(codes4(c, i)));"),
    "x": ("{ return X[part.base + i]; }", "{ return vec4(part.base + i); }"),
}


def part_vec(bench: Bench, keep: int) -> None:
    device, limits, n, k = bench.device, bench.device.limits(), bench.n, bench.k
    vec = kernels.by_name("vulkan.mul_mat_vec")
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
    bench.warm(reads[0].launches[0])
    bench.rounds(reads, 9)
    floor = min(reads, key=lambda arm: arm.row["us"])
    bench.rows += [arm.row for arm in reads]
    print("read:", floor.row, flush=True)

    want = x_host.astype(np.float64) @ np.concatenate(
        [terms(formats.by_name("Q4_K"), bench.blocks[r : r + 256].reshape(-1, 144))[0].reshape(-1, k)
         for r in range(0, n, 256)]
    ).T  # fmt: skip
    tiles = [
        MulMatVecTile(lanes, parts, rows, 1, min(rows, 4), access)
        for lanes, parts, rows, access in itertools.product(
            (1, 2, 4, 8, 16, 32), (8, 16, 32, 64, 112, 128, 224), (1, 2, 4), ("direct",)
        )
        if 64 <= lanes * parts <= 1024
    ]
    tiles = [t for t in tiles if not vec.broken_rules(t, problem, limits)]
    device.compile_all([vec.source(t, problem, limits) for t in tiles], 14)
    arms = []
    for tile in tiles:
        row = {"part": "vec", "m": 1, "tile": tile.text()}
        bench.rows.append(row)
        binary = device.compile(vec.source(tile, problem, limits))
        launches = [vec.launch(binary, tile, problem, x, weights, y) for weights in bench.weights]
        device.write(y, np.full((1, n), np.nan, np.float32))
        device.execute(launches[0])
        got = device.download(y, np.float32, (1, n))
        row["nmse"] = float(np.square(got - want).sum() / np.square(want).sum())
        row["right"] = bool(row["nmse"] < 1e-10)
        row |= statistics(device, vec, tile, problem)
        if row["right"]:
            arms.append(Arm(tile, launches, row))
        else:
            print("NOT RIGHT", row)
    bench.warm(arms[0].launches[0])
    screened = np.median([[bench.sample([arm], [2 * COPIES])[0] for _ in range(3)] for arm in arms], axis=1)
    for arm, seconds in zip(arms, screened, strict=True):
        arm.row["screened_us"] = 1e6 * float(seconds)
    best = [arms[i] for i in np.argsort(screened)[:keep]]
    bench.rounds(best, 21, floor)
    tile = min(best, key=lambda arm: arm.row["us"]).tile
    source = vec.source(tile, problem, limits)
    without = []
    for name, (text, instead) in VEC_WITHOUT.items():
        if text not in source.text:
            continue
        binary = device.compile(dataclasses.replace(source, text=source.text.replace(text, instead)))
        launches = [vec.launch(binary, tile, problem, x, weights, y) for weights in bench.weights]
        without.append(Arm(tile, launches, {"part": "without", "m": 1, "tile": tile.text(), "change": name}))
    bench.rounds(without, 15, floor)
    for arm in without:
        bench.rows.append(arm.row)
        print(f"    {arm.row['us']:8.2f} us, {arm.row['to_read']:.3f} x read  {arm.row['change']}", flush=True)
