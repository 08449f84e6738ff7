"""The planner on whole models: groups, rails, parts, exclusions, relays, cabling, transitions."""

import numpy as np
import pytest

from opusc.diagnostics import Diagnostics
from opusc.model.entities import (
    Cable,
    CablingKind,
    CablingSpec,
    Dialect,
    Matrix,
    Optics,
    Peers,
    RailBy,
    Side,
)
from opusc.plan.build import build_plan
from opusc.plan.plan import Plan
from opusc.plan.ranks import dense_grid, expert_grid, groups
from opusc.plan.transitions import held, transition
from tests.support import HERE, make_model, make_plan, phase


def codes(**options: object) -> list[str]:
    sink = Diagnostics()
    build_plan(make_model(**options), sink)  # type: ignore[arg-type]
    return [d.code for d in sink]


def names(plan: Plan) -> list[str]:
    return [part.name for part in plan.parts]


def circuits(plan: Plan, part: str) -> list[tuple[int, int, int]]:
    index = names(plan).index(part)
    rows = plan.rows(index)
    c = plan.circuits
    return list(zip(c.switch[rows].tolist(), c.ingress[rows].tolist(), c.egress[rows].tolist(), strict=True))


# --- ranks and groups ----------------------------------------------------------------------------


def test_megatron_expert_grid_reuses_tensor_ranks_for_experts() -> None:
    job = make_model(nodes=16, gpus=4, tp=2, dp=32, ep=64, expert_tp=1).job
    assert dense_grid(job).world == expert_grid(job).world == 64
    assert groups(expert_grid(job), ("ep",)).shape == (1, 64)
    assert groups(dense_grid(job), ("dp", "cp"))[0].tolist() == list(range(0, 64, 2))


def test_torchtitan_takes_experts_from_shard_context_and_tensor() -> None:
    job = make_model(
        nodes=2, gpus=4, tp=2, dp=4, dp_replicate=2, dp_shard=2, ep=4, dialect=Dialect.TORCHTITAN,
        order=("tp", "cp", "dp.shard", "dp.replicate", "pp"), phases=(),
    ).job  # fmt: skip
    assert groups(expert_grid(job), ("ep",)).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert groups(dense_grid(job), ("dp.replicate",)).tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_worked_example_of_the_design() -> None:
    """tp 4, dp 8 on 8-GPU nodes: eight members collapse to four nodes, on rails r and r + 4."""
    plan = make_plan(nodes=4, gpus=8, tp=4, dp=8)
    (instances,) = plan.phases[0].instances
    assert instances.shape.n == 4
    assert len(instances.exits) == 8
    assert instances.exits[:, 0].tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
    assert instances.group.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_groups_inside_a_domain_have_no_circuits() -> None:
    plan = make_plan(nodes=2, gpus=4, dp=4, pp=2)
    assert names(plan) == ["pp[0-1]"]


def test_part_of_a_domain_in_use() -> None:
    plan = make_plan(nodes=4, gpus=4, use=3, tp=3, dp=4)
    assert set(plan.gpu_of_rank.tolist()) == {n * 4 + g for n in range(4) for g in range(3)}
    assert len(set(plan.circuits.switch.tolist())) == 3


def test_domain_of_several_nodes_has_a_rail_for_each_gpu() -> None:
    plan = make_plan(
        nodes=144, gpus=4, domain=72, rail_by=RailBy.DOMAIN_RANK, ports=1, peers=Peers.INDEPENDENT,
        dp=288, pp=2, ep=288, expert_tp=1,
    )  # fmt: skip
    assert len(plan.switches) == 72
    assert [n for n in names(plan) if n.startswith("ep[0]")] == ["ep[0] step 0", "ep[0] step 1", "ep[0] step 2"]


def test_uneven_groups_use_the_rails_they_share_and_say_so() -> None:
    sink = Diagnostics()
    plan = build_plan(make_model(nodes=5, gpus=2, dp=5, pp=2), sink)
    assert plan is not None
    assert [(d.code, d.severity) for d in sink] == [("OPUS405", "warning")]


def test_tensor_group_outside_its_domain_is_refused() -> None:
    assert codes(nodes=2, gpus=4, tp=8) == ["OPUS411"]


# --- parts ---------------------------------------------------------------------------------------


def test_quickstart_circuits_by_hand() -> None:
    """Four two-GPU nodes, two ports: node n has positions 2n + 1 and 2n + 2 of each rail's switch."""
    plan = make_plan(nodes=4, gpus=2, tp=2, dp=2, pp=2, radix=32)
    assert names(plan) == ["dp[0]", "dp[1]", "pp[0-1]"]
    # A ring of two: next (port 0) of one to previous (port 1) of the other, and back.
    assert circuits(plan, "dp[0]")[:4] == [(0, 1, 36), (0, 2, 35), (0, 3, 34), (0, 4, 33)]
    # A join of two stages takes both ports: node 0 to node 2, node 1 to node 3.
    assert {(i, e) for s, i, e in circuits(plan, "pp[0-1]") if s == 0 and i <= 2} == {(1, 37), (2, 38)}
    assert plan.exclusions.tolist() == [[0, 2], [1, 2]]


