"""Several syntax errors a run: explain the first, take its item out of the text, and parse again.

What is taken out becomes spaces, so that every position stays right. An item is what stands between two newlines or
commas of one block; the items around it parse as if it were not there, and one mistake gives one message.
"""

from collections.abc import Callable

from lark import Token
from lark import Tree as LarkTree
from lark.exceptions import UnexpectedInput

from opusc.diagnostics import Diagnostics
from opusc.source import Source, Span
from opusc.syntax.mistakes import Place, explain
from opusc.syntax.scan import Lexeme, scan

__all__ = ["DEPTH", "parse_with_recovery"]

DEPTH = 100
#: Messages of one text; each costs a parse, so large texts stop sooner.
MOST, MOST_IN_LARGE, LARGE = 25, 5, 200_000


def parse_with_recovery(
    parse: "Callable[[str], LarkTree[Token]]", source: Source, sink: Diagnostics
) -> "LarkTree[Token] | None":
    """The parse tree of what could be understood; None when nothing could. Every error is in the sink."""
    text = source.text
    for _ in range(MOST if len(text) < LARGE else MOST_IN_LARGE):
        lexemes = [lexeme for lexeme in scan(text) if lexeme.kind != "comment"]
        if (deep := _too_deep(lexemes)) is not None:
            sink.error(
                "OPUS009",
                f"brackets nest deeper than {DEPTH}",
                source.span(deep.start, deep.end),
                "one too many",
                help="name the inner part with `let`",
            )
            return None
        try:
            return parse(text + "\n")
        except UnexpectedInput as unexpected:
            error, position = unexpected, unexpected.pos_in_stream
        at = len(text) if position is None or position < 0 else min(position, len(text))
        place = Place(source, text, lexemes, at)
        found = explain(place, error)
        sink.add(found)
        first, last = _extent(place, found.span)
        gone = "".join(c if c == "\n" else " " for c in text[first:last])
        if gone == text[first:last]:
            return None
        text = text[:first] + gone + text[last:]
    return None


def _too_deep(lexemes: list[Lexeme]) -> Lexeme | None:
    depth = 0
    for lexeme in lexemes:
        depth += (lexeme.kind == "open") - (lexeme.kind == "close")
        if depth > DEPTH:
            return lexeme
    return None


def _extent(place: Place, span: Span) -> tuple[int, int]:
    """From where to where the broken item reaches: the one that the message points at."""
    lexemes = place.lexemes
    index = next(
        (i for i, x in enumerate(lexemes) if x.end > span.start or span.start == span.end == x.end), len(lexemes)
    )
    if (opener := place.unclosed) is not None:
        # Nothing is known to lie inside: from the start of the item with the bracket to the end of its line, or to
        # the declaration that should have been outside.
        start = _item_start(lexemes, lexemes.index(opener))
        if opener.text == "{":
            end = place.here.start if place.index < len(lexemes) else len(place.text)
            while end > start and place.text[end - 1] != "\n":
                end -= 1
            return lexemes[start].start, max(end, lexemes[start].start + 1)
        line_end = place.text.find("\n", opener.start)
        end = len(place.text) if line_end < 0 else line_end
        if place.here.kind == "close":
            end = min(end, place.here.start)  # the bracket around it is closed on the same line
        return lexemes[start].start, end
    if index < len(lexemes) and lexemes[index].kind == "close" and place.stray:
        return lexemes[index].start, lexemes[index].end
    if index >= len(lexemes) or lexemes[index].kind in ("newline", "close") or lexemes[index].text == ",":
        index -= 1  # the item ended too soon: it is the one before
        if index < 0:
            return 0, len(place.text)
    first, last = _item_start(lexemes, index), _item_end(lexemes, index)
    if last + 1 < len(lexemes) and lexemes[last + 1].text == ",":
        last += 1  # no item may stand before a comma
    end = lexemes[last].end
    if lexemes[last].kind == "open_string":
        # The quote was most likely left out before the brackets that end the line.
        end = lexemes[last].start + len(lexemes[last].text.rstrip(" )]},"))
    return lexemes[first].start, end


def _item_start(lexemes: list[Lexeme], index: int) -> int:
    """The first lexeme of the item around a lexeme: back to a newline or comma of its block, out of [ and (."""
    depth = 0
    while index > 0:
        before = lexemes[index - 1]
        if before.kind == "close":
            depth += 1
        elif before.kind == "open":
            if depth == 0 and before.text == "{":
                return index
            depth = max(depth - 1, 0)
        elif depth == 0 and (before.kind == "newline" or before.text == ",") and not _inside(lexemes, index - 1):
            return index
        index -= 1
    return index


def _inside(lexemes: list[Lexeme], index: int) -> bool:
    """Whether a newline or comma stands inside [ or (."""
    depth = 0
    for lexeme in reversed(lexemes[:index]):
        if lexeme.kind == "close":
            depth += 1
        elif lexeme.kind == "open":
            if depth == 0:
                return lexeme.text != "{"
            depth -= 1
    return False


def _item_end(lexemes: list[Lexeme], index: int) -> int:
    """The last lexeme of the item: on to a newline or comma of its block, over whole brackets."""
    depth = 0
    inside = _inside(lexemes, index)
    while index + 1 < len(lexemes):
        here, after = lexemes[index], lexemes[index + 1]
        depth += (here.kind == "open") - (here.kind == "close")
        if inside and depth < 0:
            inside, depth = _inside(lexemes, index + 1), 0
        if depth <= 0 and after.text == "}":
            return index
        if depth <= 0 and not inside and (after.kind in ("newline", "close") or after.text == ","):
            return index
        index += 1
    return index
