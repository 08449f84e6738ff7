"""Configurations: sets of parts that a job holds together, one for each phase and step, and the changes between them.

A plan never lists all configurations that are possible. These are the ones that a controller without a time
model walks through: every stage in the same phase. They follow the job's `schedule` where it states one, and
else each phase in the plan's order, each of its steps in turn.
"""

from dataclasses import dataclass

from opusc.plan.plan import Plan
from opusc.plan.transitions import Transition, transition

__all__ = ["Configuration", "changes", "configurations", "walk"]


@dataclass(frozen=True, slots=True)
class Configuration:
    """`name` is the phase's, with its step or batch where there are several: `pp step 1`."""

    name: str
    parts: tuple[int, ...]


def configurations(plan: Plan) -> tuple[Configuration, ...]:
    """Each phase and step once, in the plan's order; parts that exclude each other take turns in batches."""
    found: list[Configuration] = []
    for phase in plan.phases:
        batches = [
            batch
            for step in range(phase.step_count)
            for batch in _batches(plan, [p.index for p in plan.parts if (p.phase, p.step) == (phase.index, step)])
        ]
        for number, parts in enumerate(batches):
            found.append(Configuration(phase.name + (f" step {number}" if len(batches) > 1 else ""), parts))
    return tuple(found)


def _batches(plan: Plan, parts: list[int]) -> list[tuple[int, ...]]:
    """Split parts into sets that may hold together, in order: each goes into the first set that takes it."""
    batches: list[list[int]] = []
    for part in parts:
        fitting = next((b for b in batches if not plan.excluded_with[part] & set(b)), None)
        if fitting is None:
            batches.append([part])
        else:
            fitting.append(part)
    return [tuple(batch) for batch in batches]


def walk(plan: Plan) -> tuple[Configuration, ...]:
    """The configurations of one iteration, in order: the job's schedule, or every phase once."""
    known = configurations(plan)
    if not plan.model.job.schedule:
        return known
    by_phase: dict[str, list[Configuration]] = {}
    for configuration in known:
        by_phase.setdefault(plan.phases[plan.parts[configuration.parts[0]].phase].name, []).append(configuration)
    return tuple(c for name in plan.model.job.schedule for c in by_phase.get(name, ()))


def changes(plan: Plan) -> tuple[tuple[Configuration, Configuration, Transition], ...]:
    """The different changes of one iteration after another, each once, in the order in which they first occur."""
    order = walk(plan)
    found: dict[tuple[str, str], tuple[Configuration, Configuration, Transition]] = {}
    for before, after in zip(order, (*order[1:], *order[:1]), strict=True):
        if before.parts != after.parts and (before.name, after.name) not in found:
            found[before.name, after.name] = (before, after, transition(plan, before.parts, after.parts))
    return tuple(found.values())
