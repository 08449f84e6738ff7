"""`opusc fmt`: the canonical layout."""

import argparse
import difflib
import os
import sys
import tempfile
from pathlib import Path

from opusc.cli.compiling import Messages, read_program
from opusc.cli.terminal import UsageError
from opusc.diagnostics import CompileError, Diagnostics

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    if len(options.files) > 1 and not (options.in_place or options.check or options.diff):
        raise UsageError("to format several files, say -i (rewrite), --check or --diff")
    if options.in_place and "-" in options.files:
        raise UsageError("standard input cannot be rewritten: leave out -i")
    messages = Messages("text")
    code = 0
    for name in options.files:
        try:
            before, after = _formatted(name)
        except CompileError as error:
            messages.add(list(error.diagnostics))
            code = 1
            continue
        if options.check or options.diff:
            code = max(code, _compare(name, before, after, options.diff))
        elif options.in_place:
            if before != after:
                _rewrite(Path(name), after)
        else:
            sys.stdout.write(after)
    messages.close()
    return code


def _formatted(name: str) -> tuple[str, str]:
    from opusc.syntax.formatter import format_source

    sink = Diagnostics()
    source = read_program(name)
    text = format_source(source, sink)
    sink.checkpoint()
    return source.text, text


def _compare(name: str, before: str, after: str, diff: bool) -> int:
    if before == after:
        return 0
    if diff:
        lines = difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), name, f"{name} (formatted)"
        )
        sys.stdout.writelines(line if line.endswith("\n") else line + "\n" for line in lines)
    else:
        print(f"{name} would change")
    return 1


def _rewrite(path: Path, text: str) -> None:
    """Write beside the file, then move into place: a crash must not leave half a program."""
    target = Path(os.path.realpath(path))
    try:
        descriptor, beside = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            os.chmod(beside, target.stat().st_mode & 0o7777)
            os.replace(beside, target)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {error.strerror or error}") from error
