"""Target `astra-sim`: the matrices are those that nested loops over the degrees give, and faults in them are seen."""

import dataclasses
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bench_writers import naive
from opusc.backends import astra_matrices
from opusc.backends.astra_matrices import GB, State, decimal_text
from opusc.backends.astra_sim import BACKEND, NETWORK, SCHEDULES, Network
from opusc.backends.base import Options
from opusc.backends.stagewise import stage_parts
from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan
from opusc.source import Source, Span
from tests.backends import cases
from tests.backends.cases import (
    PLANS,
    QUICKSTART,
    RAILS,
    objection,
    plan_of,
    read_back,
    same_as_golden,
    timed,
    write,
)
from tests.support import make_plan


def refusals(backend: Any, plan: Plan, **options: Any) -> list[tuple[str, str]]:
    """What the target refuses; that it writes no traces for plans without a model is no refusal."""
    return [found for found in cases.refusals(backend, plan, **options) if found[0] != "OPUS607"]


SMALL: dict[str, Any] = {"nodes": 6, "gpus": 2, "tp": 2, "dp": 3, "pp": 2, "rate": 50 * GB}


def schedule_of(plan: Plan) -> astra_matrices.Schedule:
    parts = stage_parts(plan, "astra-sim")
    assert parts is not None
    return astra_matrices.schedule(plan, parts)


@pytest.mark.parametrize(("tp", "dp", "pp"), [(8, 4, 4), (1, 3, 3), (2, 5, 3), (4, 3, 5)])
def test_the_bytes_are_those_of_nested_loops(tp: int, dp: int, pp: int) -> None:
    plan = timed(make_plan(nodes=dp * pp, gpus=tp, tp=tp, dp=dp, pp=pp, rate=50 * GB))
    assert refusals(BACKEND, plan) == []
    assert b"".join(astra_matrices.write(schedule_of(plan))).decode() == "".join(naive(tp, dp, pp))


def test_rows_are_the_same_when_there_is_no_room_to_keep_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found = schedule_of(timed(plan_of("rails")))
    kept = b"".join(astra_matrices.write(found))
    monkeypatch.setattr(astra_matrices, "_KEPT", 5000)
    assert b"".join(astra_matrices.write(found)) == kept


FITTING = ("quickstart", "rails", "one stage", "bidi", "any bidi", "any duplex", "independent", "interleaved", "racks")


@pytest.mark.parametrize("name", FITTING)
def test_files_come_back_and_their_size_is_known_beforehand(name: str, tmp_path: Path) -> None:
    plan = timed(plan_of(name))
    assert refusals(BACKEND, plan) == []
    small = [f"astra-sim/{file}" for file in ("workload.json", "system.json", "remote_memory.json")]
    assert write(BACKEND, plan, tmp_path) == [SCHEDULES, NETWORK, *small]
    assert read_back(BACKEND, plan, tmp_path) == []
    assert astra_matrices.size(schedule_of(plan)) == (tmp_path / SCHEDULES).stat().st_size


def test_the_reader_says_who_reaches_whom(tmp_path: Path) -> None:
    """Four nodes of two GPUs: tp 2 is 0-1, 2-3, ...; dp 0-2, 1-3 | 4-6, 5-7; pp 0-4, 1-5, 2-6, 3-7."""
    plan = timed(plan_of("quickstart"))
    write(BACKEND, plan, tmp_path)
    network, *others = BACKEND.read(tmp_path)
    states = [one for one in others if isinstance(one, State)]
    assert isinstance(network, Network)
    assert network.npus_count == 8
    reach = []
    for state in states:
        far = state.source // 2 != state.target // 2
        pairs = set(zip(state.source[far].tolist(), state.target[far].tolist(), strict=True))
        assert pairs == {(b, a) for a, b in pairs}
        near = set(zip(state.source[~far].tolist(), state.target[~far].tolist(), strict=True))
        assert near == {(a, a ^ 1) for a in range(8)}
        reach.append({(a, b) for a, b in pairs if a < b})
    rings = {(0, 2), (1, 3), (4, 6), (5, 7)}
    # A lone stage with bit 1 keeps its ring: the controller's format leaves it dark.
    assert reach == [rings, rings, rings, {(0, 4), (1, 5), (2, 6), (3, 7)}]


