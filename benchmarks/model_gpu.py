"""Whole models on one card: packed against dense fp16 linears, prefill and decode, and file to first token.

    python benchmarks/model_gpu.py OUT [--seconds S] [--tune S] [--parts NAME,..] [8b|8b-8|smollm2 ...]

Writes synthetic models of real shapes to /dev/shm, loads them with `warptile.load`, and runs the same model with
`nn.Linear` layers of the decoded weights interleaved with it, under CUDA graphs: dense with the same step between its
matmuls ("dense"), and as transformers has it ("dense plain"). File to first token is taken in processes of their own:
with nothing compiled, then with what the first one compiled. `--tune`: seconds for tuning the joined shapes of Llama 3
8B at one token before. Each part is kept apart from the failures of the others; no part begins when `--seconds` are
over; results go to OUT/model.json as they come.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent))
from model_parts.synthetic import LLAMA_8B, SMOLLM2, Shape, write_model

import warptile
from warptile import kernels
from warptile.bench.model import random_tokens
from warptile.contracts import Problem
from warptile.gguf import open_gguf
from warptile.kernels.triton.program import Program
from warptile.layouts.triton.repack import repack
from warptile.model.cuda import TorchGroup, dequantized
from warptile.model.modules import QuantEmbedding, QuantLinear
from warptile.model.runner import Runner
from warptile.places import Places
from warptile.runtimes.triton.ceilings import measure
from warptile.runtimes.triton.engine import engine_of
from warptile.torch_ops import TorchWeight, matmul_torch
from warptile.trace.torch_trace import events
from warptile.weights import QuantTensor

PARTS = "packing,generating,best_tiles,first,profile,agreeing,routes,beside_dense,deeper"
ROUNDS = 5
PROMPTS = (512, 2048)
GENERATED = 128
ROOM = 2560
DEVICE = torch.device("cuda:0")
SHAPES = {
    "8b": LLAMA_8B,
    "8b-8": replace(LLAMA_8B, name="llama-8b-8-layers", layers=8),
    "smollm2": SMOLLM2,
}


class Results:
    """What was found, written and printed as it comes."""

    def __init__(self, out: Path, seconds: float) -> None:
        self._path, self._start, self._seconds = out / "model.json", time.perf_counter(), seconds
        self.found: dict[str, Any] = {}

    def put(self, name: str, value: Any) -> None:
        self.found[name] = value
        self._path.write_text(json.dumps(self.found, indent=1))
        print(f"[{time.perf_counter() - self._start:6.1f}] {name}: {json.dumps(value)}", flush=True)

    def part(self, name: str, work: Callable[[], Any]) -> Any:
        if time.perf_counter() - self._start > self._seconds:
            print(f"left out: {name}")
            return None
        try:
            return work()
        except Exception as error:
            traceback.print_exc(limit=6)
            self.put(name, f"failed: {type(error).__name__}: {error}")
            return None


def dense_twin(packed: Any) -> Any:
    """The same model with every packed weight decoded to fp16."""
    torch.set_default_dtype(torch.float16)
    with torch.device("meta"):
        twin = type(packed)(packed.config)
    torch.set_default_dtype(torch.float32)
    twin = twin.to_empty(device=DEVICE)
    for own, theirs in ((twin.named_parameters, packed.get_parameter), (twin.named_buffers, packed.get_buffer)):
        for name, tensor in own():
            try:
                tensor.data.copy_(theirs(name))
            except AttributeError:
                continue
    for path, module in packed.named_modules():
        if isinstance(module, QuantLinear | QuantEmbedding):
            target = twin.get_submodule(path)
            target.weight = nn.Parameter(decoded(module), requires_grad=False)
    return twin.eval()


def decoded(module: Any) -> torch.Tensor:
    group = module.group
    assert isinstance(group, TorchGroup)
    index = getattr(module, "index", 0)
    for weight, (*_, sizes) in zip(group.weights(), group.parts, strict=True):
        if index < len(sizes):
            start = sum(sizes[:index])
            return dequantized(weight, torch.float16)[start : start + sizes[index]].clone()
        index -= len(sizes)
    raise AssertionError


def seconds(work: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def raced(arms: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in arms}
    for each in range(ROUNDS + 2):
        for name, work in arms.items():
            spent = seconds(work)
            if each >= 2:
                found[name].append(spent)
    return found


def summary(times: dict[str, list[float]], tokens: int) -> dict[str, Any]:
    middle = {name: statistics.median(values) for name, values in times.items()}
    found: dict[str, Any] = {"tokens_per_s": {name: round(tokens / value, 1) for name, value in middle.items()}}
    for other in (name for name in times if name.startswith("dense")):
        ratios = sorted(d / p for p, d in zip(times["packed"], times[other], strict=True))
        found[f"packed over {other}"] = [round(r, 3) for r in (statistics.median(ratios), ratios[0], ratios[-1])]
    return found


def prefill(runner: Runner, tokens: torch.Tensor) -> Callable[[], Any]:
    def work() -> None:
        runner.reset()
        runner.prefill(tokens)

    return work


def decode(runner: Runner, count: int) -> Callable[[], Any]:
    def work() -> None:
        runner.reset()
        runner.decode(7, count)

    return work


def weight_bytes(packed: Any) -> int:
    """Bytes of packed words that one decoded token reads: everything but a separate embedding."""
    tied = packed.model.embed_tokens.group is packed.lm_head.group
    skip = set() if tied else {id(packed.model.embed_tokens.group)}
    groups = {id(m.group): m.group for m in packed.modules() if isinstance(m, QuantLinear | QuantEmbedding)}
    return sum(b.nbytes for key, group in groups.items() if key not in skip for b in group.buffers())


def read_seconds(path: Path) -> float:
    """Reading the file from the page cache, by 64 MB."""
    buffer = bytearray(64 << 20)
    start = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.perf_counter() - start


def first_token(path: Path, places: Places) -> tuple[Any, Any]:
    """(the model and its runner, seconds of each phase from the file to the token after a prompt of 512)."""
    start = time.perf_counter()
    packed, _ = warptile.load(path, "cuda:0", places=places)
    torch.cuda.synchronize()
    after_load = time.perf_counter()
    packed.hf_quantizer.plan.backend.wait()
    waited = time.perf_counter() - after_load
    runner = Runner(packed, ROOM)
    int(runner.prefill(random_tokens(packed, 512)).argmax())
    end = time.perf_counter()
    return (packed, runner), {
        "load_s": round(after_load - start, 2),
        "waited_for_compilers_s": round(waited, 2),
        "prompt_s": round(end - after_load - waited, 2),
        "total_s": round(end - start, 2),
    }


def first_token_alone(path: Path, places: Places, compiled: Path) -> Any:
    """`first_token` in a process of its own, with what lies in the folder `compiled`; whole_s: torch's import too."""
    start = time.perf_counter()
    words = [sys.executable, "-W", "ignore", __file__, str(places.state.parent), "--first-token", str(path)]
    done = subprocess.run(
        words, env=os.environ | {"TRITON_CACHE_DIR": str(compiled)}, capture_output=True, text=True, check=False
    )
    whole = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(done.stderr[-400:])
    return json.loads(done.stdout.splitlines()[-1]) | {"whole_s": round(whole, 2)}


