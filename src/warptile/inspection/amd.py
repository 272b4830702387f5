"""AMD code objects: the kernels' metadata (the note NT_AMDGPU_METADATA), and their loops by llvm-objdump.

Source: LLVM's "User Guide for AMDGPU Backend", Code Object Metadata.
"""

from __future__ import annotations

import importlib
import re
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warptile.contracts import CompileFailed, MissingExtra, UnusableInput
from warptile.inspection.containers import open_elf, target_of
from warptile.inspection.report import FunctionCode
from warptile.inspection.tools import output_lines
from warptile.runtimes.triton.assembly import Counted, count
from warptile.runtimes.triton.loops import Instruction

_METADATA = 32
_SYMBOL = re.compile(r"^[0-9a-f]+ <([^>]+)>:")
_LINE = re.compile(r"^\s+(\S.*?)\s+// ([0-9A-Fa-f]+):.*?(?:<([^>+]+)(?:\+0x([0-9a-f]+))?>)?\s*$")
_BRANCH = re.compile(r"^s_c?branch")
# Flat scratch, and on cards before it the private buffer: four scalar registers from s0, addressed without an index.
_SCRATCH = re.compile(r"\bscratch_(?:load|store)_|\bbuffer_(?:load|store)_\w+ .*\bs\[0:3\], (?:0|s3[23])\b")


def read(image: bytes, target: str, path: Path, objdump: str | None) -> tuple[list[FunctionCode], str]:
    """(every kernel of one code object, why its loops were not read or ""). target: from the bundle, or "" to ask the
    metadata. Raises UnusableInput."""
    elf = open_elf(image, path)
    metadata = _metadata(elf, path)
    architecture = target or target_of(str(metadata.get("amdhsa.target", "")))
    sizes = {symbol.name: int(symbol["st_size"]) for symbol in _symbols(elf)}
    listed: dict[str, Counted] = {}
    failed = ""
    if objdump is not None:
        try:
            listed = _listed(image, objdump)
        except CompileFailed:
            failed = f"loops of {architecture} were not read: {objdump} cannot take its code apart"
    found = []
    for kernel in metadata.get("amdhsa.kernels", ()):
        name = str(kernel[".name"])
        counted = listed.get(name)
        raw = tuple(
            (key.lstrip("."), float(kernel[key]))
            for key in (".sgpr_count", ".sgpr_spill_count", ".agpr_count", ".wavefront_size")
            if key in kernel
        )
        found.append(
            FunctionCode(
                name,
                architecture,
                registers=kernel.get(".vgpr_count"),
                spilled_registers=kernel.get(".vgpr_spill_count"),
                spill_bytes=kernel.get(".private_segment_fixed_size"),
                shared_bytes=kernel.get(".group_segment_fixed_size"),
                code_bytes=sizes.get(name),
                matrix=None if counted is None else counted.matrix,
                loops=None if counted is None else counted.loops,
                loop_accesses=None if counted is None else counted.loop_accesses,
                raw=raw,
            )
        )
    return found, failed


def _metadata(elf: Any, path: Path) -> Any:
    for segment in elf.iter_segments("PT_NOTE"):
        data, at = segment.data(), 0
        while at + 12 <= len(data):
            name_size, size, kind = struct.unpack_from("<III", data, at)
            start = at + 12 + _padded(name_size)
            if kind == _METADATA and data[at + 12 : at + 12 + name_size].rstrip(b"\0") == b"AMDGPU":
                return _unpacked(data[start : start + size], path)
            at = start + _padded(size)
    raise UnusableInput(f"{path}: an AMD code object without metadata (of before code object version 3)")


def _padded(size: int) -> int:
    return -(-size // 4) * 4


def _unpacked(data: bytes, path: Path) -> Any:
    try:
        msgpack = importlib.import_module("msgpack")
    except ModuleNotFoundError:
        raise MissingExtra("reading AMD code objects", "inspect") from None
    try:
        found = msgpack.unpackb(data)
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise UnusableInput(f"{path}: broken AMD metadata: {error}") from None
    if not isinstance(found, dict):
        raise UnusableInput(f"{path}: broken AMD metadata: no map")
    return found


def _symbols(elf: Any) -> Iterator[Any]:
    for name in (".symtab", ".dynsym"):
        section = elf.get_section_by_name(name)
        if section is not None:
            yield from section.iter_symbols()


def _listed(image: bytes, objdump: str) -> dict[str, Counted]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code.o"
        file.write_bytes(image)
        return {name: count(code, _SCRATCH) for name, code in listing(output_lines([objdump, "-d", str(file)]))}


def listing(lines: Iterator[str]) -> Iterator[tuple[str, list[Instruction]]]:
    """(symbol, instructions) of each function in llvm-objdump's listing; a branch's target is an address."""
    name, first = "", 0
    code: list[Instruction] = []
    for line in lines:
        if start := _SYMBOL.match(line):
            if name:
                yield name, code
            name, code = start[1], []
        elif name and (match := _LINE.match(line)):
            at = int(match[2], 16)
            first = first if code else at
            target = first + int(match[4] or "0", 16) if _BRANCH.match(match[1]) and match[3] == name else None
            code.append(Instruction(at, match[1], target))
    if name:
        yield name, code
