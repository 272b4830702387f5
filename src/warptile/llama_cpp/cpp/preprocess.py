"""The preprocessor: conditions, object-like and function-like macros with `#` and `##`, includes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from warptile.llama_cpp.cpp.tokens import Token, number, tokenize, without_comments


@dataclass(frozen=True)
class Macro:
    """A macro's body; parameters: None for an object-like one."""

    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]


class Preprocessor:
    """Turns text into tokens with directives done and macros expanded.

    assumed: whether a name that no `#define` was seen for counts as defined (its value is then 1). include: gives an
    included file's text, None where it is to be left out. Names within a `#define`d macro keep the line of its use.
    """

    def __init__(
        self,
        defines: Mapping[str, str] | None = None,
        assumed: Callable[[str], bool] = lambda name: False,
        include: Callable[[str], str | None] = lambda name: None,
    ) -> None:
        self.macros: dict[str, Macro] = {
            name: Macro(None, tuple(tokenize(value))) for name, value in (defines or {}).items()
        }
        self._assumed, self._include = assumed, include
        self._undefined: set[str] = set()

    def run(self, text: str, line: int = 1) -> list[Token]:
        """The tokens that remain of the text."""
        done: list[Token] = []
        waiting: list[Token] = []
        taken: list[bool] = []
        skipped: list[bool] = []
        lines = without_comments(text).split("\n")
        index = 0
        while index < len(lines):
            first = line + index
            joined = lines[index]
            while joined.endswith("\\") and index + 1 < len(lines):
                index += 1
                joined = joined[:-1] + " " + lines[index]
            index += 1
            if not joined.lstrip().startswith("#"):
                if not any(skipped):
                    waiting += tokenize(joined, first)
                continue
            name, _, rest = joined.lstrip()[1:].strip().partition(" ")
            name = "".join(c for c in name if c.isalpha())
            rest = joined.lstrip()[1:].strip()[len(name) :]
            if name in ("if", "ifdef", "ifndef"):
                holds = not any(skipped) and self._holds(name, rest)
                taken.append(holds)
                skipped.append(not holds)
            elif name in ("elif", "else") and skipped:
                outer = any(skipped[:-1])
                holds = not outer and not taken[-1] and (name == "else" or self._holds("if", rest))
                taken[-1] = taken[-1] or holds
                skipped[-1] = not holds
            elif name == "endif" and skipped:
                taken.pop()
                skipped.pop()
            elif not any(skipped):
                done += self.expand(waiting)
                waiting = []
                done += self._directive(name, rest, first)
        return done + self.expand(waiting)

    def expand(self, tokens: Iterable[Token]) -> list[Token]:
        """The tokens with every macro expanded."""
        left = list(tokens)[::-1]
        done: list[Token] = []
        while left:
            token = left.pop()
            macro = self.macros.get(token.text) if token.kind == "name" and token.text not in token.hidden else None
            if macro is None:
                done.append(token)
                continue
            hidden = token.hidden | {token.text}
            if macro.parameters is None:
                body = list(macro.body)
            else:
                if not left or left[-1].text != "(":
                    done.append(token)
                    continue
                arguments = _arguments(left)
                if arguments is None:
                    done.append(token)
                    continue
                body = self._substituted(macro, arguments)
            left += [Token(t.kind, t.text, token.line, t.hidden | hidden) for t in reversed(_pasted(body))]
        return done

    def _substituted(self, macro: Macro, arguments: list[list[Token]]) -> list[Token]:
        given = dict(zip(macro.parameters or (), arguments, strict=False))
        body, found = macro.body, list[Token]()
        for index, token in enumerate(body):
            before = body[index - 1].text if index else ""
            after = body[index + 1].text if index + 1 < len(body) else ""
            if token.text == "#" and after in given:
                continue
            if before == "#" and token.text in given:
                text = "".join(t.text for t in given[token.text])
                found.append(Token("string", f'"{text}"', token.line))
            elif token.kind == "name" and token.text in given:
                raw = given[token.text]
                pasted = "##" in (before, after)
                # An empty argument beside ## leaves a place, so that the other side stays as it is.
                found += (raw or [Token("mark", "", token.line)]) if pasted else self.expand(raw)
            else:
                found.append(token)
        return found

    def _directive(self, name: str, rest: str, line: int) -> list[Token]:
        if name == "define":
            self._define(rest.strip())
        elif name == "undef":
            self.macros.pop(rest.strip(), None)
            self._undefined.add(rest.strip())
        elif name == "include":
            found = self._include(rest.strip().strip('"<>'))
            if found is not None:
                return self.run(found)
        return []

    def _define(self, text: str) -> None:
        tokens = tokenize(text)
        if not tokens:
            return
        name = tokens[0].text
        self._undefined.discard(name)
        if text[len(name) : len(name) + 1] == "(":
            left = tokens[1:][::-1]
            parameters = _arguments(left)
            named = tuple(p[0].text for p in parameters or [] if p)
            self.macros[name] = Macro(named, tuple(left[::-1]))
        else:
            self.macros[name] = Macro(None, tuple(tokens[1:]))

    def _holds(self, name: str, text: str) -> bool:
        if name == "ifdef":
            return self._is_defined(text.strip())
        if name == "ifndef":
            return not self._is_defined(text.strip())
        from warptile.llama_cpp.cpp.evaluate import Evaluator
        from warptile.llama_cpp.cpp.parse import parse_expression

        tokens: list[Token] = []
        left = tokenize(text)[::-1]
        while left:
            token = left.pop()
            if token.text == "defined" and left:
                bracket = left[-1].text == "("
                asked = left[-2].text if bracket and len(left) > 1 else left[-1].text
                del left[-(3 if bracket else 1) :]
                tokens.append(Token("number", str(int(self._is_defined(asked))), token.line))
            else:
                tokens.append(token)
        plain = [
            Token("number", str(int(self._assumed(t.text))), t.line) if t.kind == "name" else t
            for t in self.expand(tokens)
        ]
        value = Evaluator().value(parse_expression(plain))
        return isinstance(value, int | float) and bool(value)

    def _is_defined(self, name: str) -> bool:
        return name in self.macros or (name not in self._undefined and self._assumed(name))


