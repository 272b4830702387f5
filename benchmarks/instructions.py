"""Instructions a weight in the K loop of Triton tiles, compiled for a card that need not be here. Nothing is run.

    python benchmarks/instructions.py --device h200 Q4_K 4096 14336 1 fp16 TILE [TILE ..]

A loop's instructions over the weights that a thread decodes in one pass of it: a loop with several matrix instructions
passes over as many weights as those take, 16 x 16 a warp each (64 x 16 a warp group).
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT.parent / "src")]

PREDICATE = re.compile(r"^@!?U?P\w+\s+")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("format")
    parser.add_argument("n", type=int)
    parser.add_argument("k", type=int)
    parser.add_argument("m", type=int)
    parser.add_argument("dtype")
    parser.add_argument("tiles", nargs="+")
    options = parser.parse_args()
    found = [count(options, text) for text in options.tiles]
    if options.json:
        print(json.dumps(found))
        return 0
    for each in found:
        print(f"{each['tile']}\n  {each['a_weight']:.2f} a weight, {each['registers']} registers, {each['mix']}")
    return 0


def count(options: argparse.Namespace, text: str) -> dict[str, Any]:
    """What a tile's loop is made of."""
    from warptile import devices, kernels
    from warptile.contracts import Problem
    from warptile.kernels.triton.matrix import architecture
    from warptile.kernels.triton.program import Program
    from warptile.runtimes.triton.assembly import k_loops, read_nvidia, sass_instructions
    from warptile.runtimes.triton.compiling import gpu_target, machine_code, program_key

    limits = devices.by_name(options.device, "cuda")
    kernel, tile = kernels.parse_tile(text)
    problem = Problem(options.format, options.n, options.k, options.m, options.dtype, options.dtype)
    broken = kernel.broken_rules(tile, problem, limits)
    if broken:
        raise SystemExit(f"{text}: {broken[0].text()}")
    program = Program.parse(kernel.source(tile, problem, limits))
    target = gpu_target("cuda", architecture(limits).name)
    build = program.builds[-1]
    compiled = machine_code(build, target, program_key(program.builds, program.enqueue, target, {}), None).kernel
    code = read_nvidia(compiled.asm["cubin"])
    instructions = sass_instructions(listing(compiled.asm["cubin"]))
    first, last = max(k_loops(instructions), key=lambda loop: loop[1] - loop[0])
    names = [PREDICATE.sub("", i.text).split()[0] for i in instructions if first <= i.at <= last]
    mix = collections.Counter(name.split(".")[0] for name in names)
    # Columns beyond eight are further instructions on the same weights.
    repeats = max(1, getattr(tile, "tile_m", 8) // 8)
    weights = mix["HMMA"] * 16 * 16 / 32 / repeats if mix["HMMA"] else mix["HGMMA"] * 64 * 16 / 128
    return {
        "tile": text,
        "a_weight": len(names) / weights if weights else float("nan"),
        "registers": code.registers,
        "matrix": mix["HMMA"] + mix["HGMMA"],
        "loop_accesses": code.loop_accesses,
        "shared": int(compiled.metadata.shared),
        "mix": dict(mix.most_common(16)),
    }


def listing(cubin: bytes) -> str:
    """SASS by the cuobjdump that Triton brings."""
    import subprocess

    import triton

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        tool = triton.knobs.nvidia.cuobjdump.path
        return subprocess.run([tool, "-sass", str(path)], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
