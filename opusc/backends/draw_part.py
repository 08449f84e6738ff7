"""The circuits of a phase on one rail: groups as circles of domains, joins as columns of pipeline stages."""

from opusc.backends.draw_groups import Circles
from opusc.backends.draw_joins import Columns
from opusc.backends.part_links import View, lines_of
from opusc.plan.plan import Plan, Scoping

__all__ = ["part_counts", "part_dot", "view"]


def view(
    plan: Plan, phase: str, stage: int | None = None, step: int | None = None, rail: int | None = None
) -> View | None:
    """What to draw: a phase by name, one stage or (joins only) all, one step, one rail; the first where not said.

    None when the phase has no such circuits.
    """
    planned = next((p for p in plan.phases if p.name == phase), None)
    if planned is None:
        return None
    parts = [p for p in plan.parts if p.phase == planned.index and (step is None or p.step == step)]
    parts = [p for p in parts if stage is None or stage in planned.scopes[p.scope] or planned.scoping is Scoping.JOB]
    if not parts:
        return None
    parts = [p for p in parts if p.step == parts[0].step]
    if planned.scoping is not Scoping.JOIN:
        parts = parts[:1]
    return lines_of(plan, planned, parts, rail)


def part_counts(found: View) -> dict[str, int]:
    """What the drawing must account for, whatever it folds together."""
    return {"circuits": found.circuits}


def part_dot(plan: Plan, found: View) -> str:
    """The drawing of a view as DOT text."""
    if found.phase.scoping is Scoping.JOIN:
        return Columns(plan, found).draw()
    return Circles(plan, found).draw()
