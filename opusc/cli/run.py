"""Parse the arguments, run the command, turn every way to fail into a message and an exit code."""

import gc
import os
import sys

from opusc.cli.arguments import make_parser
from opusc.cli.commands import module_of
from opusc.cli.terminal import UsageError, complain, prepare_streams

__all__ = ["run"]


def run(arguments: list[str]) -> int:
    # A command makes few cycles and ends soon: looking for them every 700 objects is a twentieth of its time.
    gc.set_threshold(200_000, 20, 20)
    prepare_streams()
    try:
        parser = make_parser([word for word in arguments if not word.startswith("-")][:1])
        if not arguments:
            parser.print_help(sys.stderr)
            return 2
        options = parser.parse_args(arguments)
        code: int = module_of(options.command).run(options)
        sys.stdout.flush()
        return code
    except UsageError as error:
        complain(str(error))
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone: say nothing, and keep Python from saying it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if os.environ.get("OPUSC_DEBUG") == "1":
            raise
        complain(
            f"internal error in `{arguments[0] if arguments else ''}`: {type(error).__name__}: {error}\n"
            "This is a defect of opusc, not of your program. Please report it with the command and the file; "
            "OPUSC_DEBUG=1 shows where it happened."
        )
        return 2
