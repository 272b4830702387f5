"""What operators, methods and types do to values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from warptile.llama_cpp.cpp.values import Mapping, Record, Sequence, Symbol, Unknown, Value, described

SIZES = {
    "float": 4, "double": 8, "int": 4, "unsigned": 4, "char": 1, "bool": 1, "int8_t": 1, "uint8_t": 1, "int16_t": 2,
    "uint16_t": 2, "ggml_fp16_t": 2, "int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8, "size_t": 8,
}  # fmt: skip

_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "%": operator.mod, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, ">": operator.gt,
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def binary(mark: str, left: Value, right: Value, line: int) -> Value:
    """`left mark right`; whole numbers divide downwards (there are no negative ones where it matters)."""
    for side in (left, right):
        if isinstance(side, Unknown):
            return side
    if isinstance(left, Symbol) and isinstance(right, Symbol) and mark in ("==", "!="):
        return (left.name == right.name) == (mark == "==")
    if isinstance(left, str) and isinstance(right, str) and mark in ("+", "==", "!=", "<", ">"):
        return _PLAIN[mark](left, right)
    if isinstance(left, int | float) and isinstance(right, int | float):
        if mark in ("/", "%") and right == 0:
            return Unknown("a division by zero", line)
        if mark == "/":
            return left // right if isinstance(left, int) and isinstance(right, int) else left / right
        if mark in _PLAIN and (mark not in ("&", "|", "^", "<<", ">>") or _whole(left, right)):
            found = _PLAIN[mark](left, right)
            return int(found) if isinstance(found, bool) and mark in ("&", "|", "^") else found
    return Unknown(f"{described(left)} {mark} {described(right)}", line)


def _whole(left: Value, right: Value) -> bool:
    return isinstance(left, int) and isinstance(right, int)


def size_of(type_text: str, line: int) -> Value:
    """Bytes of a type; Unknown for one not listed in `SIZES`."""
    words = [word for word in type_text.replace("::", " ").split() if word not in ("const", "std")]
    if words and words[-1] == "*":
        return 8
    return SIZES.get(words[-1], Unknown(f"sizeof({type_text})", line)) if words else Unknown("sizeof", line)


@lru_cache(maxsize=4096)
def plain_type(type_text: str) -> tuple[str, str]:
    """(name, template arguments) of a type, without qualifiers and namespaces."""
    text = type_text.replace(" ", "")
    for word in ("const", "static", "constexpr", "struct"):
        text = text.removeprefix(word)
    text = text.rstrip("&*")
    name, _, arguments = text.partition("<")
    return name.rpartition("::")[2], arguments.rstrip(">") if arguments else ""


def typed(value: Value, type_text: str, struct_of: Callable[[str], tuple[str, ...] | None]) -> Value:
    """A braces' value as the declared type: structures get members, maps keys."""
    name, arguments = plain_type(type_text)
    if not isinstance(value, Sequence):
        return value
    if name in ("vector", "initializer_list", "array"):
        element = arguments.partition(",")[0] if name == "array" else arguments
        value.items[:] = [typed(item, element, struct_of) for item in value.items]
    elif name in ("map", "unordered_map"):
        pairs = [item.items for item in value.items if isinstance(item, Sequence) and len(item.items) == 2]
        if len(pairs) == len(value.items):
            return Mapping({key(k): v for k, v in pairs})
    elif (members := struct_of(name)) is not None:
        return Record(dict(zip(members, value.items, strict=False)), members, lambda member, line: 0)
    return value


def unset(type_text: str, length: Value, struct_of: Callable[[str], tuple[str, ...] | None], line: int) -> Value:
    """What a variable that is declared without a value holds."""
    name, _ = plain_type(type_text)
    if isinstance(length, int):
        return Sequence([Unknown("an element that was never set", line)] * length, line)
    if name in ("vector", "array", "initializer_list"):
        return Sequence([], line)
    if name in ("map", "unordered_map"):
        return Mapping()
    if name == "string":
        return ""
    if (members := struct_of(name)) is not None:
        return Record({}, members, lambda member, at: 0)
    return Unknown("a variable that was never set", line)


def copied(value: Value) -> Value:
    """The value as an assignment copies it; what braces made keeps the line of its braces."""
    if isinstance(value, Sequence):
        return Sequence([copied(item) for item in value.items], value.line)
    if isinstance(value, Mapping):
        return Mapping(dict(value.items), value.made)
    if isinstance(value, Record) and value.order:
        return Record({name: copied(item) for name, item in value.members.items()}, value.order, value.missing)
    return value


def key(value: Value) -> Value:
    """A value as a key of a map."""
    if isinstance(value, Sequence):
        return tuple(key(item) for item in value.items)
    if isinstance(value, Record):
        return tuple(key(item) for item in value.members.values())
    return value


def method(of: Value, name: str, arguments: list[Value], line: int) -> Value:
    """`of.name(arguments)` of text, vectors and maps; Unknown for any other."""
    if name in ("c_str", "begin", "end", "lock", "get", "data", "str") and not arguments:
        return of
    if isinstance(of, Sequence):
        found = _of_sequence(of, name, arguments)
    elif isinstance(of, Mapping):
        found = _of_mapping(of, name, arguments)
    elif isinstance(of, str) and name in ("empty", "size", "length"):
        found = not of if name == "empty" else len(of)
    else:
        found = None
    return Unknown(f"{described(of)}.{name}()", line) if found is None else found


def _of_sequence(of: Sequence, name: str, arguments: list[Value]) -> Value:
    if name in ("push_back", "emplace_back") and len(arguments) == 1:
        of.items.append(copied(arguments[0]))
        return 0
    if name == "empty":
        return not of.items
    if name == "size":
        return len(of.items)
    if name == "at" and isinstance(arguments[0], int) and arguments[0] < len(of.items):
        return of.items[arguments[0]]
    if name in ("front", "back") and of.items:
        return of.items[0 if name == "front" else -1]
    return None


def _of_mapping(of: Mapping, name: str, arguments: list[Value]) -> Value:
    if name == "insert" and arguments and isinstance(arguments[0], Mapping):
        for each, value in arguments[0].items.items():
            of.items.setdefault(each, value)
        return 0
    if name == "empty":
        return not of.items
    if name == "count":
        return int(key(arguments[0]) in of.items)
    return None
