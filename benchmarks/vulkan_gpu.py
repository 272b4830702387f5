"""One GPU through Vulkan: every kernel proved, cooperative-matrix tiles and mat-vec timed on Q4_K at (n 4096, k 14336).

    python benchmarks/vulkan_gpu.py [--part proof gemm vec] [--m 128 512 2048] [--budget 400] [--json FILE] [--keep 8]

proof: the quick proof of a tile of each kernel, and of each arrangement of `mul_mm_coop`, on six formats. gemm: a list
of `mul_mm_coop` tiles; each is compiled, its whole output checked against float64 within the proof's bound, screened,
and the fastest `--keep` are timed in interleaved rounds, on weights that exceed the cache. vec: `mul_mat_vec` at m = 1
beside a pure read of as many bytes, both timed launch by launch with a barrier between. Printed: medians with the 2.5 %
and 97.5 % quantiles of a bootstrap, the driver's registers and shared bytes beside the price's. Everything goes to the
JSON file.

Times are sums of a tile's launches (parts of k and their sum). Activations and outputs are fp16 unless --dtype says so.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warptile import formats, kernels, layouts
from warptile.contracts import CandidateRejected, Kernel, Launch, Problem, Source, Tile
from warptile.contracts.runtime import sample_dtype
from warptile.kernels.vulkan.mul_mat_vec import MulMatVecTile
from warptile.kernels.vulkan.mul_mm_coop import MulMmCoopTile
from warptile.places import Places
from warptile.proof import prove
from warptile.proof.bounds import Sums, element_bound
from warptile.proof.references import ReferenceCache
from warptile.proof.weights import random_blocks, terms
from warptile.runtimes import open_device
from warptile.runtimes.vulkan import ceilings
from warptile.runtimes.vulkan.matrix_order import held_elements
from warptile.runtimes.vulkan.runtime import VulkanRuntime
from warptile.search import rank

SIX = ("Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K", "Q6_K")
COPIES = 3
SAMPLE_SECONDS = 1.5e-3
SCREEN_SECONDS = 6e-3
WARM_SECONDS = 0.8
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


@dataclass
class Arm:
    """A tile that gave the right result, its launches for each copy of the weights, and what is known of it."""

    tile: Tile
    launches: list[tuple[Launch, ...]]
    row: dict[str, Any]


class Bench:
    """Device, weights in copies, activations; results gather in `rows`."""

    def __init__(self, device: VulkanRuntime, dtype: str, n: int, k: int, end: float) -> None:
        self.device, self.dtype, self.n, self.k, self.end = device, dtype, n, k, end
        self.rows: list[dict[str, Any]] = []
        fmt = formats.by_name("Q4_K")
        drawn = random_blocks(fmt, 256 * (k // 256), np.random.default_rng(0)).reshape(256, -1)
        # Rows are shuffled copies of 256 drawn ones, every one with codes of its own.
        rng = np.random.default_rng(1)
        self.blocks = drawn[rng.integers(0, 256, n)]
        codes = self.blocks.reshape(n, k // 256, 144)[:, :, 16:]
        codes[...] = rng.integers(0, 256, codes.shape, np.uint8)
        packed = layouts.pack(fmt, self.blocks.reshape(-1), n, k, device.limits().max_buffer_bytes)
        self.weights = [layouts.upload(device, packed) for _ in range(COPIES)]
        self.bytes = packed.nbytes

    def left(self) -> float:
        return self.end - time.monotonic()

    def warm(self, launches: Sequence[Launch]) -> None:
        until = time.monotonic() + WARM_SECONDS
        while time.monotonic() < until:
            self.device.execute(launches)

    def sample(self, arms: Sequence[Arm], repeats: Sequence[int]) -> list[float]:
        """Seconds of one run of each arm, all in one submission, copies in turn."""
        launches: list[Launch] = []
        owner: list[int] = []
        for index, (arm, times) in enumerate(zip(arms, repeats, strict=True)):
            for r in range(times):
                run = arm.launches[r % len(arm.launches)]
                launches += run
                owner += [index] * len(run)
        seconds = self.device.time(launches)
        return list(np.bincount(owner, weights=seconds, minlength=len(arms)) / np.asarray(repeats))

    def rounds(self, arms: Sequence[Arm], count: int, floor: Arm | None = None) -> None:
        """Interleaved rounds; each arm's row gets us, its interval, and its ratio to `floor`."""
        everyone = [*arms, floor] if floor else list(arms)
        first = self.sample(everyone, [COPIES] * len(everyone))
        repeats = [max(COPIES, min(24, COPIES * round(SAMPLE_SECONDS / s / COPIES))) for s in first]
        samples = []
        for r in range(count):
            order = np.random.default_rng(r).permutation(len(everyone))
            got = self.sample([everyone[i] for i in order], [repeats[i] for i in order])
            samples.append([got[list(order).index(i)] for i in range(len(everyone))])
        table = np.array(samples)
        for i, arm in enumerate(arms):
            arm.row["us"], arm.row["us_low"], arm.row["us_high"] = (1e6 * v for v in interval(table[:, i]))
            if floor:
                ratio = interval(table[:, i] / table[:, -1])
                arm.row["to_read"], arm.row["to_read_low"], arm.row["to_read_high"] = ratio


