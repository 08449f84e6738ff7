"""`opusc show TOPIC`: the standard library, the targets, and the language, from the tables that the compiler uses."""

from collections.abc import Callable

from opusc.cli.tables import labelled
from opusc.cli.terminal import UsageError
from opusc.diagnostics import Diagnostics
from opusc.diagnostics.suggest import closest
from opusc.resources import stdlib_dir
from opusc.source import Source

__all__ = ["topic"]


def topic(name: str, kind: str | None, width: int) -> str:
    """The text of a topic. Raises UsageError when `kind` is no kind of declaration."""
    if name == "fields":
        return _fields(kind, width)
    views: dict[str, Callable[[int], str]] = {"targets": _targets, "units": _units, "functions": _functions}
    view = views.get(name)
    return view(width) if view is not None else _library(name, width)


def _library(module: str, width: int) -> str:
    """Each entry of a standard module: its name, its fields as written, and its doc comment with the sources."""
    from opusc.syntax import tree
    from opusc.syntax.parser import parse
    from opusc.syntax.printer import head_of_field, inline, parameters

    path = stdlib_dir() / f"{module}.opus"
    program = parse(Source(f"std.{module}", path.read_text(encoding="utf-8")), Diagnostics())
    out = f"use std.{module}\n"
    for entry in program.entries:
        if not isinstance(entry, tree.Declaration):
            continue
        out += f"\n{module}.{entry.name.text}{parameters(entry.parameters)}\n"
        out += "".join(labelled("", line, width, column=2) for line in entry.doc.split("\n") if line)
        items = entry.value.items if isinstance(entry.value, tree.Record) and entry.kind.text != "topology" else ()
        for item in items:
            if isinstance(item, tree.Field):
                out += labelled(f"  {head_of_field(item)}", inline(item.value), width, column=21)
    return out


def _targets(width: int) -> str:
    from opusc.backends.registry import GROUPS, get, names

    out = "".join(labelled(name, get(name).summary, width, column=17) for name in names())
    for group, members in sorted(GROUPS.items()):
        out += labelled(group, f"those of {', '.join(members)} that the fabric has switches for", width, column=17)
    return out


def _units(width: int) -> str:
    from opusc.model.units import UNITS, describe

    by_dimension: dict[str, list[str]] = {}
    for unit in UNITS.values():
        by_dimension.setdefault(describe(unit.dimension), []).append(unit.name)
    out = "".join(labelled(dimension, ", ".join(found), width, column=18) for dimension, found in by_dimension.items())
    note = "1 GB is 10^9 bytes, 1 GiB 2^30; a byte is 8 bits, so 200 Gbps are 25 GB/s."
    return out + "\n" + labelled("", note, width, column=0)


def _functions(width: int) -> str:
    from opusc.model.functions import FUNCTIONS

    return "".join(
        labelled(f"{name}({signature.parameters})", signature.doc, width, column=30)
        for name, signature in sorted(FUNCTIONS.items())
    )


def _fields(kind: str | None, width: int) -> str:
    from opusc.model.schema import KINDS

    if kind is None:
        out = ""
        for known in KINDS.values():
            doc = f"{known.doc} Planned." if known.later else known.doc
            out += labelled(known.name, doc, width, column=21)
        return out + "\n`opusc show fields KIND` lists the fields of one.\n"
    if kind not in KINDS:
        near = closest(kind, KINDS)
        hint = f"did you mean `{near}`?" if near else f"there are {', '.join(KINDS)}"
        raise UsageError(f"there is no kind `{kind}`; {hint}")
    found = KINDS[kind]
    out = f"{found.name}: {found.doc}\n"
    for field in found.fields:
        given = "required" if field.required else f"default: {field.default}" if field.default else "optional"
        out += f"\n{field.name}: {field.type}  ({given})\n"
        out += labelled("", field.doc, width, column=4)
    return out
