"""The disassemblers: they belong to the vendors' tool kits, and are looked for where those put them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from warptile.contracts import CompileFailed, MissingExtra
from warptile.runtimes.triton.require import require_triton

_TIMEOUT_S = 600


def find_cuobjdump() -> str:
    """CUDA's cuobjdump: the system's, else Triton's. Raises MissingExtra where there is neither."""
    for place in (None, "/usr/local/cuda/bin"):
        if (found := shutil.which("cuobjdump", path=place)) is not None:
            return found
    try:
        return str(require_triton().knobs.nvidia.cuobjdump.path)
    except (MissingExtra, RuntimeError):
        raise MissingExtra("reading CUDA machine code without CUDA's cuobjdump", "torch") from None


def find_llvm_objdump(given: Path | None = None) -> str | None:
    """An llvm-objdump that knows AMD's GPUs: the given one, ROCm's, the system's newest; None where there is none."""
    candidates = [str(given)] if given is not None else []
    if given is None:
        candidates += [f"/opt/rocm/{place}/llvm-objdump" for place in ("llvm/bin", "lib/llvm/bin")]
        candidates += [found for version in range(30, 14, -1) if (found := shutil.which(f"llvm-objdump-{version}"))]
        candidates += filter(None, [shutil.which("llvm-objdump")])
    for candidate in candidates:
        with suppress(OSError, subprocess.SubprocessError):
            shown = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=True, timeout=30)
            if re.search(r"^\s+amdgcn\b", shown.stdout, re.MULTILINE):
                return candidate
    return None


def output_lines(command: list[str]) -> Iterator[str]:
    """Lines of a tool's output as they come: a library's listing can be gigabytes. Raises CompileFailed."""
    name = Path(command[0]).name
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
    except OSError as error:
        raise CompileFailed(f"{name} cannot be started: {error.strerror}") from None
    assert process.stdout is not None
    last = ""
    try:
        for line in process.stdout:
            last = line.strip() or last
            yield line
        if process.wait(_TIMEOUT_S) != 0:
            raise CompileFailed(f"{name} failed: {last}")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()
