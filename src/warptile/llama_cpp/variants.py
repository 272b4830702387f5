"""Which shader sources are compiled with which macros: the checkout's own generator, run by the reader."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from warptile.contracts import UnusableInput
from warptile.gguf.escape import shown
from warptile.llama_cpp.checkout import GENERATOR, Checkout, Unit
from warptile.llama_cpp.cpp.evaluate import Evaluator, Native
from warptile.llama_cpp.cpp.scopes import Closure, Left, Note, Thrown
from warptile.llama_cpp.cpp.values import Mapping, Sequence, Unknown, Value

ENTRY = "process_shaders"
COMPILE = "string_to_spv"


@dataclass(frozen=True)
class Variant:
    """A compiled shader. name: as the host's arrays call it; source: the .comp file; defines: the build's macros."""

    name: str
    source: str
    defines: tuple[tuple[str, str], ...]

    def has(self, macro: str) -> bool:
        """Whether it is built with a macro."""
        return any(name == macro for name, _ in self.defines)


def _starts_with(arguments: list[Value], line: int) -> Value:
    text, part = arguments
    return text.startswith(part) if isinstance(text, str) and isinstance(part, str) else Unknown("a prefix", line)


def _ends_with(arguments: list[Value], line: int) -> Value:
    text, part = arguments
    return text.endswith(part) if isinstance(text, str) and isinstance(part, str) else Unknown("a suffix", line)


def _uppercase(arguments: list[Value], line: int) -> Value:
    return arguments[0].upper() if isinstance(arguments[0], str) else Unknown("an upper case", line)


class _Named(Exception):
    """Carries a name out of the generator's own function that makes it."""


class Variants:
    """The matmul shaders of a checkout. Raises UnusableInput where it has no generator."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._path = checkout.shader(GENERATOR)

    @cached_property
    def all(self) -> dict[str, Variant]:
        """Variants by name; notes of what was not understood are in `notes`."""
        self.notes: list[Note] = []
        unit = Unit(self._path)
        entry, compile_one = unit.resolve(ENTRY), unit.resolve(COMPILE)
        if not isinstance(entry, Closure) or not isinstance(compile_one, Closure):
            raise UnusableInput(f"{shown(self._path)}: no {ENTRY} and {COMPILE}: this version is not understood")
        found: dict[str, Variant] = {}

        def name_of(arguments: list[Value], line: int) -> Value:
            if isinstance(arguments[-1], str):
                raise _Named(arguments[-1].removesuffix(".spv"))
            return Unknown("a path", line)

        def called(arguments: list[Value], line: int) -> Value:
            first = next((i for i, each in enumerate(arguments) if isinstance(each, Closure)), None)
            return Unknown("a task", line) if first is None else namer.call(arguments[first], arguments[first + 1 :])

        namer = Evaluator({"join_paths": name_of, "async": called}, unit.resolve, unit.struct_of)

        def compiled(arguments: list[Value], line: int) -> Value:
            name, source, defines = arguments[:3]
            if not isinstance(name, str) or not isinstance(source, str):
                evaluator.notes.append(Note(line, "a shader whose name or source is not known"))
                return 0
            if not name.startswith(("matmul", "quantize_q8_1")):
                return 0
            macros = _macros(defines)
            if macros is None:
                evaluator.notes.append(Note(line, f"the macros of {name}"))
                return 0
            try:
                namer.call(compile_one, list(arguments))
            except _Named as named:
                found[str(named)] = Variant(str(named), source, macros)
            except Thrown:
                pass
            return 0

        def matters(names: set[str]) -> bool:
            return any("matmul" in name or name == "shader_name" for name in names)

        def at_once(arguments: list[Value], line: int) -> Value:
            return evaluator.call(arguments[-1], []) if isinstance(arguments[-1], Closure) else Unknown("a task", line)

        natives: dict[str, Native] = {
            COMPILE: compiled,
            "async": at_once,
            "string_starts_with": _starts_with,
            "string_ends_with": _ends_with,
            "to_uppercase": _uppercase,
        }
        evaluator = Evaluator(natives, unit.resolve, unit.struct_of, matters)
        try:
            evaluator.call(entry, [])
        except (Thrown, Left) as stopped:
            evaluator.notes.append(Note(0, f"{ENTRY} stops: {stopped}"))
        self.notes = evaluator.notes
        return found

    def named(self, name: str) -> Variant | None:
        """A variant by the name the host's code has for it."""
        return self.all.get(name)


def _macros(defines: Value) -> tuple[tuple[str, str], ...] | None:
    if isinstance(defines, Sequence):
        pairs = [item.items for item in defines.items if isinstance(item, Sequence)]
        items = [(pair[0], pair[1]) for pair in pairs if len(pair) == 2]
        whole = len(items) == len(defines.items)
    elif isinstance(defines, Mapping):
        items, whole = list(defines.items.items()), True
    else:
        return None
    if not whole or not all(isinstance(name, str) and isinstance(value, str) for name, value in items):
        return None
    return tuple(sorted(items))
