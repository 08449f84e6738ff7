"""The inside of a string: literal text and the expressions between braces."""

import re
from collections.abc import Callable

from opusc.diagnostics import Diagnostics, Edit
from opusc.source import Span
from opusc.syntax import tree

__all__ = ["string_parts"]

_BRACE = re.compile(r"[{}]")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def string_parts(
    span: Span, parse_inner: Callable[[int, int], "tree.Expression | None"], sink: Diagnostics
) -> tuple["str | tree.Expression", ...]:
    """The parts of a quoted string. `{{` and `}}` stand for braces; `parse_inner(start, end)` parses an expression."""
    text = span.source.text
    at, end = span.start + 1, span.end - 1
    parts: list[str | tree.Expression] = []
    literal: list[str] = []
    while at < end:
        char = text[at]
        if char == "\\":
            if text[at + 1] not in _ESCAPES:
                _no_escape(Span(span.source, at, at + 2), sink)
            literal.append(_ESCAPES.get(text[at + 1], text[at + 1]))
            at += 2
        elif text[at : at + 2] in ("{{", "}}"):
            literal.append(char)
            at += 2
        elif char == "{":
            close = _closing(text, at, end)
            if close < 0 or not text[at + 1 : close].strip():
                sink.error(
                    "OPUS006",
                    "`{` in a text starts an expression, and this one " + ("is empty" if close >= 0 else "has no `}`"),
                    Span(span.source, at, at + 1 if close < 0 else close + 1),
                    help="write `{{` for a brace",
                )
                break
            if literal:
                parts.append("".join(literal))
                literal = []
            inner = parse_inner(at + 1, close)
            if inner is not None:
                parts.append(inner)
            at = close + 1
        else:
            literal.append(char)
            at += 1
    if literal:
        parts.append("".join(literal))
    return tuple(parts)


def _no_escape(span: Span, sink: Diagnostics) -> None:
    sink.error(
        "OPUS010", f"`{span.text}` stands for nothing in a text", span, "not an escape",
        notes=['escapes are `\\n`, `\\t`, `\\"` and `\\\\`'],
        help="write two backslashes for one",
        fix=[Edit(Span(span.source, span.start, span.start), "\\")],
    )  # fmt: skip


def _closing(text: str, at: int, end: int) -> int:
    """Where the brace that opens at `at` is closed, braces of records inside counted; -1 if nowhere."""
    depth = 0
    for brace in _BRACE.finditer(text, at, end):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return -1
