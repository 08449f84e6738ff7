"""Columns of integers as decimal text and back, many at a time."""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["column_text", "parse_column"]

_CHUNK = 1 << 17
_COLUMN = re.compile(rb"-?\d+(?:,-?\d+)*")


def column_text(values: NDArray[np.integer]) -> Iterator[bytes]:
    """`1,2,-3` in chunks, without brackets."""
    flat = values.ravel()
    for start in range(0, len(flat), _CHUNK):
        piece = flat[start : start + _CHUNK]
        text = _few(piece) if len(piece) < 200 else _many(piece)
        yield text if start + _CHUNK >= len(flat) else text + b","


def _few(values: NDArray[np.integer]) -> bytes:
    return ",".join(map(str, values.tolist())).encode()


def _many(values: NDArray[np.integer]) -> bytes:
    """All digits of all numbers as one table of characters, from which the leading zeros are left out."""
    negative = values < 0
    rest = np.abs(values.astype(np.int64)).astype(np.uint64)
    highest = int(rest.max())
    if highest < 1 << 32:
        rest = rest.astype(np.uint32)
    width = len(str(highest))
    table = np.empty((len(values), width + 2), dtype=np.uint8)
    kept = np.ones(table.shape, dtype=np.bool_)
    table[:, 0] = ord("-")
    kept[:, 0] = negative
    table[:, -1] = ord(",")
    for place in range(width):
        column = width - place
        if place:
            kept[:, column] = rest > 0
        table[:, column] = rest % 10 + ord("0")
        rest = rest // 10
    kept[-1, -1] = False
    return table[kept].tobytes()


def parse_column(text: bytes) -> NDArray[np.int64]:
    """The numbers of `1,2,-3`. Raises ValueError when it is anything else."""
    if not text:
        return np.zeros(0, np.int64)
    if _COLUMN.fullmatch(text) is None:
        raise ValueError("not a list of integers")
    return np.fromstring(text, dtype=np.int64, sep=",")
