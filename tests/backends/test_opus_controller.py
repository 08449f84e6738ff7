"""Target `opus-controller`: what the published worker's rule selects from the file is what the plan holds."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from opusc.backends.opus_controller import BACKEND, FILE, size_of
from opusc.backends.stagewise import stage_parts
from opusc.model.entities import Optics, Traffic
from opusc.plan.plan import Plan
from opusc.plan.ranks import rail_of
from tests.backends.cases import QUICKSTART, RAILS, objection, plan_of, read_back, refusals, same_as_golden, write
from tests.support import make_plan, phase


def load(directory: Path) -> list[dict[str, list[int]]]:
    """The entries in file order, as Python's YAML gives them to the worker."""
    found = yaml.safe_load((directory / FILE).read_text())
    assert list(found) == ["cross-connects"]
    return list(found["cross-connects"].values())


def selected(entries: list[dict[str, list[int]]], topology: int, rail: int, rails: int) -> set[tuple[int, int]]:
    """The worker's rule: entry number 3 + (T - 1) * R + r, negative numbers from the end."""
    entry = entries[3 + (topology - 1) * rails + rail]
    assert len(entry["ingress"]) == len(entry["egress"])
    return set(zip(entry["ingress"], entry["egress"], strict=True))


def held(plan: Plan, topology: int, rail: int) -> set[tuple[int, int]]:
    """What the controller's comments say: bit i is stage i; 1 joins it to neighbours with bit 1, 0 is its ring."""
    found = set()
    gpu_at: dict[tuple[int, int], int] = {}
    for gpu, port in np.argwhere(plan.cabling.switch >= 0).tolist():
        gpu_at[int(plan.cabling.switch[gpu, port]), int(plan.cabling.ingress[gpu, port])] = gpu
    c = plan.circuits
    for part in plan.parts:
        stages = plan.phases[part.phase].scopes[part.scope]
        bits = {topology >> stage & 1 for stage in stages}
        if bits != ({0} if len(stages) == 1 else {1}):
            continue
        for row in range(*plan.rows(part.index).indices(len(c))):
            gpu = gpu_at[int(c.switch[row]), int(c.ingress[row])]
            if int(rail_of(plan.model.job, np.array([gpu]))[0]) == rail:
                found.add((int(c.ingress[row]), int(c.egress[row])))
    return found


def check_all(plan: Plan, directory: Path) -> None:
    rails = len(plan.model.fabric.rails)
    entries = load(directory)
    topologies = 1 << plan.model.job.parallelism.pp
    assert len(entries) == 3 + rails * (topologies - 1) + max(0, rails - 3)
    for topology in range(topologies):
        for rail in range(rails):
            assert selected(entries, topology, rail, rails) == held(plan, topology, rail), (topology, rail)


SHAPES: list[dict[str, Any]] = [
    QUICKSTART,
    RAILS,
    *({"nodes": 6, "gpus": gpus, "tp": gpus, "dp": 2, "pp": 3} for gpus in range(1, 6)),
    {"nodes": 3, "gpus": 2, "tp": 2, "dp": 3},
    {"nodes": 4, "gpus": 8, "tp": 2, "dp": 8, "pp": 2},
    {"nodes": 8, "gpus": 1, "dp": 2, "pp": 4, "phases": (phase("pp", ("pp",), "ring", Traffic.POINT_TO_POINT),)},
    {"nodes": 2, "gpus": 1, "pp": 2, "phases": (phase("pp", ("pp",), "ring", Traffic.POINT_TO_POINT),)},
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"{s['nodes']}x{s['gpus']}")
def test_the_worker_finds_what_the_plan_holds(shape: dict[str, Any], tmp_path: Path) -> None:
    plan = make_plan(**shape)
    assert refusals(BACKEND, plan) == []
    assert write(BACKEND, plan, tmp_path) == [FILE]
    assert read_back(BACKEND, plan, tmp_path) == []
    check_all(plan, tmp_path)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 5))
def test_any_number_of_rails_replicas_and_stages(
    tmp_path_factory: pytest.TempPathFactory, rails: int, dp: int, pp: int
) -> None:
    plan = make_plan(nodes=max(dp * pp, 1), gpus=rails, tp=rails, dp=dp, pp=pp)
    directory = tmp_path_factory.getbasetemp() / "controller"
    write(BACKEND, plan, directory)
    assert read_back(BACKEND, plan, directory) == []
    check_all(plan, directory)
    parts = stage_parts(plan, "opus-controller")
    assert parts is not None
    assert size_of(plan, parts) == (directory / FILE).stat().st_size


def test_the_published_bench_layout(tmp_path: Path) -> None:
    """Rail 0 on positions 1-8 and rail 1 on 25-32 of one 32 x 32 chassis; entries named as the bench names them."""
    write(BACKEND, plan_of("quickstart"), tmp_path)
    text = (tmp_path / FILE).read_text()
    names = re.findall(r"^  '(.*)':$", text, re.MULTILINE)
    assert names == ["unused-0", "0-0", "0-1", "1-0", "1-1", "2-0", "2-1", "3-0", "3-1"]
    for name, entry in yaml.safe_load(text)["cross-connects"].items():
        low = 25 if name.endswith("-1") else 1
        assert all(low <= port <= low + 7 for port in entry["ingress"])
        assert all(low + 32 <= port <= low + 39 for port in entry["egress"])
    same_as_golden("opus-controller-quickstart.yaml", text.encode())


