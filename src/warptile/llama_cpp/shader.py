"""A shader variant read: its specialization constants, its shared memory, what `main` derives from both."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from warptile.llama_cpp.checkout import Checkout, read_text
from warptile.llama_cpp.cpp.evaluate import Evaluator
from warptile.llama_cpp.cpp.parse import Parser, parse_expression
from warptile.llama_cpp.cpp.preprocess import Preprocessor
from warptile.llama_cpp.cpp.scopes import Closure, Scope
from warptile.llama_cpp.cpp.syntax import Declare, Function, Node
from warptile.llama_cpp.cpp.tokens import Token
from warptile.llama_cpp.cpp.values import NotUnderstood, Record, Value
from warptile.llama_cpp.variants import Variant

_COMPONENTS = {"f16": 2, "u16": 2, "i16": 2, "u8": 1, "i8": 1, "u": 4, "i": 4, "": 4, "bf16": 2, "u64": 8, "i64": 8}
_SCALARS = {
    "float": 4, "uint": 4, "int": 4, "uint32_t": 4, "int32_t": 4, "float16_t": 2, "uint16_t": 2, "int16_t": 2,
    "bfloat16_t": 2, "uint8_t": 1, "int8_t": 1, "uint64_t": 8, "bool": 4,
}  # fmt: skip
_VECTOR = re.compile(r"(bf16|f16|u16|i16|u8|i8|u64|i64|u|i|)vec([234])$")


@dataclass(frozen=True)
class Space:
    """Bytes of a value and what they are aligned to (std430)."""

    size: int
    align: int


@dataclass(frozen=True)
class Reading:
    """A variant with its specialization constants set.

    shared: bytes of each shared array by name, None where one is not understood; values: what `main` declares, and the
    constants, by name.
    """

    shared: dict[str, int | None]
    values: dict[str, Value]

    @property
    def shared_bytes(self) -> int | None:
        """All shared arrays together; None where one is not known."""
        sizes = [size for size in self.shared.values() if size is not None]
        return sum(sizes) if len(sizes) == len(self.shared) else None

    def number(self, name: str) -> int | None:
        """A value by name where it is a whole number."""
        value = self.values.get(name)
        return int(value) if isinstance(value, int) else None


@dataclass
class Shader:
    """A variant's source, preprocessed as its build does."""

    checkout: Checkout
    variant: Variant
    _readings: dict[tuple[int, ...], Reading] = field(default_factory=dict)

    @cached_property
    def tokens(self) -> list[Token]:
        """The tokens the compiler sees."""
        path = self.checkout.shader(self.variant.source)

        def include(name: str) -> str | None:
            return read_text(self.checkout.shader(name))

        return Preprocessor(dict(self.variant.defines), include=include).run(read_text(path))

    @cached_property
    def constants(self) -> dict[str, tuple[int, Node]]:
        """(id, default) of each specialization constant by name."""
        found: dict[str, tuple[int, Node]] = {}
        t = self.tokens
        for i, token in enumerate(t):
            if token.text == "constant_id" and t[i + 2].kind == "number" and t[i + 4].text == "const":
                found[t[i + 6].text] = (int(t[i + 2].text), parse_expression(_until(t, i + 8, ";")))
            elif token.text == "local_size_x_id":
                found.setdefault("BLOCK_SIZE", (int(t[i + 2].text), parse_expression([t[i + 2]])))
        return found

    def names(self) -> dict[int, str]:
        """Names of the constants by id."""
        return {number: name for name, (number, _) in self.constants.items()}

    def guards_rows(self, side: str) -> bool:
        """Whether the loop that loads operand "a" or "b" asks of each row whether it is inside the tile."""
        text = "".join(token.text for token in self.tokens)
        edge = {"a": "BM", "b": "BN"}[side]
        return f"l<{edge};l+=loadstride_{side}" not in text.replace(f"loadc_{side}+l<{edge}", "")

    def at(self, constants: tuple[int, ...]) -> Reading:
        """The shader with constants set from id 0 on; those beyond keep their defaults."""
        if constants not in self._readings:
            self._readings[constants] = self._read(constants)
        return self._readings[constants]

    def _read(self, constants: tuple[int, ...]) -> Reading:
        scope = Scope()

        def resolve(name: str) -> Value | None:
            found = self._functions.get(name)
            return None if found is None else Closure(found, scope)

        evaluator = Evaluator(resolve=resolve)
        for name, (number, default) in self.constants.items():
            scope.names[name] = constants[number] if number < len(constants) else evaluator.value(default, scope)
        block = scope.names.get("BLOCK_SIZE", 0)
        scope.names["gl_WorkGroupSize"] = Record({"x": block, "y": 1, "z": 1})
        for name, value in self._globals:
            scope.names.setdefault(name, evaluator.value(value, scope))
        shared: dict[str, int | None] = {}
        for type_name, name, lengths in self._shared:
            space = self._spaces.get(type_name) or _space(type_name)
            total = None if space is None else space.size
            for length in lengths:
                count = evaluator.value(length, scope)
                total = total * count if total is not None and isinstance(count, int) else None
            shared[name] = total
        for statement in self._main:
            evaluator.run(statement, scope)
        values = {name: value for name, value in scope.names.items() if isinstance(value, int)}
        return Reading(shared, values)

    @cached_property
    def _shared(self) -> list[tuple[str, str, list[Node]]]:
        """(type, name, lengths) of each shared array."""
        found: list[tuple[str, str, list[Node]]] = []
        t = self.tokens
        for i, token in enumerate(t):
            if token.text == "shared" and t[i + 1].kind == "name":
                lengths, at = list[Node](), i + 3
                while t[at].text == "[":
                    part = _until(t, at + 1, "]")
                    lengths.append(parse_expression(part))
                    at += len(part) + 2
                found.append((t[i + 1].text, t[i + 2].text, lengths))
        return found

    @cached_property
    def _globals(self) -> list[tuple[str, Node]]:
        """Plain constants outside functions: `const type name = value;`."""
        found: list[tuple[str, Node]] = []
        depth, t = 0, self.tokens
        for i, token in enumerate(t):
            depth += {"{": 1, "}": -1}.get(token.text, 0)
            if (
                depth == 0
                and token.text == "const"
                and i + 3 < len(t)
                and t[i + 3].text == "="
                and t[i - 1].text in (";", "}")
            ):
                try:
                    found.append((t[i + 2].text, parse_expression(_until(t, i + 4, ";"))))
                except NotUnderstood:
                    continue
        return found

    @cached_property
    def _spaces(self) -> dict[str, Space]:
        """Sizes of the structures that are understood whole, by name."""
        found: dict[str, Space] = {}
        t = self.tokens
        for i, token in enumerate(t):
            if token.text == "struct" and i + 2 < len(t) and t[i + 2].text == "{":
                space = _struct_space(_until(t, i + 3, "}"), found)
                if space is not None:
                    found[t[i + 1].text] = space
        return found

    @cached_property
    def _functions(self) -> dict[str, Function]:
        """Functions without parameters by name."""
        found: dict[str, Function] = {}
        t = self.tokens
        for i in range(1, len(t) - 3):
            if t[i].kind == t[i - 1].kind == "name" and [x.text for x in t[i + 1 : i + 4]] == ["(", ")", "{"]:
                try:
                    found[t[i].text] = Parser(t[i + 1 :]).function(t[i].line)
                except NotUnderstood:
                    continue
        return found

    @cached_property
    def _main(self) -> list[Node]:
        """The declarations at the top level of `main`."""
        t = self.tokens
        start = next((i for i in range(len(t) - 3) if t[i].text == "main" and t[i + 1].text == "("), None)
        if start is None:
            return []
        parser = Parser(t[start + 4 :])
        found: list[Node] = []
        while parser.token is not None and not parser.is_at("}"):
            found.append(parser.statement())
        return [node for node in found if isinstance(node, Declare)]


