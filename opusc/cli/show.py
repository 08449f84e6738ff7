"""`opusc show`: the standard library, the language, or what the compiler made of a program."""

import argparse
import sys

from opusc.cli import terminal
from opusc.cli.options import index, part_options, program_options
from opusc.cli.terminal import UsageError

__all__ = ["DESCRIPTION", "EPILOG", "TOPICS", "add_arguments", "run"]


#: Modules of the standard library, and all that `opusc show` can list without a file.
LIBRARY = ("switches", "gpus", "nics", "transceivers", "fibres", "models", "components", "topologies")
TOPICS = (*LIBRARY, "targets", "units", "fields", "functions")

DESCRIPTION = """\
Show what the compiler knows: a topic, or what it made of a program.

topics:
  switches, gpus, nics, transceivers, fibres, models, components, topologies
                                             of the standard library
  targets                                    what `compile -t` can write
  units, functions                           of the language
  fields [KIND]                              of cluster, nic, fabric, job, ..."""

EPILOG = """\
examples:
  opusc show switches
  opusc show fields nic
  opusc show cluster.opus                 phases, parts and switches
  opusc show cluster.opus --phase dp      its groups and parts
  opusc show cluster.opus --phase dp --rank 37
                            which circuits rank 37 uses in phase dp
  opusc show cluster.opus --phase pp --stage 2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="TOPIC|FILE", help="a topic, or a program; - for standard input")
    parser.add_argument("kind", metavar="KIND", nargs="?", help="with `fields`: one kind of declaration")
    part_options(parser)
    parser.add_argument("--rank", metavar="N", type=index, help="the groups, peers and circuits of this rank")
    program_options(parser)


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
