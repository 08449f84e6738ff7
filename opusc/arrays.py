"""Different values and rows of integer arrays, by sorting.

`numpy.unique` does the same, but loads `numpy.ma` on its first call, which costs a small compile a twentieth of its
time, and hashes values and compares whole rows as bytes, which at a million rows takes longer than the rest of a plan.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["counted", "distinct", "distinct_rows"]

Integers = NDArray[np.integer]
Int64 = NDArray[np.int64]


def distinct(values: Integers) -> tuple[Int64, Int64]:
    """(the different values, ascending; which of them each value is)."""
    flat = values.ravel().astype(np.int64)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    new = _new(ordered)
    which = np.empty(len(flat), dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    return ordered[new], which


def counted(values: Integers) -> tuple[Int64, Int64, Int64]:
    """(the different values, ascending; where each stands first; how often it stands)."""
    flat = values.ravel().astype(np.int64)
    order = np.argsort(flat, kind="stable")
    start = np.flatnonzero(_new(flat[order]))
    return flat[order][start], order[start], np.diff(start, append=len(flat))


def distinct_rows(rows: Integers) -> tuple[Int64, Int64]:
    """(the different rows of a table of numbers from 0, ascending; which of them each row is)."""
    which = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        # Each row's columns so far as one number; there are at most as many as rows, so nothing overflows.
        bound = int(column.max(initial=0)) + 1
        _, which = distinct(which * bound + column)
    first = np.full(int(which.max(initial=-1)) + 1, len(rows), dtype=np.int64)
    np.minimum.at(first, which, np.arange(len(rows)))
    return rows[first].astype(np.int64), which


def _new(ordered: Int64) -> NDArray[np.bool_]:
    """Whether each of sorted values differs from the one before."""
    new = np.ones(len(ordered), dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return new