def _until(tokens: list[Token], start: int, end: str) -> list[Token]:
    """Tokens from `start` up to the next `end` outside brackets."""
    depth, at = 0, start
    while at < len(tokens):
        text = tokens[at].text
        if depth == 0 and text == end:
            break
        depth += 1 if text in ("(", "[", "{") else -1 if text in (")", "]", "}") else 0
        at += 1
    return tokens[start:at]


def _space(type_name: str) -> Space | None:
    if type_name in _SCALARS:
        return Space(_SCALARS[type_name], _SCALARS[type_name])
    match = _VECTOR.match(type_name)
    if match is None:
        return None
    one, count = _COMPONENTS[match[1]], int(match[2])
    return Space(one * count, one * (4 if count == 3 else count))


def _struct_space(tokens: list[Token], known: dict[str, Space]) -> Space | None:
    """Size and alignment of a structure's members; None where one is not understood."""
    size, align, at = 0, 1, 0
    while at < len(tokens):
        member = _until(tokens, at, ";")
        at += len(member) + 1
        if len(member) < 2:
            continue
        space = known.get(member[0].text) or _space(member[0].text)
        if space is None:
            return None
        count = 1
        if len(member) > 2:
            value = Evaluator().value(parse_expression(_until(member, 3, "]"))) if member[2].text == "[" else None
            if not isinstance(value, int):
                return None
            count = value
        size = -(-size // space.align) * space.align + space.size * count
        align = max(align, space.align)
    return Space(-(-size // align) * align, align)
