"""Messages for a person at a terminal: source lines, carets, notes, and the fix as a small diff.

    error[OPUS203]: `rate` is a bandwidth; 200 has no unit
      --> bench.opus:9:32
       |
     9 |   nic = { ports = 2, rate = 200, optics = duplex }
       |                             ^^^ a number without a unit
       |
       = help: write `200 Gbps`

Everything is laid out in terminal columns: a tab is 4, a wide character 2, a combining one 0.
"""

import textwrap
from collections.abc import Iterable, Iterator

from opusc.diagnostics.layout import Mark, Row, clean, crop, glyphs, marked_rows
from opusc.diagnostics.model import Diagnostic, Label, Severity
from opusc.diagnostics.patch import changed_lines
from opusc.source import Source, Span

__all__ = ["render", "summary"]

_COLOURS = {"error": "1;31", "warning": "1;33", "gutter": "1;34", "note": "1;36", "help": "1;32", "bold": "1"}
_NARROWEST = 40


def render(diagnostics: Iterable[Diagnostic], *, width: int = 80, colour: bool = False) -> str:
    """All messages, each followed by an empty line. `width` is the terminal's, in columns."""
    page = _Page(max(width, _NARROWEST), colour)
    return "".join(page.message(diagnostic) + "\n" for diagnostic in diagnostics)


def summary(diagnostics: Iterable[Diagnostic], *, cut: bool = False) -> str:
    """`2 errors, 1 warning`; empty when there are none. `cut`: there are more, which are not shown."""
    counts = dict.fromkeys(Severity, 0)
    for diagnostic in diagnostics:
        counts[diagnostic.severity] += 1
    told = ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items() if n)
    return f"{told}; there are more: repair these first" if cut else told


class _Page:
    def __init__(self, width: int, colour: bool) -> None:
        self.width = width
        self.colour = colour

    def paint(self, text: str, style: str) -> str:
        if not self.colour or not style or not text:
            return text
        return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m"

    def message(self, diagnostic: Diagnostic) -> str:
        labels = [Label(diagnostic.span, diagnostic.label), *diagnostic.secondary]
        gutter = len(str(max(label.span.line for label in labels)))
        lines = list(self.headline(diagnostic))
        for at, source in enumerate(dict.fromkeys(label.span.source for label in labels)):
            here = [(label, n == 0) for n, label in enumerate(labels) if label.span.source is source]
            lines += self.snippet(source, here, gutter, "-->" if at == 0 else ":::", diagnostic.severity)
        for note in diagnostic.notes:
            lines += self.remark("note", note, gutter)
        if diagnostic.help:
            lines += self.remark("help", diagnostic.help, gutter)
        lines += self.fix(diagnostic, gutter)
        if lines[-1] == self.bar(gutter):
            lines.pop()
        return "\n".join(line.rstrip() for line in lines) + "\n"

    def bar(self, gutter: int) -> str:
        return self.paint(" " * gutter + " |", "gutter")

    def headline(self, diagnostic: Diagnostic) -> Iterator[str]:
        tag = f"{diagnostic.severity}[{diagnostic.code}]"
        first, *rest = _wrap(f"{tag}: {clean(diagnostic.message)}", self.width, "    ")
        yield self.paint(tag, diagnostic.severity) + self.paint(first[len(tag) :], "bold")
        for line in rest:
            yield self.paint(line, "bold")

    def snippet(
        self, source: Source, labels: list[tuple[Label, bool]], gutter: int, arrow: str, severity: Severity
    ) -> Iterator[str]:
        """The lines of one source that labels point at; the first label's place stands above them."""
        bar = self.bar(gutter)
        yield self.paint(" " * gutter + arrow, "gutter") + " " + clean(labels[0][0].span.place)
        if not source.text:
            return
        yield bar
        by_line: dict[int, list[tuple[Label, bool]]] = {}
        for label in labels:
            by_line.setdefault(label[0].span.line, []).append(label)
        previous = 0
        for number in sorted(by_line):
            if previous and number - previous == 2:
                yield from self.line(source, number - 1, [], gutter, severity)
            elif previous and number - previous > 2:
                yield self.paint("...", "gutter")
            yield from self.line(source, number, by_line[number], gutter, severity)
            previous = number
        yield bar

    def line(
        self, source: Source, number: int, labels: list[tuple[Label, bool]], gutter: int, severity: Severity
    ) -> Iterator[str]:
        cells = glyphs(source.line_text(number))
        room = self.width - gutter - 4
        marks = [_mark(label, primary, number, cells.columns, severity) for label, primary in labels]
        text, marks = crop(cells, marks, room)
        yield self.paint(f"{number:>{gutter}} |", "gutter") + " " + text
        bar = self.bar(gutter)
        for row in marked_rows(marks, room):
            yield bar + " " + self.row(row)

    def row(self, row: Row) -> str:
        out, run, style = "", "", ""
        for character, next_style in row:
            if next_style != style:
                out, run, style = out + self.paint(run, style), "", next_style
            run += character
        return out + self.paint(run, style)

    def remark(self, kind: str, text: str, gutter: int) -> Iterator[str]:
        prefix = " " * gutter + " = "
        indent = " " * (len(prefix) + len(kind) + 2)
        lines = _wrap(clean(text, keep_lines=True), self.width - len(indent), "")
        yield self.paint(prefix, "gutter") + self.paint(f"{kind}:", kind) + f" {lines[0]}"
        for line in lines[1:]:
            yield indent + line

    def fix(self, diagnostic: Diagnostic, gutter: int) -> Iterator[str]:
        if not diagnostic.fix:
            return
        yield self.paint(" " * gutter + " = ", "gutter") + self.paint("fix:", "help")
        for number, sign, line in changed_lines(diagnostic.fix):
            cells = glyphs(line)
            edited = (e.span.source.position(e.span.start) for e in diagnostic.fix)
            columns = [cells.columns[min(at - 1, len(line))] for where, at in edited if where == number]
            marks = [Mark(at, at + 1, "", "", "") for at in columns[:1]]
            text, _ = crop(cells, marks, self.width - gutter - 4)
            style = "error" if sign == "-" else "help"
            yield self.paint(f"{number:>{gutter}} {sign} {text}", style)


def _mark(label: Label, primary: bool, number: int, columns: tuple[int, ...], severity: Severity) -> Mark:
    """Where a label stands on its first line; one that goes on is marked to the line's end."""
    span: Span = label.span
    _, column = span.source.position(span.start)
    first = min(column - 1, len(columns) - 1)
    last = min(first + max(span.end - span.start, 0), len(columns) - 1)
    start, end = columns[first], columns[last]
    style = str(severity) if primary else "gutter"
    return Mark(start, max(end, start + 1), clean(label.text), "^" if primary else "-", style)


def _wrap(text: str, width: int, indent: str) -> list[str]:
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines += textwrap.wrap(
            paragraph,
            max(width, 20),
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return lines
