"""`opusc sweep`: one program at many values of its parameters, in parallel."""

import argparse
import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opusc.cli import terminal
from opusc.cli.compiling import Messages, reported
from opusc.cli.options import delays, policies, program_options
from opusc.cli.tables import labelled, plural
from opusc.cli.terminal import UsageError
from opusc.diagnostics import CompileError

if TYPE_CHECKING:
    from opusc.sweep.journal import Journal
    from opusc.sweep.measure import Record
    from opusc.sweep.points import Axis, Point

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]

DESCRIPTION = """\
Compile a program at every combination of the values of some parameters, each
point in a process of its own, and write what each comes to: size, iteration
time and overhead, power and price. A sweep that was stopped goes on where it
was; a point that is refused is a line that says why."""

EPILOG = """\
examples:
  opusc sweep cluster.opus --vary dp=2,4,8 --vary 'delay=1 ms, 10 ms' -o sweep
  opusc sweep cluster.opus --vary dp=2,4,8 --policy provisioned,auto
  opusc sweep cluster.opus --vary dp=2,4 --engine dask --address tcp://head:8786
  opusc plot sweep/results.csv dp overhead_ppb --by policy

In the directory of -o: results.csv (times in ps, ratios in parts per billion,
power in mW, prices in cents), results.parquet where pyarrow is installed, and
points.jsonl, from which the next run goes on.
"""

_MOST = 100_000  # points


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a program")
    parser.add_argument(
        "--vary",
        dest="axes",
        metavar="NAME=VALUE,...",
        type=_axis,
        action="append",
        required=True,
        help="a param and its values, for example dp=2,4,8; with several --vary, every combination",
    )
    parser.add_argument(
        "--policy", dest="policies", metavar="POLICY[,...]", type=policies, help="as in `opusc simulate`"
    )
    parser.add_argument(
        "--reconfigure", dest="delays", metavar="DELAY[,...]", type=delays, help="as in `opusc simulate`"
    )
    parser.add_argument("-o", "--output", metavar="DIR", default="sweep", help="where results go (default: sweep)")
    parser.add_argument("-j", "--jobs", metavar="N", type=_workers, help="processes (default: one for each CPU)")
    parser.add_argument(
        "--engine",
        choices=("processes", "dask", "ray"),
        default="processes",
        help="who measures the points; dask and ray are extras of the package (default: processes)",
    )
    parser.add_argument("--address", metavar="ADDRESS", default="", help="of a Dask scheduler or Ray cluster")
    parser.add_argument("--fresh", action="store_true", help="forget what an earlier run measured")
    program_options(parser)


def run(options: argparse.Namespace) -> int:
    return reported(options, _run)


def _run(options: argparse.Namespace, messages: Messages) -> int:
    from opusc.sweep.journal import Journal, OtherSweepError
    from opusc.sweep.points import key, points

    axes: list[Axis] = options.axes
    _check(options, axes)
    grid = points(axes)
    if len(grid) > _MOST:
        raise UsageError(f"these are {len(grid):,} points; a sweep has at most {_MOST:,}")
    folder = Path(options.output)
    journal = Journal(folder / "points.jsonl", _identity(options, axes, _sources(options, grid[0])))
    if not options.fresh:
        try:
            journal.read()
        except OtherSweepError as error:
            raise UsageError(f"{error}; give another directory with -o, or --fresh to start anew") from error
    left = [point for point in grid if key(point) not in journal.done]
    known = len(grid) - len(left)
    if options.format == "text":
        text = f"{plural(len(grid), 'point')}" + (f", {known:,} measured before" if known else "")
        sys.stdout.write(labelled("sweep", text, terminal.width()))
    interrupted = _measure(options, journal, left, len(grid))
    files = _write(folder, axes, grid, journal)
    done = [rows for point in grid if (rows := journal.done.get(key(point)))]
    refused = sum(rows[0].get("status") == "refused" for rows in done)
    if options.format == "text":
        said = f"{len(done):,} of {plural(len(grid), 'point')}" + (f", {refused:,} refused" if refused else "")
        sys.stdout.write(labelled("measured", said, terminal.width()))
        sys.stdout.write(labelled("wrote", f"{folder}/ {', '.join(files)}", terminal.width()))
    if interrupted:
        raise UsageError(f"{interrupted}; the same command goes on with the {len(grid) - len(done):,} points left")
    return 1 if refused == len(grid) else 0


def _check(options: argparse.Namespace, axes: Sequence["Axis"]) -> None:
    if options.file == "-":
        raise UsageError("a sweep reads its program many times: give a file, not `-`")
    if not Path(options.file).is_file():
        raise UsageError(f"cannot read `{options.file}`: no such file")
    names = [axis.name for axis in axes]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise UsageError(f"`--vary {twice}` is given twice; state all its values at once")
    both = next((name for name, _ in options.params if name in names), None)
    if both is not None:
        raise UsageError(f"`{both}` has a value with -D and several with --vary")


