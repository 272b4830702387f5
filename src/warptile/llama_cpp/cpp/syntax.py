"""What the parser makes of tokens. Every node has the line it begins on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Node:
    """Any node."""

    line: int


@dataclass(frozen=True)
class Literal(Node):
    """A number, text or truth value."""

    value: Any


@dataclass(frozen=True)
class Name(Node):
    """A name without its namespaces and template arguments; arguments: those, as text."""

    name: str
    arguments: str = ""


@dataclass(frozen=True)
class Member(Node):
    """`of.name` or `of->name`."""

    of: Node
    name: str


@dataclass(frozen=True)
class Index(Node):
    """`of[index]`."""

    of: Node
    index: Node


@dataclass(frozen=True)
class Call(Node):
    """`of(arguments)`."""

    of: Node
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Unary(Node):
    """A prefix operator; "post++" and "post--" stand for the postfix ones."""

    mark: str
    of: Node


@dataclass(frozen=True)
class Binary(Node):
    """`left mark right`."""

    mark: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Ternary(Node):
    """`test ? then : other`."""

    test: Node
    then: Node
    other: Node


@dataclass(frozen=True)
class Assign(Node):
    """`target mark value`, mark being "=", "+=" and so on."""

    mark: str
    target: Node
    value: Node


@dataclass(frozen=True)
class Braces(Node):
    """`{items}`, with the type before it as text where there is one."""

    items: tuple[Node, ...]
    type: str = ""


@dataclass(frozen=True)
class SizeOf(Node):
    """`sizeof(type)`."""

    type: str


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function; reference: whether it is another name of its argument."""

    name: str
    type: str
    reference: bool
    default: Node | None


@dataclass(frozen=True)
class Declarator:
    """One declared name. length: of an array, else None."""

    name: str
    value: Node | None
    length: Node | None = None


@dataclass(frozen=True)
class Function(Node):
    """A lambda or a function; captures: names a lambda gives values of its own (`[name = value]`)."""

    parameters: tuple[Parameter, ...]
    body: Node
    captures: tuple[Declarator, ...] = ()


@dataclass(frozen=True)
class Declare(Node):
    """A declaration of variables."""

    type: str
    names: tuple[Declarator, ...]


@dataclass(frozen=True)
class Struct(Node):
    """A structure: its members' names in order."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class Run(Node):
    """An expression as a statement."""

    of: Node


@dataclass(frozen=True)
class Block(Node):
    """`{ statements }`."""

    statements: tuple[Node, ...]


@dataclass(frozen=True)
class If(Node):
    """`if (test) then else other`."""

    test: Node
    then: Node
    other: Node | None


@dataclass(frozen=True)
class For(Node):
    """`for (first; test; step) body`; a while loop has no first and no step."""

    first: Node | None
    test: Node | None
    step: Node | None
    body: Node


@dataclass(frozen=True)
class Each(Node):
    """`for (type name : of) body`."""

    name: str
    of: Node
    body: Node


@dataclass(frozen=True)
class Switch(Node):
    """`switch (of) { statements }`, with `Case` among the statements."""

    of: Node
    statements: tuple[Node, ...]


@dataclass(frozen=True)
class Case(Node):
    """`case value:`, or `default:` where value is None."""

    value: Node | None


@dataclass(frozen=True)
class Leave(Node):
    """`return`, `break`, `continue` or `throw`."""

    how: str
    value: Node | None = None


@dataclass(frozen=True)
class Opaque(Node):
    """A statement that was not understood: why, and its names."""

    why: str
    names: frozenset[str]


def walk(node: Any) -> Any:
    """The node and everything in it."""
    if isinstance(node, Node | Parameter | Declarator):
        yield node
        for name in node.__dataclass_fields__:
            yield from walk(getattr(node, name))
    elif isinstance(node, tuple):
        for each in node:
            yield from walk(each)


def names_in(node: Node | None) -> set[str]:
    """Every name and member a node mentions."""
    found: set[str] = set()
    for each in walk(node):
        if isinstance(each, Opaque):
            found |= each.names
        elif isinstance(each, Name | Member | Declarator):
            found.add(each.name)
    return found


def assigned_in(node: Node | None) -> set[str]:
    """Names of the variables a node may change: left of an assignment, in ++ and --, or taken by a method."""
    found: set[str] = set()
    for each in walk(node):
        target: Node | None = None
        if isinstance(each, Assign):
            target = each.target
        elif isinstance(each, Unary) and each.mark[-2:] in ("++", "--"):
            target = each.of
        elif isinstance(each, Call) and isinstance(each.of, Member):
            target = each.of.of
        elif isinstance(each, Opaque):
            found |= each.names
        while isinstance(target, Member | Index | Unary):
            if isinstance(target, Member):
                found.add(target.name)
            target = target.of
        if isinstance(target, Name):
            found.add(target.name)
    return found