def interval(samples: np.ndarray) -> tuple[float, float, float]:
    """Median and its bootstrap interval."""
    rng = np.random.default_rng(0)
    medians = np.median(samples[rng.integers(0, len(samples), (1000, len(samples)))], axis=1)
    return float(np.median(samples)), float(np.quantile(medians, 0.025)), float(np.quantile(medians, 0.975))


def statistics(device: VulkanRuntime, kernel: Kernel, tile: Tile, problem: Problem) -> dict[str, Any]:
    """What the driver says and what the price says."""
    binary = device.compile(kernel.source(tile, problem, device.limits()))
    found, price = device.resources(binary), kernel.price(tile, problem, device.limits())
    row: dict[str, Any] = {
        "price_us": 1e6 * price.seconds, "price_registers": price.registers, "price_shared": price.shared_bytes,
        "workgroups": price.workgroups, "fill": price.fill, "compile_s": binary.compile_seconds,
    }  # fmt: skip
    if found is not None:
        row |= {"registers": found.registers, "shared": found.shared_bytes, "spill": found.spill_bytes}
    return row


def proof_tiles(device: VulkanRuntime, problem: Problem) -> Iterator[tuple[Kernel, Tile]]:
    """The best-priced tile of each kernel; of `mul_mm_coop` one for each arrangement."""
    limits = device.limits()
    for kernel in kernels.for_runtime("vulkan"):
        ranked = rank(problem, limits, [kernel])
        if ranked:
            yield kernel, ranked[0].tile
    coop = kernels.by_name("vulkan.mul_mm_coop")
    sides = next((c for c in limits.cooperative_matrices if (c.a_type, c.c_type) == ("fp16", "fp32")), None)
    if sides is None:
        return
    matrix = f"{sides.m}x{sides.n}x{sides.k}"
    for text in (
        "warps_n=2,warps_m=2,matrices_n=2,matrices_m=2,k_chunk=64,weights=registers,buffers=2",
        "warps_n=4,warps_m=1,matrices_n=4,matrices_m=2,k_chunk=64,weights=registers,prefetch=2,split_k=2,first=n",
        "warps_n=2,warps_m=2,matrices_n=2,matrices_m=2,k_chunk=32,buffers=2,split_k=2",
        "warps_n=4,warps_m=1,matrices_n=1,matrices_m=3,k_chunk=128,weights=warp,decode=fp32",
        "warps_n=2,warps_m=2,matrices_n=2,matrices_m=1,k_chunk=64,decode=fp32,prefetch=0,accumulator=fp16",
    ):
        tile = MulMmCoopTile.parse(f"operands=fp16,matrix={matrix},subgroup={limits.subgroup},{text}")
        if not coop.broken_rules(tile, problem, limits):
            yield coop, tile


