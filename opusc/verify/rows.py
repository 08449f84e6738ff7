"""Every emitted row, compared with the formulas.

A circuit is decoded: its switch ports through the inverse cabling to NIC ports, these to GPUs. What the
neighbour functions say must be joined, from each vertex's GPU and port to its neighbour's, must be exactly what
the rows of the part join: none missing, none extra.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opusc.arrays import counted
from opusc.model.entities import Matrix, Optics
from opusc.plan.neighbours import Table, targets
from opusc.plan.plan import Directions, Instances, Int32, Link, Plan, PlannedPhase
from opusc.verify.finding import CLASH, PORT, REALISATION, Finding, gpu_name

__all__ = ["Decoded", "compare_links", "decode", "irregular_parts", "phase_list_findings", "table_findings"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Decoded:
    """Circuits at the NIC ports: `first` and `second` are gpu * ports + port, -1 where a port has no cable.

    With duplex optics light goes from first to second; with bidi optics on a crossbar first is on side A; with
    bidi optics on an `any` matrix first is the lower number.
    """

    first: Int64
    second: Int64
    usable: NDArray[np.bool_]  # the row names ports that exist and are cabled


def table_findings(plan: Plan) -> list[Finding]:
    """Rows are sorted, belong to parts that exist, and name ports that exist on the right side."""
    c, parts = plan.circuits, len(plan.parts)
    columns = (c.part, c.switch, c.ingress, c.egress)
    if len({len(column) for column in columns}) != 1 or c.start.shape != (parts + 1,):
        return [Finding(REALISATION, "the circuit table has columns of different lengths")]
    counted = np.r_[0, np.cumsum(np.bincount(c.part, minlength=parts))] if len(c) and c.part.min() >= 0 else c.start
    if (len(c) and (c.part.min() < 0 or c.part.max() >= parts)) or not np.array_equal(counted, c.start):
        return [Finding(REALISATION, "circuits are filed under parts that they do not belong to")]
    keys = [(p.phase, p.scope, p.step) for p in plan.parts]
    if keys != sorted(set(keys)) or any(p.index != at for at, p in enumerate(plan.parts)):
        return [Finding(REALISATION, "parts are not in the order of phase, scope and step")]
    if _out_of_order(columns[:3]):
        return [Finding(REALISATION, "circuits are not in the order of part, switch and ingress")]
    return _bounds(plan)


def phase_list_findings(plan: Plan) -> list[Finding]:
    """Every phase of the job is planned, and no other."""
    planned = {phase.index: phase.spec for phase in plan.phases}
    stated = dict(enumerate(plan.model.job.phases))
    if planned == stated and list(planned) == list(stated):
        return []
    odd = [spec.name for at, spec in stated.items() if planned.get(at) != spec]
    what = f"phase `{odd[0]}` is not planned" if odd else "a phase is planned that the job does not have"
    return [Finding(REALISATION, what)]


def _out_of_order(columns: tuple[Int32, ...]) -> bool:
    """Whether some row is smaller than the one before it, the first column counting most."""
    equal = np.ones(max(len(columns[0]) - 1, 0), dtype=bool)
    for column in columns:
        if (equal & (column[1:] < column[:-1])).any():
            return True
        equal &= column[1:] == column[:-1]
    return False


def _bounds(plan: Plan) -> list[Finding]:
    c = plan.circuits
    bad_switch = np.flatnonzero((c.switch < 0) | (c.switch >= len(plan.switches)))
    if len(bad_switch):
        row = int(bad_switch[0])
        return [_port(plan, row, f"a circuit is on switch {c.switch[row]}, and there are {len(plan.switches)}")]
    found = []
    radix = np.array([s.kind.radix for s in plan.switches])[c.switch]
    crossbar = np.array([s.kind.matrix is Matrix.CROSSBAR for s in plan.switches])[c.switch]
    low, high = np.where(crossbar, radix, 0), np.where(crossbar, 2 * radix, radix)
    for name, port, bad in (
        ("ingress", c.ingress, (c.ingress < 1) | (c.ingress > radix)),
        ("egress", c.egress, (c.egress <= low) | (c.egress > high)),
    ):
        rows = np.flatnonzero(bad)
        if len(rows):
            row = int(rows[0])
            switch = plan.switches[int(c.switch[row])]
            limits = f"{low[row] + 1}..{high[row]}" if name == "egress" else f"1..{radix[row]}"
            found.append(_port(plan, row, f"{name} {port[row]} does not exist on {switch.name}, which has {limits}"))
    reverse = np.flatnonzero(~crossbar & (c.ingress >= c.egress))
    if len(reverse):
        found.append(_port(plan, int(reverse[0]), "a circuit of an `any` matrix names its higher port first"))
    for switch in plan.switches:
        if switch.kind.blocked:
            here = np.flatnonzero(c.switch == switch.index)
            egress = c.egress[here] - (switch.kind.radix if switch.kind.matrix is Matrix.CROSSBAR else 0)
            blocked = np.array(switch.kind.blocked)
            used = here[np.isin(c.ingress[here], blocked) | np.isin(egress, blocked)]
            if len(used):
                found.append(_port(plan, int(used[0]), f"a circuit uses a blocked position of {switch.name}"))
    return found


def _port(plan: Plan, row: int, text: str) -> Finding:
    part = plan.parts[int(plan.circuits.part[row])]
    return Finding(PORT, f"part `{part.name}`: {text}", part.index, part.phase, (row,))


# --- decoding ------------------------------------------------------------------------------------


def decode(plan: Plan) -> tuple[Decoded, list[Finding]]:
    """Follow every circuit through the cabling to the NIC ports at its ends."""
    c, cabling = plan.circuits, plan.cabling
    span = 2 * max((s.kind.radix for s in plan.switches), default=0) + 1
    size = span * len(plan.switches)
    sends, hears = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    gpu, port = np.nonzero(cabling.switch >= 0)
    number = gpu * cabling.ports + port
    base = cabling.switch[gpu, port].astype(np.int64) * span
    for table, ends in ((sends, cabling.ingress[gpu, port]), (hears, cabling.egress[gpu, port])):
        there = ends >= 0
        table[base[there] + ends[there]] = number[there]
    exists = (c.switch >= 0) & (c.switch < len(plan.switches))
    for ends in (c.ingress, c.egress):
        exists &= (ends >= 0) & (ends < span)
    at = np.where(exists, c.switch, 0).astype(np.int64) * span
    ingress, egress = at + np.where(exists, c.ingress, 0), at + np.where(exists, c.egress, 0)
    first, second = sends[ingress], hears[egress]
    if _pairs(plan):  # transmit and receive of an `any` matrix, lower number first: turn where need be
        turned = (first < 0) | (second < 0)
        first, second = np.where(turned, sends[egress], first), np.where(turned, hears[ingress], second)
    usable = exists & (first >= 0) & (second >= 0)
    found = []
    loose = np.flatnonzero(~usable & exists)
    if len(loose):
        found.append(_port(plan, int(loose[0]), "a circuit ends on a switch port on which no NIC port ends"))
    return Decoded(first, second, usable), found


def _pairs(plan: Plan) -> bool:
    nic = plan.model.cluster.rail_nic
    return nic.optics is Optics.DUPLEX and plan.switches[0].kind.matrix is Matrix.ANY


# --- comparing -----------------------------------------------------------------------------------


def compare_links(plan: Plan, phase: PlannedPhase, decoded: Decoded) -> list[Finding]:
    """The rows of a phase against its neighbour functions, step by step."""
    found: list[Finding] = []
    of = {(p.scope, p.step): p.index for p in plan.parts if p.phase == phase.index}
    ports = plan.model.cluster.gpu_count * plan.cabling.ports
    for step in range(phase.step_count):
        wanted = _wanted(plan, phase, step, of)
        if wanted is None:
            found.append(_missing_part(phase, step))
            continue
        rows = np.concatenate(
            [np.arange(*plan.circuits.start[p : p + 2]) for (_, s), p in sorted(of.items()) if s == step]
            or [np.zeros(0, np.int64)]
        ).astype(np.int64)
        rows = rows[decoded.usable[rows]]
        part = plan.circuits.part[rows].astype(np.int64)
        have = (part * ports + decoded.first[rows]) * ports + decoded.second[rows]
        if not np.array_equal(np.sort(have), np.sort(wanted)):
            order = np.argsort(have, kind="stable")
            found += _differences(plan, wanted, have[order], rows[order], ports)
    beyond = [p for (_, s), p in of.items() if s >= phase.step_count]
    if beyond:
        found.append(Finding(REALISATION, f"part `{plan.parts[beyond[0]].name}` is in a step that its phase lacks"))
    return found


def _wanted(plan: Plan, phase: PlannedPhase, step: int, of: dict[tuple[int, int], int]) -> Int64 | None:
    """The circuits of a step by the formulas: (part, first, second) as one number. None if a part is missing."""
    part_of = np.full(len(phase.scopes), -1, dtype=np.int64)
    for (scope, s), part in of.items():
        if s == step:
            part_of[scope] = part
    ports = plan.model.cluster.gpu_count * plan.cabling.ports
    found: list[Int64] = [np.zeros(0, np.int64)]
    for instances in phase.instances:
        if step >= len(instances.shape.steps):
            continue
        for link in instances.shape.steps[step]:
            for scopes, first, second in _ends(plan, instances, link):
                owner = part_of[scopes]
                if (owner < 0).any():
                    return None
                found.append((owner * ports + first) * ports + second)
    return np.concatenate(found)


def _ends(plan: Plan, instances: Instances, link: Link) -> list[tuple[Int32, Int64, Int64]]:
    """Scope and ends of every circuit of a link, in the order that `Decoded` has them."""
    to = targets(link.neighbour, instances.shape.n)
    v = np.flatnonzero(to >= 0)
    scope = instances.scope[:, v].ravel()
    kept = scope >= 0
    count = plan.cabling.ports
    lower = instances.exits[:, v].ravel()[kept].astype(np.int64) * count + link.out_port
    upper = instances.entries[:, to[v]].ravel()[kept].astype(np.int64) * count + link.in_port
    scope = scope[kept]
    if plan.model.cluster.rail_nic.optics is Optics.BIDI:
        if plan.switches[0].kind.matrix is Matrix.ANY:
            # Whichever end has the lower position comes first.
            turn = plan.cabling.ingress.ravel()[lower] > plan.cabling.ingress.ravel()[upper]
        else:
            turn = plan.cabling.ingress.ravel()[lower] < 0
        return [(scope, np.where(turn, upper, lower), np.where(turn, lower, upper))]
    found = []
    if link.directions is not Directions.BACKWARD:
        found.append((scope, lower, upper))
    if link.directions is not Directions.FORWARD:
        found.append((scope, upper, lower))
    return found


def _missing_part(phase: PlannedPhase, step: int) -> Finding:
    return Finding(
        REALISATION, f"phase `{phase.name}` has links in step {step} that belong to no part", phase=phase.index
    )


def _differences(plan: Plan, wanted: Int64, have: Int64, rows: Int64, ports: int) -> list[Finding]:
    """The first missing and the first extra circuit, with how many there are."""
    found = []
    need, _, needed = counted(wanted)
    got, at, counts = counted(have)
    missing = need[~np.isin(need, got)]
    extra = np.flatnonzero(~np.isin(got, need))
    doubled = got[(counts > 1)]
    doubled_need = need[needed > 1]
    if len(missing):
        key = int(missing[0])
        part = plan.parts[key // (ports * ports)]
        found.append(
            Finding(
                REALISATION,
                f"part `{part.name}` lacks the circuit from {_end(plan, key // ports % ports)} to "
                f"{_end(plan, key % ports)}",
                part.index,
                part.phase,
                notes=(f"{len(missing)} circuits are missing",),
            )
        )
    if len(extra):
        key, row = int(got[extra[0]]), int(rows[at[extra[0]]])
        part = plan.parts[key // (ports * ports)]
        found.append(
            Finding(
                REALISATION,
                f"part `{part.name}` joins {_end(plan, key // ports % ports)} to {_end(plan, key % ports)}, which "
                "its topology does not ask for",
                part.index,
                part.phase,
                (row,),
                (f"{len(extra)} circuits are too many",),
            )
        )
    for keys in (doubled, doubled_need):
        if len(keys):
            part = plan.parts[int(keys[0]) // (ports * ports)]
            text = f"part `{part.name}` has the circuit from {_end(plan, int(keys[0]) // ports % ports)} twice"
            found.append(Finding(CLASH, text, part.index, part.phase))
            break
    return found


def _end(plan: Plan, number: int) -> str:
    return f"port {number % plan.cabling.ports} of {gpu_name(plan, number // plan.cabling.ports)}"


def irregular_parts(plan: Plan, phase: PlannedPhase) -> list[int]:
    """Parts with links that no formula draws."""
    odd = any(isinstance(link.neighbour, Table) for i in phase.instances for step in i.shape.steps for link in step)
    return [p.index for p in plan.parts if p.phase == phase.index] if odd else []
