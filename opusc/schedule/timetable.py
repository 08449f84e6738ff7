"""The order in which a stage's operations take their units and the parts their ports, fixed before circuits are.

A list scheduling of the operations with every link present gives it: a unit that falls free takes the first ready
operation in the workload's order. Circuits then only make operations wait, so an iteration is a sum of maxima of
sums: it never gets shorter with a longer delay, and no order can deadlock.

Units of a rank: one compute stream, one stream of traffic inside its domain, and its ports. Traffic of one rank over
parts that share a port takes turns, at the full rate; traffic over parts that share none may overlap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from opusc.schedule.circuits import Part

__all__ = ["COMPUTING", "Row", "Tasks", "Timetable", "arrange"]

#: In place of a route: the compute stream.
COMPUTING = -1


@dataclass(frozen=True, slots=True, eq=False)
class Tasks:
    """Operations before they are arranged, as columns; numbered stage by stage, within a stage the preferred one first.

    `route`: what each runs over, `times`: ps on each leg of the route (one for compute), `children`: tasks that wait
    for it, `waits`: how many it waits for; a negative number leaves it out.
    """

    stage: Sequence[int]
    route: Sequence[int]
    times: Sequence[tuple[int, ...]]
    children: Sequence[Sequence[int]]
    waits: Sequence[int]


#: stage, number of the operation (through all stages), rows that must have ended, route, time of each leg, their sum.
Row = tuple[int, int, tuple[int, ...], int, tuple[int, ...], int]


@dataclass(frozen=True, slots=True, eq=False)
class Timetable:
    """Rows in the order in which they start with all links present.

    `routes[r]` are the parts of route r, one after another (negative: inside a domain; none: no traffic at all).
    `held` are the parts that hold at the start: those that the iteration before left behind. `switched[r]`: some part
    of the route shares a port with another part. `holds[p]` is how long part p stays once it is lit (ps).
    """

    parts: tuple[Part, ...]
    conflicts: tuple[tuple[int, ...], ...]
    routes: tuple[tuple[int, ...], ...]
    switched: tuple[bool, ...]
    rows: tuple[Row, ...]
    held: tuple[int, ...]
    holds: tuple[int, ...]


def arrange(
    tasks: Tasks,
    parts: tuple[Part, ...],
    conflicts: tuple[tuple[int, ...], ...],
    routes: tuple[tuple[int, ...], ...],
    holds: tuple[int, ...] = (),
) -> Timetable:
    """The timetable. Tasks that a cycle of dependencies keeps from starting have no row."""
    clash = _clashes(routes, conflicts)
    total = [times[0] if len(times) == 1 else sum(times) for times in tasks.times]
    order = _order(tasks, total, clash)
    rows = _rows(tasks, total, order, clash)
    switched = tuple(any(part >= 0 and conflicts[part] for part in route) for route in routes)
    held = _left_behind(conflicts, [routes[row[3]] for row in rows if row[3] >= 0 and switched[row[3]]])
    return Timetable(parts, conflicts, routes, switched, rows, held, holds or (0,) * len(parts))


def _clashes(routes: Sequence[tuple[int, ...]], conflicts: Sequence[tuple[int, ...]]) -> list[frozenset[int]]:
    """For each route, the routes (itself too) that cannot be used by the same rank at once."""
    on = [frozenset(part for part in route if part >= 0) for route in routes]
    near = [own.union(*(conflicts[part] for part in own)) for own in on]
    return [
        frozenset(
            other
            for other in range(len(routes))
            if near[r] & on[other] or (routes[r] and routes[other] and not on[r] and not on[other])
        )
        for r in range(len(routes))
    ]


def _order(tasks: Tasks, total: Sequence[int], clash: Sequence[frozenset[int]]) -> list[int]:
    """Tasks in the order in which they start when every link is present."""
    stage_of, route_of, children, missing = tasks.stage, tasks.route, tasks.children, list(tasks.waits)
    stages = 1 + max(stage_of, default=0)
    ready: list[dict[int, list[int]]] = [{} for _ in range(stages)]
    active: list[set[int]] = [set() for _ in range(stages)]
    events: list[tuple[int, int]] = []
    order: list[int] = []
    changed = set(range(stages))
    for number, waits in enumerate(missing):
        if not waits:
            heappush(ready[stage_of[number]].setdefault(route_of[number], []), number)
    now = 0
    while True:
        for stage in sorted(changed):
            queues, busy = ready[stage], active[stage]
            for number, route in sorted((queue[0], route) for route, queue in queues.items() if queue):
                if busy and (route in busy if route == COMPUTING else not busy.isdisjoint(clash[route])):
                    continue
                heappop(queues[route])
                busy.add(route)
                heappush(events, (now + total[number], number))
                order.append(number)
        if not events:
            return order
        changed.clear()
        now = events[0][0]
        while events and events[0][0] == now:
            number = heappop(events)[1]
            stage = stage_of[number]
            active[stage].discard(route_of[number])
            changed.add(stage)
            for child in children[number]:
                missing[child] -= 1
                if not missing[child]:
                    stage = stage_of[child]
                    heappush(ready[stage].setdefault(route_of[child], []), child)
                    changed.add(stage)


def _rows(tasks: Tasks, total: Sequence[int], order: Sequence[int], clash: Sequence[frozenset[int]]) -> tuple[Row, ...]:
    """Rows whose predecessors include whoever had the unit before."""
    stage_of, route_of, children = tasks.stage, tasks.route, tasks.children
    before: list[list[int]] = [[] for _ in total]
    latest: list[dict[int, int]] = [{} for _ in range(1 + max(stage_of, default=0))]
    rows: list[Row] = []
    for at, number in enumerate(order):
        stage, route, own = stage_of[number], route_of[number], before[number]
        last = latest[stage]
        if route == COMPUTING:
            if route in last:
                own.append(last[route])
        else:
            own += [place for other, place in last.items() if other in clash[route]]
        last[route] = at
        for child in children[number]:
            before[child].append(at)
        rows.append((stage, number, tuple(own), route, tasks.times[number], total[number]))
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
