"""Several syntax errors a run: explain the first, mend it or take its item out of the text, and parse again.

What is taken out becomes spaces, so that every position stays right. An item is what stands between two newlines or
commas of one block; the items around it parse as if it were not there, and one mistake gives one message.
"""

from collections.abc import Callable

from lark import Token
from lark import Tree as LarkTree
from lark.exceptions import UnexpectedInput, UnexpectedToken

from opusc.diagnostics import Diagnostics, Edit
from opusc.source import Source, Span
from opusc.syntax.brackets import mend_brackets
from opusc.syntax.mistakes import explain
from opusc.syntax.place import Place
from opusc.syntax.scan import Lexeme, scan

__all__ = ["DEPTH", "parse_with_recovery", "stopped_at"]

DEPTH = 100
#: Heads that stand for broken ones.
_HEAD, _FIELD_HEAD = "a b", "a ="
#: Messages of one text; each costs a parse, so large texts get fewer: about as many as fit into so many characters.
MOST, LEAST, CHARACTERS = 25, 3, 600_000


def parse_with_recovery(
    parse: "Callable[[str], LarkTree[Token]]", source: Source, sink: Diagnostics
) -> "LarkTree[Token] | None":
    """The parse tree of what could be understood; None when nothing could. Every error is in the sink."""
    text = source.text
    mended: list[tuple[int, int]] = []  # what is wrong in an item with such a place most likely follows from it
    placeholders: set[int] = set()
    brackets = False
    for _ in range(max(LEAST, min(MOST, CHARACTERS // (len(text) + 1)))):
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
            return _without(parse(text + "\n"), placeholders)
        except UnexpectedInput as unexpected:
            error = unexpected
        if not brackets:
            brackets, better = True, mend_brackets(source, lexemes)
            if better.found:
                for message in better.found:
                    sink.add(message)
                text, mended = better.applied(text), better.lines
                continue
        place = Place(source, text, lexemes, stopped_at(error, len(text)))
        found = explain(place, error)
        first, last = _extent(place, found.span)
        brace = _below(place, found.span, first, last)
        reach = last if brace is None else brace.start
        if not any(first < end and start < reach for start, end in mended):
            sink.add(found)
            if (corrected := _mend(text, found.fix)) is not None:
                mended += [(edit.span.start, edit.span.start + 1) for edit in found.fix]
                text = corrected
                continue
        if brace is not None and (kept := _keep_block(place, first, brace)) is not None:
            placeholders.add(first)
            text = kept
            continue
        gone = "".join(c if c == "\n" else " " for c in text[first:last])
        if gone == text[first:last]:
            return None
        text = text[:first] + gone + text[last:]
    sink.cut = True
    return None


def _below(place: Place, span: Span, first: int, last: int) -> Lexeme | None:
    """The brace of the block of lines whose head is broken; None where the mistake is not in such a head."""
    brace = next((x for x in place.lexemes if first <= x.start < last and x.text == "{"), None)
    if brace is None or "\n" not in place.text[brace.start : last] or place.text[last - 1] != "}":
        return None
    return brace if span.start <= brace.start else None


def _keep_block(place: Place, first: int, brace: Lexeme) -> str | None:
    """The text with another head before the block, so that the block is read too; None where there is no room."""
    top = not any(x.start < first for x in place.open)
    head = _HEAD if top else _FIELD_HEAD
    length = brace.start - first
    if length < len(head) or place.text[first : brace.start].rstrip() == head:
        return None
    return place.text[:first] + head.ljust(length) + place.text[brace.start :]


def _without(parsed: "LarkTree[Token]", placeholders: set[int]) -> "LarkTree[Token]":
    """The tree without the items whose heads are ours."""
    if placeholders:
        for node in parsed.iter_subtrees():
            node.children = [
                child
                for child in node.children
                if not (
                    isinstance(child, LarkTree)
                    and child.data in ("declaration", "plain_field")
                    and child.meta.start_pos in placeholders
                )
            ]
    return parsed


def _mend(text: str, fix: tuple[Edit, ...]) -> str | None:
    """The text with the mistake corrected in place, where the correction is no longer than the mistake."""
    if not fix or any(len(edit.replacement) > edit.span.end - edit.span.start for edit in fix):
        return None
    for edit in fix:
        length = edit.span.end - edit.span.start
        text = text[: edit.span.start] + edit.replacement.ljust(length) + text[edit.span.end :]
    return text


def stopped_at(error: UnexpectedInput, length: int) -> int:
    """The character that the parser did not like; `length`, that of the text, where it missed something at the end."""
    position = error.pos_in_stream
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    return length if at_end or position is None or position < 0 else min(position, length)


def _too_deep(lexemes: list[Lexeme]) -> Lexeme | None:
    depth = 0
    for lexeme in lexemes:
        depth += (lexeme.kind == "open") - (lexeme.kind == "close")
        if depth > DEPTH:
            return lexeme
    return None


def _extent(place: Place, span: Span) -> tuple[int, int]:
    """From where to where the broken item reaches: the one that the message points at."""
    if span.text.startswith("/*"):
        return span.start, span.end
    lexemes = place.lexemes
    index = next(
        (i for i, x in enumerate(lexemes) if x.end > span.start or span.start == span.end == x.end), len(lexemes)
    )
    if (opener := place.unclosed) is not None:
        # Nothing is known to lie inside: from the start of the item with the bracket to the end of its line, or to
        # the declaration that should have been outside.
        start = place.item_start(lexemes.index(opener))
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
        if place.before.kind != "sign":
            return lexemes[index].start, lexemes[index].end
        index -= 1  # a value is missing too
    if index >= len(lexemes) or lexemes[index].kind in ("newline", "close") or lexemes[index].text == ",":
        index -= 1  # the item ended too soon: it is the one before
        if index < 0:
            return 0, len(place.text)
    first, last = place.item_start(index), _item_end(place, index)
    if last + 1 < len(lexemes) and lexemes[last + 1].text == ",":
        last += 1  # no item may stand before a comma
    end = lexemes[last].end
    if lexemes[last].kind == "open_string":
        # The quote was most likely left out before the brackets that end the line.
        end = lexemes[last].start + len(lexemes[last].text.rstrip(" )]},"))
    elif place.stray and "\n" not in place.text[end : place.here.start]:
        end = max(end, place.here.end)  # a bracket that closes nothing goes with the item that it ends
    elif place.here.text == "," and not place.open:
        line_end = place.text.find("\n", end)  # outside blocks a comma ends no item: its line goes as a whole
        end = len(place.text) if line_end < 0 else line_end
    return lexemes[first].start, end


def _item_end(place: Place, index: int) -> int:
    """The last lexeme of the item: on to a newline or comma of its block, over whole brackets."""
    lexemes = place.lexemes
    depth = 0
    inside = place.inside[index]
    while index + 1 < len(lexemes):
        here, after = lexemes[index], lexemes[index + 1]
        depth += (here.kind == "open") - (here.kind == "close")
        if inside and depth < 0:
            inside, depth = place.inside[index + 1], 0
        if depth <= 0 and after.text == "}":
            return index
        if depth <= 0 and not inside and (after.kind in ("newline", "close") or after.text == ","):
            return index
        index += 1
    return index
