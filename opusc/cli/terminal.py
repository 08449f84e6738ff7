"""What the terminal is like, and how commands speak to it."""

import os
import shutil
import sys
from typing import TextIO

__all__ = ["UsageError", "complain", "prepare_streams", "use_colour", "width"]


class UsageError(Exception):
    """The invocation or the environment is wrong: a sentence for stderr, and exit code 2."""


def prepare_streams() -> None:
    """A character that the terminal's encoding lacks must not end the run."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def width() -> int:
    """Columns of the terminal; 80 where there is none. `COLUMNS` overrides."""
    return shutil.get_terminal_size((80, 24)).columns


def use_colour(stream: TextIO) -> bool:
    """Colour for people only: on a terminal, unless NO_COLOR is set (https://no-color.org) or it is a dumb one."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def complain(text: str) -> None:
    print(f"opusc: {text}", file=sys.stderr)
