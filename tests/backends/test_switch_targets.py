"""Targets for switch controllers: replaying the changes of a schedule gives each configuration, in every format.

The replayers below parse the files on their own, as a switch would take them: they refuse to connect a port
that is taken and to disconnect what is not there.
"""

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from opusc.backends.base import Options
from opusc.backends.emit import emit
from opusc.backends.registry import get
from opusc.backends.switch_files import slug
from opusc.backends.switch_times import changes_of
from opusc.backends.validate import validate
from opusc.cli.main import main
from opusc.diagnostics import CompileError, Diagnostics
from opusc.driver import compile_source
from opusc.plan.configurations import changes, walk
from opusc.plan.plan import Int32, Plan
from opusc.plan.transitions import Transition
from opusc.source import Source

PROGRAM = """\
opus 1

use std.switches

cluster c {{
  node_count    = 8
  gpus_per_node = 2
  nic           = {{ ports = {ports}, rate = 200 Gbps, optics = duplex }}
}}

fabric rails {{
  cluster = c
  rail_by = local_rank
  switch  = switches.generic {{
    matrix       = crossbar
    radix        = 32
    driver       = {driver}
    ingress_name = "1.1.{{position}}"
    egress_name  = "2.1.{{position}}"
  }}
}}

job j {{
  fabric      = rails
  parallelism = {{ tp = 2, dp = 2, pp = 4 }}
}}
"""


def plan(driver: str, ports: int = 2, named: bool = False) -> Plan:
    text = PROGRAM.format(driver=driver, ports=ports)
    if not named:
        text = re.sub(r".*gress_name .*\n", "", text)
    return compile_source(Source("<test>", text), Path.cwd()).plan


def written(target: str, made: Plan, directory: Path) -> Path:
    backend = get(target)
    sink = Diagnostics()
    backend.check(made, Options(), sink)
    assert not list(sink), [d.message for d in sink]
    for name, chunks in backend.write(made, Options()):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(chunks))
    return directory


# --- a switch that takes each format -------------------------------------------------------------


