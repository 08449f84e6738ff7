"""Ways to break a plan, one invariant at a time.

A mutation takes a plan and a number that varies the place, and gives a broken plan, or None where the plan has
nothing of the kind. Exclusions follow the circuits again, unless they are what is broken, so that no mutant
is caught by a table that merely went out of date.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from opusc.diagnostics import Diagnostics
from opusc.model.entities import Matrix, SwitchKind
from opusc.plan.neighbours import Rotation, Table
from opusc.plan.parts import Wiring, circuits_and_parts, exclusions
from opusc.plan.plan import (
    Cabling,
    Circuits,
    Directions,
    Instances,
    Int32,
    Link,
    Plan,
    PlannedPhase,
    Relays,
    Routes,
    Scoping,
)
from opusc.verify.finding import CLASH, EXCLUSION, FORMULA, PORT, REALISATION

__all__ = ["MUTATIONS", "Mutation"]

Mutation = Callable[[Plan, int], Plan | None]


# --- tools ---------------------------------------------------------------------------------------


def with_circuits(plan: Plan, part: Int32, switch: Int32, ingress: Int32, egress: Int32) -> Plan | None:
    """The plan with other circuits, in order, exclusions recomputed."""
    order = np.lexsort((egress, ingress, switch, part))
    part, switch, ingress, egress = (np.asarray(c[order], np.int32) for c in (part, switch, ingress, egress))
    start = np.searchsorted(part, np.arange(len(plan.parts) + 1)).astype(np.int64)
    circuits = Circuits(part, switch, ingress, egress, start)
    return replace(plan, circuits=circuits, exclusions=exclusions(circuits, plan.switches))


def edited(plan: Plan, **cells: tuple[int, int]) -> Plan | None:
    """The plan with some cells of its circuits changed: `ingress=(row, value)`."""
    columns = {name: getattr(plan.circuits, name).copy() for name in ("part", "switch", "ingress", "egress")}
    for name, (row, value) in cells.items():
        columns[name][row] = value
    return with_circuits(plan, **columns)


def redrawn(plan: Plan, phases: Sequence[PlannedPhase], cabling: Cabling | None = None) -> Plan | None:
    """The plan drawn again by the planner from other phases or another cabling: wrong, but of one piece."""
    sink = Diagnostics()
    wiring = Wiring(plan.model.cluster, plan.switches, cabling or plan.cabling)
    circuits, parts = circuits_and_parts(phases, wiring, sink)
    if sink.has_errors:
        return None
    return replace(
        plan, phases=tuple(phases), cabling=cabling or plan.cabling, circuits=circuits, parts=parts,
        exclusions=exclusions(circuits, plan.switches),
    )  # fmt: skip


def pick(options: Sequence[int] | np.ndarray, number: int) -> int:
    """One of the options; different numbers give places far apart."""
    return int(options[(number * 7919 + 3) % len(options)])


def mates(plan: Plan, number: int) -> tuple[int, int] | None:
    """Two rows of one part on one switch."""
    c = plan.circuits
    rows = np.flatnonzero((c.part[1:] == c.part[:-1]) & (c.switch[1:] == c.switch[:-1]))
    if not len(rows):
        return None
    row = pick(rows, number)
    return row, row + 1


def reshaped(
    plan: Plan, wanted: Callable[[PlannedPhase], bool], change: Callable[[Link, int], Link | None]
) -> Plan | None:
    """Redraw with every link of some phases changed; None if nothing changes."""
    changed = False

    def links(instances: Instances, step: tuple[Link, ...]) -> tuple[Link, ...]:
        nonlocal changed
        found = []
        for link in step:
            other = change(link, instances.shape.n)
            changed |= other is not None
            found.append(other or link)
        return tuple(found)

    phases = [
        replace(
            p,
            instances=tuple(
                replace(i, shape=replace(i.shape, steps=tuple(links(i, step) for step in i.shape.steps)))
                for i in p.instances
            ),
        )
        if wanted(p)
        else p
        for p in plan.phases
    ]
    return redrawn(plan, phases) if changed else None


# --- circuits ------------------------------------------------------------------------------------


def duplicate_ingress(plan: Plan, number: int) -> Plan | None:
    pair = mates(plan, number)
    return pair and edited(plan, ingress=(pair[1], int(plan.circuits.ingress[pair[0]])))


def duplicate_egress(plan: Plan, number: int) -> Plan | None:
    pair = mates(plan, number)
    return pair and edited(plan, egress=(pair[1], int(plan.circuits.egress[pair[0]])))


def out_of_bounds(plan: Plan, number: int) -> Plan | None:
    row = pick(range(len(plan.circuits)), number)
    kind = plan.switches[int(plan.circuits.switch[row])].kind
    return edited(plan, egress=(row, kind.radix * (2 if kind.matrix is Matrix.CROSSBAR else 1) + 1))


def wrong_side(plan: Plan, number: int) -> Plan | None:
    """An egress port of a crossbar where an ingress port belongs."""
    row = pick(range(len(plan.circuits)), number)
    kind = plan.switches[int(plan.circuits.switch[row])].kind
    if kind.matrix is not Matrix.CROSSBAR:
        return None
    return edited(plan, ingress=(row, int(plan.circuits.ingress[row]) + kind.radix))


def negative_port(plan: Plan, number: int) -> Plan | None:
    row = pick(range(len(plan.circuits)), number)
    return edited(plan, ingress=(row, -1)) if number % 2 else edited(plan, egress=(row, -number - 1))


def dropped(plan: Plan, number: int) -> Plan | None:
    keep = np.arange(len(plan.circuits)) != pick(range(len(plan.circuits)), number)
    c = plan.circuits
    return with_circuits(plan, c.part[keep], c.switch[keep], c.ingress[keep], c.egress[keep])


def doubled(plan: Plan, number: int) -> Plan | None:
    row = pick(range(len(plan.circuits)), number)
    rows = np.r_[np.arange(len(plan.circuits)), row]
    c = plan.circuits
    return with_circuits(plan, c.part[rows], c.switch[rows], c.ingress[rows], c.egress[rows])


def exchanged(plan: Plan, number: int) -> Plan | None:
    """Two circuits of a part trade their far ends: a ring in one direction falls into two.

    Circuits that join the same GPUs are left alone: to trade would be another choice of ports, which the
    formulas object to and the structure does not.
    """
    c = plan.circuits
    rows = np.flatnonzero((c.part[1:] == c.part[:-1]) & (c.switch[1:] == c.switch[:-1]))
    rows = np.array([r for r in rows.tolist() if not set(_ends(plan, r)) & set(_ends(plan, r + 1))], dtype=np.int64)
    if not len(rows):
        return None
    a = pick(rows, number)
    b = a + 1
    egress = c.egress.copy()
    egress[[a, b]] = egress[[b, a]]
    ingress = c.ingress
    if plan.switches[0].kind.matrix is Matrix.ANY:
        ingress, egress = np.minimum(ingress, egress), np.maximum(ingress, egress)
        if (ingress == egress).any():
            return None
    return with_circuits(plan, c.part, c.switch, ingress, egress)


def _ends(plan: Plan, row: int) -> list[int]:
    """The GPUs on whose cables a circuit ends."""
    c, cabling = plan.circuits, plan.cabling
    here = cabling.switch == c.switch[row]
    at = (cabling.ingress == c.ingress[row]) | (cabling.egress == c.egress[row])
    at |= (cabling.ingress == c.egress[row]) | (cabling.egress == c.ingress[row])
    return np.flatnonzero((here & at).any(axis=1)).tolist()


def in_wrong_part(plan: Plan, number: int) -> Plan | None:
    if len(plan.parts) < 2:
        return None
    row = pick(range(len(plan.circuits)), number)
    return edited(plan, part=(row, (int(plan.circuits.part[row]) + 1) % len(plan.parts)))


def in_another_step(plan: Plan, number: int) -> Plan | None:
    """One pipeline's circuit is held in another step than those of the others. Where relays meet, links are shared
    out one by one, and any step is as good."""
    joins = [p for p in plan.parts if plan.phases[p.phase].scoping is Scoping.JOIN]
    steps = {(p.phase, p.scope): [q.index for q in joins if (q.phase, q.scope) == (p.phase, p.scope)] for p in joins}
    other = {part: mine[at - 1] for mine in steps.values() if len(mine) > 1 for at, part in enumerate(mine)}
    rows = np.flatnonzero(np.isin(plan.circuits.part, sorted(other)))
    if not len(rows) or len(plan.relays):
        return None
    row = pick(rows, number)
    return edited(plan, part=(row, other[int(plan.circuits.part[row])]))


def misfiled(plan: Plan, number: int) -> Plan | None:
    """The part of a row is wrong, and the row stays where it is."""
    part = plan.circuits.part.copy()
    row = pick(range(len(part)), number)
    part[row] = (part[row] + 1) % len(plan.parts) if len(plan.parts) > 1 else 7
    return replace(plan, circuits=replace(plan.circuits, part=part))


def on_wrong_switch(plan: Plan, number: int) -> Plan | None:
    row = pick(range(len(plan.circuits)), number)
    if len(plan.switches) == 1:
        return None
    return edited(plan, switch=(row, (int(plan.circuits.switch[row]) + 1) % len(plan.switches)))


def on_no_switch(plan: Plan, number: int) -> Plan | None:
    switch = plan.circuits.switch.copy()
    last = int(plan.rows(len(plan.parts) - 1).stop) - 1
    switch[last] = len(plan.switches)
    return replace(plan, circuits=replace(plan.circuits, switch=switch))


def unsorted_rows(plan: Plan, number: int) -> Plan | None:
    pair = mates(plan, number)
    if pair is None:
        return None
    rows = np.arange(len(plan.circuits))
    rows[list(pair)] = pair[::-1]
    c = plan.circuits
    return replace(plan, circuits=replace(c, switch=c.switch[rows], ingress=c.ingress[rows], egress=c.egress[rows]))


def outside_scope(plan: Plan, number: int) -> Plan | None:
    """Circuits of two stages, on one switch, trade their far ends."""
    c = plan.circuits
    scoped = [p for p in plan.parts if plan.phases[p.phase].scoping is Scoping.STAGE]
    for first in scoped:
        for second in scoped:
            if (first.phase, first.step) == (second.phase, second.step) and first.scope < second.scope:
                one, two = np.arange(*c.start[first.index :][:2]), np.arange(*c.start[second.index :][:2])
                a = pick(one, number)
                there = two[c.switch[two] == c.switch[a]]
                if len(there):
                    b = pick(there, number)
                    egress = c.egress.copy()
                    egress[[a, b]] = egress[[b, a]]
                    low, high = np.minimum(c.ingress, egress), np.maximum(c.ingress, egress)
                    return with_circuits(plan, c.part, c.switch, low, high)
    return None


# --- ports and cabling ---------------------------------------------------------------------------


def blocked_port(plan: Plan, number: int) -> Plan | None:
    """A position in use goes dark in the program, and the plan does not notice (where cables are listed, only the
    check of blocked positions can)."""
    row = pick(range(len(plan.circuits)), number)
    index = int(plan.circuits.switch[row])
    position = int(plan.circuits.ingress[row])

    def dark(kind: SwitchKind) -> SwitchKind:
        return replace(kind, blocked=tuple(sorted({*kind.blocked, position})))

    old = plan.switches[index]
    job, fabric = plan.model.job, plan.model.fabric
    at = old.plane * fabric.blocks + old.block
    rails = tuple(
        replace(r, switches=tuple(dark(kind) if n == at else kind for n, kind in enumerate(r.switches)))
        if r.index in old.rails
        else r
        for r in fabric.rails
    )
    model = replace(plan.model, job=replace(job, fabric=replace(fabric, rails=rails)))
    switches = tuple(replace(s, kind=dark(s.kind)) if s.index == index else s for s in plan.switches)
    return replace(plan, model=model, switches=switches)


def wrong_cabling(plan: Plan, number: int, *, redraw: bool = False) -> Plan | None:
    """Two cables of a switch trade places; with `redraw`, circuits follow."""
    cabling = plan.cabling
    index = int(plan.circuits.switch[pick(range(len(plan.circuits)), number)])
    cells = np.argwhere(cabling.switch == index)
    if cabling.ingress.min() < 0 and (cabling.switch >= 0).all():  # sides: keep to one
        cells = cells[cabling.ingress[cells[:, 0], cells[:, 1]] >= 0]
    a, b = cells[number % len(cells)], cells[(number + 3) % len(cells)]
    if (a == b).all():
        return None
    ingress, egress = cabling.ingress.copy(), cabling.egress.copy()
    for ends in (ingress, egress):
        ends[a[0], a[1]], ends[b[0], b[1]] = ends[b[0], b[1]], ends[a[0], a[1]]
    other = replace(cabling, ingress=ingress, egress=egress)
    return redrawn(plan, plan.phases, other) if redraw else replace(plan, cabling=other)


def wrong_cabling_followed(plan: Plan, number: int) -> Plan | None:
    return wrong_cabling(plan, number, redraw=True)


def uncabled(plan: Plan, number: int) -> Plan | None:
    """A NIC port in use has no cable."""
    index = int(plan.circuits.switch[pick(range(len(plan.circuits)), number)])
    gpu, port = np.argwhere(plan.cabling.switch == index)[0]
    arrays = {name: getattr(plan.cabling, name).copy() for name in ("switch", "ingress", "egress")}
    for array in arrays.values():
        array[gpu, port] = -1
    return replace(plan, cabling=replace(plan.cabling, **arrays))


def other_switch(plan: Plan, number: int) -> Plan | None:
    """A switch has more positions than the fabric's; on an `any` matrix no circuit shows it."""
    index = number % len(plan.switches)
    kind = plan.switches[index].kind
    other = replace(plan.switches[index], kind=replace(kind, radix=kind.radix * 2))
    return replace(plan, switches=tuple(other if s.index == index else s for s in plan.switches))


