"""The grid of targets on one H200: every cell with its baselines in the same rounds.

    python benchmarks/h200_limits.py --out results --seconds 240
    python benchmarks/h200_limits.py --out results --seconds 100 --formats Q4_K --dtypes fp16 --m 64,128,512,2048,8192

A cell is a format, a shape (N, K), a type of activations and M. Its arms are the candidate tiles, a pure read of the
same packed bytes (another one whose launches overlap, as those of many tiles do: a tile is held against the read in
its own mode), the dense library's matmul, and dequantizing followed by it; launches lie in a CUDA graph over weight
copies that exceed the cache, arms are sampled in random order within each round, and medians come with 95 % intervals.
Cells are measured in the order of --formats and --dtypes until --seconds are used; what was left out is said.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "src")]

M = (1, 2, 4, 8, 16, 64, 128, 512, 2048, 8192)
# M -> ("x dense", at least) or ("/ read", at most), for Q4_K.
TARGETS = {
    1: ("/ read", 1.20),
    **dict.fromkeys((2, 4, 8, 16), ("/ read", 1.40)),
    64: ("x dense", 2.3),
    128: ("x dense", 1.7),
    512: ("x dense", 1.0),
    2048: ("x dense", 1.05),
    8192: ("x dense", 1.05),
}
# Both sides round weights and sums: a few times the squared unit roundoff of the type.
MOST_ERROR = {"fp16": 1e-5, "bf16": 1e-3}
DEQUANTIZE = "triton.dequantize:tile_n=64,warps=8,steps=4,stages=2"
SCREEN_ROUNDS, FINAL_ROUNDS, FINALISTS = 3, 11, 3


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for h200_limits.json")
    parser.add_argument("--seconds", type=float, default=240.0, help="for everything together")
    parser.add_argument("--formats", default="Q4_K,Q6_K,Q8_0,Q4_0,PTQ1_0")
    parser.add_argument("--dtypes", default="fp16,bf16")
    parser.add_argument("--m", default=",".join(map(str, M)))
    parser.add_argument("--shapes", type=int, default=5, help="how many of the shapes, from the first")
    parser.add_argument("--kernels", default="", help="only tiles of these, by name; empty: of all")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1), help="compiling processes")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    import torch
    from cuda_cases import SHAPES, drawn_weight
    from cuda_compile import compile_all
    from h200_tiles import limit_tiles

    from warptile.contracts import Problem
    from warptile.places import Places
    from warptile.runtimes import open_device
    from warptile.torch_ops import TorchWeight

    options.out.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    runtime: Any = open_device("cuda:0", Places.under(tempfile.mkdtemp(prefix="warptile-")))
    limits, card = runtime.limits(), runtime._backend
    tokens = [int(m) for m in options.m.split(",")]
    shapes = SHAPES[: options.shapes]
    groups = [
        (name, n, k, dtype)
        for name in options.formats.split(",")
        for dtype in options.dtypes.split(",")
        for n, k in shapes
    ]
    wanted: dict[tuple[str, int, int, str, int], list[str]] = {}
    for name, n, k, dtype in groups:
        for m in tokens:
            tiles = limit_tiles(Problem(name, n, k, m, dtype, dtype), limits)
            allowed = options.kernels.split(",") if options.kernels else None
            wanted[name, n, k, dtype, m] = [t for t in tiles if allowed is None or t.partition(":")[0] in allowed]
    pairs = [(text, Problem(*key[:3], key[4], key[3], key[3])) for key, texts in wanted.items() for text in texts]
    compiled = compile_all(card, pairs, options.workers, options.seconds * 0.6)
    print(
        f"{compiled['compiled']} tiles compiled in {compiled['seconds']:.0f} s; not: {compiled['failed']}", flush=True
    )
    found: dict[str, Any] = {"identity": runtime.identity().to_json(), "torch": torch.__version__, "rows": []}
    print(HEAD, flush=True)
    left = []
    for name, n, k, dtype in groups:
        if time.monotonic() - begin > options.seconds:
            left.append(f"{name} {n} {k} {dtype}")
            continue
        first = TorchWeight.pack(drawn_weight(name, n, k), card.device)
        weights = copies_of(first, limits.cache_bytes, TorchWeight)
        dense = dense_of(n, k, dtype, limits.cache_bytes, card.device)
        for m in tokens:
            if time.monotonic() - begin > options.seconds:
                left.append(f"{name} {n} {k} {dtype} {m}")
                continue
            row = cell(card, Problem(name, n, k, m, dtype, dtype), wanted[name, n, k, dtype, m], weights, dense)
            found["rows"].append(row)
            print(line(row), flush=True)
            (options.out / "h200_limits.json").write_text(json.dumps(found) + "\n")
        del weights, dense, first
        torch.cuda.empty_cache()
    print(f"left out: {', '.join(left) or 'nothing'}; {time.monotonic() - begin:.0f} s", flush=True)
    return 0


def copies_of(first: Any, cache: int, kind: Any) -> list[Any]:
    """The weight and copies of it that together exceed twice the cache."""
    count = min(32, 2 * cache // (first.words.numel() * 4) + 2)
    return [first] + [kind(first.words.clone(), first.format, first.n, first.k) for _ in range(count - 1)]


def dense_of(n: int, k: int, dtype: str, cache: int, device: Any) -> list[Any]:
    """Dense weights as many as exceed twice the cache."""
    import torch
    from cuda_speed import TYPES

    count = min(16, 2 * cache // (2 * n * k) + 2)
    return [torch.randn((n, k), device=device).to(TYPES[dtype]) * 0.02 for _ in range(count)]


def cell(card: Any, problem: Any, texts: list[str], weights: list[Any], dense: list[Any]) -> dict[str, Any]:
    """Screen the tiles, then time the best of them and the baselines in the same rounds."""
    import torch
    from cuda_speed import TYPES
    from cuda_timing import Arm, interleaved, runs_for

    from warptile.runtimes.triton.ceilings import READ, READ_DEPENDENT, pure_read
    from warptile.torch_ops import matmul_torch

    dtype = TYPES[problem.x_dtype]
    x = torch.randn((problem.m, problem.k), device=card.device).to(dtype)
    y = torch.empty((problem.m, problem.n), dtype=dtype, device=card.device)
    nbytes = weights[0].words.numel() * 4
    guess = max(nbytes / 3e12, problem.flops / 6e14)
    failed: dict[str, str] = {}
    arms: dict[str, Arm] = {}

    def add(name: str, work: Any, copies: int, seconds: float) -> None:
        try:
            arms[name] = Arm(name, work, copies, runs_for(seconds, copies), True)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {str(error)[:200]}"

    for text in texts:
        add(text, lambda i, t=text: matmul_torch(x, weights[i], tile=t), len(weights), guess)
    screened = interleaved(list(arms.values()), SCREEN_ROUNDS)
    finalists = sorted(screened, key=lambda name: screened[name].seconds)[:FINALISTS]
    arms = {name: arms[name] for name in finalists}
    add("dense", lambda i: torch.mm(x, dense[i].t(), out=y), len(dense), guess)
    add("dequantize + dense", lambda i: matmul_torch(x, weights[i], tile=DEQUANTIZE), len(weights), 3 * guess)
    for name, build in (("read", READ), ("dependent read", READ_DEPENDENT)):
        read = pure_read(card, build)
        add(name, lambda i, r=read: r(weights[i].words), len(weights), nbytes / 4e12)
    final = interleaved(list(arms.values()), FINAL_ROUNDS)
    won = min((t.seconds, name) for name, t in final.items() if name.startswith("triton."))[1] if finalists else ""
    error = apart(x, weights[0], won, matmul_torch) if won else float("nan")
    return {
        "format": problem.format,
        "n": problem.n,
        "k": problem.k,
        "m": problem.m,
        "x_dtype": problem.x_dtype,
        "bytes": nbytes,
        "tile": won,
        "error": error,
        "arms": {name: [t.seconds, t.low, t.high, t.samples] for name, t in final.items()},
        "screened": {name: t.seconds for name, t in screened.items()},
        "failed": failed,
    }


def apart(x: Any, weight: Any, tile: str, matmul: Any) -> float:
    """Sum of squared differences between a tile's y and that of dequantizing first, over the latter's."""
    want = matmul(x, weight, tile=DEQUANTIZE).double()
    return float(((matmul(x, weight, tile=tile).double() - want) ** 2).sum() / (want**2).sum())


HEAD = (
    "format  x      n     k    m |  us [low, high]          dense  deq+dense read | x dense / read | target    | tile"
)
DEPENDENT = ("pdl=1", "early=1")
"""Fields of tiles whose launch may begin before the one ahead of it ends: their floor is the read that may, too."""


def line(row: dict[str, Any]) -> str:
    """One cell: microseconds, ratios, and whether its target is met."""
    arms = row["arms"]

    def us(name: str) -> float:
        return arms[name][0] * 1e6 if name in arms else float("nan")

    seconds, low, high, _ = arms.get(row["tile"], [float("nan")] * 4)
    mine = seconds * 1e6
    read = us("dependent read" if any(field in row["tile"] for field in DEPENDENT) else "read")
    ratios = {"x dense": us("dense") / mine, "/ read": mine / read}
    kind, wanted = TARGETS.get(row["m"], ("x dense", 0.0))
    met = ratios[kind] >= wanted if kind == "x dense" else ratios[kind] <= wanted
    return (
        f"{row['format']:7s} {row['x_dtype']} {row['n']:5d} {row['k']:5d} {row['m']:4d} | {mine:7.1f} "
        f"[{low * 1e6:.1f}, {high * 1e6:.1f}] {us('dense'):7.1f} {us('dequantize + dense'):7.1f} {read:6.1f} | "
        f"{ratios['x dense']:5.2f} {ratios['/ read']:6.2f} | {wanted:4.2f} {'met  ' if met else 'short'} | "
        f"{row['tile'].removeprefix('triton.')}{'' if row['error'] < MOST_ERROR[row['x_dtype']] else ' WRONG'}"
    )


if __name__ == "__main__":
    sys.exit(main())
