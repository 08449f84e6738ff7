"""Every named topology, on every kind of ports, draws the right graph and never uses a port twice in a step."""

from collections import Counter
from dataclasses import replace

import pytest

from opusc.diagnostics import Diagnostics
from opusc.model.edges import Edge
from opusc.model.entities import PhaseSpec, Side, TopologySpec, Traffic
from opusc.plan.neighbours import targets
from opusc.plan.plan import Directions, Shape
from opusc.plan.ports import PortModel
from opusc.plan.routes import routes
from opusc.plan.topologies import shape
from tests.support import HERE, phase

A, B = Side.A, Side.B


def paired(ports: int) -> PortModel:
    return PortModel((0,) * ports, None, independent=False)


def independent(ports: int) -> PortModel:
    return PortModel((0,) * ports, None, independent=True)


def planes(ports: int) -> PortModel:
    return PortModel(tuple(range(ports)), None, independent=False)


def sided(ports: int) -> PortModel:
    return PortModel((0,) * ports, (A, B) * (ports // 2), independent=False)


KINDS = [(kind, ports) for kind in (paired, independent, planes) for ports in (1, 2, 3, 4)]
KINDS += [(sided, 2), (sided, 4)]


def arcs(form: Shape, step: int | None = None) -> Counter[tuple[int, int]]:
    """Who sends to whom, with multiplicity, in one step or in all."""
    found: Counter[tuple[int, int]] = Counter()
    for number, links in enumerate(form.steps):
        if step is None or number == step:
            for link in links:
                for v, w in enumerate(targets(link.neighbour, form.n).tolist()):
                    if w >= 0 and link.directions is not Directions.BACKWARD:
                        found[v, w] += 1
                    if w >= 0 and link.directions is not Directions.FORWARD:
                        found[w, v] += 1
    return found


def check_ports(form: Shape, ports: PortModel) -> None:
    for links in form.steps:
        sends: Counter[tuple[int, int]] = Counter()
        hears: Counter[tuple[int, int]] = Counter()
        for link in links:
            assert ports.planes[link.out_port] == ports.planes[link.in_port]
            if ports.sides is not None:
                assert ports.sides[link.out_port] is not ports.sides[link.in_port]
            for v, w in enumerate(targets(link.neighbour, form.n).tolist()):
                if w >= 0:
                    ahead = link.directions is not Directions.BACKWARD
                    back = link.directions is not Directions.FORWARD
                    sends[v, link.out_port] += ahead
                    hears[w, link.in_port] += ahead
                    sends[w, link.in_port] += back
                    hears[v, link.out_port] += back
        assert max(sends.values()) <= 1
        assert max(hears.values()) <= 1


def make(spec: PhaseSpec, n: int, ports: PortModel) -> Shape:
    sink = Diagnostics()
    form = shape(spec, n, ports, sink)
    assert form is not None, [d.message for d in sink]
    check_ports(form, ports)
    return form


@pytest.mark.parametrize(("kind", "ports"), KINDS)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9])
def test_ring_reaches_both_neighbours(kind: type, ports: int, n: int) -> None:
    form = make(phase("dp", ("dp",), "ring"), n, kind(ports))
    found = set(arcs(form))
    onward = {(v, (v + 1) % n) for v in range(n)}
    assert onward <= found <= onward | {(w, v) for v, w in onward}
    assert (kind is independent and ports == 1) or found == onward | {(w, v) for v, w in onward}


@pytest.mark.parametrize(("kind", "ports"), KINDS)
@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_chain_has_no_closing_link(kind: type, ports: int, n: int) -> None:
    form = make(phase("pp", ("pp",), "chain", Traffic.POINT_TO_POINT), n, kind(ports))
    assert set(arcs(form)) == {(v, v + d) for v in range(n) for d in (1, -1) if 0 <= v + d < n}


