"""The instrument "delayed": the same kernel with its workgroups and warps in another order and at other speeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from warptile.runtimes.vulkan.instrument import spirv_ops as op
from warptile.runtimes.vulkan.instrument.build import Builder, FunctionBuilder
from warptile.runtimes.vulkan.instrument.checked import barrier_scope, library_text
from warptile.runtimes.vulkan.instrument.link import link
from warptile.runtimes.vulkan.instrument.module import Instruction, Module
from warptile.runtimes.vulkan.instrument.types import Types

MOST_SPINS = 64
"""Longest pause, in round trips of one word to the device's memory: longer than a step of any kernel here."""

_REPLACED = {
    op.WORKGROUP_ID: "group_of",
    op.NUM_WORKGROUPS: "grid",
    op.LOCAL_INVOCATION_INDEX: "index_of",
    op.LOCAL_INVOCATION_ID: "local_of",
    op.GLOBAL_INVOCATION_ID: "global_of",
    op.SUBGROUP_ID: "subgroup_of",
}
_LEAST_PRIMES = (1, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)


@dataclass(frozen=True)
class Order:
    """How one launch of `grid` workgroups runs: `dispatched` workgroups, those beyond the grid's without work.

    A workgroup takes place (linear * factor + shift) mod total, an invocation the index rotated by `rotation` warps.
    """

    grid: tuple[int, int, int]
    dispatched: tuple[int, int, int]
    seed: int
    factor: int
    shift: int
    total: int
    rotation: int

    @property
    def words(self) -> tuple[int, ...]:
        """As a launch's header has them, from its grid on."""
        return (*self.grid, self.seed, self.factor, self.shift, self.total, self.rotation)


def order(grid: tuple[int, int, int], seed: int, units: int, most: tuple[int, int, int]) -> Order:
    """The order of a seed. units: of the device; twice as many workgroups without work as it has are mixed in."""
    rng = Random(seed)
    real = math.prod(grid)
    wanted = real + 2 * max(1, units)
    x = min(wanted, most[0])
    y = -(-wanted // x)
    total = x * y
    fitting = [f for f in _LEAST_PRIMES if math.gcd(f, total) == 1 and f * total < 1 << 32]
    factor, shift = rng.choice(fitting), rng.randrange(total)
    return Order(grid, (x, y, 1), rng.getrandbits(32), factor, shift, total, rng.randrange(16))


def delayed(
    binary: bytes, special: Mapping[int, int], identity: int, debug_binding: int, compile_text: Callable[[str], bytes]
) -> tuple[bytes, int]:
    """(the rewritten module, invocations of a workgroup); arguments as of `checked`."""
    module = Module.parse(binary)
    types = Types(module, special)
    size = types.workgroup_size()
    own = _own_places(module, types)
    text = library_text("delays.comp", DEBUG_BINDING=debug_binding, VULKAN=int(module.vulkan_memory_model))
    kernel_end = len(module.functions)
    library = link(module, Module.parse(compile_text(text)))
    builder = Builder(module)
    _pause_at_barriers(module, types, builder, library["pause"], kernel_end)
    flat = builder.truth() if size[1] == size[2] == 1 else _false(builder)
    entry = module.entries[0]
    main = entry.words[1]
    f = builder.function(builder.void, [])
    vector = builder.type(op.TYPE_VECTOR, builder.uint, 3)
    real = f.call(builder.bool, library["enter"], builder.constant(identity), builder.constant(size[0]), flat)
    _, after = f.when(real)
    for kind, (variable, value_type) in own.items():
        arguments = _arguments(f, builder, kind, vector, size, flat)
        f.emit(op.STORE, variable, f.call(value_type, library[_REPLACED[kind]], *arguments))
    f.call(builder.void, main)
    f.call(builder.void, library["leave"])
    f.join(after)
    entry.words[1] = f.end()
    for mode in module.modes:
        if mode.words[0] == main:
            mode.words[0] = entry.words[1]
    return module.encode(), size[0] * size[1] * size[2]


def _arguments(
    f: FunctionBuilder, builder: Builder, kind: int, vector: int, size: tuple[int, int, int], flat: int
) -> list[int]:
    if kind == op.LOCAL_INVOCATION_ID:
        return [flat]
    if kind == op.GLOBAL_INVOCATION_ID:
        return [f.value(op.COMPOSITE_CONSTRUCT, vector, *map(builder.constant, size)), flat]
    return []


def _false(builder: Builder) -> int:
    return builder.null(builder.bool)


def _own_places(module: Module, types: Types) -> dict[int, tuple[int, int]]:
    """Turn the kernel's uses of built-in places into uses of private variables: {built-in: (variable, its type)}."""
    builder = Builder(module)
    made: dict[int, tuple[int, int]] = {}
    instead: dict[int, int] = {}
    for each in list(module.globals):
        if each.opcode != op.VARIABLE or each.words[2] != op.INPUT:
            continue
        kind = types.decorated(each.words[1], op.BUILT_IN)
        if kind in _REPLACED:
            value = types.pointee(each.words[0])[1]
            made[kind] = (builder.variable(value, op.PRIVATE), value)
            instead[each.words[1]] = made[kind][0]
    for each in module.functions:
        if each.opcode in (op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN) and each.words[2] in instead:
            element = types.pointee(each.words[0])[1]
            each.words[0] = builder.type(op.TYPE_POINTER, op.PRIVATE, element)
            each.words[2] = instead[each.words[2]]
        elif each.opcode == op.LOAD and each.words[2] in instead:
            each.words[2] = instead[each.words[2]]
    return made


def _pause_at_barriers(module: Module, types: Types, builder: Builder, pause: int, kernel_end: int) -> None:
    """A pause before and after every barrier of the kernel's own functions."""
    paused: list[Instruction] = []
    for position, each in enumerate(module.functions):
        around = [pause] if position < kernel_end and barrier_scope(each, types) is not None else []
        paused += [_call(module, builder, function) for function in around]
        paused.append(each)
        paused += [_call(module, builder, function) for function in around]
    module.functions = paused


def _call(module: Module, builder: Builder, function: int) -> Instruction:
    return Instruction(op.FUNCTION_CALL, [builder.void, module.new_id(), function])
