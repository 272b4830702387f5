"""What was read from a file of compiled GPU code."""

from __future__ import annotations

import ctypes
import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True)
class FunctionCode:
    """One kernel for one architecture; None where neither the file nor the compiler says.

    name: as in the file. registers: a thread's. spilled_registers: the compiler's count. spill_bytes: bytes of memory
    of its own that a thread has. shared_bytes: a workgroup's, fixed when compiled. code_bytes: of machine code.
    matrix: matrix instructions. loops: K loops (backward branches around a matrix instruction, or all where none has
    one). loop_accesses: instructions in them that touch a thread's own memory. raw: other numbers, as named there.
    """

    name: str
    architecture: str
    registers: int | None = None
    spilled_registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    code_bytes: int | None = None
    matrix: int | None = None
    loops: int | None = None
    loop_accesses: int | None = None
    raw: tuple[tuple[str, float], ...] = ()

    @property
    def spills(self) -> str:
        """ "none", "in a loop", "outside loops", "somewhere" (no machine code was read) or "not stated"."""
        if self.loop_accesses:
            return "in a loop"
        sizes = (self.spilled_registers, self.spill_bytes)
        if any(sizes):
            return "somewhere" if self.loop_accesses is None else "outside loops"
        return "not stated" if sizes == (None, None) else "none"

    @property
    def readable_name(self) -> str:
        """The name as C++ writes it, where it is a mangled one."""
        return demangled(self.name)


@dataclass(frozen=True)
class Inspection:
    """A file's kernels. kind: what the file is; compiler: who compiled (a driver) or took apart; notes: what could
    not be read, and why."""

    path: str
    kind: str
    functions: tuple[FunctionCode, ...]
    compiler: str = ""
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """One plain dictionary."""
        functions = [
            {**dataclasses.asdict(f), "raw": dict(f.raw), "readable_name": f.readable_name, "spills": f.spills}
            for f in self.functions
        ]
        return {**dataclasses.asdict(self), "functions": functions}


def demangled(name: str) -> str:
    """A C++ symbol as written in the source (Itanium ABI, `__cxa_demangle`); other names as they are."""
    if not name.startswith("_Z") or (library := _cxx()) is None:
        return name
    status = ctypes.c_int(-1)
    found = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not found:
        return name
    try:
        return ctypes.cast(found, ctypes.c_char_p).value.decode(errors="replace")  # type: ignore[union-attr]
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(found))


@cache
def _cxx() -> Any:
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return None
    library.__cxa_demangle.restype = ctypes.c_void_p
    return library
