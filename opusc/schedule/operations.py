"""What each pipeline stage computes and communicates: operations and their dependencies.

`lower` turns a workload into the flat integer tables that the simulation runs over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from opusc.schedule.timetable import Timetable
from opusc.schedule.timing import Accelerator, Algorithm, Rates, compute_time, ring_time, send_time

__all__ = [
    "COMPUTE",
    "INSIDE",
    "RECEIVE",
    "RING",
    "SEND",
    "Busy",
    "Collective",
    "Compute",
    "LoweredStage",
    "Operation",
    "Program",
    "Receive",
    "Send",
    "Timed",
    "Workload",
    "WorkloadError",
    "lower",
]

COMPUTE: Final = 0
INSIDE: Final = 1  # a collective inside a scale-up domain: needs no circuit
RING: Final = 2  # a collective over the stage's data-parallel ring
SEND: Final = 3
RECEIVE: Final = 4


@dataclass(frozen=True, slots=True)
class Compute:
    """`flops` operations; `size` counts the bytes that pass through memory."""

    flops: int
    size: int


@dataclass(frozen=True, slots=True)
class Busy:
    """The compute stream is taken for `duration` (ps): many operations as one, or a measured time."""

    duration: int


@dataclass(frozen=True, slots=True)
class Collective:
    """Among the ranks of an axis (`tp`, `dp`) or of a phase of the plan. `size`: bytes of a member's shard for an
    all-gather, of one block for an exchange, of the whole buffer for the others."""

    axis: str
    algorithm: Algorithm
    size: int


@dataclass(frozen=True, slots=True)
class Send:
    """To the same rank of stage `to`, where it completes the receive named `lands`; over the joins of `phase`."""

    to: int
    size: int
    lands: str
    phase: str = "pp"


@dataclass(frozen=True, slots=True)
class Receive:
    """Ends when the send that names it has arrived; takes no unit of the rank."""

    source: int
    phase: str = "pp"


@dataclass(frozen=True, slots=True)
class Timed:
    """Traffic over the circuits of a phase that takes `duration` (ps) whatever it carries; none over no phase."""

    axis: str
    duration: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a rank does, once the operations in `after` have ended."""

    name: str
    work: Compute | Busy | Collective | Timed | Send | Receive
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Workload:
    """`stages[s]` lists the operations of one rank of stage s, the preferred one first: when several
    are ready for the same unit, the one listed first runs."""

    name: str
    degrees: Mapping[str, int]
    stages: tuple[tuple[Operation, ...], ...]


@dataclass(frozen=True, slots=True)
class LoweredStage:
    """Operations of one rank of a stage as columns: kind, duration (ps), operations that wait for it, how many it waits
    for, the other stage of a send or receive and the receive that a send completes (-1 for none)."""

    names: tuple[str, ...]
    kinds: tuple[int, ...]
    durations: tuple[int, ...]
    children: tuple[tuple[int, ...], ...]
    waits: tuple[int, ...]
    peers: tuple[int, ...]
    lands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A workload with durations; `ring_members` is the size of a data-parallel ring.

    With a `timetable` the circuits are those of a plan; then the stages have names, kinds and durations only.
    Without one they are the rings and joins of the published protocol.
    """

    name: str
    ring_members: int
    stages: tuple[LoweredStage, ...]
    timetable: Timetable | None = None


class WorkloadError(ValueError):
    """The operations do not form a schedule; the message names the stage and the operation."""

    def __init__(self, message: str, stage: int = -1, operation: str = "") -> None:
        super().__init__(message)
        self.stage, self.operation = stage, operation


def lower(workload: Workload, gpu: Accelerator, rates: Rates) -> Program:
    """Attach durations and resolve names to indices."""
    tables = [{op.name: i for i, op in enumerate(ops)} for ops in workload.stages]
    known: dict[object, int] = {}  # layers repeat the same operations
    stages = []
    for stage, ops in enumerate(workload.stages):
        table = tables[stage]
        if len(table) != len(ops):
            raise WorkloadError(f"stage {stage}: two operations have the same name")
        children: list[list[int]] = [[] for _ in ops]
        for i, op in enumerate(ops):
            for name in op.after:
                if name not in table:
                    raise WorkloadError(f"stage {stage}: {op.name} waits for {name}, which is not there")
                children[table[name]].append(i)
        lands = []
        for op in ops:
            if isinstance(op.work, Send) and op.work.lands not in tables[op.work.to]:
                raise WorkloadError(f"stage {stage}: {op.name} has no receive {op.work.lands} in stage {op.work.to}")
            lands.append(tables[op.work.to][op.work.lands] if isinstance(op.work, Send) else -1)
        stages.append(
            LoweredStage(
                names=tuple(op.name for op in ops),
                kinds=tuple(_kind(op, workload.degrees) for op in ops),
                durations=tuple(_known_duration(op, workload.degrees, gpu, rates, known) for op in ops),
                children=tuple(map(tuple, children)),
                waits=tuple(len(op.after) for op in ops),
                peers=tuple(_peer(op) for op in ops),
                lands=tuple(lands),
            )
        )
    return Program(workload.name, workload.degrees.get("dp", 1), tuple(stages))


def _kind(op: Operation, degrees: Mapping[str, int]) -> int:
    match op.work:
        case Compute() | Busy():
            return COMPUTE
        case Collective(axis="dp") if degrees["dp"] > 1:
            return RING
        case Collective() | Timed():
            return INSIDE
        case Send():
            return SEND
        case Receive():
            return RECEIVE


def _peer(op: Operation) -> int:
    if isinstance(op.work, Send):
        return op.work.to
    return op.work.source if isinstance(op.work, Receive) else -1


def _known_duration(
    op: Operation, degrees: Mapping[str, int], gpu: Accelerator, rates: Rates, known: dict[object, int]
) -> int:
    if op.work not in known:
        known[op.work] = _duration(op, degrees, gpu, rates)
    return known[op.work]


def _duration(op: Operation, degrees: Mapping[str, int], gpu: Accelerator, rates: Rates) -> int:
    match op.work:
        case Compute(flops=flops, size=size):
            return compute_time(flops, size, gpu)
        case Busy(duration=duration):
            return duration
        case Timed(duration=duration):
            return duration
        case Collective(axis=axis, algorithm=algorithm, size=size):
            rate = rates.ring_rate if axis == "dp" else rates.scale_up_rate
            return ring_time(algorithm, size, degrees[axis], rate, gpu, rates)
        case Send(size=size):
            return send_time(size, rates.join_rate, rates)
        case Receive():
            return 0
