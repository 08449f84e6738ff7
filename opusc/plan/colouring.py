"""Edge colouring: spreading the links of an explicit graph over ports and steps.

Deterministic: the result depends on the order of the edges only.
"""

from collections import Counter
from collections.abc import Sequence

__all__ = ["colour_directed", "colour_undirected", "degree_directed", "degree_undirected"]

Edge = tuple[int, int]


def degree_directed(edges: Sequence[Edge]) -> int:
    """The largest number of links that leave or enter one vertex."""
    out, into = Counter(a for a, _ in edges), Counter(b for _, b in edges)
    return max([*out.values(), *into.values()], default=0)


def degree_undirected(edges: Sequence[Edge]) -> int:
    return max(Counter(v for edge in edges for v in edge).values(), default=0)


def colour_directed(edges: Sequence[Edge]) -> list[int]:
    """A colour for each edge so that edges of one colour leave, and enter, each vertex at most once.

    Uses exactly `degree_directed` colours: an edge colouring of the bipartite graph of transmitters and
    receivers, by alternating paths (König 1916).
    """
    return _colour([(("out", a), ("in", b)) for a, b in edges], degree_directed(edges))


def colour_undirected(edges: Sequence[Edge]) -> list[int]:
    """A proper edge colouring with at most one colour more than the largest degree.

    Bipartite graphs get exactly the degree (König 1916); others the bound of Vizing (1964), by the method
    of Misra and Gries (1992).
    """
    if _bipartite(edges):
        return _colour([(a, b) for a, b in edges], degree_undirected(edges))
    if len({frozenset(edge) for edge in edges}) < len(edges):
        return _first_free(edges)
    return _misra_gries(edges)


def _first_free(edges: Sequence[Edge]) -> list[int]:
    """For graphs with parallel edges, which Vizing's bound does not cover: the first colour free at both ends."""
    used: dict[int, set[int]] = {}
    colours = []
    for a, b in edges:
        taken = used.setdefault(a, set()) | used.setdefault(b, set())
        colour = next(c for c in range(len(taken) + 1) if c not in taken)
        used[a].add(colour)
        used[b].add(colour)
        colours.append(colour)
    return colours


def _colour(edges: Sequence[tuple[object, object]], count: int) -> list[int]:
    """Colour a bipartite multigraph of largest degree `count`, one edge at a time."""
    at: dict[tuple[object, int], int] = {}  # (vertex, colour) -> edge
    colours = [-1] * len(edges)

    def free(vertex: object) -> int:
        return next(c for c in range(count) if (vertex, c) not in at)

    for number, (a, b) in enumerate(edges):
        wanted, other = free(a), free(b)
        if wanted != other:
            # Swap `wanted` and `other` along the path from b, so that `wanted` becomes free at b too; being
            # bipartite, the path cannot end at a.
            path, vertex, colour = [], b, wanted
            while (edge := at.get((vertex, colour))) is not None:
                path.append(edge)
                x, y = edges[edge]
                vertex, colour = (y if x == vertex else x), (other if colour == wanted else wanted)
            for edge in path:
                for end in edges[edge]:
                    del at[end, colours[edge]]
            for edge in path:
                colours[edge] = other if colours[edge] == wanted else wanted
                for end in edges[edge]:
                    at[end, colours[edge]] = edge
        colours[number] = wanted
        at[a, wanted] = at[b, wanted] = number
    return colours


def _bipartite(edges: Sequence[Edge]) -> bool:
    near: dict[int, list[int]] = {}
    for a, b in edges:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    side: dict[int, int] = {}
    for start in near:
        if start in side:
            continue
        side[start], waiting = 0, [start]
        while waiting:
            vertex = waiting.pop()
            for other in near[vertex]:
                if other not in side:
                    side[other] = 1 - side[vertex]
                    waiting.append(other)
                elif side[other] == side[vertex]:
                    return False
    return True


def _misra_gries(edges: Sequence[Edge]) -> list[int]:
    """Vizing's bound for a simple graph: fans, cd-paths and rotation, as Misra and Gries describe them."""
    count = degree_undirected(edges) + 1
    at: dict[int, dict[int, int]] = {}  # vertex -> colour -> neighbour
    colour_of: dict[frozenset[int], int] = {}
    for a, b in edges:
        at.setdefault(a, {})
        at.setdefault(b, {})

    def free(v: int) -> int:
        return next(c for c in range(count) if c not in at[v])

    def paint(a: int, b: int, c: int) -> None:
        colour_of[frozenset((a, b))] = c
        at[a][c], at[b][c] = b, a

    def strip(a: int, b: int) -> int:
        c = colour_of.pop(frozenset((a, b)))
        del at[a][c], at[b][c]
        return c

    for u, v in edges:
        # A maximal fan of u that starts at v: each next edge has a colour free at the vertex before it.
        fan = [v]
        grown = True
        while grown:
            grown = False
            for c, w in sorted(at[u].items()):
                if w not in fan and c not in at[fan[-1]]:
                    fan.append(w)
                    grown = True
                    break
        c, d = free(u), free(fan[-1])
        if c != d:
            # Invert the path from u whose edges alternate d, c: then d is free at u.
            path, vertex, colour = [], u, d
            while colour in at[vertex]:
                after = at[vertex][colour]
                path.append((vertex, after))
                vertex, colour = after, (c if colour == d else d)
            taken = [(a, b, strip(a, b)) for a, b in path]
            for a, b, old in taken:
                paint(a, b, c if old == d else d)
        # The inversion may have cut the fan: rotate only as far as it is still a fan and d is free at its end.
        end = 0
        for at_fan, w in enumerate(fan):
            if at_fan and colour_of[frozenset((u, w))] in at[fan[at_fan - 1]]:
                break
            if d not in at[w]:
                end = at_fan
                break
        for i in range(end):
            shade = strip(u, fan[i + 1])
            paint(u, fan[i], shade)
        paint(u, fan[end], d)
    return [colour_of[frozenset(edge)] for edge in edges]
