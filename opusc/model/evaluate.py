"""The evaluator: expressions to values, lazily, exactly, and within a budget.

There is no recursion in the language: names are evaluated once, on first use, and a name or function that
needs itself is an error. Every evaluation step and every list element counts against one budget, so that any
program ends, in time linear in what it expands to.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, NoReturn

from opusc.diagnostics import Diagnostics, Edit, Label
from opusc.model import operators
from opusc.model.blocks import block_of, refined
from opusc.model.functions import FUNCTIONS
from opusc.model.units import UNITS, Quantity
from opusc.model.unknown import meant_member, meant_name, meant_unit
from opusc.model.values import (
    Applied,
    Block,
    Bound,
    Builtin,
    Function,
    Interval,
    Missing,
    Module,
    Scope,
    Thunk,
    Value,
    kind_of,
    size_of,
)
from opusc.source import Span
from opusc.syntax import tree

__all__ = ["Evaluator", "Stop"]


class Stop(Exception):
    """An expression has no value; the sink says why."""


class Evaluator:
    STEPS = 2_000_000
    DEPTH = 600

    def __init__(self, sink: Diagnostics) -> None:
        # A level of evaluation is up to five Python calls; DEPTH, not Python, says when it is too deep.
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 8 * self.DEPTH))
        self.sink = sink
        self.steps = 0
        self.depth = 0
        self.exhausted = False
        self.too_deep = False
        self.calls: list[Function] = []
        #: Conditions of the blocks that were read, each with its scope.
        self.requires: list[tuple[tree.Require, Scope]] = []

    # --- failing -------------------------------------------------------------------------------

    def fail(
        self, code: str, message: str, span: Span, label: str = "", *, scope: Scope | None = None, **more: object
    ) -> NoReturn:
        """Report, naming the loop iterations around, and stop this expression."""
        notes = list(more.pop("notes", ()))  # type: ignore[call-overload]
        notes += [f"for {turn}" for names in (scope.iterations() if scope else ()) if (turn := _turn(names))]
        self.sink.error(code, message, span, label, notes=notes, **more)  # type: ignore[arg-type]
        raise Stop

    def spend(self, count: int, span: Span) -> None:
        self.steps += count
        if self.steps > self.STEPS:
            if self.exhausted:
                raise Stop  # said once
            self.exhausted = True
            self.fail(
                "OPUS120",
                f"the program expands to more than {self.STEPS:,} values",
                span,
                "the budget runs out here",
                help="use a smaller range; circuits are made by topologies, not by loops over every GPU",
            )

    # --- entry points --------------------------------------------------------------------------

    def bound(self, bound: Bound, words: Sequence[str] = ()) -> Value:
        """The value of a field, with the changes that refinements made."""
        if bound.base is not None and isinstance(bound.expression, tree.Record):
            base = self.bound(bound.base, words)
            if isinstance(base, Block):
                return refined(base, bound.expression, bound.scope)
        return self.evaluate(bound.expression, bound.scope, words)

    def evaluate(self, node: tree.Expression, scope: Scope, words: Sequence[str] = ()) -> Value:
        """The value of an expression. `words` are the enumeration words that its field may hold."""
        self.spend(1, node.span)
        if self.depth >= self.DEPTH:
            if self.too_deep:
                raise Stop  # said once
            self.too_deep = True
            self.fail(
                "OPUS120", f"expressions, names and functions nest deeper than {self.DEPTH}", node.span, "too deep"
            )
        self.depth += 1
        try:
            return self._RULES[type(node)](self, node, scope, words)
        finally:
            self.depth -= 1

    # --- atoms ---------------------------------------------------------------------------------

    def _number(self, node: tree.Number, scope: Scope, words: Sequence[str]) -> Value:
        return node.value.numerator if node.value.denominator == 1 else node.value

    def _quantity(self, node: tree.Quantity, scope: Scope, words: Sequence[str]) -> Value:
        unit = UNITS.get(node.unit)
        if unit is None:
            near, sure = meant_unit(node.unit)
            self.fail(
                "OPUS202",
                f"unknown unit `{node.unit}`",
                node.unit_span,
                "no unit of this name" if near is None else f"write `{near}`" if sure else f"did you mean `{near}`?",
                help="`opusc show units` lists all units" if near is None else "",
                fix=[Edit(node.unit_span, near)] if near and sure else [],
            )
        return Quantity(node.value * unit.factor, unit.dimension)

    def _string(self, node: tree.String, scope: Scope, words: Sequence[str]) -> Value:
        pieces = [part if isinstance(part, str) else self._text(part, scope) for part in node.parts]
        text = "".join(pieces)
        if len(text) > 4096:
            self.fail("OPUS120", "a text of more than 4,096 characters", node.span)
        return text

    def _text(self, node: tree.Expression, scope: Scope) -> str:
        value = self.evaluate(node, scope)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | str | Quantity):
            return str(value)
        self.fail("OPUS201", f"{kind_of(value)} cannot stand in a text", node.span, scope=scope)

    def _boolean(self, node: tree.Boolean, scope: Scope, words: Sequence[str]) -> Value:
        return node.value

    def _name(self, node: tree.Name, scope: Scope, words: Sequence[str]) -> Value:
        if node.text in words:
            return Applied(node.text, node.span)
        found = scope.find(node.text)
        if found is None:
            self.unknown(node, scope, words)
        if isinstance(found, Missing):
            raise Stop
        return self.force(found, node.span) if isinstance(found, Thunk) else found

    def force(self, thunk: Thunk, span: Span) -> Value:
        if isinstance(thunk.value, Missing):
            raise Stop
        if thunk.value is not None:
            return thunk.value
        if thunk.busy:
            self.fail(
                "OPUS103",
                f"`{thunk.span.text}` is defined by itself",
                span,
                "needed again here",
                secondary=[Label(thunk.span, "while it is being evaluated")],
            )
        thunk.busy = True
        try:
            thunk.value = self.bound(thunk.bound) if thunk.make is None else thunk.make()
        except Stop:
            thunk.value = Missing()  # said once
            raise
        finally:
            thunk.busy = False
        return thunk.value

    def unknown(self, node: tree.Name, scope: Scope, words: Sequence[str]) -> NoReturn:
        if len(self.sink) >= self.sink.LIMIT and self.sink.has_errors:
            raise Stop  # it would not be kept, and suggestions take time
        label, help, fix = meant_name(node, scope, words)
        self.fail("OPUS101", f"unknown name `{node.text}`", node.span, label, help=help, fix=fix)

    # --- lists ---------------------------------------------------------------------------------

    def _list(self, node: tree.List, scope: Scope, words: Sequence[str]) -> Value:
        return tuple(self.evaluate(item, scope, words) for item in node.items)

    def _tuple(self, node: tree.Tuple, scope: Scope, words: Sequence[str]) -> Value:
        return tuple(self.evaluate(item, scope, words) for item in node.items)

    def _range(self, node: tree.Range, scope: Scope, words: Sequence[str]) -> Value:
        return Interval(self.integer(node.first, scope), self.integer(node.last, scope))

    def integer(self, node: tree.Expression, scope: Scope) -> int:
        value = self.evaluate(node, scope)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        self.fail("OPUS201", f"a whole number is needed here, not {kind_of(value)}", node.span, scope=scope)

    def truth(self, node: tree.Expression, scope: Scope) -> bool:
        value = self.evaluate(node, scope)
        if isinstance(value, bool):
            return value
        self.fail("OPUS201", f"a condition is needed here, not {kind_of(value)}", node.span, scope=scope)

    def items(self, value: Value, span: Span) -> Sequence[Value]:
        """The elements of a list or range."""
        if isinstance(value, Interval):
            self.spend(value.size, span)
            return list(value)
        if isinstance(value, tuple):
            return value
        self.fail("OPUS201", f"a list or a range is needed here, not {kind_of(value)}", span)

    def _comprehension(self, node: tree.Comprehension, scope: Scope, words: Sequence[str]) -> Value:
        return tuple(value for value, _ in self._turns(node, 0, scope, words))

    def _turns(
        self, node: tree.Comprehension, at: int, scope: Scope, words: Sequence[str]
    ) -> Iterator[tuple[Value, Scope]]:
        """Each element with the scope of its turn."""
        if at == len(node.clauses):
            yield self.evaluate(node.element, scope, words), scope
            return
        names, iterable, condition = node.clauses[at]
        for value in self.items(self.evaluate(iterable, scope), iterable.span):
            inner = Scope(scope, loop=True)
            if len(names) == 1:
                inner.names[names[0].text] = value
            elif isinstance(value, tuple) and len(value) == len(names):
                inner.names.update((n.text, v) for n, v in zip(names, value, strict=True))
            else:
                self.fail("OPUS201", f"{len(names)} names, and {kind_of(value)} to unpack", iterable.span)
            if condition is None or self.truth(condition, inner):
                yield from self._turns(node, at + 1, inner, words)

    def elements(self, node: tree.Expression, scope: Scope) -> Iterator[tuple[Value, str]]:
        """The elements of a list or range, each with the loop variables that made it, outermost first:
        `v = 3, d = 0`, or nothing."""
        if not isinstance(node, tree.Comprehension):
            yield from ((value, "") for value in self.items(self.evaluate(node, scope), node.span))
            return
        for value, inner in self._turns(node, 0, scope, ()):
            yield value, ", ".join(_turn(names) for names in reversed(list(inner.iterations())))

    # --- operators -----------------------------------------------------------------------------

    def _unary(self, node: tree.Unary, scope: Scope, words: Sequence[str]) -> Value:
        if node.operator == "not":
            return not self.truth(node.operand, scope)
        value = self.evaluate(node.operand, scope)
        if isinstance(value, int | Fraction) and not isinstance(value, bool):
            return -value
        if isinstance(value, Quantity):
            return Quantity(-value.value, value.dimension)
        self.fail("OPUS201", f"{kind_of(value)} has no negative", node.operand.span, scope=scope)

    def _binary(self, node: tree.Binary, scope: Scope, words: Sequence[str]) -> Value:
        if node.operator == "and":
            return self.truth(node.left, scope) and self.truth(node.right, scope)
        if node.operator == "or":
            return self.truth(node.left, scope) or self.truth(node.right, scope)
        left = self.evaluate(node.left, scope, words)
        right = self.evaluate(node.right, scope, words)
        if node.operator == "in" and isinstance(right, tuple):
            self.spend(len(right), node.span)
        try:
            value = operators.apply(node.operator, left, right)
        except operators.Unfit as error:
            self.fail("OPUS203", str(error), node.span, scope=scope)
        if isinstance(value, tuple):
            self.spend(len(value), node.span)
        return value

    def _when(self, node: tree.When, scope: Scope, words: Sequence[str]) -> Value:
        branch = node.yes if self.truth(node.condition, scope) else node.no
        return self.evaluate(branch, scope, words)

    # --- access --------------------------------------------------------------------------------

    def _attribute(self, node: tree.Attribute, scope: Scope, words: Sequence[str]) -> Value:
        if node.span.text in words:
            return Applied(node.span.text, node.span)  # a dotted word: `dp.shard`
        value = self.evaluate(node.value, scope)
        name = node.name.text
        if isinstance(value, Module):
            found = value.scope.names.get(name)
            if found is not None:
                return self.force(found, node.span) if isinstance(found, Thunk) else found
            self._no_member(node, f"module `{value.name}` has no `{name}`", list(value.scope.names))
        if isinstance(value, Block):
            entry = value.get(name)
            if entry is not None:
                return self.bound(entry.value)
            known = [e.name for e in value.entries]
            what = f"{value.kind} `{value.name}`" if value.name else f"this {value.kind or 'record'}"
            self._no_member(node, f"{what} does not state `{name}`", known, value.kind)
        self.fail("OPUS101", f"{kind_of(value)} has no fields", node.span, scope=scope)

    def _no_member(self, node: tree.Attribute, message: str, known: list[str], kind: str = "") -> NoReturn:
        label, way_out, fix = meant_member(node.name, known, kind)
        self.fail("OPUS101", message, node.name.span, label, help=way_out, fix=fix)

    def _index(self, node: tree.Index, scope: Scope, words: Sequence[str]) -> Value:
        if isinstance(node.value, tree.Name) and node.value.text in words:
            # `csv ["a.csv"]`: a word applied to a list of one.
            items = tree.List((node.index,), span=node.index.span)
            return Applied(node.value.text, node.span, Bound(items, scope))
        value = self.evaluate(node.value, scope)
        at = self.integer(node.index, scope)
        if not isinstance(value, tuple | Interval):
            self.fail("OPUS201", f"{kind_of(value)} has no elements", node.value.span, scope=scope)
        if not 0 <= at < size_of(value):
            count = f"a list of {size_of(value)}"
            self.fail("OPUS204", f"index {at} of {count}", node.index.span, "out of range", scope=scope)
        return value.first + at if isinstance(value, Interval) else value[at]

    def _call(self, node: tree.Call, scope: Scope, words: Sequence[str]) -> Value:
        if isinstance(node.function, tree.Name) and node.function.text in words:
            given = Bound(node.arguments[0], scope) if node.arguments else None
            if len(node.arguments) > 1:
                self.fail("OPUS205", f"`{node.function.text}` takes one value; several stand in a list", node.span)
            return Applied(node.function.text, node.span, given)
        function = self.evaluate(node.function, scope)
        if isinstance(function, Builtin):
            arguments = [self.evaluate(a, scope) for a in node.arguments]
            try:
                return FUNCTIONS[function.name].apply(arguments, lambda count: self.spend(count, node.span))
            except operators.Unfit as error:
                self.fail("OPUS205", f"`{function.name}`: {error}", node.span, scope=scope)
        if not isinstance(function, Function):
            at = node.function.span
            way_out = f"write `{at.text} {{ NAME = VALUE }}`" if isinstance(function, Block) else ""
            self.fail("OPUS205", f"{kind_of(function)} cannot be called", at, help=way_out, scope=scope)
        wanted = len(function.parameters)
        if wanted != len(node.arguments):
            values = "1 value" if wanted == 1 else f"{wanted} values"
            self.fail("OPUS205", f"`{function.name}` takes {values}, not {len(node.arguments)}", node.span)
        if len(set(function.parameters)) < wanted:
            self.fail("OPUS102", f"two parameters of `{function.name}` have one name", function.body.span)
        if any(function is other for other in self.calls):
            self.fail("OPUS103", f"`{function.name}` calls itself", node.span, help="the language has no recursion")
        inner = Scope(function.scope)
        for name, argument in zip(function.parameters, node.arguments, strict=True):
            inner.names[name] = self.evaluate(argument, scope)
        self.calls.append(function)
        try:
            return self.evaluate(function.body, inner, words)
        finally:
            self.calls.pop()

    # --- records -------------------------------------------------------------------------------

    def _tagged(self, node: tree.Tagged, scope: Scope, words: Sequence[str]) -> Value:
        if node.tag.text not in words:
            self.unknown(node.tag, scope, words)
        return Applied(node.tag.text, node.span, Bound(node.argument, scope))

    def _record(self, node: tree.Record, scope: Scope, words: Sequence[str]) -> Value:
        return block_of(node, scope)

    def _refine(self, node: tree.Refine, scope: Scope, words: Sequence[str]) -> Value:
        base = self.evaluate(node.base, scope, words)
        if isinstance(base, Applied):
            return Applied(base.word, node.span, base.argument, block_of(node.changes, scope))
        if isinstance(base, Block):
            return refined(base, node.changes, scope)
        self.fail("OPUS206", f"{kind_of(base)} has no fields to change", node.base.span, scope=scope)

    _RULES: ClassVar[dict[type, Callable[..., Value]]] = {
        tree.Number: _number,
        tree.Quantity: _quantity,
        tree.String: _string,
        tree.Boolean: _boolean,
        tree.Name: _name,
        tree.List: _list,
        tree.Tuple: _tuple,
        tree.Range: _range,
        tree.Comprehension: _comprehension,
        tree.Unary: _unary,
        tree.Binary: _binary,
        tree.When: _when,
        tree.Attribute: _attribute,
        tree.Index: _index,
        tree.Call: _call,
        tree.Tagged: _tagged,
        tree.Record: _record,
        tree.Refine: _refine,
    }


def _turn(names: Mapping[str, "Thunk | Value"]) -> str:
    """The variables of a loop in one of its turns: `v = 3, w = 4`."""
    known = ((name, value) for name, value in names.items() if not isinstance(value, Thunk))
    return ", ".join(f"{name} = {operators.shown(value)}" for name, value in known)
