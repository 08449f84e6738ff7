"""From lark's parse tree to the syntax tree.

lark's tree is bushy only where the author's is: each rule below becomes one node, with its exact span.
"""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias, TypeVar

from lark import Token
from lark import Tree as LarkTree

from opusc.diagnostics import Diagnostics
from opusc.source import Source, Span
from opusc.syntax import tree
from opusc.syntax.mistakes import KEYWORDS
from opusc.syntax.strings import string_parts

__all__ = ["Builder", "TooDeep"]

Branch: TypeAlias = LarkTree[Token]
Node: TypeAlias = Branch | Token
T = TypeVar("T")
_DIGITS = re.compile(r"[0-9_.]+")


class TooDeep(Exception):
    """The text nests deeper than `Builder.DEPTH`."""

    def __init__(self, span: Span) -> None:
        super().__init__()
        self.span = span


class Builder:
    """Builds the nodes of one source.

    `parse_inner` parses the expressions inside strings; `offset` is where in the source the parsed text starts.
    """

    DEPTH = 100
    DIGITS = 400

    def __init__(
        self,
        source: Source,
        comments: Sequence[tree.Comment],
        sink: Diagnostics,
        parse_inner: Callable[[int, int], "tree.Expression | None"],
        offset: int = 0,
    ) -> None:
        self.source, self.sink, self.parse_inner, self.offset = source, sink, parse_inner, offset
        self.depth = 0
        # Doc comments by the line they stand on; code before them on the line makes them ordinary.
        self.docs = {
            c.span.line: c.text[2:].strip()
            for c in comments
            if c.text.startswith("##") and not source.line_text(c.span.line).split("#")[0].strip()
        }

    # --- places --------------------------------------------------------------------------------

    def span(self, node: Node) -> Span:
        if isinstance(node, Token):
            return Span(self.source, self.offset + (node.start_pos or 0), self.offset + (node.end_pos or 0))
        meta = node.meta  # never empty: every rule that becomes a node has a token
        return Span(self.source, self.offset + meta.start_pos, self.offset + meta.end_pos)

    def name(self, token: Node) -> tree.Name:
        return tree.Name(str(token), span=self.span(token))

    def new_name(self, token: Node) -> tree.Name:
        """A name that the text gives to something: no word of the language, or it could not be used."""
        name = self.name(token)
        if name.text in KEYWORDS:
            self.sink.error(
                "OPUS001",
                f"`{name.text}` is a word of the language and cannot be a name",
                name.span,
                "choose another",
                help=f"for example `{name.text}_`",
            )
        return name

    def dotted_names(self, node: Node) -> tuple[tree.Name, ...]:
        return tuple(self.name(part) for part in _kids(node))

    def dotted(self, node: Node) -> tree.Name:
        return tree.Name(".".join(map(str, _kids(node))), span=self.span(node))

    def doc(self, span: Span) -> str:
        """The `##` lines directly above."""
        lines: list[str] = []
        line = span.line - 1
        while line in self.docs:
            lines.append(self.docs[line])
            line -= 1
        return "\n".join(reversed(lines))

    # --- top level -----------------------------------------------------------------------------

    def version(self, node: Node) -> tree.Number:
        return self._number(_kids(node)[0])

    def entry(self, node: Branch) -> tree.Entry:
        kids, span = _kids(node), self.span(node)
        match node.data:
            case "use":
                where, alias = kids[0], kids[1]
                path = self._string(where) if isinstance(where, Token) else None
                module = None if isinstance(where, Token) else self.dotted_names(where)
                return tree.Use(module, path, self._maybe(alias, self.name), span=span)
            case "parameter":
                name, type_, domain, default = kids
                return tree.Parameter(
                    self.new_name(name),
                    self._maybe(type_, self.name),
                    self._maybe(domain, self._only),
                    self._maybe(default, self._only),
                    doc=self.doc(span),
                    span=span,
                )
            case "fault":
                kind, selection, of = kids
                return tree.Fault(self.name(kind), self.expression(selection), self._maybe(of, self._only), span=span)
            case "declaration":
                kind, name, parameters, value = kids
                return tree.Declaration(
                    self.name(kind),
                    self.new_name(name),
                    self._maybe(parameters, self._names),
                    self.expression(value),
                    doc=self.doc(span),
                    span=span,
                )
        item = self.item(node)
        assert isinstance(item, tree.Let | tree.Require)
        return item

    def _names(self, node: Node) -> tuple[tree.Name, ...]:
        return tuple(self.new_name(kid) for kid in _kids(node) if kid is not None)

    def _maybe(self, node: Node | None, build: Callable[[Node], T]) -> T | None:
        return None if node is None else build(node)

    def _only(self, node: Node) -> tree.Expression:
        """The expression of a clause such as `else ...`."""
        return self.expression(_kids(node)[-1])

    # --- blocks --------------------------------------------------------------------------------

    def item(self, node: Branch) -> tree.Item:
        kids, span = _kids(node), self.span(node)
        doc = self.doc(span)
        match node.data:
            case "let":
                _, name, parameters, value = kids
                names = self._maybe(parameters, self._names)
                return tree.Let(self.new_name(name), names, self.expression(value), doc=doc, span=span)
            case "require":
                return tree.Require(self.expression(kids[1]), self._maybe(kids[2], self._only), span=span)
            case "phase":
                _, name, *axes, body = kids
                stated = tuple(self.dotted(axis) for axis in axes if axis is not None)
                return tree.Phase(self.dotted(name), stated or None, self._record(body), doc=doc, span=span)
            case "plain_field":
                return tree.Field(self.name(kids[0]), self.expression(kids[1]), doc=doc, span=span)
            case "labelled_field":
                name, label, value = kids
                return tree.Field(self.name(name), self.expression(value), self.name(label), doc=doc, span=span)
            case "counted_field":
                name, first, last, value = kids
                low = self.expression(first)
                selection = low
                if last is not None:
                    high = self.expression(last)
                    selection = tree.Range(low, high, span=low.span.to(high.span))
                return tree.Field(self.name(name), self.expression(value), None, selection, doc=doc, span=span)
        name, *indices, value = kids
        return tree.Field(
            self.name(name), self.expression(value), None, self._selection(indices), bracketed=True, doc=doc, span=span
        )

    def _selection(self, nodes: list[Node]) -> tree.Expression:
        items = tuple(self.expression(n) for n in nodes)
        return items[0] if len(items) == 1 else tree.List(items, span=items[0].span.to(items[-1].span))

    def _record(self, node: Node) -> tree.Record:
        items = tuple(self.item(kid) for kid in _kids(node) if isinstance(kid, LarkTree))
        return tree.Record(items, span=self.span(node))

    # --- expressions ---------------------------------------------------------------------------

    def expression(self, node: Node) -> tree.Expression:
        self.depth += 1
        if self.depth > self.DEPTH:
            raise TooDeep(self.span(node))
        try:
            return self._expression(node)
        finally:
            self.depth -= 1

    def _expression(self, node: Node) -> tree.Expression:
        assert isinstance(node, LarkTree)
        kids, span = _kids(node), self.span(node)
        match node.data:
            case "name":
                return tree.Name(str(kids[0]), span=span)
            case "number":
                return self._number(kids[0])
            case "quantity":
                return self._quantity(kids[0])
            case "string":
                return self._string(kids[0])
            case "true" | "false":
                return tree.Boolean(node.data == "true", span=span)
            case "tagged":
                return tree.Tagged(self.name(kids[0]), self._string(kids[1]), span=span)
            case "list":
                return tree.List(tuple(self.expression(kid) for kid in kids if kid is not None), span=span)
            case "group":
                items = tuple(self.expression(kid) for kid in kids)
                return items[0] if len(items) == 1 else tree.Tuple(items, span=span)
            case "record":
                return self._record(node)
            case "comprehension":
                return tree.Comprehension(
                    self.expression(kids[0]), tuple(self._clause(kid) for kid in kids[1:]), span=span
                )
            case "range":
                return tree.Range(self.expression(kids[0]), self.expression(kids[1]), span=span)
            case "when":
                condition, yes, no = (self.expression(kid) for kid in kids)
                return tree.When(condition, yes, no, span=span)
            case "not_" | "negation":
                operator = "not" if node.data == "not_" else "-"
                return tree.Unary(operator, self.expression(kids[0]), span=span)
            case "or_" | "and_":
                return tree.Binary(str(node.data)[:-1], self.expression(kids[0]), self.expression(kids[1]), span=span)
            case "postfix":
                return self._postfix(kids)
        return self._operators(kids)

    def _operators(self, kids: list[Node]) -> tree.Expression:
        """`a + b - c` and its like: operands with operators between, from the left."""
        left = self.expression(kids[0])
        start = self.span(kids[0])  # with the parentheses, which `left` does not know
        for operator, operand in zip(kids[1::2], kids[2::2], strict=True):
            right = self.expression(operand)
            left = tree.Binary(str(operator), left, right, span=start.to(self.span(operand)))
        self._check_chain(len(kids) // 2, left.span)
        return left

    def _postfix(self, kids: list[Node]) -> tree.Expression:
        value = self.expression(kids[0])
        start = self.span(kids[0])  # with the parentheses, which `value` does not know
        for trailer in kids[1:]:
            assert isinstance(trailer, LarkTree)
            span = start.to(self.span(trailer))
            inner = [kid for kid in _kids(trailer) if kid is not None]
            match trailer.data:
                case "attribute":
                    value = tree.Attribute(value, self.name(inner[0]), span=span)
                case "call":
                    value = tree.Call(value, tuple(self.expression(kid) for kid in inner), span=span)
                case "refinement":
                    value = tree.Refine(value, self._record(inner[0]), span=span)
                case _:
                    value = self._index(value, inner, self.span(trailer), span)
        self._check_chain(len(kids), value.span)
        return value

    def _index(self, value: tree.Expression, inner: list[Node], brackets: Span, span: Span) -> tree.Expression:
        """`rail[3]`; or a word applied to a list, which several items make and a text, since no index is one."""
        items = tuple(self.expression(kid) for kid in inner)
        several = tree.List(items, span=brackets)
        if isinstance(value, tree.Name) and (len(items) > 1 or isinstance(items[0], tree.String)):
            return tree.Tagged(value, several, span=span)
        return tree.Index(value, items[0] if len(items) == 1 else several, span=span)

    def _check_chain(self, length: int, span: Span) -> None:
        if length > self.DEPTH:
            raise TooDeep(span)

    def _clause(self, node: Node) -> tuple[tuple[tree.Name, ...], tree.Expression, tree.Expression | None]:
        kids = _kids(node)
        names = tuple(self.new_name(kid) for kid in kids if isinstance(kid, Token) and kid.type == "NAME")
        rest = [kid for kid in kids[len(names) :] if not isinstance(kid, Token)]
        iterable, condition = rest[0], rest[1]
        return names, self.expression(iterable), self._maybe(condition, self._only)

    def _number(self, token: Node) -> tree.Number:
        return self._exact(str(token), self.span(token))

    def _exact(self, text: str, span: Span) -> tree.Number:
        if len(text) > self.DIGITS:
            self.sink.error("OPUS009", f"a number of more than {self.DIGITS} digits", span, "too long")
            return tree.Number(Fraction(0), "0", span=span)
        return tree.Number(Fraction(text.replace("_", "")), text, span=span)

    def _quantity(self, token: Node) -> tree.Quantity:
        text, span = str(token), self.span(token)
        digits = _DIGITS.match(text)
        assert digits is not None
        unit = text[digits.end() :].lstrip()
        number = self._exact(digits[0], Span(self.source, span.start, span.start + digits.end()))
        unit_span = Span(self.source, span.end - len(unit), span.end)
        return tree.Quantity(number.value, number.text, unit, unit_span, span=span)

    def _string(self, token: Node) -> tree.String:
        span = self.span(token)
        return tree.String(string_parts(span, self.parse_inner, self.sink), span=span)


def _kids(node: Node) -> list[Node]:
    assert isinstance(node, LarkTree)
    return node.children
