"""Stated schedules: the order of phases in which every stage's traffic runs.

`schedule = [pp, dp]` holds every reduction back until the stage has sent and received everything; a phase that is named
several times has its traffic shared out evenly over its turns. Traffic of a turn waits until that of the turn before
has ended. Phases that are not named keep their own time.
"""

from collections.abc import Sequence
from dataclasses import replace

from opusc.schedule.operations import Collective, Operation, Receive, Send, Timed, Workload

__all__ = ["ordered"]


def ordered(workload: Workload, schedule: Sequence[str]) -> Workload:
    """The same operations, each stage's traffic in the order of the schedule."""
    return replace(workload, stages=tuple(_stage(stage, schedule) for stage in workload.stages))


def _stage(operations: Sequence[Operation], schedule: Sequence[str]) -> tuple[Operation, ...]:
    traffic: dict[str, list[str]] = {name: [] for name in schedule}
    for operation in operations:
        if (phase := _phase(operation)) in traffic:
            traffic[phase].append(operation.name)
    turns: dict[str, int] = {}
    of_turn: list[tuple[str, list[str]]] = []
    for name in schedule:
        own, count = traffic[name], schedule.count(name)
        turn = turns[name] = turns.get(name, -1) + 1
        title = f"{name}, turn {turn + 1} of {count}" if count > 1 else f"the turn of {name}"
        of_turn.append((title, own[turn * len(own) // count : (turn + 1) * len(own) // count]))
    after: dict[str, str] = {}
    barriers: list[Operation] = []
    before: tuple[str, ...] = ()
    for barrier, names in of_turn:
        if not names:
            continue
        if before:
            barriers.append(Operation(barrier, Timed("", 0), before))
            after.update(dict.fromkeys(names, barrier))
            before = (barrier, *names)
        else:
            before = tuple(names)
    held = tuple(_held(operation, after.get(operation.name)) for operation in operations)
    return (*barriers, *held)


def _held(operation: Operation, barrier: str | None) -> Operation:
    """A receive cannot be held back: who sends is."""
    if barrier is None or isinstance(operation.work, Receive):
        return operation
    return replace(operation, after=(*operation.after, barrier))


def _phase(operation: Operation) -> str:
    work = operation.work
    if isinstance(work, Send | Receive):
        return work.phase
    return work.axis if isinstance(work, Collective | Timed) else ""
