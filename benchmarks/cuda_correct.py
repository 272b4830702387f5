"""Correctness on the card: every format, kernel and activation type on boundary shapes; the op's promises; the
proof."""

from __future__ import annotations

import time
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import torch
from cuda_cases import DRAWN_ROWS, drawn_weight

import warptile
from warptile import formats, kernels
from warptile.contracts import Problem, WarptileError
from warptile.kernels.triton.common import OPERANDS, arranged
from warptile.layouts.triton import pack_rows
from warptile.places import Places
from warptile.proof.proving import prove
from warptile.proof.references import ReferenceCache
from warptile.proof.sanitizer import TOOLS, Sanitized, sanitize
from warptile.runtimes.triton.engine import DTYPES, engine_of
from warptile.runtimes.triton.runtime import TritonRuntime
from warptile.torch_ops import TorchWeight, matmul_served, matmul_torch
from warptile.weights import QuantTensor

NMSE = {torch.float16: 3e-6, torch.bfloat16: 3e-4, torch.float32: 3e-6}
ROUNDING = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-11}
# (n, m, k in steps): one below, at and above row and column tiles; ragged everything.
CASES = ((1, 1, 1), (64, 16, 2), (65, 17, 3), (63, 15, 4), (129, 33, 5), (200, 64, 8), (257, 129, 4))
TINY_CASES = ((1, 1, 1), (17, 9, 3))


def tiles(problem: Problem, tiny: bool) -> list[str]:
    """A tile of each kernel, with and without split k, at both decodes."""
    step, operand = arranged(problem).step, OPERANDS[problem.x_dtype]
    n, m = (16, 8) if tiny else (64, 16)
    w = 1 if tiny else 4
    gemm = f"tile_n={n},tile_k={step},operand={operand},warps={w}"
    return [
        f"triton.gemm:{gemm},tile_m={m},split_k=2,stages=3",
        f"triton.gemm:{gemm},tile_m={m if tiny else 128},stages=2",
        f"triton.gemm:{gemm},tile_m={m if tiny else 64},split_k=4,stages=3,decode=plain",
        f"triton.gemv:tile_n=8,tile_m=2,steps=4,warps={w},stages=2",
        f"triton.dequantize:tile_n=16,warps={w},decode={'plain' if operand == 'tf32' else 'half'}",
        f"triton.dequantize:tile_n=16,warps={w},steps=1,decode=plain",
    ]


