"""Source files and places in them.

Offsets count characters of `Source.text` from 0; lines and columns, made only when a message is shown,
count from 1.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

__all__ = ["Source", "Span"]


@dataclass(frozen=True, eq=False)
class Source:
    """One text that a message can point into: an `.opus` file, standard input, a cabling CSV, a `-D` value.

    `name` is what messages show (a path as the user gave it, `<stdin>`, `std.switches`).
    `text` has line ends normalised to `\\n` and no byte-order mark.
    """

    name: str
    text: str = field(repr=False)

    @cached_property
    def line_starts(self) -> list[int]:
        starts = [0]
        find = self.text.find
        at = find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = find("\n", at + 1)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1, of a character offset."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """The text of a line (counted from 1), without its end."""
        start = self.line_starts[line - 1]
        end = self.text.find("\n", start)
        return self.text[start:] if end < 0 else self.text[start:end]

    def span(self, start: int, end: int) -> "Span":
        return Span(self, start, end)

    def line_span(self, line: int) -> "Span":
        """A whole line, counted from 1: what a message about a CSV row points at."""
        start = self.line_starts[line - 1]
        return Span(self, start, start + len(self.line_text(line)))

    @property
    def whole(self) -> "Span":
        return Span(self, 0, len(self.text))


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source, end excluded."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> int:
        return self.source.position(self.start)[0]

    @property
    def place(self) -> str:
        """`file:line:column`, as editors and terminals link it."""
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def to(self, other: "Span") -> "Span":
        """From the start of this span to the end of `other`, in the same source."""
        return Span(self.source, self.start, max(self.end, other.end))

    def __repr__(self) -> str:
        return f"<{self.place}>"
