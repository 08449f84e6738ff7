"""What the commands that take programs share: read, compile, and say what is wrong in the wanted form."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opusc.cli import terminal
from opusc.cli.terminal import UsageError
from opusc.diagnostics import CompileError, Diagnostic
from opusc.diagnostics.suggest import closest
from opusc.source import Source

if TYPE_CHECKING:
    from opusc.driver import Compilation

__all__ = ["Messages", "Outcome", "compile_one", "compiled", "exit_code", "read_program", "reported"]


@dataclass(frozen=True)
class Outcome:
    """A compilation, or None with the exit code that its messages ask for."""

    compilation: "Compilation | None"
    code: int


class Messages:
    """Diagnostics of all programs of one command. Text goes to stderr at once; the forms for programs go to
    stdout: one-liners at once, JSON as one document at the end. A command that has something else to put on
    stdout says `apart`: then all messages go to stderr."""

    def __init__(self, form: str, *, apart: bool = False) -> None:
        self.form = form
        self.stream = sys.stderr if apart or form == "text" else sys.stdout
        self.found: list[Diagnostic] = []
        self.cut = False

    def add(self, diagnostics: Sequence[Diagnostic], *, cut: bool = False) -> None:
        """`cut`: there was more to tell than these."""
        self.found += diagnostics
        self.cut |= cut
        if self.form == "text":
            from opusc.diagnostics.text import render

            colour = terminal.use_colour(self.stream)
            self.stream.write(render(diagnostics, width=terminal.width(), colour=colour))
        elif self.form == "concise":
            from opusc.diagnostics import concise

            self.stream.write(concise.render(diagnostics))

    def close(self) -> None:
        if self.form == "json":
            from opusc.diagnostics import json

            self.stream.write(json.render(self.found, cut=self.cut))
        elif self.form == "text" and self.found:
            from opusc.diagnostics.text import summary

            print(summary(self.found, cut=self.cut), file=self.stream)


def read_program(name: str, topics: Sequence[str] = ()) -> Source:
    """The text of a file, or of standard input for `-`. Raises UsageError, and CompileError for bad text."""
    from opusc.driver import decode, read

    if name == "-":
        return decode("<stdin>", sys.stdin.buffer)
    try:
        return read(Path(name))
    except OSError as error:
        meant = closest(name, topics)
        hint = f"; did you mean the topic `{meant}`?" if meant else ""
        raise UsageError(f"cannot read `{name}`: {error.strerror or error}{hint}") from error


def compile_one(
    name: str,
    options: argparse.Namespace,
    messages: Messages,
    topics: Sequence[str] = (),
    omit: Sequence[str] = (),
    *,
    choosing: bool = True,
    deciding: bool = True,
) -> Outcome:
    """Compile one program and put its messages out, but for warnings whose codes are in `omit`: the caller decides
    about those, about `policy = auto` without `choosing`, and about requirements on the plan without `deciding`. One
    that cannot be read gets a complaint, so that others are still done."""
    from opusc.driver import STAGES, compile_source
    from opusc.progress import Progress

    root = Path(options.root) if options.root else Path.cwd() if name == "-" else Path(name).parent
    if options.root and not root.is_dir():
        raise UsageError(f"`--root {options.root}` is not a folder")
    try:
        source = read_program(name, topics)
        with Progress(STAGES).shown() as progress:
            settings = dict(options.params)
            compilation = compile_source(source, root, settings, progress.enter, choosing=choosing, deciding=deciding)
    except CompileError as error:
        messages.add(list(error.diagnostics), cut=error.diagnostics.cut)
        return Outcome(None, exit_code(error))
    except UsageError as error:
        terminal.complain(str(error))
        return Outcome(None, 2)
    found = compilation.diagnostics
    messages.add([d for d in found if d.code not in omit], cut=found.cut)
    return Outcome(compilation, 0)


def exit_code(error: CompileError) -> int:
    """1 when the program is wrong, 2 when opusc is."""
    return 2 if any(d.code.startswith("OPUS9") for d in error.diagnostics) else 1


def reported(options: argparse.Namespace, work: Callable[[argparse.Namespace, Messages], int]) -> int:
    """Run a command's work; what it raises as a CompileError becomes messages and an exit code."""
    messages = Messages(options.format)
    try:
        code = work(options, messages)
    except CompileError as error:
        messages.add(list(error.diagnostics), cut=error.diagnostics.cut)
        code = exit_code(error)
    messages.close()
    return code


def compiled(name: str, options: argparse.Namespace, topics: Sequence[str] = ()) -> Outcome:
    """As `compile_one`, for commands that take one program and print what they find in it."""
    messages = Messages(options.format, apart=True)
    outcome = compile_one(name, options, messages, topics)
    messages.close()
    return outcome
