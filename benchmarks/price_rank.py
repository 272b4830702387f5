"""How well the price orders tiles: Spearman correlation of paper seconds and measured seconds, kernel by kernel.

    python benchmarks/price_rank.py [--device vulkan:0] [--kernel NAME ...] [--format Q4_K] [--n 1536] [--k 576] [--m
    128]

For each kernel 40 valid tiles are drawn from its space with the seed below; every tile is compiled, run once, and then
timed by the device's clock in interleaved passes of random order, pre-passes included. Printed: Spearman's rho of the
medians and the price, with a 95 % bootstrap interval over tiles, and the fastest measured tile's rank on paper.
A kernel that --m does not suit (mul_mat_vec at 128 tokens) is measured at the m of `--vector-m`.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Sequence

import numpy as np
from scipy.stats import spearmanr

from warptile import formats, kernels, layouts
from warptile.contracts import CandidateRejected, Kernel, Limits, Problem, Runtime, Tile
from warptile.places import Places
from warptile.proof.weights import random_blocks
from warptile.runtimes import open_device

SEED = 20250
TILES = 40
PASSES = 5


def drawn(kernel: Kernel, problem: Problem, limits: Limits, count: int) -> list[Tile]:
    """Up to `count` valid tiles of a kernel's space, in a random order that the seed fixes."""
    valid = [t for t in dict.fromkeys(kernel.space(problem, limits)) if not kernel.broken_rules(t, problem, limits)]
    order = np.random.default_rng(SEED).permutation(len(valid))
    return [valid[i] for i in order[:count]]


def measured(device: Runtime, kernel: Kernel, tiles: Sequence[Tile], problem: Problem) -> dict[Tile, float]:
    """Median device seconds of every tile that compiles, launches of a tile summed."""
    fmt = formats.by_name(problem.format)
    rng = np.random.default_rng(SEED)
    blocks = random_blocks(fmt, problem.n * problem.k // fmt.block_size, rng).reshape(-1)
    weights = layouts.upload(device, layouts.pack(fmt, blocks, problem.n, problem.k))
    x = device.upload(rng.standard_normal((problem.m, problem.k), np.float32))
    y = device.upload(np.zeros((problem.m, problem.n), np.float32))
    launches = {}
    for tile in tiles:
        try:
            binary = device.compile(kernel.source(tile, problem, device.limits()))
        except CandidateRejected as error:
            print(f"  {tile.text()}: {error}")
            continue
        launches[tile] = kernel.launch(binary, tile, problem, x, weights, y)
        device.execute(launches[tile])
    samples: dict[Tile, list[float]] = {tile: [] for tile in launches}
    timed = list(launches)
    for _ in range(PASSES):
        for i in rng.permutation(len(timed)):
            samples[timed[i]].append(sum(device.time(launches[timed[i]])))
    device.free([x, y, *(piece.buffer for piece in weights.slices)])
    return {tile: float(np.median(mine)) for tile, mine in samples.items()}


def interval(prices: Sequence[float], seconds: Sequence[float], draws: int = 1000) -> tuple[float, float]:
    """95 % bootstrap interval of Spearman's rho over tiles."""
    rng, paper, real = np.random.default_rng(0), np.array(prices), np.array(seconds)
    picks = rng.integers(0, len(paper), (draws, len(paper)))
    found = [spearmanr(paper[p], real[p]).statistic for p in picks if len(set(real[p])) > 1]
    return float(np.nanquantile(found, 0.025)), float(np.nanquantile(found, 0.975))


def main() -> None:
    parser = argparse.ArgumentParser(description="Spearman correlation of price and time")
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--kernel", action="append", default=[])
    parser.add_argument("--format", default="Q4_K")
    parser.add_argument("--n", type=int, default=1024)
    parser.add_argument("--k", type=int, default=512)
    parser.add_argument("--m", type=int, default=64)
    parser.add_argument("--vector-m", type=int, default=1)
    parser.add_argument("--tiles", type=int, default=TILES)
    parser.add_argument("--show", action="store_true", help="print every tile")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(open_device(arguments.device, Places.under(folder).ready())) as device,
    ):
        limits, identity = device.limits(), device.identity()
        print(f"{identity.device}, {identity.driver}, seed {SEED}")
        chosen = [kernels.by_name(name) for name in arguments.kernel] or kernels.for_runtime("vulkan")
        for kernel in chosen:
            problem = Problem(arguments.format, arguments.n, arguments.k, arguments.m)
            if kernel.name.endswith("mat_vec"):
                problem = problem.at(arguments.vector_m)
            tiles = drawn(kernel, problem, limits, arguments.tiles)
            seconds = measured(device, kernel, tiles, problem)
            if len(seconds) < 3:
                print(f"{kernel.name}: {len(seconds)} tiles ran on {problem.text()}")
                continue
            paper = [kernel.price(tile, problem, limits).seconds for tile in seconds]
            real = list(seconds.values())
            rho = spearmanr(paper, real).statistic
            low, high = interval(paper, real)
            place = int(np.argsort(np.argsort(paper))[int(np.argmin(real))]) + 1
            print(
                f"{kernel.name:24} {problem.text()}: rho {rho:.2f} [{low:.2f}, {high:.2f}] over {len(real)} tiles;"
                f" the fastest is number {place} on paper",
                flush=True,
            )
            if arguments.show:
                for tile, price in sorted(zip(seconds, paper, strict=True), key=lambda pair: seconds[pair[0]]):
                    print(f"    {seconds[tile] * 1e3:9.3f} ms  paper {price * 1e3:9.3f} ms  {tile.text()}")


if __name__ == "__main__":
    main()
