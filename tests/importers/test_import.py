"""`opusc import`: what existing configurations connect, and what their authors may not have meant."""

import json
from pathlib import Path

import pytest

from opusc.backends.base import Options
from opusc.backends.emit import emit
from opusc.backends.ends import ends_of
from opusc.backends.switch_files import slug
from opusc.cli.main import main
from opusc.diagnostics import Diagnostics
from opusc.driver import compile_source
from opusc.importers.cables import Cables, cables, radix_of
from opusc.importers.configurations import configurations
from opusc.importers.lint import Shape, lint
from opusc.plan.plan import Plan
from opusc.source import Source

DATA = Path(__file__).parent / "data"
Capture = pytest.CaptureFixture[str]

CABLING = "node,gpu,port,position\n" + "".join(f"{n},0,{p},{2 * n + p + 1}\n" for n in range(4) for p in range(2))


def linted(text: str, cabling: str = CABLING, form: str = "opus-controller") -> tuple[list[Shape], Diagnostics]:
    sink = Diagnostics()
    at = cables(Source("cabling.csv", cabling), sink)
    assert at is not None
    found = configurations(Source("config", text), form, 8, sink)
    radix = radix_of(found, at)
    assert radix is not None
    return [lint(one, Cables(radix, at), sink) for one in found], sink


def controller(**sets: list[tuple[int, int]]) -> str:
    document = {
        name: {"ingress": [a for a, _ in pairs], "egress": [b for _, b in pairs]} for name, pairs in sets.items()
    }
    return json.dumps({"cross-connects": document})  # JSON is YAML


def test_the_published_bench_has_loopbacks(capsys: Capture) -> None:
    order = ["import", "opus-controller", str(DATA / "bench.yaml"), "--cabling", str(DATA / "bench.csv")]
    assert main(order) == 0
    streams = capsys.readouterr()
    assert "switch       32 x 32, 16 NIC ports cabled" in streams.out
    lines = [line.split() for line in streams.out.splitlines()]
    rows = {words[0]: words[1:] for words in lines if len(words) == 8}
    assert rows["0"] == ["16", "0", "2", "0", "0", "8", "0"]
    assert rows["1"] == ["16", "0", "4", "0", "0", "0", "0"]
    assert rows["2"] == ["16", "0", "0", "0", "0", "16", "0"]
    assert rows["1-0"] == ["8", "0", "2", "0", "0", "0", "8"]
    assert "warning[OPUS772]: `2` joins 16 ports to themselves" in streams.err
    assert streams.err.count("OPUS772") == 4
    assert main([*order, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"] == {"errors": 0, "warnings": 4}


def test_rings_pairs_and_chains_are_told_apart() -> None:
    ring = [(2, 11), (3, 10), (4, 13), (5, 12), (6, 15), (7, 14), (8, 9), (1, 16)]
    chain = ring[:6]
    pairs = [(1, 11), (3, 9), (2, 12), (4, 10)]
    (first, second, third), sink = linted(controller(ring=ring, chain=chain, pairs=pairs))
    assert list(sink) == []
    assert (first.rings, first.pairs, first.chains, first.other) == (("rail 0: 0, 1, 2, 3",), (), (), ())
    assert second.chains == ("rail 0: 0, 1, 2, 3",)
    assert second.dangling == 2
    assert third.pairs == ("rail 0: 0, 1",)


@pytest.mark.parametrize(
    ("pairs", "code", "said"),
    [
        ([(1, 11), (1, 12), (3, 9)], "OPUS771", "uses ingress 1 twice"),
        ([(1, 11), (2, 11)], "OPUS771", "uses egress 11 twice"),
        ([(1, 9), (3, 12), (4, 11)], "OPUS772", "joins node 0 GPU 0 port 0 to itself"),
        ([(1, 11), (4, 14), (6, 12)], "OPUS773", "leads from node 0 GPU 0 port 0 to node 1 GPU 0 port 0"),
        ([(9, 11), (3, 12), (4, 11)], "OPUS771", "egress 11 twice"),
    ],
)
def test_what_was_probably_not_meant(pairs: list[tuple[int, int]], code: str, said: str) -> None:
    _, sink = linted(controller(x=pairs))
    found = [d for d in sink if d.code == code]
    assert found
    assert said in found[0].message
    assert found[0].span.source.name == "config"


def test_ports_without_a_cable_are_named() -> None:
    few = "\n".join(CABLING.splitlines()[:-1]) + "\n"  # position 8 is not cabled
    _, sink = linted(controller(x=[(8, 11), (1, 12), (4, 9)]), few)
    (found,) = (d for d in sink if d.code == "OPUS774")
    assert "`x` uses port 8 on which no NIC port is cabled" in found.message
    assert found.span.text == "8"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cross-connects: [", "no YAML"),
        ("cross: {}", "no mapping `cross-connects`"),
        ("cross-connects: {a: {ingress: [1]}}", "no list `egress`"),
        ("cross-connects: {a: {ingress: [1, 2], egress: [9]}}", "lists 2 ingress and 1 egress ports"),
        ("cross-connects: {a: {ingress: [one], egress: [9]}}", "`one` is no port number"),
        ("", "no mapping"),
    ],
)
def test_a_configuration_that_cannot_be_read(text: str, said: str) -> None:
    sink = Diagnostics()
    configurations(Source("config.yaml", text), "opus-controller", 8, sink)
    assert [d.code for d in sink] == ["OPUS770"]
    assert said in next(iter(sink)).message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("node,gpu,port\n0,0,0\n", "no column `position`"),
        ("node,gpu,port,position\n", "has no cable"),
        ("node,gpu,port,position\n0,0,0,x\n", "not four numbers"),
        ("node,gpu,port,position\n0,0,0,1\n1,0,0,1\n", "has two cables"),
    ],
)
def test_a_cabling_that_cannot_be_read(text: str, said: str) -> None:
    sink = Diagnostics()
    assert cables(Source("c.csv", text), sink) is None
    assert [d.code for d in sink] == ["OPUS770"]
    assert said in next(iter(sink)).message