def part_proof(bench: Bench) -> None:
    device, cache = bench.device, ReferenceCache()
    for name, dtype in [*((f, "fp32") for f in SIX), ("Q4_K", "fp16")]:
        problem = Problem(name, 200, 768, 33, dtype, dtype)
        pairs = list(proof_tiles(device, problem)) if dtype == "fp32" else [
            pair for pair in proof_tiles(device, problem) if pair[0].name.endswith("coop")
        ]  # fmt: skip
        sources = [kernel.source(tile, problem, device.limits()) for kernel, tile in pairs]
        device.compile_all(sources, 12)
        for kernel, tile in pairs:
            start = time.monotonic()
            if bench.left() < 5:
                print("proof: out of time")
                return
            row = {"part": "proof", "format": name, "dtype": dtype, "tile": tile.text()}
            try:
                verdict = prove(device, kernel, tile, problem, "quick", 0, cache=cache)
                row |= {"right": verdict.right, "failed": verdict.failed, "detail": verdict.detail,
                        "worst_ratio": verdict.worst_ratio, "nmse": verdict.nmse}  # fmt: skip
            except CandidateRejected as error:
                row |= {"right": False, "failed": error.outcome, "detail": str(error)}
            row["seconds"] = time.monotonic() - start
            bench.rows.append(row)
            if not row["right"]:
                print("NOT RIGHT", row, flush=True)
    rows = [r for r in bench.rows if r["part"] == "proof"]
    print(f"proof: {sum(r['right'] for r in rows)} of {len(rows)} right", flush=True)


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


WITHOUT = {
    "decode": [
        (
            "    f16vec2 s = unpackFloat2x16(scale);",
            "    if (scale != 1u) return uvec2(codes, codes ^ scale);\n    f16vec2 s = f16vec2(1.0hf);",
        )
    ],
    "scale loads": [("s_ahead[i] = load_scale_words(", "s_ahead[i].w[0] = (")],
    "scale arithmetic": [
        (
            "Scale own = scale_of(",
            "Scale own; own.d[0] = own.m[0] = float(s_ahead[i].w[0]); if (P.k == 7u) own = scale_of(",
        )
    ],
    "x": [
        (
            "XUnit read_x(uint row, uint unit) { return XUnit(X[row * (P.k / 8u) + unit]); }",
            "XUnit read_x(uint row, uint unit) { return XUnit(uvec4(row, unit, row, unit)); }",
        )
    ],
    "weights": [
        (
            "        load_octets4(w_row[i], min(chunk, last_chunk), lane_j, P.rows, o);",
            "        o[0].p0[0] = chunk; o[1].p0[0] = chunk + w_row[i]; o[2].p0[0] = lane_j;"
            " o[3].p0[0] = lane_j + chunk;",
        ),
        ("= load_octet(row, chunk, w_octet(at) + q, P.rows);", "= Octet(uint[1](row + chunk * q));"),
    ],
    "barriers": [("        barrier();\n", "")],
    "store of x": [
        ("[[unroll]] for (uint i = 0u; i < X_EACH; ++i) {\n        uint at = i * THREADS + tid, unit = at",
         "if (P.k == 7u) [[unroll]] for (uint i = 0u; i < X_EACH; ++i) {\n"
         "        uint at = i * THREADS + tid, unit = at"),
        ("            pool[base + at / UNITS * ROW + at % UNITS] = x_pairs",
         "            if (P.k == 7u) pool[base + at / UNITS * ROW + at % UNITS] = x_pairs"),
    ],
}  # fmt: skip
"""What is taken out of a kernel's text, to see what it costs: results are wrong, and only differences mean anything."""

