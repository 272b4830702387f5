"""Expressions, by precedence climbing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from warptile.llama_cpp.cpp.syntax import (
    Assign,
    Binary,
    Braces,
    Call,
    Declarator,
    Function,
    Index,
    Literal,
    Member,
    Name,
    Node,
    Parameter,
    SizeOf,
    Ternary,
    Unary,
)
from warptile.llama_cpp.cpp.tokens import Token, number
from warptile.llama_cpp.cpp.values import NotUnderstood

_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip
_ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
_QUALIFIERS = frozenset(
    {"const", "static", "constexpr", "volatile", "inline", "struct", "enum", "typename", "thread_local"}
)
_NUMERIC = frozenset({"unsigned", "signed", "long", "short", "int", "char", "float", "double", "bool"})
_CASTABLE = re.compile(r"(?:.*_t|unsigned|signed|long|short|int|char|float|double|bool|ggml_type|void)$")
_IN_TEMPLATES = frozenset({"::", ",", "*", "&", "<", ">", "[", "]"})


class ExpressionParser:
    """Tokens to expressions."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self.position = 0

    @property
    def token(self) -> Token | None:
        """The next token, None at the end."""
        return self._tokens[self.position] if self.position < len(self._tokens) else None

    def need(self) -> Token:
        """The next token. Raises NotUnderstood at the end."""
        if self.token is None:
            raise NotUnderstood("the end of the text", self._tokens[-1].line if self._tokens else 0)
        return self.token

    def peek(self, ahead: int) -> str:
        """The text of the token `ahead` places further, "" beyond the end."""
        index = self.position + ahead
        return self._tokens[index].text if index < len(self._tokens) else ""

    def is_at(self, text: str) -> bool:
        """Whether the next token is this one."""
        return self.token is not None and self.token.text == text and self.token.kind in ("mark", "name")

    def take(self, text: str) -> Token:
        """Take the next token, which must be this one. Raises NotUnderstood."""
        token = self.need()
        if token.text != text:
            raise NotUnderstood(f"{token.text!r} where {text!r} was expected", token.line)
        self.position += 1
        return token

    def take_name(self) -> str:
        """Take a name. Raises NotUnderstood."""
        token = self.need()
        if token.kind != "name":
            raise NotUnderstood(f"{token.text!r} where a name was expected", token.line)
        self.position += 1
        return token.text

    def type_text(self) -> str | None:
        """Take a type and give its text; None, nothing taken, where there is none."""
        start, words = self.position, list[str]()
        while self.token is not None and self.token.text in _QUALIFIERS:
            words.append(self.take_name())
        if self.token is None or self.token.kind != "name":
            self.position = start
            return None
        words.append(self.take_name())
        while words[-1] in _NUMERIC and self.token is not None and self.token.text in _NUMERIC:
            words.append(self.take_name())
        while True:
            if self.is_at("::") and self.position + 1 < len(self._tokens):
                words += [self.take("::").text, self.take_name()]
            elif self.is_at("<") and (arguments := self._template()) is not None:
                words.append(arguments)
            else:
                break
        while self.token is not None and self.token.text in ("const", "*", "&", "&&"):
            words.append(self.token.text)
            self.position += 1
        return " ".join(words)

    def _template(self) -> str | None:
        """Take `<...>` and give its text; None, nothing taken, where it is a comparison."""
        depth, words = 0, list[str]()
        for index in range(self.position, min(self.position + 60, len(self._tokens))):
            token = self._tokens[index]
            if token.text not in _IN_TEMPLATES and token.text != ">>" and token.kind not in ("name", "number"):
                return None
            words.append(token.text)
            depth += {"<": 1, ">": -1, ">>": -2}.get(token.text, 0)
            if depth <= 0:
                self.position = index + 1
                return "".join(words)
        return None

    def expression(self) -> Node:
        """An expression without the comma operator."""
        left = self._ternary()
        token = self.token
        if token is not None and token.kind == "mark" and token.text in _ASSIGNMENTS:
            self.position += 1
            return Assign(token.line, token.text, left, self.initializer())
        return left

    def initializer(self) -> Node:
        """An expression or braces."""
        return self.braces() if self.is_at("{") else self.expression()

    def braces(self, type_name: str = "") -> Braces:
        """`{a, b, ...}`."""
        line = self.take("{").line
        return Braces(line, self.arguments("}"), type_name)

    def arguments(self, end: str) -> tuple[Node, ...]:
        """Expressions up to `end`, which is taken."""
        found: list[Node] = []
        while not self.is_at(end):
            if self.is_at(".") and self.peek(2) == "=":
                raise NotUnderstood("a designated initializer", self.need().line)
            found.append(self.initializer())
            if not self.is_at(end):
                self.take(",")
        self.take(end)
        return tuple(found)

    def _ternary(self) -> Node:
        test = self._binary(0)
        if not self.is_at("?"):
            return test
        line = self.take("?").line
        then = self.initializer()
        self.take(":")
        return Ternary(line, test, then, self.expression())

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (token := self.token) is not None and token.kind == "mark" and token.text in _LEVELS[level]:
            self.position += 1
            left = Binary(token.line, token.text, left, self._binary(level + 1))
        return left

    def _unary(self) -> Node:
        token = self.need()
        if token.kind == "mark" and token.text in ("!", "~", "-", "+", "*", "&", "++", "--"):
            self.position += 1
            return Unary(token.line, token.text, self._unary())
        if token.text == "sizeof":
            return self._sizeof()
        if token.text in ("new", "delete", "co_await"):
            raise NotUnderstood(f"{token.text!r}", token.line)
        if token.text == "(" and (cast := self._cast()) is not None:
            return cast
        return self._postfix(self._primary())

    def _sizeof(self) -> Node:
        line = self.take("sizeof").line
        self.take("(")
        found = self.type_text()
        if found is None or not self.is_at(")"):
            raise NotUnderstood("sizeof of an expression", line)
        self.take(")")
        return SizeOf(line, found)

    def _cast(self) -> Node | None:
        """`(type) operand` as its operand: numbers here are whole and wide enough for every type."""
        start = self.position
        self.take("(")
        found = self.type_text()
        if found is not None and self.is_at(")"):
            self.take(")")
            last = found.replace("const", "").split()
            plain = bool(last) and (_CASTABLE.match(last[0]) is not None or last[-1] in ("*", "&"))
            if plain and self.token is not None and (self.token.kind != "mark" or self.token.text in ("(", "~", "-")):
                return self._unary()
        self.position = start
        return None

    def _primary(self) -> Node:
        token = self.need()
        if token.kind == "number":
            self.position += 1
            try:
                return Literal(token.line, number(token.text))
            except ValueError:
                raise NotUnderstood(f"the number {token.text}", token.line) from None
        if token.kind == "string":
            text = ""
            while self.token is not None and self.token.kind == "string":
                text += self.token.text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
                self.position += 1
            return Literal(token.line, text)
        if token.kind == "char":
            self.position += 1
            return Literal(token.line, token.text[1:-1])
        if token.text == "(":
            self.take("(")
            found = self.expression()
            self.take(")")
            return found
        if token.text == "[":
            return self._lambda()
        if token.text == "{":
            return self.braces()
        if token.kind == "name":
            return self._name()
        raise NotUnderstood(f"{token.text!r} in an expression", token.line)

    def _name(self) -> Node:
        line, arguments = self.need().line, ""
        name = self.take_name()
        if name in ("true", "false", "nullptr"):
            return Literal(line, {"true": True, "false": False, "nullptr": False}[name])
        while True:
            if self.is_at("::"):
                self.take("::")
                name = self.take_name()
            elif self.is_at("<"):
                start = self.position
                found = self._template()
                if found is None or not any(self.is_at(mark) for mark in ("(", "{", "::")):
                    self.position = start
                    break
                arguments = found
            else:
                break
        if self.is_at("{") and (arguments or name.endswith("_t")):
            return self.braces(name + arguments)
        return Name(line, name, arguments)

    def _postfix(self, of: Node) -> Node:
        while (token := self.token) is not None and token.kind == "mark":
            if token.text in (".", "->"):
                self.position += 1
                if self.is_at("template"):
                    self.take("template")
                of = Member(token.line, of, self.take_name())
            elif token.text == "[":
                self.take("[")
                index = self.initializer()
                self.take("]")
                of = Index(token.line, of, index)
            elif token.text == "(":
                self.take("(")
                of = Call(token.line, of, self.arguments(")"))
            elif token.text in ("++", "--"):
                self.position += 1
                of = Unary(token.line, "post" + token.text, of)
            else:
                break
        return of

    def _lambda(self) -> Node:
        line, captures = self.take("[").line, list[Declarator]()
        while not self.is_at("]"):
            if self.peek(1) == "=" and self.need().kind == "name":
                name = self.take_name()
                self.take("=")
                captures.append(Declarator(name, self.expression()))
            else:
                self.position += 1
        self.take("]")
        if not self.is_at("(") and not self.is_at("{"):
            raise NotUnderstood("a lambda", line)
        return replace(self.function(line), captures=tuple(captures))

    def function(self, line: int) -> Function:
        """The rest of a lambda after its capture; statements are the subclass's."""
        raise NotUnderstood("a lambda where only an expression may be", line)

    def parameters(self) -> tuple[Parameter, ...]:
        """`(type name = default, ...)`."""
        self.take("(")
        found: list[Parameter] = []
        while not self.is_at(")"):
            kind = self.type_text()
            if kind is None:
                raise NotUnderstood("a parameter", self.need().line)
            name = self.take_name() if self.token is not None and self.token.kind == "name" else ""
            default = None
            while self.is_at("["):
                self.take("[")
                if not self.is_at("]"):
                    self.expression()
                self.take("]")
            if self.is_at("="):
                self.take("=")
                default = self.initializer()
            found.append(Parameter(name, kind, kind.endswith("&"), default))
            if not self.is_at(")"):
                self.take(",")
        self.take(")")
        return tuple(found)
