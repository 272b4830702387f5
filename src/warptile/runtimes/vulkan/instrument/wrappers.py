"""A checked access: a function that asks the library first, and touches memory only where that is inside.

Calls to it take the access's place, so that a kernel's own control flow stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warptile.contracts.errors import CompileFailed
from warptile.runtimes.vulkan.instrument import spirv_ops as op
from warptile.runtimes.vulkan.instrument.accesses import Access, pointer_at
from warptile.runtimes.vulkan.instrument.bits import all_bits, as_uint
from warptile.runtimes.vulkan.instrument.build import Builder, FunctionBuilder
from warptile.runtimes.vulkan.instrument.module import Instruction
from warptile.runtimes.vulkan.instrument.types import Matrix, Types

_CONSTANT_OPERANDS = {op.COOPERATIVE_MATRIX_LOAD: (3,), op.COOPERATIVE_MATRIX_STORE: (2,)}
_UNROLLED = 4
"""Scalars of a load that are asked for one by one, not in a loop."""

_STRIDE_AT = {op.COOPERATIVE_MATRIX_LOAD: 4, op.COOPERATIVE_MATRIX_STORE: 3}


@dataclass(frozen=True)
class SharedVariable:
    """first: the number of its first shadow cell, one a scalar; cells: how many."""

    first: int
    cells: int


@dataclass
class _Place:
    """Where an access goes: `inner` says whether all inner indices are inside; the rest is in bytes or in cells."""

    inner: int
    bad_index: int
    bad_length: int
    outer: int
    outer_stride: int
    at: int
    type_id: int
    indices: list[int]


class Wrappers:
    """Makes the functions, one for every kind of access.

    result_types: type of each id of the module's functions. reads_beyond: reads beyond a buffer are no faults.
    """

    def __init__(
        self,
        builder: Builder,
        types: Types,
        library: Mapping[str, int],
        shared: Mapping[int, SharedVariable],
        result_types: Mapping[int, int],
        reads_beyond: bool,
    ) -> None:
        self._builder = builder
        self._types = types
        self._library = library
        self._shared = shared
        self._result_types = result_types
        self._reads_beyond = reads_beyond
        self._made: dict[tuple[object, ...], int] = {}

    def call(self, access: Access, site: int) -> Instruction:
        """The call that takes an access's place; `site` is what a report names it by."""
        each, builder = access.instruction, self._builder
        w = each.words
        has_result = each.opcode not in (op.STORE, op.ATOMIC_STORE, op.COOPERATIVE_MATRIX_STORE)
        steps = self._steps(access)
        operands = self._operands(each)
        passed = [w[i] for i in operands]
        kinds = [self._type_of(identity) for identity in passed]
        constants = tuple(word for i, word in enumerate(w) if i not in operands and i != pointer_at(each.opcode))
        result = w[0] if has_result else builder.void
        if has_result:
            constants = constants[2:]
        key = (each.opcode, access.pointer.variable, steps, result, tuple(kinds), constants)
        if key not in self._made:
            self._made[key] = self._make(access, result, kinds)
        dynamic = [i for i, step in zip(access.pointer.indices, steps, strict=True) if step[0] == "index"]
        name = w[1] if has_result else builder.module.new_id()
        return Instruction(op.FUNCTION_CALL, [result, name, self._made[key], *dynamic, *passed, builder.constant(site)])

    def _steps(self, access: Access) -> tuple[tuple[str, int], ...]:
        """Each index of the chain: ("member", its number) or ("index", its type)."""
        types = self._types
        at = types.pointee(types.kind(access.pointer.variable).words[0])[1]
        steps = []
        for index in access.pointer.indices:
            member = types.value(index) if types.is_struct(at) else 0
            steps.append(("member", member) if types.is_struct(at) else ("index", self._type_of(index)))
            at = types.element(at, member)
        return tuple(steps)

    def _operands(self, each: Instruction) -> list[int]:
        """Positions of operands that are handed to the wrapper: values and strides."""
        if each.opcode == op.STORE:
            return [1]
        if each.opcode == op.COOPERATIVE_MATRIX_LOAD:
            return [4]
        if each.opcode == op.COOPERATIVE_MATRIX_STORE:
            return [1, 3]
        if each.opcode == op.ATOMIC_STORE:
            return [3]
        if each.opcode in op.ATOMICS:
            compare = each.opcode in (230, 231)
            return list(range(6 if compare else 5, len(each.words)))
        return []

    def _type_of(self, identity: int) -> int:
        found = self._result_types.get(identity)
        return self._types.kind(identity).words[0] if found is None else found

    def _make(self, access: Access, result: int, kinds: list[int]) -> int:
        builder, types, each = self._builder, self._types, access.instruction
        steps = self._steps(access)
        index_types = [kind for what, kind in steps if what == "index"]
        f = builder.function(result, [*index_types, *kinds, builder.uint])
        indices, values, site = f.parameters[: len(index_types)], f.parameters[len(index_types) : -1], f.parameters[-1]
        shared = self._shared.get(access.pointer.variable)
        place = self._place(f, access, steps, indices, shared is not None)
        matrix = types.matrix(self._matrix_type(each, kinds)) if each.opcode in _STRIDE_AT else None
        lines = _lines(types, each, matrix) if matrix is not None else (1, 0)
        stride = as_uint(f, self._builder, types, values[-1], kinds[-1]) if matrix is not None else 0
        if shared is not None:
            inside = self._inside_shared(f, place, shared, lines, stride, site)
        else:
            binding = builder.constant(types.decorated(access.pointer.variable, op.BINDING) or 0)
            reads = each.opcode in (op.LOAD, op.COOPERATIVE_MATRIX_LOAD)
            ask = self._library["buffer_within" if reads and self._reads_beyond else "buffer_inside"]
            inside = self._inside_buffer(f, ask, place, binding, lines, stride, site)
        otherwise = self._nothing(f, result, matrix) if result != builder.void else 0
        before, after = f.when(inside)
        if shared is not None:
            self._note_shared(f, each, place, values, kinds, lines, stride, site)
        touched = self._touch(f, access, result, steps, indices, values)
        if shared is None and (each.opcode in (op.STORE, op.COOPERATIVE_MATRIX_STORE)):
            self._note_written(f, place, binding, lines, stride, site)
        left = f.join(after)
        if result == builder.void:
            return f.end()
        return f.end(f.value(op.PHI, result, touched, left, otherwise, before))

    def _place(
        self, f: FunctionBuilder, access: Access, steps: tuple[tuple[str, int], ...], given: list[int], cells: bool
    ) -> _Place:
        builder, types = self._builder, self._types
        at = types.pointee(types.kind(access.pointer.variable).words[0])[1]
        zero = builder.constant(0)
        place = _Place(builder.truth(), zero, zero, zero, 1, zero, at, [])
        fixed, left = 0, list(given)
        for what, number in steps:
            if what == "member":
                fixed += types.member_component(at, number) if cells else types.offset(at, number)
                place.indices.append(builder.constant(number))
                at = types.element(at, number)
                continue
            raw = left.pop(0)
            index = as_uint(f, self._builder, types, raw, number)
            length = types.length(at)
            if length is None:
                place.outer, place.outer_stride = index, types.stride(at)
            else:
                limit = builder.constant(length)
                good = f.value(op.U_LESS_THAN, builder.bool, index, limit)
                place.bad_index = f.value(op.SELECT, builder.uint, good, place.bad_index, index)
                place.bad_length = f.value(op.SELECT, builder.uint, good, place.bad_length, limit)
                place.inner = f.value(op.LOGICAL_AND, builder.bool, place.inner, good)
                step = types.components(types.element(at)) if cells else types.stride(at)
                place.at = f.add(place.at, f.scaled(index, step))
            place.indices.append(raw)
            at = types.element(at)
        place.at = f.add(place.at, builder.constant(fixed)) if fixed else place.at
        place.type_id = at
        return place

    def _inside_shared(
        self, f: FunctionBuilder, place: _Place, shared: SharedVariable, lines: tuple[int, int], stride: int, site: int
    ) -> int:
        builder = self._builder
        inside, index, length = place.inner, place.bad_index, place.bad_length
        if lines[1]:
            per = self._types.components(place.type_id)
            span = lines[1] // self._types.nbytes(self._types.scalar(place.type_id))
            last = f.add(
                place.at, f.scaled(f.value(op.I_MUL, builder.uint, stride, builder.constant(lines[0] - 1)), per)
            )
            limit = builder.constant(max(0, shared.cells - span) + 1)
            whole = f.value(op.U_LESS_THAN, builder.bool, last, limit)
            index = f.value(op.SELECT, builder.uint, inside, last, index)
            length = f.value(op.SELECT, builder.uint, inside, limit, length)
            inside = f.value(op.LOGICAL_AND, builder.bool, inside, whole)
        place.at = f.add(place.at, builder.constant(shared.first))
        return f.call(builder.bool, self._library["shared_inside"], inside, index, length, site)

    def _inside_buffer(
        self, f: FunctionBuilder, ask: int, place: _Place, binding: int, lines: tuple[int, int], stride: int, site: int
    ) -> int:
        builder = self._builder
        size = lines[1] or self._types.nbytes(place.type_id)
        index = place.outer
        if lines[1]:
            if place.outer_stride != self._types.nbytes(place.type_id):
                raise CompileFailed("instrument: a matrix in a buffer of structures")
            index = f.add(index, f.value(op.I_MUL, builder.uint, stride, builder.constant(lines[0] - 1)))
        end = f.add(place.at, builder.constant(size))
        inner = (place.inner, place.bad_index, place.bad_length)
        stride_id = builder.constant(place.outer_stride)
        return f.call(builder.bool, ask, binding, index, stride_id, end, *inner, site)

    def _note_written(
        self, f: FunctionBuilder, place: _Place, binding: int, lines: tuple[int, int], stride: int, site: int
    ) -> None:
        builder = self._builder
        step = builder.constant(place.outer_stride)
        if lines[1]:
            count, size = builder.constant(lines[0]), builder.constant(lines[1])
            arguments = (binding, place.outer, step, place.at, count, stride, size, site)
            f.call(builder.void, self._library["buffer_written_lines"], *arguments)
        else:
            size = builder.constant(self._types.nbytes(place.type_id))
            f.call(builder.void, self._library["buffer_written"], binding, place.outer, step, place.at, size, site)

    def _note_shared(
        self,
        f: FunctionBuilder,
        each: Instruction,
        place: _Place,
        values: list[int],
        kinds: list[int],
        lines: tuple[int, int],
        stride: int,
        site: int,
    ) -> None:
        builder, types, library = self._builder, self._types, self._library
        count = types.components(place.type_id)
        if lines[1]:
            cells = builder.constant(lines[1] // types.nbytes(types.scalar(place.type_id)))
            name = "shared_reads_lines" if each.opcode == op.COOPERATIVE_MATRIX_LOAD else "shared_writes_lines"
            arguments = (place.at, builder.constant(lines[0]), f.scaled(stride, count), cells, site)
            f.call(builder.void, library[name], *arguments)
        elif each.opcode == op.LOAD and count <= _UNROLLED:
            for number in range(count):
                cell = f.add(place.at, builder.constant(number)) if number else place.at
                f.call(builder.void, library["shared_read"], cell, site)
        elif each.opcode == op.LOAD:
            f.call(builder.void, library["shared_reads"], place.at, builder.constant(count), site)
        elif each.opcode == op.STORE:
            for number, bits in enumerate(all_bits(f, builder, types, values[0], kinds[0])):
                cell = f.add(place.at, builder.constant(number)) if number else place.at
                f.call(builder.void, library["shared_write"], cell, bits, site)
        else:
            reads = builder.constant(int(each.opcode != op.ATOMIC_STORE))
            f.call(builder.void, library["shared_atomic"], place.at, reads, site)

    def _touch(
        self,
        f: FunctionBuilder,
        access: Access,
        result: int,
        steps: tuple[tuple[str, int], ...],
        given: list[int],
        values: list[int],
    ) -> int:
        """The access itself, inside the wrapper; the id of what it gives."""
        builder, types, each = self._builder, self._types, access.instruction
        left = list(given)
        chain = [builder.constant(number) if what == "member" else left.pop(0) for what, number in steps]
        variable = access.pointer.variable
        storage, at = types.pointee(types.kind(variable).words[0])
        for what, number in steps:
            at = types.element(at, number if what == "member" else 0)
        pointer = variable
        if chain:
            kind = builder.type(op.TYPE_POINTER, storage, at)
            pointer = f.value(op.ACCESS_CHAIN, kind, variable, *chain)
        words = list(each.words)
        words[pointer_at(each.opcode) or 0] = pointer
        for position, value in zip(self._operands(each), values, strict=True):
            words[position] = value
        if result == builder.void:
            f.emit(each.opcode, *words)
            return 0
        return f.value(each.opcode, result, *words[2:])

    def _matrix_type(self, each: Instruction, kinds: list[int]) -> int:
        return each.words[0] if each.opcode == op.COOPERATIVE_MATRIX_LOAD else kinds[0]

    def _nothing(self, f: FunctionBuilder, result: int, matrix: Matrix | None) -> int:
        """Zero, for what is not read. A cooperative matrix is made of one constituent."""
        if matrix is None:
            return self._builder.null(result)
        return f.value(op.COMPOSITE_CONSTRUCT, result, self._builder.null(self._types.kind(result).words[1]))


def _lines(types: Types, each: Instruction, matrix: Matrix) -> tuple[int, int]:
    """(lines of a matrix in memory, bytes of a line)."""
    layout = types.value(each.words[_CONSTANT_OPERANDS[each.opcode][0]])
    if len(each.words) <= _STRIDE_AT[each.opcode]:
        raise CompileFailed("instrument: a matrix access without a stride")
    if layout == op.ROW_MAJOR:
        return matrix.rows, matrix.columns * matrix.component_bytes
    return matrix.columns, matrix.rows * matrix.component_bytes
