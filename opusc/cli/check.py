"""`opusc check`: everything but the writing."""

import argparse

from opusc.cli.compiling import Messages, compile_one
from opusc.cli.tables import plural

__all__ = ["run"]


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
