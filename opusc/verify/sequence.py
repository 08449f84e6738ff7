"""A sequence of changes: does every configuration on the way exist, and every change lead safely to the next?

A schedule says which parts go and come, and from when to when circuits are dark meanwhile. That the order of a change
(disconnects first) is safe between any two configurations is proved once by Z3 (`lemmas.changes_are_safe`); that parts
which may hold together share no port is proved of the plan. What is left to show of a schedule is shown here, change by
change, on the circuits themselves.

Changes may overlap in time. What a change disconnects is free as soon as it begins; the rest of its time is that of
the circuits that it connects, and no other change may touch their ports before they are lit.
"""

import time
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from opusc.plan.plan import Plan, PlannedChange
from opusc.plan.transitions import transition
from opusc.verify.finding import TRANSITION, Finding
from opusc.verify.report import Method, Obligation
from opusc.verify.transitions import check_transition

__all__ = ["check_schedule", "check_sequence"]


def check_schedule(plan: Plan) -> tuple[tuple[Obligation, ...], list[Finding]]:
    """The schedule of a plan that has one: its changes, iteration after iteration, and that its traffic meets light."""
    schedule = plan.schedule
    if schedule is None:
        return (), []
    held, found = check_sequence(plan, schedule.start, schedule.changes, schedule.period)
    if found:
        return (), found
    begun = time.perf_counter()
    for transfer in schedule.transfers:
        if not 0 <= transfer.part < len(plan.parts):
            return (), [Finding(TRANSITION, "a schedule names a part that the plan does not have")]
    lit = _lit(schedule.start, schedule.changes, schedule.period)
    for transfer in schedule.transfers:
        spans = lit.get(transfer.part, [])
        at = bisect_right(spans, (transfer.begin, schedule.period)) - 1
        if at < 0 or not transfer.begin <= transfer.end <= spans[at][1]:
            text = f"{transfer.operation} of stage {transfer.stage} runs while {plan.parts[transfer.part].name} is dark"
            return (), [Finding(TRANSITION, text, transfer.part, plan.parts[transfer.part].phase)]
    spent = (time.perf_counter() - begun) * 1000
    return (*held, Obligation("traffic meets light", Method.CHECKED, len(schedule.transfers), spent)), []


def _lit(start: Iterable[int], changes: Sequence[PlannedChange], period: int) -> dict[int, list[tuple[int, int]]]:
    """When each part carries light within an iteration."""
    since = dict.fromkeys(start, 0)
    found: dict[int, list[tuple[int, int]]] = {}
    for change in changes:
        for part in change.went:
            found.setdefault(part, []).append((since.pop(part), change.begin))
        since.update(dict.fromkeys(change.came, change.end))
    for part, begin in since.items():
        found.setdefault(part, []).append((begin, period))
    return found


def check_sequence(
    plan: Plan, start: Iterable[int], changes: Sequence[PlannedChange], period: int | None = None
) -> tuple[tuple[Obligation, ...], list[Finding]]:
    """Changes in the order in which they begin, from the parts held at the start.

    With a `period` they repeat: the last configuration must be the first, and every change over when the period is.
    """
    begun = time.perf_counter()
    held = set(start)
    found: list[Finding] = []
    circuits = 0
    named = held.union(*(change.went | change.came for change in changes))
    if not all(0 <= part < len(plan.parts) for part in named):
        return (), [Finding(TRANSITION, "a schedule names a part that the plan does not have")]
    if not plan.compatible(held):
        text = f"the iteration starts with parts that exclude each other: {_names(plan, held)}"
        return (), [Finding(TRANSITION, text)]
    first = frozenset(held)
    moved: dict[tuple[frozenset[int], frozenset[int]], int] = {}
    under_way: list[PlannedChange] = []
    for number, change in enumerate(changes, 1):
        if change.end < change.begin or (number > 1 and change.begin < changes[number - 2].begin):
            return (), [
                Finding(TRANSITION, f"change {number} is over before it begins, or begins before an earlier one")
            ]
        under_way = [other for other in under_way if other.end > change.begin]
        found += _one(plan, number, change, held, under_way)
        if found:
            return (), found
        key = change.went, change.came
        if key not in moved:
            step = transition(plan, *key)
            found += check_transition(plan, step)
            moved[key] = len(step.disconnect) + len(step.connect)
        circuits += moved[key]
        under_way.append(change)
        held = (held - change.went) | change.came
    if period is not None and any(change.end > period for change in changes):
        found.append(Finding(TRANSITION, "a change is not over when the iteration is"))
    if period is not None and frozenset(held) != first:
        text = f"the iteration ends with {_names(plan, held)} and starts with {_names(plan, first)}"
        found.append(Finding(TRANSITION, text))
    if found:
        return (), found
    spent = (time.perf_counter() - begun) * 1000
    kinds = ["every change leads from parts that may hold together to parts that may", "changes touch their parts only"]
    kinds += ["the last configuration is the first"] if period is not None else []
    counts = [len(changes), circuits, 1]
    return tuple(
        Obligation(name, Method.CHECKED, count, spent / len(kinds)) for name, count in zip(kinds, counts, strict=False)
    ), []


def _one(
    plan: Plan, number: int, change: PlannedChange, held: set[int], under_way: Sequence[PlannedChange]
) -> list[Finding]:
    """One change against the parts that hold, and against those that are still under way."""
    if not change.went <= held:
        return [_finding(plan, number, "takes away parts that do not hold", change.went - held)]
    kept = held - change.went
    if change.came & kept:
        return [_finding(plan, number, "brings parts that hold already", change.came & kept)]
    if not plan.compatible(kept | change.came):
        clash = {p for p in kept | change.came if plan.excluded_with[p] & (kept | change.came)}
        return [_finding(plan, number, "leads to parts that exclude each other", clash)]
    touched = change.went | change.came
    for other in under_way:
        near = {p for p in touched if p in other.came or plan.excluded_with[p] & other.came}
        if near:
            return [_finding(plan, number, "begins while the circuits of its ports are still changing", near)]
    return []


def _finding(plan: Plan, number: int, text: str, parts: Iterable[int]) -> Finding:
    return Finding(TRANSITION, f"change {number} {text}: {_names(plan, parts)}")


def _names(plan: Plan, parts: Iterable[int]) -> str:
    return ", ".join(plan.parts[part].name for part in sorted(parts)) or "nothing"
