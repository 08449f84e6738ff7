"""What an author most likely meant by a name or unit that does not exist."""

import re
from collections.abc import Sequence

from opusc.diagnostics import Edit
from opusc.diagnostics.suggest import closest
from opusc.model.loader import standard_modules, standard_text
from opusc.model.schema import KINDS, TOPOLOGIES, Choice
from opusc.model.units import UNITS
from opusc.model.values import Module, Scope
from opusc.source import Span
from opusc.syntax import tree

__all__ = ["meant_member", "meant_name", "meant_unit"]


def meant_name(node: tree.Name, scope: Scope, words: Sequence[str]) -> tuple[str, str, list[Edit]]:
    """A label, a help and a fix for an unknown name; the fix only where there is no other reading."""
    name = node.text
    for module_name in dict.fromkeys(scope.visible()):
        module = scope.find(module_name)
        if isinstance(module, Module) and name in module.scope.names:
            full = f"{module_name}.{name}"
            return f"it is `{full}`", "", [Edit(node.span, full)]
        if isinstance(module, Module) and module.home == name:
            return f"it is called `{module_name}` here", "", [Edit(node.span, module_name)]
    if name in standard_modules() and not words:
        source = node.span.source
        after = len(source.line_text(1))
        line = f"use std.{name}"
        return "a module that is not used", f"add `{line}`", [Edit(Span(source, after, after), f"\n\n{line}")]
    if name in _PLACES:
        place, way_out = _PLACES[name]
        near = closest(name, scope.visible())
        other = f"did you mean `{near}`?" if near else ""
        return f"known {place} only", "; or ".join(text for text in (way_out, other) if text), []
    near = closest(name, [*words, *scope.visible()])
    if not words and (near is None or near.casefold() != name.casefold()) and _is_field(name):
        return "a field, not a name", "a field is read through its block, as in `c.node_count`; `let` names a value", []
    if near is None and (home := _standard_home(name)):
        return f"`std.{home}` has it", f"add `use std.{home}` and write `{home}.{name}`", []
    field = None if words or near else _field_of(name)
    if field is not None:
        other = f", or write `param NAME: {field} = {name}`" if field in ("topology", "optics", "peers") else ""
        return f"a word of the field `{field}`", f"a word is known only to its field: write it there{other}", []
    same = near is not None and near.casefold() == name.casefold()
    return (
        f"did you mean `{near}`?" if near else "not defined here",
        f"one of: {', '.join(words)}" if words else "",
        [Edit(node.span, near)] if near and same else [],
    )


def meant_member(node: tree.Name, known: Sequence[str], kind: str) -> tuple[str, str, list[Edit]]:
    """A label, a help and a fix for a name that a module, or a block of a kind, does not have."""
    if kind in KINDS and any(field.name == node.text for field in KINDS[kind].fields):
        return "a field that is not stated there", f"state `{node.text} = ...` in it: defaults cannot be read", []
    near = closest(node.text, known)
    return f"did you mean `{near}`?" if near else "no such name", "", [Edit(node.span, near)] if near else []


#: Variables that are bound in some fields only: where, and the way out.
_PLACES = {
    **dict.fromkeys(
        ("rail", "plane", "block"),
        ("in the `switch` of a fabric", 'write it there, for example `switch = BASE { address = "10.0.0.{rail}" }`'),
    ),
    **dict.fromkeys(("size", "members"), ("in the edges of a topology", "")),
    "position": ("in the port names of a switch", ""),
}


def _is_field(name: str) -> bool:
    return any(field.name == name for kind in KINDS.values() if kind.declared for field in kind.fields) or any(
        field.name == name for field in KINDS["parallelism"].fields
    )


def _standard_home(name: str) -> str | None:
    """The standard module that declares a name."""
    declared = re.compile(rf"^\w+ {re.escape(name)}\b", re.MULTILINE)
    return next((module for module in standard_modules() if declared.search(standard_text(module))), None)


def _field_of(word: str) -> str | None:
    """The first field that has a word."""
    if word in TOPOLOGIES:
        return "topology"
    fields = (field for kind in KINDS.values() for field in kind.fields)
    return next((f.name for f in fields if isinstance(f.type, Choice) and word in f.type.words), None)


_OTHER_SPELLINGS = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "usec": "us", "nsec": "ns",
    "mins": "min", "minute": "min", "minutes": "min", "hr": "h", "hour": "h", "hours": "h",
    "percent": "%", "usd": "USD", "dollars": "USD", "byte": "B", "bytes": "B", "bit": "b", "bits": "b",
    "dbm": "dBm", "db": "dB", "watt": "W", "watts": "W",
}  # fmt: skip


def meant_unit(text: str) -> tuple[str | None, bool]:
    """The unit that an unknown spelling stands for, and whether it can stand for no other.

    A wrong guess between bits and bytes, or milli and mega, would be worse than none: `Gb/s` is `Gbps`, but
    `gb` may be `GB` or `Gb`.
    """
    if text.lower() in _OTHER_SPELLINGS:
        return _OTHER_SPELLINGS[text.lower()], True
    if bits := re.fullmatch(r"([kKMGTP]?)(?:b|bit|bits)(?:/s|/sec|ps)", text):
        return f"{bits[1].replace('K', 'k')}bps", True
    if bytes_ := re.fullmatch(r"([kKMGTP]i?|)(?:B|Byte|Bytes)(?:/sec|ps)", text):
        prefix = bytes_[1].replace("K", "k") if len(bytes_[1]) == 1 else bytes_[1]
        return f"{prefix}B/s", True
    if re.fullmatch(r"[KMGTP]ib(it|its)?/s", text):
        return None, False  # binary bits a second are no unit here, and bytes would be eight times as much
    alike = [unit for unit in UNITS if unit.casefold() == text.casefold()]
    if alike:
        return alike[0], len(alike) == 1
    return closest(text, UNITS), False
