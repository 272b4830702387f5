"""Values as words of 32 bits: indices to compare, and what is written to shared memory."""

from __future__ import annotations

from warptile.contracts.errors import CompileFailed
from warptile.runtimes.vulkan.instrument import spirv_ops as op
from warptile.runtimes.vulkan.instrument.build import Builder, FunctionBuilder
from warptile.runtimes.vulkan.instrument.types import Types


def as_uint(f: FunctionBuilder, builder: Builder, types: Types, value: int, kind: int) -> int:
    """An index of any whole-number type as uint; a negative one is beyond every extent."""
    found = types.kind(kind)
    if kind == builder.uint:
        return value
    if found.opcode != op.TYPE_INT:
        raise CompileFailed("instrument: an index that is no whole number")
    if found.words[1] == 32:
        return f.value(op.BITCAST, builder.uint, value)
    return f.value(op.U_CONVERT, builder.uint, value)


def all_bits(f: FunctionBuilder, builder: Builder, types: Types, value: int, kind: int) -> list[int]:
    """32 bits of every scalar of a value, in order."""
    if types.is_scalar(kind):
        return [_bits(f, builder, types, value, kind)]
    found = []
    for member in range(types.length(kind) or 0):
        part = types.element(kind, member if types.is_struct(kind) else 0)
        found += all_bits(f, builder, types, f.value(op.COMPOSITE_EXTRACT, part, value, member), part)
    return found


def _bits(f: FunctionBuilder, builder: Builder, types: Types, value: int, kind: int) -> int:
    found = types.kind(kind)
    if kind == builder.uint:
        return value
    if found.opcode == op.TYPE_BOOL:
        return f.value(op.SELECT, builder.uint, value, builder.constant(1), builder.constant(0))
    if found.words[1] == 32:
        return f.value(op.BITCAST, builder.uint, value)
    if found.opcode == op.TYPE_INT:
        return f.value(op.U_CONVERT, builder.uint, value)
    wide = f.value(op.F_CONVERT, builder.type(op.TYPE_FLOAT, 32), value)
    return f.value(op.BITCAST, builder.uint, wide)