def check_formats(device: torch.device, tiny: bool, names: list[str], end: float) -> dict[str, Any]:
    """y against float64 for every format, type, tile and case; also that packing on the device equals the host's."""
    failures: list[str] = []
    worst: dict[str, float] = {}
    done = 0
    for name in names:
        if time.monotonic() > end:
            failures.append(f"out of time before {name}")
            break
        found = formats.by_name(name)
        for n, m, steps in TINY_CASES if tiny else CASES:
            k = arranged(Problem(name, n, max(256, found.block_size), m)).step * steps
            k = -(-k // found.block_size) * found.block_size
            w = drawn_weight(name, n, k, seed=n)
            packed = TorchWeight.pack(w, device)
            host, _ = pack_rows(found, w.blocks, k)
            if not np.array_equal(packed.words.cpu().numpy().view(np.uint32), host):
                failures.append(f"{name} n={n} k={k}: packing on the device differs from the host's")
            dense = torch.from_numpy(w.dequantize()).to(device).double()
            for dtype in DTYPES:
                generator = torch.Generator().manual_seed(m)
                x = torch.randn((m, k), generator=generator).to(dtype).to(device)
                want = x.double() @ dense.t()
                size = x.double().abs() @ dense.abs().t()
                problem = Problem(name, n, k, m, DTYPES[dtype], DTYPES[dtype])
                for text in tiles(problem, tiny):
                    message = _compare(x, packed, text, problem, want, size, worst)
                    done += 1
                    if message:
                        failures.append(message)
    return {"checked": done, "failures": failures, "worst_nmse": worst}


def _compare(
    x: torch.Tensor,
    w: TorchWeight,
    text: str,
    problem: Problem,
    want: torch.Tensor,
    size: torch.Tensor,
    worst: dict[str, float],
) -> str:
    kernel, tile = kernels.parse_tile(text)
    if kernel.broken_rules(tile, problem, engine_of(x.device).limits):
        return ""
    where = f"{problem.text()} {problem.x_dtype} {text}"
    try:
        y = matmul_torch(x, w, tile=text)
    except (WarptileError, RuntimeError) as error:
        return f"{where}: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
    got = y.double()
    if not bool(torch.isfinite(got).all()):
        return f"{where}: {int((~torch.isfinite(got)).sum())} elements are not finite"
    error = float(((got - want) ** 2).sum() / (want**2).sum().clamp_min(1e-300))
    kind = f"{kernel.name} {problem.x_dtype}"
    worst[kind] = max(worst.get(kind, 0.0), error)
    unit = ROUNDING[x.dtype]
    # Operands and output rounded, minimums cancelling: a wrong weight moves an element far beyond this.
    ratio = float(((got - want).abs() / (8 * unit * size + 2 * unit * want.abs() + 1e-6)).max())
    if (want.numel() >= 64 and error > NMSE[x.dtype]) or ratio > 1:
        return f"{where}: NMSE {error:.2e}, largest error {ratio:.2f} of its bound"
    return ""


def check_op(device: torch.device, tiny: bool, name: str = "Q4_K") -> dict[str, str]:
    """The op's promises, each "ok" or what is wrong."""
    n, k = (80, 512) if tiny else (4096, 4096)
    w = TorchWeight.pack(drawn_weight(name, n, k), device)
    dtype = torch.float16
    x = torch.randn((37 if not tiny else 5, k), generator=torch.Generator().manual_seed(1)).to(dtype).to(device)
    eager = matmul_torch(x, w)
    results: dict[str, str] = {}

    def note(what: str, good: bool, otherwise: str = "differs") -> None:
        results[what] = "ok" if good else otherwise

    note("M = 0", tuple(matmul_torch(x[:0], w).shape) == (0, n))
    wide = torch.zeros((len(x), 2 * k + 8), dtype=dtype, device=device)
    wide[:, 8 : k + 8] = x
    note("rows with a stride", torch.equal(matmul_torch(wide[:, 8 : k + 8], w), eager))
    odd = torch.zeros((len(x), 2 * k + 3), dtype=dtype, device=device)
    odd[:, 1 : k + 1] = x
    note("rows at odd addresses", torch.equal(matmul_torch(odd[:, 1 : k + 1], w), eager))
    note("columns apart", torch.equal(matmul_torch(x.t().contiguous().t(), w), eager))
    note("leading axes", torch.equal(matmul_torch(x[:4].reshape(2, 2, k), w).reshape(4, n), matmul_torch(x[:4], w)))
    backend = "aot_eager" if tiny else "inductor"
    compiled = torch.compile(lambda a: matmul_torch(a, w) + 1, fullgraph=True, backend=backend)
    note("torch.compile, fullgraph", torch.equal(compiled(x), eager + 1))
    rows = [1, 2, 3, 5, 8, 16, 17, 37][: 4 if tiny else 8]
    whole = matmul_torch(x, w, batch_invariant=True)
    same = all(torch.equal(matmul_torch(x[:m], w, batch_invariant=True), whole[:m]) for m in rows if m <= len(x))
    note("batch_invariant", same)
    if device.type == "cuda":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = matmul_torch(x, w)
            again = matmul_torch(x[:3], w)
        for _ in range(3):
            captured.zero_()
            graph.replay()
        torch.cuda.synchronize()
        note("CUDA graph", torch.equal(captured, eager) and torch.equal(again, matmul_torch(x[:3], w)))
        streams = [torch.cuda.Stream() for _ in range(3)]
        outputs = []
        torch.cuda.synchronize()
        for i in range(30):
            with torch.cuda.stream(streams[i % 3]):
                outputs.append(matmul_torch(x, w))
        torch.cuda.synchronize()
        note("three streams at once", all(torch.equal(y, eager) for y in outputs))
    return results


def check_large(device: torch.device) -> str:
    """N * K beyond 2^31: rows of the end and the middle against those of a small weight with the same blocks."""
    n, k, name = 140000, 16384, "Q4_0"
    w = drawn_weight(name, n, k)
    packed = TorchWeight.pack(w, device)
    x = torch.randn((16, k), generator=torch.Generator().manual_seed(2)).to(torch.float16).to(device)
    y = matmul_torch(x, packed, tile="triton.gemm:tile_n=64,tile_m=16,tile_k=128")
    few = TorchWeight.pack(QuantTensor.from_blocks(w.format, w.blocks[:DRAWN_ROWS], (DRAWN_ROWS, k)), device)
    small = matmul_torch(x, few, tile="triton.gemm:tile_n=64,tile_m=16,tile_k=128")
    rows = torch.arange(n, device=device) % DRAWN_ROWS
    wrong = int((y != small[:, rows]).sum())
    return "ok" if wrong == 0 else f"{wrong} elements of {y.numel()} differ"


def check_repeats(device: torch.device, times: int, cases: list[tuple[str, Problem]]) -> dict[str, str]:
    """Equal bytes over many runs, for each (tile, problem): what a hazard between matrix instructions would break."""
    results = {}
    for text, problem in cases:
        w = TorchWeight.pack(drawn_weight(problem.format, problem.n, problem.k), device)
        dtype = {v: k for k, v in DTYPES.items()}[problem.x_dtype]
        x = torch.randn((problem.m, problem.k), generator=torch.Generator().manual_seed(3)).to(dtype).to(device)
        first = matmul_torch(x, w, tile=text)
        different = torch.zeros((), dtype=torch.int64, device=device)
        for _ in range(times):
            different += (matmul_torch(x, w, tile=text).view(torch.int16) != first.view(torch.int16)).any()
        count = int(different)
        finite = bool(torch.isfinite(first).all())
        good = count == 0 and finite
        results[f"{problem.text()} {text}"] = "ok" if good else f"{count} of {times} runs differ, finite: {finite}"
    return results


def check_tune(device: torch.device, places: Places, seconds: float) -> dict[str, str]:
    """A tune of Llama 8B's matmuls in bf16 at M = 16, then one of them served from its table without a notice."""
    result = warptile.tune("llama-8b", f"cuda:{device.index or 0}", (16,), seconds, places, dtype="bf16")
    rows = [row for row in result.rows if row.problem.x_dtype == "bf16"]
    found = {f"{row.problem.text()} {row.tile} {row.ratio:.2f}": "ok" for row in rows}
    if not rows:
        return {"rows": f"none: {result.unserved}"}
    problem = rows[0].problem
    x = torch.randn((problem.m, problem.k), device=device).to(torch.bfloat16)
    w = drawn_weight(problem.format, problem.n, problem.k)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        y = matmul_served(x, w, places=places)
    served = engine_of(device).tile(problem)
    told = "; ".join(str(each.message) for each in said)
    found["served in bf16"] = "ok" if served == rows[0].tile and not told and bool(torch.isfinite(y).all()) else told
    return found


def int8_tile(problem: Problem, tiny: bool) -> str:
    """A tile of the kernel that quantizes activations, which only a bound made for that can judge."""
    n, m, w = (16, 8, 1) if tiny else (64, 64, 8)
    return f"triton.gemm_int8:tile_n={n},tile_m={m},tile_k={arranged(problem).step},warps={w},stages=2"


PROOF_TYPES = ("fp16", "bf16", "fp32")
SANITIZED = (0, 2, 3, 4)
"""Of `tiles`: gemm with split k in both decodes, gemv, dequantize."""


def proof_problem(name: str, dtype: str, tiny: bool) -> Problem:
    """The matmul that a proof is asked for."""
    n, k, m = (40, 512, 5) if tiny else (200, 2048, 70)
    return Problem(name, n, k, m, dtype, dtype)


def start_sanitizers(places: Places, names: list[str], seconds: float) -> dict[str, Future[list[Sanitized]]]:
    """compute-sanitizer's tools over a tile of each kernel and format, side by side, each in a process of its own."""
    cases = []
    for number, name in enumerate(names):
        problem = replace(proof_problem(name, PROOF_TYPES[number % 2], False), n=136, k=1024, m=33)
        cases += [
            (text, problem) for text in [int8_tile(problem, False), *(tiles(problem, False)[i] for i in SANITIZED)]
        ]
    pool = ThreadPoolExecutor(len(TOOLS))
    return {tool: pool.submit(sanitize, tool, "cuda:0", cases, places, 0, seconds) for tool in TOOLS}


def sanitized(running: dict[str, Future[list[Sanitized]]]) -> dict[str, str]:
    """What they found, "ok" where nothing."""
    results: dict[str, str] = {}
    for tool, future in running.items():
        for each in future.result():
            key = f"{tool} {each.problem.format} {each.problem.x_dtype} {each.tile}"
            results[key] = "ok" if each.good else each.text()
    return results


def check_proofs(runtime: TritonRuntime, tiny: bool, names: list[str], end: float) -> dict[str, str]:
    """The proof, level quick, of a tile of each kernel on every format, in every type."""
    results: dict[str, str] = {}
    cache = ReferenceCache(1 << 30)
    for name, dtype in product(names, PROOF_TYPES[: 1 if tiny else None]):
        problem = proof_problem(name, dtype, tiny)
        for text in [int8_tile(problem, tiny), *tiles(problem, tiny)]:
            if time.monotonic() > end:
                results["out of time before"] = f"{name} {dtype} {text}"
                return results
            kernel, tile = kernels.parse_tile(text)
            if kernel.broken_rules(tile, problem, runtime.limits()):
                continue
            try:
                verdict = prove(runtime, kernel, tile, problem, cache=cache)
                good = f"{verdict.failed}: {verdict.detail}"[:300] if not verdict.right else ""
                told = f"ok ({len(verdict.shapes)} shapes, {verdict.worst_ratio:.2f}) {verdict.detail}"
                results[f"{name} {dtype} {text}"] = good or told
            except WarptileError as error:
                results[f"{name} {dtype} {text}"] = f"{type(error).__name__}: {str(error)[:200]}"
    return results
