"""Putting the checking library's functions and globals into a kernel's module (both SPIR-V)."""

from __future__ import annotations

from collections.abc import Iterator

from warptile.contracts.errors import CompileFailed
from warptile.runtimes.vulkan.instrument import spirv_ops as op
from warptile.runtimes.vulkan.instrument.module import Instruction, Module, interface_start

_SHARED = frozenset({*range(op.TYPE_VOID, op.TYPE_FUNCTION + 1), op.CONSTANT_TRUE, op.CONSTANT_FALSE, op.CONSTANT,
    op.CONSTANT_NULL, op.EXT_INST_IMPORT}) - {op.TYPE_STRUCT, op.TYPE_RUNTIME_ARRAY, op.TYPE_ARRAY}  # fmt: skip
"""What a module may define once only, or what is better defined once."""


def link(module: Module, library: Module) -> dict[str, int]:
    """Add all of `library` but its entry point; the ids of its functions by their names.

    Types and constants that the module has are used again, as are its built-in variables: a module may declare each
    once. Raises CompileFailed for an instruction that `OPERANDS` does not know.
    """
    return _Linker(module, library).run()


class _Linker:
    def __init__(self, module: Module, library: Module) -> None:
        self._module = module
        self._library = library
        self._ids: dict[int, int] = {}
        self._known = {
            key: identity
            for each in (*module.imports, *module.globals)
            if (found := _key(each)) is not None
            for key, identity in (found,)
        }
        self._built_in = {
            w[2]: w[0]
            for each in module.annotations
            if each.opcode == op.DECORATE and (w := each.words)[1] == op.BUILT_IN
        }

    def run(self) -> dict[str, int]:
        module, library = self._module, self._library
        have = {tuple(each.words) for each in module.capabilities}
        module.capabilities += [each for each in library.capabilities if tuple(each.words) not in have]
        have = {tuple(each.words) for each in module.extensions}
        module.extensions += [each for each in library.extensions if tuple(each.words) not in have]
        self._adopt_built_ins()
        for section in ("imports", "globals"):
            for each in library.section(section):
                if each.opcode not in (op.LINE, op.NO_LINE):
                    self._define(each, module.section(section))
        dropped = {w[0] for each in library.annotations if (w := each.words)[0] in self._adopted}
        # A type that was found in the module has its decorations there.
        for each in library.annotations:
            target = each.words[0]
            if target in self._ids and target not in dropped and self._ids[target] in self._fresh:
                module.annotations.append(self._renamed(each))
        main = library.entries[0].words[1]
        for function in functions_of(library):
            if function[0].words[1] != main:
                module.functions += [self._renamed(each) for each in function if each.opcode != op.LINE]
        self._list_variables()
        named = {identity: name.split("(")[0] for identity, name in library.names_of().items()}
        return {
            named[function[0].words[1]]: self._ids[function[0].words[1]]
            for function in functions_of(library)
            if function[0].words[1] in named and function[0].words[1] in self._ids
        }

    def _adopt_built_ins(self) -> None:
        self._adopted: set[int] = set()
        self._fresh: set[int] = set()
        for each in self._library.annotations:
            w = each.words
            if each.opcode == op.DECORATE and w[1] == op.BUILT_IN and w[2] in self._built_in:
                self._ids[w[0]] = self._built_in[w[2]]
                self._adopted.add(w[0])

    def _define(self, each: Instruction, into: list[Instruction]) -> None:
        position = 0 if each.opcode in (op.EXT_INST_IMPORT, *range(op.TYPE_VOID, op.TYPE_FUNCTION + 1)) else 1
        identity = each.words[position]
        if identity in self._adopted:
            return
        probe = self._renamed(each, leave=position)
        found = _key(probe)
        if found is not None and found[0] in self._known:
            self._ids[identity] = self._known[found[0]]
            return
        fresh = self._new(identity)
        probe.words[position] = fresh
        into.append(probe)
        if found is not None:
            self._known[found[0]] = fresh

    def _new(self, identity: int) -> int:
        if identity not in self._ids:
            self._ids[identity] = self._module.new_id()
            self._fresh.add(self._ids[identity])
        return self._ids[identity]

    def _renamed(self, each: Instruction, leave: int = -1) -> Instruction:
        if each.opcode not in op.OPERANDS:
            raise CompileFailed(f"instrument: the library has an instruction {each.opcode} that cannot be linked")
        kinds = op.OPERANDS[each.opcode]
        words = []
        for position, word in enumerate(each.words):
            kind = kinds[min(position, len(kinds.rstrip("*")) - 1)]
            words.append(self._new(word) if kind == "i" and position != leave else word)
        return Instruction(each.opcode, words)

    def _list_variables(self) -> None:
        """Since SPIR-V 1.4 an entry point lists every global variable; before, those of input and output."""
        entry = self._module.entries[0]
        listed = set(entry.words[interface_start(entry) :])
        every = self._module.version >= 0x00010400
        for each in self._module.globals:
            made = each.opcode == op.VARIABLE and each.words[1] in self._fresh and each.words[1] not in listed
            if made and (every or each.words[2] == op.INPUT):
                entry.words.append(each.words[1])


def functions_of(module: Module) -> Iterator[list[Instruction]]:
    """Each function, from OpFunction to OpFunctionEnd; an OpLine before one belongs to it."""
    current: list[Instruction] = []
    for each in module.functions:
        if each.opcode in (op.LINE, op.NO_LINE) and not current:
            continue
        current.append(each)
        if each.opcode == op.FUNCTION_END:
            yield current
            current = []


def _key(each: Instruction) -> tuple[tuple[int, ...], int] | None:
    """(what makes two definitions one, the id it defines); None for what is always its own."""
    if each.opcode not in _SHARED:
        return None
    position = 0 if each.opcode in (op.EXT_INST_IMPORT, *range(op.TYPE_VOID, op.TYPE_FUNCTION + 1)) else 1
    rest = [word for i, word in enumerate(each.words) if i != position]
    return (each.opcode, *rest), each.words[position]
