"""The results of a sweep as a table: CSV, and Parquet where pyarrow is installed."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO, StringIO

from opusc.sweep.measure import COLUMNS, Cell, Record
from opusc.sweep.points import Axis, Point, key

__all__ = ["columns", "csv_text", "parquet", "records"]

_WHOLE = re.compile(r"-?\d{1,18}")


def columns(axes: Sequence[Axis]) -> dict[str, type]:
    """Every column with its type: a parameter is whole numbers where all its values are, else text."""
    own = {axis.name: int if all(map(_WHOLE.fullmatch, axis.values)) else str for axis in axes}
    return own | {name: type_ for name, type_, _ in COLUMNS}


def records(points: Iterable[Point], done: Mapping[str, Sequence[Record]]) -> list[Record]:
    """The records of all points that are done, in the order of the grid."""
    return [{**point, **row} for point in points for row in done.get(key(point), ())]


def csv_text(axes: Sequence[Axis], found: Sequence[Record]) -> str:
    """RFC 4180 with line feeds; an empty cell is a missing value."""
    out = StringIO()
    names = list(columns(axes))
    writer = csv.DictWriter(out, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in row.items()} for row in found)
    return out.getvalue()


def parquet(axes: Sequence[Axis], found: Sequence[Record]) -> bytes:
    """The same columns, whole numbers as int64, the others as text. Raises ImportError without pyarrow."""
    import pyarrow
    from pyarrow import parquet as writer

    types = columns(axes)
    fields = [pyarrow.field(n, pyarrow.int64() if t is int else pyarrow.string()) for n, t in types.items()]
    made = [{name: _typed(row.get(name), type_) for name, type_ in types.items()} for row in found]
    out = BytesIO()
    writer.write_table(pyarrow.Table.from_pylist(made, pyarrow.schema(fields)), out)
    return out.getvalue()


def _typed(value: Cell, type_: type) -> Cell:
    return None if value is None else type_(value)
