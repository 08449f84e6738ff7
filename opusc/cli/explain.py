"""`opusc explain`: the page of a diagnostic code."""

import argparse
import sys

from opusc.cli import terminal
from opusc.cli.tables import labelled
from opusc.cli.terminal import UsageError
from opusc.diagnostics.codes import CODES
from opusc.diagnostics.explain import UnknownCodeError, code_named, page

__all__ = ["run"]


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
