"""Every architecture on one card: packed models under CUDA graphs against the decoded model in fp32.

    python benchmarks/cuda_models.py OUT [ARCHITECTURE ...]

Small models with random weights, one process an architecture, side by side. Of each: the divergence of logits after a
prompt, after more of it behind what is cached, and at tokens one by one (the decoded model's), by the fused step under
CUDA graphs and by transformers' modules over the same packed weights; whether tokens decoded without the host between
them are those; and seconds to load twice. Results go to OUT/models.json; exit code 1 where one is wrong.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma3", "qwen3moe")
MOST_KL = 1e-3
"""Nats: operands are fp16 (2^-11 each) or bf16 (2^-8), through two layers of matmuls, in logits of some units."""

PROMPT, MORE, TOKENS = 37, 5, 24
KINDS = {"llama": "Q4_1", "qwen2": "Q4_0"}


def one(folder: Path, architecture: str) -> dict[str, Any]:
    import torch
    from support.tiny_models import write_tiny

    import warptile
    from warptile.model.runner import Runner
    from warptile.places import Places

    places = Places.under(folder / f"places-{architecture}")
    path = write_tiny(folder / f"{architecture}.gguf", architecture, kind=KINDS.get(architecture, "Q8_0"), tied=True)
    dense, _ = warptile.load(path, "cuda:0", dense=True, dtype=torch.float32)
    spent = []
    for _ in range(2):
        start = time.perf_counter()
        packed, _ = warptile.load(path, "cuda:0", places=places)
        torch.cuda.synchronize()
        spent.append(round(time.perf_counter() - start, 2))
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 256, (PROMPT + MORE,), generator=generator)
    arms = {
        "reference": Runner(dense, 128, graphs=False),
        "fused": Runner(packed, 128, chunks=(PROMPT,)),
        "modules": Runner(packed, 128, fused=False, graphs=False),
    }
    kl: dict[str, list[float]] = {"fused": [], "modules": []}

    def compare(work: Any) -> int:
        logits = {name: work(runner) for name, runner in arms.items()}
        p = logits["reference"].log_softmax(-1)
        for name, found in kl.items():
            q = logits[name].log_softmax(-1)
            found.append(float((p.exp() * (p - q)).sum()) if bool(torch.isfinite(q).all()) else float("inf"))
        return int(logits["reference"].argmax())

    # Twice: the second time the prompt is a graph.
    for _ in range(2):
        for runner in arms.values():
            runner.reset()
        compare(lambda runner: runner.prefill(ids[:PROMPT]))
    token = compare(lambda runner: runner.prefill(ids[PROMPT:]))
    runner = arms["fused"]
    runner.mark()
    first = token
    for _ in range(TOKENS):
        token = compare(lambda runner, token=token: runner.step(token))
    runner.restore()
    ahead = runner.decode(first, TOKENS).tolist()
    runner.restore()
    stepped, token = [], first
    for _ in range(TOKENS):
        token = int(runner.step(token).argmax())
        stepped.append(token)
    return {
        "dtype": str(packed.dtype),
        "graphs": runner.graphs,
        "kl": {name: max(found) for name, found in kl.items()},
        "same": ahead == stepped,
        "load_s": spent,
    }


def main() -> int:
    out = Path(sys.argv[1])
    if len(sys.argv) > 3 and sys.argv[2] == "--one":
        print(json.dumps(one(out, sys.argv[3])))
        return 0
    names = sys.argv[2:] or list(ARCHITECTURES)
    folder = Path("/tmp/warptile-models")
    folder.mkdir(exist_ok=True)
    started = {
        name: subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, str(folder), "--one", name],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    }
    results: dict[str, Any] = {}
    for name, process in started.items():
        text, error = process.communicate()
        results[name] = json.loads(text.splitlines()[-1]) if process.returncode == 0 else {"failed": error[-900:]}
        right = "kl" in results[name] and results[name]["kl"]["fused"] < MOST_KL and results[name]["same"]
        results[name]["right"] = right
        print(name, json.dumps(results[name]), flush=True)
        (out / "models.json").write_text(json.dumps(results, indent=1))
    return 0 if all(found["right"] for found in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
