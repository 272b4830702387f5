"""SmolLM2's prefill and decode end to end on lavapipe, interleaved with the user's own llama-bench.

    python benchmarks/model_lavapipe.py MODEL LLAMA_BENCH STATE CACHE [ROUNDS]

Each round runs this project's pp128, then llama-bench's, one repetition each (both warm up first), then this project's
again; a round's ratio takes the mean of the two. STATE and CACHE hold
the device's table (`warptile tune MODEL --m 1,128`).
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

import torch

from warptile.bench.llama_bench import run_llama_bench
from warptile.bench.model import Tests, random_tokens
from warptile.model import load
from warptile.model.runner import Runner
from warptile.places import Places

TESTS = Tests(prompts=(128,), generated=(), repetitions=1)


def main() -> None:
    path, peer, state, cache = map(Path, sys.argv[1:5])
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 3
    model, _ = load(path, "vulkan:0", places=Places(cache, state))
    runner, tokens = Runner(model, 256), random_tokens(model, 128)
    prefill(runner, tokens)
    ratios = []
    for _ in range(rounds):
        before = prefill(runner, tokens)
        device, rows = run_llama_bench(peer, path, TESTS)
        after = prefill(runner, tokens)
        ratios.append((before + after) / 2 / rows[0].mean)
        print(
            json.dumps({"ours": [before, after], "llama.cpp": rows[0].mean, "on": device, "ratio": ratios[-1]}),
            flush=True,
        )
    print(json.dumps({"median": statistics.median(ratios), "all": ratios}))


def prefill(runner: Runner, tokens: torch.Tensor) -> float:
    """Tokens per second of one prefill."""
    runner.reset()
    start = time.perf_counter()
    runner.prefill(tokens)
    return len(tokens) / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
