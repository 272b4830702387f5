"""The user's own llama-bench on the same file, for rows side by side."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path

from warptile.bench.model import RateRow, Tests
from warptile.contracts import UnusableInput
from warptile.gguf.escape import printable, shown

LIMIT_SECONDS = 3600.0


def run_llama_bench(program: Path, model: Path, tests: Tests) -> tuple[str, tuple[RateRow, ...]]:
    """(what it says it ran on, its rows) for `PROGRAM -m MODEL -p .. -n .. -d .. -r .. -o json`.

    Raises UnusableInput, with the program's last line, where it cannot be run, fails, or prints something else.
    """
    words = [str(program), "-m", str(model), "-r", str(tests.repetitions), "-o", "json"]
    for option, values in (("-p", tests.prompts), ("-n", tests.generated), ("-d", tests.depths)):
        words += [option, ",".join(map(str, values or (0,)))]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=LIMIT_SECONDS, check=False
        )
    except OSError as error:
        raise UnusableInput(f"{shown(program)}: cannot be run: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise UnusableInput(f"{shown(program)}: not done after {LIMIT_SECONDS:.0f} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["nothing on stderr"])[-1]
        raise UnusableInput(f"{shown(program)}: exit code {done.returncode}: {printable(last)}")
    return read_llama_bench(done.stdout, shown(program))


def read_llama_bench(text: str, where: str) -> tuple[str, tuple[RateRow, ...]]:
    """(backend and device, rows) of llama-bench's JSON. Raises UnusableInput, naming `where`, for anything else."""
    try:
        found = json.loads(text)
        rows = tuple(_row(each) for each in found)
        first = found[0]
        device = first.get("gpu_info") or first.get("cpu_info") or "unknown device"
        return f"{first.get('backends', 'llama.cpp')}, {device}", rows
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise UnusableInput(f"{where}: its output is not llama-bench's JSON ({type(error).__name__})") from None


def _row(each: dict[str, object]) -> RateRow:
    prompt, generated = int(str(each["n_prompt"])), int(str(each["n_gen"]))
    samples = each["samples_ts"]
    if not isinstance(samples, list) or (prompt and generated):
        raise ValueError("a row of another kind")
    test = f"pp{prompt}" if prompt else f"tg{generated}"
    rates = tuple(float(s) for s in samples)
    if not rates or not all(math.isfinite(rate) and rate > 0 for rate in rates):
        raise ValueError("a row without rates")
    return RateRow(test, int(str(each.get("n_depth", 0))), rates)
