"""Programs compiled in processes of their own: what they leave in the cache is what this process looks for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import os, sys
from pathlib import Path
from warptile import devices, kernels
from warptile.contracts import Problem
from warptile.kernels.triton.program import Program
from warptile.runtimes.triton import side_by_side
from warptile.runtimes.triton.compiling import gpu_target, lowered, machine_code

side_by_side.at_once = lambda: 2
cache, limits = Path(sys.argv[1]), devices.compile_only("h200")
problem = Problem("Q4_K", 256, 256, 256, "fp16", "fp16")
tiles = [kernels.parse_tile(f"triton.dequantize:tile_n=32,warps={w},decode=half,steps=1,stages=2") for w in (4, 8)]
good = [Program.parse(k.source(t, problem, limits)) for k, t in tiles]
bad = Program("nothing:at_all", good[0].builds + (good[0].builds[0].__class__("nothing:at_all", (), ()),))
target = gpu_target("cuda", "sm_90")
# A kernel that shares device functions, lowered first, must not change what the others are called.
gemm, tile = kernels.parse_tile("triton.gemm:tile_n=64,tile_m=16,tile_k=128,split_k=1,group_m=8,warps=4,stages=2")
lowered(Program.parse(gemm.source(tile, problem, limits)).builds[0], target)
compilers = side_by_side.Compilers("sm_90", cache)
keys = compilers.keys([*good, bad, good[0]])
assert set(keys) == set(good), keys
before = sorted(os.listdir(cache))
for program, key in keys.items():
    machine_code(program.builds[0], target, key, cache)
assert sorted(os.listdir(cache)) == before, "compiled again what lay in the cache"
compilers.close()
"""


def test_what_other_processes_compiled_is_found_and_what_fails_is_left_out(tmp_path: Path) -> None:
    """Without it a tune of a card compiles every candidate twice: side by side for nothing, then one by one."""
    pytest.importorskip("triton")
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, "-W", "ignore", "-c", CODE, str(tmp_path / "cache")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
