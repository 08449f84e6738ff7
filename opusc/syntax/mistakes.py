"""What a syntax error means: the mistakes that people make, each with its way out.

The parser says where it stopped and what could have followed. The rules below look around that place, the most
telling first; what none of them knows is described by what was expected.
"""

from collections.abc import Callable
from dataclasses import replace
from unicodedata import category, name

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from opusc.diagnostics import Diagnostic, Edit, Label, Severity
from opusc.source import Span
from opusc.syntax.habits import foreign_sentence
from opusc.syntax.place import END, PAIRS, Place
from opusc.syntax.scan import Lexeme
from opusc.syntax.words import (
    BEGIN,
    COMPARISONS,
    DECLARATION,
    FIELD,
    FOREIGN,
    FORMS,
    HEAD,
    KEYWORDS,
    NAMES,
    QUOTES,
    WAITING,
)

__all__ = ["KEYWORDS", "explain"]

Rule = Callable[[Place, frozenset[str]], Diagnostic | None]


def explain(place: Place, error: UnexpectedInput) -> Diagnostic:
    """The message for one syntax error."""
    if isinstance(error, UnexpectedToken):
        expected = frozenset(error.accepts or error.expected)
    else:
        expected = frozenset(error.allowed or ()) if isinstance(error, UnexpectedCharacters) else frozenset()
    for rule in _RULES:
        found = rule(place, expected)
        if found is not None:
            return found
    return _expected(place, expected)


def _error(code: str, message: str, span: Span, label: str = "", **more: object) -> Diagnostic:
    return Diagnostic(code, Severity.ERROR, message, span, label, **more)  # type: ignore[arg-type]


def _replace(place: Place, lexeme: Lexeme, text: str) -> tuple[Edit, ...]:
    return (Edit(place.span(lexeme), text),)


def _insert(place: Place, at: int, text: str) -> tuple[Edit, ...]:
    return (Edit(place.source.span(at, at), text),)


# --- the rules -----------------------------------------------------------------------------------


