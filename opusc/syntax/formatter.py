"""The canonical layout: one way to write each program, comments where they were.

Blocks that the author wrote on one line stay on one line while they fit; others take a line for each field, with
the `=` of neighbouring lines under each other. Blank lines between groups stay, one at most. What holds a comment
inside an expression keeps the author's lines.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from opusc.diagnostics import Diagnostics
from opusc.source import Source, Span
from opusc.syntax import tree
from opusc.syntax.parser import parse
from opusc.syntax.printer import head_of_field, head_of_let, head_of_phase, inline, parameters, require

__all__ = ["format_program", "format_source"]

WIDTH = 120
_INDENT = "  "
Element = tree.Entry | tree.Item


def format_source(source: Source, sink: Diagnostics) -> str:
    """The canonical text of a program; the text itself when it does not parse, with errors in the sink.

    The output is parsed again, and refused (OPUS008) if it is another program or lost a comment.
    """
    program = parse(source, sink)
    if sink.has_errors:
        return source.text
    text = format_program(program)
    again_sink = Diagnostics()
    again = parse(Source(source.name, text), again_sink)
    same = again == program and [c.text.rstrip() for c in again.comments] == [c.text.rstrip() for c in program.comments]
    if again_sink.has_errors or not same:
        sink.error(
            "OPUS008",
            "formatting would change the program, so the file stays as it is",
            source.span(0, 0),
            notes=["this is a defect of opusc, not of your program"],
            help="please report it with the file",
        )
        return source.text
    return text


def format_program(program: tree.Program) -> str:
    return _Printer(program).text()


@dataclass
class _Line:
    """One line of output. `head` and `value` are aligned with their neighbours at the `=`."""

    text: str
    indent: int
    aligned: bool = False  # `text` is "head\0value"
    comment: str = ""
    blank_before: bool = False
    whole: bool = True  # the element has no further lines


@dataclass
class _Printer:
    program: tree.Program
    lines: list[_Line] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source = self.program.source
        text = self.source.text
        self.starts = [comment.span.start for comment in self.program.comments]
        self.own: list[tree.Comment] = []
        self.trailing: dict[int, tree.Comment] = {}
        for comment in self.program.comments:
            start = text.rfind("\n", 0, comment.span.start) + 1
            if text[start : comment.span.start].strip():
                self.trailing[comment.span.line] = comment
            else:
                self.own.append(comment)
        self.own_starts = [comment.span.start for comment in self.own]

    # --- the whole -----------------------------------------------------------------------------

    def text(self) -> str:
        end = len(self.source.text)
        elements: list[Element | tree.Number] = [*self.program.entries]
        if self.program.version is not None:
            elements.insert(0, self.program.version)
        self._container(elements, 0, end, 0)
        return _joined(self.lines)

    def _container(self, elements: Sequence[Element | tree.Number], start: int, end: int, indent: int) -> None:
        """The elements of a block and the comments between them, in order."""
        loose: list[tree.Comment] = []
        at = start
        for stop, after in [*((e.span.start, e.span.end) for e in elements), (end, end)]:
            loose += self.own[bisect_left(self.own_starts, at) : bisect_left(self.own_starts, stop)]
            at = after
        before = self.source.position(start)[0] if start else 0
        for node in sorted([*elements, *loose], key=lambda n: n.span.start):
            first = self._line_of(node)
            blank = (
                first - before > 1
                and bool(self.lines)
                and (before > 0 or start == 0)
                and not self._opens(before, start)
            )
            mark = len(self.lines)
            if isinstance(node, tree.Comment):
                self.lines.append(_Line(node.text.rstrip(), indent))
            else:
                self._element(node, indent)
            if blank and mark:
                self.lines[mark].blank_before = True
            before = self.source.position(max(node.span.end - 1, node.span.start))[0]

    def _opens(self, line: int, start: int) -> bool:
        """Whether this is the first thing in a block: no blank line after the brace."""
        return start > 0 and line == self.source.position(start)[0]

    def _line_of(self, node: "Element | tree.Number | tree.Comment") -> int:
        return node.span.line

    # --- elements ------------------------------------------------------------------------------

    def _element(self, node: "Element | tree.Number", indent: int) -> None:
        if self._comment_beside_value(node):
            self._verbatim(node.span, indent)
            return
        match node:
            case tree.Number():
                self._simple(f"opus {node.text}", node.span, indent)
            case tree.Use():
                what = (
                    ".".join(n.text for n in node.module) if node.module else node.path.span.text if node.path else ""
                )
                self._simple(f"use {what}" + (f" as {node.alias.text}" if node.alias else ""), node.span, indent)
            case tree.Parameter():
                self._parameter(node, indent)
            case tree.Fault():
                of = f" of {inline(node.of)}" if node.of else ""
                self._simple(f"fault {node.kind.text} {inline(node.selection)}{of}", node.span, indent)
            case tree.Require():
                self._require(node, indent)
            case tree.Let():
                self._assigned(head_of_let(node), node.value, node.span, indent)
            case tree.Field():
                self._assigned(head_of_field(node), node.value, node.span, indent)
            case tree.Phase():
                self._block(head_of_phase(node), "", node.body, node.span, indent)
            case tree.Declaration():
                head = f"{node.kind.text} {node.name.text}{parameters(node.parameters)}"
                if isinstance(node.value, tree.Record):
                    self._block(head, "", node.value, node.span, indent)
                else:
                    self._assigned(head, node.value, node.span, indent, align=False)

    def _parameter(self, node: tree.Parameter, indent: int) -> None:
        head = f"param {node.name.text}"
        head += f": {node.type.text}" if node.type else ""
        head += f" in {inline(node.domain)}" if node.domain else ""
        before = Span(self.source, node.span.start, node.default.span.start) if node.default else node.span
        if node.default is None or self._comments_in(before):
            self._simple(head, node.span, indent)
        else:
            self._assigned(head, node.default, node.span, indent)

    def _require(self, node: tree.Require, indent: int) -> None:
        """On one line, or with its message below where that is too long."""
        text = require(node)
        if node.message is None or len(text) + 2 * indent <= WIDTH or self._comments_in(node.span):
            self._simple(text, node.span, indent)
            return
        self.lines.append(_Line(f"require {inline(node.condition)}", indent, whole=False))
        self.lines.append(_Line(f"else {inline(node.message)}", indent + 1, comment=self._trailing_of(node.span.end)))

    def _simple(self, text: str, span: Span, indent: int) -> None:
        if self._comments_in(span):
            self._verbatim(span, indent)
        else:
            self.lines.append(_Line(text, indent, comment=self._trailing_of(span.end)))

    def _assigned(self, head: str, value: tree.Expression, span: Span, indent: int, align: bool = True) -> None:
        """`head = value`, on one line or as a block."""
        record = value if isinstance(value, tree.Record) else value.changes if isinstance(value, tree.Refine) else None
        base = "" if record is value or record is None else f"{inline(value.base, 9)} "  # type: ignore[union-attr]
        if record is not None and not self._inlines(record, len(head) + len(base) + 3, indent):
            if base and self._comments_in(Span(self.source, span.start, record.span.start)):
                self._verbatim(span, indent)
                return
            self._open(f"{head}\0{base}{{" if align else f"{head} = {base}{{", record, indent, span.end, aligned=align)
            return
        if self._comments_in(value.span):
            self._verbatim(span, indent)
            return
        text = inline(value)
        if "\n" in value.span.text and isinstance(value, tree.List | tree.Comprehension):
            self._list(head, value, span.end, indent)
        elif align:
            self.lines.append(_Line(f"{head}\0{text}", indent, True, self._trailing_of(span.end)))
        else:
            self.lines.append(_Line(f"{head} = {text}", indent, comment=self._trailing_of(span.end)))

    def _block(self, head: str, base: str, record: tree.Record, span: Span, indent: int) -> None:
        if self._inlines(record, len(head) + 1, indent):
            self.lines.append(_Line(f"{head} {inline(record)}", indent, comment=self._trailing_of(span.end)))
        else:
            self._open(f"{head} {{", record, indent, span.end)

    def _open(self, text: str, record: tree.Record, indent: int, after: int, aligned: bool = False) -> None:
        """A block over several lines, of an element that ends at the offset `after`."""
        start, end = record.span.start + 1, record.span.end - 1
        self.lines.append(_Line(text, indent, aligned, self._trailing_of(start), whole=False))
        self._container(record.items, start, end, indent + 1)
        self.lines.append(_Line("}", indent, comment=self._trailing_of(after)))

    def _list(self, head: str, value: "tree.List | tree.Comprehension", after: int, indent: int) -> None:
        """A list that the author wrote over several lines: his grouping, or a clause a line."""
        self.lines.append(_Line(f"{head}\0[", indent, True, whole=False))
        if isinstance(value, tree.Comprehension):
            rows = [inline(value.element)]
            for names, iterable, condition in value.clauses:
                rows.append(f"for {', '.join(n.text for n in names)} in {inline(iterable, 1)}")
                rows += [f"if {inline(condition, 1)}"] if condition is not None else []
        else:
            by_line: dict[int, list[str]] = {}
            for item in value.items:
                by_line.setdefault(item.span.line, []).append(inline(item))
            rows = [f"{', '.join(items)}," for items in by_line.values()]
        self.lines += [_Line(row, indent + 1) for row in rows]
        self.lines.append(_Line("]", indent, comment=self._trailing_of(after)))

    # --- comments ------------------------------------------------------------------------------

    def _inlines(self, record: tree.Record, before: int, indent: int) -> bool:
        if "\n" in record.span.text or self._comments_in(record.span):
            return False
        return 2 * indent + before + len(inline(record)) <= WIDTH or not record.items

    def _comment_beside_value(self, node: "Element | tree.Number") -> bool:
        """Whether a comment stands in an element but not in its value: in its head, after `=`, in brackets around."""
        match node:
            case tree.Let() | tree.Field() | tree.Declaration():
                inner = node.value.span
            case tree.Phase():
                inner = node.body.span
            case tree.Parameter(default=default) if default is not None:
                inner = default.span
            case _:
                return False
        before, after = Span(self.source, node.span.start, inner.start), Span(self.source, inner.end, node.span.end)
        return self._comments_in(before) or self._comments_in(after)

    def _comments_in(self, span: Span) -> bool:
        return bisect_left(self.starts, span.start) < bisect_left(self.starts, span.end)

    def _trailing_of(self, offset: int) -> str:
        """The comment on the line where something ends, if nothing else follows it there."""
        line = self.source.position(max(offset - 1, 0))[0]
        comment = self.trailing.get(line)
        if comment is None or comment.span.start < offset:
            return ""
        between = self.source.text[offset : comment.span.start]
        return comment.text.rstrip() if not between.strip(" \t,") else ""

    def _verbatim(self, span: Span, indent: int) -> None:
        """The author's lines, moved to the new indentation."""
        first = self.source.line_text(span.line)
        old = len(first) - len(first.lstrip())
        comment = self._trailing_of(span.end)
        for number, line in enumerate(span.text.split("\n")):
            kept = line if number == 0 else line[min(old, len(line) - len(line.lstrip())) :]
            self.lines.append(_Line(kept.rstrip(), indent))
        self.lines[-1].comment = comment


