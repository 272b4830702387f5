"""Few rows of x on one CUDA card: tiles against a pure read of the same bytes in the same launch mode.

    python benchmarks/cuda_few_rows.py --out results --seconds 60 --plan "Q4_K:4096x14336:1,16:fp16" TILE [TILE ..]

Each tile is compiled on all processors, compared with the float64 product, and timed in CUDA graphs over rotating
weights, interleaved with the reads (plain, and as a dependent launch) and dense fp16. One line a case comes out, the
fastest first, and a JSON file. A plan is FORMAT:NxK,..:M,..:DTYPE; several are separated by spaces, or lie one a line
in a file @NAME, where tiles of a case's own may follow. The tile "served" is what an untuned matmul takes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "src")]

WRONG = {"fp16": 3e-6, "bf16": 3e-4, "fp32": 3e-6}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plan", required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=20, help="runs that must be byte-equal")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--shown", type=int, default=14, help="tiles printed a case")
    parser.add_argument("tiles", nargs="*", help="tiles; tile_m=M becomes the smallest power of two that holds m")
    return parser.parse_args()


def cases(plan: str, tiles: list[str]) -> Iterator[tuple[tuple[str, int, int, int, str], list[str]]]:
    """((format, n, k, m, dtype), tiles)."""
    lines = plan.split()
    if plan.startswith("@"):
        lines = Path(plan[1:]).read_text().splitlines()
    for line in lines:
        part, *own = line.split()
        name, shapes, tokens, dtypes = part.split(":")
        for shape in shapes.split(","):
            n, k = map(int, shape.split("x"))
            for m in map(int, tokens.split(",")):
                for dtype in dtypes.split(","):
                    yield (name, n, k, m, dtype), tiles + own


def untuned(problem: Any, limits: Any) -> tuple[Any, Any]:
    """What a matmul takes where nothing was measured."""
    from warptile.routing import route

    found = route(problem, (), limits, lambda *_: "")
    return found.kernel, found.tile


def main() -> int:
    options = arguments()
    import torch
    from cuda_cases import DRAWN_ROWS, drawn_weight
    from cuda_compile import compile_all
    from cuda_speed import TYPES
    from cuda_timing import Arm, interleaved, runs_for

    from warptile import kernels
    from warptile.contracts import Problem, WarptileError
    from warptile.places import Places
    from warptile.runtimes import open_device
    from warptile.runtimes.triton.ceilings import READ, READ_DEPENDENT, pure_read
    from warptile.torch_ops import TorchWeight, matmul_torch
    from warptile.weights import QuantTensor

    start = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    runtime: Any = open_device("cuda:0", Places.under(tempfile.mkdtemp(prefix="warptile-")))
    backend, limits = runtime._backend, runtime.limits()
    wanted, tiles = [], {}
    for case, texts_wanted in cases(options.plan, options.tiles):
        problem = Problem(*case, case[-1])
        held = next(t for t in (1, 2, 4, 8, 16, 32, 64) if t >= problem.m)
        for text in texts_wanted:
            whole = text.replace("tile_m=M8", f"tile_m={max(8, held)}").replace("tile_m=M", f"tile_m={held}")
            kernel, tile = untuned(problem, limits) if text == "served" else kernels.parse_tile(whole)
            if not kernel.broken_rules(tile, problem, limits):
                tiles.setdefault(case, {})[tile.text()] = None
                wanted.append((tile.text(), problem))
    print(
        json.dumps(compile_all(backend, wanted, options.workers, options.seconds / 2), default=str)[:1500], flush=True
    )
    rows: list[dict[str, Any]] = []
    weights: dict[tuple[str, int, int], list[TorchWeight]] = {}
    for case, texts in tiles.items():
        if time.monotonic() - start > options.seconds:
            print("out of time before", case)
            break
        name, n, k, m, dtype = case
        key = (name, n, k)
        if key not in weights:
            weights.clear()
            torch.cuda.empty_cache()
            drawn = drawn_weight(name, n, k)
            first = TorchWeight.pack(drawn, backend.device)
            copies = min(32, 2 * limits.cache_bytes // (first.words.numel() * 4) + 2)
            weights[key] = [first] + [TorchWeight(first.words.clone(), name, n, k) for _ in range(copies - 1)]
            few = QuantTensor.from_blocks(drawn.format, drawn.blocks.reshape(n, -1)[:DRAWN_ROWS], (DRAWN_ROWS, k))
            dense_rows = torch.from_numpy(few.dequantize()).double().to(backend.device)
        copies = weights[key]
        x = torch.randn((m, k), device=backend.device).to(TYPES[dtype])
        want = x.double() @ dense_rows.T
        arms, wrong = [], {}
        nbytes = copies[0].words.numel() * 4
        runs = runs_for(nbytes / 4e12, len(copies))
        for text in texts:
            try:
                y = matmul_torch(x, copies[0], tile=text)
                got = y.double()
                part = got[:, : n // DRAWN_ROWS * DRAWN_ROWS].reshape(m, -1, DRAWN_ROWS)
                error = float(((part - want[:, None, :]) ** 2).sum() / ((want**2).sum() * part.shape[1]))
                rest = got[:, n // DRAWN_ROWS * DRAWN_ROWS :]
                tail = float((rest - want[:, : rest.shape[1]]).abs().max() / want.abs().max()) if rest.numel() else 0.0
                same = all(torch.equal(matmul_torch(x, copies[0], tile=text), y) for _ in range(options.repeats))
                if not (error < WRONG[dtype] and tail < 0.05 and same):
                    wrong[text] = f"nmse {error:.2e} tail {tail:.2e} same {same}"
                    continue
                arms.append(
                    Arm(text, lambda i, t=text, x=x, c=copies: matmul_torch(x, c[i], tile=t), len(copies), runs, True)
                )
            except (WarptileError, RuntimeError) as problem_found:
                wrong[text] = str(problem_found).splitlines()[0][:200]
                if "CUDA error" in str(problem_found):
                    raise
        for label, build in (("read", READ), ("read pdl", READ_DEPENDENT)):
            read = pure_read(backend, build)
            arms.append(Arm(label, lambda i, r=read, c=copies: r(c[i].words), len(copies), runs, True))
        found = interleaved(arms, options.rounds)
        floor = {0: found["read"].seconds, 1: found["read pdl"].seconds}
        line = {
            t: {
                "us": f.seconds * 1e6,
                "low": f.low * 1e6,
                "high": f.high * 1e6,
                "ratio": f.seconds / floor["pdl=1" in t],
            }
            for t, f in sorted(found.items(), key=lambda item: item[1].seconds)
        }
        rows.append({"case": case, "arms": line, "wrong": wrong})
        (options.out / "few_rows.json").write_text(json.dumps(rows) + "\n")
        spent = time.monotonic() - start
        print(
            f"{name} {n}x{k} m={m} {dtype}: read {floor[0] * 1e6:.2f} pdl {floor[1] * 1e6:.2f} at {spent:.0f} s",
            flush=True,
        )
        for text, each in list(line.items())[: options.shown]:
            if not text.startswith("read"):
                short = text.removeprefix("triton.").replace("tile_", "").replace("split_", "")
                print(f"   {each['us']:.2f} [{each['low']:.2f},{each['high']:.2f}] x{each['ratio']:.2f} {short}")
        for text, what in list(wrong.items())[:4]:
            print("   WRONG", text, what, flush=True)
    print(f"{time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
