"""`policy = auto` in a compile: the search at the program's own delay, and what it chose as a part of the plan."""

from collections.abc import Iterator
from dataclasses import replace

from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan, PlannedChange, Schedule, Transfer
from opusc.schedule.auto import Choice, Search
from opusc.schedule.circuits import Part, join_of, ring_of
from opusc.schedule.demands import dark
from opusc.schedule.operations import Operation, Send
from opusc.schedule.timeline import Activity, Interval
from opusc.schedule.variants import TurnsTooSlowlyError, variant_of

__all__ = ["choose", "scheduled"]


def choose(plan: Plan, sink: Diagnostics) -> Choice | None:
    """The shortest iteration at the program's own delay. None when there is no estimate to choose by, which the sink
    says (OPUS438, OPUS439), or nothing to choose, because no two parts share a port."""
    job = plan.model.job
    if not len(plan.exclusions):
        return None
    lacking = Diagnostics()
    variant = variant_of(plan, lacking)
    delay = dark(plan, lacking)
    if variant is None or delay is None:
        sink.error(
            "OPUS438",
            "`policy = auto` chooses by simulated iterations, and this one cannot be simulated",
            job.at("policy"),
            "nothing to choose by",
            notes=[d.message for d in lacking],
            help="state what is missing; or decide yourself, for example `policy = provisioned`",
        )
        return None
    try:
        return Search(variant).choose(delay)
    except TurnsTooSlowlyError as error:
        error.explain(job, sink)
        return None


def scheduled(choice: Choice) -> Plan:
    """The plan that was chosen, with its schedule."""
    variant, result = choice.variant, choice.result
    number = variant.indices
    changes = tuple(
        PlannedChange(frozenset(number[p] for p in c.went), frozenset(number[p] for p in c.came), c.drained, c.lit)
        for c in result.changes
    )
    start = frozenset(number[part] for part in choice.start)
    made = Schedule(choice.delay, result.iteration, start, changes, tuple(_transfers(choice)))
    return replace(variant.plan, schedule=made)


def _transfers(choice: Choice) -> Iterator[Transfer]:
    """The traffic over circuits, stage by stage, in order."""
    number = choice.variant.indices
    for stage, operations in enumerate(choice.workload.stages):
        of = {op.name: op for op in operations}
        for interval in choice.result.timelines[stage]:
            part = _part(interval, of.get(interval.what), stage)
            if part is not None:
                yield Transfer(stage, interval.what, number[part], interval.start, interval.end)


def _part(interval: Interval, operation: Operation | None, stage: int) -> Part | None:
    if interval.part is not None:
        return interval.part
    if interval.activity is Activity.DP:
        return ring_of(stage)
    if interval.activity is Activity.PP and operation is not None and isinstance(operation.work, Send):
        return join_of(stage, operation.work.to)
    return None
