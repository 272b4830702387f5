"""Every access of a module to shared memory and storage buffers, with the index chain that leads to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warptile.contracts.errors import CompileFailed
from warptile.runtimes.vulkan.instrument import spirv_ops as op
from warptile.runtimes.vulkan.instrument.module import Instruction, Module
from warptile.runtimes.vulkan.instrument.types import Types

_WATCHED = (op.WORKGROUP, op.STORAGE_BUFFER, op.UNIFORM)
_CHAINS = (op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN)
_POINTER_AT = {
    op.LOAD: 2,
    op.STORE: 0,
    op.ATOMIC_STORE: 0,
    op.COOPERATIVE_MATRIX_LOAD: 2,
    op.COOPERATIVE_MATRIX_STORE: 0,
}


@dataclass(frozen=True)
class Pointer:
    """A variable and the ids of the indices behind it."""

    variable: int
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Access:
    """An instruction that touches watched memory: where it stands in `Module.functions`, through which pointer.

    line: of the source text; 0 where no OpLine precedes it.
    """

    position: int
    instruction: Instruction
    pointer: Pointer
    line: int


def pointer_at(opcode: int) -> int | None:
    """Which word of an accessing instruction is its pointer; None for other instructions."""
    return 2 if opcode in op.ATOMICS and opcode != op.ATOMIC_STORE else _POINTER_AT.get(opcode)


def watched_variables(module: Module, types: Types) -> dict[int, int]:
    """{variable: storage class} of shared variables and storage buffers."""
    found = {}
    for each in module.globals:
        if each.opcode == op.VARIABLE and each.words[2] in _WATCHED:
            block = types.pointee(each.words[0])[1]
            # A uniform buffer is not written, and its extent is its type's.
            if each.words[2] != op.UNIFORM or types.decorated(block, 3) is not None:
                found[each.words[1]] = each.words[2]
    return found


def accesses(module: Module, types: Types) -> Iterator[Access]:
    """All of them in order. Raises CompileFailed where a watched pointer goes where it cannot be followed."""
    variables = watched_variables(module, types)
    chains: dict[int, Pointer] = {variable: Pointer(variable, ()) for variable in variables}
    line = 0
    for position, each in enumerate(module.functions):
        w = each.words
        if each.opcode == op.LINE:
            line = w[1]
        elif each.opcode in _CHAINS:
            if (base := chains.get(w[2])) is not None:
                chains[w[1]] = Pointer(base.variable, (*base.indices, *w[3:]))
        elif (at := pointer_at(each.opcode)) is not None:
            if w[at] in chains:
                yield Access(position, each, chains[w[at]], line)
        elif each.opcode in (op.COPY_MEMORY, op.FUNCTION_CALL) and any(word in chains for word in w):
            raise CompileFailed(f"instrument: line {line} hands on a pointer to shared memory or a buffer")


def type_behind(types: Types, module_type: int, indices: tuple[int, ...]) -> int:
    """The type at the end of an index chain that begins at a value of `module_type`."""
    for index in indices:
        member = types.value(index) if types.is_struct(module_type) else 0
        module_type = types.element(module_type, member)
    return module_type