def test_one_port_takes_two_steps_for_four_stages() -> None:
    plan = make_plan(nodes=8, gpus=4, ports=1, tp=4, dp=2, pp=4, radix=16)
    joins = [n for n in names(plan) if n.startswith("pp")]
    assert joins == ["pp[0-1] step 0", "pp[1-2] step 1", "pp[2-3] step 0"]
    assert plan.compatible([names(plan).index(j) for j in joins if j.endswith("0")])
    assert not plan.compatible([names(plan).index(j) for j in joins[:2]])


def test_joins_of_a_pipeline_hold_together_on_two_ports() -> None:
    plan = make_plan(nodes=8, gpus=2, tp=2, dp=2, pp=4)
    assert plan.compatible([names(plan).index(f"pp[{s}-{s + 1}]") for s in range(3)])


@pytest.mark.parametrize("optics", list(Optics))
@pytest.mark.parametrize("matrix", list(Matrix))
def test_four_kinds_of_cabling_draw_the_same_links(optics: Optics, matrix: Matrix) -> None:
    plan = make_plan(nodes=8, gpus=2, tp=2, dp=4, pp=2, optics=optics, matrix=matrix)
    owner = {}
    for gpu, port in np.ndindex(*plan.cabling.switch.shape):
        for ends in (plan.cabling.ingress, plan.cabling.egress):
            if ends[gpu, port] >= 0:
                owner[int(plan.cabling.switch[gpu, port]), int(ends[gpu, port])] = int(gpu)
    c = plan.circuits
    links = {
        frozenset((owner[s, i], owner[s, e]))
        for s, i, e in zip(c.switch.tolist(), c.ingress.tolist(), c.egress.tolist(), strict=True)
    }
    rings = {
        frozenset((8 * s + 2 * v + g, 8 * s + 2 * ((v + 1) % 4) + g)) for s in (0, 1) for v in range(4) for g in (0, 1)
    }
    assert links == rings | {frozenset((2 * v + g, 8 + 2 * v + g)) for v in range(4) for g in (0, 1)}
    if optics is Optics.DUPLEX:
        assert len(c) == 2 * 16 + 2 * 16  # rings, and joins on both ports: two circuits a link


def test_relay_hops_to_the_rail_of_the_stage_it_enters() -> None:
    plan = make_plan(nodes=2, gpus=4, dp=2, pp=4)
    assert names(plan) == ["pp[1-2]"]
    r = plan.relays
    assert list(zip(r.rank.tolist(), r.peer.tolist(), r.via.tolist(), strict=True)) == [(2, 4, 0), (3, 5, 1)]
    assert codes(nodes=2, gpus=4, dp=2, pp=4, relay_allowed=False) == ["OPUS406"]


def test_domains_that_are_half_a_node_share_rails_only_by_domain_rank() -> None:
    halves = {"nodes": 2, "gpus": 4, "domain": 2, "tp": 2, "dp": 4}
    sink = Diagnostics()
    build_plan(make_model(**halves), sink)
    [found] = [d for d in sink if d.code == "OPUS405"]
    assert "rail_by = domain_rank" in found.help
    assert names(make_plan(**halves, rail_by=RailBy.DOMAIN_RANK)) == ["dp[0]"]


# --- cabling -------------------------------------------------------------------------------------


def test_too_few_positions_states_the_figures() -> None:
    sink = Diagnostics()
    build_plan(make_model(nodes=100, gpus=8, radix=192, tp=8, dp=25, pp=4), sink)
    (found,) = sink
    assert found.code == "OPUS301"
    assert "200 positions" in found.message
    assert "192" in found.message
    assert "at most 96 nodes" in found.help


def test_blocked_position_moves_one_port_only() -> None:
    plain = make_plan(nodes=4, gpus=1, dp=4, radix=16)
    moved = make_plan(nodes=4, gpus=1, dp=4, radix=16, blocked=(3,))
    differ = np.argwhere(plain.cabling.ingress != moved.cabling.ingress)
    assert differ.tolist() == [[1, 0]]
    assert int(moved.cabling.ingress[1, 0]) == 9


def test_rails_that_share_a_chassis_keep_to_their_ranges() -> None:
    share = ((0, tuple(range(1, 9))), (1, tuple(range(25, 33))))
    spec = CablingSpec(kind=CablingKind.SHARE, share=share, span=HERE)
    plan = make_plan(nodes=4, gpus=2, tp=2, dp=2, pp=2, radix=32, cabling=spec)
    assert len(plan.switches) == 1
    assert sorted(set(plan.circuits.ingress.tolist())) == [*range(1, 9), *range(25, 33)]


def listed(rows: list[tuple[int, ...]], **extra: object) -> CablingSpec:
    cables = tuple(Cable(node=n, gpu=g, port=p, position=k, span=HERE, **extra) for n, g, p, k in rows)  # type: ignore[arg-type]
    return CablingSpec(kind=CablingKind.LISTED, cables=cables, span=HERE)


