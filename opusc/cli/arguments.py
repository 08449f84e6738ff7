"""The parser of the command line, with the help that teaches it."""

import argparse
from collections.abc import Iterable

from opusc.cli.commands import COMMANDS, module_of
from opusc.version import __version__

__all__ = ["make_parser"]

_EPILOG = """\
examples:
  opusc compile cluster.opus              prove it, write build/
  opusc compile cluster.opus -D dp=8      with another value of a param
  opusc check cluster.opus                only the messages
  opusc explain OPUS201                   what a message means
  opusc show cluster.opus --phase dp --rank 37

exit codes: 0 clean, 1 the program or its plan is wrong, 2 the invocation or
the environment is wrong
"""


class _Overview(argparse.RawDescriptionHelpFormatter):
    """argparse forgets that commands are indented, and would put the longest on a line without its summary."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        self._action_max_length = max(self._action_max_length, max(map(len, COMMANDS)) + 4)


def make_parser(words: Iterable[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """A parser that knows every command, and the arguments of those in `words`: only their modules are imported."""
    parser = argparse.ArgumentParser(
        prog="opusc",
        description="Compile AI clusters with optical rails to proved circuits.",
        epilog=_EPILOG,
        formatter_class=_Overview,
    )
    parser.add_argument("-V", "--version", action="version", version=f"opusc {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    wanted = set(words)
    for word, summary in COMMANDS.items():
        command = commands.add_parser(word, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter)
        if word in wanted:
            module = module_of(word)
            command.description, command.epilog = module.DESCRIPTION, module.EPILOG
            module.add_arguments(command)
    return parser
