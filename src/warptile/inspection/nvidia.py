"""CUDA images (cubin, fat binary, host library) by cuobjdump."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from warptile.inspection.report import FunctionCode
from warptile.inspection.tools import find_cuobjdump, output_lines
from warptile.runtimes.triton.assembly import count_nvidia, sass_instructions
from warptile.runtimes.triton.loops import Instruction

_ARCHITECTURE = re.compile(r"^arch = (\S+)")
_CODE_FOR = re.compile(r"^\s*code for (\S+)")
_USED = re.compile(r"^\s*Function (\S+):")
_LISTED = re.compile(r"^\s*Function : (\S+)")
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")


def read(path: Path, only: str = "") -> list[FunctionCode]:
    """Every kernel of every machine-code image in a file, or of those for one architecture; PTX alone holds none."""
    tool = find_cuobjdump()
    listed = dict(_listed([tool, "-sass", *(["-arch", only] if re.fullmatch(r"sm_\d+\w?", only) else []), str(path)]))
    # A bare cubin's resource usage does not name its architecture; its listing does, and holds but one.
    alone = next(iter(listed))[0] if listed else ""
    found = []
    for stated, name, (registers, stack, shared, local) in _used([tool, "-res-usage", str(path)]):
        architecture = stated or alone
        code = listed.get((architecture, name))
        counted = None if code is None else count_nvidia(code)
        found.append(
            FunctionCode(
                name,
                architecture,
                registers=registers,
                spill_bytes=stack + local,
                shared_bytes=shared,
                code_bytes=code[-1].at + _instruction_bytes(architecture) if code else None,
                matrix=None if counted is None else counted.matrix,
                loops=None if counted is None else counted.loops,
                loop_accesses=None if counted is None else counted.loop_accesses,
                raw=(("STACK", float(stack)), ("LOCAL", float(local))),
            )
        )
    return found


def _instruction_bytes(architecture: str) -> int:
    """16 from Volta on, 8 before."""
    number = re.search(r"\d+", architecture)
    return 8 if number is not None and int(number[0]) < 70 else 16


def _used(command: list[str]) -> Iterator[tuple[str, str, tuple[int, int, int, int]]]:
    architecture, name = "", ""
    for line in output_lines(command):
        if match := _ARCHITECTURE.match(line):
            architecture = match[1]
        elif match := _USED.match(line):
            name = match[1]
        elif (match := _USAGE.search(line)) and name:
            registers, stack, shared, local = (int(match[i]) for i in range(1, 5))
            yield architecture, name, (registers, stack, shared, local)
            name = ""


def _listed(command: list[str]) -> Iterator[tuple[tuple[str, str], list[Instruction]]]:
    architecture, name = "", ""
    body: list[str] = []
    for line in output_lines(command):
        start = _LISTED.match(line)
        if start or _CODE_FOR.match(line) or _ARCHITECTURE.match(line):
            if name:
                yield (architecture, name), sass_instructions("".join(body))
            name, body = "", []
        if start:
            name = start[1]
        elif match := (_CODE_FOR.match(line) or _ARCHITECTURE.match(line)):
            architecture = match[1]
        elif name:
            body.append(line)
    if name:
        yield (architecture, name), sass_instructions("".join(body))
