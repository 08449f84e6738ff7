"""Target `simgrid`: what is written reads back as the plan, faults do not, and missing times are demanded."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from opusc.backends.base import Options
from opusc.backends.emit import emit
from opusc.backends.registry import get
from opusc.backends.simgrid import BACKEND
from opusc.backends.simgrid_read import JOB, PLATFORM, RUN, Change, Held, Zone
from opusc.diagnostics import CompileError, Diagnostics
from opusc.plan.plan import Plan
from tests.backends.cases import PLANS, objection, plan_of, read_back, refusals, timed, write
from tests.support import make_plan


def made(name: str) -> Plan:
    return timed(plan_of(name))


def test_it_is_a_target() -> None:
    assert get("simgrid") is BACKEND


@pytest.mark.parametrize("name", PLANS)
def test_what_is_written_reads_back_as_the_plan(name: str, tmp_path: Path) -> None:
    plan = made(name)
    assert refusals(BACKEND, plan) == []
    assert write(BACKEND, plan, tmp_path) == [PLATFORM, JOB, RUN]
    assert read_back(BACKEND, plan, tmp_path) == []


@pytest.mark.parametrize("name", PLANS)
def test_every_circuit_has_a_link(name: str, tmp_path: Path) -> None:
    plan = made(name)
    write(BACKEND, plan, tmp_path)
    zones = [found for found in BACKEND.read(tmp_path) if isinstance(found, Zone)]
    columns = (plan.circuits.switch, plan.circuits.ingress, plan.circuits.egress)
    rows = np.stack(columns, axis=1).tolist()
    wanted = {(plan.switches[switch].name, ingress, egress) for switch, ingress, egress in rows}
    assert {(zone.title, a, b) for zone in zones for _, a, b, *_ in zone.links.tolist()} == wanted
    assert sum(len(zone.links) for zone in zones) == len(wanted), "a circuit has two links"


def first(text: str, old: str, new: str) -> str:
    return text.replace(old, new, 1)


def edit_job(change: Callable[[dict], None]) -> Callable[[str], str]:  # type: ignore[type-arg]
    def fault(text: str) -> str:
        job = json.loads(text)
        change(job)
        return json.dumps(job)

    return fault


FAULTS: list[tuple[str, Callable[[str], str], str]] = [
    (PLATFORM, lambda t: first(t, 'bandwidth="', 'bandwidth="1'), "kinds"),
    (PLATFORM, lambda t: t.replace('latency="936.25ns"', 'latency="500ns"'), "latency"),
    (PLATFORM, lambda t: first(t, 'src="gpu0.port0"', 'src="gpu0.port1"'), "links"),
    (PLATFORM, lambda t: first(t, '<host id="gpu0.port0" speed="1Gf"/>\n', ""), "hosts"),
    (PLATFORM, lambda t: first(t, ' symmetrical="NO"', ' symmetrical="YES"'), "routes"),
    (JOB, edit_job(lambda j: j["configurations"][0]["links"].pop()), "links"),
    (JOB, edit_job(lambda j: j["changes"][0]["up"].pop()), "up"),
    (JOB, edit_job(lambda j: j["changes"][0]["down"].pop()), "down"),
    (JOB, edit_job(lambda j: j["changes"][0].update(time_ps=1)), "time"),
    (JOB, edit_job(lambda j: j["iteration"].reverse()), "names"),
    (JOB, edit_job(lambda j: j["changes"].pop()), "does not lead to"),
    (JOB, edit_job(lambda j: j.update(message_bytes=1)), "message"),
    (JOB, edit_job(lambda j: j["links"][0].reverse()), "is no link"),
    (RUN, lambda t: first(t, "turn_on()", "turn_off()"), "run.py"),
]


@pytest.mark.parametrize(("name", "fault", "said"), FAULTS)
def test_a_fault_in_a_file_is_found(name: str, fault: Callable[[str], str], said: str, tmp_path: Path) -> None:
    assert said in objection(BACKEND, made("quickstart"), tmp_path, name, fault)


def test_one_way_of_a_two_way_circuit_is_found(tmp_path: Path) -> None:
    fault = lambda t: first(t, 'direction="DOWN"', 'direction="UP"')  # noqa: E731
    assert PLATFORM in objection(BACKEND, made("bidi"), tmp_path, PLATFORM, fault)


@pytest.mark.parametrize("two_way", [False, True])
def test_a_port_with_two_circuits_at_once_is_a_fault(two_way: bool) -> None:
    apart = np.array([[0, 1, 9, 0, 0, 1, 0], [0, 2, 8, 1, 0, 0, 0]])
    twice = np.array([[0, 1, 9, 0, 0, 1, 0], [0, 2, 8, 0, 0, 2, 0]])
    plan = made("quickstart")
    assert bool(list(BACKEND.faults(plan, Held("held", apart, two_way)))) is two_way
    assert list(BACKEND.faults(plan, Held("held", twice, two_way))) == ["port 0 of GPU 0 has two circuits at once"]
    assert list(BACKEND.faults(plan, Change("change", apart, twice, 1)))
    assert not list(BACKEND.faults(plan, Change("change", apart[1:], twice, 1)))


def test_times_are_demanded_where_links_change() -> None:
    [(code, message)] = refusals(BACKEND, plan_of("quickstart"))
    assert code == "OPUS604"
    assert "`settle` and `relock`" in message
    assert refusals(BACKEND, plan_of("one stage")) == [], "one configuration never changes"


def test_a_job_without_circuits_is_refused() -> None:
    plan = make_plan(nodes=1, gpus=2, tp=2)
    assert [code for code, _ in refusals(BACKEND, plan)] == ["OPUS601"]


def test_a_change_takes_as_long_as_its_slowest_switch(tmp_path: Path) -> None:
    plan = made("rails")
    slow = dataclasses.replace(plan.switches[1], kind=dataclasses.replace(plan.switches[1].kind, control=7))
    mixed = dataclasses.replace(plan, switches=(plan.switches[0], slow, *plan.switches[2:]))
    write(BACKEND, mixed, tmp_path)
    assert read_back(BACKEND, mixed, tmp_path) == []
    assert {c["time_ps"] for c in json.loads((tmp_path / JOB).read_text())["changes"]} == {10**10 + 7}


def test_output_is_bounded(tmp_path: Path) -> None:
    sink = Diagnostics()
    with pytest.raises(CompileError):
        emit(made("quickstart"), ["simgrid"], tmp_path, Options(max_output=1000), sink)
    assert [d.code for d in sink] == ["OPUS603"]