TRIED = (
    "tile_n=16,tile_m=1,split_k=1,warps=4,row_warps=1,steps=2,ahead=1,pdl=1,registers=72",
    "tile_n=16,tile_m=1,split_k=1,warps=4,row_warps=1,steps=2,ahead=1,pdl=1,registers=80",
    "tile_n=32,tile_m=1,split_k=1,warps=4,row_warps=2,steps=2,ahead=2,pdl=1,registers=128",
    "tile_n=32,tile_m=1,split_k=2,warps=4,row_warps=2,steps=2,ahead=2,pdl=1,registers=128",
    "tile_n=32,tile_m=1,split_k=4,warps=4,row_warps=2,steps=2,ahead=2,pdl=1,registers=128",
    "tile_n=64,tile_m=1,split_k=8,warps=4,row_warps=4,steps=2,ahead=2,pdl=1,registers=128",
    "tile_n=64,tile_m=1,split_k=1,warps=8,row_warps=4,steps=2,ahead=2,pdl=1,registers=128",
    "tile_n=16,tile_m=1,split_k=4,warps=2,row_warps=1,steps=2,ahead=2,pdl=1,registers=128",
    "tile_n=16,tile_m=1,split_k=1,warps=8,row_warps=1,steps=2,ahead=2,pdl=1,registers=128",
    "tile_n=16,tile_m=1,split_k=1,warps=8,row_warps=1,steps=1,ahead=2,pdl=1,registers=96",
    "tile_n=16,tile_m=1,split_k=2,warps=4,row_warps=1,steps=1,ahead=2,pdl=1,registers=96",
    "tile_n=16,tile_m=1,split_k=1,warps=4,row_warps=1,steps=1,ahead=2,pdl=1,registers=96",
    "tile_n=64,tile_m=8,split_k=8,warps=4,row_warps=4,steps=2,ahead=2,pdl=1,registers=128,direct=1",
    "tile_n=32,tile_m=8,split_k=4,warps=4,row_warps=2,steps=1,ahead=2,pdl=1,registers=128,direct=1",
)
"""Tiles of `triton.gemv_mma` that were among the fastest of some matrix in `cuda_few_rows.py`."""