def _open_string(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    lexeme = next((x for x in (place.here, place.before) if x.kind == "open_string"), None)
    if lexeme is None:
        return None
    return _error(
        "OPUS005", "the text has no closing quote on its line", place.span(lexeme), 'no `"` before the line ends',
        help='close it with `"`; a text stands on one line',
    )  # fmt: skip


def _version(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    """`opus` in the first line, and no number after it."""
    if place.before.text != "opus":
        return None
    if place.here.kind == "number" and place.earlier(2).kind in ("newline", "end"):
        both = place.span(place.before).to(place.span(place.here))
        return _error("OPUS001", "the version of the language stands in the first line only", both, "not here")
    if "NUMBER" not in expected or place.before is not place.first:
        return None
    span = place.span(place.before)
    return _error("OPUS002", "the first line must be `opus 1`", span, "no version", fix=(Edit(span, "opus 1"),))


def _brace_below(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    """A block that begins on the line below its name."""
    if place.here.kind != "newline" or "LBRACE" not in expected:
        return None
    brace = next((x for x in place.lexemes[place.index :] if x.kind != "newline"), END)
    if brace.text != "{" or "#" in place.source.text[place.here.start : brace.start]:
        return None
    gap = place.source.span(place.before.end, brace.start)
    return _error("OPUS001", "the `{` of a block stands on the line of its name", place.span(brace),
                  f"belongs after `{place.before.text}`", fix=(Edit(gap, " "),))  # fmt: skip


def _unclosed(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    opener = place.unclosed
    if opener is None:
        return None
    where = "the file ends" if place.here is END else f"`{place.here.text}` cannot stand inside"
    return _error(
        "OPUS004", f"`{opener.text}` is never closed", place.span(opener), "opened here",
        secondary=(Label(place.span(place.here), where),), help=f"add `{PAIRS[opener.text]}`",
    )  # fmt: skip


def _stray(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    if not place.stray:
        return None
    return _error(
        "OPUS004", f"`{place.here.text}` closes nothing", place.span(place.here), "no bracket is open here",
        help="take it away, or open the bracket before",
    )  # fmt: skip


def _foreign(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    here = place.here
    if here.text in FOREIGN or (here.text in QUOTES and here.text):
        ours = FOREIGN.get(here.text, '"')
        message = f"`{here.text}` is not of this language: write `{ours}`"
        fix = _replace(place, here, ours)
        if ours == '"' and (closing := _closing_quote(place)) is not None:
            fix += _replace(place, closing, ours)
        return _error("OPUS007", message, place.span(here), f"`{ours}`", fix=fix)
    if here.text in ("//", "/*"):
        end = place.text.find("*/", here.start)
        if here.text == "/*" and end >= 0:
            here = replace(here, text=place.text[here.start : end + 2])
        fix = _replace(place, here, "#") if here.text == "//" else ()
        return _error("OPUS007", "comments start with `#`", place.span(here), f"not with `{here.text[:2]}`", fix=fix)
    if here.text == ";":
        return _error(
            "OPUS007", "fields and declarations end with the line, or with `,` inside a block", place.span(here),
            "no `;` is needed",
            fix=_replace(place, here, "" if place.after.kind in ("newline", "end") else "," if place.open else "\n"),
        )  # fmt: skip
    if here.text == ":" and place.before.kind == "word" and place.earlier(2).text == "let":
        return _error("OPUS001", "a `let` states no type: its value has one", place.span(here), "not expected here",
                      help="only `param` has a type")  # fmt: skip
    if here.text == ":" and place.before.kind == "word" and place.before.text not in KEYWORDS:
        message = f"a field is stated with `=`: `{place.before.text} = ...`"
        ours = "=" if place.before.end < here.start else " ="
        # Outside blocks no field can be meant: `dp: count = 4` is a parameter without its `param`.
        fix = _replace(place, here, ours) if place.open and not FIELD.match(place.text, place.after.start) else ()
        return _error("OPUS007", message, place.span(here), "write `=`", fix=fix)
    if here.text == "==" and ("EQUAL" in expected or place.at > here.start):
        return _error("OPUS007", "`==` compares; a field is stated with `=`", place.span(here), "write `=`",
                      fix=_replace(place, here, "="))  # fmt: skip
    if here.text == "=" and ("COMPARE" in expected or _in_condition(place)):
        return _error("OPUS007", "`=` states a field; a comparison is `==`", place.span(here), "write `==`",
                      fix=_replace(place, here, "=="))  # fmt: skip
    return _foreign_operator(place)


def _item(place: Place) -> list[Lexeme]:
    """What stands before the mistake in its item."""
    start = place.index
    while start > 0:
        before = place.lexemes[start - 1]
        ends = before.kind == "newline" or before.text in (",", "{")
        if ends and not place.inside[start - 1]:
            break
        start -= 1
    return place.lexemes[start : place.index]


def _in_condition(place: Place) -> bool:
    for lexeme in reversed(_item(place)):
        if lexeme.text in ("require", "if", "and", "or", "not"):
            return True
        if lexeme.text in ("=", "then", "else", "for"):
            return False
    return False


def _closing_quote(place: Place) -> Lexeme | None:
    """The other quotation mark of a pair that is not ours, on the same line."""
    for lexeme in place.lexemes[place.index + 1 :]:
        if lexeme.kind == "newline" or lexeme.text == '"':
            break
        if lexeme.text in QUOTES or lexeme.text == "'":
            return lexeme
    return None


def _foreign_operator(place: Place) -> Diagnostic | None:
    """`%` for `mod`, also where the parser took it for per cent (`7 % 3`), and `**`."""
    operand = place.here.kind in ("number", "word") or place.here.text == "("
    sign = place.before if place.before.text == "%" and operand and place.here.text not in KEYWORDS else place.here
    if sign.text == "**":
        return _error("OPUS007", "`**` is no operator here", place.span(sign), "no powers",
                      help="write the product")  # fmt: skip
    if sign.text != "%" or place.begins_item:
        return None
    left, right = place.text[sign.start - 1 : sign.start], place.text[sign.end : sign.end + 1]
    ours = f"{'' if left.isspace() else ' '}mod{'' if right.isspace() else ' '}"
    return _error("OPUS007", "`%` is no operator here: write `mod`", place.span(sign), "`mod`",
                  fix=_replace(place, sign, ours))  # fmt: skip


def _odd_character(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    """What cannot be seen, or looks like something else."""
    here = place.here
    if here.kind != "other":
        return None
    if here.text.isascii() and here.text.isprintable():
        return _error("OPUS001", f"`{here.text}` means nothing outside a text", place.span(here), "not of the language")
    called = f"U+{ord(here.text):04X}" + (f" ({known.lower()})" if (known := name(here.text, "")) else "")
    blank = category(here.text) in ("Zs", "Zl", "Zp", "Cf")
    return _error(
        "OPUS001", f"the character {called} cannot stand outside a text", place.span(here), "not expected here",
        fix=_replace(place, here, " ") if blank else (),
    )  # fmt: skip


def _odd_number(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    before, here = place.before, place.here
    if before.kind != "number" or here.kind != "word" or before.end != here.start:
        return None
    whole = place.source.span(before.start, here.end)
    return _error(
        "OPUS001", f"`{whole.text}` is no number", whole, "digits and one decimal point",
        help="write it out, `1_000_000`; units stand after the number: `200 Gbps`",
    )  # fmt: skip


def _missing_value_above(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    """`a =`, and on the next line `b = 1`: newlines after `=` mean nothing, so `b` was taken for the value."""
    at = place.index
    while at > 0 and place.lexemes[at - 1].kind != "newline":
        at -= 1
    if at == 0 or place.in_list or at >= len(place.lexemes):
        return None
    first = place.lexemes[at]
    head = HEAD.match(place.text, first.start)
    if first.kind != "word" or not (first.text in BEGIN or (head is not None and place.here.start < head.end())):
        return None
    above = next((x for x in reversed(place.lexemes[:at]) if x.kind != "newline"), END)
    if above.text not in WAITING or (above.text in BEGIN and first.text not in BEGIN):
        return None
    return _nothing_follows(place, above)


def _nothing_follows(place: Place, sign: Lexeme) -> Diagnostic:
    what = {"=": "a value", ".": "a name", ":": "a type"}.get(sign.text, "an operand")
    what = "a value" if sign.kind == "word" else what
    return _error("OPUS001", f"expected {what} after `{sign.text}`", place.span(sign), "nothing follows")


def _missing_separator(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    before, here, index = place.before, place.here, place.index
    if here.text == "=" and before.kind == "word" and place.earlier(2).kind == "number":
        before, here, index = place.earlier(2), before, index - 1  # `2 s =`: the field `s`, not 2 seconds
    if here.kind != "word" or not _ends_a_value(before) or place.in_list or before.text in KEYWORDS:
        return None
    if here.text not in BEGIN and not (FIELD if place.open else DECLARATION).match(place.text, here.start):
        return None
    if "COMMA" not in expected and "_NL" not in expected:
        return None
    if not place.open:
        message = f"expected a new line before `{here.text}`"
        return _error("OPUS001", message, place.span(here), "starts a new declaration",
                      fix=_insert(place, before.end, "\n"))  # fmt: skip
    name = place.lexemes[place.item_start(index - 1)].text
    return _error(
        "OPUS001", f"expected `,` or a new line between `{name}` and `{here.text}`", place.span(here),
        f"`{here.text}` is another field", fix=_insert(place, before.end, ","),
    )  # fmt: skip


def _ends_a_value(lexeme: Lexeme) -> bool:
    return lexeme.kind in ("word", "number", "string", "close") or lexeme.text == "%"


def _missing_comma(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    """Two values of a list side by side."""
    before, here = place.before, place.here
    starts_a_value = here.kind in ("word", "number", "string") or here.text in ("(", "[")
    if not (place.in_list and "COMMA" in expected and {"RSQB", "RPAR"} & expected and starts_a_value):
        return None
    constants = {"true", "false"}
    if not _ends_a_value(before) or before.text in KEYWORDS - constants or here.text in KEYWORDS - constants - {"not"}:
        return None
    return _error(
        "OPUS001", f"expected `,` between `{before.text}` and `{here.text}`", place.span(here), "another value",
        fix=_insert(place, before.end, ","),
    )  # fmt: skip


def _outside(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    """A field, or a block without a kind, where declarations stand."""
    here, before = place.here, place.before
    if place.open or expected != {"NAME"} or before.kind != "word" or before.text in KEYWORDS:
        return None
    if place.earlier(2).kind not in ("newline", "end"):
        return None
    if here.text == "=":
        return _error("OPUS001", f"`{before.text} = ...` is a field, and stands in no block", place.span(before),
                      "outside every block", help="a value with a name of its own is stated with `let`")  # fmt: skip
    if here.text == "{":
        return _error("OPUS001", "a block has a kind and a name: `KIND NAME { ... }`", place.span(before),
                      "only one word")  # fmt: skip
    return None


def _chained(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    if place.here.text not in COMPARISONS or not any(x.text in COMPARISONS for x in _item(place)):
        return None
    return _error("OPUS001", "comparisons do not follow each other", place.span(place.here), "a second one",
                  help="join two with `and`: `1 < a and a < 3`")  # fmt: skip


def _side_by_side(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    """Two values with nothing between."""
    before, here = place.before, place.here
    if here.kind not in ("word", "number", "string") or not _ends_a_value(before) or place.begins_item:
        return None
    words = KEYWORDS - {"true", "false"}
    value_begun = any(x.text in ("=", "in", "require", "(", "[") for x in _item(place))
    if here.text in words or before.text in words or not value_begun:
        return None
    return _error("OPUS001", f"nothing joins `{before.text}` and `{here.text}`", place.span(here),
                  "an operator, a comma or a new line is missing before this")  # fmt: skip


def _keyword(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    here = place.here
    if here.kind != "word" or here.text not in KEYWORDS or "NAME" not in expected:
        return None
    return _error(
        "OPUS001", f"`{here.text}` is a word of the language and cannot be a name", place.span(here), "choose another",
        help=f"for example `{here.text}_`",
    )  # fmt: skip


def _missing_value(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    here, before = place.here, place.before
    ended = here.kind in ("newline", "close", "end") or here.text == ","
    if not ended or before.text == "," or (before.kind != "sign" and before.text not in WAITING):
        return None
    return _nothing_follows(place, before)


def _missing_else(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    for word, clause in (("_ELSE", "else"), ("_THEN", "then")):
        if word in expected and "EQUAL" not in expected and "_NL" not in expected - {"_NL"} and "COMMA" not in expected:
            end = place.before.end
            return _error(
                "OPUS001",
                f"expected `{clause}`: `if` has three parts",
                place.source.span(end, end),
                f"`{clause}` is missing",
                help="write `if condition then value else value`",
            )
    return None


def _expected(place: Place, expected: frozenset[str]) -> Diagnostic:
    here = place.here
    words = [word for terminal, word in NAMES.items() if terminal in expected]
    if {"NAME", "NUMBER", "STRING"} <= expected:
        words = ["a value", *(w for w in words if w not in ("a name", "a number", "a text", "`{`"))]
    found = {"end": "the file ends", "newline": "the line ends"}.get(here.kind, f"`{here.text}` stands here")
    wanted = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "something else"
    begins = next((x.text for x in _item(place)), "") or here.text
    message = f"expected {wanted}, and {found}"
    return _error("OPUS001", message, place.span(here), "not expected here", help=FORMS.get(begins, ""))


_RULES: tuple[Rule, ...] = (
    _open_string,
    _version,
    _missing_value_above,
    _missing_separator,
    _unclosed,
    _stray,
    _brace_below,
    foreign_sentence,
    _foreign,
    _odd_character,
    _odd_number,
    _missing_comma,
    _keyword,
    _outside,
    _missing_value,
    _chained,
    _missing_else,
    _side_by_side,
)
