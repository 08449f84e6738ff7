"""Aligned columns and labelled paragraphs for people, at any terminal width."""

import textwrap
from collections.abc import Iterable, Sequence

__all__ = ["count", "labelled", "plural", "runs", "size", "table"]


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> str:
    """Columns as wide as their longest cell; those in `right` hold numbers and end together."""
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    ends = frozenset(right)
    out = ""
    for line in lines:
        cells = zip(line, widths, strict=True)
        aligned = (c.rjust(w) if at in ends else c.ljust(w) for at, (c, w) in enumerate(cells))
        out += "  ".join(aligned).rstrip() + "\n"
    return out


def labelled(label: str, text: str, width: int, *, column: int = 13) -> str:
    """`label`, then text from `column` on, wrapped."""
    lines = textwrap.wrap(text, max(width - column, 20), break_long_words=False, break_on_hyphens=False) or [""]
    first = f"{label:<{column}}{lines[0]}".rstrip()
    return "\n".join([first, *(" " * column + line for line in lines[1:])]) + "\n"


def count(number: int) -> str:
    return f"{number:,}"


def plural(number: int, word: str) -> str:
    """`1 node`, `1,024 nodes`, `2 switches`, `3 copies`."""
    if number != 1:
        word = word[:-1] + "ies" if word.endswith("y") else word + ("es" if word.endswith(("ch", "s", "x")) else "s")
    return f"{number:,} {word}"


def size(number: int) -> str:
    """Bytes in decimal units, with two or three digits."""
    tenths, unit = number * 10, "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if tenths < 10_000:
            break
        tenths, unit = (tenths + 500) // 1000, larger
    whole, tenth = divmod(tenths, 10)
    return f"{whole}.{tenth} {unit}" if whole < 10 and unit != "B" else f"{whole} {unit}"


def runs(numbers: Iterable[int]) -> str:
    """`0..3, 7, 9..12`: sorted numbers, neighbours joined."""
    joined: list[list[int]] = []
    for number in numbers:
        if joined and number == joined[-1][1] + 1:
            joined[-1][1] = number
        else:
            joined.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}..{b}" if b > a + 1 else f"{a}, {b}" for a, b in joined)