def phase_forgotten(plan: Plan, number: int) -> Plan | None:
    """The last phase of the job is not planned, nor its relays."""
    if len(plan.phases) < 2 or len(plan.relays):
        return None
    return redrawn(plan, plan.phases[:-1])


# --- exclusions, relays, routes, places ----------------------------------------------------------


def exclusion_forgotten(plan: Plan, number: int) -> Plan | None:
    if not len(plan.exclusions):
        return None
    keep = np.arange(len(plan.exclusions)) != pick(range(len(plan.exclusions)), number)
    return replace(plan, exclusions=plan.exclusions[keep])


def exclusion_invented(plan: Plan, number: int) -> Plan | None:
    listed = {tuple(pair) for pair in plan.exclusions.tolist()}
    free = [(a, b) for a in range(len(plan.parts)) for b in range(a + 1, len(plan.parts)) if (a, b) not in listed]
    if not free:
        return None
    pairs = sorted([*listed, free[number % len(free)]])
    return replace(plan, exclusions=np.array(pairs, np.int32).reshape(-1, 2))


def relay_omitted(plan: Plan, number: int) -> Plan | None:
    if not len(plan.relays):
        return None
    keep = np.arange(len(plan.relays)) != pick(range(len(plan.relays)), number)
    r = plan.relays
    return replace(plan, relays=Relays(r.part[keep], r.rank[keep], r.peer[keep], r.via[keep]))


