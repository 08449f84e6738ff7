"""Where ranks and cables ought to be: the numbering formulas, evaluated on every row of the plan's tables.

The formulas are those that `lemmas` proves one-to-one. Where a cabling is not what the formula says, because
it is listed or steps around a blocked position, its switch is marked, to be proved by itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opusc.model.entities import CablingKind, Job, Matrix, Optics, Side, SwitchKind
from opusc.plan.plan import Cabling, Int32, Plan
from opusc.plan.ports import port_model
from opusc.plan.ranks import rail_of
from opusc.verify.finding import PORT, REALISATION, Finding, gpu_name
from opusc.verify.lemmas import placement, position

__all__ = [
    "Piece",
    "Placing",
    "cabling_findings",
    "expected_cabling",
    "placement_findings",
    "placing_of",
    "switch_findings",
]


# --- placement -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placing:
    """How ranks get GPUs: rank = slot * use + lane is the GPU at that lane of the slot-th domain of the job.

    `nodes` is set where the job lists nodes that are not a run of consecutive ones.
    """

    slots: int
    use: int
    per_domain: int
    first: int
    nodes: tuple[int, ...] | None


def placing_of(job: Job) -> Placing:
    cluster = job.fabric.cluster
    nodes = job.nodes
    first_gpu = 0 if nodes is None else nodes[0] * cluster.gpus_per_node
    run = nodes is None or nodes == tuple(range(nodes[0], nodes[0] + len(nodes)))
    whole = first_gpu % cluster.gpus_per_domain == 0
    return Placing(
        slots=-(-job.parallelism.world // cluster.use),
        use=cluster.use,
        per_domain=cluster.gpus_per_domain,
        first=first_gpu // cluster.gpus_per_domain,
        nodes=None if run and whole else nodes,
    )


def placement_findings(plan: Plan, placing: Placing) -> list[Finding]:
    """Ranks that are not on the GPU that the formula, or the list of nodes, gives them."""
    world = plan.model.job.parallelism.world
    if plan.gpu_of_rank.shape != (world,) or plan.stage_of_rank.shape != (world,):
        return [Finding(REALISATION, f"the plan places {plan.world} ranks, and the job has {world}")]
    if placing.nodes is None:
        slot, lane = np.divmod(np.arange(world), placing.use)
        expected = placement(slot, lane, placing.first, placing.per_domain)
    else:
        cluster = plan.model.cluster
        local = np.arange(cluster.gpus_per_node)
        gpus = (np.array(placing.nodes)[:, None] * cluster.gpus_per_node + local[None, :]).ravel()
        expected = gpus[gpus % cluster.gpus_per_domain < cluster.use][:world]
    wrong = np.flatnonzero(plan.gpu_of_rank != expected)
    if not len(wrong):
        return []
    rank = int(wrong[0])
    return [
        Finding(
            REALISATION,
            f"rank {rank} is on {gpu_name(plan, int(plan.gpu_of_rank[rank]))} in the plan, and belongs on "
            f"{gpu_name(plan, int(expected[rank]))}",
            notes=(f"{len(wrong)} ranks are misplaced",),
        )
    ]


# --- cabling -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """Cables of one rail (and side) on one switch: NIC port `ports[p]` of the slot-th GPU of the rail ends at
    `position(slot, p, fibre)`, counted from `first`."""

    switch: int
    rail: int
    kind: SwitchKind
    side: Side | None
    gpus: Int32
    ports: tuple[int, ...]
    per_port: int
    first: int
    regular: bool  # no position is stepped around

    @property
    def count(self) -> int:
        return len(self.gpus) * len(self.ports) * self.per_port


def expected_cabling(plan: Plan) -> tuple[Cabling, tuple[Piece, ...]]:
    """What the cabling arrays ought to be, and the formula pieces that they follow."""
    shape = plan.cabling.switch.shape
    switch, ingress, egress = (np.full(shape, -1, np.int32) for _ in range(3))
    expected = Cabling(switch, ingress, egress, plan.model.fabric.cabling.kind is not CablingKind.LISTED)
    if not expected.regular:
        _listed(plan, expected)
        return expected, ()
    pieces = tuple(_pieces(plan, expected))
    return expected, pieces


def switch_findings(plan: Plan) -> list[Finding]:
    """Switches that are not the fabric's, by rail, plane and block."""
    fabric = plan.model.fabric
    wanted: dict[int, SwitchKind] = {}
    for rail in fabric.rails:
        for at, kind in enumerate(rail.switches):
            wanted.setdefault(_switch_index(plan, rail.index, *divmod(at, fabric.blocks)), kind)
    for switch in plan.switches:
        if wanted.pop(switch.index, None) != switch.kind:
            return [Finding(PORT, f"switch {switch.name} is not the one that the program puts there")]
    return [Finding(PORT, f"{len(wanted)} switches of the fabric are not in the plan")] if wanted else []


