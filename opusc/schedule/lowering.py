"""From operations to a timetable over the parts of a plan."""

from collections.abc import Callable

from opusc.schedule.carriers import Join, Legs, Network, legs_of, send_legs
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
    Workload,
    WorkloadError,
)
from opusc.schedule.timetable import COMPUTING, Task, arrange
from opusc.schedule.timing import Accelerator, Rates, compute_time

__all__ = ["lower_onto"]


def lower_onto(workload: Workload, gpu: Accelerator, rates: Rates, network: Network) -> Program:
    """Attach times and parts to the operations, and arrange them. Raises WorkloadError where they form no schedule."""
    numbers = _numbered(workload)
    legs = _legs(gpu, rates, network)
    routes: dict[tuple[int, ...], int] = {}
    kinds: list[list[int]] = []
    works: list[tuple[int, tuple[int, ...]]] = []  # route and times of every task
    names: list[str] = []
    waits: list[int] = []
    children: list[list[int]] = []
    stage_of: list[int] = []
    landed: dict[int, int] = {}
    offset = 0
    for stage, operations in enumerate(workload.stages):
        kinds.append([])
        for operation in operations:
            work = operation.work
            found: tuple[int, tuple[int, ...]]
            if isinstance(work, Busy):
                kind, found = COMPUTE, (COMPUTING, (work.duration,))
            elif isinstance(work, Compute):
                kind, found = COMPUTE, (COMPUTING, (compute_time(work.flops, work.size, gpu),))
            else:
                kind = RECEIVE if isinstance(work, Receive) else SEND if isinstance(work, Send) else RING
                route, times = ((), ()) if isinstance(work, Receive) else legs(stage, work)
                found = (COMPUTING if isinstance(work, Receive) else routes.setdefault(route, len(routes)), times)
                if kind == RING and all(part < 0 for part in route):
                    kind = INSIDE
            kinds[-1].append(kind)
            works.append(found)
            names.append(operation.name)
            waits.append(len(operation.after))
            children.append([])
            stage_of.append(stage)
            if isinstance(work, Send):
                landed[offset] = _landing(numbers, stage, operation, work)
            offset += 1
    _link(workload, numbers, children)
    _receive(workload, numbers, children, landed)
    received = set(landed.values())
    tasks = [Task(stage_of[n], route, times, tuple(children[n])) for n, (route, times) in enumerate(works)]
    idle = [n in received for n in range(len(tasks))]
    table = arrange(tasks, waits, idle, network.parts, network.conflicts, tuple(routes), network.holds)
    if len(table.rows) + len(received) < len(tasks):
        done = {row[1] for row in table.rows} | received
        first = next(n for n in range(len(tasks)) if n not in done)
        raise WorkloadError(
            f"stage {stage_of[first]}: {names[first]} waits for something that never ends: "
            "its dependencies form a cycle"
        )
    stages, at = [], 0
    for column in kinds:
        end = at + len(column)
        durations = tuple(sum(times) for _, times in works[at:end])
        stages.append(LoweredStage(tuple(names[at:end]), tuple(column), durations, (), (), (), ()))
        at = end
    return Program(workload.name, workload.degrees.get("dp", 1), tuple(stages), table)


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


def _legs(gpu: Accelerator, rates: Rates, network: Network) -> Callable[[int, Collective | Send], Legs]:
    """Parts and times of traffic, each kind computed once."""
    known: dict[object, Legs] = {}

    def legs(stage: int, work: Collective | Send) -> Legs:
        if isinstance(work, Send):
            low, high = sorted((stage, work.to))
            key: object = (work.phase, low, high, work.size)
            if key not in known:
                join: Join | None = network.joins.get((work.phase, low, high))
                known[key] = send_legs(join, work.size, rates)
        else:
            key = (work.axis, stage, work.algorithm, work.size)
            if key not in known:
                carriers = network.carriers[work.axis, stage]
                known[key] = legs_of(carriers, work.algorithm, work.size, gpu, rates)
        return known[key]

    return legs
