"""Sentences of other languages: what their authors meant here."""

from opusc.diagnostics import Diagnostic, Edit, Severity
from opusc.syntax.place import Place
from opusc.syntax.scan import Lexeme
from opusc.syntax.words import BEGIN, KEYWORDS

__all__ = ["foreign_sentence"]

_IMPORTS = ("from", "import", "include", "using")


def foreign_sentence(place: Place, expected: frozenset[str]) -> Diagnostic | None:
    """`import x`, `use a, b`, `job "j" {`, `torus(dims = [2])`."""
    item = [lexeme for lexeme in place.lexemes[place.item_start(place.index) : place.index] if lexeme.kind != "newline"]
    if not item:
        return None
    return _import(place, item) or _uses(place) or _quoted_name(place, item) or _named_argument(place)


def _import(place: Place, item: list[Lexeme]) -> Diagnostic | None:
    first = item[0]
    if first.text not in _IMPORTS or place.open:
        return None
    if not (len(item) == 1 and place.here.kind == "string") and not (len(item) == 2 and place.here.text == "."):
        return None
    return _told(
        place, f"`{first.text}` is not of this language: write `use`", first, "`use`",
        help='`use std.NAME`, or `use "directory/file.opus"`', fix=(Edit(place.span(first), "use"),),
    )  # fmt: skip


def _uses(place: Place) -> Diagnostic | None:
    line = place.text[: place.here.start].rpartition("\n")[2]
    if place.here.text != "," or place.open or not line.startswith("use "):
        return None
    gap = place.source.span(place.here.start, place.after.start if place.after.kind == "word" else place.here.end)
    return _told(place, "a `use` names one module", place.here, "the next one stands on a line of its own",
                 fix=(Edit(gap, "\nuse "),))  # fmt: skip


def _quoted_name(place: Place, item: list[Lexeme]) -> Diagnostic | None:
    here = place.here
    name = here.text[1:-1]
    declares = len(item) == 1 and item[0].kind == "word" and (item[0].text == "phase" or item[0].text not in BEGIN)
    if here.kind != "string" or not declares or place.after.text not in ("{", "over"):
        return None
    fits = name.isidentifier() and name.isascii() and name not in KEYWORDS
    return _told(place, "names stand without quotes", here, f"write `{name}`" if fits else "not a name",
                 help="" if fits else "a name has letters, digits and `_`, and begins with no digit",
                 fix=(Edit(place.span(here), name),) if fits else ())  # fmt: skip


def _named_argument(place: Place) -> Diagnostic | None:
    if place.here.text != "=" or not place.open or place.open[-1].text != "(" or place.before.kind != "word":
        return None
    at = place.lexemes.index(place.open[-1])
    called = place.lexemes[at - 1] if at else place.open[-1]
    if called.kind != "word" or called.end != place.open[-1].start or called.text in KEYWORDS:
        return None
    name = place.before.text
    return _told(
        place, f"arguments are given in order, without names: `{called.text}({name} = ...)`", place.here,
        f"`{name}` is no field here",
        help=f"a topology has its parameters in braces: `{called.text} {{ {name} = ... }}`",
    )  # fmt: skip


def _told(
    place: Place, message: str, at: Lexeme, label: str, *, help: str = "", fix: tuple[Edit, ...] = ()
) -> Diagnostic:
    return Diagnostic("OPUS007", Severity.ERROR, message, place.span(at), label, help=help, fix=fix)
