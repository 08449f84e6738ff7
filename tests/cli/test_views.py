"""What `show` and the summary say of a plan, and that it is what the plan's rows say."""

from dataclasses import replace

import pytest

from opusc.cli.circuits import circuits_of, group_of
from opusc.cli.planview import chosen_parts, overview, phase_view, rank_view
from opusc.cli.summary import change_times, describe, switch_lines
from opusc.cli.tables import labelled, plural, runs, size
from opusc.cli.terminal import UsageError
from opusc.model.entities import Matrix, Optics, Peers, Traffic
from opusc.plan.plan import Plan
from tests.support import make_plan, phase


@pytest.fixture(scope="module")
def rails() -> Plan:
    """The published study: 128 GPUs, tp 8, dp 4, pp 4."""
    return make_plan(nodes=16, gpus=8, tp=8, dp=4, pp=4, radix=192)


def test_the_summary_in_full(rails: Plan) -> None:
    assert describe(rails, 80) == (
        "j on rails: 128 GPUs in 16 nodes of 8\n"
        "\n"
        "rails        8, by local rank\n"
        "switches     8 x generic, 32 of 192 positions used\n"
        "changes      time not stated (settle and relock)\n"
        "\n"
        "phase  topology  parts  steps  circuits\n"
        "dp     ring          4      1       256\n"
        "pp     chain         3      1       192\n"
    )


@pytest.mark.parametrize("width", [60, 80])
def test_everything_fits_the_terminal(rails: Plan, width: int) -> None:
    for text in (overview(rails, width), phase_view(rails, "dp", 2, None, width)):
        assert max(map(len, text.splitlines())) <= width
    # A row about a circuit names two ports and a switch: that needs 80.
    assert max(map(len, rank_view(rails, 37, None, None, None, 80).splitlines())) <= 80


def test_which_circuits_does_rank_37_use_in_phase_dp(rails: Plan) -> None:
    assert rank_view(rails, 37, "dp", None, None, 80) == (
        "rank 37 is GPU 5 of node 4, on rail 5, in pipeline stage 1\n"
        "\n"
        "phase        dp over dp\n"
        "group        13: ranks 37, 45, 53, 61\n"
        "topology     ring among 4 domains\n"
        "\n"
        "part   port  way   peer                        switch         positions\n"
        "dp[1]  5.0   both  rank 45 (node 5, port 5.1)  rails.rail[5]  9 <-> 12\n"
        "dp[1]  5.1   both  rank 61 (node 7, port 5.0)  rails.rail[5]  10 <-> 15\n"
    )


def test_a_stage_narrows_to_its_parts(rails: Plan) -> None:
    assert [p.name for p in chosen_parts(rails, "pp", 2, None)] == ["pp[1-2]", "pp[2-3]"]
    assert [p.name for p in chosen_parts(rails, None, 0, None)] == ["dp[0]", "pp[0-1]"]
    with pytest.raises(UsageError, match="no stage 4: the job has 4 stages"):
        chosen_parts(rails, None, 4, None)
    with pytest.raises(UsageError, match="no phase `db`; did you mean `dp`"):
        chosen_parts(rails, "db", None, None)
    with pytest.raises(UsageError, match="no rank 128: the job has 128 ranks, from 0"):
        rank_view(rails, 128, None, None, None, 80)
    with pytest.raises(UsageError, match="no part"):
        chosen_parts(rails, "dp", 0, 3)


PLANS = {
    "duplex on a crossbar": {},
    "one-way rings": {"ports": 1, "peers": Peers.INDEPENDENT},
    "bidi on a crossbar": {"optics": Optics.BIDI},
    "bidi on any": {"optics": Optics.BIDI, "matrix": Matrix.ANY},
    "duplex on any": {"matrix": Matrix.ANY},
    "two planes": {"planes": 2},
}


@pytest.mark.parametrize("options", PLANS.values(), ids=PLANS)
def test_every_circuit_is_seen_from_both_its_ends_and_no_other(options: dict[str, object]) -> None:
    plan = make_plan(nodes=8, gpus=2, tp=2, dp=4, pp=2, **options)
    phases = plan.phases
    seen: dict[tuple[int, int, int, int], list[tuple[int, str]]] = {}
    for planned in phases:
        for rank in range(plan.world):
            _, members = group_of(plan, planned, rank)
            assert rank in members
            for use in circuits_of(plan, planned, rank):
                assert use.peer in members, "a circuit that leaves the group"
                key = (use.part, use.switch, use.ingress, use.egress)
                seen.setdefault(key, []).append((rank, use.way))
    c = plan.circuits
    rows = set(zip(*(a.tolist() for a in (c.part, c.switch, c.ingress, c.egress)), strict=True))
    assert set(seen) == rows
    for ends in seen.values():
        assert len({rank for rank, _ in ends}) == 2
        ways = sorted(way for _, way in ends)
        one_way = plan.model.cluster.rail_nic.optics is Optics.DUPLEX
        assert ways == (["from", "to"] if one_way else ["both", "both"])