def test_golden_files(tmp_path: Path) -> None:
    plan = timed(make_plan(**SMALL))
    write(BACKEND, plan, tmp_path)
    same_as_golden("astra-sim-schedules.txt", (tmp_path / SCHEDULES).read_bytes())
    same_as_golden("astra-sim-network.yml", (tmp_path / NETWORK).read_bytes())


def test_network_yml_is_yaml_with_exact_numbers(tmp_path: Path) -> None:
    import yaml

    plan = timed(make_plan(**SMALL), settle=12_345)
    write(BACKEND, plan, tmp_path)
    assert yaml.safe_load((tmp_path / NETWORK).read_text()) == {
        "topology": ["FullyConnected"],
        "npus_count": [12],
        "bandwidth": [50],
        "latency": [936.25],
        "reconfig_time": [12.345],
    }


def test_gigabits_are_written_exactly(tmp_path: Path) -> None:
    plan = timed(make_plan(**{**SMALL, "rate": 200 * 10**9}))
    write(BACKEND, plan, tmp_path)
    row = (tmp_path / SCHEDULES).read_text().splitlines()[1]
    assert row.split()[2] == "23.283064365386962890625"
    assert Fraction(row.split()[2]) * GB == 200 * 10**9


@given(st.integers(0, 10**15), st.integers(0, 40), st.integers(0, 12))
def test_decimal_text_is_exact_and_short(number: int, twos: int, fives: int) -> None:
    value = Fraction(number, 2**twos * 5**fives)
    text = decimal_text(value)
    assert Fraction(text) == value
    assert re.fullmatch(r"\d+|\d+\.\d*[1-9]", text)


def test_a_third_has_no_decimal_text() -> None:
    with pytest.raises(ValueError, match="finite"):
        decimal_text(Fraction(1, 3))


# --- faults --------------------------------------------------------------------------------------


def matrices(text: str) -> list[str]:
    return re.findall(r"BW \d+\n.*?END\n", text, re.DOTALL)


def swap_two_configurations(text: str) -> str:
    """Stage 0 as the least significant bit: configurations 1 and 2 change their contents."""
    found = [matrix.split("\n", 1) for matrix in matrices(text)]
    found[3][1], found[6][1] = found[6][1], found[3][1]
    return "".join("\n".join(parts) for parts in found)


def drop_a_configuration(text: str) -> str:
    return "".join(matrices(text)[:-1])


def move_a_number(text: str) -> str:
    return text.replace(" 50 0", " 0 50", 1)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (move_a_number, "BW 0: (source|target)"),
        (swap_two_configurations, "BW 3"),
        (drop_a_configuration, "BW 7 is missing"),
        (lambda text: text.replace(" 50 ", " 25 ", 1), r"BW 0: rate\[.*\] is 214748364800"),
        (lambda text: text.replace(" 0 ", " ", 1), "has 8 numbers, not 9"),
        (lambda text: text.replace("END\n", "", 1), "unexpected line"),
        (lambda text: text[: -len("END\n")], "no END"),
        (lambda text: text.replace(" 50 ", " fast ", 1), "is no number"),
        (lambda text: text.replace(" 50 ", " -50 ", 1), "no whole number"),
        (lambda text: text.replace("BW 1", "BW one"), "unexpected line"),
    ],
)
def test_faults_in_the_schedules_are_seen(fault: Callable[[str], str], says: str, tmp_path: Path) -> None:
    plan = timed(make_plan(nodes=9, gpus=1, dp=3, pp=3, rate=50 * GB))
    message = objection(BACKEND, plan, tmp_path, SCHEDULES, fault)
    assert re.search(says, message), message


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (lambda text: text.replace("[ 12 ]", "[ 13 ]"), "npus_count is 13"),
        (lambda text: text.replace("10000000", "1000000"), "reconfig_time"),
        (lambda text: text.replace("reconfig_time", "reconfig"), "reconfig_time"),
        (lambda text: text.replace("[ 50 ]", "50"), "is not `key"),
        (lambda text: text + "more: [ 1 ]\n", "unknown key more"),
    ],
)
def test_faults_in_network_yml_are_seen(fault: Callable[[str], str], says: str, tmp_path: Path) -> None:
    assert re.search(says, objection(BACKEND, timed(make_plan(**SMALL)), tmp_path, NETWORK, fault))


