"""Random jobs on random fabrics: whatever the planner makes of them, both opinions find nothing against it."""

from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from opusc.diagnostics import Diagnostics
from opusc.model.edges import Edge
from opusc.model.entities import Dialect, Matrix, Optics, Peers, PhaseSpec, RailBy, Traffic
from opusc.plan.build import build_plan
from opusc.verify import first_opinion, second_opinion
from tests.support import HERE, make_model, phase


def one(draw: Any, *options: Any) -> Any:
    return draw(st.sampled_from(options))


@st.composite
def jobs(draw: Any) -> dict[str, Any]:
    """Options of `make_model`: degrees, placement, ports, optics, cabling and topologies of every kind."""
    tp, cp, dp, pp = one(draw, 1, 2, 4), one(draw, 1, 1, 2), draw(st.integers(1, 8)), one(draw, 1, 2, 3, 4, 6)
    options: dict[str, Any] = {"tp": tp, "cp": cp, "dp": dp, "pp": pp}
    dialect, order = Dialect.MEGATRON, ("tp", "cp", "ep", "dp", "pp")
    experts = [e for e in range(2, tp * cp * dp + 1) if tp * cp * dp % e == 0]
    if draw(st.booleans()):
        dialect, order = Dialect.TORCHTITAN, ("tp", "cp", "dp", "pp")
        if dp % 2 == 0 and draw(st.booleans()):
            order = ("tp", "cp", "dp.shard", "dp.replicate", "pp")
            options |= {"dp_replicate": 2, "dp_shard": dp // 2}
            experts = [e for e in experts if tp * cp * dp // 2 % e == 0]
    if experts and draw(st.booleans()):
        options |= {"ep": draw(st.sampled_from(experts)), "expert_tp": 1 if dialect is Dialect.MEGATRON else None}
    gpus = one(draw, 1, 2, 4, 8)
    nodes = -(-tp * cp * dp * pp // gpus)
    domain = one(draw, None, None, 2 * gpus, max(gpus // 2, 1))
    nodes += nodes % 2 if domain == 2 * gpus else 0
    ports = draw(st.integers(1, 4))
    return options | {
        "nodes": nodes, "gpus": gpus, "domain": domain, "rail_by": one(draw, *RailBy), "ports": ports,
        "planes": one(draw, 1, ports), "optics": one(draw, *Optics), "matrix": one(draw, *Matrix),
        "peers": one(draw, *Peers), "radix": 2048, "blocked": one(draw, (), (), (3,), (1, 6, 7)), "order": order,
        "dialect": dialect, "phases": tuple(phases(draw, options)),
    }  # fmt: skip


def phases(draw: Any, degrees: dict[str, Any]) -> list[PhaseSpec]:
    found = []
    reduction = one(draw, "ring", "ring", "chain")
    if "dp_shard" in degrees:
        found += [phase("dp.shard", ("dp.shard", "cp"), reduction), phase("dp.replicate", ("dp.replicate",), reduction)]
    elif degrees["dp"] * degrees["cp"] > 1:
        found.append(phase("dp", ("dp", "cp"), reduction))
    if degrees["cp"] > 1:
        found.append(phase("cp", ("cp",), "ring"))
    if degrees["pp"] > 1:
        found.append(phase("pp", ("pp",), one(draw, "chain", "chain", "pairs"), Traffic.POINT_TO_POINT))
    if degrees.get("ep", 1) > 1:
        topology = one(draw, "rotor", "mesh", "hypercube", "flattened_butterfly")
        found += [phase("ep", ("ep",), topology, Traffic.ALL_TO_ALL), phase("edp", ("edp",), "ring")]
    if degrees["dp"] > 4 and "dp_shard" not in degrees:
        found.append(phase("gossip", ("dp",), "edges", edges=circulant))
    return found


def circulant(n: int) -> tuple[Edge, ...]:
    """Neighbours at distances one and two, as far as these are different vertices."""
    distances = (1, 2) if n > 4 else (1,) if n > 2 else ()
    return tuple(Edge(i, (i + d) % n, HERE) for d in distances for i in range(n)) or (Edge(0, 1, HERE),)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(jobs())
def test_nothing_is_held_against_random_plans(options: dict[str, Any]) -> None:
    plan = build_plan(make_model(**options), Diagnostics())
    assume(plan is not None)
    assert plan is not None
    assert first_opinion(plan)[1] == []
    assert second_opinion(plan)[1] == []
