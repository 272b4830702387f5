"""Running statements over values. What depends on something unknown is not run, and what it might have changed is
unknown from then on.
"""

from __future__ import annotations

from collections.abc import Callable

from warptile.llama_cpp.cpp import operations, syntax
from warptile.llama_cpp.cpp.scopes import Closure, Left, Note, Scope, Thrown, records
from warptile.llama_cpp.cpp.values import Mapping, NotUnderstood, Record, Sequence, Symbol, Unknown, Value, truth

MOST_ROUNDS = 10_000
Native = Callable[[list[Value], int], Value]
CONSTANTS = {"UINT32_MAX": 0xFFFFFFFF, "INT32_MAX": 0x7FFFFFFF}


class Evaluator:
    """Runs statements.

    natives: functions of our own that stand in for the source's. resolve: the value of a name that no scope has, None
    where there is none (the name then stands for itself). struct_of: the members of a structure. matters: whether a
    statement's names make it worth a note where it is not understood.
    """

    def __init__(
        self,
        natives: dict[str, Native] | None = None,
        resolve: Callable[[str], Value | None] = lambda name: None,
        struct_of: Callable[[str], tuple[str, ...] | None] = lambda name: None,
        matters: Callable[[set[str]], bool] = lambda names: True,
    ) -> None:
        self.notes: list[Note] = []
        self._natives, self._resolve, self._outer_struct_of, self._matters = natives or {}, resolve, struct_of, matters
        self._structs: dict[str, tuple[str, ...]] = {}

    def call(self, closure: Closure, arguments: list[Value]) -> Value:
        """The value a function returns."""
        scope = Scope(closure.scope)
        for index, parameter in enumerate(closure.function.parameters):
            if index < len(arguments):
                given = arguments[index]
            elif parameter.default is not None:
                given = self.value(parameter.default, closure.scope)
            else:
                given = Unknown(f"the argument {parameter.name}", closure.function.line)
            given = operations.typed(given, parameter.type, self._struct_of)
            scope.names[parameter.name] = given if parameter.reference else operations.copied(given)
        try:
            self.run(closure.function.body, scope)
        except Left as left:
            return left.value
        return 0

    def run(self, node: syntax.Node, scope: Scope) -> None:
        """Run a statement. Raises Left and Thrown."""
        try:
            self._run(node, scope)
        except NotUnderstood as error:
            self._skip(node, scope, str(error))

    def _run(self, node: syntax.Node, scope: Scope) -> None:
        if isinstance(node, syntax.Block):
            inner = Scope(scope)
            for each in node.statements:
                self.run(each, inner)
        elif isinstance(node, syntax.Run):
            self.value(node.of, scope)
        elif isinstance(node, syntax.Declare):
            for declared in node.names:
                self._declare(node, declared, scope)
        elif isinstance(node, syntax.Struct):
            self._structs[node.name] = node.members
        elif isinstance(node, syntax.If):
            self._if(node, scope)
        elif isinstance(node, syntax.For | syntax.Each):
            self._loop(node, scope)
        elif isinstance(node, syntax.Switch):
            self._switch(node, scope)
        elif isinstance(node, syntax.Leave):
            value = 0 if node.value is None else self.value(node.value, scope)
            if node.how == "throw":
                text = value.why if isinstance(value, Unknown) else str(value)
                raise Thrown(text, node.line)
            raise Left(node.how, value)
        elif isinstance(node, syntax.Opaque):
            self._skip(node, scope, node.why)
        else:
            raise NotUnderstood(f"a {type(node).__name__} as a statement", node.line)

    def value(self, node: syntax.Node, scope: Scope | None = None) -> Value:
        """The value of an expression."""
        scope = Scope() if scope is None else scope
        if isinstance(node, syntax.Literal):
            return node.value
        if isinstance(node, syntax.Name):
            return self._named(node.name, scope)
        if isinstance(node, syntax.Member):
            return self._member(self.value(node.of, scope), node.name, node.line)
        if isinstance(node, syntax.Index):
            return self._indexed(self.value(node.of, scope), self.value(node.index, scope), node.line)
        if isinstance(node, syntax.Call):
            return self._called(node, scope)
        if isinstance(node, syntax.Unary):
            return self._unary(node, scope)
        if isinstance(node, syntax.Binary):
            return self._binary(node, scope)
        if isinstance(node, syntax.Ternary):
            return self._ternary(node, scope)
        if isinstance(node, syntax.Assign):
            return self._assign(node, scope)
        if isinstance(node, syntax.Braces):
            items = [operations.copied(self.value(item, scope)) for item in node.items]
            return operations.typed(Sequence(items, node.line), node.type, self._struct_of)
        if isinstance(node, syntax.SizeOf):
            return operations.size_of(node.type, node.line)
        if isinstance(node, syntax.Function):
            own = {c.name: self.value(c.value, scope) for c in node.captures if c.value is not None}
            return Closure(node, Scope(scope, own) if own else scope)
        return Unknown(f"a {type(node).__name__}", node.line)

    def _struct_of(self, name: str) -> tuple[str, ...] | None:
        return self._structs.get(name) or self._outer_struct_of(name)

    def _declare(self, node: syntax.Declare, declared: syntax.Declarator, scope: Scope) -> None:
        if declared.value is None:
            length = None if declared.length is None else self.value(declared.length, scope)
            scope.names[declared.name] = operations.unset(node.type, length, self._struct_of, node.line)
            return
        value = operations.typed(self.value(declared.value, scope), node.type, self._struct_of)
        if isinstance(value, Sequence) and not value.items and not isinstance(declared.value, syntax.Name):
            value = operations.typed(value, node.type, self._struct_of)
        scope.names[declared.name] = value if "&" in node.type.split() else operations.copied(value)

    def _if(self, node: syntax.If, scope: Scope) -> None:
        holds = truth(self.value(node.test, scope))
        if isinstance(holds, Unknown):
            self._skip(node, scope, f"a condition with {holds.why}")
        elif holds:
            self.run(node.then, Scope(scope))
        elif node.other is not None:
            self.run(node.other, Scope(scope))

    def _loop(self, node: syntax.For | syntax.Each, outer: Scope) -> None:
        scope = Scope(outer)
        if isinstance(node, syntax.Each):
            over = self.value(node.of, scope)
            if not isinstance(over, Sequence):
                self._skip(node, outer, "a loop over an unknown range")
                return
            for item in list(over.items):
                scope.names[node.name] = item
                if not self._turn(node.body, scope):
                    return
            return
        if node.first is not None:
            self.run(node.first, scope)
        for _ in range(MOST_ROUNDS):
            holds = True if node.test is None else truth(self.value(node.test, scope))
            if isinstance(holds, Unknown):
                self._skip(node, outer, f"a loop with {holds.why}")
                return
            if not holds or not self._turn(node.body, scope):
                return
            if node.step is not None:
                self.value(node.step, scope)
        self._skip(node, outer, f"a loop of more than {MOST_ROUNDS} rounds")

    def _turn(self, body: syntax.Node, scope: Scope) -> bool:
        """Run a loop's body once; whether the loop goes on."""
        try:
            self.run(body, Scope(scope))
        except Left as left:
            if left.how == "return":
                raise
            return left.how == "continue"
        return True

    def _switch(self, node: syntax.Switch, scope: Scope) -> None:
        value, inner = self.value(node.of, scope), Scope(scope)
        start: int | None = None
        for index, each in enumerate(node.statements):
            if isinstance(each, syntax.Case) and each.value is not None:
                same = operations.binary("==", value, self.value(each.value, inner), each.line)
                if isinstance(same, Unknown):
                    self._skip(node, scope, f"a switch over {same.why}")
                    return
                if same:
                    start = index
                    break
        if start is None:
            defaults = [i for i, s in enumerate(node.statements) if isinstance(s, syntax.Case) and s.value is None]
            if not defaults:
                return
            start = defaults[0]
        try:
            for each in node.statements[start:]:
                if not isinstance(each, syntax.Case):
                    self.run(each, inner)
        except Left as left:
            if left.how != "break":
                raise

    def _skip(self, node: syntax.Node, scope: Scope, why: str) -> None:
        """Leave a statement out: note it where it matters, and forget what it might have changed."""
        names = syntax.names_in(node)
        if self._matters(names):
            self.notes.append(Note(node.line, why))
        unknown = Unknown(f"what line {node.line} does ({why})", node.line)
        for name in syntax.assigned_in(node):
            holder = scope.holder(name)
            if holder is not None and not isinstance(holder.names[name], Record | Closure):
                holder.names[name] = unknown
            elif holder is None and isinstance(node, syntax.Opaque) and self._global(name) is None:
                scope.names[name] = unknown
            for record in records(scope):
                if name in record.members:
                    record.members[name] = unknown

    def _named(self, name: str, scope: Scope) -> Value:
        holder = scope.holder(name)
        if holder is not None:
            return holder.names[name]
        found = self._global(name)
        return Symbol(name) if found is None else found

    def _global(self, name: str) -> Value | None:
        return CONSTANTS.get(name, self._resolve(name))

    def _member(self, of: Value, name: str, line: int) -> Value:
        if isinstance(of, Unknown):
            return of
        if isinstance(of, Record):
            if name in of.members:
                return of.members[name]
            if of.missing is not None:
                return of.missing(name, line)
        return Unknown(f"member {name}", line)

    def _indexed(self, of: Value, index: Value, line: int) -> Value:
        if isinstance(of, Unknown):
            return of
        if isinstance(of, Sequence) and isinstance(index, int) and index < len(of.items):
            return of.items[index]
        if isinstance(of, Mapping):
            found = operations.key(index)
            if found not in of.items and of.made is not None:
                of.items[found] = of.made()
            if found in of.items:
                return of.items[found]
        return Unknown("an element", line)

    def _called(self, node: syntax.Call, scope: Scope) -> Value:
        arguments = [self.value(argument, scope) for argument in node.arguments]
        if isinstance(node.of, syntax.Member):
            of = self.value(node.of.of, scope)
            return of if isinstance(of, Unknown) else operations.method(of, node.of.name, arguments, node.line)
        if isinstance(node.of, syntax.Name):
            name = node.of.name
            if name in self._natives:
                return self._natives[name](arguments, node.line)
            if (found := self._builtin(name, arguments, node.line)) is not None:
                return found
        of = self.value(node.of, scope)
        if isinstance(of, Closure):
            return self.call(of, arguments)
        return of if isinstance(of, Unknown) else Unknown(f"a call of {getattr(of, 'name', 'a value')}", node.line)

    def _builtin(self, name: str, arguments: list[Value], line: int) -> Value | None:
        if name in ("max", "min") and len(arguments) == 2:
            first = operations.binary("<" if name == "max" else ">", arguments[0], arguments[1], line)
            return first if isinstance(first, Unknown) else arguments[1] if first else arguments[0]
        if name in ("static_cast", "move", "string", "ref", "runtime_error") and len(arguments) == 1:
            return arguments[0]
        if name == "to_string" and len(arguments) == 1:
            return str(arguments[0]) if isinstance(arguments[0], int) else Unknown("to_string", line)
        if name == "make_shared":
            return Record()
        return None

    def _unary(self, node: syntax.Unary, scope: Scope) -> Value:
        if node.mark[-2:] in ("++", "--"):
            before = self.value(node.of, scope)
            after = operations.binary(node.mark[-1], before, 1, node.line)
            self._put(node.of, after, scope)
            return before if node.mark.startswith("post") else after
        value = self.value(node.of, scope)
        if isinstance(value, Unknown) or node.mark in ("*", "&", "+"):
            return value
        if node.mark == "!":
            holds = truth(value)
            return holds if isinstance(holds, Unknown) else not holds
        if isinstance(value, int) and node.mark == "~":
            return ~value
        if isinstance(value, int | float) and node.mark == "-":
            return -value
        return Unknown(f"{node.mark} of a value", node.line)

    def _binary(self, node: syntax.Binary, scope: Scope) -> Value:
        if node.mark in ("&&", "||"):
            decisive = node.mark == "||"
            left = truth(self.value(node.left, scope))
            if not isinstance(left, Unknown) and left == decisive:
                return decisive
            right = truth(self.value(node.right, scope))
            if not isinstance(right, Unknown) and right == decisive:
                return decisive
            return left if isinstance(left, Unknown) else right
        return operations.binary(node.mark, self.value(node.left, scope), self.value(node.right, scope), node.line)

    def _ternary(self, node: syntax.Ternary, scope: Scope) -> Value:
        holds = truth(self.value(node.test, scope))
        if isinstance(holds, Unknown):
            return holds
        return self.value(node.then if holds else node.other, scope)

    def _assign(self, node: syntax.Assign, scope: Scope) -> Value:
        value = self.value(node.value, scope)
        if node.mark != "=":
            value = operations.binary(node.mark[:-1], self.value(node.target, scope), value, node.line)
        elif isinstance(value, Sequence):
            # Braces take the structure of what they replace.
            before = self.value(node.target, scope)
            if isinstance(before, Record) and before.order:
                value = Record(dict(zip(before.order, value.items, strict=False)), before.order, before.missing)
        self._put(node.target, operations.copied(value), scope)
        return value

    def _put(self, target: syntax.Node, value: Value, scope: Scope) -> None:
        if isinstance(target, syntax.Name):
            (scope.holder(target.name) or scope).names[target.name] = value
            return
        if isinstance(target, syntax.Unary):
            self._put(target.of, value, scope)
            return
        if not isinstance(target, syntax.Member | syntax.Index):
            raise NotUnderstood("the target of an assignment", target.line)
        of = self.value(target.of, scope)
        if isinstance(target, syntax.Member):
            if isinstance(of, Record):
                of.members[target.name] = value
            return
        index = self.value(target.index, scope)
        if isinstance(of, Sequence) and isinstance(index, int) and index < len(of.items):
            of.items[index] = value
        elif isinstance(of, Mapping):
            of.items[operations.key(index)] = value
        elif not isinstance(of, Unknown):
            raise NotUnderstood("the target of an assignment", target.line)
