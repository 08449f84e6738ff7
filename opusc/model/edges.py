"""Edges of a topology as the program states them."""

from collections.abc import Callable
from typing import NamedTuple

from opusc.source import Span

__all__ = ["Edge", "EdgeRule"]


class Edge(NamedTuple):
    """An edge from vertex to vertex, the place that states it and, when a loop made it, the values of the loop's
    variables: `v = 3, d = 0`."""

    tail: int
    head: int
    span: Span
    turn: str = ""


#: The edges among n vertices, for n >= 1.
EdgeRule = Callable[[int], tuple[Edge, ...]]
