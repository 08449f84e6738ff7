"""The syntax tree: what was written, nothing resolved.

Every node carries its span, which equality ignores, so that two texts with the same meaning on the page
compare equal (the formatter relies on it). Nodes hold no behaviour.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from opusc.source import Source, Span
from opusc.structural import Structural

__all__ = [
    "Attribute",
    "Binary",
    "Boolean",
    "Call",
    "Comment",
    "Comprehension",
    "Declaration",
    "Entry",
    "Expression",
    "Fault",
    "Field",
    "Index",
    "Item",
    "Let",
    "List",
    "Name",
    "Number",
    "Parameter",
    "Phase",
    "Program",
    "Quantity",
    "Range",
    "Record",
    "Refine",
    "Require",
    "String",
    "Tagged",
    "Tuple",
    "Unary",
    "Use",
    "When",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Node(Structural):
    span: Span = field(compare=False, repr=False)


# --- expressions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Name(_Node):
    """`dp`, `ring`, `switches`."""

    text: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Number(_Node):
    """A bare number. `text` is as written (`0.5`, `1_000`); `value` is exact."""

    value: Fraction
    text: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Quantity(_Node):
    """A number with its unit: `200 Gbps`, `6 %`. Units are looked up later, so an unknown one parses."""

    value: Fraction
    text: str
    unit: str
    unit_span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class String(_Node):
    """`"10.0.0.{20 + rail}"`: literal text and the expressions between braces, in order."""

    parts: tuple["str | Expression", ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Boolean(_Node):
    value: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class List(_Node):
    items: tuple["Expression", ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tuple(_Node):
    """`(i, i + 3)`: at least two items; one in parentheses is only grouping."""

    items: tuple["Expression", ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Range(_Node):
    """`first..last`, both ends included."""

    first: "Expression"
    last: "Expression"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comprehension(_Node):
    """`[element for NAMES in iterable if condition]`; several names unpack tuples.

    `clauses` are the `for`s, outermost first, as (names, iterable, condition or None).
    """

    element: "Expression"
    clauses: tuple[tuple[tuple[Name, ...], "Expression", "Expression | None"], ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unary(_Node):
    operator: str  # "-" | "not"
    operand: "Expression"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Binary(_Node):
    operator: str  # + - * / mod div == != < <= > >= and or in
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class When(_Node):
    """`if condition then yes else no`."""

    condition: "Expression"
    yes: "Expression"
    no: "Expression"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attribute(_Node):
    """`switches.palomar_136`, `pool.node[12].gpu`."""

    value: "Expression"
    name: Name


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Index(_Node):
    """`rails.rail[3]`."""

    value: "Expression"
    index: "Expression"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(_Node):
    """`product(dims)`, `tp.size(4)`: a pure function applied to values."""

    function: "Expression"
    arguments: tuple["Expression", ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tagged(_Node):
    """A word applied to a text or a list without parentheses: `csv "cabling.csv"`, `csv ["a.csv", "b.csv"]`."""

    tag: Name
    argument: "Expression"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Record(_Node):
    """`{ field = value, ... }`."""

    items: tuple["Item", ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Refine(_Node):
    """`base { field = value }`: like `base`, except."""

    base: "Expression"
    changes: Record


Expression: TypeAlias = (
    Name
    | Number
    | Quantity
    | String
    | Boolean
    | List
    | Tuple
    | Range
    | Comprehension
    | Unary
    | Binary
    | When
    | Attribute
    | Index
    | Call
    | Tagged
    | Record
    | Refine
)


# --- what stands in a block ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Field(_Node):
    """`name = value`, with an optional label (`nic storage = ...`) or selection (`rail[0..3] = ...`, `rail 0 = ...`).

    `rail 0 = 1..8` has `selection` set and `bracketed` False; `rail[0..3]` has `bracketed` True.
    """

    name: Name
    value: Expression
    label: Name | None = None
    selection: Expression | None = None
    bracketed: bool = False
    doc: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Phase(_Node):
    """`phase NAME over AXIS * AXIS { ... }`. Axes are dotted names (`dp.shard`) as written."""

    name: Name
    axes: tuple[Name, ...] | None
    body: Record
    doc: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Require(_Node):
    """`require condition else "message"`."""

    condition: Expression
    message: Expression | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Let(_Node):
    """`let name = value` or `let name(a, b) = value`."""

    name: Name
    parameters: tuple[Name, ...] | None
    value: Expression
    doc: str = ""


Item: TypeAlias = Field | Phase | Require | Let


# --- top level -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Use(_Node):
    """`use std.switches`, `use std.switches as sw`, `use "parts/racks.opus" as racks`."""

    module: tuple[Name, ...] | None
    path: String | None
    alias: Name | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Parameter(_Node):
    """`param name: type in domain = default`; every part but the name may be missing."""

    name: Name
    type: Name | None
    domain: Expression | None
    default: Expression | None
    doc: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Declaration(_Node):
    """`kind name { ... }`, `kind name = value`, `topology name(parameter, ...) { ... }`."""

    kind: Name
    name: Name
    parameters: tuple[Name, ...] | None
    value: Expression
    doc: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fault(_Node):
    """`fault KIND SELECTION of PATH`."""

    kind: Name
    selection: Expression
    of: Expression | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comment(_Node):
    """`# text` or `## text`, with its marker, for the formatter."""

    text: str


Entry: TypeAlias = Use | Parameter | Let | Declaration | Fault | Require


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Program(_Node):
    """A whole file. `version` is the number after `opus`, None when the line is missing."""

    source: Source = field(compare=False, repr=False)
    version: Number | None
    entries: tuple[Entry, ...]
    comments: tuple[Comment, ...] = ()
