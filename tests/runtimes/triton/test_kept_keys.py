"""A key read back must be the key: a table's entry is valid by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# In a process without Triton's interpreter, which lowers nothing.
KEYS = """
import json
from warptile import devices, kernels
from warptile.contracts import Problem
from warptile.kernels.triton.program import Program
from warptile.runtimes.triton import kept_keys
from warptile.runtimes.triton.compiling import gpu_target, program_key
problem, limits = Problem("Q8_0", 64, 256, 1, "fp16", "fp16"), devices.compile_only("h200")
kernel = kernels.by_name("triton.dequantize")
program = Program.parse(kernel.source(next(kernel.space(problem, limits)), problem, limits))
target = gpu_target("cuda", "sm_90")
before = kept_keys.known_key(program, target, {"compiler": "a"})
lowered = [program_key(program.builds, program.enqueue, target, {"compiler": c}) for c in "ab"]
kept = [kept_keys.kept_key(program, target, {"compiler": c}) for c in "ab"]
kept_keys.program_key = None
again = [kept_keys.kept_key(program, target, {"compiler": c}) for c in "ab"]
print(json.dumps([before, lowered, kept, again, kept_keys.known_key(program, target, {"compiler": "c"})]))
"""


def test_a_kept_key_is_the_lowered_programs(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"TRITON_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", KEYS], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, lowered, kept, again, other = json.loads(done.stdout)
    assert before is None
    assert other is None
    assert lowered == kept == again
    assert kept[0] != kept[1], "another compiler"