def _sources(options: argparse.Namespace, point: "Point") -> dict[str, str]:
    """The program and all that it uses, by hash, from compiling one point. Raises CompileError where the program has
    no meaning at all, which every point would say again."""
    from opusc.driver import compile_source, read
    from opusc.source import Source

    source = read(Path(options.file))
    root = Path(options.root) if options.root else Path(options.file).parent
    found: Sequence[Source] = (source,)
    try:
        settings = {**dict(options.params), **point}
        found = compile_source(source, root, settings, choosing=False, deciding=False).plan.model.sources
    except CompileError as error:
        if any(diagnostic.code.startswith(("OPUS0", "OPUS1")) for diagnostic in error.diagnostics.errors):
            raise
    names = {source.name: "program"}  # wherever it lies
    return {names.get(used.name, used.name): hashlib.sha256(used.text.encode()).hexdigest() for used in found}


def _identity(options: argparse.Namespace, axes: Sequence["Axis"], sources: dict[str, str]) -> dict[str, object]:
    """What makes two sweeps the same. Values of the axes may be added: points that are there stay right."""
    from opusc.version import __version__

    return {
        "opusc": __version__,
        "sources": sources,
        "parameters": [axis.name for axis in axes],
        "settings": dict(options.params),
        "policies": options.policies or [],
        "delays": options.delays or [],
    }


def _measure(options: argparse.Namespace, journal: "Journal", left: Sequence["Point"], count: int) -> str:
    """Measure the points that are left; why it stopped early, or nothing."""
    from opusc.sweep.engines import ENGINES, EngineError
    from opusc.sweep.measure import Task
    from opusc.sweep.points import key

    path = Path(options.file).resolve()
    root = Path(options.root).resolve() if options.root else path.parent
    settings, delay = dict(options.params), tuple(options.delays or ())
    tasks = [Task(str(path), str(root), settings, point, tuple(options.policies or ()), delay) for point in left]
    if not tasks:
        with journal.appending():
            return ""
    line = _Line(count, count - len(left))
    try:
        with journal.appending():
            for number, rows in ENGINES[options.engine](tasks, options.jobs or _cpus(), options.address):
                journal.add(key(left[number]), rows)
                line.step(rows)
    except KeyboardInterrupt:
        return "interrupted"
    except EngineError as error:
        return str(error)
    finally:
        line.clear()
    return ""


def _write(folder: Path, axes: Sequence["Axis"], grid: Sequence["Point"], journal: "Journal") -> list[str]:
    from opusc.sweep.tables import csv_text, parquet, records

    found = records(grid, journal.done)
    files = {"results.csv": csv_text(axes, found).encode()}
    try:
        files["results.parquet"] = parquet(axes, found)
    except ImportError:
        (folder / "results.parquet").unlink(missing_ok=True)  # it would be that of an earlier run
    for name, content in files.items():
        fresh = folder / f".{name}.new"
        fresh.write_bytes(content)
        fresh.replace(folder / name)
    return [*files, "points.jsonl"]


class _Line:
    """`[#####.....] 12 of 60, 3 refused, 40 s left` on a terminal."""

    _WIDTH = 20

    def __init__(self, count: int, done: int) -> None:
        self.count, self.before, self.done, self.refused = count, done, done, 0
        self.begin = time.monotonic()
        self.shown = sys.stderr.isatty()

    def step(self, rows: Sequence["Record"]) -> None:
        self.done += 1
        self.refused += rows[0].get("status") == "refused"
        if self.shown:
            filled = self._WIDTH * self.done // self.count
            spent = time.monotonic() - self.begin
            left = spent / (self.done - self.before) * (self.count - self.done)
            refused = f", {self.refused:,} refused" if self.refused else ""
            text = f"{self.done:,} of {self.count:,}{refused}, {left:.0f} s left"
            sys.stderr.write(f"\r[{'#' * filled}{'.' * (self._WIDTH - filled)}] {text}\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _axis(text: str) -> "Axis":
    from opusc.sweep.points import Axis

    name, equals, values = text.partition("=")
    found = tuple(value.strip() for value in _split(values))
    if not equals or not name.strip().isidentifier() or not all(found):
        raise argparse.ArgumentTypeError(f"`{text}` should be NAME=VALUE,..., for example dp=2,4,8")
    twice = next((value for at, value in enumerate(found) if value in found[:at]), None)
    if twice is not None:
        raise argparse.ArgumentTypeError(f"`{text}` names {twice} twice")
    return Axis(name.strip(), found)


def _split(text: str) -> Iterator[str]:
    """The parts between commas that stand in no bracket."""
    depth = start = 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _workers(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"`{text}` should be a number of processes, 1 to 1024")
    return int(text)


def _cpus() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
