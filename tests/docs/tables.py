"""The tables of docs/language.md, made from the compiler's own tables.

`python -m tests.docs.tables` writes them into the page; a test compares.
"""

import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from opusc.diagnostics import Diagnostics
from opusc.model.entities import Traffic
from opusc.model.functions import FUNCTIONS
from opusc.model.schema import KINDS, TOPOLOGIES
from opusc.model.units import UNITS, describe
from opusc.plan.ports import PortModel
from opusc.plan.topologies import shape
from tests.support import phase

__all__ = ["PAGE", "TABLES", "filled"]

PAGE = Path(__file__).parents[2] / "docs" / "language.md"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([_row(*header), "|---" * len(header) + "|", *(_row(*row) for row in rows)])


def fields() -> str:
    parts = []
    for kind in KINDS.values():
        if not kind.fields:
            continue
        where = "" if kind.declared else " Written inside another block."
        rows = [
            (
                f"`{field.name}`",
                str(field.type),
                "required" if field.required else field.default,
                field.doc,
            )
            for field in kind.fields
        ]
        parts.append(f"#### {kind.name}\n\n{kind.doc}{where}\n\n" + _table(("field", "type", "default", ""), rows))
    return "\n\n".join(parts)


_BASES = {
    "bandwidth": "bit/s",
    "size": "bit",
    "time": "ps",
    "power": "mW",
    "money": "US cent",
    "compute rate": "operation/s",
    "ratio": "",
    "loss": "0.001 dB",
    "level": "0.001 dBm",
    "length": "mm",
    "loss per length": "0.001 dB/mm",
    "delay per length": "ps/mm",
}


def _factor(unit: str) -> str:
    value = UNITS[unit].factor
    dimension = describe(UNITS[unit].dimension)
    if dimension in ("bandwidth", "compute rate"):
        value *= Fraction(10**12)
    number = f"{value.numerator:,}" if value.denominator == 1 else str(value)
    return f"{number} {_BASES[dimension]}".strip()


def units() -> str:
    rows = [(f"`{name}`", describe(unit.dimension), _factor(name)) for name, unit in UNITS.items()]
    return _table(("unit", "dimension", "is"), sorted(rows, key=lambda row: row[1]))


def functions() -> str:
    rows = [(f"`{name}({signature.parameters})`", signature.doc) for name, signature in FUNCTIONS.items()]
    return _table(("function", "value"), rows)


def _steps(name: str, n: int, ports: int, independent: bool) -> str:
    sink = Diagnostics()
    dims = (2, 4) if name == "flattened_butterfly" else None
    model = PortModel((0,) * ports, None, independent)
    form = shape(phase("x", ("dp",), name, Traffic.REDUCTION, dims=dims), n, model, sink)
    assert form is not None, list(sink)
    return str(len(form.steps)) + (f" x{form.copies}" if form.copies > 1 else "")


def steps() -> str:
    header = ("topology of 8 domains", *(f"paired, {p}" for p in (1, 2, 4)), *(f"independent, {p}" for p in (1, 2, 4)))
    rows = []
    for name in TOPOLOGIES:
        if name != "edges":
            cells = (_steps(name, 8, ports, independent) for independent in (False, True) for ports in (1, 2, 4))
            shown = f"`{name}`" + (", dims `[2, 4]`" if name == "flattened_butterfly" else "")
            rows.append((shown, *cells))
    return _table(header, rows)


TABLES = {"fields": fields, "units": units, "functions": functions, "steps": steps}


def filled(text: str) -> str:
    """The page with every table as the compiler has it."""

    def one(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n\n{TABLES[match[1]]()}\n\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->\n.*?<!-- end -->", one, text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