def _arguments(left: list[Token]) -> list[list[Token]] | None:
    """Take a bracketed argument list off the end of `left` (reversed tokens); None, nothing taken, where unclosed."""
    depth, found, current = 0, list[list[Token]](), list[Token]()
    for count, token in enumerate(reversed(left), 1):
        if token.text in "([{" and token.kind == "mark":
            depth += 1
            if depth == 1:
                continue
        elif token.text in ")]}" and token.kind == "mark":
            depth -= 1
            if depth == 0:
                del left[len(left) - count :]
                return [*found, current]
        if depth == 1 and token.text == ",":
            found.append(current)
            current = []
        else:
            current.append(token)
    return None


def _pasted(body: list[Token]) -> list[Token]:
    """The tokens with each `##` joining its two sides."""
    found: list[Token] = []
    index = 0
    while index < len(body):
        token = body[index]
        if token.text == "##" and found and index + 1 < len(body):
            one, other = found.pop(), body[index + 1]
            text = one.text + other.text
            made = tokenize(text)
            found.append(made[0].at(one.line) if len(made) == 1 else Token("mark", text, one.line))
            index += 2
            continue
        found.append(token)
        index += 1
    return [t for t in found if t.text]


def integer_defines(text: str) -> dict[str, int]:
    """Object-like macros of a text whose body is one whole number."""
    found: dict[str, int] = {}
    for line in without_comments(text).split("\n"):
        words = line.split()
        if len(words) == 3 and words[0] == "#define":
            tokens = tokenize(words[2])
            if len(tokens) == 1 and tokens[0].kind == "number":
                value = number(tokens[0].text)
                if isinstance(value, int):
                    found[words[1]] = value
    return found