# --- what opusc writes itself --------------------------------------------------------------------

PROGRAM = """\
opus 1

use std.switches

cluster c {{
  node_count    = 8
  gpus_per_node = 1
  nic           = {{ ports = 2, rate = 200 Gbps, optics = duplex }}
}}

fabric rails {{
  cluster = c
  rail_by = local_rank
  switch  = switches.generic {{ matrix = crossbar, radix = 16, driver = {driver} }}
}}

job j {{
  fabric      = rails
  parallelism = {{ dp = 2, pp = 4 }}
}}
"""


def cabling_of(plan: Plan) -> str:
    rows = [
        f"{gpu},0,{port},{plan.cabling.ingress[gpu, port]}"
        for gpu in range(plan.model.cluster.gpu_count)
        for port in range(plan.cabling.ports)
    ]
    return "node,gpu,port,position\n" + "\n".join(rows) + "\n"


def links(plan: Plan, name: str) -> set[tuple[int, int]]:
    """The circuits of all parts of a phase, as pairs of switch ports."""
    phase = next(p.index for p in plan.phases if p.name == name)
    c = plan.circuits
    rows = [row for row in range(len(c)) if plan.parts[int(c.part[row])].phase == phase]
    assert len(ends_of(plan).sender) == len(c)
    return {(int(c.ingress[row]), int(c.egress[row])) for row in rows}


@pytest.mark.parametrize(
    ("driver", "form", "wire", "suffix"),
    [("polatis", "polatis", "netconf", "xml"), ("polatis", "polatis", "restconf", "json"),
     ("sonic", "sonic", "config-db", "json")],
)  # fmt: skip
def test_what_opusc_writes_is_read_back(driver: str, form: str, wire: str, suffix: str, tmp_path: Path) -> None:
    plan = compile_source(Source("p", PROGRAM.format(driver=driver)), tmp_path).plan
    emit(plan, [driver], tmp_path, Options(), Diagnostics())
    folder = tmp_path / driver / slug(plan.switches[0].name) / wire
    for name, kind, count in (("dp", "pairs", 4), ("pp", "chains", 2)):
        sink = Diagnostics()
        at = cables(Source("c.csv", cabling_of(plan)), sink)
        assert at is not None
        text = (folder / f"configuration-{name}.{suffix}").read_text()
        (one,) = configurations(Source("x", text), form, 16, sink)
        assert {(c.ingress, c.egress) for c in one.circuits} == links(plan, name)
        shape = lint(one, Cables(16, at), sink)
        assert list(sink) == []
        assert len(getattr(shape, kind)) == count


def test_the_controllers_file_is_read_back(tmp_path: Path) -> None:
    plan = compile_source(Source("p", PROGRAM.format(driver="polatis")), tmp_path).plan
    emit(plan, ["opus-controller"], tmp_path, Options(), Diagnostics())
    text = (tmp_path / "opus-controller" / "config.yaml").read_text()
    shapes, sink = linted(text, cabling_of(plan))
    assert list(sink) == []
    assert len(shapes) >= 16
    rings = [shape for shape in shapes if shape.name.startswith("0")]
    assert rings[0].pairs == tuple(f"rail 0: {n}, {n + 1}" for n in (0, 2, 4, 6))


def test_another_format_is_told(tmp_path: Path, capsys: Capture) -> None:
    config, cabling = tmp_path / "c.json", tmp_path / "c.csv"
    config.write_text('{"OCS_CROSS_CONNECT": {}, "PORT": {}}')
    cabling.write_text(CABLING)
    assert main(["import", "polatis", str(config), "--cabling", str(cabling)]) == 1
    assert "error[OPUS770]: this is CONFIG_DB, not a configuration of polatis" in capsys.readouterr().err
    assert main(["import", "sonic", str(config), "--cabling", str(cabling)]) == 0
    assert main(["import", "sonic", str(config), "--cabling", str(tmp_path / "none.csv")]) == 2