def test_listed_cabling_is_followed() -> None:
    rows = [(n, 0, p, 16 - (2 * n + p)) for n in range(4) for p in range(2)]
    plan = make_plan(nodes=4, gpus=1, dp=4, radix=16, cabling=listed(rows))
    assert plan.cabling.ingress.tolist() == [[16, 15], [14, 13], [12, 11], [10, 9]]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ((9, 0, 0, 1), "OPUS302"),
        ((0, 0, 7, 1), "OPUS302"),
        ((3, 0, 1, 99), "OPUS302"),
        ((3, 0, 1, 1), "OPUS303"),
        ((0, 0, 0, 12), "OPUS303"),
    ],
)
def test_impossible_cables(change: tuple[int, ...], code: str) -> None:
    rows: list[tuple[int, ...]] = [(n, 0, p, 2 * n + p + 1) for n in range(4) for p in range(2)]
    rows[-1] = change
    assert codes(nodes=4, gpus=1, dp=4, radix=16, cabling=listed(rows)) == [code]


def test_a_side_is_refused_where_ports_have_none() -> None:
    rows = [(n, 0, p, 2 * n + p + 1) for n in range(4) for p in range(2)]
    for matrix in Matrix:
        found = codes(nodes=4, gpus=1, dp=4, radix=16, cabling=listed(rows, side=Side.A), matrix=matrix)
        assert set(found) == {"OPUS302"}


def test_missing_cable_is_named_where_a_phase_needs_it() -> None:
    rows = [(n, 0, p, 2 * n + p + 1) for n in range(4) for p in range(2)][:-1]
    assert codes(nodes=4, gpus=1, dp=4, radix=16, cabling=listed(rows)) == ["OPUS408"]


def test_a_node_without_cables_is_one_mistake() -> None:
    rows = [(n, 0, p, 2 * n + p + 1) for n in range(8) for p in range(2) if n != 3]
    sink = Diagnostics()
    build_plan(make_model(nodes=8, gpus=1, dp=4, pp=2, radix=32, cabling=listed(rows)), sink)
    (found,) = sink
    assert found.message == "phases `dp` and `pp` need 2 NIC ports without a cable; port 0 of GPU 0 of node 3 is one"
    assert found.label == "of node 3"


def test_sides_from_the_cabling() -> None:
    rows = [(n, 0, 0, n // 2 + 1) for n in range(4)]
    cables = tuple(
        Cable(node=n, gpu=g, port=p, position=k, side=Side.A if n % 2 == 0 else Side.B, span=HERE)
        for n, g, p, k in rows
    )
    spec = CablingSpec(kind=CablingKind.LISTED, cables=cables, sides=(Side.A,), span=HERE)
    # With one port the topology model cannot know that the nodes alternate: refused, not mis-wired.
    assert codes(nodes=4, gpus=1, ports=1, dp=4, radix=16, optics=Optics.BIDI, cabling=spec) == ["OPUS401"]


def test_blocks_must_not_be_crossed() -> None:
    assert codes(nodes=8, gpus=1, dp=8, radix=8, blocks=2) == ["OPUS409"]
    assert (
        len(make_plan(nodes=8, gpus=1, dp=4, pp=2, radix=8, blocks=2, phases=(phase("dp", ("dp",), "ring"),)).switches)
        == 2
    )


# --- transitions ---------------------------------------------------------------------------------


def test_transition_is_minimal_and_reaches_its_goal() -> None:
    plan = make_plan(nodes=8, gpus=2, tp=2, dp=2, pp=4)
    at = {name: index for index, name in enumerate(names(plan))}
    before = [at[f"dp[{s}]"] for s in range(4)]
    after = [at["pp[0-1]"], at["dp[2]"], at["dp[3]"]]
    change = transition(plan, before, after)
    old, new = ({tuple(r) for r in held(plan, parts).tolist()} for parts in (before, after))
    gone, come = ({tuple(r) for r in rows.tolist()} for rows in (change.disconnect, change.connect))
    assert gone == old - new
    assert come == new - old
    assert set(change.footprint) == {at["dp[0]"], at["dp[1]"], at["pp[0-1]"]}


def test_configuration_of_exclusive_parts_is_refused() -> None:
    plan = make_plan(nodes=4, gpus=2, tp=2, dp=2, pp=2)
    with pytest.raises(ValueError, match=r"dp\[0\] and pp\[0-1\]"):
        held(plan, [0, 2])


def test_same_model_same_arrays() -> None:
    options = {"nodes": 16, "gpus": 4, "tp": 2, "dp": 16, "pp": 2, "ep": 16, "expert_tp": 1}
    one, two = make_plan(**options), make_plan(**options)
    for name in ("part", "switch", "ingress", "egress"):
        assert np.array_equal(getattr(one.circuits, name), getattr(two.circuits, name))
