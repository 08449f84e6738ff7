"""`opusc plot`: the results of a sweep as lines."""

import argparse
import csv
import re
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from opusc.cli import terminal
from opusc.cli.tables import labelled
from opusc.cli.terminal import UsageError
from opusc.diagnostics.suggest import closest

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]

DESCRIPTION = """\
Draw two columns of a sweep's results against each other, a line for each value
of a third. Times are drawn in ms, ratios in %, power in kW, prices in kUSD.
Needs matplotlib: pip install 'opusc[plots]'."""

EPILOG = """\
examples:
  opusc plot sweep/results.csv dp iteration_ps
  opusc plot sweep/results.csv delay overhead_ppb --by policy -o overhead.png
"""

#: Endings of column names, with the unit that people read and how many of the column's are in it.
_SHOWN = {"_ps": ("ms", 10**9), "_ppb": ("%", 10**7), "_mw": ("kW", 10**6), "_cents": ("kUSD", 10**5)}

Rows = Sequence[Mapping[str, str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="RESULTS.csv", help="what `opusc sweep` wrote")
    parser.add_argument("x", metavar="X", help="column along the horizontal axis")
    parser.add_argument("y", metavar="Y", help="column along the vertical axis")
    parser.add_argument("--by", metavar="NAME", help="a line for each value of this column")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="picture: .png, .svg or .pdf (default: RESULTS-X-Y.svg)"
    )


def run(options: argparse.Namespace) -> int:
    rows = _rows(Path(options.file), [name for name in (options.x, options.y, options.by) if name])
    lines = _lines(rows, options.x, options.y, options.by)
    source = Path(options.file)
    target = Path(options.output or source.with_name(f"{source.stem}-{options.x}-{options.y}.svg"))
    if target.suffix not in (".png", ".svg", ".pdf"):
        raise UsageError(f"`{target}` should end in .png, .svg or .pdf")
    _draw(lines, options, target)
    sys.stdout.write(labelled("wrote", str(target), terminal.width()))
    return 0


def _rows(path: Path, wanted: Sequence[str]) -> Rows:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            rows = list(reader)
    except OSError as error:
        raise UsageError(f"cannot read `{path}`: {error.strerror or error}") from error
    except (ValueError, csv.Error) as error:
        raise UsageError(f"`{path}` is no CSV: {error}") from error
    columns = list(reader.fieldnames or ())
    for name in wanted:
        if name not in columns:
            meant = closest(name, columns)
            hint = f"did you mean `{meant}`?" if meant else f"it has {', '.join(columns)}"
            raise UsageError(f"`{path}` has no column `{name}`; {hint}")
    return rows


def _lines(rows: Rows, x: str, y: str, by: str | None) -> dict[str, list[tuple[Fraction, Fraction]]]:
    """Points of each line, sorted. Rows with an empty cell are points that were refused."""
    found: dict[str, list[tuple[Fraction, Fraction]]] = {}
    for row in rows:
        if row[x] and row[y]:
            found.setdefault(row[by] if by else "", []).append((_number(x, row[x]), _number(y, row[y])))
    if not found:
        raise UsageError(f"no row has both `{x}` and `{y}`")
    return {name: sorted(points) for name, points in found.items()}


def _number(column: str, text: str) -> Fraction:
    """A whole number, or a quantity of the language in its base unit."""
    from opusc.model.units import UNITS

    match = re.fullmatch(r"(-?[0-9_]+(?:\.[0-9]+)?) ?([A-Za-z%/]*)", text.strip())
    if match is None or (match[2] and match[2] not in UNITS):
        raise UsageError(f"`{text}` in column `{column}` is no number; draw by it with `--by {column}`")
    value = Fraction(match[1].replace("_", ""))
    return value * UNITS[match[2]].factor / _scale(match[2]) if match[2] else value


def _scale(unit: str) -> Fraction:
    """Quantities are drawn in the unit in which people read them: times in ms, the others in base units."""
    from opusc.model.units import UNITS

    ms = UNITS["ms"]
    return Fraction(ms.factor) if UNITS[unit].dimension == ms.dimension else Fraction(1)


def _axis(name: str, texts: Sequence[str]) -> tuple[str, int]:
    """The label of an axis, and what its numbers are divided by."""
    for ending, (unit, many) in _SHOWN.items():
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')}, {unit}", many
    return name.replace("_", " "), 1


def _draw(lines: Mapping[str, Sequence[tuple[Fraction, Fraction]]], options: argparse.Namespace, target: Path) -> None:
    try:
        import matplotlib
    except ImportError as error:
        raise UsageError("drawing needs matplotlib: pip install 'opusc[plots]'") from error
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "opusc"  # same input, same bytes
    from matplotlib import pyplot

    (x_label, x_many), (y_label, y_many) = _axis(options.x, ()), _axis(options.y, ())
    figure, axes = pyplot.subplots(figsize=(7.6, 4.4), layout="constrained")
    for name, points in lines.items():
        xs, ys = ([float(point[at] / many) for point in points] for at, many in ((0, x_many), (1, y_many)))
        axes.plot(xs, ys, marker="o", label=name or None)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(visible=True, alpha=0.3)
    if options.by:
        axes.legend(title=options.by)
    metadata = {"Date": None} if target.suffix == ".svg" else {"CreationDate": None} if target.suffix == ".pdf" else {}
    try:
        figure.savefig(target, metadata=metadata)
    except OSError as error:
        raise UsageError(f"cannot write `{target}`: {error.strerror or error}") from error
    finally:
        pyplot.close(figure)