_PRODUCTS = """\
            [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) {
                B_MATRIX b;
                DECODE(b, j, h)
                [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
                    sums[i * MATRICES_N + j] = coopMatMulAdd(a[i], b, sums[i * MATRICES_N + j]);
            }
"""
_LOADS = """\
        [[unroll]] for (uint h = 0u; h < 2u; ++h) {
            A_MATRIX a[MATRICES_M];
            [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
                coopMatLoad(a[i], pool, base + (x_row + i * 16u) * ROW + c * 4u + h * 2u, ROW,
                            gl_CooperativeMatrixLayoutRowMajor);
"""
_LOADS_AHEAD = """\
        A_MATRIX both[2u * MATRICES_M];
        [[unroll]] for (uint i = 0u; i < 2u * MATRICES_M; ++i)
            coopMatLoad(both[i], pool, base + (x_row + i % MATRICES_M * 16u) * ROW + c * 4u + i / MATRICES_M * 2u, ROW,
                        gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint h = 0u; h < 2u; ++h) {
            A_MATRIX a[MATRICES_M];
            [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i) a[i] = both[h * MATRICES_M + i];
"""
_DECODED_FIRST = """\
            B_MATRIX b[MATRICES_N];
            [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j) { DECODE(b[j], j, h) }
            [[unroll]] for (uint j = 0u; j < MATRICES_N; ++j)
                [[unroll]] for (uint i = 0u; i < MATRICES_M; ++i)
                    sums[i * MATRICES_N + j] = coopMatMulAdd(a[i], b[j], sums[i * MATRICES_N + j]);
"""
_STORE_FIRST = """\
        store(k + K_CHUNK, STAGE - base);
        fetch_x(k + 2u * K_CHUNK);
        fetch_s(k + 2u * K_CHUNK);
        multiply(base, k, x_row, s_first);
"""
_STORE_LAST = """\
        multiply(base, k, x_row, s_first);
        store(k + K_CHUNK, STAGE - base);
        fetch_x(k + 2u * K_CHUNK);
        fetch_s(k + 2u * K_CHUNK);
"""
ARRANGED = {
    "x loaded ahead": [(_LOADS, _LOADS_AHEAD)],
    "decoded first": [(_PRODUCTS, _DECODED_FIRST)],
    "x ahead, decoded first": [(_LOADS, _LOADS_AHEAD), (_PRODUCTS, _DECODED_FIRST)],
    "stored last": [(_STORE_FIRST, _STORE_LAST)],
}
"""Other orders of the same work: results stay right."""


def part_variants(bench: Bench, best: Sequence[Arm], problem: Problem, x: Any, y: Any, want: np.ndarray) -> None:
    """The fastest tiles with something left out or done in another order, in the same rounds."""
    device, limits = bench.device, bench.device.limits()
    coop = kernels.by_name("vulkan.mul_mm_coop")
    for arm in best:
        tile = arm.tile
        source = coop.source(tile, problem, limits)
        arms = [Arm(tile, arm.launches, {"part": "without", "m": problem.m, "tile": tile.text(), "change": "nothing"})]
        for name, edits in [*WITHOUT.items(), *ARRANGED.items()]:
            changed = source.text
            for text, instead in edits:
                changed = changed.replace(text, instead)
            if changed == source.text or (name in ARRANGED and any(text not in source.text for text, _ in edits)):
                continue
            row: dict[str, Any] = {"part": "without", "m": problem.m, "tile": tile.text(), "change": name}
            try:
                binary = device.compile(dataclasses.replace(source, text=changed))
                launches = [coop.launch(binary, tile, problem, x, weights, y) for weights in bench.weights]
                device.execute(launches[0])
            except CandidateRejected as error:
                print(f"  {name}: {error}", flush=True)
                continue
            found = device.resources(binary)
            if found is not None:
                row |= {"registers": found.registers, "shared": found.shared_bytes, "spill": found.spill_bytes}
            got = device.download(y, sample_dtype(problem.y_dtype), want.shape).astype(np.float32)
            row["nmse"] = float(np.square(got - want, dtype=np.float64).sum() / np.square(want, dtype=np.float64).sum())
            arms.append(Arm(tile, launches, row))
        # Clocks fall while the host compiles; rounds of a few milliseconds do not raise them again.
        bench.warm(arm.launches[0])
        bench.rounds(arms, 7)
        print(f"  {tile.text()}")
        for found_arm in arms:
            r = found_arm.row
            bench.rows.append(r)
            print(f"    {r['us']:8.1f} us  {r['change']}  registers {r.get('registers')} spill {r.get('spill')} "
                  f"nmse {r.get('nmse', 0):.1e}", flush=True)  # fmt: skip


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


