"""`opusc`: where the command line begins, and where every way to end has its exit code.

0 clean; 1 the program or its plan is wrong; 2 the invocation or the environment is wrong, or opusc itself;
130 interrupted. Nothing heavy is imported here: `opusc --version` should cost what Python costs.
"""

import sys

from opusc.version import __version__

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run one command line and give its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["-V"]):
        print(f"opusc {__version__}")
        return 0
    from opusc.cli.run import run

    return run(arguments)
