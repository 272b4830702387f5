"""`inspect`: from a file to its kernels."""

from __future__ import annotations

import fnmatch
import multiprocessing
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from warptile.contracts import CompileFailed, Resources, UnusableInput
from warptile.inspection import amd, nvidia
from warptile.inspection.containers import contents
from warptile.inspection.report import FunctionCode, Inspection, demangled
from warptile.inspection.spirv import reflect
from warptile.inspection.tools import find_llvm_objdump

_COMPILE_SECONDS = 300


def inspect(
    path: Path,
    device: str = "vulkan:0",
    constants: Mapping[int, int] | None = None,
    pattern: str = "*",
    architecture: str = "",
    objdump: Path | None = None,
) -> Inspection:
    """The kernels of a cubin, CUDA fat binary, AMD code object, offload bundle, host library or SPIR-V module.

    device, constants: what compiles SPIR-V, and its specialization constants by id. pattern: shell pattern of kernel
    names, as mangled or as C++ writes them. architecture: only this one ("sm_90", "gfx1100"). objdump: an llvm-objdump
    for AMD code instead of the one found. Raises UnusableInput for a file without GPU code, a broken one, an unknown
    constant, a kernel or architecture that is not there; CompileFailed; MissingExtra.
    """
    functions: list[FunctionCode] = []
    kinds, notes, compiler = [], [], ""
    for content in contents(path):
        kinds.append(content.container)
        if content.kind == "SPIR-V":
            compiler, function = _through_driver(path, device, dict(constants or {}))
            if function is None:
                notes.append("the driver does not report what it compiled (no VK_KHR_pipeline_executable_properties)")
            functions += [] if function is None else [function]
            continue
        if constants:
            raise UnusableInput(f"{path}: only SPIR-V has specialization constants")
        if content.kind == "CUDA":
            functions += nvidia.read(path, architecture)
            continue
        tool = find_llvm_objdump(objdump)
        if tool is None:
            which = f"{objdump} is none" if objdump else "none was found"
            notes.append(f"loops were not read: that needs an llvm-objdump for amdgcn, and {which}")
        for target, image in content.code_objects:
            if architecture and target and not _same(target, architecture):
                continue
            read, failed = amd.read(image, target, path, tool)
            functions += read
            notes += [failed] if failed else []
    kind = ", ".join(kinds)
    if not functions and not notes:
        raise UnusableInput(f"{path}: {kind} without a kernel in machine code")
    chosen = tuple(f for f in functions if _wanted(f, pattern, architecture))
    if functions and not chosen:
        there = ", ".join(sorted({f.architecture for f in functions}))
        asked = repr(pattern) + (f" for {architecture}" if architecture else "")
        raise UnusableInput(f"{path}: no kernel matches {asked} (it has {len(functions)}, for {there})")
    return Inspection(str(path), kind, chosen, compiler, tuple(dict.fromkeys(notes)))


def _wanted(function: FunctionCode, pattern: str, architecture: str) -> bool:
    if architecture and not _same(function.architecture, architecture):
        return False
    return pattern == "*" or any(
        fnmatch.fnmatchcase(name, pattern) for name in (function.name, demangled(function.name))
    )


def _same(architecture: str, asked: str) -> bool:
    """AMD's targets carry features after a colon: "gfx90a:sramecc+"."""
    return architecture == asked or architecture.partition(":")[0] == asked


def _compiled(*arguments: Any) -> tuple[str, Resources | None]:
    from warptile.runtimes.vulkan.foreign import foreign_resources

    return foreign_resources(*arguments)


def _through_driver(path: Path, device: str, constants: dict[int, int]) -> tuple[str, FunctionCode | None]:
    module = path.read_bytes()
    try:
        found = reflect(module)
    except UnusableInput as error:
        raise UnusableInput(f"{path}: {error}") from None
    if unknown := sorted(set(constants) - set(found.constants)):
        has = ", ".join(map(str, found.constants)) or "none"
        raise UnusableInput(f"{path}: no specialization constant {unknown[0]} (has {has})")
    bindings = tuple((b.set, b.binding, b.storage) for b in found.bindings)
    # A driver's compiler may die of a broken module: it does so in a process of its own.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        given, pushed, cooperative = tuple(constants.items()), found.push_constants, found.cooperative_matrices
        job = pool.submit(_compiled, device, module, found.entry, bindings, pushed, given, cooperative)
        try:
            compiler, told = job.result(_COMPILE_SECONDS)
        except BrokenProcessPool:
            raise CompileFailed(f"{path}: the driver's compiler died of this module") from None
        except TimeoutError:
            for process in (pool._processes or {}).values():
                process.kill()
            raise CompileFailed(f"{path}: the driver's compiler took over {_COMPILE_SECONDS} s") from None
    if told is None:
        return compiler, None
    spilled = told.spill_bytes if told.spill_bytes is not None else told.scratch_bytes
    return compiler, FunctionCode(
        found.entry, f"subgroup {told.subgroup}" if told.subgroup else "", told.registers, told.spilled_registers,
        spilled, told.shared_bytes, told.code_bytes, raw=told.raw,
    )  # fmt: skip
