"""Whole models on one card: packed against dense fp16 linears, prefill and decode, and file to first token.

    python benchmarks/model_gpu.py OUT [8b|8b-8|smollm2 ...]

Writes synthetic models of real shapes to /dev/shm, loads them with `warptile.load`, and runs the same model with
`nn.Linear` layers of the decoded weights interleaved with it, both under CUDA graphs. Each part is kept apart from the
failures of the others; results go to OUT/model.json as they come.
"""

from __future__ import annotations

import json
import statistics
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
from warptile.model.cuda import TorchGroup, dequantized
from warptile.model.modules import QuantEmbedding, QuantLinear
from warptile.model.runner import Runner
from warptile.places import Places
from warptile.runtimes.triton.ceilings import measure
from warptile.runtimes.triton.engine import engine_of
from warptile.search import rank_all
from warptile.trace.torch_trace import events

ROUNDS = 5
FORCED = ("triton.dequantize", "triton.gemm_wgmma")
"""Kernels raced against what the tables serve, where they are there."""
PROMPTS = (512, 2048)
GENERATED = 128
DEVICE = torch.device("cuda:0")


SHAPES = {
    "8b": LLAMA_8B,
    "8b-8": replace(LLAMA_8B, name="llama-8b-8-layers", layers=8),
    "smollm2": SMOLLM2,
}


class Results:
    def __init__(self, out: Path) -> None:
        self._path, self._start, self.found = out / "model.json", time.perf_counter(), {}

    def put(self, name: str, value: Any) -> None:
        self.found[name] = value
        self._path.write_text(json.dumps(self.found, indent=1))
        print(f"[{time.perf_counter() - self._start:6.1f}] {name}: {json.dumps(value)}", flush=True)

    def part(self, name: str, work: Callable[[], Any]) -> Any:
        try:
            value = work()
        except Exception as error:
            traceback.print_exc(limit=6)
            self.put(name, f"failed: {type(error).__name__}: {error}")
            return None
        return value


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
    ratios = [d / p for p, d in zip(times["packed"], times.get("dense", times["packed"]), strict=True)]
    return {
        "tokens_per_s": {name: round(tokens / value, 1) for name, value in middle.items()},
        "dense_over_packed": round(statistics.median(ratios), 3),
        "lowest": round(min(ratios), 3),
        "highest": round(max(ratios), 3),
    }


def forced_runner(packed: Any, kernel: str) -> tuple[Runner, Callable[[Problem], str | None]]:
    """A runner for the best-priced tile of one kernel from 256 tokens on, and the router that chooses it."""
    engine = engine_of(DEVICE)

    def router(problem: Problem) -> str | None:
        if problem.m < 256:
            return None
        ranking = rank_all(problem, engine.limits, [kernels.by_name(kernel)])
        return ranking.candidates[0].tile.text() if ranking.candidates else None

    return Runner(packed, 2560), router


def routed(router: Callable[[Problem], str | None], work: Callable[[], Any]) -> Callable[[], Any]:
    """`work` with the router asked first; captured graphs keep what was chosen when they were captured."""
    engine = engine_of(DEVICE)

    def run() -> None:
        engine.routers.insert(0, router)
        engine._routes.clear()
        try:
            work()
        finally:
            engine.routers.remove(router)
            engine._routes.clear()

    return run


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


