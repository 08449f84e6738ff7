"""`opusc plan-change`: the exports of switches are understood, and the change from them is the smallest safe one."""

import json
from pathlib import Path

import pytest

from opusc.backends.base import Options
from opusc.backends.emit import emit
from opusc.backends.registry import get
from opusc.backends.switch_files import SwitchTarget, slug
from opusc.cli.main import main
from opusc.control.change import Change, Goal, Station, change_to
from opusc.control.exports import held_in
from opusc.control.goals import station_of
from opusc.control.proving import prove_change
from opusc.diagnostics import Diagnostics
from opusc.plan.configurations import configurations, walk
from opusc.plan.plan import Plan
from opusc.plan.transitions import held
from tests.control.test_push import written

Capture = pytest.CaptureFixture[str]

NETCONF = """\
<?xml version="1.0" encoding="UTF-8"?>
<rpc-reply xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="7"><data>
  <cross-connects xmlns="http://www.polatis.com/yang/optical-switch">
    <pair><ingress>1</ingress><egress>20</egress></pair>
    <pair><ingress>2</ingress><egress>19</egress></pair>
  </cross-connects>
</data></rpc-reply>
"""
RESTCONF = {"optical-switch:cross-connects": {"pair": [{"ingress": 1, "egress": 20}, {"ingress": 2, "egress": 19}]}}
CONFIG_DB = {
    "DEVICE_METADATA": {"localhost": {"hostname": "ocs"}},
    "OCS_CROSS_CONNECT": {"1A-4B": {"a_side": "1A", "b_side": "4B"}, "2A-3B": {"a_side": "2A", "b_side": "3B"}},
}
CONNECTION = {"name": "by hand", "config": {"name": "by hand", "input-port-name": "1A", "output-port-name": "4B"}}
TREE = {"ocp-ocs-optical-switch-connections:port-connection": [CONNECTION]}
GNMI = {"notification": [{"timestamp": 1, "update": [{"path": "connections", "val": TREE}]}]}
CALIENT = [{"half1": {"conn": "1.1.1>2.1.4", "as": "UMA"}, "half2": {}}, {"half1": {"conn": "1.1.2>2.1.3"}}]


@pytest.mark.parametrize(
    ("text", "form", "pairs"),
    [
        (NETCONF, "NETCONF", {("1", "20"), ("2", "19")}),
        (json.dumps(RESTCONF), "RESTCONF", {("1", "20"), ("2", "19")}),
        ("(@1,2),(@20,19)\n", "SCPI", {("1", "20"), ("2", "19")}),
        ("(@),(@)\n", "SCPI", set()),
        (json.dumps(CONFIG_DB), "CONFIG_DB", {("1A", "4B"), ("2A", "3B")}),
        (json.dumps(GNMI), "gNMI", {("1A", "4B")}),
        (json.dumps(CALIENT), "Calient REST", {("1.1.1", "2.1.4"), ("1.1.2", "2.1.3")}),
        ("\ufeff" + json.dumps(CONFIG_DB, indent=2), "CONFIG_DB", {("1A", "4B"), ("2A", "3B")}),
    ],
)
def test_exports_of_switches_are_understood(text: str, form: str, pairs: set[tuple[str, str]]) -> None:
    assert held_in(text) == (form, frozenset(pairs))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "neither XML nor JSON"),
        ("<data>", "no XML"),
        ("<data/>", "no `cross-connects`"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><data/>', "a document type"),
        ("{}", "none of the formats"),
        ('{"a": ', "no JSON"),
        ("(@1,2),(@3)", "2 ingress ports and 1 egress"),
        ("(@1,1),(@3,4)", "ingress 1 has two circuits"),
        ('{"OCS_CROSS_CONNECT": {"x": {"a_side": "1A"}}}', "lacks something"),
        (json.dumps(RESTCONF).replace("19", "20"), "egress 20 has two circuits"),
    ],
)
def test_damaged_exports_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        held_in(text)


def compiled(path: Path) -> Plan:
    import opusc

    return opusc.compile(path)


