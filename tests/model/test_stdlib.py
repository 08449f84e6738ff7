"""The standard library: every entry can be used, says its source, and topologies are what they are called."""

from collections import Counter
from math import prod

import pytest

from opusc.diagnostics import Diagnostics
from opusc.model.entities import Model
from opusc.model.loader import standard_modules
from opusc.resources import stdlib_dir
from opusc.source import Source
from opusc.syntax import tree
from opusc.syntax.parser import parse
from tests.model.programs import FABRIC, HEAD, JOB, PROGRAM, model_of, right


def declarations(module: str) -> list[tree.Declaration]:
    sink = Diagnostics()
    text = (stdlib_dir() / f"{module}.opus").read_text(encoding="utf-8")
    program = parse(Source(module, text), sink)
    assert not list(sink)
    return [entry for entry in program.entries if isinstance(entry, tree.Declaration)]


ENTRIES = [(module, entry) for module in standard_modules() for entry in declarations(module)]
NAMES = [f"{module}.{entry.name.text}" for module, entry in ENTRIES]


@pytest.mark.parametrize(("module", "entry"), ENTRIES, ids=NAMES)
def test_every_entry_is_documented_and_its_numbers_have_a_source(module: str, entry: tree.Declaration) -> None:
    assert entry.doc, "no doc comment"
    assert isinstance(entry.value, tree.Record)
    if module != "topologies" and entry.value.items:
        assert any(word in entry.doc for word in ("Source", "arXiv", "data sheet", "guide")), entry.doc


@pytest.mark.parametrize(("module", "entry"), ENTRIES, ids=NAMES)
def test_every_entry_can_be_used(module: str, entry: tree.Declaration) -> None:
    name = f"{module}.{entry.name.text}"
    use = HEAD.replace(
        "use std.switches", f"use std.switches\nuse std.{module} as lib" if module != "switches" else "use std.switches"
    )
    lib = name if module == "switches" else f"lib.{entry.name.text}"
    text = use + PROGRAM[len(HEAD) :]
    match entry.kind.text:
        case "switch":
            more = "{ matrix = crossbar, radix = 64 }" if name == "switches.generic" else ""
            text = text.replace("switches.polatis_6000_32x32", f"{lib} {more}")
        case "gpu":
            text = text.replace("gpus_per_node = 2", f"gpus_per_node = 2, gpu = {lib}")
        case "nic":
            text = text.replace("{ ports = 2, rate = 200 Gbps, optics = duplex }", lib)
        case "components":
            text = text.replace("rail_by = ", f"components = {lib}, rail_by = ")
            assert lib in text
        case "network":
            stages = f"[1] + [{lib}.layers - 1]"
            text = text.replace("pp = 2 }", f"pp = 2 }}\n  model = {lib}\n  stages = {stages}")
        case "transceiver":
            text = text.replace("optics = duplex }", f"optics = duplex, transceiver = {lib} }}")
            assert lib in text
        case "fibre":
            text = text.replace("rail_by = ", f"fibre = {lib} {{ length = 30 m }}, rail_by = ")
            assert lib in text
        case "topology":
            return  # tested below, with the arguments of each
        case kind:
            pytest.fail(f"no test for a {kind}")
    right(text)


def test_the_scale_of_gpu_figures() -> None:
    """Units are where numbers go wrong by 8 or 1000."""
    for _, entry in [e for e in ENTRIES if e[0] == "gpus"]:
        text = PROGRAM.replace("gpus_per_node = 2", f"gpus_per_node = 2, gpu = gpus.{entry.name.text}").replace(
            "use std.switches", "use std.switches\nuse std.gpus"
        )
        gpu = right(text).cluster.gpu
        assert gpu is not None
        assert 300 * 10**12 < (gpu.peak or 0) < 5000 * 10**12
        assert 70 * 10**9 < (gpu.memory or 0) < 300 * 10**9
        assert 1.9 * 8e12 < (gpu.memory_bandwidth or 0) < 10 * 8e12


# --- topologies ----------------------------------------------------------------------------------


def edges_of(topology: str, size: int) -> tuple[list[tuple[int, int]], list[str]]:
    cluster = (
        f"cluster c {{ node_count = {max(size, 2)}, gpus_per_node = 1, "
        "nic = { ports = 2, rate = 200 Gbps, optics = duplex } }\n"
    )
    job = JOB.replace(
        "{ tp = 2, dp = 2, pp = 2 }", f"{{ dp = {max(size, 2)} }}\n  phase dp {{ topology = {topology} }}"
    )
    text = HEAD.replace("use std.switches", "use std.switches\nuse std.topologies") + cluster + FABRIC + job
    model, sink = model_of(text)
    assert isinstance(model, Model), [d.message for d in sink]
    rule = model.job.phases[0].topology.edges
    assert rule is not None
    found = [(edge.tail, edge.head) for edge in rule(size)]
    assert found == [(edge.tail, edge.head) for edge in rule(size)]
    return found, [d.code for d in sink]


