"""Configurations by stage bits, as the published Opus controller and simulator know them.

A configuration is a number with one bit a pipeline stage: 1 joins the stage to neighbours whose bit is 1 too,
0 gives it its data-parallel ring. Only plans fit whose circuits are one such ring a stage and such joins, each
held in one step.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from opusc.diagnostics import Diagnostics, Label
from opusc.plan.plan import Plan, PlannedPhase, Scoping

__all__ = ["StageParts", "stage_parts"]

_DATA_AXES = frozenset({"dp", "dp.shard", "dp.replicate", "cp"})


@dataclass(frozen=True)
class StageParts:
    """`ring[s]` is the part of stage s, or None; `join` the parts by (lower stage, next stage)."""

    stages: int
    ring: tuple[int | None, ...]
    join: Mapping[tuple[int, int], int]

    def joined(self, bits: tuple[int, ...]) -> list[tuple[int, int]]:
        """The joins between stages whose bits are both set, `bits[s]` being that of stage s."""
        return [pair for pair in self.join if bits[pair[0]] and bits[pair[1]]]


def stage_parts(plan: Plan, target: str, sink: Diagnostics | None = None) -> StageParts | None:
    """The parts by stage and by join; None, with the reasons in the sink, for plans that have others."""
    sink = Diagnostics() if sink is None else sink
    drawn = {part.phase for part in plan.parts}
    phases = [phase for phase in plan.phases if phase.index in drawn]
    fitting = [_fits(phase, plan, target, sink) for phase in phases]
    for scoping in (Scoping.STAGE, Scoping.JOIN):
        rivals = [p for p, fits in zip(phases, fitting, strict=True) if fits and p.scoping is scoping]
        for rival in rivals[1:]:
            _report_rival(rivals[0], rival, target, sink)
    if sink.has_errors:
        return None
    ring: list[int | None] = [None] * plan.model.job.parallelism.pp
    join: dict[tuple[int, int], int] = {}
    for part in plan.parts:
        scope = plan.phases[part.phase].scopes[part.scope]
        if len(scope) == 1:
            ring[scope[0]] = part.index
        else:
            join[scope[0], scope[1]] = part.index
    found = StageParts(len(ring), tuple(ring), join)
    _report_clashes(plan, found, target, sink)
    return None if sink.has_errors else found


def _fits(phase: PlannedPhase, plan: Plan, target: str, sink: Diagnostics) -> bool:
    reason, way_out = _misfit(phase, plan)
    if reason:
        sink.error(
            "OPUS601",
            f"target `{target}` cannot say phase `{phase.name}`: {reason}",
            phase.spec.span,
            notes=["the format knows one data-parallel ring a pipeline stage and links between neighbouring stages"],
            help=way_out,
        )
    return not reason


def _misfit(phase: PlannedPhase, plan: Plan) -> tuple[str, str]:
    """Why a phase with circuits cannot be said, and what to do; empty when it can."""
    elsewhere = "leave the target out (`-t plan` states every phase)"
    pp = plan.model.job.parallelism.pp
    if phase.scoping is Scoping.JOB:
        return "its circuits span the whole job", elsewhere
    if phase.scoping is Scoping.STAGE and not set(phase.spec.axes) <= _DATA_AXES:
        return f"it runs over {' and '.join(phase.spec.axes)}, not over data parallelism", elsewhere
    if phase.step_count > 1:
        way_out = "give each GPU more NIC ports, so that the topology fits in one step"
        return f"it takes {phase.step_count} steps, and a stage has one state for it", way_out
    used = [phase.scopes[part.scope] for part in plan.parts if part.phase == phase.index]
    if phase.scoping is Scoping.JOIN:
        far = [scope for scope in used if scope[1] != (scope[0] + 1) % pp]
        if far:
            return f"it joins stages {far[0][0]} and {far[0][1]}, which are not neighbours", elsewhere
    return "", ""


def _report_rival(first: PlannedPhase, second: PlannedPhase, target: str, sink: Diagnostics) -> None:
    where = "inside a stage" if first.scoping is Scoping.STAGE else "between stages"
    sink.error(
        "OPUS601",
        f"target `{target}` cannot tell phase `{second.name}` from phase `{first.name}`: both have circuits {where}",
        second.spec.span,
        secondary=[] if first.spec.span == second.spec.span else [Label(first.spec.span, f"`{first.name}`")],
        notes=["the format keeps one bit a pipeline stage: joined to its neighbours, or in its data-parallel ring"],
        help="leave the target out (`-t plan` states every phase), or let one of the phases stay inside the domains",
    )


def _report_clashes(plan: Plan, found: StageParts, target: str, sink: Diagnostics) -> None:
    """Parts that exclude each other although some number sets both: only relays through other stages do that."""
    for a, b in plan.exclusions.tolist():
        stages = [plan.phases[plan.parts[p].phase].scopes[plan.parts[p].scope] for p in (a, b)]
        wanted = [{s: len(scope) - 1 for s in scope} for scope in stages]  # stage -> bit
        if any(wanted[0][s] != wanted[1][s] for s in wanted[0].keys() & wanted[1].keys()):
            continue
        names = [plan.parts[p].name for p in (a, b)]
        sink.error(
            "OPUS606",
            f"target `{target}` has configurations with both `{names[0]}` and `{names[1]}`, which share NIC ports here",
            plan.phases[plan.parts[b].phase].spec.span,
            notes=[
                "the format holds every ring whose stage has bit 0 and every join whose two stages have bit 1",
                "stages share ports when one stage's traffic is relayed through GPUs of another",
            ],
            help="choose degrees so that a stage fills whole nodes",
        )
        return
