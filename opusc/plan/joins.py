"""Joins: point-to-point links between pipeline stages, with the scale-up hops that they need.

Neighbouring stages in one domain are one vertex. A link ends on the rail of the stage it enters; where the
stage it leaves is on another rail, traffic first hops inside the domain to the GPU that is on the right one:
a relay, which the plan records.
"""

from dataclasses import dataclass

import numpy as np

from opusc.arrays import distinct, distinct_rows
from opusc.diagnostics import Diagnostics
from opusc.model.entities import PhaseSpec
from opusc.plan.groups import Placement
from opusc.plan.neighbours import Table, targets
from opusc.plan.plan import Directions, Instances, Int32, Link, Shape
from opusc.plan.ports import PortModel
from opusc.plan.topologies import shape, spread

__all__ = ["Hop", "join_instances"]


@dataclass(frozen=True, eq=False)
class Hop:
    """Relays of one phase, as columns: traffic between `rank` and `peer` in a scope passes GPU `via`."""

    scope: Int32
    rank: Int32
    peer: Int32
    via: Int32


def join_instances(
    phase: PhaseSpec,
    ranks: Int32,
    placement: Placement,
    ports: PortModel,
    sink: Diagnostics,
) -> tuple[tuple[Instances, ...], tuple[tuple[int, ...], ...], tuple[Hop, ...]]:
    """Links between stages, for pipelines given as rows of ranks by stage: shape (pipelines, stages).

    Returns the instances, the scopes (pairs of stages) that they use, and the relays.
    """
    builder = _Builder(phase, ranks, placement, ports, sink)
    if phase.topology.edges is None and phase.topology.name in ("ring", "chain"):
        builder.add_runs()
    else:
        builder.add_edges()
    builder.share_out()
    return builder.finish()


