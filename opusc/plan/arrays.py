"""Different values and rows of integer arrays, by sorting.

`numpy.unique` hashes values and compares whole rows as bytes, which at a million rows takes longer than all the rest
of a plan.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["distinct", "distinct_rows"]

Integers = NDArray[np.integer]


def distinct(values: Integers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(the different values, ascending; which of them each value is)."""
    flat = values.ravel().astype(np.int64)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    new = np.ones(len(flat), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    which = np.empty(len(flat), dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    return ordered[new], which


def distinct_rows(rows: Integers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(the different rows of a table of numbers from 0, ascending; which of them each row is)."""
    which = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        # Each row's columns so far as one number; there are at most as many as rows, so nothing overflows.
        bound = int(column.max(initial=0)) + 1
        _, which = distinct(which * bound + column)
    first = np.full(int(which.max(initial=-1)) + 1, len(rows), dtype=np.int64)
    np.minimum.at(first, which, np.arange(len(rows)))
    return rows[first].astype(np.int64), which
