"""A sequence of changes: does every configuration on the way exist, and every change lead safely to the next?

A schedule says which parts go and come, and from when to when circuits are dark meanwhile. That the order of a change
(disconnects first) is safe between any two configurations is proved once by Z3 (`lemmas.changes_are_safe`); that parts
which may hold together share no port is proved of the plan. What is left to show of a schedule is shown here, change by
change, on the circuits themselves.

Changes may overlap in time. What a change disconnects is free as soon as it begins; the rest of its time is that of
the circuits that it connects, and no other change may touch their ports before they are lit.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opusc.plan.plan import Plan
from opusc.plan.transitions import transition
from opusc.verify.finding import TRANSITION, Finding
from opusc.verify.report import Method, Obligation
from opusc.verify.transitions import check_transition

__all__ = ["Planned", "check_sequence"]


@dataclass(frozen=True, slots=True)
class Planned:
    """One change: the parts (by index) that go and come, dark from `begin` to `end` (any unit of time)."""

    went: frozenset[int]
    came: frozenset[int]
    begin: int
    end: int


def check_sequence(
    plan: Plan, start: Iterable[int], changes: Sequence[Planned], period: int | None = None
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
    for number, change in enumerate(changes, 1):
        found += _one(plan, number, change, held, changes[: number - 1])
        if found:
            return (), found
        step = transition(plan, change.went, change.came)
        circuits += len(step.disconnect) + len(step.connect)
        found += check_transition(plan, step)
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


def _one(plan: Plan, number: int, change: Planned, held: set[int], before: Sequence[Planned]) -> list[Finding]:
    """One change against the parts that hold, and against those that are still under way."""
    if change.end < change.begin or (before and change.begin < before[-1].begin):
        return [Finding(TRANSITION, f"change {number} ends before it begins, or before an earlier one")]
    if not change.went <= held:
        return [_finding(plan, number, "takes away parts that do not hold", change.went - held)]
    kept = held - change.went
    if change.came & kept:
        return [_finding(plan, number, "brings parts that hold already", change.came & kept)]
    if not plan.compatible(kept | change.came):
        clash = {p for p in kept | change.came if plan.excluded_with[p] & (kept | change.came)}
        return [_finding(plan, number, "leads to parts that exclude each other", clash)]
    touched = change.went | change.came
    for other in before:
        if other.end > change.begin:
            near = {p for p in touched if p in other.came or plan.excluded_with[p] & other.came}
            if near:
                return [_finding(plan, number, "begins while the circuits of its ports are still changing", near)]
    return []


def _finding(plan: Plan, number: int, text: str, parts: Iterable[int]) -> Finding:
    return Finding(TRANSITION, f"change {number} {text}: {_names(plan, parts)}")


def _names(plan: Plan, parts: Iterable[int]) -> str:
    return ", ".join(plan.parts[part].name for part in sorted(parts)) or "nothing"
