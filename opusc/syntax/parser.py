"""From text to syntax tree."""

import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from lark import Lark, Token
from lark import Tree as LarkTree
from lark import __version__ as lark_version
from lark.exceptions import UnexpectedInput
from lark.lark import PostLex

from opusc.diagnostics import Diagnostics, Edit
from opusc.resources import grammar_file
from opusc.source import Source, Span
from opusc.syntax import tree
from opusc.syntax.build import Builder, TooDeep
from opusc.syntax.mistakes import explain
from opusc.syntax.place import Place
from opusc.syntax.recovery import parse_with_recovery, stopped_at
from opusc.syntax.scan import scan

__all__ = ["VERSION", "parse", "parse_expression"]

VERSION = 1
MAX_CHARACTERS = 4 * 1024 * 1024
#: A version line further down than this is not looked for when it could not be parsed.
VERSION_WITHIN = 20_000

#: Tokens after which an item cannot end, so that a newline after them means nothing.
_OPEN_ENDED = frozenset(
    [
        "LBRACE",
        "COMMA",
        "EQUAL",
        "_THEN",
        "_ELSE",
        "COMPARE",
        "SIGN",
        "TIMES",
        "STAR",
        "MINUS",
        "_AND",
        "_OR",
        "_IF",
        "_FOR",
        "IN",
        "NOT",
        "COLON",
        "_RANGE",
        "_OF",
        "_OVER",
    ]
)


class _Newlines(PostLex):
    """Drops the newlines that end nothing: in [] and (), after an operator or a comma, and repeated ones."""

    always_accept = ("_NL",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        open_brackets: list[str] = []
        before = ""
        for token in stream:
            if token.type == "_NL":
                if (open_brackets and open_brackets[-1] in "[(") or before in ("", "_NL") or before in _OPEN_ENDED:
                    continue
            elif token.type in ("LBRACE", "LSQB", "LPAR"):
                open_brackets.append(str(token))
            elif token.type in ("RBRACE", "RSQB", "RPAR") and open_brackets:
                open_brackets.pop()
            before = token.type
            yield token


@cache
def _lark() -> Lark:
    grammar = grammar_file().read_text(encoding="utf-8")
    options = {
        "parser": "lalr",
        "start": ["start", "expression"],
        "propagate_positions": True,
        "maybe_placeholders": True,
        "postlex": _Newlines(),
    }
    cached = _cache_file(grammar)
    if cached is not None:
        try:
            return Lark(grammar, cache=str(cached), **options)
        except OSError:
            pass  # a cache that cannot be read or written costs time, not correctness
    return Lark(grammar, **options)


def _cache_file(grammar: str) -> Path | None:
    """Where the built parser is kept between runs; None where there is no place for it."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(base):
        return None  # no home directory: nothing is left in the working directory
    folder = Path(base) / "opusc"
    key = hashlib.sha256(f"{lark_version} {sys.version} {grammar}".encode()).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder / f"grammar-{key}.lark"


def parse(source: Source, sink: Diagnostics) -> tree.Program:
    """The program that a text states, or as much of it as could be understood; what is wrong is in the sink."""
    if _too_large(source, sink):
        return tree.Program(source, None, (), (), span=source.whole)
    comments = _comments(source)
    parsed = parse_with_recovery(lambda text: _lark().parse(text, start="start"), source, sink)
    if parsed is None:
        return tree.Program(source, None, (), comments, span=source.whole)
    builder = Builder(source, comments, sink, lambda start, end: _inner(source, start, end, sink))
    version, *entries = parsed.children
    built: list[tree.Entry] = []
    number = None
    try:
        number = None if version is None else builder.version(version)
        for entry in entries:
            if isinstance(entry, LarkTree):
                built.append(builder.entry(entry))
    except TooDeep as error:
        _too_deep(error, sink)
    _check_version(source, number, sink)
    return tree.Program(source, number, tuple(built), comments, span=source.whole)


def parse_expression(source: Source, sink: Diagnostics) -> tree.Expression | None:
    """The expression that a text is (a `-D` value); None, with errors in the sink, if it is none."""
    if _too_large(source, sink):
        return None
    try:
        return _inner(source, 0, len(source.text), sink)
    except TooDeep as error:
        _too_deep(error, sink)
        return None


def _inner(source: Source, start: int, end: int, sink: Diagnostics) -> tree.Expression | None:
    """Parse a stretch of a text as one expression, with its positions in the whole text."""
    text = source.text[start:end]
    try:
        parsed = _lark().parse(text, start="expression")
    except UnexpectedInput as error:
        if len(sink) < Diagnostics.LIMIT:
            lexemes = [replace(x, start=start + x.start) for x in scan(text) if x.kind != "comment"]
            at = start + stopped_at(error, len(text))
            sink.add(explain(Place(source, source.text[:end], lexemes, at), error))
        return None
    builder = Builder(source, (), sink, lambda a, b: _inner(source, a, b, sink), offset=start)
    return builder.expression(parsed.children[0])


def _too_large(source: Source, sink: Diagnostics) -> bool:
    if len(source.text) <= MAX_CHARACTERS:
        return False
    sink.error(
        "OPUS009",
        f"the text has {len(source.text):,} characters; {MAX_CHARACTERS:,} is the limit",
        source.span(0, 0),
        help="large tables belong into a CSV file",
    )
    return True


def _too_deep(error: TooDeep, sink: Diagnostics) -> None:
    sink.error(
        "OPUS009",
        f"the expression nests deeper than {Builder.DEPTH}",
        error.span,
        "one level too many",
        help="name the inner part with `let`",
    )


def _check_version(source: Source, number: tree.Number | None, sink: Diagnostics) -> None:
    if number is None:
        stated = next((x for x in scan(source.text[:VERSION_WITHIN]) if x.kind not in ("comment", "newline")), None)
        if stated is not None and stated.text == "opus":
            return  # there is such a line, and the message about it is in the sink
        here = source.span(0, 0)
        sink.error("OPUS002", "the first line must be `opus 1`", here, fix=[Edit(here, f"opus {VERSION}\n\n")])
    elif number.value != VERSION:
        sink.error(
            "OPUS003",
            f"the program is of version {number.text}; this opusc knows version {VERSION}",
            number.span,
            "another version",
            help=f"use a newer opusc, or write `opus {VERSION}`",
        )


def _comments(source: Source) -> tuple[tree.Comment, ...]:
    found = []
    inside = False
    at, text = 0, source.text
    while at < len(text):
        char = text[at]
        if char == '"':
            inside = not inside
        elif char == "\\" and inside:
            at += 1
        elif char == "\n":
            inside = False
        elif char == "#" and not inside:
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            found.append(tree.Comment(text[at:end], span=Span(source, at, end)))
            at = end
            continue
        at += 1
    return tuple(found)
