"""`opusc show`: the standard library, the language, or what the compiler made of a program."""

import argparse
import sys

from opusc.cli import terminal
from opusc.cli.arguments import TOPICS
from opusc.cli.terminal import UsageError

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    narrowed = any(value is not None for value in (options.phase, options.stage, options.step, options.rank))
    if options.what in TOPICS:
        from opusc.cli.topics import topic

        if narrowed:
            raise UsageError(f"--phase, --stage, --step and --rank are for programs, not for `show {options.what}`")
        if options.kind is not None and options.what != "fields":
            raise UsageError(f"`show {options.what}` takes no further word")
        sys.stdout.write(topic(options.what, options.kind, terminal.width()))
        return 0
    if options.kind is not None:
        raise UsageError(f"`{options.what}` is no topic; `opusc show --help` lists them")
    from opusc.cli.compiling import compiled
    from opusc.cli.planview import overview, phase_view, rank_view

    outcome = compiled(options.what, options, topics=TOPICS)
    if outcome.compilation is None:
        return outcome.code
    plan = outcome.compilation.plan
    if options.rank is not None:
        text = rank_view(plan, options.rank, options.phase, options.stage, options.step, terminal.width())
    elif narrowed:
        text = phase_view(plan, options.phase, options.stage, options.step, terminal.width())
    else:
        text = overview(plan, terminal.width())
    sys.stdout.write(text)
    return outcome.code
