"""A second look at a schedule: is the order legal, and does the timeline keep to it and to the circuits?

Shares no code with the reorderings (`ideas`) and the simulations. It reads two workloads, or a workload and a recorded
timeline, and says in words what is against them; nothing means that all of this holds:

- every operation is there once, with the bytes and the computation that it had, alone or as part of a larger one;
- whatever an operation waited for it still waits for, so a reduction may come later and never before its gradient;
- every operation starts after all that it waits for has ended, and takes the time that it should;
- no unit of a rank does two things at once;
- every transfer lies within the time for which its part is lit, and parts that share a port are never lit together.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from opusc.schedule.circuits import Change, Part, join_of, ring_of
from opusc.schedule.operations import Collective, Compute, Operation, Program, Receive, Send, Workload
from opusc.schedule.simulation import Result
from opusc.schedule.timeline import Activity, Interval

__all__ = ["Exclusive", "reordering", "timeline"]

#: Whether two parts share a port.
Exclusive = Callable[[Part, Part], bool]

_IDLE = (Activity.SWITCHING, Activity.WAITING)


# --- the order -----------------------------------------------------------------------------------


def reordering(before: Workload, after: Workload) -> list[str]:
    """What is against `after` being `before` in another order."""
    if len(before.stages) != len(after.stages) or before.degrees != after.degrees:
        return ["the reordering has other stages or degrees"]
    found: list[str] = []
    for stage, (old, new) in enumerate(zip(before.stages, after.stages, strict=True)):
        found += [f"stage {stage}: {text}" for text in _stage(old, new)]
    return found


def _stage(old: Sequence[Operation], new: Sequence[Operation]) -> Iterator[str]:
    was, now = {op.name: op for op in old}, {op.name: op for op in new}
    if len(was) != len(old) or len(now) != len(new):
        yield "an operation is there twice"
        return
    if _bytes(old) != _bytes(new):
        yield f"carries {_bytes(new)} bytes instead of {_bytes(old)}"
    for name in now.keys() - was.keys():
        yield f"{name} is new"
    gone = [name for name in was if name not in now]
    followers: dict[str, list[str]] = {}
    for op in old:
        for other in op.after:
            followers.setdefault(other, []).append(op.name)
    carrier = _carriers([was[name] for name in gone], followers, was, now)
    for name in gone:
        if not carrier[name]:
            yield f"{name} is gone, and no other operation does its work"
    into = Counter[str]()
    for name, other in carrier.items():
        work = was[name].work
        into[other] += work.size if isinstance(work, Collective) else 0
    waits = {name: set(op.after) for name, op in now.items()}
    for name, op in was.items():
        at = carrier.get(name, name)
        if at not in now:
            continue
        if name in now and _without(now[name], into[name]) != _without(op, 0):
            yield f"{name} does something else"
        wanted = {carrier.get(other, other) for other in op.after} - {at}
        for missing in wanted - waits[at]:
            if missing not in _before(at, waits):
                yield f"{name} no longer waits for {missing}"
    if (stuck := _cycle(waits)) is not None:
        yield f"{stuck} waits for itself"


def _bytes(operations: Iterable[Operation]) -> dict[str, int]:
    """Bytes by kind of traffic."""
    found = Counter[str]()
    for op in operations:
        if isinstance(op.work, Collective):
            found[f"{op.work.axis} {op.work.algorithm}"] += op.work.size
        elif isinstance(op.work, Send):
            found[f"to stage {op.work.to}"] += op.work.size
    return dict(found)


def _without(operation: Operation, size: int) -> object:
    """The work, less the bytes taken over from others."""
    work = operation.work
    if isinstance(work, Collective):
        return work.axis, work.algorithm, work.size - size
    return work


def _carriers(
    gone: Iterable[Operation],
    followers: Mapping[str, Sequence[str]],
    was: Mapping[str, Operation],
    now: Mapping[str, Operation],
) -> dict[str, str]:
    """For each operation that is gone, the larger one of its kind that does its work; "" where there is none.

    That one waits for all that it waited for, and all that waited for it waits for that one. Of several, it is the one
    that waits for least and has grown by enough.
    """
    room = {name: _size(op) - _size(was[name]) for name, op in now.items() if name in was and op.work != was[name].work}
    waits: dict[str, list[str]] = {}
    for name in room:
        for one in now[name].after:
            waits.setdefault(one, []).append(name)
    found: dict[str, str] = {}
    for op in gone:
        inputs = [one for one in op.after if one in now]
        waiting = [now[name].after for name in followers.get(op.name, ()) if name in now]
        fit = [
            name
            for name in (waits.get(inputs[0], ()) if inputs else room)
            if waiting
            and _kind(now[name]) == _kind(op) is not None
            and all(name in after for after in waiting)
            and all(one in now[name].after for one in inputs)
        ]
        fit.sort(key=lambda name: (room[name] < _size(op), len(now[name].after)))
        found[op.name] = fit[0] if fit else ""
        if fit:
            room[fit[0]] -= _size(op)
    return found


def _size(operation: Operation) -> int:
    return operation.work.size if isinstance(operation.work, Collective) else 0


def _kind(operation: Operation) -> object:
    work = operation.work
    return (work.axis, work.algorithm) if isinstance(work, Collective) else None


def _before(name: str, waits: Mapping[str, Collection[str]]) -> set[str]:
    found: set[str] = set()
    open_ = list(waits[name])
    while open_:
        one = open_.pop()
        if one not in found:
            found.add(one)
            open_ += waits.get(one, ())
    return found


def _cycle(waits: Mapping[str, Collection[str]]) -> str | None:
    """An operation that can never start."""
    left = {name: len(others) for name, others in waits.items()}
    followers: dict[str, list[str]] = {}
    for name, others in waits.items():
        for other in others:
            followers.setdefault(other, []).append(name)
    ready = [name for name, count in left.items() if not count]
    while ready:
        name = ready.pop()
        del left[name]
        for follower in followers.get(name, ()):
            left[follower] -= 1
            if not left[follower]:
                ready.append(follower)
    return min(left, default=None)


# --- the timeline --------------------------------------------------------------------------------


def timeline(
    workload: Workload, program: Program, result: Result, start: Collection[Part], exclusive: Exclusive
) -> list[str]:
    """What is against a recorded timeline; `start` are the parts that are lit when the iteration begins."""
    found: list[str] = []
    for stage, operations in enumerate(workload.stages):
        times = _times(result.timelines[stage])
        durations = dict(zip(program.stages[stage].names, program.stages[stage].durations, strict=True))
        for name in times.keys() - {op.name for op in operations}:
            found.append(f"stage {stage}: {name} runs and is no operation")
        for op in operations:
            spent = sum(i.end - i.start for i in times.get(op.name, ()))
            if not isinstance(op.work, Receive) and spent != durations[op.name]:
                found.append(f"stage {stage}: {op.name} takes {spent} ps instead of {durations[op.name]}")
        found += [f"stage {stage}: {text}" for text in _overlaps(result.timelines[stage], program)]
    found += _late(workload, result)
    return [*found, *_dark(workload, result, start, exclusive)]


def _times(lane: Sequence[Interval]) -> dict[str, list[Interval]]:
    found: dict[str, list[Interval]] = {}
    for interval in lane:
        if interval.activity not in _IDLE:
            found.setdefault(interval.what, []).append(interval)
    return found


def _late(workload: Workload, result: Result) -> Iterator[str]:
    """Operations that start before all that they wait for has ended."""
    begin: dict[tuple[int, str], int] = {}
    end: dict[tuple[int, str], int] = {}
    for stage, lane in enumerate(result.timelines):
        for name, intervals in _times(lane).items():
            begin[stage, name] = min(i.start for i in intervals)
            end[stage, name] = max(i.end for i in intervals)
    for stage, operations in enumerate(workload.stages):
        for op in operations:
            if isinstance(op.work, Send):
                end[op.work.to, op.work.lands] = end.get((stage, op.name), 0)
    if end and max(end.values()) > result.iteration:
        yield f"the iteration ends at {result.iteration} ps, and an operation at {max(end.values())} ps"
    for stage, operations in enumerate(workload.stages):
        waits = {op.name: op.after for op in operations}
        for op in operations:
            if (stage, op.name) not in begin:
                continue
            for name in _timed(op.after, stage, waits, end):
                if end[stage, name] > begin[stage, op.name]:
                    yield f"stage {stage}: {op.name} starts before {name} has ended"


def _timed(
    names: Iterable[str], stage: int, waits: Mapping[str, Sequence[str]], end: Mapping[tuple[int, str], int]
) -> Iterator[str]:
    """These operations; in place of those that take no time and are not shown, what they wait for."""
    for name in names:
        if (stage, name) in end:
            yield name
        else:
            yield from _timed(waits[name], stage, waits, end)


def _overlaps(lane: Sequence[Interval], program: Program) -> Iterator[str]:
    """Two things at once on one unit: the compute stream, the stream of traffic, the ports of one part.

    What an operation over circuits does inside its domain, before and after, is not of the stream of those that stay
    there: the model lets it run beside them.
    """
    crossing = {interval.what for interval in lane if interval.part is not None}
    units: dict[object, list[Interval]] = {}
    for interval in lane:
        if interval.activity is Activity.COMPUTE:
            units.setdefault("compute", []).append(interval)
        elif interval.activity not in _IDLE:
            unit: object = "traffic" if program.timetable is None else interval.part or "inside"
            if unit == "inside" and interval.what in crossing:
                continue
            units.setdefault(unit, []).append(interval)
    for intervals in units.values():
        busy = sorted((i for i in intervals if i.end > i.start), key=lambda i: (i.start, i.end))
        for one, other in pairwise(busy):
            if other.start < one.end:
                yield f"{one.what} and {other.what} run at once on one unit"


def _dark(workload: Workload, result: Result, start: Collection[Part], exclusive: Exclusive) -> Iterator[str]:
    """Transfers outside the time for which their part is lit, and exclusive parts lit (or being lit) together."""
    taken, lit = _lit(result, start)
    if lit is None:
        yield "a change takes away a part that is not there, or brings one that is"
        return
    parts = sorted(lit)
    for at, one in enumerate(parts):
        for other in parts[at + 1 :]:
            if exclusive(one, other) and any(a < d and c < b for a, b in taken[one] for c, d in taken[other]):
                yield f"{one} and {other} share a port and are lit together"
    for stage, operations in enumerate(workload.stages):
        of = {op.name: op for op in operations}
        for interval in result.timelines[stage]:
            part = _part(interval, of.get(interval.what), stage)
            if part is not None and not any(a <= interval.start and interval.end <= b for a, b in lit.get(part, ())):
                yield f"stage {stage}: {interval.what} runs while {part} is dark"


Spans = dict[Part, list[tuple[int, int]]]


def _lit(result: Result, start: Collection[Part]) -> tuple[Spans, Spans | None]:
    """When each part has its ports (from the start of the change that brings it), and when it is lit."""
    forever = max([result.iteration, *(change.lit for change in result.changes)]) + 1
    since: dict[Part, tuple[int, int]] = dict.fromkeys(start, (-1, -1))
    taken: Spans = {}
    lit: Spans = {}

    def close(part: Part, end: int) -> None:
        begin, bright = since.pop(part)
        taken.setdefault(part, []).append((begin, end))
        lit.setdefault(part, []).append((bright, end))

    for change in sorted(result.changes, key=_moment):
        if not change.went <= since.keys() or change.came & (since.keys() - change.went):
            return {}, None
        for part in sorted(change.went):
            close(part, change.drained)
        since.update(dict.fromkeys(change.came, (change.drained, change.lit)))
    for part in sorted(since):
        close(part, forever)
    return taken, lit


def _moment(change: Change) -> int:
    return change.drained


def _part(interval: Interval, operation: Operation | None, stage: int) -> Part | None:
    """The circuits that an interval uses, if any."""
    if interval.part is not None or operation is None or isinstance(operation.work, Compute):
        return interval.part
    if interval.activity is Activity.PP and isinstance(operation.work, Send):
        return join_of(stage, operation.work.to)
    return ring_of(stage) if interval.activity is Activity.DP else None
