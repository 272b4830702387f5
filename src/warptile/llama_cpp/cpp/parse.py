"""Statements. What does not parse becomes `Opaque` and costs one statement, not the function."""

from __future__ import annotations

from collections.abc import Sequence

from warptile.llama_cpp.cpp.expressions import ExpressionParser
from warptile.llama_cpp.cpp.syntax import (
    Block,
    Braces,
    Case,
    Declarator,
    Declare,
    Each,
    For,
    Function,
    If,
    Leave,
    Node,
    Opaque,
    Run,
    Struct,
    Switch,
)
from warptile.llama_cpp.cpp.tokens import Token
from warptile.llama_cpp.cpp.values import NotUnderstood

_WORDS = frozenset({"if", "for", "while", "do", "switch", "case", "default", "return", "break", "continue", "throw"})


def parse_expression(tokens: Sequence[Token]) -> Node:
    """The expression that the tokens are. Raises NotUnderstood."""
    parser = Parser(tokens)
    found = parser.expression()
    if parser.token is not None:
        raise NotUnderstood(f"{parser.token.text!r} after an expression", parser.token.line)
    return found


def parse_body(tokens: Sequence[Token]) -> Block:
    """A function's body, with or without its braces."""
    parser = Parser(tokens)
    found: list[Node] = []
    while parser.token is not None:
        found.append(parser.statement())
    if len(found) == 1 and isinstance(found[0], Block):
        return found[0]
    return Block(tokens[0].line if tokens else 0, tuple(found))


class Parser(ExpressionParser):
    """Tokens to statements."""

    def block(self) -> Block:
        """`{ ... }`."""
        line = self.take("{").line
        found: list[Node] = []
        while not self.is_at("}"):
            if self.token is None:
                raise NotUnderstood("a block without an end", line)
            found.append(self.statement())
        self.take("}")
        return Block(line, tuple(found))

    def statement(self) -> Node:
        """One statement; `Opaque` where it is not understood."""
        start = self.position
        try:
            return self._statement()
        except NotUnderstood as error:
            self.position = start
            return self._skipped(error)

    def _statement(self) -> Node:
        token = self.need()
        if token.text == "{":
            return self.block()
        if token.text == ";":
            self.take(";")
            return Block(token.line, ())
        if token.kind == "name" and token.text in _WORDS:
            return self._worded(token)
        if token.text == "struct" and self.peek(2) == "{":
            return self._struct()
        if (declared := self._declaration()) is not None:
            self.take(";")
            return declared
        found = Run(token.line, self.expression())
        self.take(";")
        return found

    def _worded(self, token: Token) -> Node:
        self.take(token.text)
        line = token.line
        if token.text == "if":
            if self.is_at("constexpr"):
                self.take("constexpr")
            test = self._bracketed()
            then = self.statement()
            other = None
            if self.is_at("else"):
                self.take("else")
                other = self.statement()
            return If(line, test, then, other)
        if token.text == "while":
            test = self._bracketed()
            return For(line, None, test, None, self.statement())
        if token.text == "for":
            return self._for(line)
        if token.text == "switch":
            of = self._bracketed()
            return Switch(line, of, self.block().statements)
        if token.text == "case":
            value = self.expression()
            self.take(":")
            return Case(line, value)
        if token.text == "default":
            self.take(":")
            return Case(line, None)
        if token.text == "do":
            raise NotUnderstood("a do loop", line)
        value_of = None if self.is_at(";") else self.initializer()
        self.take(";")
        return Leave(line, token.text, value_of)

    def _for(self, line: int) -> Node:
        self.take("(")
        start = self.position
        found = self.type_text()
        if found is not None and self.need().kind == "name" and self.peek(1) == ":":
            name = self.take_name()
            self.take(":")
            of = self.initializer()
            self.take(")")
            return Each(line, name, of, self.statement())
        self.position = start
        first = None if self.is_at(";") else self._declaration() or Run(line, self.expression())
        self.take(";")
        test = None if self.is_at(";") else self.expression()
        self.take(";")
        step = None if self.is_at(")") else self.expression()
        self.take(")")
        return For(line, first, test, step, self.statement())

    def _bracketed(self) -> Node:
        self.take("(")
        found = self.expression()
        self.take(")")
        return found

    def _struct(self) -> Node:
        line = self.take("struct").line
        name = self.take_name()
        members: list[str] = []
        for each in self.block().statements:
            if isinstance(each, Declare):
                members += [d.name for d in each.names]
        self.take(";")
        return Struct(line, name, tuple(members))

    def _declaration(self) -> Declare | None:
        """A declaration up to its `;`; None, nothing taken, where there is none."""
        start, line = self.position, self.need().line
        found = self.type_text()
        token = self.token
        if found is None or token is None or token.kind != "name" or self.peek(1) not in ("=", ";", ",", "{", "[", "("):
            self.position = start
            return None
        names = [self._declarator()]
        while self.is_at(","):
            self.take(",")
            names.append(self._declarator())
        return Declare(line, found, tuple(names))

    def _declarator(self) -> Declarator:
        while self.is_at("*") or self.is_at("&"):
            self.position += 1
        name, length, value = self.take_name(), None, None
        while self.is_at("["):
            self.take("[")
            length = None if self.is_at("]") else self.expression()
            self.take("]")
        if self.is_at("="):
            self.take("=")
            value = self.initializer()
        elif self.is_at("{"):
            value = self.braces()
        elif self.is_at("("):
            line = self.take("(").line
            arguments = self.arguments(")")
            value = arguments[0] if len(arguments) == 1 else Braces(line, arguments)
        return Declarator(name, value, length)

    def function_body(self) -> Node:
        """The body of a lambda."""
        return self.block()

    def function(self, line: int) -> Function:
        """`(parameters) ... { body }`, or the body alone."""
        parameters = self.parameters() if self.is_at("(") else ()
        while self.token is not None and not self.is_at("{"):
            self.position += 1
        return Function(line, parameters, self.function_body())

    def _skipped(self, error: NotUnderstood) -> Opaque:
        line, depth, names = self.need().line, 0, set[str]()
        while (token := self.token) is not None:
            if depth == 0 and token.text == "}":
                break
            self.position += 1
            if token.kind == "name":
                names.add(token.text)
            if token.text in ("(", "[", "{") and token.kind == "mark":
                depth += 1
            elif token.text in (")", "]", "}") and token.kind == "mark":
                depth -= 1
                if depth == 0 and token.text == "}" and self.peek(0) not in (";", ",", ")", "else", "."):
                    break
            elif token.text == ";" and depth == 0:
                break
        return Opaque(error.line or line, str(error), frozenset(names))
