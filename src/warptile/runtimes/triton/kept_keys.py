"""Keys of compiled programs, kept beside what Triton compiled: a program is lowered once a machine, not once a process.

Lowering takes a second a kernel, loading what was compiled before a hundredth of that: without, a whole model's first
token would wait for the keys of all of its kernels.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from warptile.contracts import CandidateRejected
from warptile.kernels.triton.program import Program
from warptile.runtimes.triton.compiling import lowering_source, program_key
from warptile.runtimes.triton.require import require_triton

FILE = "warptile.key"
_KEY = re.compile(r"[0-9a-f]{64}")


def kept_key(program: Program, target: Any, extra: Mapping[str, Any]) -> str:
    """`compiling.program_key`, read from Triton's cache where an equal source was lowered before.

    Equal is what Triton itself takes for equal: the text of the device functions and of all that they call, types,
    constants and options, and `extra`, which must name the compiler. A cache that cannot be read or written is done
    without. Raises CompileFailed.
    """
    manager = _manager(program, target, extra)
    if (found := _read(manager)) is not None:
        return found
    key = program_key(program.builds, program.enqueue, target, extra)
    if manager is not None:
        with suppress(OSError, RuntimeError):
            manager.put(key, FILE, binary=False)
    return key


def known_key(program: Program, target: Any, extra: Mapping[str, Any]) -> str | None:
    """The key of a program whose source was lowered before; None where it was not, or cannot be read."""
    return _read(_manager(program, target, extra))


def _manager(program: Program, target: Any, extra: Mapping[str, Any]) -> Any:
    require_triton()
    from triton.runtime.cache import get_cache_manager

    parts = []
    for build in program.builds:
        try:
            text = lowering_source(build).hash()
        except CandidateRejected:
            return None
        parts.append([text, build.language, build.warps, build.stages, build.early, build.registers])
    text = json.dumps([parts, program.enqueue, str(target), dict(extra)], sort_keys=True)
    try:
        return get_cache_manager(hashlib.sha256(text.encode()).hexdigest())
    except (OSError, RuntimeError):
        return None


def _read(manager: Any) -> str | None:
    if manager is None:
        return None
    try:
        path = manager.get_file(FILE)
        found = Path(path).read_text("utf-8") if path else ""
    except (OSError, UnicodeDecodeError):
        return None
    return found if _KEY.fullmatch(found) else None