def relay_elsewhere(plan: Plan, number: int) -> Plan | None:
    if not len(plan.relays):
        return None
    via = plan.relays.via.copy()
    row = pick(range(len(via)), number)
    via[row] = (via[row] + 1) % plan.model.cluster.gpu_count
    return replace(plan, relays=replace(plan.relays, via=via))


def _rerouted(plan: Plan, change: Callable[[Routes], Routes]) -> Plan | None:
    for p in plan.phases:
        if p.routes:
            other = replace(p, routes=(change(p.routes[0]), *p.routes[1:]))
            return replace(plan, phases=tuple(other if q is p else q for q in plan.phases))
    return None


def wrong_hop(plan: Plan, number: int) -> Plan | None:
    """Traffic goes on to where it comes from."""

    def change(routes: Routes) -> Routes:
        via = routes.via.copy()
        row = pick(range(len(via)), number)
        via[row] = (routes.source if number % 2 else routes.target)[row]
        return replace(routes, via=via)

    return _rerouted(plan, change)


def route_omitted(plan: Plan, number: int) -> Plan | None:
    def change(routes: Routes) -> Routes:
        keep = np.arange(len(routes.via)) != pick(range(len(routes.via)), number)
        return Routes(routes.n, routes.source[keep], routes.target[keep], routes.via[keep])

    return _rerouted(plan, change)