class _Builder:
    def __init__(
        self, phase: PhaseSpec, ranks: Int32, placement: Placement, ports: PortModel, sink: Diagnostics
    ) -> None:
        self.phase, self.ranks, self.placement, self.ports, self.sink = phase, ranks, placement, ports, sink
        self.gpus = placement.gpu_of_rank[ranks]
        self.domains = placement.domain(self.gpus)
        self.found: list[tuple[Shape, Int32, Int32, list[tuple[int, int] | None], Int32]] = []
        self.hops: list[tuple[tuple[int, int], Int32, Int32, Int32]] = []

    # Chains and rings: runs of stages in one domain are one vertex.

    def add_runs(self) -> None:
        changes = np.zeros(self.gpus.shape, dtype=np.int32)
        changes[:, 1:] = self.domains[:, 1:] != self.domains[:, :-1]
        ring = self.phase.topology.name == "ring"
        closed = self.domains[:, 0] == self.domains[:, -1]
        runs = np.cumsum(changes, axis=1)
        ends = closed if ring else np.zeros_like(closed)
        patterns, which = distinct_rows(np.concatenate([runs, ends[:, None]], axis=1))
        for number, pattern in enumerate(patterns):
            run, same_ends = pattern[:-1], bool(pattern[-1])
            rows = np.flatnonzero(which == number).astype(np.int32)
            n = int(run[-1]) + 1
            if n > 1:
                self._add_pattern(run, rows, n, wrap=ring and not same_ends)

    def _add_pattern(self, run: Int32, rows: Int32, n: int, *, wrap: bool) -> None:
        form = shape(self.phase, n, self.ports, self.sink)
        if form is None:
            return
        first = np.searchsorted(run, np.arange(n))
        last = np.searchsorted(run, np.arange(n), side="right") - 1
        entries = self.gpus[np.ix_(rows, first)]
        exits = self.gpus[np.ix_(rows, last)].copy()
        scopes: list[tuple[int, int] | None] = [None] * n
        for v in range(n if wrap else n - 1):
            w = (v + 1) % n
            join = (int(last[v]), int(first[w]))
            scopes[v] = join
            exits[:, v] = self._relayed(rows, join)
        self.found.append((form, exits, entries, scopes, rows))
        closed = any(targets(link.neighbour, n)[1] >= 0 for links in form.steps for link in links)
        if wrap and n == 2 and not closed and {*(scopes[0] or ())} != {*(scopes[1] or ())}:
            # Two domains on matchings: the way back is between other stages, so it is a link of its own.
            turned = np.array([1, 0])
            self.found.append((form, exits[:, turned], entries[:, turned], [scopes[1], None], rows))

    # Explicit edges among stages: each edge on its own, since a stage may need another rail for each.

    def add_edges(self) -> None:
        stages = self.gpus.shape[1]
        form = shape(self.phase, stages, self.ports, self.sink)
        if form is None:
            return
        for step, links in enumerate(form.steps):
            for link in links:
                for a, b in enumerate(targets(link.neighbour, stages).tolist()):
                    if b >= 0:
                        self._add_edge(form, step, link, a, b)

    def _add_edge(self, form: Shape, step: int, link: Link, a: int, b: int) -> None:
        rows = np.flatnonzero(self.domains[:, a] != self.domains[:, b]).astype(np.int32)
        if len(rows):
            members = np.stack([self._relayed(rows, (a, b)), self.gpus[rows, b]], axis=1)
            self._add_pairs(form, step, link, members, (a, b), rows)

    def _add_pairs(
        self, form: Shape, step: int, link: Link, members: Int32, join: tuple[int, int], rows: Int32
    ) -> None:
        """Links of one step and one pair of ports, given as rows of (lower, upper) GPU."""
        pair = Link(Table((1, -1)), link.out_port, link.in_port, link.directions, link.copy)
        steps = tuple((pair,) if s == step else () for s in range(len(form.steps)))
        small = Shape(2, steps, form.copies, form.fewest_steps, named=False)
        self.found.append((small, members, members, [join, None], rows))

    # Relays may give one GPU more links than its own stages do: then the ports are shared out GPU by GPU.

    def share_out(self) -> None:
        """Spread the links anew, as an explicit graph among GPUs, if relays make two of them use one port."""
        if not self.hops or self.sink.has_errors or not self._clash():
            return
        edges = self._gpu_edges()
        vertices = sorted({gpu for lower, upper, *_ in edges for gpu in (lower, upper)})
        index = {gpu: number for number, gpu in enumerate(vertices)}
        pairs = [(index[lower], index[upper]) for lower, upper, *_ in edges]
        form = spread(len(vertices), pairs, self.ports)
        # Several links may join the same two GPUs: each is drawn once, for its own join and pipeline.
        at: dict[tuple[int, int], list[tuple[tuple[int, int], int]]] = {}
        for (a, b), (_, _, join, row) in zip(pairs, edges, strict=True):
            at.setdefault((a, b), []).append((join, row))
        self.found = []
        for step, links in enumerate(form.steps):
            for link in links:
                drawn: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
                for a, b in enumerate(targets(link.neighbour, form.n).tolist()):
                    if b >= 0:
                        join, row = at[a, b].pop(0)
                        drawn.setdefault(join, []).append((vertices[a], vertices[b], row))
                for join, rows in sorted(drawn.items()):
                    table = np.array(rows, dtype=np.int32)
                    self._add_pairs(form, step, link, table[:, :2], join, table[:, 2])

    def _clash(self) -> bool:
        """Whether, in some step, a GPU would send or hear twice by one port."""
        sends: list[Int32] = []
        hears: list[Int32] = []
        for form, exits, entries, scopes, _ in self.found:
            drawn = np.array([join is not None for join in scopes])
            for step, links in enumerate(form.steps):
                for link in links:
                    to = targets(link.neighbour, form.n)
                    v = np.flatnonzero((to >= 0) & drawn)
                    lower = (exits[:, v].ravel() * self.ports.count + link.out_port) * len(form.steps) + step
                    upper = (entries[:, to[v]].ravel() * self.ports.count + link.in_port) * len(form.steps) + step
                    if link.directions is not Directions.BACKWARD:
                        sends.append(lower)
                        hears.append(upper)
                    if link.directions is not Directions.FORWARD:
                        sends.append(upper)
                        hears.append(lower)
        return any(len(distinct(ends)[0]) < len(ends) for ends in map(np.concatenate, (sends, hears)))

    def _gpu_edges(self) -> list[tuple[int, int, tuple[int, int], int]]:
        """Every link between two GPUs once: (lower, upper, join, pipeline), by join and pipeline.

        With independent ports each direction that is drawn is a link of its own: (sender, receiver, ...).
        """
        edges: set[tuple[tuple[int, int], int, int, int]] = set()
        for form, exits, entries, scopes, rows in self.found:
            for links in form.steps:
                for link in links:
                    for v, w in enumerate(targets(link.neighbour, form.n).tolist()):
                        join = scopes[v]
                        if w >= 0 and join is not None:
                            ends = exits[:, v].tolist(), entries[:, w].tolist()
                            one_way = self.ports.independent
                            if not one_way or link.directions is not Directions.BACKWARD:
                                edges.update((join, *place) for place in zip(rows.tolist(), *ends, strict=True))
                            if one_way and link.directions is not Directions.FORWARD:
                                edges.update((join, *place) for place in zip(rows.tolist(), *ends[::-1], strict=True))
        return [(lower, upper, join, row) for join, row, lower, upper in sorted(edges)]

    # Relays.

    def _relayed(self, rows: Int32, join: tuple[int, int]) -> Int32:
        """The GPUs from which links of a join leave: the stage's own, or the one in its domain on the right rail."""
        a, b = join
        own, peer = self.gpus[rows, a], self.gpus[rows, b]
        place = self.placement
        per_domain = place.job.fabric.cluster.gpus_per_domain
        direct = (place.lane(own) == place.lane(peer)) & (place.rail(own) == place.rail(peer))
        via = (place.domain(own) * per_domain + place.lane(peer)).astype(np.int32)
        lost = ~direct & (place.rail(via) != place.rail(peer))
        for at in np.flatnonzero(lost).tolist():
            # The namesake is on another rail (domains that are part of a node): any GPU on that rail will do.
            inside = np.arange(per_domain, dtype=np.int32) + place.domain(own[at : at + 1]) * per_domain
            fitting = inside[place.rail(inside) == place.rail(peer[at : at + 1])]
            if not len(fitting):
                self._no_rail(rows[at], join)
                break
            via[at] = fitting[0]
        result: Int32 = np.where(direct, own, via).astype(np.int32)
        if not direct.all():
            self._record(rows[~direct], join, result[~direct])
        return result

    def _record(self, rows: Int32, join: tuple[int, int], via: Int32) -> None:
        rank, peer = self.ranks[rows, join[0]], self.ranks[rows, join[1]]
        if not self.placement.job.relay_allowed:
            self.sink.error(
                "OPUS406",
                f"phase `{self.phase.name}` needs a relay between stages {join[0]} and {join[1]}, and "
                "`relay = forbid` rules it out",
                self.placement.job.at("relay"),
                f"rank {rank[0]} and rank {peer[0]} are on different rails",
                notes=[f"traffic of rank {rank[0]} would pass GPU {via[0]}, which is on the rail of rank {peer[0]}"],
                help="allow relays, or choose degrees so that a stage fills whole nodes",
            )
        if not any(join == other and np.array_equal(rank, ranks) for other, ranks, *_ in self.hops):
            self.hops.append((join, rank, peer, via))  # once, however many copies of the link there are

    def _no_rail(self, row: int, join: tuple[int, int]) -> None:
        rank, peer = int(self.ranks[row, join[0]]), int(self.ranks[row, join[1]])
        self.sink.error(
            "OPUS407",
            f"phase `{self.phase.name}` cannot join rank {rank} and rank {peer}: no GPU in the domain of rank "
            f"{rank} is on the rail of rank {peer}",
            self.phase.span,
            f"stages {join[0]} and {join[1]}",
            help="use `rail_by = domain_rank`, so that every domain reaches every rail",
        )

    def finish(self) -> tuple[tuple[Instances, ...], tuple[tuple[int, ...], ...], tuple[Hop, ...]]:
        used = {join for *_, scopes, _ in self.found for join in scopes if join is not None}
        ordered = tuple(sorted(used))
        index = {join: number for number, join in enumerate(ordered)}
        instances = []
        for form, exits, entries, scopes, rows in self.found:
            scope = np.array([-1 if join is None else index[join] for join in scopes], dtype=np.int32)
            whole = np.broadcast_to(scope[None, :], exits.shape).astype(np.int32)
            instances.append(Instances(form, exits, entries, whole, rows))
        hops = tuple(
            Hop(np.full(len(rank), index[join], dtype=np.int32), rank, peer, via)
            for join, rank, peer, via in self.hops
            if join in index  # the way back of a ring of two stages has no links of its own
        )
        return tuple(instances), ordered, hops
