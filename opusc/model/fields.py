"""What a field of a block may hold, and what a kind of block consists of."""

from dataclasses import dataclass
from typing import TypeAlias

from opusc.structural import Structural

__all__ = ["Choice", "Count", "FieldSpec", "FieldType", "Kind", "Measure", "Other", "Record"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Count(Structural):
    """A whole number."""

    least: int = 1
    most: int = 2**31 - 1

    def __str__(self) -> str:
        return "count" if self.least == 1 else f"whole number from {self.least}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Measure(Structural):
    """A quantity; `example` is a bare number's most likely meaning, for the fix."""

    dimension: str
    unit: str
    per: int = 1  # the model counts this many base units as one (8 for bytes)
    signed: bool = False

    def __str__(self) -> str:
        return f"{self.dimension} ({self.unit})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Choice(Structural):
    """One of a few words."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return " | ".join(self.words)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Record(Structural):
    """A block of a kind."""

    kind: str

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Other(Structural):
    """Read by the code of its kind: `text`, `truth`, `list of ...`, `topology`, ..."""

    text: str

    def __str__(self) -> str:
        return self.text


FieldType: TypeAlias = Count | Measure | Choice | Record | Other


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FieldSpec(Structural):
    name: str
    type: FieldType
    doc: str
    required: bool = False
    default: str = ""
    labelled: bool = False  # may stand several times, with a label
    selected: bool = False  # stands with a selection of indices


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Kind(Structural):
    name: str
    doc: str
    fields: tuple[FieldSpec, ...]
    declared: bool = True  # may stand at top level
    later: str = ""  # why this version does not take it
    nested: tuple[tuple[str, str], ...] = ()  # (name, field): names often written beside a field that are part of it

    def field(self, name: str) -> FieldSpec | None:
        return next((f for f in self.fields if f.name == name), None)
