"""`opusc check`: everything but the writing."""

import argparse

from opusc.cli.compiling import Messages, compile_one
from opusc.cli.options import program_options
from opusc.cli.tables import plural

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]


DESCRIPTION = "Report what is wrong, write nothing."

EPILOG = """\
examples:
  opusc check cluster.opus
  opusc check racks/*.opus --format concise
  opusc check cluster.opus --format json | jq '.diagnostics[].message'

Text goes to standard error; concise and json go to standard output.
`opusc schema diagnostics` describes the JSON.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="a program; - for standard input")
    program_options(parser)


def run(options: argparse.Namespace) -> int:
    messages = Messages(options.format)
    code = 0
    for name in options.files:
        outcome = compile_one(name, options, messages)
        code = max(code, outcome.code)
        if outcome.compilation is not None and options.format == "text":
            plan, seconds = outcome.compilation.plan, sum(outcome.compilation.seconds.values())
            parts, circuits = plural(len(plan.parts), "part"), plural(len(plan.circuits), "circuit")
            print(f"{name}: {plural(plan.world, 'GPU')}, {parts}, {circuits}, proved in {seconds:.2f} s")
    messages.close()
    return code
