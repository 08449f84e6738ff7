"""Which circuits a rank uses: read from the plan's rows and the cabling, not from how they were made."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opusc.model.entities import Matrix, Optics
from opusc.plan.plan import Int32, Plan, PlannedPhase

__all__ = ["Reach", "UsedCircuit", "circuits_of", "detours_of", "group_of"]


@dataclass(frozen=True, slots=True)
class UsedCircuit:
    """One circuit at a NIC port of a GPU. `peer` is the rank at its other end, -1 for a GPU without rank."""

    part: int
    gpu: int
    port: int
    way: str  # "to", "from" or "both"
    peer: int
    peer_gpu: int
    peer_port: int
    switch: int
    ingress: int
    egress: int


@dataclass(frozen=True, slots=True)
class Reach:
    """Traffic for rank `target` that first goes to the neighbour `via`."""

    target: int
    via: int


def group_of(plan: Plan, phase: PlannedPhase, rank: int) -> tuple[int, list[int]]:
    """Number and members of the group of a rank in a phase."""
    from opusc.plan.ranks import grid_of, groups

    members = groups(grid_of(plan.model.job, phase.spec.axes), phase.spec.axes)
    row = int(np.flatnonzero((members == rank).any(axis=1))[0])
    return row, [int(r) for r in members[row]]


def circuits_of(plan: Plan, phase: PlannedPhase, rank: int) -> Iterator[UsedCircuit]:
    """The circuits of a phase at a rank's GPU, and those at the GPUs that relay for it that lead to its peers."""
    yield from _circuits_at(plan, phase, int(plan.gpu_of_rank[rank]))
    r, size = plan.relays, plan.model.cluster.gpus_per_domain
    own = r.rank == rank
    beyond = plan.gpu_of_rank[r.peer[own]] // size
    ways = set(zip(r.via[own].tolist(), r.part[own].tolist(), beyond.tolist(), strict=True))
    for via in sorted({via for via, _, _ in ways}):
        for use in _circuits_at(plan, phase, via):
            if (via, use.part, use.peer_gpu // size) in ways:
                yield use


def _circuits_at(plan: Plan, phase: PlannedPhase, gpu: int) -> Iterator[UsedCircuit]:
    """Every circuit of a phase that ends at a NIC port of a GPU, by part, port and direction."""
    cabling, c = plan.cabling, plan.circuits
    parts = np.array([part.index for part in plan.parts if part.phase == phase.index], dtype=np.int32)
    rows = np.flatnonzero(np.isin(c.part, parts) & np.isin(c.switch, cabling.switch[gpu]))
    ends = _ends(plan)
    found = []
    for row in rows.tolist():
        switch, ingress, egress = int(c.switch[row]), int(c.ingress[row]), int(c.egress[row])
        for mine, other, into in ((ingress, egress, True), (egress, ingress, False)):
            here = ends.get((switch, mine))
            there = ends.get((switch, other))
            if here is None or there is None or here[0] != gpu:
                continue
            way = _way(plan, switch, here[2], into)
            peer = int(plan.rank_of_gpu[there[0]])
            found.append(
                UsedCircuit(int(c.part[row]), gpu, here[1], way, peer, there[0], there[1], switch, ingress, egress)
            )
    yield from sorted(found, key=lambda use: (use.part, use.port, use.way, use.ingress))


def detours_of(plan: Plan, phase: PlannedPhase, rank: int) -> Iterator[Reach]:
    """The ranks of the same lane that this one reaches through a neighbour."""
    gpu = int(plan.gpu_of_rank[rank])
    for instances in phase.instances:
        for routes in phase.routes:
            if routes.n != instances.shape.n:
                continue
            for row in np.flatnonzero((instances.exits == gpu).any(axis=1)).tolist():
                lane = plan.rank_of_gpu[instances.exits[row]]
                vertex = int(np.flatnonzero(instances.exits[row] == gpu)[0])
                here = np.flatnonzero((routes.source == vertex) & (routes.via != routes.target))
                for at in here.tolist():
                    yield Reach(int(lane[routes.target[at]]), int(lane[routes.via[at]]))


def _ends(plan: Plan) -> dict[tuple[int, int], tuple[int, int, str]]:
    """(switch, switch port) -> (GPU, NIC port, `transmit`, `receive` or `both`)."""
    cabling = plan.cabling
    ends: dict[tuple[int, int], tuple[int, int, str]] = {}
    for side, ports in (("transmit", cabling.ingress), ("receive", cabling.egress)):
        gpus, nic_ports = np.nonzero((cabling.switch >= 0) & (ports >= 0))
        switches: Int32 = cabling.switch[gpus, nic_ports]
        for gpu, port, switch, number in zip(
            gpus.tolist(), nic_ports.tolist(), switches.tolist(), ports[gpus, nic_ports].tolist(), strict=True
        ):
            key = (switch, number)
            ends[key] = (gpu, port, "both" if key in ends else side)
    return ends


def _way(plan: Plan, switch: int, here: str, into: bool) -> str:
    """Whose light the circuit carries, seen from this end."""
    if plan.model.cluster.rail_nic.optics is Optics.BIDI:
        return "both"
    if plan.switches[switch].kind.matrix is Matrix.CROSSBAR:
        return "to" if into else "from"
    return "to" if here == "transmit" else "from"