def ranks_exchanged(plan: Plan, number: int) -> Plan | None:
    gpu = plan.gpu_of_rank.copy()
    a = number % len(gpu)
    b = (a + len(gpu) // 2) % len(gpu)
    gpu[[a, b]] = gpu[[b, a]]
    return replace(plan, gpu_of_rank=gpu)


def stage_shifted(plan: Plan, number: int) -> Plan | None:
    stage = plan.stage_of_rank.copy()
    stage[pick(range(len(stage)), number)] += 1
    return replace(plan, stage_of_rank=stage)


# --- formulas, drawn consistently ----------------------------------------------------------------


def ring_split(plan: Plan, number: int) -> Plan | None:
    """A rotation by two: every second domain, in two rings."""

    def change(link: Link, n: int) -> Link | None:
        if isinstance(link.neighbour, Rotation) and n >= 4 and n % 2 == 0 and link.neighbour.digit.size == n:
            return replace(link, neighbour=Rotation(link.neighbour.digit, 2))
        return None

    return reshaped(plan, lambda p: p.spec.topology.name == "ring", change)


def listed_ring_split(plan: Plan, number: int) -> Plan | None:
    """The same by a table, as if the ring had been stated: pairs of neighbours instead of one cycle."""

    def change(link: Link, n: int) -> Link | None:
        if isinstance(link.neighbour, Rotation) and n >= 4 and n % 2 == 0 and link.neighbour.digit.size == n:
            return replace(link, neighbour=Table(tuple(v ^ 1 for v in range(n))))
        return None

    return reshaped(plan, lambda p: p.spec.topology.name == "ring", change)


def copy_turned(plan: Plan, number: int) -> Plan | None:
    """One of several one-way rings goes the other way round."""

    def change(link: Link, n: int) -> Link | None:
        if isinstance(link.neighbour, Rotation) and link.copy == 1 and link.directions is Directions.FORWARD and n > 2:
            return replace(link, directions=Directions.BACKWARD)
        return None

    return reshaped(plan, lambda p: p.spec.topology.one_way, change)


def step_repeated(plan: Plan, number: int) -> Plan | None:
    """A phase of several steps holds its first step twice, and never its last."""
    for p in plan.phases:
        if p.step_count > 1 and len(p.instances) == 1:
            (i,) = p.instances
            steps = (*i.shape.steps[:-1], i.shape.steps[0])
            other = replace(p, instances=(replace(i, shape=replace(i.shape, steps=steps)),))
            return redrawn(plan, [other if q is p else q for q in plan.phases])
    return None


def ports_confused(plan: Plan, number: int) -> Plan | None:
    """Every link of a phase enters where it leaves. With relays these may be different GPUs, and nothing is wrong."""
    if len(plan.relays):
        return None

    def change(link: Link, n: int) -> Link | None:
        return replace(link, in_port=link.out_port) if link.in_port != link.out_port else None

    return reshaped(plan, lambda p: True, change)


def _packed(plan: Plan) -> list[PlannedPhase]:
    static = plan.model.job.policy == "static"
    names = {packed.phase for packed in plan.model.job.pack}
    return [p for p in plan.phases if p.instances and (static or p.name in names)]


def packed_on_one_port(plan: Plan, number: int) -> Plan | None:
    """The second packed phase uses the ports of the first, and says so."""
    packed = _packed(plan)
    if len(packed) < 2:
        return None
    ports = sorted(packed[0].ports)
    others = sorted(packed[1].ports)
    to = {port: ports[at % len(ports)] for at, port in enumerate(others)}

    def moved(i: Instances) -> Instances:
        steps = tuple(
            tuple(replace(link, out_port=to[link.out_port], in_port=to[link.in_port]) for link in step)
            for step in i.shape.steps
        )
        return replace(i, shape=replace(i.shape, steps=steps))

    other = replace(packed[1], instances=tuple(map(moved, packed[1].instances)), ports=tuple(ports))
    return redrawn(plan, [other if p is packed[1] else p for p in plan.phases])


def packed_beyond_its_ports(plan: Plan, number: int) -> Plan | None:
    """A packed phase forgets a port that its links use."""
    packed = _packed(plan)
    if not packed:
        return None
    odd = packed[number % len(packed)]
    port = odd.instances[0].shape.steps[0][0].out_port
    fewer = tuple(p for p in odd.ports if p != port)
    return replace(plan, phases=tuple(replace(p, ports=fewer) if p is odd else p for p in plan.phases))


def domains_out_of_order(plan: Plan, number: int) -> Plan | None:
    """Two domains trade places in every ring or chain of a phase."""
    for p in plan.phases:
        if p.scoping is not Scoping.JOIN and p.instances and p.instances[0].shape.n >= 4:
            swapped = []
            for i in p.instances:
                order = np.arange(i.shape.n)
                order[[0, 1]] = order[[1, 0]]
                swapped.append(replace(i, exits=i.exits[:, order], entries=i.entries[:, order]))
            return redrawn(plan, [replace(p, instances=tuple(swapped)) if q is p else q for q in plan.phases])
    return None


def lane_forgotten(plan: Plan, number: int) -> Plan | None:
    """One rail of one group goes without its copy of the topology."""
    for p in plan.phases:
        if p.scoping is not Scoping.JOIN and p.instances and len(p.instances[0].exits) > 1:
            i = p.instances[0]
            keep = np.arange(len(i.exits)) != pick(range(len(i.exits)), number)
            less = Instances(i.shape, i.exits[keep], i.entries[keep], i.scope[keep], i.group[keep])
            other = replace(p, instances=(less, *p.instances[1:]))
            return redrawn(plan, [other if q is p else q for q in plan.phases])
    return None


#: What is broken: how, and the codes of which each opinion must give one.
MUTATIONS: dict[str, tuple[Mutation, set[str]]] = {
    "duplicate ingress": (duplicate_ingress, {CLASH}),
    "duplicate egress": (duplicate_egress, {CLASH}),
    "port out of bounds": (out_of_bounds, {PORT}),
    "port on the wrong side": (wrong_side, {PORT}),
    "negative port": (negative_port, {PORT}),
    "blocked port used": (blocked_port, {PORT}),
    "wrong cabling": (wrong_cabling, {PORT}),
    "wrong cabling, followed": (wrong_cabling_followed, {PORT}),
    "cable missing": (uncabled, {PORT}),
    "circuits exchanged": (exchanged, {REALISATION}),
    "ring split into two": (ring_split, {REALISATION, FORMULA}),
    "ring split into pairs": (listed_ring_split, {REALISATION, FORMULA}),
    "one-way ring turned": (copy_turned, {REALISATION, FORMULA}),
    "circuit dropped": (dropped, {REALISATION}),
    "circuit doubled": (doubled, {CLASH}),
    "circuit in the wrong part": (in_wrong_part, {REALISATION, CLASH}),
    "circuit in another step": (in_another_step, {REALISATION, CLASH}),
    "circuit filed wrongly": (misfiled, {REALISATION}),
    "circuit on the wrong switch": (on_wrong_switch, {REALISATION}),
    "circuit on no switch": (on_no_switch, {PORT}),
    "rows out of order": (unsorted_rows, {REALISATION}),
    "switch of another size": (other_switch, {PORT}),
    "phase forgotten": (phase_forgotten, {REALISATION}),
    "exclusion forgotten": (exclusion_forgotten, {EXCLUSION}),
    "exclusion invented": (exclusion_invented, {EXCLUSION}),
    "part outside its scope": (outside_scope, {REALISATION}),
    "relay omitted": (relay_omitted, {REALISATION}),
    "relay elsewhere": (relay_elsewhere, {REALISATION}),
    "route with a wrong hop": (wrong_hop, {REALISATION}),
    "route omitted": (route_omitted, {REALISATION}),
    "ranks exchanged": (ranks_exchanged, {REALISATION}),
    "rank in the wrong stage": (stage_shifted, {REALISATION}),
    "step repeated": (step_repeated, {REALISATION, FORMULA}),
    "ports confused": (ports_confused, {CLASH, FORMULA}),
    "packed phases on one port": (packed_on_one_port, {EXCLUSION, FORMULA}),
    "packed phase beyond its ports": (packed_beyond_its_ports, {FORMULA, REALISATION}),
    "domains out of order": (domains_out_of_order, {REALISATION}),
    "lane forgotten": (lane_forgotten, {REALISATION}),
}
