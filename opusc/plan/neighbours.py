"""Neighbour functions: which vertex a link goes to from vertex v, in digit coordinates.

A topology among n vertices is a sum of *neighbour functions*, each a partial one-to-one map on 0..n-1 that
changes one digit of the vertex. The expression in `image` makes both the plan's arrays (numpy) and the
proof obligations (Z3 terms): `where` is `numpy.where` for the one and `z3.If` for the other, and only +, -
and comparisons with constants are used. There is no division: a digit and its half are given.
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Advance", "Digit", "Neighbour", "Rotation", "Round", "Table", "targets"]

#: `where(condition, a, b)`: `numpy.where` or `z3.If`.
Term: TypeAlias = Any


class Where(Protocol):
    def __call__(self, condition: Term, yes: Term, no: Term, /) -> Term: ...


@dataclass(frozen=True, slots=True)
class Digit:
    """One digit of a vertex: vertex = high * (stride * size) + digit * stride + low, low < stride."""

    stride: int
    size: int


@dataclass(frozen=True, slots=True)
class Rotation:
    """digit -> digit + by (mod size), for 0 < by < size; defined everywhere."""

    digit: Digit
    by: int

    def image(self, d: Term, odd: Term, where: Where) -> tuple[Term, Term]:
        """(is it defined, the digit it goes to), for a digit `d` with `odd` = d's remainder by 2."""
        to = d + self.by
        return d >= 0, where(to >= self.digit.size, to - self.digit.size, to)


@dataclass(frozen=True, slots=True)
class Advance:
    """digit -> digit + 1, the last one to 0 when `wrap`; `edges` picks which: all, even, odd or the closing one.

    `even` and `odd` look at the digit that the link leaves. With `closing`, only the link from the last
    digit back to 0 is drawn.
    """

    digit: Digit
    wrap: bool
    edges: str = "all"  # all | even | odd | closing

    def image(self, d: Term, odd: Term, where: Where) -> tuple[Term, Term]:
        last = self.digit.size - 1
        to = where(d >= last, d - last, d + 1)
        if self.edges == "closing":
            return d >= last, to
        inner = d < last
        if self.edges == "all":
            return (d >= 0 if self.wrap else inner), to
        wanted = odd >= 1 if self.edges == "odd" else odd < 1
        return _both(wanted, d >= 0 if self.wrap else inner), to


@dataclass(frozen=True, slots=True)
class Round:
    """Round `number` of a round-robin tournament on a digit (circle method), each pair drawn once, from its lower end.

    For an even size m there are m - 1 rounds: the last digit meets the one with 2 * digit = number
    (mod m - 1), the others meet number - digit (mod m - 1). For an odd size there are m rounds and the digit
    with 2 * digit = number (mod m) sits out.
    """

    digit: Digit
    number: int

    @property
    def alone(self) -> Term:
        """Half of `number` modulo the odd number of rounds: the digit that would meet itself."""
        modulus = self.digit.size - 1 + self.digit.size % 2
        return self.number * (modulus + 1) // 2 % modulus

    def image(self, d: Term, odd: Term, where: Where) -> tuple[Term, Term]:
        size = self.digit.size
        modulus = size - 1 + size % 2
        alone = self.alone
        partner = where(self.number - d < 0, self.number - d + modulus, self.number - d)
        if size % 2:
            return partner > d, partner
        last = size - 1
        partner = where(_both(d >= alone, d <= alone), last, partner)
        return _both(d < last, partner > d), partner


@dataclass(frozen=True, slots=True)
class Table:
    """An explicit partial map: vertex v goes to `to[v]`, or nowhere where that is -1."""

    to: tuple[int, ...]

    @property
    def digit(self) -> Digit:
        return Digit(1, len(self.to))

    def image(self, d: Term, odd: Term, where: Where) -> tuple[Term, Term]:
        to: Term = -1
        for vertex, target in enumerate(self.to):
            to = where(_both(d >= vertex, d <= vertex), target, to)
        return to >= 0, to


Neighbour: TypeAlias = Rotation | Advance | Round | Table


def _both(a: Term, b: Term) -> Term:
    """Conjunction that works for numpy arrays and, through `z3.And`, for terms."""
    if isinstance(a, np.ndarray):
        return a & b
    import z3

    return z3.And(a, b)


def targets(neighbour: Neighbour, n: int) -> NDArray[np.int32]:
    """Where links from each of n vertices go: shape (n,), -1 where none is drawn."""
    if isinstance(neighbour, Table):
        return np.array(neighbour.to, dtype=np.int32)
    vertex = np.arange(n, dtype=np.int64)
    digit = neighbour.digit
    d = vertex // digit.stride % digit.size
    defined, to = neighbour.image(d, d % 2, np.where)
    return np.where(defined, vertex + (to - d) * digit.stride, -1).astype(np.int32)
