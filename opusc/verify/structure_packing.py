"""For the independent checker: packing. Which NIC ports carry light for which phase, read off the circuits."""

import numpy as np
from numpy.typing import NDArray

from opusc.plan.plan import Plan
from opusc.verify.finding import EXCLUSION, REALISATION, Finding, gpu_name
from opusc.verify.structure_ports import Ends

__all__ = ["check_packing"]

Ints = NDArray[np.int64]


def check_packing(plan: Plan, ends: Ends) -> list[Finding]:
    """At no GPU does a NIC port carry light for two packed phases; none is lit that is not its phase's own; under
    `policy = static` no transmitter and no receiver serves two parts."""
    job, width = plan.model.job, plan.cabling.ports
    static = job.policy == "static"
    given = {packed.phase: packed.ports for packed in job.pack}
    packed = [p for p in plan.phases if static or p.name in given]
    part = plan.circuits.part[ends.row].astype(np.int64)
    phase = np.array([p.phase for p in plan.parts], dtype=np.int64)[part] if len(part) else part
    for planned in packed:
        mine = phase == planned.index
        lit = {int(p) for p in np.unique(np.r_[ends.sender[mine], ends.receiver[mine]] % width)}
        stated = given.get(planned.name)
        if stated is not None and lit and len(planned.ports) != stated:
            text = f"phase `{planned.name}` is on {len(planned.ports)} NIC ports, and the program gives it {stated}"
            return [Finding(REALISATION, text, phase=planned.index)]
        if lit - set(planned.ports):
            text = f"phase `{planned.name}` lights NIC port {min(lit - set(planned.ports))}, which is not its own"
            return [Finding(REALISATION, text, phase=planned.index)]
    chosen = np.isin(phase, [p.index for p in packed])
    used = np.r_[ends.sender[chosen], ends.receiver[chosen]]
    names = [f"phases `{p.name}`" for p in plan.phases]
    found = _shared(plan, used, np.r_[phase[chosen], phase[chosen]], names, "are packed")
    if static and not found:
        parts = [f"parts `{p.name}`" for p in plan.parts]
        why = "hold at once under `policy = static`"
        found = _shared(plan, ends.sender, part, parts, why) or _shared(plan, ends.receiver, part, parts, why)
    return found


def _shared(plan: Plan, port: Ints, owner: Ints, names: list[str], why: str) -> list[Finding]:
    """A NIC port that two owners use."""
    low, high = np.full(plan.cabling.switch.size, len(names)), np.full(plan.cabling.switch.size, -1)
    np.minimum.at(low, port, owner)
    np.maximum.at(high, port, owner)
    for at in np.flatnonzero((high >= 0) & (low != high))[:1].tolist():
        one, other = names[int(low[at])], names[int(high[at])].partition(" ")[2]
        where = f"port {at % plan.cabling.ports} of {gpu_name(plan, at // plan.cabling.ports)}"
        return [Finding(EXCLUSION, f"{one} and {other} {why}, and both use {where}")]
    return []
