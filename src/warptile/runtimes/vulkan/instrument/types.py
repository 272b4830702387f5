"""What a module's types and constants are: sizes, strides, components, values of specialization constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from warptile.contracts.errors import CompileFailed
from warptile.runtimes.vulkan.instrument import spirv_ops as op
from warptile.runtimes.vulkan.instrument.module import Instruction, Module

_MASK = 0xFFFFFFFF


def _signed(value: int) -> int:
    return value - (1 << 32) if value & 0x80000000 else value


def _quotient(a: int, b: int) -> int:
    return int(_signed(a) / _signed(b)) if b else 0


_OPERATIONS: dict[int, Callable[..., int]] = {
    113: lambda a: a,
    114: lambda a: a,
    124: lambda a: a,
    126: lambda a: -a,
    op.I_ADD: lambda a, b: a + b,
    op.I_SUB: lambda a, b: a - b,
    op.I_MUL: lambda a, b: a * b,
    op.U_DIV: lambda a, b: a // b if b else 0,
    135: _quotient,
    op.U_MOD: lambda a, b: a % b if b else 0,
    138: lambda a, b: _signed(a) - _signed(b) * _quotient(a, b),
    139: lambda a, b: _signed(a) % _signed(b) if b else 0,
    164: lambda a, b: int(bool(a) == bool(b)),
    165: lambda a, b: int(bool(a) != bool(b)),
    166: lambda a, b: int(bool(a) or bool(b)),
    op.LOGICAL_AND: lambda a, b: int(bool(a) and bool(b)),
    168: lambda a: int(not a),
    op.SELECT: lambda c, a, b: a if c else b,
    170: lambda a, b: int(a == b),
    171: lambda a, b: int(a != b),
    172: lambda a, b: int(a > b),
    173: lambda a, b: int(_signed(a) > _signed(b)),
    174: lambda a, b: int(a >= b),
    175: lambda a, b: int(_signed(a) >= _signed(b)),
    176: lambda a, b: int(a < b),
    177: lambda a, b: int(_signed(a) < _signed(b)),
    178: lambda a, b: int(a <= b),
    179: lambda a, b: int(_signed(a) <= _signed(b)),
    194: lambda a, b: a >> b,
    195: lambda a, b: _signed(a) >> b,
    196: lambda a, b: a << b,
    197: lambda a, b: a | b,
    198: lambda a, b: a ^ b,
    199: lambda a, b: a & b,
    200: lambda a: ~a,
}


@dataclass(frozen=True)
class Matrix:
    """A cooperative matrix type: rows x columns of components of so many bytes, spread over a scope."""

    component: int
    component_bytes: int
    rows: int
    columns: int
    scope: int


class Types:
    """Types and constants of one module under given specialization constants {id: value}."""

    def __init__(self, module: Module, special: Mapping[int, int]) -> None:
        self._module = module
        self._defined: dict[int, Instruction] = {}
        self._values: dict[int, int] = {}
        self._decorated: dict[tuple[int, int], int] = {}
        self._members: dict[tuple[int, int, int], int] = {}
        for each in module.annotations:
            w = each.words
            if each.opcode == op.DECORATE:
                self._decorated[w[0], w[1]] = w[2] if len(w) > 2 else 0
            elif each.opcode == op.MEMBER_DECORATE:
                self._members[w[0], w[1], w[2]] = w[3] if len(w) > 3 else 0
        for each in module.globals:
            self._note(each, special)

    def decorated(self, target: int, kind: int) -> int | None:
        """The first literal of a decoration, None without it."""
        return self._decorated.get((target, kind))

    def kind(self, identity: int) -> Instruction:
        """The instruction that defines a type or constant."""
        return self._defined[identity]

    def value(self, identity: int) -> int:
        """A constant's 32 bits, specialization done. Raises CompileFailed for what is no whole-number constant."""
        try:
            return self._values[identity]
        except KeyError:
            raise CompileFailed(f"instrument: %{identity} is no whole-number constant") from None

    def constant(self, identity: int) -> int | None:
        """As `value`; None for what is no constant."""
        return self._values.get(identity)

    def pointee(self, pointer_type: int) -> tuple[int, int]:
        """(storage class, type pointed to)."""
        _, storage, pointed = self._defined[pointer_type].words
        return storage, pointed

    def element(self, type_id: int, member: int = 0) -> int:
        """The type of an array's or vector's elements, or of a struct's member."""
        found = self._defined[type_id]
        return found.words[1 + member] if found.opcode == op.TYPE_STRUCT else found.words[1]

    def length(self, type_id: int) -> int | None:
        """Elements of an array, vector or struct; None for a runtime array."""
        found = self._defined[type_id]
        if found.opcode == op.TYPE_ARRAY:
            return self.value(found.words[2])
        if found.opcode in (op.TYPE_VECTOR, op.TYPE_MATRIX):
            return found.words[2]
        if found.opcode == op.TYPE_STRUCT:
            return len(found.words) - 1
        return None

    def is_struct(self, type_id: int) -> bool:
        """Whether elements are picked by literal member numbers."""
        return self._defined[type_id].opcode == op.TYPE_STRUCT

    def is_scalar(self, type_id: int) -> bool:
        """Whether it is a number or a bool."""
        return self._defined[type_id].opcode in (op.TYPE_INT, op.TYPE_FLOAT, op.TYPE_BOOL)

    def offset(self, type_id: int, member: int) -> int:
        """Bytes from a struct's start to a member."""
        return self._members.get((type_id, member, op.OFFSET), 0)

    def stride(self, type_id: int) -> int:
        """Bytes from one element of an array or vector to the next, in memory with a layout."""
        declared = self.decorated(type_id, op.ARRAY_STRIDE)
        return self.nbytes(self.element(type_id)) if declared is None else declared

    def nbytes(self, type_id: int) -> int:
        """Bytes from the first to the last of a value of the type, by its decorations."""
        found = self._defined[type_id]
        if found.opcode in (op.TYPE_INT, op.TYPE_FLOAT):
            return found.words[1] // 8
        if found.opcode == op.TYPE_BOOL:
            return 4
        if found.opcode == op.TYPE_STRUCT:
            members = range(len(found.words) - 1)
            return max((self.offset(type_id, m) + self.nbytes(self.element(type_id, m)) for m in members), default=0)
        length = self.length(type_id)
        if length is None:
            raise CompileFailed("instrument: a whole runtime array is loaded or stored")
        return (length - 1) * self.stride(type_id) + self.nbytes(self.element(type_id)) if length else 0

    def components(self, type_id: int) -> int:
        """Scalars in a value of the type."""
        if self.is_scalar(type_id):
            return 1
        if self.is_struct(type_id):
            return sum(self.components(part) for part in self._defined[type_id].words[1:])
        length = self.length(type_id)
        if length is None:
            raise CompileFailed("instrument: a runtime array in shared memory")
        return length * self.components(self.element(type_id))

    def member_component(self, type_id: int, member: int) -> int:
        """Scalars before a struct's member."""
        return sum(self.components(part) for part in self._defined[type_id].words[1 : 1 + member])

    def scalar(self, type_id: int) -> int:
        """The type of a value's first scalar."""
        while not self.is_scalar(type_id):
            type_id = self.element(type_id)
        return type_id

    def matrix(self, type_id: int) -> Matrix:
        """Of a cooperative matrix type."""
        _, component, scope, rows, columns, *_ = self._defined[type_id].words
        return Matrix(component, self.nbytes(component), self.value(rows), self.value(columns), self.value(scope))

    def workgroup_size(self) -> tuple[int, int, int]:
        """Invocations of a workgroup along x, y, z."""
        for identity, found in self._defined.items():
            if self.decorated(identity, op.BUILT_IN) == op.WORKGROUP_SIZE:
                x, y, z = (self.value(part) for part in found.words[2:5])
                return x, y, z
        for mode in self._module.modes:
            if mode.opcode == op.EXECUTION_MODE and mode.words[1] == op.LOCAL_SIZE:
                x, y, z = mode.words[2:5]
                return x, y, z
            if mode.opcode == op.EXECUTION_MODE_ID and mode.words[1] == op.LOCAL_SIZE_ID:
                x, y, z = (self.value(part) for part in mode.words[2:5])
                return x, y, z
        raise CompileFailed("instrument: the module does not say its workgroup's size")

    def _note(self, each: Instruction, special: Mapping[int, int]) -> None:
        w = each.words
        if op.TYPE_VOID <= each.opcode <= op.TYPE_FUNCTION or each.opcode == op.TYPE_COOPERATIVE_MATRIX:
            self._defined[w[0]] = each
            return
        if each.opcode in (op.LINE, op.NO_LINE):
            return
        self._defined[w[1]] = each
        if each.opcode in (op.CONSTANT_TRUE, op.CONSTANT_FALSE):
            self._values[w[1]] = int(each.opcode == op.CONSTANT_TRUE)
        elif each.opcode == op.CONSTANT:
            self._values[w[1]] = w[2]
        elif each.opcode == op.CONSTANT_NULL:
            self._values[w[1]] = 0
        elif each.opcode in (op.SPEC_CONSTANT, op.SPEC_CONSTANT_TRUE, op.SPEC_CONSTANT_FALSE):
            default = w[2] if each.opcode == op.SPEC_CONSTANT else int(each.opcode == op.SPEC_CONSTANT_TRUE)
            number = self.decorated(w[1], op.SPEC_ID)
            self._values[w[1]] = default if number is None else special.get(number, default) & _MASK
        elif each.opcode == op.SPEC_CONSTANT_OP:
            operation, operands = _OPERATIONS.get(w[2]), [self._values.get(part) for part in w[3:]]
            if operation is not None and None not in operands:
                self._values[w[1]] = operation(*operands) & _MASK