def cabling_findings(plan: Plan, expected: Cabling) -> list[Finding]:
    """NIC ports whose cable is not where it ought to be."""
    mine, found = plan.cabling, []
    differ = (mine.switch != expected.switch) | (mine.ingress != expected.ingress) | (mine.egress != expected.egress)
    wrong = np.argwhere(differ)
    if len(wrong):
        gpu, port = wrong[0].tolist()
        at = [(int(c.switch[gpu, port]), int(c.ingress[gpu, port]), int(c.egress[gpu, port])) for c in (mine, expected)]
        found.append(
            Finding(
                PORT,
                f"port {port} of {gpu_name(plan, gpu)} has its cable at (switch, ingress, egress) = {at[0]} in the "
                f"plan, and at {at[1]} in the program",
                notes=(f"{len(wrong)} cables differ",),
            )
        )
    return found


def _switch_index(plan: Plan, rail: int, plane: int, block: int) -> int:
    fabric = plan.model.fabric
    if fabric.cabling.kind is CablingKind.SHARE:
        return plane
    return (rail * fabric.planes + plane) * fabric.blocks + block


def _two_positions(plan: Plan, kind: SwitchKind) -> bool:
    return plan.model.cluster.rail_nic.optics is Optics.DUPLEX and kind.matrix is Matrix.ANY


def _pieces(plan: Plan, expected: Cabling) -> Iterator[Piece]:
    fabric, cluster = plan.model.fabric, plan.model.cluster
    model = port_model(fabric)
    gpu = np.arange(cluster.gpu_count, dtype=np.int32)
    rails = rail_of(plan.model.job, gpu)
    blocks = gpu // cluster.gpus_per_node // max(cluster.node_count // fabric.blocks, 1)
    ranges = dict(fabric.cabling.share)
    for rail in fabric.rails:
        on_rail = np.flatnonzero(rails == rail.index).astype(np.int32)
        for plane in range(fabric.planes):
            for block in range(fabric.blocks):
                gpus = on_rail[blocks[on_rail] == block]
                kind = rail.switches[plane * fabric.blocks + block]
                shared = fabric.cabling.kind is CablingKind.SHARE
                allowed = ranges.get(rail.index, ()) if shared else tuple(range(1, kind.radix + 1))
                for side in (None,) if model.sides is None else (Side.A, Side.B):
                    ports = tuple(
                        p
                        for p in range(model.count)
                        if model.planes[p] == plane and (model.sides is None or model.sides[p] is side)
                    )
                    index = _switch_index(plan, rail.index, plane, block)
                    if len(gpus) and ports:
                        yield _piece(plan, expected, index, rail.index, kind, side, gpus, ports, allowed)


def _piece(
    plan: Plan,
    expected: Cabling,
    switch: int,
    rail: int,
    kind: SwitchKind,
    side: Side | None,
    gpus: Int32,
    ports: tuple[int, ...],
    allowed: tuple[int, ...],
) -> Piece:
    per_port = 2 if _two_positions(plan, kind) else 1
    needed = len(gpus) * len(ports) * per_port
    first = allowed[0] if allowed else 1
    slot, p, fibre = np.ogrid[: len(gpus), : len(ports), :per_port]
    at = position(slot, p, fibre, first, len(ports), per_port)
    stated = np.array(_around_blocked(allowed, needed, kind), dtype=np.int64)
    regular = len(stated) == needed and np.array_equal(at.ravel(), stated)
    if not regular and len(stated) == needed:
        at = stated.reshape(at.shape)
    cells = np.ix_(gpus, np.array(ports))
    expected.switch[cells] = switch
    if side is not Side.B:
        expected.ingress[cells] = at[:, :, 0]
    if side is not Side.A:
        expected.egress[cells] = at[:, :, -1] + (0 if kind.matrix is Matrix.ANY else kind.radix)
    return Piece(switch, rail, kind, side, gpus, ports, per_port, first, regular)


def _around_blocked(allowed: tuple[int, ...], needed: int, kind: SwitchKind) -> list[int]:
    """The positions in order, each blocked one replaced by the next free one beyond the last."""
    blocked = frozenset(kind.blocked)
    inside = [p for p in allowed if p <= kind.radix]
    if not blocked:
        return inside[:needed]
    beyond = [p for p in inside[needed:] if p not in blocked]
    found, spare = [], 0
    for at in inside[:needed]:
        if at not in blocked:
            found.append(at)
        elif spare < len(beyond):
            found.append(beyond[spare])
            spare += 1
    return found


def _listed(plan: Plan, expected: Cabling) -> None:
    fabric, cluster = plan.model.fabric, plan.model.cluster
    model = port_model(fabric)
    for row in fabric.cabling.cables:
        gpu = row.node * cluster.gpus_per_node + row.gpu
        rail = int(rail_of(plan.model.job, np.array([gpu], np.int32))[0])
        plane, block = model.planes[row.port], row.node // max(cluster.node_count // fabric.blocks, 1)
        kind = fabric.rails[rail].switches[plane * fabric.blocks + block]
        side = None if model.sides is None else row.side or model.sides[row.port]
        expected.switch[gpu, row.port] = _switch_index(plan, rail, plane, block)
        if side is not Side.B:
            expected.ingress[gpu, row.port] = row.position
        if side is not Side.A:
            last = row.position if row.receive is None else row.receive
            expected.egress[gpu, row.port] = last + (0 if kind.matrix is Matrix.ANY else kind.radix)
