"""Grouped matmul on a card: `triton.gemm_id` against what torch offers, and against a pure read, in one run.

    python benchmarks/cuda_experts.py --out OUT.json --seconds 80      # on the card
    python benchmarks/cuda_experts.py --compile                        # fill Triton's cache for sm_90, on any machine

Shapes are Qwen3-30B-A3B's (128 experts, 8 taken, 2048 -> 768 and back with a weighted sum). Baselines, each in a CUDA
graph as every arm: `library`: dequantize all experts, sort by expert, gather rows, torch's grouped dense matmul, and
scatter (or weigh and sum) back; `bare library`: of these only dequantize and the grouped matmul; `loop`: for each
expert gather its rows (indices known beforehand), the dense kernel's matmul, scatter. For one token the floor is a read
of the words of the experts taken.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from cuda_cases import drawn_weight
from cuda_timing import Arm, interleaved

from warptile import devices, kernels
from warptile.contracts import Limits, Problem
from warptile.kernels.triton.common import arranged
from warptile.kernels.triton.program import Build, Program
from warptile.runtimes.triton.compiling import gpu_target, machine_code
from warptile.workloads.experts import draw_ids

EXPERTS, TOP_K = 128, 8
DIRECTIONS = {"up": (768, 2048, False), "down": (2048, 768, True)}
FORMATS = ("Q4_K", "Q6_K", "MXFP4")
TOKENS = (512, 4096, 1)
DISTINCT = 7
ID_SETS = 16

# (tile_n, steps, warps, stages) of rows alone; (tile_n, tile_m, tail, span, warps, stages) of sorted rows.
ALONE = {
    "up": ((16, 4, 4, 3), (16, 8, 8, 2), (32, 4, 4, 3)),
    "down": ((16, 1, 8, 3), (16, 1, 8, 2), (16, 2, 16, 2)),
}
FEW = ((64, 32, 0, 1, 4, 4), (64, 32, 0, 4, 4, 4), (128, 32, 0, 2, 4, 3), (64, 64, 16, 4, 4, 3))
MANY = ((64, 128, 32, 1, 4, 3), (64, 128, 32, 4, 4, 3), (128, 128, 32, 2, 8, 3), (64, 128, 32, 12, 4, 3))


def tiles(problem: Problem, direction: str, limits: Limits) -> list[str]:
    """Texts of the valid tiles that are raced on a problem."""
    step = arranged(problem).step
    if problem.m == 1:
        texts = [f"tile_n={n},tile_m=8,order=slots,steps={s},warps={w},stages={st}" for n, s, w, st in ALONE[direction]]
    else:
        texts = [
            f"tile_n={n},tile_m={m},tail={t},span={span},warps={w},stages={s}"
            for n, m, t, span, w, s in (FEW if problem.m <= 512 else MANY)
        ]
    found = []
    for text in texts:
        kernel, tile = kernels.parse_tile(f"triton.gemm_id:tile_k={step},{text}")
        broken = kernel.broken_rules(tile, problem, limits)
        if broken:
            print("left out", text, broken[0].text())
        else:
            found.append(tile.text())
    return found


def problem_of(name: str, direction: str, tokens: int, routing: str) -> Problem:
    n, k, down = DIRECTIONS[direction]
    return Problem(name, n, k, tokens, "fp16", "fp16", EXPERTS, TOP_K, routing=routing, x_slots=down, summed=down)


def programs(limits: Limits, formats: Sequence[str], all_tokens: Sequence[int]) -> dict[Program, str]:
    """Every program that will run, with a key that needs no compiler: a hash of its main function's build, so that both
    directions share it."""
    found = {}
    for name in formats:
        for direction in DIRECTIONS:
            for tokens in all_tokens:
                problem = problem_of(name, direction, tokens, "uniform")
                for text in tiles(problem, direction, limits):
                    kernel, tile = kernels.parse_tile(text)
                    source = kernel.source(tile, problem, limits)
                    program = Program.parse(source)
                    main = repr(program.builds[min(2, len(program.builds) - 1)])
                    found[program] = hashlib.sha256(main.encode()).hexdigest()
    return found


def compile_all(found: dict[Program, str], target: Any, threads: int) -> None:
    def one(each: tuple[Build, str]) -> None:
        try:
            machine_code(each[0], target, each[1], None)
        except Exception as error:
            print("not compiled:", str(error)[:200])

    wanted = dict.fromkeys((build, key) for program, key in found.items() for build in program.builds)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, wanted))


class Case:
    """One format and direction on the card: packed experts, and the same weights as one tall dense weight."""

    def __init__(self, name: str, direction: str, device: torch.device) -> None:
        from warptile.layouts.experts import expert_stride
        from warptile.torch_experts import TorchExperts
        from warptile.torch_ops import TorchWeight

        self.name, self.direction = name, direction
        self.n, self.k, self.down = DIRECTIONS[direction]
        drawn = [drawn_weight(name, self.n, self.k, seed=s) for s in range(DISTINCT)]
        few = [TorchWeight.pack(w, device) for w in drawn]
        self.stride = expert_stride(drawn[0].format, self.n, self.k, "quads")
        words = torch.zeros(EXPERTS * self.stride, dtype=torch.int32, device=device)
        for e in range(EXPERTS):
            own = few[e % DISTINCT].words
            words[e * self.stride :][: own.numel()] = own
        self.experts = TorchExperts(words, name, EXPERTS, self.n, self.k)
        self.each = [TorchWeight(words[e * self.stride :][: self.stride], name, self.n, self.k) for e in range(EXPERTS)]
        self.tall = TorchWeight.pack(drawn_weight(name, EXPERTS * self.n, self.k), device)
        self.dense = [torch.from_numpy(w.dequantize()).to(device) for w in drawn]


def reference(case: Case, x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
    """fp32 products in double, expert by expert."""
    tokens = ids.shape[0]
    out = torch.zeros((tokens, TOP_K, case.n), dtype=torch.float64, device=x.device)
    rows = x if x.dim() == 3 else x[:, None].expand(tokens, TOP_K, case.k)
    for e in range(EXPERTS):
        at = ids == e
        if bool(at.any()):
            out[at] = rows[at].double() @ case.dense[e % DISTINCT].double().T
    return out if weights is None else (out * weights[..., None].double()).sum(1)


def check(case: Case, device: torch.device, texts: Sequence[str]) -> dict[str, Any]:
    """NMSE of every tile on 77 tokens with two ids that name no expert; repeated runs equal to the bit."""
    from warptile.torch_experts import matmul_id

    found: dict[str, Any] = {}
    ids = torch.from_numpy(draw_ids("zipf:1", EXPERTS, 77, TOP_K, 5)).to(device)
    ids[3, 2], ids[70, 7] = -1, EXPERTS
    x = torch.randn((77, TOP_K, case.k) if case.down else (77, case.k), device=device).half()
    weights = torch.rand((77, TOP_K), device=device) if case.down else None
    want = reference(case, x, ids, weights)
    for text in texts:
        y = matmul_id(x, case.experts, ids, weights, tile=text)
        error = float(((y.double() - want) ** 2).sum() / (want**2).sum())
        same = all(torch.equal(y, matmul_id(x, case.experts, ids, weights, tile=text)) for _ in range(20))
        found[text] = {"nmse": error, "repeats": same}
        if not (error < 3e-6 and same):
            print("WRONG", case.name, case.direction, text, error, same)
    whole = matmul_id(x, case.experts, ids, weights, batch_invariant=True)
    parts = [slice(0, 1), slice(1, 20), slice(20, 77)]
    alone = [
        matmul_id(x[p], case.experts, ids[p], None if weights is None else weights[p], batch_invariant=True)
        for p in parts
    ]
    found["batch invariant"] = bool(torch.equal(torch.cat(alone), whole))
    return found


def baselines(
    case: Case, x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor | None
) -> dict[str, Callable[[int], Any]]:
    from warptile.runtimes.triton.engine import engine_of
    from warptile.torch_ops import matmul_torch

    device, tokens = x.device, ids.shape[0]
    engine = engine_of(device)
    rows_of = x.view(-1, case.k) if case.down else x
    share = 1 if case.down else TOP_K
    problem = Problem(case.name, EXPERTS * case.n, case.k, 1, "fp16", "fp16")
    prepared = engine.prepared(problem, "triton.dequantize:tile_n=64,warps=8,steps=4,stages=2,decode=half")
    nothing = torch.zeros(1, dtype=torch.int32, device=device).view(torch.uint32)
    wide = torch.empty((EXPERTS, case.n, case.k), dtype=torch.float16, device=device)
    planes = prepared.scalars[6:-1]

    def dequantized() -> torch.Tensor:
        prepared.launchers[0](prepared.grid, case.tall.words, wide, nothing, EXPERTS * case.n, case.k, *planes)
        return wide

    grouped = getattr(torch.nn.functional, "grouped_mm", None) or torch._grouped_mm
    # torch's grouped matmul takes bf16 alone on this card; the bits are fp16's, only the time counts.
    kind = torch.bfloat16
    flat = ids.reshape(-1).long()
    ranges = torch.arange(EXPERTS, device=device)

    def library(_: int) -> torch.Tensor:
        ordered, order = torch.sort(flat)
        ends = torch.searchsorted(ordered, ranges, right=True).to(torch.int32)
        picked = rows_of[order // share]
        sums = grouped(picked.view(kind), dequantized().view(kind).transpose(1, 2), offs=ends).view(torch.float16)
        y = torch.empty_like(sums)
        y[order] = sums
        if weights is None:
            return y
        return (y.view(tokens, TOP_K, case.n) * weights[..., None].half()).sum(1)

    ordered, order = torch.sort(flat)
    fixed_ends = torch.searchsorted(ordered, ranges, right=True).to(torch.int32)
    fixed_rows = rows_of[order // share].contiguous()

    def bare(_: int) -> torch.Tensor:
        return grouped(fixed_rows.view(kind), dequantized().view(kind).transpose(1, 2), offs=fixed_ends)

    slots = [(flat == e).nonzero().reshape(-1) for e in range(EXPERTS)]
    sources = [s // share for s in slots]
    y = torch.empty((tokens * TOP_K, case.n), dtype=torch.float16, device=device)

    def loop(_: int) -> torch.Tensor:
        for e in range(EXPERTS):
            if len(slots[e]):
                y[slots[e]] = matmul_torch(rows_of[sources[e]], case.each[e], tile=dense_tile(len(slots[e])))
        if weights is None:
            return y
        return (y.view(tokens, TOP_K, case.n) * weights[..., None].half()).sum(1)

    step = arranged(problem).step

    def dense_tile(m: int) -> str:
        tile_m = next((t for t in (16, 32, 64, 128) if t >= m), 128)
        split = 4 if m <= 64 and case.k >= 4 * step * 2 else 1
        return f"triton.gemm:tile_n=64,tile_m={tile_m},tile_k={step},split_k={split},warps=4,stages=3"

    return {"library": library, "bare library": bare, "loop": loop}


def measure(case: Case, device: torch.device, tokens: int, routing: str, rounds: int) -> dict[str, Any]:
    """Screen the tiles, then time the two fastest against the baselines (or, for a token, a read), interleaved."""
    from warptile.runtimes.triton.backends import backend_of
    from warptile.runtimes.triton.ceilings import pure_read
    from warptile.torch_experts import matmul_id

    problem = problem_of(case.name, case.direction, tokens, routing)
    backend = backend_of(0)
    sets = ID_SETS if tokens == 1 else 2
    if tokens == 1:
        order = torch.randperm(EXPERTS, device=device).to(torch.int32)
        ids = [order[i * TOP_K : (i + 1) * TOP_K][None].contiguous() for i in range(EXPERTS // TOP_K)]
    else:
        ids = [torch.from_numpy(draw_ids(routing, EXPERTS, tokens, TOP_K, 11 + i)).to(device) for i in range(sets)]
    x = torch.randn((tokens, TOP_K, case.k) if case.down else (tokens, case.k), device=device).half()
    weights = torch.rand((tokens, TOP_K), device=device) if case.down else None
    arms, failed = [], {}
    runs = 2 * sets if tokens == 1 else 2

    def add(label: str, work: Callable[[int], Any], runs: int = runs) -> None:
        try:
            arms.append(Arm(label, work, sets, runs, True))
        except Exception as error:
            failed[label] = f"{type(error).__name__}: {str(error)[:300]}"
            torch.cuda.synchronize()

    for text in tiles(problem, case.direction, backend.limits()):
        add(text, lambda i, t=text: matmul_id(x, case.experts, ids[i], weights, tile=t))
    screened = {name: t.seconds for name, t in interleaved(arms, 3).items()}
    best = sorted(screened, key=lambda name: screened[name])[:2]
    arms[:] = [a for a in arms if a.name in best]
    if tokens == 1:
        read, words = pure_read(backend), TOP_K * case.stride
        add("read", lambda i: read(case.experts.words[i * words :][:words]))
    else:
        for label, work in baselines(case, x, ids[0], weights).items():
            add(label, work, 1)
    final = interleaved(arms, rounds)
    return {
        "format": case.name,
        "direction": case.direction,
        "tokens": tokens,
        "routing": routing,
        "bytes": 4 * TOP_K * case.stride if tokens == 1 else 4 * EXPERTS * case.stride,
        "arms": {name: [t.seconds, t.low, t.high] for name, t in final.items()},
        "screened": screened,
        "failed": failed,
    }


def line(row: dict[str, Any]) -> str:
    """One case in a line: the winner in us with its interval, the baselines in us and how many times longer."""
    arms = row["arms"]
    mine = min((v[0], name) for name, v in arms.items() if name.startswith("triton"))[1]
    seconds, low, high = (1e6 * v for v in arms[mine])
    others = "  ".join(
        f"{name} {v[0] * 1e6:.1f} ({v[0] * 1e6 / seconds:.2f}x)" for name, v in arms.items() if "triton" not in name
    )
    head = f"{row['format']:6s} {row['direction']:4s} T={row['tokens']:<5d}{row['routing']:8s}"
    return f"{head} {seconds:7.1f} us [{low:.1f}, {high:.1f}]  {others}  {mine.removeprefix('triton.gemm_id:')}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--tokens", default=",".join(map(str, TOKENS)))
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    formats, all_tokens = options.formats.split(","), [int(t) for t in options.tokens.split(",")]
    if options.compile:
        compile_all(programs(devices.compile_only("h200"), formats, all_tokens), gpu_target("cuda", "sm_90"), 2)
        return
    from warptile.runtimes.triton.backends import backend_of

    begin = time.monotonic()
    end = begin + options.seconds
    device = torch.device("cuda", 0)
    backend = backend_of(0)
    found = programs(backend.limits(), formats, all_tokens)
    backend.keys.update(found)
    compile_all(found, backend.target, options.threads)
    print(f"compiled {len(found)} programs in {time.monotonic() - begin:.1f} s", flush=True)
    result: dict[str, Any] = {"rows": [], "checks": {}}
    for name in formats:
        for direction in DIRECTIONS:
            if time.monotonic() > end:
                print("out of time before", name, direction)
                break
            try:
                case = Case(name, direction, device)
                texts = [
                    t
                    for m in all_tokens
                    for t in tiles(problem_of(name, direction, m, ""), direction, backend.limits())
                ]
                result["checks"][f"{name} {direction}"] = check(case, device, texts)
                for tokens in all_tokens:
                    for routing in ("uniform", "zipf:1") if tokens == 512 and name == "Q4_K" else ("uniform",):
                        row = measure(case, device, tokens, routing, options.rounds)
                        result["rows"].append(row)
                        print(line(row), row["failed"] or "", f"{time.monotonic() - begin:.0f} s", flush=True)
            except Exception:
                traceback.print_exc()
            if options.out:
                options.out.write_text(json.dumps(result))
    print({c: v["batch invariant"] for c, v in result["checks"].items()})


if __name__ == "__main__":
    main()
