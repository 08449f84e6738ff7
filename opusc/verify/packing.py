"""First opinion on packing: packed phases are on ports of their own, so that their parts hold together."""

from collections.abc import Sequence
from itertools import combinations

from opusc.plan.packing import packed_phases
from opusc.plan.plan import Plan, PlannedPhase
from opusc.verify.finding import EXCLUSION, FORMULA, Finding
from opusc.verify.statement import Statement

__all__ = ["packing_findings", "packing_statements", "ports_are_apart"]


def packing_statements(plan: Plan) -> tuple[Statement, ...]:
    """No NIC port serves two packed phases, whatever the rank: shown of the ports that their links name."""
    packed = [phase for phase in plan.phases if phase.name in packed_phases(plan.model.job)]
    found = []
    for one, other in combinations(packed, 2):
        mine, others = _used(one), _used(other)
        if mine and others:
            found.append(ports_are_apart(mine, others, f"{one.name} and {other.name}", one.index))
    return tuple(found)


def ports_are_apart(mine: Sequence[int], others: Sequence[int], about: str, phase: int = -1) -> Statement:
    """No port is in both lists."""
    import z3

    port = z3.Int("port")
    both = (z3.Or([port == p for p in mine]), z3.Or([port == p for p in others]))
    return Statement("packed phases use no NIC port both", both, about=about, phase=phase)


def packing_findings(plan: Plan) -> list[Finding]:
    """Links keep to the ports of their phase, packed phases have as many as is stated, and exclude each other nowhere;
    under `policy = static` nothing excludes anything."""
    job = plan.model.job
    packed = packed_phases(job)
    every = tuple(range(plan.model.cluster.rail_nic.ports))
    found = []
    for phase in plan.phases:
        strange = [port for port in _used(phase) if port not in phase.ports]
        if strange:
            text = f"phase `{phase.name}` uses NIC port {strange[0]}, which it is not given"
            found.append(Finding(FORMULA, text, phase=phase.index))
        if phase.name not in packed and phase.ports != every:
            text = f"phase `{phase.name}` is kept to ports {_list(phase.ports)}, and is not packed"
            found.append(Finding(FORMULA, text, phase=phase.index))
        stated = packed.get(phase.name)
        if stated is not None and phase.instances and len(phase.ports) != stated:
            text = f"phase `{phase.name}` has {len(phase.ports)} ports, and the program gives it {stated}"
            found.append(Finding(FORMULA, text, phase=phase.index))
    return found + _together(plan, packed)


def _together(plan: Plan, packed: dict[str, int | None]) -> list[Finding]:
    for a, b in plan.exclusions.tolist():
        if not (0 <= a < len(plan.parts) and 0 <= b < len(plan.parts)):
            continue
        first, second = (plan.phases[plan.parts[p].phase].name for p in (a, b))
        apart = first != second and first in packed and second in packed
        if apart or plan.model.job.policy == "static":
            why = "their phases are packed" if apart else "`policy = static` holds all parts at once"
            text = f"parts `{plan.parts[a].name}` and `{plan.parts[b].name}` exclude each other, and {why}"
            return [Finding(EXCLUSION, text, a, plan.parts[a].phase)]
    return []


def _used(phase: PlannedPhase) -> list[int]:
    links = [link for i in phase.instances for step in i.shape.steps for link in step]
    return sorted({port for link in links for port in (link.out_port, link.in_port)})


def _list(ports: Sequence[int]) -> str:
    return ", ".join(map(str, ports))