# --- from lines to text ----------------------------------------------------------------------------


def _joined(lines: list[_Line]) -> str:
    _align_values(lines)
    texts = [f"{_INDENT * line.indent}{line.text}".rstrip() for line in lines]
    _align_comments(lines, texts)
    out: list[str] = []
    for line, text in zip(lines, texts, strict=True):
        if line.blank_before and out:
            out.append("")
        out.append(text)
    return "\n".join(out) + "\n" if out else ""


def _align_values(lines: list[_Line]) -> None:
    """Put the `=` of neighbouring lines of one block under each other."""
    at = 0
    while at < len(lines):
        run = [at] if lines[at].aligned else []
        while run and lines[run[-1]].whole and run[-1] + 1 < len(lines):
            after = lines[run[-1] + 1]
            if not after.aligned or after.blank_before or after.indent != lines[at].indent:
                break
            run.append(run[-1] + 1)
        width = max((len(lines[i].text.split("\0")[0]) for i in run), default=0)
        for i in run:
            head, value = lines[i].text.split("\0")
            lines[i].text = f"{head:<{width}} = {value}"
        at = run[-1] + 1 if run else at + 1


def _align_comments(lines: list[_Line], texts: list[str]) -> None:
    """Put the comments at the ends of neighbouring lines under each other."""
    at = 0
    while at < len(lines):
        run = [at]
        while run[-1] + 1 < len(lines) and _goes_on(lines[run[-1]], lines[run[-1] + 1]):
            run.append(run[-1] + 1)
        commented = [i for i in run if lines[i].comment]
        column = max((len(texts[i]) for i in commented), default=0) + 2
        for i in commented:
            texts[i] = f"{texts[i]:<{column}}{lines[i].comment}"
        at = run[-1] + 1


def _goes_on(line: _Line, after: _Line) -> bool:
    """Whether the comments of two lines belong under each other: neighbours in one block."""
    apart = after.blank_before or after.indent != line.indent
    return not apart and not any(x.text.startswith(("#", "}")) for x in (line, after))