@pytest.mark.parametrize("driver", ["polatis", "sonic", "ocp_gnmi", "calient"])
def test_from_a_whole_set_the_change_is_that_of_the_target(driver: str, tmp_path: Path) -> None:
    """Every whole set that a target writes is read back as an export; from it the change to each next configuration
    has the circuits of the target's own change, in every format."""
    path = written(tmp_path / "p", 9, driver=driver)
    plan = compiled(path)
    name = driver.replace("_", "-")
    target = get(name)
    assert isinstance(target, SwitchTarget)
    emit(plan, [name], tmp_path, Options(), Diagnostics())
    folder = tmp_path / name / slug(plan.switches[0].name)
    order = [slug(c.name) for c in walk(plan)]
    readable = [wire for wire in target.wires if wire.name not in ("tl1", "cli", "patch")]
    assert readable
    for before, after in zip(order, [*order[1:], order[0]], strict=True):
        for wire in readable:
            text = (folder / wire.name / f"configuration-{before}.{wire.suffix}").read_text()
            state = tmp_path / f"state.{wire.suffix}"
            form, _ = _scpi_as_exported(text) if wire.name == "scpi" else (None, state.write_text(text))
            if form is not None:
                state.write_text(form)
            out = tmp_path / f"{wire.name}-{before}"
            assert main(["plan-change", str(path), "--observed", str(state), "--phase", after, "-o", str(out)]) == 0
            for other in target.wires:
                if other.change is None or other.read_change is None:
                    continue
                own = (folder / other.name / f"change-{before}-to-{after}.{other.suffix}").read_text()
                made = out / name / folder.name / other.name / f"change-observed-to-{after}.{other.suffix}"
                assert other.read_change(made.read_text()) == other.read_change(own)


def _scpi_as_exported(text: str) -> tuple[str, int]:
    """The answer of a switch that holds the set of a command."""
    return text.partition(" ")[2], 0


def test_what_is_there_is_not_done_again(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "p", 9)
    plan = compiled(path)
    [dp] = [c for c in configurations(plan) if c.name == "dp"]
    pairs = [(str(a), str(b)) for _, a, b in held(plan, dp.parts).tolist()]
    state = tmp_path / "state.txt"
    for missing in (0, 1, len(pairs)):
        some = pairs[missing:]
        state.write_text(f"(@{','.join(a for a, _ in some)}),(@{','.join(b for _, b in some)})\n")
        assert main(["plan-change", str(path), "--observed", str(state), "--phase", "dp"]) == 0
        row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("rails.rail[0] "))
        assert row.split()[1:] == ["0", str(missing), str(len(some)), "0"]


def test_circuits_of_others_are_refused_unless_they_are_named(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "p", 9)
    path.write_text(path.read_text().replace("pp = 4", "pp = 3"))
    state = tmp_path / "state.txt"
    state.write_text("(@1,13),(@31,30)\n")
    order = ["plan-change", str(path), "--observed", str(state), "--phase", "dp", "-o", str(tmp_path / "out")]
    assert main(order) == 1
    said = capsys.readouterr()
    assert "error[OPUS746]: rails.rail[0] holds 1 circuit of others" in said.err
    assert not (tmp_path / "out").exists()
    assert main([*order, "--take", "rails.rail[0]:1>31"]) == 0
    scpi = (tmp_path / "out/polatis/rails.rail-0/scpi/change-observed-to-dp.txt").read_text()
    assert scpi.startswith(":oxc:swit:conn:sub (@1),(@31)\n:oxc:swit:conn:add (@1,2,")
    assert "13" not in scpi, "what is not in the way stays, and is not named"


def station(tmp_path: Path) -> tuple[Plan, Station]:
    path = written(tmp_path / "p", 9)
    plan = compiled(path)
    target = get("polatis")
    assert isinstance(target, SwitchTarget)
    return plan, station_of(plan, plan.switches[0], target)


@pytest.mark.parametrize(
    "change",
    [
        Change((), (("1", "20"),), (), (), ()),  # egress 20 is taken
        Change((("3", "20"),), (("1", "20"), ("1", "21")), (), (), ()),  # ingress 1 twice
        Change((("3", "20"), ("5", "22")), (("1", "20"), ("5", "22")), (), (), ()),  # names one that stays
        Change((("4", "23"),), (), (), (), ()),  # takes down what is not up
        Change((), (("5", "22"),), (), (), ()),  # connects what is there
    ],
)
def test_a_wrong_change_is_not_proved(change: Change, tmp_path: Path) -> None:
    plan, here = station(tmp_path)
    holds = frozenset({("3", "20"), ("5", "22")})
    sink = Diagnostics()
    prove_change(plan, here, holds, change, sink)
    assert {d.code for d in sink} == {"OPUS506"}
    right = change_to(here, holds, Goal(frozenset({("1", "20"), ("5", "22")})))
    clean = Diagnostics()
    assert prove_change(plan, here, holds, right, clean) == 5
    assert list(clean) == []