def one(results: Results, shape: Shape, places: Places) -> list[tuple[str, Callable[[], Any]]]:
    """Measure a model; what may wait until the others' rates are taken is returned."""
    name = shape.name
    start = time.perf_counter()
    path = write_model(Path("/dev/shm"), shape)
    size = path.stat().st_size
    results.put(f"{name} file", {"bytes": size, "written_s": round(time.perf_counter() - start, 2)})
    buffer = bytearray(64 << 20)
    start = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    reading = time.perf_counter() - start
    start = time.perf_counter()
    packed, _ = warptile.load(path, "cuda:0", places=places)
    torch.cuda.synchronize()
    loaded = time.perf_counter() - start
    runner = Runner(packed, 2560)
    tokens = random_tokens(packed, 2048)
    first = seconds(lambda: int(runner.prefill(tokens[:512]).argmax()))
    bound = 1.5 * reading + 5
    results.put(
        f"{name} file to first token",
        {
            "read_s": round(reading, 2),
            "load_s": round(loaded, 2),
            "first_prompt_s": round(first, 2),
            "bound_s": round(bound, 2),
        },
    )
    ceilings = measure(engine_of(DEVICE).backend)
    read_s = weight_bytes(packed) / ceilings.read_bytes_per_s
    results.put(
        f"{name} floor of a token",
        {
            "bytes": weight_bytes(packed),
            "TB/s": round(ceilings.read_bytes_per_s / 1e12, 3),
            "ms": round(read_s * 1e3, 3),
        },
    )

    known = {kernel.name for kernel in kernels.for_runtime("triton")}

    def rates() -> None:
        arms = {"packed": decode(runner, GENERATED)}
        times = raced(arms)
        token = statistics.median(times["packed"]) / GENERATED
        results.put(f"{name} tg{GENERATED}", summary(times, GENERATED) | {"share_of_read": round(read_s / token, 3)})
        twin = dense_twin(packed)
        other = Runner(twin, 2560)
        with torch.no_grad():
            a, b = (m(tokens[None, :256].to(DEVICE)).logits[0].float() for m in (twin, packed))
        p, q = a.log_softmax(-1), b.log_softmax(-1)
        results.put(
            f"{name} packed against dense",
            {
                "kl": float((p.exp() * (p - q)).sum(-1).mean()),
                "top1": float((p.argmax(-1) == q.argmax(-1)).float().mean()),
            },
        )
        forced = {kernel: forced_runner(packed, kernel) for kernel in FORCED if kernel in known}
        for m in PROMPTS:
            arms = {"packed": prefill(runner, tokens[:m]), "dense": prefill(other, tokens[:m])}
            for kernel, (third, router) in forced.items():
                arms[kernel] = routed(router, prefill(third, tokens[:m]))
            results.put(f"{name} pp{m}", summary(raced(arms), m))
        arms = {"packed": decode(runner, GENERATED), "dense": decode(other, GENERATED)}
        results.put(f"{name} tg{GENERATED} beside dense", summary(raced(arms), GENERATED))

    def kernels_of() -> None:
        for phase, m in (("decode", 1), ("prefill", 512)):
            plain = Runner(packed, 2560)
            plain.replay = False
            plain.prefill(tokens[:m])
            plain.reset()
            found = [e for e in events(packed, lambda p=plain, m=m: p.prefill(tokens[:m])) if e.where == "device"]
            total = sum(e.seconds for e in found)
            by: dict[str, list[float]] = {}
            for e in found:
                entry = by.setdefault(("* " if e.matmul else "") + e.kernel[:60], [0, 0.0])
                entry[0] += 1
                entry[1] += e.seconds
            top = sorted(by.items(), key=lambda item: -item[1][1])[:14]
            results.put(
                f"{name} kernels of a {phase}",
                {
                    "ms": round(total * 1e3, 3),
                    "matmul_share": round(sum(e.seconds for e in found if e.matmul) / total, 3),
                    "launches": len(found),
                    "top": [[k, c, round(s * 1e6, 1)] for k, (c, s) in top],
                },
            )

    def compiled() -> None:
        start = time.perf_counter()
        fused = Runner(packed, 2560, compiled=True)
        decode(fused, 2)()
        took = time.perf_counter() - start
        times = raced({"packed": decode(fused, GENERATED)})
        token = statistics.median(times["packed"]) / GENERATED
        results.put(
            f"{name} tg{GENERATED} compiled",
            summary(times, GENERATED) | {"share_of_read": round(read_s / token, 3), "compiled_s": round(took, 1)},
        )

    def again() -> None:
        start = time.perf_counter()
        other, _ = warptile.load(path, "cuda:0", places=places)
        int(Runner(other, 2560).prefill(tokens[:512]).argmax())
        results.put(f"{name} file to first token again, kernels compiled", round(time.perf_counter() - start, 2))

    results.part(f"{name} again", again)
    results.part(f"{name} rates", rates)
    path.unlink()
    return [(f"{name} kernels", kernels_of), (f"{name} compiled", compiled)]


def main() -> None:
    out = Path(sys.argv[1])
    names = sys.argv[2:] or ["8b", "smollm2"]
    results = Results(out)
    places = Places.under("/tmp/warptile")
    later = []
    for name in names:
        later += results.part(name, lambda name=name: one(results, SHAPES[name], places)) or []
        torch.cuda.empty_cache()
    for name, work in later:
        results.part(name, work)


if __name__ == "__main__":
    main()