def fastest_tiles(packed: Any) -> dict[str, tuple[Problem, list[tuple[str, float]]]]:
    """Of each packed matrix at one token: (the problem, [(tile, us)], the fastest first). All weights of the model that
    have the matrix's shape are read one after another under a CUDA graph."""
    engine = engine_of(DEVICE)
    weights: dict[Problem, list[TorchWeight]] = {}
    for group in {id(m.group): m.group for m in packed.modules() if isinstance(m, QuantLinear)}.values():
        for weight in group.weights():
            weights.setdefault(Problem(weight.format, weight.n, weight.k, 1, "fp16", "fp16"), []).append(weight)
    wanted: dict[Problem, list[str]] = {}
    programs = {}
    for problem in weights:
        best = [engine.tile(problem)]
        for words in TRIED:
            kernel, tile = kernels.parse_tile(f"triton.gemv_mma:{words}")
            if not kernel.broken_rules(tile, problem, engine.limits):
                best.append(tile.text())
        wanted[problem] = list(dict.fromkeys(best))
        for text in wanted[problem]:
            kernel, tile = kernels.parse_tile(text)
            source = kernel.source(tile, problem, engine.limits)
            programs.setdefault(source.text, Program.parse(source))
    engine.backend.ahead(list(programs.values()), None)
    found = {}
    for problem, own in weights.items():
        x = torch.randn(1, problem.k, device=DEVICE, dtype=torch.float16)
        graphs = {}
        for text in wanted[problem]:
            try:
                matmul_torch(x, own[0], tile=text)
                graphs[text] = captured(lambda own=own, text=text, x=x: [matmul_torch(x, w, tile=text) for w in own])
            except Exception as error:
                print(f"{problem.text()} {text}: {error}"[:200])
        times: dict[str, list[float]] = {text: [] for text in graphs}
        for _ in range(5):
            for text, graph in graphs.items():
                times[text].append(seconds(graph.replay) / len(own))
        ranked = sorted((statistics.median(values[1:]) * 1e6, text) for text, values in times.items())
        found[problem.text()] = problem, [(text, round(us, 2)) for us, text in ranked]
    return found