def test_a_relay_is_shown_with_the_circuits_it_uses() -> None:
    # The case of DESIGN 4.3: 8 GPUs, 4 a node, dp 2, pp 4: stage 1 to 2 goes from local rank 3 to 1.
    plan = make_plan(nodes=2, gpus=4, dp=2, pp=4, radix=192)
    text = rank_view(plan, 3, "pp", None, None, 80)
    assert "relay        pp[1-2]: to and from rank 5 through rank 1, inside the domain\n" in text
    assert "pp[1-2]  1.0   both  rank 5 (node 1, port 1.0)" in text
    assert "passes on between ranks 3 and 5" in rank_view(plan, 1, "pp", None, None, 80)
    assert "circuits     none: the group stays inside its domain" in rank_view(plan, 3, "dp", None, None, 80)
    with pytest.raises(UsageError, match="stays inside the domains"):
        chosen_parts(plan, "dp", None, None)


def test_a_relay_that_serves_several_ranks_shows_each_its_own_circuit() -> None:
    """Ranks 5 and 1 both pass GPU 7, in the same part: rank 5 to rank 11, and the way from rank 1 ends there."""
    plan = make_plan(nodes=5, gpus=4, dp=6, pp=3, radix=32)
    pp = next(p for p in plan.phases if p.name == "pp")
    assert {(use.gpu, use.peer) for use in circuits_of(plan, pp, 5)} == {(5, 13), (7, 11)}
    assert {(use.gpu, use.peer) for use in circuits_of(plan, pp, 7)} == {(7, 3), (7, 11), (5, 13)}


def test_detours_of_a_multi_hop_topology_name_the_rank_that_relays() -> None:
    butterfly = phase("ep", ("dp",), "flattened_butterfly", Traffic.ALL_TO_ALL, dims=(2, 4))
    plan = make_plan(nodes=8, gpus=2, tp=2, dp=8, ports=4, phases=(butterfly,))
    text = rank_view(plan, 3, "ep", None, None, 80)
    assert "relay        rank 1 passes on what is for ranks 5, 9, 13\n" in text
    assert "flattened_butterfly 2 x 4 among 8 domains" in text


def test_words_and_numbers() -> None:
    assert plural(1, "switch") == "1 switch"
    assert plural(1024, "switch") == "1,024 switches"
    assert plural(3, "copy") == "3 copies"
    assert runs([0, 1, 2, 3, 7, 9, 10]) == "0..3, 7, 9, 10"
    assert runs([]) == ""
    assert [size(n) for n in (0, 999, 1000, 123_456, 2_500_000_000)] == ["0 B", "999 B", "1.0 kB", "123 kB", "2.5 GB"]
    assert labelled("a", "word " * 20, 40).count("\n") == 4


def test_the_time_of_a_change_is_said_or_that_it_is_not_stated(rails: Plan) -> None:
    def timed(plan: Plan, index: int, **times: int) -> Plan:
        switches = list(plan.switches)
        switches[index] = replace(switches[index], kind=replace(switches[index].kind, **times))
        return replace(plan, switches=tuple(switches))

    plan = rails
    for index in range(8):
        plan = timed(plan, index, settle=24_500_000_000, relock=500_000_000, control=1)
    assert change_times(plan) == "take 25.000000001 ms each"
    assert change_times(timed(plan, 7, control=0)) == "take 25.000000001 ms each (rails 0..6); take 25 ms each (rail 7)"
    assert change_times(timed(rails, 0, settle=1)) == (
        "time not stated (relock) (rail 0); time not stated (settle and relock) (rails 1..7)"
    )


def test_switches_with_a_name_each_share_a_line(rails: Plan) -> None:
    named = tuple(replace(s, kind=replace(s.kind, name=f"r{s.index}")) for s in rails.switches)
    assert list(switch_lines(replace(rails, switches=named))) == ["8 (r0 to r7), 32 of 192 positions used"]
    other = (*rails.switches[:7], replace(named[7], positions_used=3))
    assert list(switch_lines(replace(rails, switches=other))) == [
        "7 x generic, 32 of 192 positions used (rails 0..6)",
        "1 x r7, 3 of 192 positions used (rail 7)",
    ]


def test_a_part_names_as_many_others_as_there_is_room_for() -> None:
    spec = phase("gossip", ("dp",), "mesh")
    plan = make_plan(nodes=8, gpus=1, dp=8, radix=64, phases=(spec,))
    wide, narrow = phase_view(plan, "gossip", None, None, 120), phase_view(plan, "gossip", None, None, 60)
    assert "gossip[0] step 1, gossip[0] step 2, gossip[0] step 3" in wide
    assert max(map(len, narrow.splitlines())) <= 60
    assert "gossip[0] step 1 and 2 more" in narrow


def test_a_stage_has_its_own_groups(rails: Plan) -> None:
    whole, one = phase_view(rails, "dp", None, None, 80), phase_view(rails, "dp", 1, None, 80)
    assert "groups       32, with 32 copies" in whole
    assert "groups       8 of 32, with 8 copies" in one
