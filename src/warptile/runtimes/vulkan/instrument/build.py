"""Making instructions: new ids, types and constants found or declared, functions appended."""

from __future__ import annotations

from collections.abc import Sequence

from warptile.runtimes.vulkan.instrument import spirv_ops as op
from warptile.runtimes.vulkan.instrument.module import Instruction, Module


class Builder:
    """Adds to a module. Types and constants are declared once."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._known: dict[tuple[int, ...], int] = {}
        for each in module.globals:
            if op.TYPE_VOID <= each.opcode <= op.TYPE_FUNCTION:
                self._known.setdefault((each.opcode, *each.words[1:]), each.words[0])
            elif each.opcode in (op.CONSTANT, op.CONSTANT_NULL):
                self._known.setdefault((each.opcode, each.words[0], *each.words[2:]), each.words[1])
        self.uint = self.type(op.TYPE_INT, 32, 0)
        self.bool = self.type(op.TYPE_BOOL)
        self.void = self.type(op.TYPE_VOID)

    def type(self, opcode: int, *operands: int) -> int:
        """The id of a type."""
        key = (opcode, *operands)
        if key not in self._known:
            self._known[key] = self.module.new_id()
            self.module.globals.append(Instruction(opcode, [self._known[key], *operands]))
        return self._known[key]

    def constant(self, value: int) -> int:
        """The id of a whole number of 32 bits."""
        return self._constant(op.CONSTANT, self.uint, value & 0xFFFFFFFF)

    def null(self, type_id: int) -> int:
        """The id of a type's null value."""
        return self._constant(op.CONSTANT_NULL, type_id)

    def truth(self) -> int:
        """The id of `true`."""
        for each in self.module.globals:
            if each.opcode == op.CONSTANT_TRUE:
                return each.words[1]
        return self._constant(op.CONSTANT_TRUE, self.bool)

    def variable(self, type_id: int, storage: int) -> int:
        """A new global variable of a value type; listed in the entry point's interface where SPIR-V asks for it."""
        pointer = self.type(op.TYPE_POINTER, storage, type_id)
        made = self.module.new_id()
        self.module.globals.append(Instruction(op.VARIABLE, [pointer, made, storage]))
        if self.module.version >= 0x00010400 or storage == op.INPUT:
            self.module.entries[0].words.append(made)
        return made

    def function(self, result: int, parameters: Sequence[int]) -> FunctionBuilder:
        """Begin a function; `FunctionBuilder.end` puts it into the module."""
        return FunctionBuilder(self, result, parameters)

    def _constant(self, opcode: int, type_id: int, *words: int) -> int:
        key = (opcode, type_id, *words)
        if key not in self._known:
            self._known[key] = self.module.new_id()
            self.module.globals.append(Instruction(opcode, [type_id, self._known[key], *words]))
        return self._known[key]


class FunctionBuilder:
    """One function under construction; `parameters` are its parameters' ids."""

    def __init__(self, builder: Builder, result: int, parameters: Sequence[int]) -> None:
        self._builder = builder
        new = builder.module.new_id
        kind = builder.type(op.TYPE_FUNCTION, result, *parameters)
        self.id = new()
        self.body = [Instruction(op.FUNCTION, [result, self.id, 0, kind])]
        self.parameters = [new() for _ in parameters]
        self.body += [
            Instruction(op.FUNCTION_PARAMETER, [t, p]) for t, p in zip(parameters, self.parameters, strict=True)
        ]
        self.block = self.label()

    def emit(self, opcode: int, *words: int) -> None:
        """An instruction without a result."""
        self.body.append(Instruction(opcode, list(words)))

    def value(self, opcode: int, type_id: int, *words: int) -> int:
        """An instruction with a result; its id."""
        made = self._builder.module.new_id()
        self.body.append(Instruction(opcode, [type_id, made, *words]))
        return made

    def call(self, result: int, function: int, *arguments: int) -> int:
        """A call; its id."""
        return self.value(op.FUNCTION_CALL, result, function, *arguments)

    def add(self, a: int, b: int) -> int:
        """a + b of two uint ids."""
        return self.value(op.I_ADD, self._builder.uint, a, b)

    def scaled(self, a: int, factor: int) -> int:
        """a times a number."""
        return a if factor == 1 else self.value(op.I_MUL, self._builder.uint, a, self._builder.constant(factor))

    def label(self) -> int:
        """Begin a block; its id."""
        made = self._builder.module.new_id()
        self.emit(op.LABEL, made)
        self.block = made
        return made

    def when(self, condition: int) -> tuple[int, int]:
        """Begin a block that runs where `condition` holds; (the block before, the block to join with)."""
        before, inside, after = self.block, self._builder.module.new_id(), self._builder.module.new_id()
        self.emit(op.SELECTION_MERGE, after, 0)
        self.emit(op.BRANCH_CONDITIONAL, condition, inside, after)
        self.emit(op.LABEL, inside)
        self.block = inside
        return before, after

    def join(self, after: int) -> int:
        """End the block that `when` began; the id of the block it left from."""
        left = self.block
        self.emit(op.BRANCH, after)
        self.emit(op.LABEL, after)
        self.block = after
        return left

    def end(self, result: int | None = None) -> int:
        """Return `result`; the function's id."""
        if result is None:
            self.emit(op.RETURN)
        else:
            self.emit(op.RETURN_VALUE, result)
        self.emit(op.FUNCTION_END)
        self._builder.module.functions += self.body
        return self.id
