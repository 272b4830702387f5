"""Compiling every tile that will be needed, on all processors at once, before the card is touched."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from warptile import kernels
from warptile.contracts import Limits, Problem
from warptile.kernels.triton.program import Program
from warptile.runtimes.triton.backends import Card, compiled_key
from warptile.runtimes.triton.compiling import gpu_target, machine_code


def compile_all(card: Card, wanted: list[tuple[str, Problem]], workers: int, seconds: float) -> dict[str, object]:
    """Compile the (tile text, problem) pairs in `workers` processes; keys of what compiled are left in `card.keys`.

    Stops waiting after `seconds`. Returns counts and the messages of what did not compile.
    """
    limits = card.limits()
    programs: dict[Program, str] = {}
    for text, problem in wanted:
        kernel, tile = kernels.parse_tile(text)
        programs.setdefault(Program.parse(kernel.source(tile, problem, limits)), f"{problem.format} {text}")
    start = time.monotonic()
    failed: dict[str, str] = {}
    todo = [p for p in programs if p not in card.keys]
    architecture = _architecture(limits)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        jobs = {pool.submit(_compile, program, architecture): program for program in todo}
        for job, program in jobs.items():
            try:
                card.keys[program] = job.result(max(1.0, seconds - (time.monotonic() - start)))
            except TimeoutError:
                failed["out of time"] = f"{sum(not j.done() for j in jobs)} tiles not compiled yet"
                pool.shutdown(wait=False, cancel_futures=True)
                break
            except Exception as error:
                failed[programs[program]] = f"{type(error).__name__}: {str(error)[:300]}"
    return {"compiled": len(todo) - len(failed), "failed": failed, "seconds": time.monotonic() - start}


def _architecture(limits: Limits) -> str:
    return next(f for f in limits.features if f.startswith(("sm_", "gfx")))


def _compile(program: Program, architecture: str) -> str:
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    hip = architecture.startswith("gfx")
    target = gpu_target("hip" if hip else "cuda", architecture)
    key = compiled_key(program, target, hip)
    for build in program.builds:
        machine_code(build, target, key, None)
    return key
