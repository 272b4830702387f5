"""The proof under NVIDIA's compute-sanitizer: every memory access of a kernel checked by the tool, not by guard bands.

A tool runs one child process that proves all tiles one after another ("quick"); what the tool prints between two of the
child's markers is about the tile between them. torch keeps no memory for itself in that process, so that the end of a
buffer is the end of an allocation.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from warptile.contracts import Problem, UnusableInput
from warptile.places import Places

TOOLS = ("memcheck", "racecheck", "initcheck")
"""Accesses out of bounds or misaligned; hazards in shared memory; reads of device memory nobody wrote."""

MARK, OUT_OF_TIME = "warptile-case", "warptile-out-of-time"
# The child stops itself before it is stopped: a tool that is killed gives no verdict on what was run.
CHILD_SHARE = 0.8
PLACES = ("/usr/local/cuda/bin", "/opt/cuda/bin")
_ERROR = re.compile(
    r"^=+ (?:Error: |Warning: )?((?:Invalid|Misaligned|Uninitialized|Race|Potential|Barrier|Out of|Address) .*)"
)
_SUMMARY = re.compile(r"^=+ (?:ERROR SUMMARY|RACECHECK SUMMARY): (.*)")
_FAILED = re.compile(r"^=+ (?:Error|Internal Sanitizer Error|Target application terminated before).*")


@dataclass(frozen=True)
class Sanitized:
    """What a tool says of one tile on one problem. outcome: "clean", "errors" (found by the tool), "wrong" (the proof
    itself failed under it) or "unknown" (the run ended before it, or the tool failed). errors: how many; detail: the
    first, or why.
    """

    tool: str
    tile: str
    problem: Problem
    outcome: str
    errors: int = 0
    detail: str = ""

    @property
    def good(self) -> bool:
        """Whether the tool ran over it and found nothing."""
        return self.outcome == "clean"

    def text(self) -> str:
        """`memcheck clean`, or what was found."""
        counted = f"{self.errors} errors" if self.outcome == "errors" else self.outcome
        return f"{self.tool} {counted}" + (f": {self.detail}" if self.detail else "")


def sanitizer() -> Path:
    """The compute-sanitizer on PATH or in CUDA's usual folders. Raises UnusableInput naming what is missing."""
    found = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(PLACES))
    if found is None:
        raise UnusableInput(
            f"level deep runs {', '.join(TOOLS)} of compute-sanitizer, which is neither on PATH nor in "
            f"{' or '.join(PLACES)}: it comes with the CUDA toolkit"
        )
    return Path(found)


def sanitize(
    tool: str, device: str, cases: Sequence[tuple[str, Problem]], places: Places, seed: int, seconds: float
) -> list[Sanitized]:
    """Prove (tile, problem) pairs on a CUDA device under one tool, in a process of its own, at most `seconds` long.

    Raises UnusableInput where the tool is not installed or cannot be started.
    """
    request = {
        "device": device,
        "cache": str(places.cache),
        "state": str(places.state),
        "seed": seed,
        "seconds": seconds * CHILD_SHARE,
        "cases": [{"tile": tile, "problem": asdict(problem)} for tile, problem in cases],
    }
    command = [str(sanitizer()), "--tool", tool, "--print-limit", "3", "--target-processes", "application-only"]
    command += ["--report-api-errors", "no"] if tool == "memcheck" else []
    command += [sys.executable, "-c", "from warptile.proof.sanitizer import main; main()", json.dumps(request)]
    output, ended = run_child(command, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, seconds)
    return read(tool, output, cases, ended)


def run_child(command: Sequence[str], environment: Mapping[str, str], seconds: float) -> tuple[str, str]:
    """What a child printed in at most `seconds`, and how it ended, in words. environment: on top of this process's.

    Raises UnusableInput where it cannot be started.
    """
    whole = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=whole,
            timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
        text = output.decode(errors="replace") if isinstance(output, bytes) else output
        return text, f"the run passed its {seconds:g} s"
    except OSError as error:
        raise UnusableInput(f"{command[0]} cannot be started: {error.strerror}") from None
    return done.stdout, f"the run ended with status {done.returncode}"


def read(
    tool: str,
    output: str,
    cases: Sequence[tuple[str, Problem]],
    ended: str,
    message: re.Pattern[str] = _ERROR,
    whole: bool | None = None,
) -> list[Sanitized]:
    """What the tool's output says of each case, in their order. ended: why a case that was not finished was not.

    message: a line that reports an error. whole: whether the output is the tool's to the end; None: where it ends with
    compute-sanitizer's summary.
    """
    errors: list[list[str]] = [[] for _ in cases]
    verdicts: dict[int, str] = {}
    at, failed, summary, said = -1, "", "", ""
    late = False
    for line in output.splitlines():
        said = line.strip() or said
        late = late or line == OUT_OF_TIME
        if line.startswith(MARK):
            word, index, *rest = line.removeprefix(MARK).split(maxsplit=2)
            at = int(index)
            if word == "done":
                verdicts[at] = " ".join(rest)
        elif (told := _SUMMARY.match(line)) is not None:
            summary = told[1]
        elif (told := message.match(line)) is not None:
            # Kernels that run before the first case are torch's own.
            if at >= 0:
                errors[at].append((told[1] if told.re.groups else told[0]).strip()[:300])
        elif _FAILED.match(line) is not None:
            failed = failed or line.strip("= ")
    results = []
    for number, (tile, problem) in enumerate(cases):
        if errors[number]:
            outcome, detail = "errors", errors[number][0]
        elif number not in verdicts or not (bool(summary) if whole is None else whole):
            outcome, detail = "unknown", failed or ("out of time" if late else f"{ended}: {said[:200]}")
        elif verdicts[number] != "right":
            outcome, detail = "wrong", verdicts[number]
        else:
            outcome, detail = "clean", ""
        results.append(Sanitized(tool, tile, problem, outcome, len(errors[number]), detail))
    return results


def main() -> None:
    """The child: prove every case of the request in the second argument, with a marker before and after each."""
    from warptile import kernels
    from warptile.proof.proving import prove
    from warptile.proof.references import ReferenceCache
    from warptile.runtimes import open_device

    request = json.loads(sys.argv[1])
    runtime = open_device(request["device"], Places(Path(request["cache"]), Path(request["state"])))
    cache = ReferenceCache()
    end = time.monotonic() + request["seconds"]
    for number, case in enumerate(request["cases"]):
        if time.monotonic() > end:
            print(OUT_OF_TIME, flush=True)
            break
        kernel, tile = kernels.parse_tile(case["tile"])
        print(f"{MARK} begin {number}", flush=True)
        verdict = prove(runtime, kernel, tile, Problem(**case["problem"]), seed=request["seed"], cache=cache)
        said = "right" if verdict.right else " ".join(f"{verdict.failed}: {verdict.detail}".split())[:300]
        print(f"{MARK} done {number} {said}", flush=True)
    runtime.close()
