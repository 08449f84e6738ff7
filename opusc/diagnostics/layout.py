"""Terminal columns: how wide text is, what of a long line is shown, and where labels go under it."""

import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

__all__ = ["Glyphs", "Mark", "Row", "clean", "crop", "glyphs", "marked_rows"]

_TAB = 4
_ELLIPSIS = "..."
_LEAST_LABEL = 24  # columns that a label gets, moving left if it must

#: Characters of one line, each with its style.
Row: TypeAlias = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Glyphs:
    """A line as shown: glyphs with their widths, and for each character offset (and the end) its column."""

    glyphs: tuple[tuple[str, int], ...]
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Columns start..end (excluded) underlined with `sign`, and the text that belongs to them."""

    start: int
    end: int
    text: str
    sign: str
    style: str


def clean(text: str, *, keep_lines: bool = False) -> str:
    """Text from anywhere, made safe to print: no control or direction-changing characters."""
    return "".join(c if _printable(c) or (keep_lines and c == "\n") else "\ufffd" for c in text)


def glyphs(line: str) -> Glyphs:
    shown: list[tuple[str, int]] = []
    columns = [0]
    for character in line:
        at = columns[-1]
        if character == "\t":
            width = _TAB - at % _TAB
            shown.append((" " * width, width))
        elif not _printable(character):
            width = 1
            shown.append(("\ufffd", 1))
        else:
            width = _width(character)
            shown.append((character, width))
        columns.append(at + width)
    return Glyphs(tuple(shown), tuple(columns))


def _printable(character: str) -> bool:
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def crop(line: Glyphs, marks: Sequence[Mark], room: int) -> tuple[str, list[Mark]]:
    """The stretch of a line that fits in `room` columns and shows its first mark; marks move along."""
    total = line.columns[-1]
    if total <= room:
        return "".join(glyph for glyph, _ in line.glyphs), list(marks)
    wanted = min((mark.start for mark in marks), default=0)
    reach = max((mark.end for mark in marks), default=0)
    # Keep the line's start when the marks are visible there anyway: indentation tells where one is.
    first = 0 if reach <= room - len(_ELLIPSIS) else min(max(wanted - room // 4, 0), total - room)
    last = first + room
    left = _ELLIPSIS if first > 0 else ""
    right = _ELLIPSIS if last < total else ""
    kept = "".join(
        glyph
        for (glyph, width), column in zip(line.glyphs, line.columns, strict=False)
        if first + len(left) <= column and column + width <= last - len(right)
    )
    inside = [
        replace(mark, start=start, end=max(start + 1, min(mark.end - first, room)))
        for mark in marks
        for start in [min(max(mark.start - first, len(left)), room - 1)]
    ]
    return left + kept + right, inside


def marked_rows(marks: Iterable[Mark], room: int) -> Iterator[Row]:
    """The rows under a line: the underlines, the rightmost text beside them, other texts hanging below."""
    ordered = sorted(marks, key=lambda mark: (mark.start, mark.end, mark.sign == "^"))
    if not ordered:
        return
    row = _blank(max(mark.end for mark in ordered))
    for mark in sorted(ordered, key=lambda mark: mark.sign == "^"):
        row[mark.start : mark.end] = [(mark.sign, mark.style)] * (mark.end - mark.start)
    waiting = [mark for mark in ordered if mark.text]
    if waiting:
        last = waiting[-1]
        if last.end == len(row) and last.end + 1 + len(last.text) <= room:
            row += [(" ", "")] + [(c, last.style) for c in last.text]
            waiting.pop()
    yield row
    if waiting:
        yield _hangers(waiting)
    while waiting:
        mark = waiting.pop()
        least = waiting[-1].start + 2 if waiting else 0
        wish = min(len(mark.text), _LEAST_LABEL)
        at = mark.start if room - mark.start >= wish else max(least, room - max(wish, _LEAST_LABEL))
        for line in textwrap.wrap(mark.text, max(room - at, 10), break_on_hyphens=False):
            row = _hangers(waiting)
            yield row + _blank(at - len(row)) + [(c, mark.style) for c in line]


def _blank(count: int) -> Row:
    return [(" ", "")] * count


def _hangers(marks: Sequence[Mark]) -> Row:
    row = _blank(max((mark.start + 1 for mark in marks), default=0))
    for mark in marks:
        row[mark.start] = ("|", mark.style)
    return row
