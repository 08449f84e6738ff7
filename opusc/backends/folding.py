"""Folding: long rows of alike things keep their first and last members, the rest becomes one with a count."""

from collections.abc import Sequence

__all__ = ["Fold", "fold", "runs"]

#: What one place in a drawing stands for: the members, as indices.
Fold = range


def fold(count: int, limit: int, first: int, last: int = 1) -> list[Fold]:
    """0 .. count - 1 one by one, or, beyond `limit`, the first few, a range, and the last few."""
    if count <= limit:
        return [range(i, i + 1) for i in range(count)]
    ends = [range(i, i + 1) for i in range(count)]
    return [*ends[:first], range(first, count - last), *ends[count - last :]]


def runs(values: Sequence[int]) -> str:
    """`3`, `3..14`, `0, 2..4`."""
    found: list[list[int]] = []
    for value in values:
        if found and value == found[-1][1] + 1:
            found[-1][1] = value
        else:
            found.append([value, value])
    return ", ".join(str(a) if a == b else f"{a}..{b}" for a, b in found)