def test_a_stage_that_is_joined_to_none_is_dark(tmp_path: Path) -> None:
    plan = plan_of("rails")
    write(BACKEND, plan, tmp_path)
    found = selected(load(tmp_path), 0b0101, 0, rails=8)
    # Stages 0 and 2 have bit 1 and neighbours with bit 0; stages 1 and 3 are nodes 4-7 and 12-15, two positions each.
    assert {ingress for ingress, _ in found} == {
        2 * node + port for node in (4, 5, 6, 7, 12, 13, 14, 15) for port in (1, 2)
    }


# --- faults --------------------------------------------------------------------------------------


def entries_of(text: str) -> list[str]:
    head, *entries = re.split(r"(?m)^(?=  ')", text)
    assert head == "cross-connects:\n"
    return entries


def joined(entries: list[str]) -> str:
    return "cross-connects:\n" + "".join(entries)


def flip_a_port(text: str) -> str:
    return text.replace("egress: [36, 35,", "egress: [35, 36,", 1)


def drop_an_entry(text: str) -> str:
    entries = entries_of(text)
    return joined(entries[:4] + entries[5:])


def swap_two_entries(text: str) -> str:
    entries = entries_of(text)
    entries[3], entries[5] = entries[5], entries[3]
    return joined(entries)


def stage_0_most_significant(text: str) -> str:
    """The simulator's order of bits: topologies 1 and 2 change places."""
    entries = entries_of(text)
    return joined(entries[:3] + entries[5:7] + entries[3:5] + entries[7:])


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (flip_a_port, r"entry 1: egress\[0\] is 35, the plan says 36"),
        (drop_an_entry, "entry 4"),
        (swap_two_entries, "entry 3"),
        (stage_0_most_significant, "entry 3"),
        (lambda text: text + "  'more':\n    ingress: []\n    egress: []\n", "too much"),
        (lambda text: text.replace("  '2-0'", "  '1-0'"), "no name of a new entry"),
        (lambda text: text.replace("ingress: [1, 2, 3, 4]", "ingress: [1, 2, 3]"), "another length"),
        (lambda text: text.replace("cross-connects", "cross_connects"), "line 1"),
        (lambda text: text.replace("[1, 2", "[1,2", 1), "line 6"),
        (lambda text: text[:-12], "line"),
    ],
)
def test_faults_in_the_file_are_seen(fault: Callable[[str], str], says: str, tmp_path: Path) -> None:
    message = objection(BACKEND, plan_of("quickstart"), tmp_path, FILE, fault)
    assert re.search(says, message), message


def test_the_same_circuit_twice_is_seen_whatever_the_plan_says() -> None:
    from opusc.backends.opus_controller import Entry

    twice = Entry("entry 0", np.array([1, 1], np.int32), np.array([5, 6], np.int32))
    assert list(BACKEND.faults(plan_of("quickstart"), twice)) == ["ingress 1 is used twice"]


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "code", "says"),
    [
        (
            {"nodes": 16, "gpus": 2, "tp": 2, "cp": 2, "dp": 4, "pp": 2},
            "OPUS601",
            "cannot tell phase `cp` from phase `dp`",
        ),
        ({"nodes": 8, "gpus": 4, "tp": 4, "dp": 2, "pp": 4, "ports": 1}, "OPUS601", "takes 2 steps"),
        ({"nodes": 4, "gpus": 2, "tp": 2, "dp": 2, "pp": 2, "planes": 2}, "OPUS602", "2 switches"),
        ({"nodes": 6, "gpus": 1, "dp": 3, "pp": 2, "optics": Optics.BIDI}, "OPUS602", "bidi"),
        ({"nodes": 64, "gpus": 1, "dp": 2, "pp": 32}, "OPUS603", "at most 31 pipeline stages"),
        ({"nodes": 60, "gpus": 1, "dp": 2, "pp": 30}, "OPUS603", "1,073,741,826 entries in 1,012,501,170,852 bytes"),
        ({"nodes": 4, "gpus": 4, "dp": 2, "pp": 8, "order": ("tp", "cp", "ep", "pp", "dp")}, "OPUS606", "`dp[0]`"),
    ],
)
def test_what_the_format_cannot_say_is_refused_with_the_reason(shape: dict[str, Any], code: str, says: str) -> None:
    [(found, message)] = refusals(BACKEND, make_plan(**shape))
    assert found == code
    assert says in message


def test_a_phase_of_experts_and_one_over_the_whole_job_are_refused() -> None:
    codes = [code for code, _ in refusals(BACKEND, plan_of("butterfly"))]
    assert codes == ["OPUS602", "OPUS601"] or codes == ["OPUS601", "OPUS602"]
    tie = phase("embedding", ("pp",), "ring")
    [(code, message)] = refusals(BACKEND, make_plan(nodes=3, gpus=1, pp=3, phases=(tie,)))
    assert code == "OPUS601"
    assert "whole job" in message


def test_the_limit_is_exact() -> None:
    plan = plan_of("quickstart")
    parts = stage_parts(plan, "opus-controller")
    assert parts is not None
    size = size_of(plan, parts)
    assert refusals(BACKEND, plan, max_output=size) == []
    [(code, message)] = refusals(BACKEND, plan, max_output=size - 1)
    assert code == "OPUS603"
    assert f"9 entries in {size} bytes" in message
