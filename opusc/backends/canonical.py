"""Canonical JSON, streamed: sorted keys, two spaces, a list of plain values on one line, a line end at the end.

`load` reads what `dump` wrote without ever making a Python object of a number in a column: such lines are set
aside as arrays, and only the skeleton goes through the `json` module.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from opusc.backends.columns import column_text, parse_column

__all__ = ["Value", "dump", "load"]

#: None, bool, int, str, numpy array of integers (one dimension), list or mapping of these. No floats.
Value: TypeAlias = Any

_COLUMN = re.compile(rb'^ *(?:"(?:[^"\\]|\\.)*": )?\[([-\d,]*)\],?$')


def dump(value: Value) -> Iterator[bytes]:
    """The text of a value, in chunks. Raises TypeError for a float: quantities are integers."""
    yield from _dump(value, "\n")
    yield b"\n"


def _dump(value: Value, line: str) -> Iterator[bytes]:
    if isinstance(value, np.ndarray):
        yield b"["
        yield from column_text(value)
        yield b"]"
    elif isinstance(value, Mapping):
        yield from _dump_items([(_text(key) + ": ", value[key]) for key in sorted(value)], "{}", line)
    elif isinstance(value, list | tuple):
        if all(item is None or isinstance(item, bool | int | str) for item in value):
            words = any(isinstance(item, str) for item in value)
            yield ("[" + (", " if words else ",").join(map(_text, value)) + "]").encode()
        else:
            yield from _dump_items([("", item) for item in value], "[]", line)
    else:
        yield _text(value).encode()


def _dump_items(items: list[tuple[str, Value]], brackets: str, line: str) -> Iterator[bytes]:
    if not items:
        yield brackets.encode()
        return
    inner = line + "  "
    for index, (key, item) in enumerate(items):
        yield ((brackets[0] if index == 0 else ",") + inner + key).encode()
        yield from _dump(item, inner)
    yield (line + brackets[1]).encode()


def _text(value: Value) -> str:
    if value is not None and not isinstance(value, bool | int | str):
        raise TypeError(f"{type(value).__name__} has no place in canonical JSON")
    return json.dumps(value, ensure_ascii=False)


def load(path: Path) -> Value:
    """The value in a file that `dump` wrote. Lists of integers, empty ones too, come back as arrays of int64.

    Raises ValueError.
    """
    columns: list[NDArray[np.int64]] = []
    skeleton: list[bytes] = []
    with path.open("rb") as file:
        for text in file:
            match = _COLUMN.match(text.rstrip(b"\n"))
            if match is None:
                skeleton.append(text)
                continue
            columns.append(parse_column(match[1]))
            begin, end = match.span(1)
            skeleton.append(text[: begin - 1] + b'{"":%d}' % (len(columns) - 1) + text[end + 1 :])

    def restore(found: dict[str, Value]) -> Value:
        return columns[found[""]] if len(found) == 1 and "" in found else found

    return json.loads(b"".join(skeleton), object_hook=restore)
