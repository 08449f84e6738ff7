"""Did you mean: the nearest of the names that would have been right."""

from collections.abc import Iterable

__all__ = ["closest", "distance"]

#: Bounds of the work for one suggestion: longer names have none, and no more candidates are looked at.
LONGEST, MOST = 60, 1000


def distance(a: str, b: str) -> int:
    """Damerau-Levenshtein distance (optimal string alignment): insert, delete, replace, swap neighbours."""
    before: list[int] = []
    last: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, last, row = last, row, [i]
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
    return row[-1]


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate an author most likely meant, or None when none is near.

    Spelling in another case counts as nearest of all; otherwise at most a third of the name (at least one
    letter) may differ. Equal distances go to the candidate that comes first.
    """
    pool = list(dict.fromkeys(candidates))
    for candidate in pool:
        if candidate.casefold() == name.casefold():
            return candidate
    limit = max(len(name) // 3, 1)
    if len(name) > LONGEST:
        return None
    near = [candidate for candidate in pool if abs(len(candidate) - len(name)) <= limit][:MOST]
    scored = [(distance(name, candidate), at) for at, candidate in enumerate(near)]
    best = min(scored, default=(limit + 1, 0))
    return near[best[1]] if best[0] <= limit else None
