"""Real plans of every kind, for tests of verification."""

from collections.abc import Callable
from functools import cache

from opusc.model.edges import Edge
from opusc.model.entities import (
    Cable,
    CablingKind,
    CablingSpec,
    Dialect,
    Matrix,
    Optics,
    Peers,
    RailBy,
    Traffic,
)
from opusc.plan.plan import Plan
from opusc.source import Source
from tests.support import HERE, make_plan, phase

__all__ = ["PLANS", "plan"]

_TEXT = Source("<edges>", "(0, 3)\n(1, 4)\n(2, 5)\n")


def _crossed_cables() -> CablingSpec:
    """Eight nodes of one GPU and two ports, from the last position down, two cables crossed."""
    positions = list(range(16, 0, -1))
    positions[3], positions[6] = positions[6], positions[3]
    cables = tuple(
        Cable(node=at // 2, gpu=0, port=at % 2, position=position, span=HERE) for at, position in enumerate(positions)
    )
    return CablingSpec(kind=CablingKind.LISTED, cables=cables, span=HERE)


def _shared() -> CablingSpec:
    ranges = ((0, tuple(range(1, 17))), (1, tuple(range(41, 57))))
    return CablingSpec(kind=CablingKind.SHARE, share=ranges, span=HERE)


def _across(n: int) -> tuple[Edge, ...]:
    return tuple(Edge(i, i + n // 2, _TEXT.line_span(i % 3 + 1)) for i in range(n // 2))


def _circulant(n: int) -> tuple[Edge, ...]:
    return tuple(Edge(i, (i + step) % n, HERE, f"step = {step}, i = {i}") for step in (1, 2) for i in range(n))


def _mixture(topology: str, **options: object) -> Plan:
    phases = (
        phase("dp", ("dp", "cp"), "ring"),
        phase("ep", ("ep",), topology, Traffic.ALL_TO_ALL, **options.pop("spec", {})),  # type: ignore[arg-type]
        phase("pp", ("pp",), "chain", Traffic.POINT_TO_POINT),
    )
    return make_plan(phases=phases, **options)


PLANS: dict[str, Callable[[], Plan]] = {
    "crossbar, duplex": lambda: make_plan(nodes=8, gpus=2, tp=2, dp=4, pp=2, radix=32),
    "crossbar, bidi": lambda: make_plan(nodes=8, gpus=2, tp=2, dp=4, pp=2, radix=32, optics=Optics.BIDI),
    "any, duplex": lambda: make_plan(nodes=8, gpus=2, tp=2, dp=4, pp=2, radix=64, matrix=Matrix.ANY),
    "any, bidi": lambda: make_plan(
        nodes=8, gpus=2, tp=2, dp=4, pp=2, radix=32, matrix=Matrix.ANY, optics=Optics.BIDI
    ),
    "photonic rails": lambda: make_plan(nodes=16, gpus=8, tp=8, dp=4, pp=4, radix=192),
    "one paired port": lambda: make_plan(nodes=10, gpus=2, ports=1, tp=2, dp=5, pp=2, radix=16),
    "one independent port": lambda: _mixture(
        "rotor", nodes=8, gpus=2, ports=1, peers=Peers.INDEPENDENT, dp=8, pp=2, ep=8, expert_tp=1, radix=16
    ),
    "independent ports": lambda: make_plan(nodes=8, gpus=2, ports=3, peers=Peers.INDEPENDENT, tp=2, dp=4, pp=2),
    "rotor in rounds": lambda: _mixture("rotor", nodes=12, gpus=2, tp=2, dp=6, pp=2, ep=6, expert_tp=2),
    "rotor on sides": lambda: _mixture(
        "rotor", nodes=12, gpus=1, dp=6, pp=2, ep=6, expert_tp=1, optics=Optics.BIDI
    ),
    "flattened butterfly on planes": lambda: _mixture(
        "flattened_butterfly", nodes=16, gpus=2, ports=4, planes=4, dp=16, pp=2, ep=16, expert_tp=1,
        spec={"dims": (2, 4)},
    ),
    "hypercube": lambda: _mixture("hypercube", nodes=16, gpus=1, dp=8, pp=2, ep=8, expert_tp=1),
    "stated edges": lambda: make_plan(
        nodes=12, gpus=1, dp=6, pp=2,
        phases=(
            phase("warmup", ("dp",), "pairs", Traffic.POINT_TO_POINT, edges=_across),
            phase("gossip", ("dp",), "edges", Traffic.ALL_TO_ALL, edges=_circulant),
            phase("pp", ("pp",), "chain", Traffic.POINT_TO_POINT),
        ),
    ),
    "listed cables": lambda: make_plan(nodes=8, gpus=1, dp=4, pp=2, radix=16, cabling=_crossed_cables()),
    "shared chassis": lambda: make_plan(nodes=8, gpus=2, tp=2, dp=4, pp=2, radix=64, cabling=_shared()),
    "blocked positions": lambda: make_plan(nodes=8, gpus=1, dp=4, pp=2, radix=32, blocked=(3, 8)),
    "relays": lambda: make_plan(nodes=4, gpus=4, dp=2, pp=8),
    "relays that meet": lambda: make_plan(nodes=3, gpus=4, tp=2, dp=3, pp=2),
    "relays on one port": lambda: make_plan(nodes=4, gpus=4, ports=1, dp=2, pp=8),
    "racks": lambda: _mixture(
        "rotor", nodes=24, gpus=4, domain=12, rail_by=RailBy.DOMAIN_RANK, ports=1, peers=Peers.INDEPENDENT,
        dp=48, pp=2, ep=48, expert_tp=1, radix=32,
    ),
    "torchtitan, split": lambda: make_plan(
        nodes=6, gpus=4, tp=4, dp=6, dp_replicate=2, dp_shard=3, dialect=Dialect.TORCHTITAN,
        order=("tp", "cp", "dp.shard", "dp.replicate", "pp"),
        phases=(phase("dp.shard", ("dp.shard", "cp"), "ring"), phase("dp.replicate", ("dp.replicate",), "ring")),
    ),
    "part of a domain": lambda: make_plan(nodes=8, gpus=4, use=3, tp=3, dp=4, pp=2),
    "interleaved pipeline": lambda: make_plan(
        nodes=8, gpus=2, tp=2, dp=2, pp=4,
        phases=(phase("dp", ("dp", "cp"), "ring"), phase("pp", ("pp",), "ring", Traffic.POINT_TO_POINT)),
    ),
    "packed": lambda: make_plan(nodes=8, gpus=2, ports=4, tp=2, dp=4, pp=2, pack={"dp": None, "pp": None}),
    "packed, a way at a time": lambda: make_plan(
        nodes=16, gpus=1, peers=Peers.INDEPENDENT, dp=4, pp=4, pack={"dp": None, "pp": None}
    ),
    "one-way rings": lambda: make_plan(
        nodes=16, gpus=1, ports=3, peers=Peers.INDEPENDENT, dp=4, pp=4,
        phases=(
            phase("dp", ("dp",), "ring", one_way=True),
            phase("pp", ("pp",), "chain", Traffic.POINT_TO_POINT),
        ),
    ),
    "static": lambda: make_plan(
        nodes=16, gpus=1, ports=4, dp=4, pp=4, optics=Optics.BIDI, radix=64, policy="static"
    ),
}  # fmt: skip


@cache
def plan(name: str) -> Plan:
    return PLANS[name]()
