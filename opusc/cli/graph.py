"""`opusc graph`: a picture of the fabric, or of the circuits of a part."""

import argparse
import sys
from pathlib import Path

from opusc.cli.compiling import compiled
from opusc.cli.options import part_options, program_options
from opusc.cli.planview import chosen_parts
from opusc.cli.terminal import UsageError
from opusc.output import OutputError, write_file
from opusc.plan.plan import Plan

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]

_FORMS = (".dot", ".svg", ".png")


DESCRIPTION = "Draw a fabric, or the circuits of a part."

EPILOG = """\
examples:
  opusc graph cluster.opus -o fabric.svg
  opusc graph cluster.opus --phase dp --stage 0 -o ring.svg
  opusc graph cluster.opus > fabric.dot

SVG and PNG need Graphviz' `dot` program; DOT text needs nothing.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a program; - for standard input")
    part_options(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="a .dot, .svg or .png file (default: DOT to stdout)")
    program_options(parser)


def run(options: argparse.Namespace) -> int:
    from opusc.backends.graphviz import has_graphviz, render

    form = Path(options.output).suffix if options.output else ".dot"
    if form not in _FORMS:
        raise UsageError(f"`{options.output}` should end in .dot, .svg or .png")
    if options.phase is None and (options.stage is not None or options.step is not None):
        raise UsageError("--stage and --step belong to a phase: add --phase, for example --phase dp")
    if form != ".dot" and not has_graphviz():
        raise UsageError(
            f"`{form}` needs Graphviz, and no `dot` here draws it: `apt install graphviz`, `brew install graphviz`, "
            "or graphviz.org; or write a .dot file"
        )
    outcome = compiled(options.file, options)
    if outcome.compilation is None:
        return outcome.code
    text = _drawing(outcome.compilation.plan, options.phase, options.stage, options.step)
    if options.output is None:
        sys.stdout.write(text)
        return outcome.code
    try:
        write_file(Path(options.output), text.encode() if form == ".dot" else render(text, form[1:]))
    except OutputError as error:
        raise UsageError(str(error)) from error
    return outcome.code


def _drawing(plan: Plan, phase: str | None, stage: int | None, step: int | None) -> str:
    from opusc.backends.graphviz import fabric, part

    if phase is None:
        return fabric(plan)
    chosen_parts(plan, phase, stage, step)  # says what is wrong with a name or number
    drawn = part(plan, phase, stage, step)
    if drawn is None:
        raise AssertionError("a part that cannot be drawn")
    return drawn
