"""Brackets that do not match, found from the layout before anything else is explained.

One bracket too many or too few moves everything after it into another block, and the parser then stumbles far from
the mistake. People indent what they write, so lines tell where the mistake is: a text is cut into the stretches
that start with a declaration in the first column, each of which must balance by itself, and a closing bracket at
the start of a line belongs to the line that is indented as it is.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from opusc.diagnostics import Diagnostic, Label, Severity
from opusc.source import Source
from opusc.syntax.place import PAIRS
from opusc.syntax.scan import Lexeme, scan

__all__ = ["Mended", "mend_brackets"]

#: How a declaration looks that starts in the first column.
_DECLARATION = re.compile(
    r"(?:param|let)[ \t]+[A-Za-z_]|use[ \t]+[\"A-Za-z_]|fault[ \t]+[A-Za-z_]|require[ \t]+\S"
    r"|[A-Za-z_]\w*[ \t]+[A-Za-z_]\w*[ \t]*(?:[{(]|=(?!=)|$)",
    re.MULTILINE,
)
_OPENERS = {closer: opener for opener, closer in PAIRS.items()}


@dataclass
class Mended:
    """The messages, and the text without what they are about: as long as before, with other characters."""

    text: str
    found: list[Diagnostic] = field(default_factory=list)
    #: Lines (start, end) with a mistake: what is wrong there later most likely follows from it.
    lines: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class _Open:
    lexeme: Lexeme
    indent: int


def mend_brackets(source: Source, text: str, lexemes: list[Lexeme]) -> Mended:
    """Find the brackets that are wrong, if any are; every later message may take the others for right."""
    mended = Mended(text)
    lexemes = [part for lexeme in lexemes for part in _parts(lexeme)]
    if _balanced(lexemes):
        return mended
    for stretch in _stretches(text, lexemes):
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
        self.text = mended.text
        self.stack: list[_Open] = []

    def mend(self) -> None:
        for index, lexeme in enumerate(self.lexemes):
            if lexeme.kind == "open":
                self.stack.append(_Open(lexeme, self._indent(lexeme)))
            elif lexeme.kind == "close":
                self._close(index)
            elif lexeme.kind == "newline":
                self._open_missing(index)
        while self.stack:
            self._close_at_end(self.stack.pop())

    # --- where a bracket stands ------------------------------------------------------------------

    def _line(self, lexeme: Lexeme) -> tuple[int, int]:
        end = self.text.find("\n", lexeme.start)
        return self.text.rfind("\n", 0, lexeme.start) + 1, len(self.text) if end < 0 else end

    def _indent(self, lexeme: Lexeme) -> int:
        start, end = self._line(lexeme)
        line = self.text[start:end]
        return len(line) - len(line.lstrip())

    def _first_on_line(self, lexeme: Lexeme) -> bool:
        return not self.text[self._line(lexeme)[0] : lexeme.start].strip()

    # --- the mistakes ----------------------------------------------------------------------------

    def _open_missing(self, index: int) -> None:
        """A line that ends without the `{` of the block whose lines stand below it: `job j`, `phase dp`."""
        newline = self.lexemes[index]
        before = self.lexemes[index - 1] if index else newline
        below = next((x for x in self.lexemes[index:] if x.kind != "newline"), newline)
        in_list = bool(self.stack) and self.stack[-1].lexeme.text != "{"
        ends_a_head = before.kind == "word" or before.text == "="
        if in_list or not ends_a_head or below.kind != "word" or below.text in ("then", "else"):
            return
        indent = self._indent(before)
        braces = [x.text for x in self.lexemes]
        if self._indent(below) <= indent or braces.count("}") <= braces.count("{"):
            return
        closing = (x for x in self.lexemes[index:] if x.text == "}" and self._first_on_line(x))
        if not any(self._indent(x) == indent for x in closing):
            return
        # The brace takes the place of the space before a comment, or of the line's end, which means nothing after it.
        self._replace(before.end, "{".ljust(newline.start - before.end))
        self.stack.append(_Open(Lexeme("open", "{", before.end), indent))
        self._say(
            before.end, before.end, f"expected `{{` after `{before.text}`", "the block below starts here",
            secondary=(), help="",
        )  # fmt: skip

    def _close(self, index: int) -> None:
        closer = self.lexemes[index]
        self._drop_unclosed(index)
        if not self.stack or PAIRS[self.stack[-1].lexeme.text] != closer.text:
            self._stray(closer, None)
            return
        opened = self.stack[-1]
        if self._goes_on(index, opened):
            self._stray(closer, opened.lexeme)
            return
        self.stack.pop()

    def _goes_on(self, index: int, opened: _Open) -> bool:
        """Whether the block that would be closed here goes on below."""
        closer = self.lexemes[index]
        if self._line(opened.lexeme) == self._line(closer):
            return False
        if self._first_on_line(closer) and self._indent(closer) == opened.indent:
            return False
        rest = self.lexemes[index + 1 :]
        newline = next((i for i, x in enumerate(rest) if x.kind == "newline"), len(rest))
        below = next((x for x in rest[newline:] if x.kind != "newline"), None)
        if below is None:
            return False
        indent = self._indent(below)
        return len(self.stack) == 1 or indent > opened.indent or (below.kind == "close" and indent == opened.indent)

    def _drop_unclosed(self, index: int) -> None:
        """Say which brackets inside the one that closes here are not closed."""
        closer = self.lexemes[index]
        levels = [i for i, x in enumerate(self.stack) if PAIRS[x.lexeme.text] == closer.text]
        if not levels:
            return
        level = levels[-1]
        if self._first_on_line(closer):
            indent = self._indent(closer)
            aligned = [i for i in levels if self.stack[i].indent == indent]
            level = aligned[-1] if aligned else level
        elif level < len(self.stack) - 1 and self._next_closer(index) == PAIRS[self.stack[-1].lexeme.text]:
            return  # what follows closes the innermost one: this bracket is stray
        while len(self.stack) > level + 1:
            self._unclosed(self.stack.pop(), closer)

    def _next_closer(self, index: int) -> str:
        """The next closing bracket of the line."""
        depth = 0
        for lexeme in self.lexemes[index + 1 :]:
            depth += lexeme.kind == "open"
            if lexeme.kind == "newline":
                break
            if lexeme.kind == "close":
                if depth == 0:
                    return lexeme.text
                depth -= 1
        return ""

    def _stray(self, closer: Lexeme, closes: Lexeme | None) -> None:
        opener = _OPENERS[closer.text]
        secondary: tuple[Label, ...] = ()
        if closes is None:
            message = f"`{closer.text}` closes nothing"
        else:
            message = f"`{closer.text}` closes the block around it too early"
            secondary = (Label(self.source.span(closes.start, closes.end), "this block goes on below"),)
        alone = self._first_on_line(closer)
        help = "take it away" if alone else f"take it away, or open it before with `{opener}`"
        self._replace(closer.start, " ")
        self._say(closer.start, closer.end, message, f"no `{opener}` belongs to it", secondary=secondary, help=help)

    def _unclosed(self, opened: _Open, closer: Lexeme) -> None:
        where = Label(self.source.span(closer.start, closer.end), f"`{closer.text}` closes what is around it")
        self._say_unclosed(opened.lexeme, (where,))
        self._replace(opened.lexeme.start, " ")

    def _close_at_end(self, opened: _Open) -> None:
        """A bracket that is open where the next declaration starts, or the text ends."""
        last = next(x for x in reversed(self.lexemes) if x.kind != "newline")
        after = self.lexemes[-1]
        next_one = after.end if after.kind == "newline" and after.end < len(self.text) else None
        where = self.source.span(last.end, last.end) if next_one is None else self.source.span(next_one, next_one + 1)
        words = "the text ends" if next_one is None else "the next declaration starts here"
        self._say_unclosed(opened.lexeme, (Label(where, words),))
        newlines = [x.start for x in self.lexemes if x.kind == "newline" and x.start >= last.end]
        if opened.lexeme.text == "{" and len(newlines) > 1 and self.mended.text[newlines[0]] == "\n":
            self._replace(newlines[0], "}")
        else:
            first, end = self.lexemes[0].start, last.end
            self._replace(first, "".join(c if c == "\n" else " " for c in self.text[first:end]))

    # --- what is said and done about them --------------------------------------------------------

    def _say_unclosed(self, opener: Lexeme, secondary: tuple[Label, ...]) -> None:
        self._say(
            opener.start, opener.end, f"`{opener.text}` is never closed", "opened here",
            secondary=secondary, help=f"add `{PAIRS[opener.text]}`",
        )  # fmt: skip

    def _say(self, start: int, end: int, message: str, label: str, *, secondary: tuple[Label, ...], help: str) -> None:
        line = self._line(Lexeme("", "", start))
        if line in self.mended.lines:
            return
        self.mended.lines.append(line)
        self.mended.found.append(
            Diagnostic(
                "OPUS004", Severity.ERROR, message, self.source.span(start, end), label, secondary=secondary, help=help
            )
        )

    def _replace(self, at: int, characters: str) -> None:
        self.mended.text = self.mended.text[:at] + characters + self.mended.text[at + len(characters) :]
