"""`opusc fmt`: the canonical layout."""

import argparse
import difflib
import sys
from pathlib import Path

from opusc.cli import terminal
from opusc.cli.compiling import Messages, exit_code, read_program
from opusc.cli.terminal import UsageError
from opusc.diagnostics import CompileError, Diagnostics
from opusc.output import OutputError, write_file

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]


DESCRIPTION = """\
Write programs in the one canonical layout. Comments stay where they are, and
nothing is written unless the result parses to the same program."""

EPILOG = """\
examples:
  opusc fmt cluster.opus                  print the result
  opusc fmt -i *.opus                     rewrite the files
  opusc fmt --check *.opus                name files that would change, exit 1
  opusc fmt --diff cluster.opus           show what would change, exit 1
  opusc fmt - < cluster.opus              for editors
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="a program; - for standard input")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("-i", "--in-place", action="store_true", help="rewrite the files")
    how.add_argument("--check", action="store_true", help="name the files that would change")
    how.add_argument("--diff", action="store_true", help="show what would change")


def run(options: argparse.Namespace) -> int:
    if len(options.files) > 1 and not (options.in_place or options.check or options.diff):
        raise UsageError("to format several files, say -i (rewrite), --check or --diff")
    if options.in_place and "-" in options.files:
        raise UsageError("standard input cannot be rewritten: leave out -i")
    messages = Messages("text")
    code = 0
    for name in options.files:
        try:
            code = max(code, _format_one(name, options))
        except CompileError as error:
            messages.add(list(error.diagnostics), cut=error.diagnostics.cut)
            code = max(code, exit_code(error))
        except (UsageError, OutputError) as error:
            terminal.complain(str(error))
            code = 2
    messages.close()
    return code


def _format_one(name: str, options: argparse.Namespace) -> int:
    before, after = _formatted(name)
    if options.check or options.diff:
        return _compare(name, before, after, options.diff)
    if not options.in_place:
        sys.stdout.write(after)
    elif before != after:
        write_file(Path(name), after.encode())
    return 0


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
