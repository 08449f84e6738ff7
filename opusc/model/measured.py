"""What was measured on a running job, as a program names it."""

from dataclasses import dataclass

from opusc.model.entities import Entity

__all__ = ["Trace", "TraceRun"]


@dataclass(frozen=True, kw_only=True)
class TraceRun(Entity):
    """Equal traffic in a row, as one line of a trace tells it: `length` collectives of `phase`, from number `first` on.

    `backend` is the communicator's number; above 10 it is ten times the pair of stages that a pipeline uses.
    """

    rank: int
    phase: str
    backend: int
    first: int
    length: int


@dataclass(frozen=True, kw_only=True)
class Trace(Entity):
    """A measured order of traffic, rank by rank, and the compute time of each stage (ps) where it is stated."""

    runs: tuple[TraceRun, ...]
    compute: tuple[int, ...] | None = None
