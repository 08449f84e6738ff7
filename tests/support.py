"""Models made by hand, for tests of the planner and of what follows it."""

from typing import Any

from opusc.diagnostics import Diagnostics
from opusc.model.entities import (
    CablingKind,
    CablingSpec,
    Cluster,
    Dialect,
    Fabric,
    Job,
    Matrix,
    Model,
    Nic,
    Optics,
    Packed,
    Parallelism,
    Peers,
    PhaseSpec,
    Pipeline,
    PipelineKind,
    RailBy,
    RailSpec,
    SwitchKind,
    TopologySpec,
    Traffic,
)
from opusc.plan.build import build_plan
from opusc.plan.plan import Plan
from opusc.source import Source, Span

HERE = Span(Source("<test>", "opus 1\n"), 0, 6)


def phase(
    name: str, axes: tuple[str, ...], topology: str, traffic: Traffic = Traffic.REDUCTION, **spec: Any
) -> PhaseSpec:
    return PhaseSpec(
        name=name, axes=axes, topology=TopologySpec(name=topology, span=HERE, **spec), traffic=traffic, span=HERE
    )


def default_phases(p: Parallelism, split_expert: bool = False) -> tuple[PhaseSpec, ...]:
    found = []
    if p.dp * p.cp > 1:
        found.append(phase("dp", ("dp", "cp"), "ring"))
    if p.cp > 1:
        found.append(phase("cp", ("cp",), "ring"))
    if p.pp > 1:
        found.append(phase("pp", ("pp",), "chain", Traffic.POINT_TO_POINT))
    if p.ep > 1:
        found.append(phase("ep", ("ep",), "rotor", Traffic.ALL_TO_ALL))
        found.append(phase("edp", ("edp",), "ring"))
    return tuple(found)


def make_model(
    *,
    nodes: int = 4,
    gpus: int = 2,
    domain: int | None = None,
    use: int | None = None,
    ports: int = 2,
    optics: Optics = Optics.DUPLEX,
    peers: Peers = Peers.PAIRED,
    matrix: Matrix = Matrix.CROSSBAR,
    radix: int = 4096,
    rail_by: RailBy = RailBy.LOCAL_RANK,
    planes: int = 1,
    blocks: int = 1,
    cabling: CablingSpec | None = None,
    blocked: tuple[int, ...] = (),
    order: tuple[str, ...] = ("tp", "cp", "ep", "dp", "pp"),
    dialect: Dialect | None = Dialect.MEGATRON,
    phases: tuple[PhaseSpec, ...] | None = None,
    relay_allowed: bool = True,
    rate: int = 400_000_000_000,
    pack: dict[str, int | None] | None = None,
    policy: str | None = None,
    **degrees: int,
) -> Model:
    """A one-job model on a fabric sized for it; `degrees` are the fields of Parallelism."""
    switch = SwitchKind(name="generic", matrix=matrix, radix=radix, blocked=blocked, span=HERE)
    cluster = Cluster(
        name="c",
        node_count=nodes,
        gpus_per_node=gpus,
        gpus_per_domain=domain or gpus,
        use=use or domain or gpus,
        nics=(Nic(role="", ports=ports, rate=rate, optics=optics, peers=peers, span=HERE),),
        span=HERE,
    )
    rails = gpus if rail_by is RailBy.LOCAL_RANK else domain or gpus
    fabric = Fabric(
        name="rails",
        cluster=cluster,
        rail_by=rail_by,
        rails=tuple(RailSpec(index=r, switches=(switch,) * (planes * blocks), span=HERE) for r in range(rails)),
        planes=planes,
        blocks=blocks,
        cabling=cabling or CablingSpec(kind=CablingKind.IN_ORDER, span=HERE),
        span=HERE,
    )
    parallelism = Parallelism(span=HERE, **degrees)
    job = Job(
        name="j",
        fabric=fabric,
        parallelism=parallelism,
        dialect=dialect,
        order=order,
        phases=default_phases(parallelism) if phases is None else phases,
        pipeline=Pipeline(kind=PipelineKind.GPIPE, span=HERE),
        relay_allowed=relay_allowed,
        policy=policy,
        pack=tuple(Packed(phase=name, ports=count, span=HERE) for name, count in (pack or {}).items()),
        span=HERE,
    )
    return Model(job=job, requirements=(), parameters={}, sources=(HERE.source,))


def make_plan(**options: Any) -> Plan:
    """The plan of `make_model(**options)`; fails the test when the planner objects."""
    sink = Diagnostics()
    plan = build_plan(make_model(**options), sink)
    assert plan is not None, [d.message for d in sink]
    return plan
