"""What expressions evaluate to.

Numbers are exact: `int`, or `Fraction` where a division does not come out even. Blocks keep their fields as
written, with the scope they were written in, and evaluate each one when it is read, because the field that
reads it knows which words and units it may hold.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from opusc.model.units import Quantity
from opusc.source import Span
from opusc.structural import Structural
from opusc.syntax import tree

__all__ = [
    "Applied",
    "Block",
    "Bound",
    "Builtin",
    "Entry",
    "Function",
    "Interval",
    "Missing",
    "Module",
    "Scope",
    "Thunk",
    "Value",
    "kind_of",
    "size_of",
]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Interval(Structural):
    """`first..last`, both ends included; empty when last < first. Never expanded before it must be."""

    first: int
    last: int

    @property
    def size(self) -> int:
        """How many numbers; no `len`, which stops at 2^63."""
        return max(self.last - self.first + 1, 0)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1))

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bound(Structural):
    """An expression and the scope it stands in; `base` is what a refinement changes."""

    expression: tree.Expression
    scope: "Scope"
    base: "Bound | None" = None

    @property
    def span(self) -> Span:
        return self.expression.span


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Entry(Structural):
    """One field of a block, with its label (`nic storage`) or selection (`rail[0..3]`)."""

    name: str
    value: Bound
    span: Span  # of the name
    label: str = ""
    selection: Bound | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.name, self.label, self.selection.span.text if self.selection else ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Block(Structural):
    """Fields between braces. `kind` is empty until a declaration or a field says what the block is."""

    span: Span
    entries: tuple[Entry, ...] = ()
    phases: tuple[tuple[tree.Phase, "Scope"], ...] = ()
    requires: tuple[tuple[tree.Require, "Scope"], ...] = ()
    kind: str = ""
    name: str = ""
    parameters: tuple[str, ...] | None = None  # of a topology
    lets: "tuple[tree.Let, ...]" = ()  # a topology evaluates them anew for each size and set of parameters

    def get(self, name: str) -> Entry | None:
        """The entry of a plain field."""
        return next((e for e in self.entries if e.name == name and not e.label and e.selection is None), None)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Applied(Structural):
    """An enumeration word, found by the type of its field, with what was put to it.

    `ring`, `flattened_butterfly { dims = [2, 4] }`, `csv "cabling.csv"`.
    """

    word: str
    span: Span
    argument: Bound | None = None
    block: Block | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Function(Structural):
    """A function of the author's: `let f(a, b) = ...`."""

    name: str
    parameters: tuple[str, ...]
    body: tree.Expression
    scope: "Scope"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Module(Structural):
    """A used file: the name that it has here, its top-level names, and the name that it has by itself."""

    name: str
    scope: "Scope"
    home: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Missing(Structural):
    """What a name stands for after its declaration went wrong: using it is no further mistake."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Builtin(Structural):
    """A function of the language, by name."""

    name: str


#: Elements of a list are values again; the type system is told less, so that the alias is no string.
Value: TypeAlias = (
    bool
    | int
    | Fraction
    | str
    | Quantity
    | Interval
    | tuple[Any, ...]
    | Block
    | Applied
    | Function
    | Module
    | Builtin
    | Missing
)


@dataclass(slots=True)
class Thunk:
    """A named expression that is evaluated once, on first use."""

    bound: Bound
    what: str  # "let", "param", or the kind of a declaration
    span: Span  # of the name
    value: "Value | None" = None
    busy: bool = False
    # How a parameter comes by its value; other names evaluate their expression.
    make: "Callable[[], Value] | None" = None


@dataclass(slots=True)
class Scope:
    """Names in force, innermost first."""

    parent: "Scope | None" = None
    names: "dict[str, Thunk | Value]" = field(default_factory=dict)
    # Whether the names are a comprehension's variables, which messages name with their values.
    loop: bool = False

    def find(self, name: str) -> "Thunk | Value | None":
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def visible(self) -> Iterator[str]:
        scope: Scope | None = self
        while scope is not None:
            yield from scope.names
            scope = scope.parent

    def iterations(self) -> Iterator["dict[str, Thunk | Value]"]:
        """The variables of the loops that this scope is inside of, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            if scope.loop:
                yield scope.names
            scope = scope.parent


def size_of(items: "tuple[Any, ...] | Interval") -> int:
    """The number of elements of a list or range."""
    return items.size if isinstance(items, Interval) else len(items)


def kind_of(value: "Value") -> str:
    """What a value is, in words."""
    from opusc.model.units import describe

    match value:
        case bool():
            return "a truth value"
        case int():
            return "a number"
        case Fraction():
            return "a fraction"
        case str():
            return "a text"
        case Quantity():
            known = describe(value.dimension)
            return "a quantity of another dimension" if known == "another dimension" else f"a {known}"
        case Interval():
            return "a range"
        case tuple():
            return "a list"
        case Applied():
            return f"the word `{value.word}`"
        case Module():
            return f"the module `{value.name}`"
        case Block():
            return f"a {value.kind}" if value.kind else "a record"
    return "a function"