def test_a_broken_ring_and_an_overused_port_are_seen_whatever_the_plan_says() -> None:
    plan = timed(make_plan(**SMALL))
    state = next(astra_matrices.project(schedule_of(plan)))
    assert list(BACKEND.faults(plan, state)) == []
    apart = ~(((state.source % 2 == 0) & (state.source < 6)) & (state.rate == 50 * GB))
    cut = dataclasses.replace(state, source=state.source[apart], target=state.target[apart], rate=state.rate[apart])
    assert "not connected" in next(iter(BACKEND.faults(plan, cut)))
    twice = dataclasses.replace(state, rate=np.where(state.rate == 50 * GB, 2 * state.rate, state.rate))
    assert "2 ports" in next(iter(BACKEND.faults(plan, twice)))


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "code", "says"),
    [
        (
            {"nodes": 8, "gpus": 2, "tp": 2, "dp": 2, "pp": 4, "order": ("tp", "cp", "ep", "pp", "dp")},
            "OPUS605",
            "outermost",
        ),
        ({"nodes": 4, "gpus": 8, "tp": 2, "dp": 8, "pp": 2}, "OPUS605", "8 ranks share 2 domains"),
        ({"nodes": 2, "gpus": 4, "tp": 2, "dp": 2, "pp": 2}, "OPUS605", "inside scale-up domains"),
        ({"nodes": 2, "gpus": 3, "pp": 6}, "OPUS605", "stages share domains"),
        ({"nodes": 60, "gpus": 1, "dp": 2, "pp": 30}, "OPUS603", "1,073,741,824 matrices of 60 x 60"),
        ({"nodes": 8, "gpus": 2, "tp": 2, "cp": 2, "dp": 4}, "OPUS601", "`cp` from phase `dp`"),
    ],
)
def test_what_the_format_cannot_say_is_refused_with_the_reason(shape: dict[str, Any], code: str, says: str) -> None:
    found = refusals(BACKEND, timed(make_plan(**shape)))
    assert found
    assert found[0][0] == code
    assert any(says in message for _, message in found)


def test_numbers_without_a_source_are_demanded() -> None:
    plan = make_plan(**QUICKSTART)
    messages = [message for code, message in refusals(BACKEND, plan) if code == "OPUS604"]
    assert any("`scale_up`" in message for message in messages)
    assert any("`settle` and `relock`" in message for message in messages)


def test_switches_of_different_speed_are_refused() -> None:
    plan = timed(plan_of("rails"))
    slow = dataclasses.replace(plan.switches[3].kind, settle=25 * 10**9)
    switches = tuple(dataclasses.replace(s, kind=slow) if s.index == 3 else s for s in plan.switches)
    [(code, message)] = refusals(BACKEND, dataclasses.replace(plan, switches=switches))
    assert code == "OPUS602"
    assert "different times" in message


def test_the_limit_is_exact() -> None:
    plan = timed(make_plan(**RAILS))
    size = astra_matrices.size(schedule_of(plan))
    assert refusals(BACKEND, plan, max_output=size) == []
    [(code, message)] = refusals(BACKEND, plan, max_output=size - 1)
    assert code == "OPUS603"
    assert f"16 matrices of 128 x 128 in {size:,} bytes" in message


@pytest.mark.parametrize("name", PLANS)
def test_no_plan_makes_the_checks_fail(name: str) -> None:
    for code, message in refusals(BACKEND, timed(plan_of(name))):
        assert code.startswith("OPUS6")
        assert message.startswith("target `astra-sim`")


def test_a_missing_number_is_told_once_where_the_rails_state_their_switch() -> None:
    made = make_plan(nodes=4, gpus=2, tp=2, dp=2, pp=2)
    fabric = made.model.fabric
    place = Span(Source("<own>", "switch"), 0, 6)
    rails = (fabric.rails[0], *(dataclasses.replace(rail, span=place) for rail in fabric.rails[1:]))
    job = dataclasses.replace(made.model.job, fabric=dataclasses.replace(fabric, rails=rails))
    switches = tuple(dataclasses.replace(s, kind=dataclasses.replace(s.kind, name=s.name)) for s in made.switches)
    sink = Diagnostics()
    model = dataclasses.replace(made.model, job=job)
    BACKEND.check(dataclasses.replace(made, model=model, switches=switches), Options(), sink)
    told = [d.span.source.name for d in sink if "`settle` and `relock`" in d.message]
    assert sorted(told) == ["<own>", "<test>"]
