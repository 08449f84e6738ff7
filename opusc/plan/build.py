"""The planner: from a model to a plan, one step after another."""

import numpy as np

from opusc.diagnostics import Diagnostics
from opusc.model.entities import Job, Matrix, Model, Optics, PhaseSpec, Traffic
from opusc.plan.cabling import cable
from opusc.plan.groups import Placement, collective_instances
from opusc.plan.joins import Hop, join_instances
from opusc.plan.packing import Held, assign, packed_phases
from opusc.plan.parts import Wiring, circuits_and_parts, exclusions
from opusc.plan.plan import Circuits, Int32, Part, Plan, PlannedPhase, Relays, Routes, Scoping
from opusc.plan.ports import PortModel, port_model
from opusc.plan.ranks import dense_grid, grid_of, groups, place
from opusc.plan.routes import routes

__all__ = ["build_plan"]


def build_plan(model: Model, sink: Diagnostics) -> Plan | None:
    """Ranks, groups, topologies, ports, parts. None when the sink has errors that stop it."""
    job = model.job
    placement = Placement.of(job, dense_grid(job), place(job))
    if not _inside_domains(job, placement, sink):
        return None
    switches, cabling = cable(job, sink)
    ports = port_model(job.fabric)
    planned: list[PlannedPhase] = []
    hops: list[tuple[Hop, ...]] = []
    own = _packed(placement, ports, sink)
    if own is None:
        return None
    for spec in job.phases:
        usable = ports.only(own[spec.name]) if spec.name in own else ports
        phase, own_hops = _plan_phase(len(planned), spec, placement, usable, sink)
        planned.append(phase)
        hops.append(own_hops)
    if sink.has_errors:
        return None
    wiring = Wiring(job.fabric.cluster, switches, cabling)
    circuits, parts = circuits_and_parts(planned, wiring, sink)
    if sink.has_errors:
        return None
    return Plan(
        model=model,
        switches=switches,
        cabling=cabling,
        gpu_of_rank=placement.gpu_of_rank,
        stage_of_rank=placement.stage_of_rank,
        phases=tuple(planned),
        parts=parts,
        circuits=circuits,
        exclusions=exclusions(circuits, switches),
        relays=_relays(parts, hops),
        assumptions=(*_assumptions(job, ports, circuits), *_turning(planned, own)),
    )


def _plan_phase(
    index: int, spec: PhaseSpec, placement: Placement, ports: PortModel, sink: Diagnostics
) -> tuple[PlannedPhase, tuple[Hop, ...]]:
    job = placement.job
    ranks = groups(grid_of(job, spec.axes), spec.axes)
    hops: tuple[Hop, ...] = ()
    before = len(sink.errors)
    if spec.axes == ("pp",) and spec.traffic is Traffic.POINT_TO_POINT:
        scoping = Scoping.JOIN
        instances, scopes, hops = join_instances(spec, ranks, placement, ports, sink)
    else:
        stages = placement.stage_of_rank[ranks]
        whole = "pp" in spec.axes
        scoping = Scoping.JOB if whole else Scoping.STAGE
        scope = np.zeros(len(ranks), np.int32) if whole else stages[:, 0]
        scopes = ((),) if whole else tuple((s,) for s in range(job.parallelism.pp))
        instances = collective_instances(spec, ranks, scope, placement, ports, sink)
    found: dict[int, Routes] = {}
    # Edges that are wrong were left out: what they cut off is no further mistake.
    whole_shapes = instances if len(sink.errors) == before else ()
    for form in {i.shape.n: i.shape for i in whole_shapes}.values():
        if (way := routes(spec, form, sink)) is not None:
            found[form.n] = way
    steps = max((len(i.shape.steps) for i in instances), default=0)
    phase = PlannedPhase(index, spec, scoping, scopes, instances, steps, len(ranks), tuple(found.values()), ports.ports)
    return phase, hops


