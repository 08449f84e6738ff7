"""The points of a sweep: every combination of the values of some parameters."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

__all__ = ["Axis", "Point", "key", "points"]

#: Names of parameters and their values, as texts of the language.
Point = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Axis:
    """A parameter and its values, as texts of the language."""

    name: str
    values: tuple[str, ...]


def points(axes: Sequence[Axis]) -> list[Point]:
    """Every combination, the last axis fastest."""
    names = [axis.name for axis in axes]
    return [dict(zip(names, values, strict=True)) for values in product(*(axis.values for axis in axes))]


def key(point: Point) -> str:
    """A text that is the same for the same point."""
    return json.dumps(dict(sorted(point.items())), ensure_ascii=False)