def captured(work: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def kernel_table(packed: Any, work: Callable[[], Any]) -> dict[str, Any]:
    found = [e for e in events(packed, work) if e.where == "device"]
    total = sum(e.seconds for e in found)
    by: dict[str, list[float]] = {}
    for e in found:
        label = ("* " if e.matmul else "") + e.kernel[:50] + " " + e.layer.rpartition(".")[2]
        entry = by.setdefault(label, [0, 0.0])
        entry[0] += 1
        entry[1] += e.seconds
    top = sorted(by.items(), key=lambda item: -item[1][1])[:20]
    return {
        "ms": round(total * 1e3, 3),
        "matmul_share": round(sum(e.seconds for e in found if e.matmul) / total, 3),
        "launches": len(found),
        "top": [[k, c, round(s * 1e6, 1)] for k, (c, s) in top],
    }


def one(results: Results, shape: Shape, places: Places, wanted: set[str]) -> None:
    """Measure a model."""
    name = shape.name
    start = time.perf_counter()
    path = write_model(Path("/dev/shm"), shape)
    results.put(f"{name} file", {"bytes": path.stat().st_size, "s": round(time.perf_counter() - start, 2)})
    reading = read_seconds(path)
    bound = {"read_s": round(reading, 2), "bound_s": round(1.5 * reading + 5, 2)}
    (packed, runner), phases = first_token(path, places)
    results.put(f"{name} file to first token, this process", phases | bound)
    ceilings = measure(engine_of(DEVICE).backend)
    read_s = weight_bytes(packed) / ceilings.read_bytes_per_s
    results.put(
        f"{name} floor of a token",
        {"bytes": weight_bytes(packed), "TB/s": ceilings.read_bytes_per_s / 1e12, "ms": round(read_s * 1e3, 3)},
    )
    tokens = random_tokens(packed, 2048)
    dense: list[Any] = []

    def generating() -> None:
        times = raced({"packed": decode(runner, GENERATED)})
        token = statistics.median(times["packed"]) / GENERATED
        results.put(f"{name} tg{GENERATED}", summary(times, GENERATED) | {"share_of_read": round(read_s / token, 3)})

    def best_tiles() -> None:
        """One token by the fastest of some tiles for each matrix, timed on the model's own weights."""
        engine = engine_of(DEVICE)
        chosen = fastest_tiles(packed)
        results.put(f"{name} tiles raced at m=1", {text: ranked[:4] for text, (_, ranked) in chosen.items()})
        routes = {problem: ranked[0][0] for problem, ranked in chosen.values()}
        engine.routers.insert(0, routes.get)
        engine._routes.clear()
        best = Runner(packed, ROOM)
        times = raced({"price": decode(runner, GENERATED), "packed": decode(best, GENERATED)})
        token = statistics.median(times["packed"]) / GENERATED
        results.put(
            f"{name} tg{GENERATED} by raced tiles",
            summary(times, GENERATED) | {"share_of_read": round(read_s / token, 3)},
        )
        best.reset()
        best.prefill(tokens[:512])
        best.mark()
        spent = [seconds(lambda: (best.restore(), best.decode(7, GENERATED))) for _ in range(4)]
        token = statistics.median(spent[1:]) / GENERATED
        results.put(f"{name} tg{GENERATED} @ d512 by raced tiles", {"share_of_read": round(read_s / token, 3)})
        runner.replay = False
        runner.reset()
        runner.prefill(tokens[:64])
        results.put(
            f"{name} kernels of a decode by raced tiles", kernel_table(packed, lambda: runner.prefill(tokens[:1]))
        )
        runner.replay = True

    def packing() -> None:
        """File blocks to quad words on the device: bytes read and written a second, launches one after another."""
        file, rates = open_gguf(path), {}
        for tensor in ("blk.0.ffn_up.weight", "blk.0.ffn_down.weight", "token_embd.weight"):
            w = QuantTensor.from_gguf(path, tensor)
            source = torch.from_numpy(w.blocks.copy().reshape(-1)).to(DEVICE)
            repack(w.format, source, *w.shape)
            spent = seconds(lambda w=w, source=source: [repack(w.format, source, *w.shape) for _ in range(10)]) / 10
            copied = torch.empty_like(source)
            plain = seconds(lambda source=source, copied=copied: [copied.copy_(source) for _ in range(10)]) / 10
            moved = 2 * file.tensor(tensor).nbytes / 1e9
            rates[f"{w.format.name} {list(w.shape)}"] = [round(moved / spent, 1), round(moved / plain, 1)]
        results.put(f"{name} packing, and a copy, GB/s", rates)

    def agreeing() -> None:
        plain = Runner(packed, ROOM, fused=False, graphs=False)
        runner.reset()
        apart = []
        for count in (512, 1, 1):
            ids = tokens[:count]
            a, b = (r.prefill(ids) for r in (plain, runner)) if count > 1 else (r.step(7) for r in (plain, runner))
            p, q = a.log_softmax(-1), b.log_softmax(-1)
            apart.append([float((p.exp() * (p - q)).sum()), float((a - b).abs().max())])
        results.put(f"{name} fused step against transformers' modules: KL, largest difference of a logit", apart)

    def profile() -> None:
        for phase, m in (("decode", 1), ("prefill", 512)):
            runner.replay = False
            runner.reset()
            runner.prefill(tokens[:m])
            results.put(f"{name} kernels of a {phase}", kernel_table(packed, lambda m=m: runner.prefill(tokens[:m])))
            runner.replay = True

    def routes() -> None:
        engine = engine_of(DEVICE)
        results.put(f"{name} tiles", {p.text(): tile for p, tile in engine._routes.items()})

    def beside_dense() -> None:
        twin = dense_twin(packed)
        dense.append(twin)
        arms = {"packed": runner, "dense": Runner(twin, ROOM, fused=True), "dense plain": Runner(twin, ROOM)}
        for m in PROMPTS:
            times = raced({arm: prefill(each, tokens[:m]) for arm, each in arms.items()})
            results.put(f"{name} pp{m}", summary(times, m))
        times = raced({arm: decode(each, GENERATED) for arm, each in arms.items()})
        results.put(f"{name} tg{GENERATED} beside dense", summary(times, GENERATED))

    def deeper() -> None:
        runner.reset()
        runner.prefill(tokens[:512])
        runner.mark()

        def work() -> None:
            runner.restore()
            runner.decode(7, GENERATED)

        times = raced({"packed": work})
        token = statistics.median(times["packed"]) / GENERATED
        results.put(
            f"{name} tg{GENERATED} @ d512", summary(times, GENERATED) | {"share_of_read": round(read_s / token, 3)}
        )

    def first() -> None:
        compiled = places.state.parent / f"compiled-{name}"
        for state in ("nothing compiled", "kernels compiled"):
            results.put(f"{name} file to first token, {state}", first_token_alone(path, places, compiled) | bound)

    for part in (packing, generating, best_tiles, first, profile, agreeing, routes, beside_dense, deeper):
        if part.__name__ in wanted:
            results.part(f"{name} {part.__name__}", part)
    path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="*", default=["8b", "smollm2"])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--tune", type=float, default=0)
    parser.add_argument(
        "--parts", default="packing,generating,best_tiles,first,profile,agreeing,routes,beside_dense,deeper"
    )
    parser.add_argument("--first-token", type=Path)
    given = parser.parse_args()
    if given.first_token is not None:
        print(json.dumps(first_token(given.first_token, Places.under(given.out))[1]))
        return
    results = Results(given.out, given.seconds)
    places = Places.under("/tmp/warptile")

    def tuning() -> None:
        found = warptile.tune("llama-8b-joined", "cuda:0", (1,), given.tune, places)
        kept = {
            f"{row['format']} n={row['n']} k={row['k']} m={p['m']}": [row["tile"], p["seconds"], p["outcome"]]
            for row in json.loads(found.table.read_text())["rows"]
            for p in row["points"]
        }
        results.put("tuned", {"tried": found.tried, "rejected": found.rejected, "table": kept})

    if given.tune:
        results.part("tune", tuning)
    for name in given.models:
        results.part(name, lambda name=name: one(results, SHAPES[name], places, set(given.parts.split(","))))
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
