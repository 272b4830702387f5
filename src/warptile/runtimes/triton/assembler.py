"""Which ptxas assembles kernels: Triton's own or the user's, and not the one torch.compile names on its way."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from warptile.runtimes.triton.require import require_triton

_VARIABLE = "TRITON_PTXAS_PATH"


@contextmanager
def own_assembler() -> Iterator[None]:
    """torch.compile sets Triton's variable to the ptxas in torch's package, for the whole process and its children:
    what is compiled afterwards would be other code than what was measured. Here that setting does not hold; a user's
    does.
    """
    named = os.environ.get(_VARIABLE)
    torch = _torch_folder()
    if named is None or torch is None or not Path(named).is_relative_to(torch):
        yield
        return
    del os.environ[_VARIABLE]
    try:
        yield
    finally:
        os.environ[_VARIABLE] = named


@cache
def ptxas_version(architecture: int = 80) -> str:
    """Version of the assembler Triton uses for compute capability 10 major + minor; "" where it cannot be asked."""
    require_triton()
    try:
        from triton.backends.nvidia.compiler import get_ptxas

        with own_assembler():
            path = get_ptxas(architecture).path
        found = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=30)
    except (ImportError, OSError, RuntimeError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip().splitlines()[-1].rpartition(" V")[2] or found.stdout.strip().splitlines()[-1]


@cache
def _torch_folder() -> Path | None:
    spec = importlib.util.find_spec("torch")
    return Path(spec.origin).parent if spec is not None and spec.origin else None
