"""For the independent checker: switch ports. Bounds and order, cabling, following circuits, sharing of ports."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from opusc.model.entities import CablingKind, Matrix, Optics, Side, SwitchKind
from opusc.plan.plan import Int32, Plan
from opusc.verify.finding import CLASH, EXCLUSION, PORT, REALISATION, Finding, gpu_name
from opusc.verify.structure_model import World

__all__ = ["Ends", "check_cabling", "check_exclusions", "check_rows", "check_sharing", "check_two_way", "follow"]

Ints = NDArray[np.int64]


def check_rows(plan: Plan) -> list[Finding]:
    """Rows belong to parts, are in order, and name switch ports that exist, on their side, not blocked."""
    c, found = plan.circuits, []
    count = len(c.part)
    if any(len(x) != count for x in (c.switch, c.ingress, c.egress)) or len(c.start) != len(plan.parts) + 1:
        return [Finding(REALISATION, "the columns of the circuit table differ in length")]
    lengths = np.diff(c.start)
    if c.start[0] != 0 or c.start[-1] != count or (lengths < 0).any():
        return [Finding(REALISATION, "the circuit table is cut into parts wrongly")]
    if not np.array_equal(np.repeat(np.arange(len(plan.parts)), lengths), c.part):
        return [Finding(REALISATION, "a circuit is filed under a part that it does not belong to")]
    numbers = [(p.phase, p.scope, p.step) for p in plan.parts]
    if any(a >= b for a, b in pairwise(numbers)) or (lengths < 1).any():
        found.append(Finding(REALISATION, "parts are out of order, doubled or empty"))
    for at in np.flatnonzero((c.switch < 0) | (c.switch >= len(plan.switches)))[:1].tolist():
        return [_at(plan, at, PORT, f"a circuit is on switch number {c.switch[at]}, which the fabric does not have")]
    radix = np.array([s.kind.radix for s in plan.switches], dtype=np.int64)[c.switch]
    any_matrix = np.array([s.kind.matrix is Matrix.ANY for s in plan.switches])[c.switch]
    position = c.egress - np.where(any_matrix, 0, radix)
    for text, bad in (
        ("light enters at a port that the switch does not have", (c.ingress < 1) | (c.ingress > radix)),
        ("light leaves at a port that the switch does not have on that side", (position < 1) | (position > radix)),
        ("the lower of two ports does not come first", any_matrix & (c.egress <= c.ingress)),
        ("a port is at a blocked position", _blocked(plan, c.ingress) | _blocked(plan, position)),
    ):
        found += [_at(plan, at, PORT, text) for at in np.flatnonzero(bad)[:1].tolist()]
    same = (c.part[1:] == c.part[:-1]) & (c.switch[1:] == c.switch[:-1])
    rising = (c.part[1:] > c.part[:-1]) | (c.part[1:] == c.part[:-1]) & (c.switch[1:] > c.switch[:-1])
    for at in np.flatnonzero(~(rising | same & (c.ingress[1:] >= c.ingress[:-1])))[:1].tolist():
        found.append(_at(plan, at + 1, REALISATION, "a circuit is out of order"))
    return found


def _blocked(plan: Plan, position: Ints | Int32) -> NDArray[np.bool_]:
    bad = np.zeros(len(position), dtype=bool)
    for switch in plan.switches:
        for blocked in switch.kind.blocked:
            bad |= (plan.circuits.switch == switch.index) & (position == blocked)
    return bad


def _at(plan: Plan, row: int, code: str, text: str) -> Finding:
    part = plan.parts[int(plan.circuits.part[row])]
    return Finding(code, f"part `{part.name}`: {text}", part.index, part.phase, (row,))


# --- cabling -------------------------------------------------------------------------------------


def check_cabling(plan: Plan, world: World) -> list[Finding]:
    """Every cable of the plan is where the program puts it."""
    derived = _listed(plan, world) if _kind(plan) is CablingKind.LISTED else _in_order(plan, world)
    mine = (plan.cabling.switch, plan.cabling.ingress, plan.cabling.egress)
    if any(a.shape != b.shape for a, b in zip(mine, derived, strict=True)):
        return [Finding(PORT, "the cabling table is not one row for each GPU and one column for each NIC port")]
    wrong = np.argwhere(np.any([a != b for a, b in zip(mine, derived, strict=True)], axis=0))
    if not len(wrong):
        return []
    gpu, port = wrong[0].tolist()
    text = f"the cable of port {port} of {gpu_name(plan, gpu)} is not where the program puts it"
    return [Finding(PORT, text, notes=(f"{len(wrong)} cables are elsewhere",))]


def _kind(plan: Plan) -> CablingKind:
    return plan.model.fabric.cabling.kind


def _sides(plan: Plan) -> list[Side | None]:
    """The side of each NIC port; None where a port has both."""
    fabric, nic = plan.model.fabric, plan.model.cluster.rail_nic
    if nic.optics is not Optics.BIDI or fabric.rails[0].switches[0].matrix is not Matrix.CROSSBAR:
        return [None] * nic.ports
    return list(fabric.cabling.sides) or [Side.B if p % 2 else Side.A for p in range(nic.ports)]


def _in_order(plan: Plan, world: World) -> tuple[Ints, Ints, Ints]:
    fabric, nic = plan.model.fabric, plan.model.cluster.rail_nic
    switch, ingress, egress = (np.full((len(world.rank), nic.ports), -1, dtype=np.int64) for _ in range(3))
    shared = _kind(plan) is CablingKind.SHARE
    block = world.node // (plan.model.cluster.node_count // fabric.blocks)
    sides = _sides(plan)
    given = dict(fabric.cabling.share)
    for rail, plane, b in np.ndindex(len(fabric.rails), fabric.planes, fabric.blocks):
        spec = fabric.rails[rail]
        kind = spec.switches[plane * fabric.blocks + b]
        gpus = np.flatnonzero((world.rail == spec.index) & (block == b))
        number = plane if shared else (spec.index * fabric.planes + plane) * fabric.blocks + b
        room = list(given[spec.index]) if shared else list(range(1, kind.radix + 1))
        fibres = 2 if nic.optics is Optics.DUPLEX and kind.matrix is Matrix.ANY else 1
        for side in sorted(set(sides), key=str):
            ports = [p for p in range(plane, nic.ports, fabric.planes) if sides[p] is side]
            places = _places(room, len(gpus) * len(ports) * fibres, kind)
            if not ports or places is None:
                continue
            for q, port in enumerate(ports):
                start = (np.arange(len(gpus)) * len(ports) + q) * fibres
                switch[gpus, port] = number
                if side is not Side.B:
                    ingress[gpus, port] = places[start]
                if side is not Side.A:
                    egress[gpus, port] = places[start + fibres - 1] + _offset(kind)
    return switch, ingress, egress


def _offset(kind: SwitchKind) -> int:
    return kind.radix if kind.matrix is Matrix.CROSSBAR else 0


def _places(room: list[int], needed: int, kind: SwitchKind) -> Ints | None:
    """The first positions of the room; a blocked one is replaced by the next usable one after them."""
    places = np.array(room[:needed], dtype=np.int64)
    dark = np.flatnonzero(np.isin(places, np.array(kind.blocked, dtype=np.int64)))
    rest = [p for p in room[needed:] if p not in kind.blocked] if len(dark) else []
    if len(places) < needed or len(rest) < len(dark):
        return None
    places[dark] = rest[: len(dark)]
    return places


def _listed(plan: Plan, world: World) -> tuple[Ints, Ints, Ints]:
    fabric, cluster = plan.model.fabric, plan.model.cluster
    nic = cluster.rail_nic
    sides = _sides(plan)
    switch, ingress, egress = (np.full((len(world.rank), nic.ports), -1, dtype=np.int64) for _ in range(3))
    for cable in fabric.cabling.cables:
        gpu = cable.node * cluster.gpus_per_node + cable.gpu
        rail, plane = int(world.rail[gpu]), cable.port % fabric.planes
        block = cable.node // (cluster.node_count // fabric.blocks)
        kind = fabric.rails[rail].switches[plane * fabric.blocks + block]
        side = sides[cable.port] and (cable.side or sides[cable.port])
        switch[gpu, cable.port] = (rail * fabric.planes + plane) * fabric.blocks + block
        if side is not Side.B:
            ingress[gpu, cable.port] = cable.position
        if side is not Side.A:
            egress[gpu, cable.port] = (cable.receive or cable.position) + _offset(kind)
    return switch, ingress, egress


# --- following circuits --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ends:
    """Where light goes: from NIC port `sender` to NIC port `receiver` (gpu * ports + port), by `row`.

    A circuit of bidi optics is there twice, once each way.
    """

    row: Ints
    sender: Ints
    receiver: Ints


def follow(plan: Plan) -> tuple[Ends, list[Finding]]:
    """Follow every circuit through the cabling, from transmitter to receiver."""
    c, cabling = plan.circuits, plan.cabling
    width = 2 * max(s.kind.radix for s in plan.switches) + 1
    transmitter, receiver = (np.full((len(plan.switches), width), -1, dtype=np.int64) for _ in range(2))
    wired = np.flatnonzero(cabling.switch.ravel() >= 0)
    on = cabling.switch.ravel()[wired]
    bidi = plan.model.cluster.rail_nic.optics is Optics.BIDI
    for table, numbers in ((transmitter, cabling.ingress), (receiver, cabling.egress)):
        at = numbers.ravel()[wired]
        table[on[at >= 0], at[at >= 0]] = wired[at >= 0]
    if bidi:  # a fibre carries light both ways
        transmitter = receiver = np.maximum(transmitter, receiver)
    legal = (c.switch >= 0) & (c.switch < len(plan.switches)) & (c.ingress >= 0) & (c.egress >= 0)
    legal &= (c.ingress < width) & (c.egress < width)
    row = np.flatnonzero(legal)
    s, x, y = c.switch[row], c.ingress[row], c.egress[row]
    one, other = transmitter[s, x], receiver[s, y]
    back_one, back_other = transmitter[s, y], receiver[s, x]
    ahead, back = (one >= 0) & (other >= 0), (back_one >= 0) & (back_other >= 0)
    found = [
        _at(plan, int(row[at]), PORT, "a circuit ends where no NIC port ends, or joins two of one direction")
        for at in np.flatnonzero(~(ahead | back))[:1].tolist()
    ]
    ends = Ends(
        np.r_[row[ahead], row[back]],
        np.r_[one[ahead], back_one[back]],
        np.r_[other[ahead], back_other[back]],
    )
    return ends, found


def check_two_way(plan: Plan, ends: Ends) -> list[Finding]:
    """With paired ports, whoever a port sends to is whom it hears."""
    count = plan.cabling.switch.size
    part = plan.circuits.part[ends.row].astype(np.int64)
    there = (part * count + ends.sender) * count + ends.receiver
    back = (part * count + ends.receiver) * count + ends.sender
    lonely = there[~np.isin(there, back)] if not np.array_equal(np.sort(there), np.sort(back)) else there[:0]
    if not len(lonely):
        return []
    key = int(lonely[0])
    name = plan.parts[key // count**2]
    port = key // count % count
    gpu = gpu_name(plan, port // plan.cabling.ports)
    text = f"part `{name.name}`: port {port % plan.cabling.ports} of {gpu} sends to a port that it does not hear"
    return [Finding(REALISATION, text, name.index, name.phase)]


# --- sharing -------------------------------------------------------------------------------------


def _port_numbers(plan: Plan) -> tuple[Ints, int]:
    """Both switch ports of every row as numbers, shape (rows, 2), and the bound of these numbers."""
    width = 2 * max(s.kind.radix for s in plan.switches) + 1
    c = plan.circuits
    both = np.stack([c.ingress, c.egress], axis=1).astype(np.int64)
    both = np.clip(both, 0, width - 1) + np.clip(c.switch, 0, len(plan.switches) - 1).astype(np.int64)[:, None] * width
    return both, width * len(plan.switches)


def check_sharing(plan: Plan) -> list[Finding]:
    """No part uses a switch port twice."""
    both, bound = _port_numbers(plan)
    last = np.full(bound, -1, dtype=np.int64)
    for part in plan.parts:
        rows = plan.rows(part.index)
        mine = both[rows].ravel()
        own = np.arange(len(mine))
        last[mine] = own
        for at in np.flatnonzero(last[mine] != own)[:1].tolist():
            pair = sorted({rows.start + at // 2, rows.start + int(last[mine[at]]) // 2})
            switch = plan.switches[int(plan.circuits.switch[pair[0]])].name
            return [
                Finding(CLASH, f"part `{part.name}` uses a port of {switch} twice", part.index, part.phase, tuple(pair))
            ]
    return []


def check_exclusions(plan: Plan) -> list[Finding]:
    """Parts with a common port, and only these, exclude each other.

    Ports are split into classes, part after part, until the ports of a class serve the same parts; what the
    parts of each class are is remembered on the way.
    """
    both, bound = _port_numbers(plan)
    of_port = np.zeros(bound, dtype=np.int64)
    serves: list[tuple[int, ...]] = [()]
    for part in plan.parts:
        mine = both[plan.rows(part.index)].ravel()
        old = sorted(set(of_port[mine].tolist()))
        of_port[mine] = len(serves) + np.searchsorted(old, of_port[mine])
        serves += [(*serves[number], part.index) for number in old]
    want = {
        (a, b)
        for number in sorted(set(of_port.tolist()))
        for at, a in enumerate(serves[number])
        for b in serves[number][at + 1 :]
    }
    listed = [tuple(pair) for pair in plan.exclusions.tolist()]
    if listed == sorted(want):
        return []
    for pairs, text in (
        (sorted(want - set(listed)), "use one switch port and are not declared exclusive"),
        (sorted(set(listed) - want), "are declared exclusive and have no port in common"),
    ):
        for a, b, *_ in pairs[:1]:
            if not (0 <= a < len(plan.parts) and 0 <= b < len(plan.parts)):
                break
            first, second = plan.parts[a], plan.parts[b]
            text = f"parts `{first.name}` and `{second.name}` {text}"
            rows = _shared_rows(plan, both, a, b)
            return [Finding(EXCLUSION, text, a, first.phase, rows, (f"{len(pairs)} such pairs",))]
    return [Finding(EXCLUSION, "the table of exclusions is not sorted, or names parts twice or none at all")]


def _shared_rows(plan: Plan, both: Ints, a: int, b: int) -> tuple[int, ...]:
    """A circuit of each of two parts that use one port."""
    one, other = plan.rows(a), plan.rows(b)
    shared = np.intersect1d(both[one].ravel(), both[other].ravel())
    if not len(shared):
        return ()
    return tuple(rows.start + int(np.flatnonzero((both[rows] == shared[0]).any(axis=1))[0]) for rows in (one, other))