def table(rows: Sequence[dict[str, Any]], keep: int) -> None:
    """The best of each part, short."""
    print("\npart m | us [interval] | TFLOP/s or x read | registers driver/price, shared driver/price, spill | tile")
    for part, m in sorted({(r["part"], r.get("m", 0)) for r in rows if "us" in r and r["part"] != "without"}, key=str):
        timed = sorted(
            (r for r in rows if (r["part"], r.get("m", 0)) == (part, m) and "us" in r), key=lambda r: r["us"]
        )
        for r in timed[:keep]:
            rate = f"{r['tflops']:.0f}" if "tflops" in r else f"{r.get('to_read', 1):.3f}"
            print(
                f"{part} {m} | {r['us']:.2f} [{r['us_low']:.2f}, {r['us_high']:.2f}] | {rate} | "
                f"{r.get('registers')}/{r.get('price_registers')} {r.get('shared')}/{r.get('price_shared')} "
                f"{r.get('spill')} | {r.get('tile', r)}"
            )
    for m in sorted({r["m"] for r in rows if r["part"] == "gemm"}):
        own = [r for r in rows if r["part"] == "gemm" and r["m"] == m and "screened_us" in r]
        unequal = [r for r in own if r.get("shared") not in (None, r["price_shared"])]
        if len(own) > 2:
            a, b = (np.argsort(np.argsort([r[key] for r in own])) for key in ("price_us", "screened_us"))
            rho = float(np.corrcoef(a, b)[0, 1])
            print(f"m {m}: {len(own)} tiles, Spearman of price and time {rho:.2f}, "
                  f"{len(unequal)} with other shared bytes than priced")  # fmt: skip
    wrong = [r for r in rows if r.get("right") is False]
    print(
        f"{len(wrong)} rows not right"
        + "".join(f"\n  {r['tile']}: {r.get('failed')} {r.get('detail', '')}" for r in wrong[:12])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="vulkan:0")
    parser.add_argument("--part", nargs="+", default=["proof", "gemm", "vec"])
    parser.add_argument("--n", type=int, default=4096)
    parser.add_argument("--k", type=int, default=14336)
    parser.add_argument("--m", nargs="+", type=int, default=[128, 512, 2048])
    parser.add_argument("--budget", type=float, default=400.0)
    parser.add_argument("--keep", type=int, default=8)
    parser.add_argument("--dtype", default="fp16")
    parser.add_argument("--tile", nargs="*", default=[])
    parser.add_argument("--quick", action="store_true", help="fewer tiles")
    parser.add_argument("--json", type=Path, default=Path("vulkan_gpu.json"))
    parser.add_argument("--cache", type=Path, default=Path("/tmp/warptile-bench"))
    own = parser.parse_args()
    start = time.monotonic()
    device = open_device(own.device, Places.under(own.cache))
    assert isinstance(device, VulkanRuntime)
    print(device.identity(), "matrix order", device.limits().matrix_order or "unknown", flush=True)
    held = held_elements(device)
    if held is not None:
        print("B of lanes 0, 1, 5, column and k:", [[divmod(int(v), 16) for v in held[0, i]] for i in (0, 1, 5)])
        print("sums of lanes 0, 1, 5, row and column:", [[divmod(int(v), 16) for v in held[1, i]] for i in (0, 1, 5)])
    bench = Bench(device, own.dtype, own.n, own.k, start + own.budget)
    try:
        if "proof" in own.part:
            part_proof(bench)
        if "vec" in own.part:
            part_vec(bench, own.keep)
        if "gemm" in own.part:
            part_gemm(bench, own.m, own.keep, own.quick, own.tile)
    finally:
        limits = device.limits()
        head = {"identity": device.identity().to_json(), "units": limits.units, "features": sorted(limits.features),
                "matrices": [str(c) for c in limits.cooperative_matrices], "vendor": limits.vendor}  # fmt: skip
        own.json.write_text(json.dumps({"device": head, "rows": bench.rows}, indent=1))
        table(bench.rows, own.keep)
        print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