def connected(size: int, edges: list[tuple[int, int]]) -> bool:
    near = {v: {b for a, b in edges if a == v} | {a for a, b in edges if b == v} for v in range(size)}
    seen, waiting = {0}, [0]
    while waiting:
        for v in near[waiting.pop()] - seen:
            seen.add(v)
            waiting.append(v)
    return len(seen) == size


@pytest.mark.parametrize(
    ("topology", "size", "count"),
    [
        ("topologies.torus { dims = [4] }", 4, 4),
        ("topologies.torus { dims = [2] }", 2, 1),
        ("topologies.torus { dims = [3, 4] }", 12, 24),
        ("topologies.torus { dims = [2, 4] }", 8, 12),
        ("topologies.torus { dims = [2, 2, 2] }", 8, 12),
        ("topologies.torus { dims = [3, 3, 3] }", 27, 81),
        ("topologies.torus { dims = [1, 5] }", 5, 5),
        ("topologies.grid { dims = [4] }", 4, 3),
        ("topologies.grid { dims = [3, 4] }", 12, 17),
        ("topologies.circulant { strides = [1] }", 5, 5),
        ("topologies.circulant { strides = [1, 2] }", 7, 14),
        ("topologies.circulant { strides = [1, 4] }", 8, 12),
        ("topologies.bipartite { left = 2 }", 5, 6),
        ("topologies.star", 6, 5),
    ],
)
def test_a_topology_has_the_edges_of_its_name(topology: str, size: int, count: int) -> None:
    edges, messages = edges_of(topology, size)
    assert messages == []
    assert len(edges) == count
    assert len({frozenset(edge) for edge in edges}) == count
    assert all(0 <= v < size for edge in edges for v in edge)
    assert connected(size, edges)


def test_a_torus_has_two_neighbours_in_every_dimension() -> None:
    dims = (3, 4, 5)
    edges, _ = edges_of(f"topologies.torus {{ dims = {list(dims)} }}", prod(dims))
    degree = Counter(v for edge in edges for v in edge)
    assert set(degree.values()) == {2 * len(dims)}


@pytest.mark.parametrize(
    ("topology", "code"),
    [
        ("topologies.torus { dims = [3, 3] }", "OPUS213"),
        ("topologies.circulant { strides = [5] }", "OPUS213"),
        ("topologies.bipartite { left = 8 }", "OPUS213"),
        ("edges { of = [(i, i + 2) for i in members] }", "OPUS212"),
        ("edges { of = [(0, 0)] }", "OPUS212"),
        ("edges { of = [(0, 1), (0, 1)] }", "OPUS212"),
        ("edges { of = [(0, 1, 2)] }", "OPUS212"),
        ("edges { of = [0] }", "OPUS212"),
        ("edges { of = 3 }", "OPUS201"),
    ],
)
def test_a_topology_that_does_not_fit_has_no_edges_and_says_why(topology: str, code: str) -> None:
    _, messages = edges_of(topology, 8)
    assert set(messages) == {code}


def test_edges_may_depend_on_the_size_of_the_group() -> None:
    assert edges_of("edges { of = [(i, (i + 1) mod size) for i in members] }", 5)[0] == [
        (0, 1), (1, 2), (2, 3), (3, 4), (4, 0),
    ]  # fmt: skip


def test_lets_of_a_topology_see_its_parameters_and_the_size() -> None:
    text = (
        HEAD
        + "topology skip(k) {\n  let step = k + 1\n  let last = size - step\n  require step < size\n"
        + "  edges = [(i, i + step) for i in members if i < last]\n}\n"
        + PROGRAM[len(HEAD) :].replace("pp = 2 }", "pp = 1 }\n  phase dp { topology = skip { k = 1 } }")
    )
    rule = right(text.replace("dp = 2", "dp = 4")).job.phases[0].topology.edges
    assert rule is not None
    drawn = [[(edge.tail, edge.head) for edge in rule(n)] for n in (4, 5)]
    assert drawn == [[(0, 2), (1, 3)], [(0, 2), (1, 3), (2, 4)]]
