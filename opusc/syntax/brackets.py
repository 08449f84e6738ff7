"""Brackets that do not match, found from the layout before anything else is explained.

One bracket too many or too few moves everything after it into another block, and the parser then stumbles far from
the mistake. People indent what they write, so lines tell where the mistake is: a text is cut into the stretches
that start with a declaration in the first column, each of which must balance by itself, and a closing bracket at
the start of a line belongs to the line that is indented as it is.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from opusc.diagnostics import Diagnostic, Label, Severity
from opusc.source import Source
from opusc.syntax.place import PAIRS
from opusc.syntax.scan import Lexeme, scan

__all__ = ["Mended", "mend_brackets"]

#: Brackets that are mended in one text, and how far up one that fits is looked for: bounds on the time.
MOST, DEEPEST = 25, 200

#: How a declaration looks that starts in the first column.
_DECLARATION = re.compile(
    r"(?:param|let)[ \t]+[A-Za-z_]|use[ \t]+[\"A-Za-z_]|fault[ \t]+[A-Za-z_]|require[ \t]+\S"
    r"|[A-Za-z_]\w*[ \t]+(?:[A-Za-z_]\w*|\"[^\"\n]*\")[ \t]*(?:[{(]|=(?!=)|$)",
    re.MULTILINE,
)
#: A field in the first column.
_OUTSIDE = re.compile(r"^[A-Za-z_]\w*[ \t]*=(?!=)", re.MULTILINE)
_INDENT = re.compile(r"[ \t]*")
_OPENERS = {closer: opener for opener, closer in PAIRS.items()}


@dataclass
class Mended:
    """What is wrong with the brackets of a text."""

    found: list[Diagnostic] = field(default_factory=list)
    #: Lines (start, end) with a mistake: what is wrong there later most likely follows from it.
    lines: list[tuple[int, int]] = field(default_factory=list)
    #: What is to stand at a place instead, so that brackets match and the text is as long as before.
    edits: list[tuple[int, str]] = field(default_factory=list)

    def applied(self, text: str) -> str:
        parts, done = [], 0
        for at, characters in sorted(self.edits):
            if at >= done:
                parts += [text[done:at], characters]
                done = at + len(characters)
        return "".join([*parts, text[done:]])[: len(text)]


@dataclass(frozen=True)
class _Open:
    lexeme: Lexeme
    indent: int


def mend_brackets(source: Source, lexemes: list[Lexeme]) -> Mended:
    """Find the brackets that are wrong, if any are; every later message may take the others for right."""
    mended = Mended()
    lexemes = [part for lexeme in lexemes for part in _parts(lexeme)]
    if not lexemes or (_balanced(lexemes) and _OUTSIDE.search(source.text)):
        return mended  # not laid out in the usual way, so that lines say nothing, but right
    for stretch in _stretches(source.text, lexemes):
        if not _balanced(stretch):
            _Stretch(source, mended, stretch).mend()
    return mended


def _parts(lexeme: Lexeme) -> list[Lexeme]:
    """A text without its closing quote has most likely taken the brackets that end the line."""
    if lexeme.kind != "open_string":
        return [lexeme]
    inside = lexeme.text.rstrip(" )]},")
    start = lexeme.start + len(inside)
    after = [replace(x, start=start + x.start) for x in scan(lexeme.text[len(inside) :])]
    return [Lexeme(lexeme.kind, inside, lexeme.start), *after]


def _balanced(lexemes: list[Lexeme]) -> bool:
    stack: list[str] = []
    for lexeme in lexemes:
        if lexeme.kind == "open":
            stack.append(lexeme.text)
        elif lexeme.kind == "close" and (not stack or PAIRS[stack.pop()] != lexeme.text):
            return False
    return not stack


def _stretches(text: str, lexemes: list[Lexeme]) -> Iterator[list[Lexeme]]:
    """The lexemes from each declaration in the first column to the next."""
    current: list[Lexeme] = []
    for lexeme in lexemes:
        starts_line = lexeme.start == 0 or text[lexeme.start - 1] == "\n"
        if current and starts_line and lexeme.kind == "word" and _DECLARATION.match(text, lexeme.start):
            yield current
            current = []
        current.append(lexeme)
    yield current


class _Stretch:
    """One declaration whose brackets do not balance."""

    def __init__(self, source: Source, mended: Mended, lexemes: list[Lexeme]) -> None:
        self.source, self.mended, self.lexemes = source, mended, lexemes
        self.text = source.text
        self.stack: list[_Open] = []
        self.last = next((x for x in reversed(lexemes) if x.kind != "newline"), lexemes[-1])
        braces = [x for x in lexemes if x.text in ("{", "}")]
        self.excess = sum(1 if x.text == "}" else -1 for x in braces)
        #: Where the last `}` at the start of a line stands, by its indent.
        self.closing = {self._indent(x): x.start for x in braces if x.text == "}" and self._first_on_line(x)}
        #: For each lexeme, the first one below its line.
        self.below: list[Lexeme | None] = [None] * len(lexemes)
        for at in range(len(lexemes) - 2, -1, -1):
            first = lexemes[at].kind == "newline" and lexemes[at + 1].kind != "newline"
            self.below[at] = lexemes[at + 1] if first else self.below[at + 1]

    def mend(self) -> None:
        for index, lexeme in enumerate(self.lexemes):
            if len(self.mended.edits) >= MOST:
                return
            if lexeme.kind == "open":
                self.stack.append(_Open(lexeme, self._indent(lexeme)))
            elif lexeme.kind == "close":
                self._close(index)
            elif lexeme.kind == "newline":
                self._open_missing(index)
        while self.stack and len(self.mended.edits) < MOST:
            self._close_at_end(self.stack.pop())

    # --- where a bracket stands ------------------------------------------------------------------

    def _line(self, at: int) -> tuple[int, int]:
        starts = self.source.line_starts
        line = bisect_right(starts, at)
        return starts[line - 1], starts[line] - 1 if line < len(starts) else len(self.text)

    def _same_line(self, one: Lexeme, other: Lexeme) -> bool:
        return self._line(one.start) == self._line(other.start)

    def _indent(self, lexeme: Lexeme) -> int:
        start = self._line(lexeme.start)[0]
        found = _INDENT.match(self.text, start)
        return found.end() - start if found is not None else 0

    def _first_on_line(self, lexeme: Lexeme) -> bool:
        return self._line(lexeme.start)[0] + self._indent(lexeme) == lexeme.start

    # --- the mistakes ----------------------------------------------------------------------------

    def _open_missing(self, index: int) -> None:
        """A line that ends without the `{` of the block whose lines stand below it: `job j`, `phase dp`."""
        if self.excess <= 0 or index == 0 or (self.stack and self.stack[-1].lexeme.text != "{"):
            return
        newline, before, below = self.lexemes[index], self.lexemes[index - 1], self.below[index]
        ends_a_head = before.kind == "word" or before.text == "="
        if below is None or not ends_a_head or below.kind != "word" or below.text in ("then", "else"):
            return
        indent = self._indent(before)
        if self._indent(below) <= indent or self.closing.get(indent, 0) < below.start:
            return
        # The brace takes the place of the space before a comment, or of the line's end, which means nothing after it.
        self.mended.edits.append((before.end, "{".ljust(newline.start - before.end)))
        self.excess -= 1
        self.stack.append(_Open(Lexeme("open", "{", before.end), indent))
        self._say(before.end, before.end, f"expected `{{` after `{before.text}`", "the block below starts here")

    def _close(self, index: int) -> None:
        closer = self.lexemes[index]
        self._drop_unclosed(index)
        if not self.stack or PAIRS[self.stack[-1].lexeme.text] != closer.text:
            self._stray(closer, None)
        elif self._goes_on(index, self.stack[-1]):
            self._stray(closer, self.stack[-1].lexeme)
        else:
            self.stack.pop()

    def _goes_on(self, index: int, opened: _Open) -> bool:
        """Whether the block that would be closed here goes on below."""
        closer, below = self.lexemes[index], self.below[index]
        aligned = self._first_on_line(closer) and self._indent(closer) == opened.indent
        if aligned or below is None or self._same_line(opened.lexeme, closer):
            return False
        indent = self._indent(below)
        return len(self.stack) == 1 or indent > opened.indent or (below.kind == "close" and indent == opened.indent)

    def _drop_unclosed(self, index: int) -> None:
        """Say which brackets inside the one that closes here are not closed."""
        closer = self.lexemes[index]
        lowest = max(0, len(self.stack) - DEEPEST)
        levels = [i for i in range(lowest, len(self.stack)) if PAIRS[self.stack[i].lexeme.text] == closer.text]
        if not levels:
            return
        level = levels[-1]
        inner = len(self.stack) - 1 - level
        if self._first_on_line(closer):
            indent = self._indent(closer)
            aligned = [i for i in levels if self.stack[i].indent == indent]
            level = aligned[-1] if aligned else level
        elif inner and self._next_closer(index) == PAIRS[self.stack[-1].lexeme.text]:
            return  # what follows closes the innermost one: this bracket is stray
        elif inner > 1 and not self._same_line(self.stack[level].lexeme, closer):
            return  # rather one too many than several too few
        while len(self.stack) > level + 1:
            opener = self.stack.pop().lexeme
            where = Label(self.source.span(closer.start, closer.end), f"`{closer.text}` closes what is around it")
            self._unclosed(opener, where)
            self.mended.edits.append((opener.start, " "))

    def _next_closer(self, index: int) -> str:
        """The next closing bracket of the line."""
        depth = 0
        for at in range(index + 1, len(self.lexemes)):
            lexeme = self.lexemes[at]
            depth += lexeme.kind == "open"
            if lexeme.kind == "newline":
                break
            if lexeme.kind == "close":
                if depth == 0:
                    return lexeme.text
                depth -= 1
        return ""

    def _close_at_end(self, opened: _Open) -> None:
        """A bracket that is open where the next declaration starts, or the text ends."""
        opener, last, after = opened.lexeme, self.last, self.lexemes[-1]
        if after.kind == "newline" and after.end < len(self.text):
            where = Label(self.source.span(after.end, after.end + 1), "the next declaration starts here")
        else:
            where = Label(self.source.span(last.end, last.end), "the text ends")
        self._unclosed(opener, where)
        inside = next((x for x in self.lexemes if x.start > opener.start and x.kind != "newline"), None)
        line_end = self._line(last.start)[1]
        empty_below = line_end + 1 >= len(self.text) or self.text[line_end + 1] == "\n"
        if opener.text == "{" and inside is not None and inside.text == "{":
            self.mended.edits.append((opener.start, " "))  # `job j { {`
        elif opener.text == "{" and line_end < len(self.text) and empty_below and not self.stack:
            self.mended.edits.append((last.end, "}".rjust(line_end + 1 - last.end)))  # instead of the line's end
        else:
            first = self.lexemes[0].start
            blank = "".join(c if c == "\n" else " " for c in self.text[first : last.end])
            self.mended.edits = [*((at, c) for at, c in self.mended.edits if at < first), (first, blank)]
            self.stack.clear()

    # --- what is said about them -----------------------------------------------------------------

    def _stray(self, closer: Lexeme, closes: Lexeme | None) -> None:
        opener = _OPENERS[closer.text]
        secondary: tuple[Label, ...] = ()
        message = f"`{closer.text}` closes nothing"
        if closes is not None:
            message = f"`{closer.text}` closes the block around it too early"
            secondary = (Label(self.source.span(closes.start, closes.end), "this block goes on below"),)
        way_out = "take it away" if self._first_on_line(closer) else f"take it away, or open it before with `{opener}`"
        self.mended.edits.append((closer.start, " "))
        self._say(closer.start, closer.end, message, f"no `{opener}` belongs to it", secondary, way_out)

    def _unclosed(self, opener: Lexeme, where: Label) -> None:
        message = f"`{opener.text}` is never closed"
        self._say(opener.start, opener.end, message, "opened here", (where,), f"add `{PAIRS[opener.text]}`")

    def _say(
        self, start: int, end: int, message: str, label: str, secondary: tuple[Label, ...] = (), help: str = ""
    ) -> None:
        line = self._line(start)
        if line in self.mended.lines:
            return
        self.mended.lines.append(line)
        span = self.source.span(start, end)
        self.mended.found.append(
            Diagnostic("OPUS004", Severity.ERROR, message, span, label, secondary=secondary, help=help)
        )
