"""What a syntax error means: the mistakes that people make, each with its way out.

The parser says where it stopped and what could have followed. The rules below look around that place, the most
telling first; what none of them knows is described by what was expected.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from opusc.diagnostics import Diagnostic, Edit, Label, Severity
from opusc.source import Source, Span
from opusc.syntax.scan import Lexeme

__all__ = ["KEYWORDS", "Place", "explain"]

KEYWORDS = frozenset(
    [
        "and",
        "as",
        "div",
        "else",
        "false",
        "fault",
        "for",
        "if",
        "in",
        "let",
        "mod",
        "not",
        "of",
        "or",
        "over",
        "param",
        "phase",
        "require",
        "then",
        "true",
        "use",
    ]
)
_PAIRS = {"(": ")", "[": "]", "{": "}"}
#: Notation of other languages, and ours.
_FOREIGN = {"&&": "and", "||": "or", "!": "not", ":=": "=", "=>": "=", "->": "=", "'": '"'}
_QUOTES = "\u2018\u2019\u201c\u201d\u00ab\u00bb"
_END = Lexeme("end", "", 0)

#: Words for the parser's terminals, in the order in which a message names them.
_NAMES = {
    "NAME": "a name", "NUMBER": "a number", "STRING": "a text", "EQUAL": "`=`", "LBRACE": "`{`", "COMMA": "`,`",
    "_NL": "a new line", "RBRACE": "`}`", "RSQB": "`]`", "RPAR": "`)`", "COLON": "`:`", "_THEN": "`then`",
    "_ELSE": "`else`", "IN": "`in`", "_FOR": "`for`", "_OF": "`of`",
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where the parser stopped: character `at` of `text`, in which earlier mistakes are blanked."""

    source: Source
    text: str
    lexemes: list[Lexeme]
    at: int

    @cached_property
    def index(self) -> int:
        """The lexeme that the parser did not like; one too many at the end of the text."""
        return next((i for i, lexeme in enumerate(self.lexemes) if lexeme.end > self.at), len(self.lexemes))

    @property
    def here(self) -> Lexeme:
        return self.lexemes[self.index] if self.index < len(self.lexemes) else _END

    @cached_property
    def before(self) -> Lexeme:
        """The lexeme before, newlines left out."""
        earlier = (lexeme for lexeme in reversed(self.lexemes[: self.index]) if lexeme.kind != "newline")
        return next(earlier, _END)

    @property
    def after(self) -> Lexeme:
        return self.lexemes[self.index + 1] if self.index + 1 < len(self.lexemes) else _END

    @cached_property
    def open(self) -> list[Lexeme]:
        """Brackets that are open here, outermost first."""
        stack: list[Lexeme] = []
        for lexeme in self.lexemes[: self.index]:
            if lexeme.kind == "open":
                stack.append(lexeme)
            elif lexeme.kind == "close" and stack and _PAIRS[stack[-1].text] == lexeme.text:
                stack.pop()
        return stack

    @cached_property
    def unclosed(self) -> Lexeme | None:
        """The bracket that was most likely not closed, if that is the mistake."""
        if not self.open:
            return None
        inner = self.open[-1]
        if self.here is _END:
            return inner
        if inner.text == "{":
            return inner if self._declaration_inside() else None
        if self.here.kind == "close" and self.here.text != _PAIRS[inner.text]:
            return inner
        on_a_later_line = "\n" in self.text[inner.start : self.here.start]
        return inner if on_a_later_line and self.here.text in ("=", "{") else None

    def _declaration_inside(self) -> bool:
        """Whether a declaration starts in the first column while a block is open: `fabric f {`."""
        line = self.text.rfind("\n", 0, self.here.start) + 1
        words = self.text[line : self.here.start].split()
        starts = bool(words) and not self.text[line].isspace() and self.open[-1].start < line
        return starts and ((self.here.text == "{" and len(words) == 2) or words[0] in ("param", "use", "fault"))

    @property
    def stray(self) -> bool:
        """A closing bracket that closes nothing."""
        return self.here.kind == "close" and (not self.open or _PAIRS[self.open[-1].text] != self.here.text)

    def span(self, lexeme: Lexeme) -> Span:
        if lexeme is _END:
            end = len(self.text.rstrip())
            return self.source.span(end, end)
        if lexeme.kind == "newline":
            return self.source.span(lexeme.start, lexeme.start)
        return self.source.span(lexeme.start, lexeme.end)


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


