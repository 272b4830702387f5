"""Tiles of `mul_mm_coop`: checked, screened, the fastest timed together."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from vulkan_parts.bench import COPIES, Arm, Bench, statistics
from vulkan_parts.variants import part_variants
from warptile import formats, kernels
from warptile.contracts import CandidateRejected, Problem
from warptile.contracts.runtime import sample_dtype
from warptile.kernels.vulkan.mul_mm_coop import MulMmCoopTile
from warptile.proof.bounds import Sums, element_bound
from warptile.proof.weights import terms
from warptile.runtimes.vulkan.runtime import VulkanRuntime

SCREEN_SECONDS = 6e-3
# (warps_n, warps_m, matrices_n, matrices_m)
IN_REGISTERS = (
    (4, 2, 4, 4), (8, 1, 2, 8), (8, 2, 2, 4), (4, 2, 2, 4), (2, 2, 4, 4), (4, 1, 2, 8), (4, 1, 4, 4), (8, 1, 4, 4),
    (8, 1, 2, 4), (2, 4, 4, 4), (4, 4, 2, 4), (4, 1, 2, 4), (4, 2, 4, 2), (2, 2, 2, 8),
    (8, 1, 2, 2), (16, 1, 2, 4), (4, 1, 4, 2),
)  # fmt: skip
DECODED_ONCE = ((4, 2, 2, 4), (2, 2, 4, 4), (4, 2, 4, 2), (4, 4, 2, 4), (2, 4, 4, 4), (4, 2, 4, 4))
STAGES = (
    (32, 1, 1), (32, 2, 1), (64, 1, 1), (64, 2, 1), (64, 1, 2), (64, 2, 2), (128, 1, 1), (128, 1, 2), (128, 1, 4),
    (128, 2, 4),
)  # fmt: skip


def splits(tile: MulMmCoopTile, m: int, n: int, units: int) -> list[int]:
    """Parts of k that fill the chip: the fewest with nine tenths of the last wave busy, and the next such number."""
    blocks = -(-m // tile.tile_m) * -(-n // tile.tile_n)
    good = []
    for parts in (1, 2, 3, 4, 6, 8, 12, 16):
        groups = blocks * parts
        waves = -(-groups // units)
        if groups / (waves * units) >= 0.9 and waves <= 8:
            good.append(parts)
    return good[:2] or [1]


def gemm_tiles(m: int, n: int, k: int, device: VulkanRuntime, quick: bool) -> list[MulMmCoopTile]:
    limits = device.limits()
    coop, problem = kernels.by_name("vulkan.mul_mm_coop"), Problem("Q4_K", n, k, m, "fp16", "fp16")
    sides = next(c for c in limits.cooperative_matrices if (c.a_type, c.c_type) == ("fp16", "fp32"))
    found: list[MulMmCoopTile] = []
    for weights, shapes in (("registers", IN_REGISTERS), ("block", DECODED_ONCE)):
        for (wn, wm, mn, mm), (k_chunk, buffers, prefetch) in itertools.product(shapes, STAGES[: 2 if quick else 99]):
            tile = MulMmCoopTile(
                "fp16", f"{sides.m}x{sides.n}x{sides.k}", wn, wm, mn, mm, k_chunk, weights, buffers=buffers,
                prefetch=prefetch, subgroup=limits.subgroup,
            )  # fmt: skip
            if tile.tile_m >= 2 * m:
                continue
            for parts in splits(tile, m, n, limits.units or 1):
                own = MulMmCoopTile(**{**tile.fields(), "split_k": parts})  # type: ignore[arg-type]
                if not coop.broken_rules(own, problem, limits):
                    found.append(own)
    return found


def part_gemm(bench: Bench, sizes: Sequence[int], keep: int, quick: bool, tiles: Sequence[str]) -> None:
    device, limits, n, k = bench.device, bench.device.limits(), bench.n, bench.k
    coop = kernels.by_name("vulkan.mul_mm_coop")
    fmt = formats.by_name("Q4_K")
    start = time.monotonic()
    x_all = np.random.default_rng(2).standard_normal((max(sizes), k), np.float32).astype(sample_dtype(bench.dtype))
    w = np.empty((n, k), np.float32)
    amplitude = np.empty((n, k), np.float32)
    for row in range(0, n, 256):
        got = terms(fmt, bench.blocks[row : row + 256].reshape(-1, fmt.block_bytes))
        w[row : row + 256], amplitude[row : row + 256] = (a.reshape(-1, k) for a in got)
    want_all = x_all.astype(np.float32) @ w.T
    x128 = x_all[:128].astype(np.float64)
    ax = np.abs(x128).astype(np.float32)
    want128 = x128 @ w.T.astype(np.float64)
    sums = Sums(
        (ax @ np.abs(w).T).astype(np.float64) * 1.001, (ax @ amplitude.T).astype(np.float64) * 1.001,
        ax.sum(1, dtype=np.float64, keepdims=True), np.abs(w).sum(1, dtype=np.float64)[None],
        amplitude.sum(1, dtype=np.float64)[None],
    )  # fmt: skip
    del amplitude
    print(f"references {time.monotonic() - start:.1f} s", flush=True)
    for position, m in enumerate(sizes):
        share = bench.left() / (len(sizes) - position)
        end = time.monotonic() + share
        problem = Problem("Q4_K", n, k, m, bench.dtype, bench.dtype)
        chosen = [MulMmCoopTile.parse(t) for t in tiles] or gemm_tiles(m, n, k, device, quick)
        start = time.monotonic()
        device.compile_all([coop.source(t, problem, limits) for t in chosen], 14)
        print(f"m {m}: {len(chosen)} tiles compiled in {time.monotonic() - start:.1f} s", flush=True)
        x = device.upload(x_all[:m])
        y = device.upload(np.zeros((m, n), x_all.dtype))
        arms = []
        for tile in chosen:
            if time.monotonic() > end - 0.3 * share:
                print(f"m {m}: {len(chosen) - len(arms)} tiles left out for time")
                break
            row: dict[str, Any] = {"part": "gemm", "m": m, "dtype": bench.dtype, "tile": tile.text()}
            bench.rows.append(row)
            try:
                binary = device.compile(coop.source(tile, problem, limits))
                launches = [coop.launch(binary, tile, problem, x, weights, y) for weights in bench.weights]
                device.write(y, np.full((m, n), np.nan, x_all.dtype))
                device.execute(launches[0])
                got = device.download(y, x_all.dtype, (m, n)).astype(np.float32)
            except CandidateRejected as error:
                row |= {"right": False, "failed": f"{error.outcome}: {error}"}
                continue
            error_sum = np.square(got - want_all[:m], dtype=np.float64).sum()
            nmse = float(error_sum / np.square(want_all[:m], dtype=np.float64).sum())
            top = min(m, 128)
            part = Sums(sums.products[:top], sums.terms[:top], sums.x[:top], sums.w, sums.amplitudes)
            bound = element_bound(want128[:top], part, coop.arithmetic(tile, problem), k, bench.dtype, bench.dtype)
            worst = float((np.abs(got[:top] - want128[:top]) / bound).max())
            row |= {"nmse": nmse, "worst_ratio": worst, "right": bool(nmse < 1e-6 and worst <= 1)}
            row |= statistics(device, coop, tile, problem)
            if not row["right"]:
                print("NOT RIGHT", tile.text(), nmse, worst, flush=True)
                continue
            arms.append(Arm(tile, launches, row))
        if not arms:
            continue
        bench.warm(arms[0].launches[0])
        # One long submission an arm keeps the clocks up.
        first = [bench.sample([arm], [COPIES])[0] for arm in arms]
        counts = [max(COPIES, min(48, COPIES * round(SCREEN_SECONDS / s / COPIES))) for s in first]
        screened = [bench.sample([arm], [count])[0] for arm, count in zip(arms, counts, strict=True)]
        for arm, seconds in zip(arms, screened, strict=True):
            arm.row["screened_us"] = 1e6 * float(seconds)
        order = [arms[i] for i in np.argsort(screened)]
        best: list[Arm] = []
        for weights in ("registers", "block"):
            best += [a for a in order if a.tile.fields()["weights"] == weights][:keep]
        bench.warm(best[0].launches[0])
        bench.rounds(best, 15)
        best.sort(key=lambda a: a.row["us"])
        for arm in arms:
            us = arm.row.get("us", arm.row["screened_us"])
            arm.row["tflops"] = problem.flops / us / 1e6
        print(f"m {m}: best {min(a.row['us'] for a in best):.1f} us, "
              f"{max(a.row['tflops'] for a in best):.0f} TFLOP/s", flush=True)  # fmt: skip
        for weights in ("registers", "block"):
            show_launches(bench, [a for a in best if a.tile.fields()["weights"] == weights][:1])
        for weights, count in (("registers", 2), ("block", 1)):
            picked = [a for a in best if a.tile.fields()["weights"] == weights][:count]
            part_variants(bench, picked, problem, x, y, want_all[:m])
        device.free([x, y])


def show_launches(bench: Bench, arms: Sequence[Arm]) -> None:
    """Microseconds of each launch of an arm (parts of k, then their sum), median over all copies several times."""
    for arm in arms:
        runs = [launch for _ in range(8) for run in arm.launches for launch in run]
        each = np.reshape(bench.device.time(runs), (-1, len(arm.launches[0])))
        arm.row["launch_us"] = [1e6 * float(s) for s in np.median(each, axis=0)]
        print(f"  launches {[round(us, 1) for us in arm.row['launch_us']]} us: {arm.tile.text()}", flush=True)
