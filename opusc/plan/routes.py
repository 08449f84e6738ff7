"""Routes: how traffic reaches vertices that are not neighbours, and whether it reaches them at all."""

import numpy as np
from numpy.typing import NDArray

from opusc.diagnostics import Diagnostics
from opusc.model.entities import PhaseSpec, Traffic
from opusc.plan.neighbours import targets
from opusc.plan.plan import Directions, Int32, Routes, Shape

__all__ = ["neighbours_of", "routes"]


def neighbours_of(shape: Shape) -> NDArray[np.bool_]:
    """Who reaches whom directly, over all steps: shape (n, n), row sends to column."""
    direct = np.zeros((shape.n, shape.n), dtype=bool)
    for links in shape.steps:
        for link in links:
            to = targets(link.neighbour, shape.n)
            v = np.flatnonzero(to >= 0)
            if link.directions is not Directions.BACKWARD:
                direct[v, to[v]] = True
            if link.directions is not Directions.FORWARD:
                direct[to[v], v] = True
    return direct


def routes(phase: PhaseSpec, shape: Shape, sink: Diagnostics) -> Routes | None:
    """For every pair of vertices without a link, the neighbour through which traffic goes on.

    Shortest paths; among equals the lowest digit is set right first (dimension order), which is the lowest
    next vertex when the targets are reached from below. None when every pair is direct, or after a diagnostic.
    """
    if phase.traffic is Traffic.REDUCTION and not shape.named:
        _check_connected(phase, shape, sink)
    if phase.traffic is not Traffic.ALL_TO_ALL:
        return None
    direct = neighbours_of(shape)
    n = shape.n
    distance = _distances(direct)
    unreachable = np.argwhere(distance < 0)
    if len(unreachable):
        a, b = unreachable[0].tolist()
        sink.error(
            "OPUS410",
            f"phase `{phase.name}` is all-to-all, and its topology never leads from domain {a} of a group "
            f"to domain {b}",
            phase.at("topology"),
            f"{len(unreachable)} of {n * (n - 1)} pairs are cut off",
            notes=_one_way(shape),
            help="use `rotor`, which meets every neighbour in turn",
        )
        return None
    source, target = np.nonzero(distance > 1)
    if not len(source):
        return None
    via = np.full((n, n), -1, dtype=np.int32)
    for hop in range(n - 1, -1, -1):  # the lowest neighbour is written last
        onward = direct[:, hop][:, None] & (distance[hop, :][None, :] == distance - 1) & (distance > 1)
        via[onward] = hop
    return Routes(n, *(np.asarray(c, dtype=np.int32) for c in (source, target, via[source, target])))


def _check_connected(phase: PhaseSpec, shape: Shape, sink: Diagnostics) -> None:
    """A reduction needs a way from every vertex to every other: from vertex 0 to all, and from all to it."""
    onward: list[list[int]] = [[] for _ in range(shape.n)]
    back: list[list[int]] = [[] for _ in range(shape.n)]
    for links in shape.steps:
        for link in links:
            to = targets(link.neighbour, shape.n)
            for a, b in ((v, int(to[v])) for v in np.flatnonzero(to >= 0).tolist()):
                if link.directions is not Directions.BACKWARD:
                    onward[a].append(b)
                    back[b].append(a)
                if link.directions is not Directions.FORWARD:
                    onward[b].append(a)
                    back[a].append(b)
    for ways, start, end in ((onward, "0", "{}"), (back, "{}", "0")):
        far = _unreached(ways)
        if far:
            sink.error(
                "OPUS410",
                f"phase `{phase.name}` is a reduction, and its topology never leads from domain "
                f"{start} of a group to domain {end}".format(far[0]),
                phase.at("topology"),
                f"{len(far)} of {shape.n} domains are cut off",
                notes=_one_way(shape),
                help="connect them, or state `traffic = point_to_point` if only neighbours talk to each other",
            )
            return


def _one_way(shape: Shape) -> list[str]:
    """Independent ports are the reason that an author least expects."""
    if all(link.directions is Directions.BOTH for links in shape.steps for link in links):
        return []
    return ["ports with `peers = independent` take an edge (a, b) from a to b only; (b, a) is an edge of its own"]


def _unreached(ways: list[list[int]]) -> list[int]:
    seen, waiting = {0}, [0]
    while waiting:
        new = [b for b in ways[waiting.pop()] if b not in seen]
        seen.update(new)
        waiting += new
    return [v for v in range(len(ways)) if v not in seen]


def _distances(direct: NDArray[np.bool_]) -> Int32:
    """Hops between all pairs, -1 where there is no way."""
    n = len(direct)
    distance = np.full((n, n), -1, dtype=np.int32)
    np.fill_diagonal(distance, 0)
    reached = np.eye(n, dtype=bool)
    frontier, hops = reached, 0
    step = direct.astype(np.float32)  # counts below 2^24 are exact; only "more than none" is asked
    while frontier.any():
        hops += 1
        onward = (frontier.astype(np.float32) @ step > 0) & ~reached
        distance[onward] = hops
        reached |= onward
        frontier = onward
    return distance
