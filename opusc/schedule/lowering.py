"""From operations to a timetable over the parts of a plan."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from opusc.schedule.carriers import Legs, Network, legs_of, send_legs
from opusc.schedule.operations import (
    COMPUTE,
    INSIDE,
    RECEIVE,
    RING,
    SEND,
    Busy,
    Collective,
    Compute,
    LoweredStage,
    Operation,
    Program,
    Receive,
    Send,
    Timed,
    Workload,
    WorkloadError,
)
from opusc.schedule.timetable import COMPUTING, Tasks, Timetable, arrange
from opusc.schedule.timing import Accelerator, Algorithm, Rates, compute_time

__all__ = ["lower_onto"]


def lower_onto(workload: Workload, gpu: Accelerator, rates: Rates, network: Network) -> Program:
    """Attach times and parts to the operations, and arrange them. Raises WorkloadError where they form no schedule."""
    numbers = _numbered(workload)
    legs = _legs(gpu, rates, network)
    routes: dict[tuple[int, ...], int] = {}
    columns = _Columns([], [], [], [], [], [])
    landed: dict[int, int] = {}
    for stage, operations in enumerate(workload.stages):
        for operation in operations:
            work = operation.work
            route = COMPUTING
            times: tuple[int, ...] = ()
            if isinstance(work, Busy):
                kind, times = COMPUTE, (work.duration,)
            elif isinstance(work, Compute):
                kind, times = COMPUTE, (compute_time(work.flops, work.size, gpu),)
            elif isinstance(work, Receive):
                kind = RECEIVE
            else:
                parts, times = legs(stage, work)
                route = routes.setdefault(parts, len(routes))
                kind = SEND if isinstance(work, Send) else RING if max(parts, default=-1) >= 0 else INSIDE
                if isinstance(work, Send):
                    landed[len(columns.kind)] = _landing(numbers, stage, operation, work)
            columns.add(stage, kind, route, times, operation)
    children: list[list[int]] = [[] for _ in columns.kind]
    _link(workload, numbers, children)
    _receive(workload, numbers, children, landed)
    waits = [-1 if kind == RECEIVE else count for kind, count in zip(columns.kind, columns.waits, strict=True)]
    tasks = Tasks(columns.stage, columns.route, columns.times, children, waits)
    table = arrange(tasks, network.parts, network.conflicts, tuple(routes), network.holds)
    if len(table.rows) + len(landed) < len(waits):
        _stuck(columns, table)
    return Program(workload.name, workload.degrees.get("dp", 1), columns.stages(len(workload.stages)), table)


@dataclass(slots=True)
class _Columns:
    """One entry an operation, through all stages."""

    stage: list[int]
    kind: list[int]
    route: list[int]
    times: list[tuple[int, ...]]
    name: list[str]
    waits: list[int]

    def add(self, stage: int, kind: int, route: int, times: tuple[int, ...], operation: Operation) -> None:
        self.stage.append(stage)
        self.kind.append(kind)
        self.route.append(route)
        self.times.append(times)
        self.name.append(operation.name)
        self.waits.append(len(operation.after))

    def stages(self, count: int) -> tuple[LoweredStage, ...]:
        found = []
        for stage in range(count):
            own = slice(bisect_left(self.stage, stage), bisect_right(self.stage, stage))
            durations = tuple(map(sum, self.times[own]))
            found.append(LoweredStage(tuple(self.name[own]), tuple(self.kind[own]), durations, (), (), (), ()))
        return tuple(found)


def _stuck(columns: _Columns, table: Timetable) -> None:
    started = {row[1] for row in table.rows}
    first = next(n for n, kind in enumerate(columns.kind) if n not in started and kind != RECEIVE)
    raise WorkloadError(
        f"stage {columns.stage[first]}: {columns.name[first]} waits for something that never ends: "
        "its dependencies form a cycle",
        columns.stage[first],
        columns.name[first],
    )


def _numbered(workload: Workload) -> list[dict[str, int]]:
    """The number of each operation by stage and name; numbers run through all stages."""
    found, at = [], 0
    for stage, operations in enumerate(workload.stages):
        table = {operation.name: at + i for i, operation in enumerate(operations)}
        if len(table) != len(operations):
            raise WorkloadError(f"stage {stage}: two operations have the same name")
        found.append(table)
        at += len(operations)
    return found


def _landing(numbers: list[dict[str, int]], stage: int, operation: Operation, work: Send) -> int:
    if not 0 <= work.to < len(numbers) or work.lands not in numbers[work.to]:
        raise WorkloadError(f"stage {stage}: {operation.name} has no receive {work.lands} in stage {work.to}")
    return numbers[work.to][work.lands]


def _link(workload: Workload, numbers: list[dict[str, int]], children: list[list[int]]) -> None:
    number = 0
    for stage, operations in enumerate(workload.stages):
        table = numbers[stage]
        for operation in operations:
            for name in operation.after:
                if name not in table:
                    raise WorkloadError(f"stage {stage}: {operation.name} waits for {name}, which is not there")
                children[table[name]].append(number)
            number += 1


def _receive(
    workload: Workload,
    numbers: list[dict[str, int]],
    children: list[list[int]],
    landed: dict[int, int],
) -> None:
    """What waits for a receive waits for its send instead; nothing is received that nobody sends."""
    expected = {
        numbers[stage][operation.name]: (stage, operation.name)
        for stage, operations in enumerate(workload.stages)
        for operation in operations
        if isinstance(operation.work, Receive)
    }
    for sender, receive in landed.items():
        if expected.pop(receive, None) is None:
            raise WorkloadError(f"operation {receive} is received twice, or is no receive")
        children[sender] += children[receive]
        children[receive] = []
    for stage, name in expected.values():
        raise WorkloadError(f"stage {stage}: {name} is never sent")


def _legs(gpu: Accelerator, rates: Rates, network: Network) -> Callable[[int, Collective | Timed | Send], Legs]:
    """Parts and times of traffic, each kind computed once."""
    known: dict[object, Legs] = {}

    def legs(stage: int, work: Collective | Timed | Send) -> Legs:
        key: object = (stage, work)
        if key not in known:
            if isinstance(work, Send):
                low, high = sorted((stage, work.to))
                known[key] = send_legs(network.joins.get((work.phase, low, high)), work.size, rates)
            elif isinstance(work, Timed):
                known[key] = _timed(stage, work)
            else:
                known[key] = legs_of(network.carriers[work.axis, stage], work.algorithm, work.size, gpu, rates)
        return known[key]

    def _timed(stage: int, work: Timed) -> Legs:
        """The legs of a collective of any size, stretched over the time."""
        if not work.axis:
            return (), ()
        parts, times = legs_of(network.carriers[work.axis, stage], Algorithm.ALL_REDUCE, 2**30, gpu, rates)
        whole = max(sum(times), 1)
        ends = [sum(times[: n + 1]) * work.duration // whole for n in range(len(times))]
        return parts, tuple(end - begin for begin, end in zip([0, *ends], ends, strict=False))

    return legs
