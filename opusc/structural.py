"""Equality, hash and text of immutable values, written once.

`@dataclass` writes and compiles these anew for each class; for the hundred classes of the tree and the model that takes
a tenth of what checking a small program takes. They say `eq=False, repr=False` and inherit from here instead.
"""

from dataclasses import fields
from functools import cache
from typing import Any

__all__ = ["Structural"]


class Structural:
    """Base of frozen dataclasses: equal when class and compared fields are. Fields say `compare=False` and `repr=False`
    as with any dataclass."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _names(self, "compare"))

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in _names(self, "compare")))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _names(self, "repr"))
        return f"{type(self).__qualname__}({shown})"


def _names(value: Any, used_in: str) -> tuple[str, ...]:
    """The names of the fields of a value that `used_in`, "compare" or "repr", says yes to."""
    cls: Any = type(value)
    return _names_of(cls, used_in)


@cache
def _names_of(cls: Any, used_in: str) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls) if getattr(field, used_in))
