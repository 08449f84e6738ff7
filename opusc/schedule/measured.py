"""A result that a requirement compares with its limit."""

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Measured"]


@dataclass(frozen=True, slots=True)
class Measured:
    """A result in base units of the language, in words, and what contributed most to it, largest first."""

    value: Fraction
    words: str
    most: tuple[str, ...] = ()
