"""Which tile is fastest for each matmul, against dense, dequantize + dense, and a pure read of the same bytes."""

from __future__ import annotations

import time
from typing import Any

import torch
from cuda_cases import candidates, drawn_weight
from cuda_timing import Arm, Timing, interleaved, runs_for

from warptile.contracts import Problem, WarptileError
from warptile.runtimes.triton.backends import Backend
from warptile.runtimes.triton.ceilings import pure_read
from warptile.runtimes.triton.engine import DTYPES, engine_of
from warptile.torch_ops import TorchWeight, matmul_torch

SCREEN_ROUNDS = 3
FINAL_ROUNDS = 12
FINALISTS = 2
DEQUANTIZE = "triton.dequantize"
TYPES = {name: dtype for dtype, name in DTYPES.items()}


def measure_shape(
    backend: Backend, name: str, n: int, k: int, ms: tuple[int, ...], x_dtype: str, end: float, tiny: bool
) -> list[dict[str, Any]]:
    """One row a number of tokens, each with every arm's timing; stops at `end`."""
    device = backend.device
    cuda = device.type == "cuda"
    cache = backend.limits().cache_bytes or 1 << 20
    dtype = TYPES[x_dtype]
    first = TorchWeight.pack(drawn_weight(name, n, k), device)
    nbytes = first.words.numel() * 4
    copies = 1 if tiny else min(32, 2 * cache // nbytes + 2)
    weights = [first] + [TorchWeight(first.words.clone(), name, n, k) for _ in range(copies - 1)]
    dense_copies = 1 if tiny else min(16, 2 * cache // (2 * n * k) + 2)
    dense = [torch.randn((n, k), device=device).to(dtype) for _ in range(dense_copies)]
    rows = []
    for m in ms:
        if time.monotonic() > end:
            break
        problem = Problem(name, n, k, m, x_dtype, x_dtype)
        x = torch.randn((m, k), device=device).to(dtype)
        rows.append(_measure(backend, problem, x, weights, dense, nbytes, cuda, tiny))
        if cuda:
            torch.cuda.empty_cache()
    return rows


def _measure(
    backend: Backend,
    problem: Problem,
    x: torch.Tensor,
    weights: list[TorchWeight],
    dense: list[torch.Tensor],
    nbytes: int,
    cuda: bool,
    tiny: bool,
) -> dict[str, Any]:
    limits = engine_of(x.device).limits
    guess = max(nbytes / 4e12, problem.flops / 4e14)
    arms: list[Arm] = []
    failed: dict[str, str] = {}

    def add(label: str, work: Any, copies: int, seconds: float) -> None:
        try:
            arms.append(Arm(label, work, copies, 1 if tiny else runs_for(seconds, copies), cuda))
        except (WarptileError, RuntimeError) as error:
            failed[label] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"

    for text in candidates(problem, limits, tiny):
        add(text, lambda i, t=text: matmul_torch(x, weights[i], tile=t), len(weights), guess)
    screened = interleaved(arms, 1 if tiny else SCREEN_ROUNDS)
    ranked = sorted((t.seconds, label) for label, t in screened.items() if not label.startswith(DEQUANTIZE))
    finalists = [label for _, label in ranked[:FINALISTS]]
    arms = [arm for arm in arms if arm.name in finalists or arm.name.startswith(DEQUANTIZE)]
    y = torch.empty((problem.m, problem.n), dtype=x.dtype, device=x.device)
    add("dense", lambda i: torch.mm(x, dense[i].t(), out=y), len(dense), max(guess, 2e-5))
    read = pure_read(backend)
    add("read", lambda i: read(weights[i].words), len(weights), nbytes / 4e12)
    final = interleaved(arms, 2 if tiny else FINAL_ROUNDS)
    won = min((t.seconds, label) for label, t in final.items() if label not in ("dense", "read"))[1]
    return {
        "format": problem.format,
        "n": problem.n,
        "k": problem.k,
        "m": problem.m,
        "x_dtype": problem.x_dtype,
        "bytes": nbytes,
        "copies": len(weights),
        "tile": won,
        "arms": {label: _plain(t) for label, t in final.items()},
        "screened": {label: t.seconds for label, t in screened.items()},
        "failed": failed,
    }


def _plain(t: Timing) -> dict[str, float]:
    return {"seconds": t.seconds, "low": t.low, "high": t.high, "samples": t.samples}


def table(rows: list[dict[str, Any]]) -> str:
    """A line a row: microseconds of the winner, dense, dequantize + dense and the read, and their ratios."""
    lines = ["format   n     k     m  | winner us [low, high]  dense  deq+dense  read | x dense  x deq  / read | tile"]
    for row in rows:
        arms = row["arms"]

        def us(label: str, arms: dict[str, Any] = arms) -> float:
            return min((t["seconds"] * 1e6 for name, t in arms.items() if name.startswith(label)), default=float("nan"))

        won = arms[row["tile"]]
        mine = won["seconds"] * 1e6
        others = us("dense"), us(DEQUANTIZE), us("read")
        lines.append(
            f"{row['format']:7s} {row['n']:5d} {row['k']:5d} {row['m']:5d} | {mine:7.1f} [{won['low'] * 1e6:.1f}, "
            f"{won['high'] * 1e6:.1f}] {others[0]:8.1f} {others[1]:8.1f} {others[2]:7.1f} | {others[0] / mine:5.2f} "
            f"{others[1] / mine:5.2f} {mine / others[2]:5.2f} | {row['x_dtype']} {row['tile'].removeprefix('triton.')}"
        )
    return "\n".join(lines)
