"""Edge colourings are proper and within their bounds, on any graph."""

from hypothesis import given
from hypothesis import strategies as st

from opusc.plan.colouring import colour_directed, colour_undirected, degree_directed, degree_undirected

Edges = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> Edges:
    n = draw(st.integers(2, 12))
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1))
    return [(b, a) if draw(st.booleans()) else (a, b) for a, b in chosen]


def _ends_once(ends: list[tuple[int, int]]) -> bool:
    return len(set(ends)) == len(ends)


@given(graphs())
def test_undirected_colouring_is_proper_and_within_vizing(edges: Edges) -> None:
    colours = colour_undirected(edges)
    assert _ends_once([(v, c) for edge, c in zip(edges, colours, strict=True) for v in edge])
    assert max(colours) <= degree_undirected(edges)


@given(graphs())
def test_directed_colouring_uses_exactly_the_degree(edges: Edges) -> None:
    colours = colour_directed(edges)
    assert _ends_once([(a, c) for (a, _), c in zip(edges, colours, strict=True)])
    assert _ends_once([(b, c) for (_, b), c in zip(edges, colours, strict=True)])
    assert max(colours) < degree_directed(edges)


def test_bipartite_graph_needs_no_extra_colour() -> None:
    edges = [(a, b) for a in range(4) for b in range(4, 8)]
    assert max(colour_undirected(edges)) == 3


def test_triangle_needs_three() -> None:
    assert sorted(colour_undirected([(0, 1), (1, 2), (2, 0)])) == [0, 1, 2]
