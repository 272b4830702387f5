"""SmolLM2-135M's matmul shapes, Q4_1, on a software Vulkan device: GFLOP/s of given or best-priced tiles.

    python benchmarks/lavapipe_smollm2.py [--m 128 1] [--tile KERNEL:field=value,...] [--candidates 3] [--rounds 9]
    python benchmarks/lavapipe_smollm2.py --versus PATH_TO_TEST_BACKEND_OPS

Every tile's output is checked first. Then rounds run the tiles of a shape in random order; a sample is the wall time of
a batch of launches, so dispatch is part of it. Printed: the median of the fastest tile with a 95 % bootstrap interval.

--versus runs llama.cpp's test-backend-ops (one that lists these shapes; its device is chosen by the environment) for
each shape, between two halves of our rounds, and prints their time over ours. Machines drift: no other ratio means
anything.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass

import numpy as np

from warptile import formats, kernels, layouts
from warptile.contracts import Kernel, Launch, Problem, Runtime, Tile
from warptile.places import Places
from warptile.runtimes import open_device
from warptile.search import rank

SHAPES = ((576, 576), (192, 576), (1536, 576), (576, 1536))
FORMAT = "Q4_1"
BATCH_SECONDS = 0.02


@dataclass(frozen=True)
class Contender:
    """A checked tile and what it takes to run it `batch` times."""

    tile: Tile
    launches: tuple[Launch, ...]
    batch: int
    compile_seconds: float


def weights_and_activations(problem: Problem, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(blocks u8[count, bytes], their values f32[n, k], x f32[m, k])."""
    found, rng = formats.by_name(problem.format), np.random.default_rng(seed)
    count = problem.n * problem.k // found.block_size
    blocks = rng.integers(0, 256, (count, found.block_bytes), dtype=np.uint8)
    blocks.view(np.uint16)[:, :2] = rng.normal(0, 0.02, (count, 2)).astype(np.float16).view(np.uint16)
    x = rng.normal(0, 1, (problem.m, problem.k)).astype(np.float32)
    return blocks, found.decode(blocks).reshape(problem.n, problem.k), x


def contenders(
    device: Runtime, problem: Problem, chosen: list[tuple[Kernel, Tile]], candidates: int
) -> list[Contender]:
    """Compile, run and check the chosen tiles, or each kernel's best-priced ones."""
    limits = device.limits()
    if not chosen:
        for kernel in kernels.for_runtime("vulkan"):
            chosen = [*chosen, *((kernel, found.tile) for found in rank(problem, limits, [kernel])[:candidates])]
    blocks, w, x = weights_and_activations(problem)
    found = formats.by_name(problem.format)
    weights = layouts.upload(device, layouts.pack(found, blocks.reshape(-1), problem.n, problem.k))
    x_buffer = device.upload(x)
    want = x.astype(np.float64) @ w.T.astype(np.float64)
    size = np.abs(x).astype(np.float64) @ np.abs(w).T.astype(np.float64)
    out = []
    for kernel, tile in chosen:
        broken = kernel.broken_rules(tile, problem, limits)
        if broken:
            print(f"  {tile.text()}: {broken[0].text()}")
            continue
        y_buffer = device.guarded_buffer(4 * problem.m * problem.n)
        binary = device.compile(kernel.source(tile, problem, limits))
        launches = kernel.launch(binary, tile, problem, x_buffer, weights, y_buffer)
        start = time.perf_counter()
        device.execute(launches)
        once = time.perf_counter() - start
        y = device.download(y_buffer, np.float32, (problem.m, problem.n))
        arithmetic = kernel.arithmetic(tile, problem)
        unit = 2.0**-11 if "fp16" in arithmetic.weights else 2.0**-24
        allowed = (problem.k + 4) * unit * size
        if arithmetic.activations == "q8_1":
            allowed = allowed + block_largest(x) @ np.abs(w).T / 254
        if not np.all(np.abs(y - want) <= allowed):
            raise SystemExit(f"{tile.text()} is wrong on {problem.text()}")
        batch = int(np.clip(BATCH_SECONDS / once, 1, 200))
        out.append(Contender(tile, launches, batch, binary.compile_seconds))
    return out


