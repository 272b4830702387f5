"""SmolLM2's prefill and decode end to end on lavapipe, interleaved with the user's own llama-bench.

    python benchmarks/model_lavapipe.py MODEL LLAMA_BENCH STATE CACHE [ROUNDS]

Each round runs this project's pp128 and tg16, then llama-bench's, one repetition each (both warm up first); ratios are
taken within a round. STATE and CACHE hold the device's table (`warptile tune MODEL --m 1,128`).
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from warptile.bench.llama_bench import run_llama_bench
from warptile.bench.model import Tests, random_tokens
from warptile.model import load
from warptile.model.runner import Runner
from warptile.places import Places

TESTS = Tests(prompts=(128,), generated=(16,), repetitions=1)


def main() -> None:
    path, peer, state, cache = map(Path, sys.argv[1:5])
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 3
    model, _ = load(path, "vulkan:0", places=Places(cache, state))
    runner = Runner(model, 256)
    ratios: dict[str, list[float]] = {"pp128": [], "tg16": []}
    for _ in range(rounds):
        ours = {"pp128": prefill(runner), "tg16": decode(runner)}
        device, rows = run_llama_bench(peer, path, TESTS)
        for row in rows:
            ratios[row.test].append(ours[row.test] / row.mean)
            print(
                json.dumps({"test": row.test, "ours": ours[row.test], "llama.cpp": row.mean, "on": device}), flush=True
            )
    print(json.dumps({test: {"median": statistics.median(found), "all": found} for test, found in ratios.items()}))


def prefill(runner: Runner) -> float:
    tokens = random_tokens(runner.model, 128)
    return _rate(lambda: (runner.reset(), runner.prefill(tokens)), 128)


def decode(runner: Runner) -> float:
    return _rate(lambda: (runner.reset(), runner.decode(500, 16)), 16)


def _rate(work: object, tokens: int) -> float:
    import time

    assert callable(work)
    for _ in range(2):
        start = time.perf_counter()
        work()
        spent = time.perf_counter() - start
    return tokens / spent


if __name__ == "__main__":
    main()
