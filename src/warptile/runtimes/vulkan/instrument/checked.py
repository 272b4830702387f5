"""The instrument "checked": a kernel's own SPIR-V with every access to shared memory and buffers asked for first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources

from warptile.contracts.errors import DoesNotFit
from warptile.runtimes.vulkan.instrument import spirv_ops as op
from warptile.runtimes.vulkan.instrument.accesses import Access, accesses
from warptile.runtimes.vulkan.instrument.build import Builder
from warptile.runtimes.vulkan.instrument.link import link
from warptile.runtimes.vulkan.instrument.module import Instruction, Module, text_of
from warptile.runtimes.vulkan.instrument.types import Types
from warptile.runtimes.vulkan.instrument.wrappers import SharedVariable, Wrappers

_CELL_WORDS = {(False, False): 7, (True, False): 9, (False, True): 12, (True, True): 12}
_ENDS_WORDS = 2
_MOST_INVOCATIONS = 1024


@dataclass(frozen=True)
class Site:
    """An access in the source text. what: "read", "write" or "atomic". shared: else through a buffer.

    first, per: of shared memory, the variable's first cell and the cells of one of its elements; of a buffer, 0 and
    the bytes of one.
    """

    line: int
    what: str
    name: str
    shared: bool
    binding: int
    first: int
    per: int


@dataclass(frozen=True)
class Checked:
    """module: SPIR-V, which declares `capabilities`. sites: by number. shadow_words, invocations: of one workgroup."""

    module: bytes
    sites: tuple[Site, ...]
    shadow_words: int
    invocations: int
    capabilities: frozenset[int]


def library_text(name: str, **options: int) -> str:
    """The checking library as one translation unit."""
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    defines = "".join(
        f"#define {key} {value}\n" for key, value in options.items() if key not in ("SUBGROUPS", "VULKAN")
    )
    subgroups = "#extension GL_KHR_shader_subgroup_basic : require\n" if options.get("SUBGROUPS") else ""
    model = "#pragma use_vulkan_memory_model\n" if options.get("VULKAN") else ""
    return f"#version 450\n{model}{subgroups}#define SUBGROUPS {options.get('SUBGROUPS', 0)}\n{defines}{text}"


def checked(
    binary: bytes,
    special: Mapping[int, int],
    identity: int,
    debug_binding: int,
    compile_text: Callable[[str], bytes],
    reads_beyond: bool = False,
) -> Checked:
    """Rewrite a kernel's SPIR-V, with debug lines, for given specialization constants.

    identity: what the module writes to say that it ran. debug_binding: where the header, reports and shadow are bound.
    compile_text: GLSL to SPIR-V, for the library. reads_beyond: as of `Source`. Raises CompileFailed for what it cannot
    follow, DoesNotFit for a workgroup of more than 1024.
    """
    module = Module.parse(binary)
    types = Types(module, special)
    x, y, z = types.workgroup_size()
    if x * y * z > _MOST_INVOCATIONS:
        raise DoesNotFit(f"a checked workgroup <= {_MOST_INVOCATIONS}", str(x * y * z))
    found = list(accesses(module, types))
    shared = _cells(module, types)
    subgroups = _subgroup_barriers(module, types) or module.has_capability(op.CAPABILITY_COOPERATIVE_MATRIX)
    atomic = any(a.instruction.opcode in op.ATOMICS and a.pointer.variable in shared for a in found)
    cell_words = _CELL_WORDS[subgroups, atomic]
    text = library_text(
        "checks.comp", DEBUG_BINDING=debug_binding, SUBGROUPS=int(subgroups), ATOMICS=int(atomic), CELL=cell_words,
        VULKAN=int(module.vulkan_memory_model),
    )  # fmt: skip
    results = result_types(module, types)
    library = link(module, Module.parse(compile_text(text)))
    builder = Builder(module)
    wrappers = Wrappers(builder, types, library, shared, results, reads_beyond)
    names = _Names(module, types, shared)
    sites: dict[Site, int] = {}
    for access in found:
        site = names.site(access)
        number = sites.setdefault(site, len(sites) + 1)
        module.functions[access.position] = wrappers.call(access, number)
    _declare_narrow_types(module)
    _count_barriers(module, types, builder, library)
    cells = sum(variable.cells for variable in shared.values())
    words = _ENDS_WORDS + cells * cell_words
    enter = [builder.constant(identity), builder.constant(words)]
    wrap_main(module, builder, lambda f: f.call(builder.void, library["enter"], *enter), library["leave"])
    if not module.has_capability(op.CAPABILITY_COOPERATIVE_MATRIX):
        keep_loops(module)
    capabilities = frozenset(each.words[0] for each in module.capabilities)
    return Checked(module.encode(), tuple(sites), words, x * y * z, capabilities)


def result_types(module: Module, types: Types) -> dict[int, int]:
    """The type of every id that a function's instructions define."""
    known = {each.words[0] for each in module.globals if op.TYPE_VOID <= each.opcode <= op.TYPE_FUNCTION}
    known |= {each.words[0] for each in module.globals if each.opcode == op.TYPE_COOPERATIVE_MATRIX}
    return {w[1]: w[0] for each in module.functions if len(w := each.words) > 1 and w[0] in known}


