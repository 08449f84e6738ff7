"""The order in which a stage's operations take their units and the parts their ports, fixed before circuits are.

A list scheduling of the operations with every link present gives it: a unit that falls free takes the first ready
operation in the workload's order. Circuits then only make operations wait, so an iteration is a sum of maxima of
sums: it never gets shorter with a longer delay, and no order can deadlock.

Units of a rank: one compute stream, one stream of traffic inside its domain, and its ports. Traffic of one rank over
parts that share a port takes turns, at the full rate; traffic over parts that share none may overlap.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from opusc.schedule.circuits import Part

__all__ = ["COMPUTING", "Row", "Task", "Timetable", "arrange"]

#: In place of a route: the compute stream.
COMPUTING = -1


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """An operation before it is arranged. `route`: what it runs over, `times`: ps on each leg of the route (one for
    compute), `children`: tasks that wait for it."""

    stage: int
    route: int
    times: tuple[int, ...]
    children: tuple[int, ...]


#: stage, number of the operation (through all stages), rows that must have ended, route, time of each leg, their sum.
Row = tuple[int, int, tuple[int, ...], int, tuple[int, ...], int]


@dataclass(frozen=True, slots=True, eq=False)
class Timetable:
    """Rows in the order in which they start with all links present.

    `routes[r]` are the parts of route r, one after another (negative: inside a domain). `held` are the parts that hold
    at the start: those that the iteration before left behind. `switched[r]`: some part of the route shares a port with
    another part. `holds[p]` is how long part p stays once it is lit (ps).
    """

    parts: tuple[Part, ...]
    conflicts: tuple[tuple[int, ...], ...]
    routes: tuple[tuple[int, ...], ...]
    switched: tuple[bool, ...]
    rows: tuple[Row, ...]
    held: tuple[int, ...]
    holds: tuple[int, ...]


def arrange(
    tasks: Sequence[Task],
    waits: Sequence[int],
    idle: Sequence[bool],
    parts: tuple[Part, ...],
    conflicts: tuple[tuple[int, ...], ...],
    routes: tuple[tuple[int, ...], ...],
    holds: tuple[int, ...] = (),
) -> Timetable:
    """The timetable. Tasks are numbered stage by stage, within a stage the preferred one first; `waits` are how many
    others each waits for. Idle tasks are left out, and so are those that a cycle of dependencies keeps from starting.
    """
    clash = _clashes(routes, conflicts)
    order = list(_starts(tasks, list(waits), idle, clash))
    rows = _rows(tasks, order, clash)
    switched = tuple(any(part >= 0 and conflicts[part] for part in route) for route in routes)
    held = _left_behind(conflicts, [routes[row[3]] for row in rows if row[3] >= 0 and switched[row[3]]])
    return Timetable(parts, conflicts, routes, switched, rows, held, holds or (0,) * len(parts))


def _clashes(routes: Sequence[tuple[int, ...]], conflicts: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """For each route, the routes (itself too) that cannot be used by the same rank at once."""
    on = [frozenset(part for part in route if part >= 0) for route in routes]
    near = [own.union(*(conflicts[part] for part in own)) for own in on]
    return [
        tuple(other for other in range(len(routes)) if near[r] & on[other] or not (on[r] or on[other]))
        for r in range(len(routes))
    ]


def _starts(
    tasks: Sequence[Task], missing: list[int], idle: Sequence[bool], clash: Sequence[tuple[int, ...]]
) -> Iterator[int]:
    """Tasks in the order in which they start when every link is present."""
    stages = 1 + max((task.stage for task in tasks), default=0)
    ready: list[dict[int, list[int]]] = [{} for _ in range(stages)]
    active: list[set[int]] = [set() for _ in range(stages)]
    events: list[tuple[int, int]] = []
    changed = set(range(stages))
    for number, task in enumerate(tasks):
        if not missing[number] and not idle[number]:
            heappush(ready[task.stage].setdefault(task.route, []), number)
    now = 0
    while True:
        for stage in sorted(changed):
            busy = active[stage]
            waiting = sorted((queue[0], route) for route, queue in ready[stage].items() if queue)
            for number, route in waiting:
                taken = route in busy if route == COMPUTING else any(other in busy for other in clash[route])
                if not taken:
                    heappop(ready[stage][route])
                    busy.add(route)
                    heappush(events, (now + sum(tasks[number].times), number))
                    yield number
        if not events:
            return
        changed.clear()
        now = events[0][0]
        while events and events[0][0] == now:
            _, number = heappop(events)
            task = tasks[number]
            active[task.stage].discard(task.route)
            changed.add(task.stage)
            for child in task.children:
                missing[child] -= 1
                if not missing[child]:
                    other = tasks[child]
                    heappush(ready[other.stage].setdefault(other.route, []), child)
                    changed.add(other.stage)


def _rows(tasks: Sequence[Task], order: Sequence[int], clash: Sequence[tuple[int, ...]]) -> tuple[Row, ...]:
    """Rows whose predecessors include whoever had the unit before."""
    place = {number: at for at, number in enumerate(order)}
    before: list[list[int]] = [[] for _ in order]
    for number, at in place.items():
        for child in tasks[number].children:
            if child in place:
                before[place[child]].append(at)
    latest: dict[tuple[int, int], int] = {}
    rows: list[Row] = []
    for at, number in enumerate(order):
        task = tasks[number]
        own = before[at]
        for route in (COMPUTING,) if task.route == COMPUTING else clash[task.route]:
            if (last := latest.get((task.stage, route))) is not None:
                own.append(last)
        latest[task.stage, task.route] = at
        rows.append((task.stage, number, tuple(own), task.route, task.times, sum(task.times)))
    return tuple(rows)


def _left_behind(conflicts: Sequence[tuple[int, ...]], used: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The parts that hold when these routes have been used in this order."""
    held: dict[int, None] = {}
    for route in used:
        for part in route:
            if part >= 0 and part not in held:
                for other in conflicts[part]:
                    held.pop(other, None)
                held[part] = None
    return tuple(sorted(held))