def _unclosed(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    opener = place.unclosed
    if opener is None:
        return None
    where = "the file ends" if place.here is _END else f"`{place.here.text}` cannot stand inside"
    return _error(
        "OPUS004", f"`{opener.text}` is never closed", place.span(opener), "opened here",
        secondary=(Label(place.span(place.here), where),), help=f"add `{_PAIRS[opener.text]}`",
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
    if here.text in _FOREIGN or (here.text in _QUOTES and here.text):
        ours = _FOREIGN.get(here.text, '"')
        message = f"`{here.text}` is not of this language: write `{ours}`"
        return _error("OPUS007", message, place.span(here), f"`{ours}`", fix=_replace(place, here, ours))
    if here.text in ("//", "/*"):
        fix = _replace(place, here, "#") if here.text == "//" else ()
        return _error("OPUS007", "comments start with `#`", place.span(here), f"not with `{here.text}`", fix=fix)
    if here.text == ";":
        return _error(
            "OPUS007", "fields and declarations end with the line, or with `,` inside a block", place.span(here),
            "no `;` is needed", fix=_replace(place, here, "" if place.after.kind in ("newline", "end") else ","),
        )  # fmt: skip
    if here.text == ":" and place.before.kind == "word" and "EQUAL" in expected | {"EQUAL"}:
        message = f"a field is stated with `=`: `{place.before.text} = ...`"
        return _error("OPUS007", message, place.span(here), "write `=`", fix=_replace(place, here, " ="))
    if here.text == "==" and ("EQUAL" in expected or place.at > here.start):
        return _error("OPUS007", "`==` compares; a field is stated with `=`", place.span(here), "write `=`",
                      fix=_replace(place, here, "="))  # fmt: skip
    if here.text == "=" and "COMPARE" in expected:
        return _error("OPUS007", "`=` states a field; a comparison is `==`", place.span(here), "write `==`",
                      fix=_replace(place, here, "=="))  # fmt: skip
    if here.text == "%" or (here.text == "**"):
        ours = "mod" if here.text == "%" else "power(base, exponent)"
        return _error("OPUS007", f"`{here.text}` is no operator here: write `{ours}`", place.span(here), f"`{ours}`")
    return None


def _odd_number(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    before, here = place.before, place.here
    if before.kind != "number" or here.kind != "word" or before.end != here.start:
        return None
    whole = place.source.span(before.start, here.end)
    return _error(
        "OPUS001", f"`{whole.text}` is no number", whole, "digits and one decimal point",
        help="write it out, `1_000_000`; units stand after the number: `200 Gbps`",
    )  # fmt: skip


def _missing_separator(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    before, here, after = place.before, place.here, place.after
    ends_a_value = before.kind in ("word", "number", "string", "close") or before.text == "%"
    if not (ends_a_value and here.kind == "word" and (after.text == "=" or after.text == "{")):
        return None
    if "COMMA" not in expected and "_NL" not in expected:
        return None
    line = place.text.rfind("\n", 0, here.start) + 1
    first = place.open[-1].end if place.open and place.open[-1].start >= line else line
    start = place.text.rfind(",", first, before.start)
    name = place.text[max(start + 1, first) : before.start].split("=")[0].strip() or before.text
    if not place.open:
        message = f"expected a new line before `{here.text}`"
        return _error("OPUS001", message, place.span(here), "starts a new declaration")
    return _error(
        "OPUS001", f"expected `,` or a new line between `{name}` and `{here.text}`", place.span(here),
        f"`{here.text}` is another field", fix=_insert(place, before.end, ","),
    )  # fmt: skip


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
    if here.text == "=" and before.kind == "word":
        # `a =`, and on the next line `b = 1`: newlines after `=` mean nothing, so `b` was taken for the value.
        at = place.lexemes.index(before) - 1
        ended = at >= 0 and place.lexemes[at].kind == "newline"
        before = next((x for x in reversed(place.lexemes[: at + 1]) if x.kind != "newline"), _END)
    if not ended or before.kind != "sign" or before.text in (",", ".."):
        return None
    what = "a value" if before.text == "=" else "an operand"
    return _error("OPUS001", f"expected {what} after `{before.text}`", place.span(before), "nothing follows")


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
    words = [word for terminal, word in _NAMES.items() if terminal in expected]
    if {"NAME", "NUMBER", "STRING"} <= expected:
        words = ["a value", *(w for w in words if w not in ("a name", "a number", "a text", "`{`"))]
    found = {"end": "the file ends", "newline": "the line ends"}.get(here.kind, f"`{here.text}` stands here")
    wanted = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "something else"
    return _error("OPUS001", f"expected {wanted}, and {found}", place.span(here), "not expected here")


_RULES: tuple[Rule, ...] = (
    _open_string,
    _missing_separator,
    _unclosed,
    _stray,
    _foreign,
    _odd_number,
    _keyword,
    _missing_value,
    _missing_else,
)