@pytest.mark.parametrize(("kind", "ports"), KINDS)
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 8, 9])
def test_rotor_meets_everyone_in_few_steps(kind: type, ports: int, n: int) -> None:
    form = make(phase("ep", ("ep",), "rotor", Traffic.ALL_TO_ALL), n, kind(ports))
    assert set(arcs(form)) == {(v, w) for v in range(n) for w in range(n) if v != w}
    if kind is not sided:
        rounds = n - 1 if kind is independent or n % 2 == 0 else n
        assert len(form.steps) == max(-(-rounds // ports), 1)


@pytest.mark.parametrize(("kind", "ports"), KINDS)
def test_hypercube_flips_one_bit(kind: type, ports: int) -> None:
    form = make(phase("ep", ("ep",), "hypercube", Traffic.ALL_TO_ALL), 8, kind(ports))
    assert set(arcs(form)) == {(v, v ^ 1 << bit) for v in range(8) for bit in range(3)}


def test_flattened_butterfly_of_the_design_fits_four_planes_at_once() -> None:
    spec = phase("ep", ("ep",), "flattened_butterfly", Traffic.ALL_TO_ALL, dims=(2, 4))
    form = make(spec, 8, planes(4))
    assert len(form.steps) == 1
    assert set(arcs(form)) == {
        (v, w) for v in range(8) for w in range(8) if v != w and (v % 2 == w % 2 or v // 2 == w // 2)
    }


def test_flattened_butterfly_takes_a_step_for_each_dimension_that_fits() -> None:
    spec = phase("ep", ("ep",), "flattened_butterfly", Traffic.ALL_TO_ALL, dims=(2, 4))
    form = make(spec, 8, paired(3))
    assert [len(links) for links in form.steps] == [1, 3]


@pytest.mark.parametrize(("ports", "steps"), [(1, 2), (2, 1)])
def test_even_ring_on_planes(ports: int, steps: int) -> None:
    assert len(make(phase("dp", ("dp",), "ring"), 6, planes(ports)).steps) == steps


@pytest.mark.parametrize(("ports", "steps"), [(1, 3), (2, 2), (3, 1)])
def test_odd_ring_on_planes_needs_three_matchings(ports: int, steps: int) -> None:
    assert len(make(phase("dp", ("dp",), "ring"), 5, planes(ports)).steps) == steps


def test_ports_left_over_repeat_the_ring_but_never_pairs() -> None:
    assert make(phase("dp", ("dp",), "ring"), 4, paired(4)).copies == 2
    assert make(phase("x", ("dp",), "pairs"), 4, paired(4)).copies == 1


def explicit(edges: list[tuple[int, int]], name: str = "edges") -> PhaseSpec:
    rule = lambda n: tuple(Edge(a, b, HERE) for a, b in edges)  # noqa: E731
    spec = TopologySpec(name=name, edges=rule, span=HERE)
    return PhaseSpec(name="x", axes=("dp",), topology=spec, traffic=Traffic.POINT_TO_POINT, span=HERE)


def test_any_graph_within_the_ports_takes_one_step() -> None:
    triangles = [(i, (i + 2) % 6) for i in range(6)]
    form = make(explicit(triangles), 6, paired(2))
    assert len(form.steps) == 1
    assert set(arcs(form)) == set(triangles) | {(b, a) for a, b in triangles}


def test_explicit_graph_beyond_the_ports_stays_within_one_of_the_bound() -> None:
    everyone = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    form = make(explicit(everyone), 5, paired(2))
    assert form.fewest_steps == 2
    assert len(form.steps) <= 3


def test_independent_explicit_graph_meets_koenigs_bound() -> None:
    form = make(explicit([(0, 1), (0, 2), (0, 3), (1, 3)]), 4, independent(2))
    assert len(form.steps) == 2
    assert set(arcs(form)) == {(0, 1), (0, 2), (0, 3), (1, 3)}


@pytest.mark.parametrize(
    ("spec", "n", "code"),
    [
        (phase("ep", ("ep",), "hypercube"), 6, "OPUS402"),
        (phase("ep", ("ep",), "flattened_butterfly", dims=(2, 4)), 6, "OPUS403"),
        (explicit([(0, 1), (1, 2)], "pairs"), 4, "OPUS404"),
        (phase("x", ("dp",), "pairs"), 5, "OPUS404"),
    ],
)
def test_impossible_topologies_are_refused(spec: PhaseSpec, n: int, code: str) -> None:
    sink = Diagnostics()
    assert shape(spec, n, paired(2), sink) is None
    assert [d.code for d in sink] == [code]


def test_one_sided_ports_are_refused() -> None:
    sink = Diagnostics()
    assert shape(phase("dp", ("dp",), "ring"), 4, PortModel((0,), (A,), independent=False), sink) is None
    assert [d.code for d in sink] == ["OPUS401"]


def test_routes_go_on_through_neighbours_that_are_nearer() -> None:
    spec = phase("ep", ("ep",), "flattened_butterfly", Traffic.ALL_TO_ALL, dims=(2, 4))
    form = make(spec, 8, planes(4))
    way = routes(spec, form, Diagnostics())
    assert way is not None
    direct = set(arcs(form))
    assert len(way.source) == 8 * 7 - len(direct)
    for s, t, via in zip(way.source.tolist(), way.target.tolist(), way.via.tolist(), strict=True):
        assert (s, t) not in direct
        assert {(s, via), (via, t)} <= direct


def test_all_to_all_over_pairs_has_no_way() -> None:
    spec = phase("ep", ("ep",), "pairs", Traffic.ALL_TO_ALL)
    sink = Diagnostics()
    assert routes(spec, make(spec, 4, paired(1)), sink) is None
    assert [d.code for d in sink] == ["OPUS410"]


def test_one_way_edges_are_named_where_they_cut_a_phase() -> None:
    star = replace(explicit([(0, 1), (0, 2)]), traffic=Traffic.REDUCTION)
    sink = Diagnostics()
    routes(star, make(star, 3, independent(2)), sink)
    (found,) = sink
    assert found.code == "OPUS410"
    assert "(b, a) is an edge of its own" in found.notes[0]
    sink = Diagnostics()
    apart = replace(explicit([(0, 1), (2, 3)]), traffic=Traffic.REDUCTION)
    routes(apart, make(apart, 4, paired(2)), sink)
    assert [(d.code, d.notes) for d in sink] == [("OPUS410", ())]


@pytest.mark.parametrize(
    ("ports", "says"),
    [
        (PortModel((0,), (A,), independent=False), "of each GPU, port 0 is on side A"),
        (
            PortModel((0, 1), (A, B), independent=False),
            "of each GPU, port 0 is on side A of plane 0, port 1 on side B of plane 1",
        ),
    ],
)
def test_ports_that_cannot_be_joined_are_told_with_their_places(ports: PortModel, says: str) -> None:
    sink = Diagnostics()
    assert shape(phase("dp", ("dp",), "ring"), 4, ports, sink) is None
    (found,) = sink
    assert found.notes == (says,)
