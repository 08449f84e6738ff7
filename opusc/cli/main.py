"""`opusc`: where the command line begins, and where every way to end has its exit code.

0 clean; 1 the program or its plan is wrong; 2 the invocation or the environment is wrong, or opusc itself;
130 interrupted. Nothing heavy is imported here: `opusc --version` should cost what Python costs.
"""

import sys

from opusc.version import __version__

__all__ = ["entry", "main"]


def main(argv: list[str] | None = None) -> int:
    """Run one command line and give its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["-V"]):
        print(f"opusc {__version__}")
        return 0
    from opusc.cli.run import run

    return run(arguments)


def entry() -> None:
    """Run the command line of this process and end it.

    Once a solver was there, an orderly end (every module, every term, the solver's own tables) takes a tenth of what
    checking a program takes, and nobody sees it. Files are closed by then; what is printed is flushed here. While
    other threads run, Python's own way waits for them.
    """
    code = main()
    if "z3" not in sys.modules or len(sys.modules["threading"].enumerate()) > 1:
        sys.exit(code)
    import os

    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