def block_largest(x: np.ndarray) -> np.ndarray:
    """f32[m, k]: the largest magnitude of each 32 activations; int8 codes move an activation by 1/254 of it at most."""
    return np.repeat(np.abs(x).reshape(len(x), -1, 32).max(axis=2), 32, axis=1)


def run_rounds(device: Runtime, field: list[Contender], rounds: int, seed: int) -> dict[Tile, list[float]]:
    """Seconds a launch of every contender, `rounds` samples each, in a new random order every round."""
    rng = np.random.default_rng(seed)
    samples: dict[Tile, list[float]] = {c.tile: [] for c in field}
    for _ in range(rounds):
        for i in rng.permutation(len(field)):
            start = time.perf_counter()
            device.execute(field[i].launches * field[i].batch)
            samples[field[i].tile].append((time.perf_counter() - start) / field[i].batch)
    return samples


def interval(samples: list[float], draws: int = 2000) -> tuple[float, float, float]:
    """(median, low, high): 95 % bootstrap interval of the median."""
    values = np.array(samples)
    medians = np.median(np.random.default_rng(0).choice(values, (draws, len(values))), axis=1)
    return float(np.median(values)), float(np.quantile(medians, 0.025)), float(np.quantile(medians, 0.975))


def their_seconds(path: str, problem: Problem) -> float:
    """Seconds a run that test-backend-ops prints for the shape; its m and n are our n and m."""
    pattern = f"type_a={problem.format.lower()},type_b=f32,m={problem.n},n={problem.m},k={problem.k},"
    done = subprocess.run([path, "perf", "-o", "MUL_MAT", "-p", pattern], capture_output=True, text=True, check=False)
    times = [
        re.search(r"([0-9.]+) us/run", line)
        for line in done.stdout.splitlines()
        if f"MUL_MAT({pattern}" in line and "bs=[1,1],nr=[1,1]" in line
    ]
    if not times or times[0] is None:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["no output"]
        raise SystemExit(f"{path} printed no time for {pattern} ({last[0]})")
    return float(times[0].group(1)) * 1e-6


def main() -> None:
    parser = argparse.ArgumentParser(description="SmolLM2's shapes on a software Vulkan device")
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--m", type=int, nargs="+", default=[128, 1])
    parser.add_argument("--tile", action="append", default=[], help="race this tile instead of the best-priced ones")
    parser.add_argument("--candidates", type=int, default=3, help="best-priced tiles of each kernel to race")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--versus", metavar="PATH_TO_TEST_BACKEND_OPS")
    arguments = parser.parse_args()
    chosen = [kernels.parse_tile(text) for text in arguments.tile]

    with tempfile.TemporaryDirectory() as folder:
        device = open_device(arguments.device, Places.under(folder).ready())
        identity = device.identity()
        print(f"{identity.device}, {identity.driver}, {FORMAT}, {arguments.rounds} rounds")
        for m in arguments.m:
            ratios = []
            for n, k in SHAPES:
                problem = Problem(FORMAT, n, k, m)
                field = contenders(device, problem, chosen, arguments.candidates)
                if not field:
                    continue
                run_rounds(device, field, 1, seed=1)
                samples = run_rounds(device, field, arguments.rounds, seed=2)
                best = min(field, key=lambda c: float(np.median(samples[c.tile])))
                line = ""
                if arguments.versus:
                    theirs = their_seconds(arguments.versus, problem)
                    again = run_rounds(device, [best], arguments.rounds, seed=3)[best.tile]
                    ours = float(np.median(samples[best.tile] + again))
                    ratios.append(theirs / ours)
                    line = f"  theirs {theirs * 1e3:8.3f} ms, {ratios[-1]:5.2f}x"
                    samples[best.tile] += again
                median, low, high = interval(samples[best.tile])
                print(
                    f"m={m:<4} n={n:<5} k={k:<5} {median * 1e3:8.3f} ms [{low * 1e3:.3f}, {high * 1e3:.3f}] "
                    f"{problem.flops / median / 1e9:7.2f} GFLOP/s  compiled in {best.compile_seconds:.1f} s{line}  "
                    f"{best.tile.text()}",
                    flush=True,
                )
            if ratios:
                print(f"m={m}: geometric mean {np.exp(np.mean(np.log(ratios))):.2f}x over {len(ratios)} shapes")
        device.close()


if __name__ == "__main__":
    main()
