"""`opusc compile`: prove programs and write the files of the targets."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from opusc import output
from opusc.backends.base import Options
from opusc.backends.emit import Written, emit
from opusc.backends.registry import DEFAULT_TARGETS, GROUPS, names
from opusc.cli import terminal
from opusc.cli.choosing import outline
from opusc.cli.compiling import Messages, compile_one, exit_code
from opusc.cli.options import program_options, size_in_bytes
from opusc.cli.requiring import held
from opusc.cli.summary import describe, notes
from opusc.cli.tables import labelled, plural, size
from opusc.cli.terminal import UsageError
from opusc.diagnostics import CompileError, Diagnostics
from opusc.diagnostics.suggest import closest
from opusc.driver import Compilation, guarded
from opusc.progress import Progress

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "report", "run"]


DESCRIPTION = """\
Compile programs to proved plans and write the files of the targets.

The output directory is replaced in one step, and only when everything went
well; it holds a manifest.json with parameters and hashes. Several programs
get a directory each, named after the file, inside the output directory."""

EPILOG = """\
examples:
  opusc compile cluster.opus
  opusc compile cluster.opus -o out -t plan,opus-controller
  opusc compile cluster.opus -D dp=8 -D 'delay=25 ms'
  opusc compile - < cluster.opus          a program from standard input

`opusc show targets` lists the targets.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="a program; - for standard input")
    parser.add_argument("-o", "--output", metavar="DIR", default="build", help="output directory (default: build)")
    parser.add_argument(
        "-t",
        "--target",
        dest="targets",
        metavar="TARGET[,...]",
        action="append",
        help="what to write (default: plan,graphviz; with policy = auto also schedule)",
    )
    parser.add_argument(
        "--max-output",
        metavar="SIZE",
        type=size_in_bytes,
        default=2 << 30,
        help="refuse to write more than this for one target (default: 2 GiB)",
    )
    program_options(parser)


def run(options: argparse.Namespace) -> int:
    targets = _targets(options.targets)
    places = _places(options.files, Path(options.output))
    messages = Messages(options.format)
    code = 0
    for name, place in places.items():
        outcome = compile_one(name, options, messages)
        code = max(code, outcome.code)
        if outcome.compilation is None:
            continue
        sink = Diagnostics()
        try:
            chosen = (*targets, "schedule") if outcome.compilation.choice and not options.targets else targets
            written = _write(outcome.compilation, place, chosen, Options(max_output=options.max_output), sink)
        except output.OutputError as error:
            terminal.complain(str(error))
            code = 2
            continue
        except CompileError as error:
            messages.add(list(error.diagnostics), cut=error.diagnostics.cut)
            code = max(code, exit_code(error))
            continue
        messages.add(list(sink))
        if options.format == "text":
            heading = f"{name}\n\n" if len(places) > 1 else ""
            sys.stdout.write(heading + report(outcome.compilation, place, written, terminal.width()))
    messages.close()
    return code


def report(compilation: Compilation, place: Path, written: Sequence[Written], width: int) -> str:
    """The summary after a compile: what there is, what was proved, what was written."""
    out = describe(compilation.plan, width) + "\n" + notes(compilation.plan, width)
    if compilation.choice is not None:
        out += outline(compilation.choice, width)
    out += held(compilation.held, width)
    for at, line in enumerate(compilation.report.summary):
        out += labelled("proved" if at == 0 else "", line, width)
    seconds = compilation.seconds["proof"]
    out += labelled("", f"in {seconds:.2f} s", width)
    for at, target in enumerate(written):
        files = ", ".join(target.files) if len(target.files) <= 4 else plural(len(target.files), "file")
        out += labelled("wrote" if at == 0 else "", f"{place}/ {target.target}: {files} ({size(target.size)})", width)
        if target.note:
            out += labelled("", target.note, width)
    return out


def _targets(given: Sequence[str] | None) -> tuple[str, ...]:
    """Target names from `-t a,b -t c`, each known; those of every day without `-t`."""
    if given is None:
        return DEFAULT_TARGETS
    wanted = [name.strip() for text in given or () for name in text.split(",") if name.strip()]
    known = (*names(), *GROUPS)
    for name in wanted:
        if name not in known:
            meant = closest(name, known)
            hint = f"did you mean `{meant}`?" if meant else f"there are {', '.join(known)}"
            raise UsageError(f"there is no target `{name}`; {hint}")
    if not wanted:
        raise UsageError(f"`-t` names no target; there are {', '.join(known)}")
    return tuple(dict.fromkeys(wanted))


def _places(files: Sequence[str], directory: Path) -> dict[str, Path]:
    """Where each program's output goes: the directory, or one named after the file when there are several."""
    if len(files) == 1:
        return {files[0]: directory}
    places: dict[str, Path] = {}
    for name in files:
        place = directory / ("stdin" if name == "-" else Path(name).stem)
        for other, taken in places.items():
            if taken == place:
                raise UsageError(f"`{other}` and `{name}` would both be written to `{place}`; compile them apart")
        places[name] = place
    return places


def _write(
    compilation: Compilation, place: Path, targets: Sequence[str], options: Options, sink: Diagnostics
) -> tuple[Written, ...]:
    """Write, read back, and put the directory into place. Raises CompileError and OutputError."""
    plan = compilation.plan
    environment = (OSError, output.OutputError)
    with (
        output.replacing(place) as staging,
        guarded("write", compilation.source, sink, passing=environment),
        Progress(targets).shown() as progress,
    ):
        written = emit(plan, targets, staging, options, sink, progress.enter)
        document = output.manifest(
            staging, targets=targets, parameters=plan.model.parameters, sources=plan.model.sources
        )
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        (staging / output.MANIFEST).write_text(text, encoding="utf-8", newline="\n")
    return written