def wrap_main(module: Module, builder: Builder, begin: Callable[..., object], leave: int | None) -> None:
    """A new entry point: `begin`, then what was `main`, then `leave`."""
    entry = module.entries[0]
    old = entry.words[1]
    f = builder.function(builder.void, [])
    begin(f)
    f.call(builder.void, old)
    if leave is not None:
        f.call(builder.void, leave)
    entry.words[1] = f.end()
    for mode in module.modes:
        if mode.words[0] == old:
            mode.words[0] = entry.words[1]


def keep_loops(module: Module) -> None:
    """No loop is unrolled: each access in it would bring its checks along."""
    for each in module.functions:
        if each.opcode == op.LOOP_MERGE and each.words[2] in (0, 1):
            each.words[2] = op.DONT_UNROLL


def _cells(module: Module, types: Types) -> dict[int, SharedVariable]:
    first, found = 0, {}
    for each in module.globals:
        if each.opcode == op.VARIABLE and each.words[2] == op.WORKGROUP:
            cells = types.components(types.pointee(each.words[0])[1])
            found[each.words[1]] = SharedVariable(first, cells)
            first += cells
    return found


def _declare_narrow_types(module: Module) -> None:
    """Halves, 16-bit and 8-bit integers pass through functions here: more than storage of 16 and 8 bits allows."""
    for each in list(module.globals):
        if each.opcode in (op.TYPE_INT, op.TYPE_FLOAT):
            number = op.CAPABILITY_OF_WIDTH.get((each.opcode, each.words[1]))
            if number is not None and not module.has_capability(number):
                module.capabilities.append(Instruction(op.CAPABILITY, [number]))


def barrier_scope(each: Instruction, types: Types) -> int | None:
    """Whose invocations wait for each other and see each other's shared memory; None for other instructions."""
    if each.opcode != op.CONTROL_BARRIER or not types.value(each.words[2]) & op.SEMANTICS_WORKGROUP_MEMORY:
        return None
    return types.value(each.words[0])


def _subgroup_barriers(module: Module, types: Types) -> bool:
    return any(barrier_scope(each, types) == op.SCOPE_SUBGROUP for each in module.functions)


def _count_barriers(module: Module, types: Types, builder: Builder, library: Mapping[str, int]) -> None:
    passed = {op.SCOPE_WORKGROUP: "passed_workgroup_barrier", op.SCOPE_SUBGROUP: "passed_subgroup_barrier"}
    counted: list[Instruction] = []
    for each in module.functions:
        counted.append(each)
        name = passed.get(barrier_scope(each, types) or 0)
        if name is not None:
            counted.append(Instruction(op.FUNCTION_CALL, [builder.void, module.new_id(), library[name]]))
    module.functions = counted


class _Names:
    """What the source calls a variable, and where an access to it stands."""

    def __init__(self, module: Module, types: Types, shared: Mapping[int, SharedVariable]) -> None:
        self._types = types
        self._shared = shared
        self._names = module.names_of()
        self._members = {
            (w[0], w[1]): text_of(w[2:]) for each in module.names if each.opcode == op.MEMBER_NAME and (w := each.words)
        }

    def site(self, access: Access) -> Site:
        types, variable = self._types, access.pointer.variable
        opcode = access.instruction.opcode
        atomic = opcode in op.ATOMICS
        writes = opcode in (op.STORE, op.COOPERATIVE_MATRIX_STORE)
        what = "atomic" if atomic else "write" if writes else "read"
        at = types.pointee(types.kind(variable).words[0])[1]
        shared = self._shared.get(variable)
        if shared is not None:
            indexed = types.length(at) and not types.is_struct(at)
            per = types.components(types.element(at)) if indexed else 1
            return Site(access.line, what, self._names.get(variable, "?"), True, 0, shared.first, per)
        name, per = self._names.get(variable, "?"), 1
        if types.is_struct(at) and access.pointer.indices:
            member = types.value(access.pointer.indices[0])
            name = self._members.get((at, member), name)
            at = types.element(at, member)
            per = types.stride(at) if types.length(at) is None else 1
        return Site(access.line, what, name, False, types.decorated(variable, op.BINDING) or 0, 0, per)