def _packed(placement: Placement, ports: PortModel, sink: Diagnostics) -> dict[str, tuple[int, ...]] | None:
    """The ports of each packed phase; None when they do not suffice."""
    if not packed_phases(placement.job):
        return {}

    def probe(spec: PhaseSpec, usable: PortModel) -> Held | None:
        attempt = Diagnostics()
        phase, _ = _plan_phase(0, spec, placement, usable, attempt)
        if attempt.has_errors:
            return None
        return Held(phase.step_count, min((i.shape.copies for i in phase.instances), default=0))

    return assign(placement.job, ports, probe, sink)


def _turning(planned: list[PlannedPhase], own: dict[str, tuple[int, ...]]) -> tuple[str, ...]:
    """What packing makes of the phases, in words."""
    said = []
    for phase in planned:
        if own.get(phase.name):
            one = len(own[phase.name]) == 1
            which = f"port{'' if one else 's'} {', '.join(map(str, own[phase.name]))}"
            turns = phase.spec.topology.name == "chain" and phase.step_count == 2
            said.append(
                f"phase `{phase.name}` has {which} of each GPU to itself"
                + (", for one direction at a time" if turns else "")
            )
    return tuple(said)


def _inside_domains(job: Job, placement: Placement, sink: Diagnostics) -> bool:
    """Tensor parallelism stays in a scale-up domain, unless a phase over it is stated."""
    p = job.parallelism
    cluster = job.fabric.cluster
    stated = {axis for phase in job.phases for axis in phase.axes}
    ok = True
    for axis, degree in (("tp", p.tp), ("expert_tp", p.expert_tp or 1)):
        if degree == 1 or axis in stated or (axis == "expert_tp" and p.ep == 1):
            continue
        ranks = groups(grid_of(job, (axis,)), (axis,))
        spread = np.ptp(placement.domain(placement.gpu_of_rank[ranks]), axis=1)
        outside = np.flatnonzero(spread > 0)
        if len(outside):
            first = ", ".join(map(str, ranks[outside[0]][:8].tolist())) + (", ..." if degree > 8 else "")
            sink.error(
                "OPUS411",
                f"{axis} = {degree} does not stay inside a scale-up domain of {cluster.use} GPUs",
                p.at(axis),
                f"ranks {first} are in several domains",
                notes=[f"{len(outside)} of {len(ranks)} {axis} groups leave their domain, and have no circuits"],
                help=f"enlarge `domain`, choose {axis} so that it divides {cluster.use}, put {axis} first in "
                f"`order`, or state `phase {axis} {{ topology = ring }}`",
            )
            ok = False
    return ok


def _relays(parts: tuple[Part, ...], hops: list[tuple[Hop, ...]]) -> Relays:
    """Scale-up hops by part: one for each step that has circuits in the scope."""
    columns: list[tuple[Int32, Int32, Int32, Int32]] = []
    for part in parts:
        for hop in hops[part.phase]:
            rows = hop.scope == part.scope
            if rows.any():
                number = np.full(int(rows.sum()), part.index, dtype=np.int32)
                columns.append((number, hop.rank[rows], hop.peer[rows], hop.via[rows]))
    if not columns:
        none = np.zeros(0, np.int32)
        return Relays(none, none, none, none)
    part_of, rank, peer, via = (np.concatenate(c) for c in zip(*columns, strict=True))
    order = np.lexsort((rank, part_of))
    return Relays(part_of[order], rank[order], peer[order], via[order])


def _assumptions(job: Job, ports: PortModel, circuits: Circuits) -> tuple[str, ...]:
    """What the compiler took for granted, in words."""
    nic = job.fabric.cluster.rail_nic
    matrix = job.fabric.rails[0].switches[0].matrix
    if nic.optics is Optics.DUPLEX:
        link = "a two-way link is two circuits" if not ports.independent else "each direction is a circuit of its own"
    else:
        link = "a link is one circuit, both ways"
    return (
        f"{nic.optics} optics on {_article(matrix)} matrix, {nic.peers} peers: {link}",
        f"order of ranks, innermost first: {', '.join(job.order)}",
    )


def _article(matrix: Matrix) -> str:
    return "an `any`" if matrix is Matrix.ANY else f"a {matrix}"
