"""A SPIR-V compute module through a Vulkan driver: what its compiler reports.

Source: the SPIR-V specification; the layout is read from the module's own decorations.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from warptile.contracts import UnusableInput

_OP_ENTRY_POINT, _OP_CAPABILITY, _OP_TYPE_POINTER, _OP_VARIABLE, _OP_DECORATE = 15, 17, 32, 59, 71
_GL_COMPUTE, _COOPERATIVE_MATRIX = 5, 6022
_UNIFORM, _PUSH_CONSTANT, _STORAGE_BUFFER = 2, 9, 12
_BUFFER_BLOCK, _SPEC_ID, _BINDING, _SET = 3, 1, 33, 34


@dataclass(frozen=True)
class Binding:
    """One buffer: its set, its binding, and whether it is a storage buffer (else a uniform one)."""

    set: int
    binding: int
    storage: bool


@dataclass(frozen=True)
class Reflection:
    """entry: the compute entry point's name. constants: ids of its specialization constants. capabilities: as numbered
    in the specification."""

    entry: str
    bindings: tuple[Binding, ...]
    push_constants: bool
    constants: tuple[int, ...]
    capabilities: frozenset[int] = frozenset()

    @property
    def cooperative_matrices(self) -> bool:
        """Whether it declares CooperativeMatrixKHR: a driver without them may crash on it."""
        return _COOPERATIVE_MATRIX in self.capabilities


def reflect(module: bytes) -> Reflection:
    """What a pipeline of the module must declare. Raises UnusableInput for what is no SPIR-V, has no compute entry
    point, or binds what is neither a storage nor a uniform buffer."""
    entries: list[str] = []
    capabilities: set[int] = set()
    decorations: dict[tuple[int, int], int] = {}
    pointers: dict[int, tuple[int, int]] = {}
    variables: list[tuple[int, int, int]] = []
    for opcode, words in _instructions(module):
        if opcode == _OP_ENTRY_POINT and words[0] == _GL_COMPUTE:
            entries.append(_string(words[2:]))
        elif opcode == _OP_CAPABILITY:
            capabilities.add(words[0])
        elif opcode == _OP_DECORATE:
            decorations[words[0], words[1]] = words[2] if len(words) > 2 else 1
        elif opcode == _OP_TYPE_POINTER:
            pointers[words[0]] = (words[1], words[2])
        elif opcode == _OP_VARIABLE:
            variables.append((words[0], words[1], words[2]))
    if not entries:
        raise UnusableInput("the SPIR-V module has no compute entry point")
    bindings = set()
    for kind, variable, storage in variables:
        if (variable, _BINDING) not in decorations:
            continue
        if storage not in (_UNIFORM, _STORAGE_BUFFER):
            raise UnusableInput("the SPIR-V module binds images or samplers: only buffers are laid out here")
        block = pointers.get(kind, (0, 0))[1]
        writable = storage == _STORAGE_BUFFER or (block, _BUFFER_BLOCK) in decorations
        bindings.add(Binding(decorations.get((variable, _SET), 0), decorations[variable, _BINDING], writable))
    constants = sorted({value for (_, what), value in decorations.items() if what == _SPEC_ID})
    pushed = any(storage == _PUSH_CONSTANT for _, _, storage in variables)
    ordered = sorted(bindings, key=lambda b: (b.set, b.binding))
    return Reflection(entries[0], tuple(ordered), pushed, tuple(constants), frozenset(capabilities))


def _instructions(module: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    if len(module) < 20 or len(module) % 4:
        raise UnusableInput(f"no SPIR-V module: {len(module)} bytes")
    words = struct.unpack(f"<{len(module) // 4}I", module)
    at = 5
    while at < len(words):
        length, opcode = words[at] >> 16, words[at] & 0xFFFF
        if length == 0 or at + length > len(words) or (opcode in _OPERANDS and length < _OPERANDS[opcode]):
            raise UnusableInput(f"no SPIR-V module: broken instruction at word {at}")
        yield opcode, words[at + 1 : at + length]
        at += length


_OPERANDS = {_OP_ENTRY_POINT: 4, _OP_TYPE_POINTER: 4, _OP_VARIABLE: 4, _OP_DECORATE: 3, _OP_CAPABILITY: 2}


def _string(words: tuple[int, ...]) -> str:
    raw = struct.pack(f"<{len(words)}I", *words)
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")
