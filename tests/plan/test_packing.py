"""Packed phases have NIC ports of their own: how many, which, and what happens when there are too few."""

from fractions import Fraction

import pytest

from opusc.diagnostics import Diagnostics
from opusc.model.entities import Optics, Peers
from opusc.plan.build import build_plan
from opusc.plan.plan import Plan
from tests.support import make_model, make_plan

BOTH: dict[str, int | None] = {"dp": None, "pp": None}
SIXTEEN = {"nodes": 16, "gpus": 1, "dp": 4, "pp": 4}


def ports(plan: Plan) -> dict[str, tuple[int, ...]]:
    return {phase.name: phase.ports for phase in plan.phases}


def copies(plan: Plan) -> dict[str, int]:
    return {phase.name: min(i.shape.copies for i in phase.instances) for phase in plan.phases}


def refusal(**options: object) -> tuple[str, list[str]]:
    sink = Diagnostics()
    assert build_plan(make_model(**options), sink) is None  # type: ignore[arg-type]
    (found,) = sink
    return found.code, list(found.notes)


def test_without_packing_every_phase_has_every_port_and_takes_turns() -> None:
    plan = make_plan(**SIXTEEN, ports=4)
    assert ports(plan) == {"dp": (0, 1, 2, 3), "pp": (0, 1, 2, 3)}
    assert len(plan.exclusions) > 0


def test_a_ring_and_a_chain_have_two_paired_ports_each_and_hold_together() -> None:
    plan = make_plan(**SIXTEEN, ports=4, pack=BOTH)
    assert ports(plan) == {"dp": (0, 1), "pp": (2, 3)}
    assert len(plan.exclusions) == 0
    assert copies(plan) == {"dp": 1, "pp": 1}


@pytest.mark.parametrize(
    ("count", "stated", "expected"),
    [
        (6, {}, {"dp": (0, 1, 4, 5), "pp": (2, 3)}),  # what is left goes to the phases in turn
        (8, {}, {"dp": (0, 1, 4, 5), "pp": (2, 3, 6, 7)}),
        (8, {"dp": 6}, {"dp": (0, 1, 2, 3, 4, 5), "pp": (6, 7)}),
        (8, {"dp": 2, "pp": 2}, {"dp": (0, 1), "pp": (2, 3)}),  # stated numbers leave ports dark
    ],
)
def test_ports_that_are_left_repeat_a_topology(
    count: int, stated: dict[str, int], expected: dict[str, tuple[int, ...]]
) -> None:
    plan = make_plan(**SIXTEEN, ports=count, pack={**BOTH, **stated})
    assert ports(plan) == expected
    assert copies(plan) == {name: len(own) // 2 for name, own in expected.items()}


def test_two_stages_and_two_replicas_share_a_nic_of_two_ports() -> None:
    plan = make_plan(nodes=4, gpus=1, dp=2, pp=2, pack=BOTH)
    assert ports(plan) == {"dp": (0,), "pp": (1,)}
    assert len(plan.exclusions) == 0


def test_an_independent_port_holds_a_ring_one_way_and_the_other_a_direction_of_the_chain() -> None:
    plan = make_plan(**SIXTEEN, peers=Peers.INDEPENDENT, pack=BOTH)
    assert ports(plan) == {"dp": (0,), "pp": (1,)}
    names = {part.index: part.name for part in plan.parts}
    pairs = {(names[a], names[b]) for a, b in plan.exclusions.tolist()}
    assert all(a.startswith("pp") and b.startswith("pp") for a, b in pairs)  # only the chain with itself
    assert ("pp[0-1] step 0", "pp[1-2] step 1") in pairs  # stage 1 hears either
    assert "phase `pp` has port 1 of each GPU to itself, for one direction at a time" in plan.assumptions


def test_three_independent_ports_hold_the_chain_both_ways() -> None:
    plan = make_plan(**SIXTEEN, ports=3, peers=Peers.INDEPENDENT, policy="static")
    assert len(plan.exclusions) == 0
    assert {name: len(own) for name, own in ports(plan).items()} == {"dp": 1, "pp": 2}


def test_bidi_ports_are_given_out_by_sides() -> None:
    plan = make_plan(**SIXTEEN, ports=4, optics=Optics.BIDI, radix=64, policy="static")
    assert ports(plan) == {"dp": (0, 1), "pp": (2, 3)}  # ports 0 and 2 are on side A, 1 and 3 on side B
    assert len(plan.exclusions) == 0


def test_planes_are_given_out_whole() -> None:
    """Ports 0 and 2 end on one plane, 1 and 3 on the other: a ring needs both ends on one."""
    plan = make_plan(**SIXTEEN, ports=4, planes=2, pack=BOTH)
    assert ports(plan) == {"dp": (0, 2), "pp": (1, 3)}
    assert len(plan.exclusions) == 0


def test_two_paired_ports_cannot_hold_ring_and_chain() -> None:
    code, notes = refusal(**SIXTEEN, pack=BOTH)
    assert code == "OPUS437"
    assert notes == [
        "phase `dp` (ring) needs 2 ports",
        "phase `pp` (chain) needs 2 ports",
        "a GPU has 2 ports on its rail, and each faces one neighbour",
        "that is 4 of 2",
    ]


def test_static_needs_the_chain_both_ways() -> None:
    code, notes = refusal(**SIXTEEN, peers=Peers.INDEPENDENT, policy="static")
    assert code == "OPUS437"
    assert "phase `pp` (chain) needs 2 ports" in notes
    assert "that is 3 of 2" in notes


def test_a_stated_number_that_is_too_small_is_refused() -> None:
    code, notes = refusal(**SIXTEEN, ports=4, pack={"dp": 1, "pp": None})
    assert code == "OPUS437"
    assert "phase `dp` (ring) needs 2 ports, and is given 1" in notes


def test_static_with_one_phase_has_nothing_to_share() -> None:
    plan = make_plan(nodes=4, gpus=1, dp=4, policy="static")
    assert ports(plan) == {"dp": (0, 1)}


def test_a_phase_that_takes_steps_anyway_may_take_them_on_its_own_ports() -> None:
    options = {"nodes": 8, "gpus": 1, "dp": 8, "ep": 8, "expert_tp": 1, "ports": 4}
    plan = make_plan(**options, pack={"dp": None, "ep": None})  # type: ignore[arg-type]
    steps = {phase.name: phase.step_count for phase in plan.phases if phase.instances}
    assert steps["dp"] == 1
    assert steps["ep"] == Fraction(7, len(ports(plan)["ep"])).__ceil__()
    code, notes = refusal(**options, policy="static")
    assert code == "OPUS437"
    assert "phase `ep` (rotor) takes 2 steps even on all 4 ports" in notes
