"""What compiled machine code says: registers, spills, and which memory of a thread's own its loops touch.

The K loops are the innermost loops (`loops`) with a matrix instruction, or all loops where none has one. A spill inside
one costs every step; one outside costs once.
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warptile.contracts import CompileFailed
from warptile.runtimes.triton.loops import Instruction, loops_of
from warptile.runtimes.triton.require import require_triton

# RDNA, CDNA; Ampere, Ada and consumer Blackwell; Hopper.
_MATRIX = re.compile(r"\bv_(?:wmma|swmmac|mfma|smfmac)_|\b(?:[HIQDFO]MMA|[HIQ]GMMA|UTC\w*MMA)\b")
# `buffer_` accesses are scratch only where LLVM's comment says so.
_AMD_SCRATCH = re.compile(r"\bscratch_(?:load|store)_|\bbuffer_(?:load|store)_.*Folded (?:Spill|Reload)")
_NVIDIA_LOCAL = re.compile(r"\b(?:LDL|STL)\b")
_LABEL = re.compile(r"^(\.LBB\w+):")
_AMD_BRANCH = re.compile(r"\bs_c?branch\w*\s+(\.LBB\w+)")
_SASS_LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(.*?);")
_SASS_BRANCH = re.compile(r"\bBRA\b\S*\s+(?:[^,;]+,\s*)*(0x[0-9a-f]+)")


@dataclass(frozen=True)
class MachineCode:
    """One compiled function.

    registers: a thread's; spilled_registers: by the compiler's count, else from the bytes; spill_bytes: bytes of memory
    of its own that a thread has. local_accesses: instructions that touch that memory; loop_accesses: those of them in a
    K loop. matrix: matrix instructions; loops: K loops found. raw: the compiler's own numbers.
    """

    registers: int
    spilled_registers: int
    spill_bytes: int
    local_accesses: int
    loop_accesses: int
    matrix: int
    loops: int
    raw: tuple[tuple[str, float], ...] = ()


def k_loops(code: Sequence[Instruction]) -> list[tuple[int, int]]:
    """(first, last) addresses of the K loops."""
    loops = loops_of(code)
    matrix = [i.at for i in code if _MATRIX.search(i.text)]
    with_matrix = {loop for loop in loops if any(loop[0] <= at <= loop[1] for at in matrix)}
    innermost = [
        (first, last)
        for first, last in with_matrix
        if not any((a, b) != (first, last) and first <= a and b <= last for a, b in with_matrix)
    ]
    return sorted(innermost) or loops


def amd_instructions(text: str) -> list[Instruction]:
    """Instructions of LLVM's AMD assembly; the address is the line's number."""
    lines = text.splitlines()
    labels = {m.group(1): at for at, line in enumerate(lines) if (m := _LABEL.match(line))}
    found = []
    for at, line in enumerate(lines):
        if line.startswith("\t") and not line.startswith("\t."):
            branch = _AMD_BRANCH.search(line)
            found.append(Instruction(at, line.strip(), labels.get(branch.group(1)) if branch else None))
    return found


def sass_instructions(text: str) -> list[Instruction]:
    """Instructions of one function in cuobjdump's listing."""
    found = []
    for match in _SASS_LINE.finditer(text):
        branch = _SASS_BRANCH.search(match.group(2))
        found.append(Instruction(int(match.group(1), 16), match.group(2), int(branch.group(1), 16) if branch else None))
    return found


@dataclass(frozen=True)
class Counted:
    """Of one function: instructions that touch a thread's own memory, those of them in a K loop, matrix instructions,
    K loops."""

    local_accesses: int
    loop_accesses: int
    matrix: int
    loops: int


def count_nvidia(code: Sequence[Instruction]) -> Counted:
    """What SASS does."""
    return count(code, _NVIDIA_LOCAL)


def count(code: Sequence[Instruction], local: re.Pattern[str]) -> Counted:
    """What code does; local: instructions that touch a thread's own memory."""
    loops = k_loops(code)
    touching = [i.at for i in code if local.search(i.text)]
    inside = [at for at in touching if any(first <= at <= last for first, last in loops)]
    return Counted(len(touching), len(inside), sum(bool(_MATRIX.search(i.text)) for i in code), len(loops))


def read_amd(assembly: str) -> MachineCode:
    """From LLVM's assembly with its metadata. Raises CompileFailed where a number is missing."""

    def number(name: str) -> int:
        match = re.search(rf"\.{name}:\s+(\d+)", assembly)
        if match is None:
            raise CompileFailed(f"the assembly states no {name}")
        return int(match.group(1))

    counted = count(amd_instructions(assembly), _AMD_SCRATCH)
    raw = [(name, float(number(name))) for name in ("sgpr_count", "sgpr_spill_count", "group_segment_fixed_size")]
    if (match := re.search(r"; Occupancy: (\d+)", assembly)) is not None:
        raw.append(("waves a SIMD", float(match.group(1))))
    return MachineCode(
        registers=number("vgpr_count"),
        spilled_registers=number("vgpr_spill_count"),
        spill_bytes=number("private_segment_fixed_size"),
        **dataclasses.asdict(counted),
        raw=tuple(raw),
    )


def read_nvidia(cubin: bytes) -> MachineCode:
    """From a cubin, by the cuobjdump that Triton brings. Raises CompileFailed where it cannot be read."""
    triton: Any = require_triton()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)

        def dump(option: str) -> str:
            try:
                done = subprocess.run(
                    [triton.knobs.nvidia.cuobjdump.path, option, str(path)],
                    capture_output=True, text=True, check=True, timeout=120,
                )  # fmt: skip
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                raise CompileFailed(f"cuobjdump {option} did not work: {error}") from None
            return done.stdout

        usage = re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", dump("-res-usage"))
        listing = dump("-sass")
    if usage is None:
        raise CompileFailed("cuobjdump states no register count")
    registers, stack, shared, own = map(int, usage.groups())
    counted = count_nvidia(sass_instructions(listing))
    return MachineCode(
        registers=registers,
        spilled_registers=-(-(stack + own) // 4),
        spill_bytes=stack + own,
        **dataclasses.asdict(counted),
        raw=(("STACK", float(stack)), ("LOCAL", float(own)), ("SHARED", float(shared))),
    )