class Switch:
    """Cross-connects that hold, by name; strict about ports that are taken or free."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    def connect(self, a: str, b: str) -> None:
        assert a not in self.held, f"{a} is taken"
        assert b not in self.held.values(), f"{b} is taken"
        self.held[a] = b

    def disconnect(self, a: str, b: str = "") -> None:
        assert a in self.held, f"{a} is free"
        assert not b or self.held[a] == b
        del self.held[a]


def netconf(switch: Switch, text: str) -> None:
    for message in text.split("]]>]]>"):
        for node in ElementTree.fromstring(message).iter():
            kind = node.tag.rpartition("}")[2]
            operation = next((v for k, v in node.attrib.items() if k.endswith("operation")), "")
            if kind == "cross-connects" and operation == "replace":
                switch.held.clear()
            if kind == "pair":
                ends = [child.text or "" for child in node]
                switch.disconnect(*ends) if operation == "delete" else switch.connect(*ends)


def restconf(switch: Switch, text: str) -> None:
    switch.held.clear()
    for pair in json.loads(text)["optical-switch:cross-connects"]["pair"]:
        switch.connect(str(pair["ingress"]), str(pair["egress"]))


def scpi(switch: Switch, text: str) -> None:
    for line in text.splitlines():
        numbers = [part.split(",") for part in re.findall(r"@([\d,]+)", line)]
        if ":only" in line or ":disc:all" in line:
            switch.held.clear()
        for a, b in zip(*numbers, strict=True) if numbers else ():
            switch.disconnect(a, b) if ":sub" in line else switch.connect(a, b)


def tl1(switch: Switch, text: str) -> None:
    for line in text.splitlines():
        verb, a, b = re.match(r"([A-Z]+)-(?:PATCH|CRS):[^:]*:([\d.]+)[,&]([\d.]+):", line).groups()  # type: ignore[union-attr]
        if verb in ("DLT", "ENT"):
            switch.disconnect(a, b) if verb == "DLT" else switch.connect(a, b)


def config_db(switch: Switch, text: str) -> None:
    switch.held.clear()
    for row in json.loads(text)["OCS_CROSS_CONNECT"].values():
        switch.connect(row["a_side"], row["b_side"])


def patch(switch: Switch, text: str) -> None:
    for step in json.loads(text):
        if step["path"] == "/OCS_CROSS_CONNECT":
            switch.held.clear()
            for row in step["value"].values():
                switch.connect(row["a_side"], row["b_side"])
        else:
            a, b = step["path"].split("/")[2].split("-")
            switch.disconnect(a, b) if step["op"] == "remove" else switch.connect(a, b)


def cli(switch: Switch, text: str) -> None:
    for line in text.splitlines():
        words = line.split()
        if words[-1] == "overwrite":
            switch.held.clear()
        for key in words[4].split(","):
            a, b = key.split("-")
            switch.disconnect(a, b) if words[3] == "delete" else switch.connect(a, b)


def set_request(switch: Switch, text: str) -> None:
    request = json.loads(text)
    for path in request.get("delete", []):
        switch.disconnect(*re.search(r"name=(.+)-(.+)\]", path).groups())  # type: ignore[union-attr]
    for step in request.get("replace", []):
        switch.held.clear()
        for row in step["val"]["port-connection"]:
            switch.connect(row["config"]["input-port-name"], row["config"]["output-port-name"])
    for step in request.get("update", []):
        switch.connect(step["val"]["config"]["input-port-name"], step["val"]["config"]["output-port-name"])


def rest(switch: Switch, text: str) -> None:
    for request in json.loads(text):
        if request["path"].endswith("deleteall"):
            switch.held.clear()
        for row in request["body"]:
            switch.connect(row["in"], row["out"]) if "in" in row else switch.disconnect(*row["conn"].split(">"))


WIRES: list[tuple[str, str, Callable[[Switch, str], None]]] = [
    ("polatis", "netconf", netconf),
    ("polatis", "scpi", scpi),
    ("polatis", "tl1", tl1),
    ("sonic", "patch", patch),
    ("sonic", "cli", cli),
    ("ocp-gnmi", "set-request", set_request),
    ("calient", "rest", rest),
    ("calient", "tl1", tl1),
]
WHOLE_ONLY: list[tuple[str, str, Callable[[Switch, str], None]]] = [
    ("polatis", "restconf", restconf),
    ("sonic", "config-db", config_db),
]


def driver(target: str) -> str:
    return target.replace("-", "_")


def at(directory: Path, target: str, wire: str, title: str) -> str:
    [path] = (directory / target / "rails.rail-0" / wire).glob(f"{title}.*")
    return path.read_text()


@pytest.mark.parametrize("ports", [1, 2])
@pytest.mark.parametrize(("target", "wire", "take"), WIRES, ids=lambda v: v if isinstance(v, str) else "")
def test_replaying_the_changes_gives_each_configuration(
    target: str, wire: str, take: Callable[[Switch, str], None], ports: int, tmp_path: Path
) -> None:
    made = plan(driver(target), ports, named=target == "calient")
    directory = written(target, made, tmp_path)
    order = [slug(c.name) for c in walk(made)]
    switch = Switch()
    take(switch, at(directory, target, wire, f"configuration-{order[0]}"))
    for before, after in zip(order, [*order[1:], order[0]], strict=True):
        take(switch, at(directory, target, wire, f"change-{before}-to-{after}"))
        whole = Switch()
        take(whole, at(directory, target, wire, f"configuration-{after}"))
        assert switch.held == whole.held
        assert whole.held


@pytest.mark.parametrize(("target", "wire", "take"), WHOLE_ONLY, ids=lambda v: v if isinstance(v, str) else "")
def test_wires_without_changes_state_the_same_sets(
    target: str, wire: str, take: Callable[[Switch, str], None], tmp_path: Path
) -> None:
    made = plan(driver(target))
    directory = written(target, made, tmp_path)
    other = {"restconf": ("netconf", netconf), "config-db": ("patch", patch)}[wire]
    for configuration in walk(made):
        title = f"configuration-{slug(configuration.name)}"
        one, two = Switch(), Switch()
        take(one, at(directory, target, wire, title))
        other[1](two, at(directory, target, other[0], title))
        assert one.held == two.held


@pytest.mark.parametrize("target", ["polatis", "sonic", "ocp-gnmi", "calient"])
def test_what_was_written_is_read_back(target: str, tmp_path: Path) -> None:
    made = plan(driver(target), named=target == "calient")
    directory = written(target, made, tmp_path)
    sink = Diagnostics()
    assert validate(get(target), made, directory, sink) > 10
    assert not list(sink)


FAULTS: list[tuple[str, str, str, str]] = [
    ("polatis", "netconf/configuration-dp.xml", "<egress>36</egress>", "<egress>37</egress>"),
    (
        "polatis",
        "netconf/change-dp-to-pp.xml",
        'nc:operation="create"><ingress>1<',
        'nc:operation="delete"><ingress>1<',
    ),
    ("polatis", "restconf/part-dp-0.json", '"ingress": 1,', '"ingress": 9,'),
    ("polatis", "scpi/change-dp-to-pp.txt", ":sub", ":add"),
    ("polatis", "tl1/change-dp-to-pp.txt", "DLT-PATCH", "ENT-PATCH"),
    ("sonic", "config-db/part-dp-0.json", '"b_side": "4B"', '"b_side": "5B"'),
    ("sonic", "patch/change-dp-to-pp.json", '"op": "remove"', '"op": "add"'),
    ("sonic", "cli/configuration-dp.sh", "1A-4B", "1A-5B"),
    ("ocp-gnmi", "set-request/configuration-dp.json", '"output-port-name": "4B"', '"output-port-name": "5B"'),
    ("ocp-gnmi", "set-request/change-dp-to-pp.json", "name=1A-", "name=2A-"),
    ("calient", "rest/change-dp-to-pp.json", "bdel", "badd"),
    ("calient", "tl1/change-dp-to-pp.txt", "DLT-CRS::1.1.1,", "DLT-CRS::1.1.2,"),
]


@pytest.mark.parametrize(("target", "file", "old", "new"), FAULTS)
def test_a_fault_in_a_file_is_seen(target: str, file: str, old: str, new: str, tmp_path: Path) -> None:
    made = plan(driver(target), named=target == "calient")
    directory = written(target, made, tmp_path)
    path = directory / target / "rails.rail-0" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    sink = Diagnostics()
    validate(get(target), made, directory, sink)
    assert [d.code for d in sink] == ["OPUS903"]


@pytest.mark.parametrize(
    ("target", "stated", "code"),
    [("sonic", "polatis", "OPUS602"), ("calient", "calient", "OPUS604"), ("polatis", "sonic", "OPUS602")],
)
def test_refusals(target: str, stated: str, code: str) -> None:
    sink = Diagnostics()
    get(target).check(plan(stated), Options(), sink)
    assert {d.code for d in sink} == {code}


def test_changes_never_name_a_circuit_that_stays(tmp_path: Path) -> None:
    """A one-line ring of two and a join of two share circuits when they share ports: none is touched."""
    made = plan("sonic")
    directory = written("sonic", made, tmp_path)
    for path in (directory / "sonic").rglob("patch/change-*.json"):
        steps = json.loads(path.read_text())
        gone = {s["path"] for s in steps if s["op"] == "remove"}
        assert not gone & {s["path"] for s in steps if s["op"] == "add"}


def test_controllers_are_all_switches_with_a_driver(tmp_path: Path) -> None:
    done = emit(plan("sonic"), ["controllers", "plan"], tmp_path, Options(), Diagnostics())
    assert [w.target for w in done] == ["sonic", "plan"]


def test_controllers_of_a_fabric_without_drivers_are_refused(tmp_path: Path) -> None:
    text = re.sub(r".*(driver|gress_name) .*\n", "", PROGRAM.format(driver="sonic", ports=2))
    bare = compile_source(Source("<test>", text), Path.cwd()).plan
    sink = Diagnostics()
    with pytest.raises(CompileError):
        emit(bare, ["controllers"], tmp_path, Options(), sink)
    assert [d.code for d in sink] == ["OPUS602"]


def test_controllers_say_which_switches_have_no_files(tmp_path: Path) -> None:
    made = plan("sonic")
    bare = dataclasses.replace(made.switches[1].kind, driver=None)
    switches = (made.switches[0], dataclasses.replace(made.switches[1], kind=bare), *made.switches[2:])
    sink = Diagnostics()
    emit(dataclasses.replace(made, switches=switches), ["controllers"], tmp_path, Options(), sink)
    (found,) = sink.warnings
    assert found.code == "OPUS602"
    assert f"nothing for 1 of {len(switches)} switches" in found.message


@pytest.mark.parametrize(
    ("target", "ingress", "egress", "fits"),
    [
        ("sonic", "2-{position}A", "2-{position}B", True),
        ("sonic", "1.1.{position}", "2.1.{position}", False),
        ("sonic", "{position}B", "{position}A", False),
        ("polatis", "{position}", "{100 + position}", True),
        ("polatis", "{position}A", "{position}B", False),
        ("ocp-gnmi", "in/{position}", "out/{position}", True),
        ("ocp-gnmi", "in-{position}", "out-{position}", False),
        ("calient", "1.1.{position}", "1/1.{position}", False),
    ],
)
def test_names_of_ports_that_a_format_cannot_say_are_refused(
    target: str, ingress: str, egress: str, fits: bool, tmp_path: Path
) -> None:
    text = PROGRAM.format(driver=driver(target), ports=2)
    text = text.replace("1.1.{position}", ingress, 1).replace("2.1.{position}", egress, 1)
    made = compile_source(Source("<test>", text), Path.cwd()).plan
    if fits:
        directory = written(target, made, tmp_path)
        assert validate(get(target), made, directory, Diagnostics()) > 10
    else:
        sink = Diagnostics()
        get(target).check(made, Options(), sink)
        assert [d.code for d in sink] == ["OPUS602"]
        assert "cannot call a port of rails.rail[0]" in next(iter(sink)).message


# --- times, and changes that are wrong -----------------------------------------------------------


def timed(text: str) -> Plan:
    program = re.sub(r".*gress_name .*\n", "", PROGRAM.format(driver="sonic", ports=2)).replace(
        "radix ", f"reconfigure = {{ {text} }}\n    radix "
    )
    return compile_source(Source("<test>", program), Path.cwd()).plan


@pytest.mark.parametrize(
    ("stated", "time", "unknown"),
    [
        ("settle = 20 ms, relock = 4500 us, control = 1 ms", 25_500_000_000, []),
        ("settle = 20 ms, relock = 0 ms", 20_000_000_000, []),
        ("settle = 20 ms", None, ["relock"]),
        ("control = 5 ms", None, ["settle", "relock"]),
    ],
)
def test_each_switch_states_the_time_of_its_changes_or_what_is_not_stated(
    stated: str, time: int | None, unknown: list[str], tmp_path: Path
) -> None:
    made = timed(stated)
    directory = written("sonic", made, tmp_path)
    for switch in made.switches:
        folder = directory / "sonic" / slug(switch.name)
        document = json.loads((folder / "changes.json").read_text())
        assert document["not_stated"] == unknown
        assert document["switch"] == switch.name
        assert [(c["before"], c["after"]) for c in document["changes"]] == [("dp", "pp"), ("pp", "dp")]
        for change in document["changes"]:
            assert change["time"] == time
            steps = json.loads((folder / "patch" / f"change-{change['before']}-to-{change['after']}.json").read_text())
            assert change["disconnect"] == sum(step["op"] == "remove" for step in steps) > 0
            assert change["connect"] == sum(step["op"] == "add" for step in steps)
            before = json.loads((folder / "config-db" / f"configuration-{change['before']}.json").read_text())
            assert change["kept"] + change["disconnect"] == len(before["OCS_CROSS_CONNECT"])
    assert validate(get("sonic"), made, directory, Diagnostics()) > 10
    path = directory / "sonic" / slug(made.switches[0].name) / "changes.json"
    path.write_text(path.read_text().replace('"kept": ', '"kept": 1', 1))
    sink = Diagnostics()
    validate(get("sonic"), made, directory, sink)
    assert [d.code for d in sink] == ["OPUS903"]


def test_a_switch_that_a_change_leaves_as_it_is_takes_no_time() -> None:
    made = timed("settle = 20 ms, relock = 5 ms")
    steps = changes(made)
    only = [
        (a, b, dataclasses.replace(c, disconnect=_of(c.disconnect, 0), connect=_of(c.connect, 0))) for a, b, c in steps
    ]
    first, second = changes_of(made, tuple(only))
    assert {change.time for change in first.changes} == {25_000_000_000}
    assert {change.time for change in second.changes} == {0}


def _of(rows: Int32, switch: int) -> Int32:
    return rows[rows[:, 0] == switch]


WRONG: dict[str, Callable[[Transition], Transition]] = {
    "connects a port that still has a circuit": lambda c: dataclasses.replace(c, disconnect=c.disconnect[1:]),
    "does not connect a circuit that it promises": lambda c: dataclasses.replace(c, connect=c.connect[:-1]),
    "circuits stay": lambda c: dataclasses.replace(c, kept=c.kept + 1),
    "outside its footprint": lambda c: dataclasses.replace(c, connect=np.add(c.connect, [0, 0, 1])),
}


@pytest.mark.parametrize("target", ["polatis", "sonic", "ocp-gnmi", "calient"])
@pytest.mark.parametrize("what", WRONG)
def test_compile_reports_a_wrong_change_and_writes_nothing(
    target: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(plan: Plan) -> Any:
        (a, b, change), *others = changes(plan)
        return ((a, b, WRONG[what](change)), *others)

    monkeypatch.setattr("opusc.backends.switch_files.changes", broken)
    text = PROGRAM.format(driver=driver(target), ports=2)
    (tmp_path / "p.opus").write_text(text if target == "calient" else re.sub(r".*gress_name .*\n", "", text))
    command = ["compile", str(tmp_path / "p.opus"), "-t", target, "-o", str(tmp_path / "out"), "--format", "json"]
    assert main(command) == 1
    found = json.loads(capsys.readouterr().out)["diagnostics"]
    assert {d["code"] for d in found} == {"OPUS506"}
    assert any(what in d["message"] for d in found)
    assert not (tmp_path / "out").exists()
