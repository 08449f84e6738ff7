"""What every backend provides, and the options they share.

A backend states part of a plan in somebody else's format. `project` says what that part is, as a stream of
statements; `read` gives the same stream from the written files alone. Translation validation compares the two.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan

__all__ = ["MAX_OUTPUT", "Backend", "Options", "Unreadable"]

MAX_OUTPUT = 2 << 30


@dataclass(frozen=True, slots=True)
class Options:
    """What a run asks of every target."""

    max_output: int = MAX_OUTPUT  # bytes that one target may write
    svg: bool = True  # draw with Graphviz where its programs are installed


class Unreadable(ValueError):
    """A written file is not in the format that its reader knows. The message says where."""


class Backend(Protocol):
    """One target. All methods are pure; only `read` touches the disk."""

    @property
    def name(self) -> str:
        """What `-t` takes."""

    @property
    def summary(self) -> str:
        """One line for `opusc show targets`."""

    def check(self, plan: Plan, options: Options, sink: Diagnostics) -> None:
        """Refuse what the format cannot express: errors OPUS6xx, at what cannot be said."""

    def write(self, plan: Plan, options: Options) -> Iterator[tuple[str, Iterable[bytes]]]:
        """The files: a name below the output directory (with `/`), and the content in chunks.

        Called only when `check` found nothing. Each content is consumed before the next file is asked for.
        """

    def project(self, plan: Plan) -> Iterable[object]:
        """What the format can state of the plan: dataclasses of plain values and arrays, in the order of the files."""

    def read(self, directory: Path) -> Iterable[object]:
        """The same statements, from the files that `write` named. Raises Unreadable."""

    def faults(self, plan: Plan, statement: object) -> Iterable[str]:
        """Which properties that survive the projection do not hold for a statement that was read."""

    def note(self, options: Options) -> str:
        """One line for people about what was left out on this machine, or an empty string."""
