"""The second look at schedules: what auto chose is legal, and each way of breaking it is found."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from opusc.diagnostics import Diagnostics
from opusc.driver import compile_file
from opusc.schedule import audit
from opusc.schedule.auto import Choice, Search
from opusc.schedule.circuits import join_of
from opusc.schedule.operations import Collective, Operation, Send, Workload
from opusc.schedule.simulation import Result
from opusc.schedule.timeline import Activity, Interval
from opusc.schedule.timing import MILLISECOND
from opusc.schedule.variants import variant_of

DATA = Path(__file__).parent / "data"


@cache
def chosen() -> Choice:
    """Figure 12 at 100 ms a change: gradients handed back first, reductions held."""
    variant = variant_of(compile_file(DATA / "fig12.opus").plan, Diagnostics())
    assert variant is not None
    return Search(variant).choose(100 * MILLISECOND)


def before() -> Workload:
    return chosen().variant.setting.workload


# --- the order -----------------------------------------------------------------------------------


def with_operations(workload: Workload, stage: int, change: Callable[[list[Operation]], list[Operation]]) -> Workload:
    stages = list(workload.stages)
    stages[stage] = tuple(change(list(stages[stage])))
    return replace(workload, stages=tuple(stages))


def first(operations: list[Operation], kind: type, axis: str = "dp") -> int:
    return next(
        at
        for at, op in enumerate(operations)
        if isinstance(op.work, kind) and (not isinstance(op.work, Collective) or op.work.axis == axis)
    )


def dropped(operations: list[Operation]) -> list[Operation]:
    gone = operations[first(operations, Collective)]
    return [
        replace(op, after=tuple(n for n in op.after if n != gone.name)) for op in operations if op.name != gone.name
    ]


def smaller(operations: list[Operation]) -> list[Operation]:
    at = first(operations, Collective)
    work = operations[at].work
    assert isinstance(work, Collective)
    operations[at] = replace(operations[at], work=replace(work, size=work.size // 2))
    return operations


def sends_less(operations: list[Operation]) -> list[Operation]:
    at = first(operations, Send)
    work = operations[at].work
    assert isinstance(work, Send)
    operations[at] = replace(operations[at], work=replace(work, size=work.size - 1))
    return operations


def before_its_gradient(operations: list[Operation]) -> list[Operation]:
    at = first(operations, Collective)
    operations[at] = replace(operations[at], after=())
    return operations


def waits_for_itself(operations: list[Operation]) -> list[Operation]:
    at = first(operations, Collective)
    follower = next(op for op in operations if operations[at].name in op.after)
    operations[at] = replace(operations[at], after=(*operations[at].after, follower.name))
    return operations


def another(operations: list[Operation]) -> list[Operation]:
    return [*operations, replace(operations[0], name="one more")]


def twice(operations: list[Operation]) -> list[Operation]:
    return [*operations, operations[-1]]


ORDERS: dict[str, tuple[Callable[[list[Operation]], list[Operation]], str]] = {
    "a reduction dropped": (dropped, "bytes instead of"),
    "a reduction of fewer bytes": (smaller, "bytes instead of"),
    "a message of fewer bytes": (sends_less, "bytes instead of"),
    "a reduction before its gradient": (before_its_gradient, "no longer waits for"),
    "operations that wait for each other": (waits_for_itself, "waits for itself"),
    "one more operation": (another, "one more is new"),
    "an operation twice": (twice, "is there twice"),
}


def test_what_was_chosen_does_the_same_work_in_a_legal_order() -> None:
    assert str(chosen().trial.order) != "as written"
    assert audit.reordering(before(), chosen().workload) == []


@pytest.mark.parametrize("fault", ORDERS)
def test_every_illegal_order_is_found(fault: str) -> None:
    change, text = ORDERS[fault]
    found = audit.reordering(before(), with_operations(chosen().workload, 1, change))
    assert any(text in line for line in found), found


def test_bytes_moved_from_one_reduction_to_another_are_found() -> None:
    """The sum is right, and one reduction starts before its gradient is whole."""

    def moved(operations: list[Operation]) -> list[Operation]:
        at = [i for i, op in enumerate(operations) if isinstance(op.work, Collective) and op.work.axis == "dp"][:2]
        works = [operations[i].work for i in at]
        for i, work, more in zip(at, works, (1, -1), strict=True):
            assert isinstance(work, Collective)
            operations[i] = replace(operations[i], work=replace(work, size=work.size + more))
        return operations

    found = audit.reordering(before(), with_operations(chosen().workload, 1, moved))
    assert any("does something else" in line for line in found), found


# --- the timeline --------------------------------------------------------------------------------


def against(result: Result) -> list[str]:
    c = chosen()
    return audit.timeline(c.workload, c.program, result, c.start, c.variant.exclusive)


def with_interval(result: Result, activity: Activity, change: Callable[[Interval], list[Interval]]) -> Result:
    """The last interval of a kind in stage 1, changed."""
    lane = list(result.timelines[1])
    at = max(i for i, interval in enumerate(lane) if interval.activity is activity)
    lane[at : at + 1] = change(lane[at])
    return replace(result, timelines=(result.timelines[0], tuple(lane), *result.timelines[2:]))


def moved(by: int) -> Callable[[Interval], list[Interval]]:
    return lambda i: [replace(i, start=i.start + by, end=i.end + by)]


def with_change(result: Result, at: int, **fields: Any) -> Result:
    changes = sorted(result.changes, key=lambda change: change.drained)
    changes[at] = replace(changes[at], **fields)
    return replace(result, changes=tuple(changes))


TIMELINES: dict[str, tuple[Callable[[Result], Result], str]] = {
    "a message before its gradient": (lambda r: with_interval(r, Activity.PP, moved(-(10**9))), "starts before"),
    "a computation twice": (lambda r: with_interval(r, Activity.COMPUTE, lambda i: [i, i]), "ps instead of"),
    "a computation cut short": (
        lambda r: with_interval(r, Activity.COMPUTE, lambda i: [replace(i, end=i.end - 1)]),
        "ps instead of",
    ),
    "a reduction that never ran": (lambda r: with_interval(r, Activity.DP, lambda i: []), "takes 0 ps instead of"),
    "an operation of nobody": (
        lambda r: with_interval(r, Activity.COMPUTE, lambda i: [i, Interval(i.activity, i.end, i.end, "x")]),
        "x runs and is no operation",
    ),
    "two computations at once": (
        lambda r: with_interval(r, Activity.COMPUTE, moved(-1)),
        "run at once on one unit",
    ),
    "an iteration that ends too early": (lambda r: replace(r, iteration=r.iteration - 1), "the iteration ends at"),
    "a change that is slower": (
        lambda r: with_change(r, 0, lit=sorted(r.changes, key=lambda c: c.drained)[0].lit + 10**13),
        "while",
    ),
    "a change that never was": (lambda r: replace(r, changes=r.changes[1:]), "takes away a part that is not there"),
    "parts that stay lit": (lambda r: with_change(r, -1, went=frozenset()), "are lit together"),
    "circuits from nowhere": (
        lambda r: with_change(r, 0, went=frozenset([join_of(2, 3), join_of(0, 1), join_of(1, 2)])),
        "takes away a part that is not there",
    ),
}


def test_the_timeline_of_what_was_chosen_keeps_to_it_and_to_the_circuits() -> None:
    assert against(chosen().result) == []


@pytest.mark.parametrize("fault", TIMELINES)
def test_every_illegal_timeline_is_found(fault: str) -> None:
    change, text = TIMELINES[fault]
    found = against(change(chosen().result))
    assert any(text in line for line in found), found[:5]
