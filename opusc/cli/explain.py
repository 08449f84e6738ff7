"""`opusc explain`: the page of a diagnostic code."""

import argparse
import sys

from opusc.cli import terminal
from opusc.cli.tables import labelled
from opusc.cli.terminal import UsageError
from opusc.diagnostics.codes import CODES
from opusc.diagnostics.explain import UnknownCodeError, code_named, page

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]


DESCRIPTION = "What a message means and what to do."

EPILOG = """\
examples:
  opusc explain OPUS201                   also: opus201, 201
  opusc explain                           list all codes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", metavar="CODE", nargs="?", help="a code such as OPUS201")


def run(options: argparse.Namespace) -> int:
    if options.code is None:
        for code, entry in CODES.items():
            sys.stdout.write(labelled(code, entry.title, terminal.width(), column=9))
        return 0
    try:
        sys.stdout.write(page(code_named(options.code)))
    except UnknownCodeError as error:
        raise UsageError(str(error)) from error
    return 0
