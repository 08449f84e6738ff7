"""Groups: from the ranks of a phase to the GPUs whose ports its links join, on every rail.

Members of a group in one scale-up domain are one vertex: the topology is over domains, in rank order. Each
lane (rank in the domain) on which every domain of the group has a member, on one rail, carries one copy.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opusc.arrays import distinct
from opusc.diagnostics import Diagnostics
from opusc.model.entities import Job, PhaseSpec, RailBy
from opusc.plan.plan import Instances, Int32, Shape
from opusc.plan.ports import PortModel
from opusc.plan.ranks import Grid, domain_of, lane_of, rail_of
from opusc.plan.topologies import shape

__all__ = ["Placement", "collective_instances"]


@dataclass(frozen=True)
class Placement:
    """Where the ranks of a job are: the GPU of each rank, and of each GPU its domain, lane and rail."""

    job: Job
    gpu_of_rank: Int32
    stage_of_rank: Int32
    ordinal_of_domain: Int32  # domains by first appearance in rank order

    @classmethod
    def of(cls, job: Job, grid: Grid, gpu_of_rank: Int32) -> "Placement":
        cluster = job.fabric.cluster
        domains = domain_of(cluster, gpu_of_rank)
        ordinal = np.full(cluster.domain_count, -1, dtype=np.int32)
        ranks = np.arange(len(gpu_of_rank), dtype=np.int32)
        first = np.full(cluster.domain_count, len(ranks), dtype=np.int32)
        np.minimum.at(first, domains, ranks)
        used = np.sort(first[first < len(ranks)])
        ordinal[domains[used]] = np.arange(len(used), dtype=np.int32)
        return cls(job, gpu_of_rank, grid.coordinate("pp", ranks), ordinal)

    def lane(self, gpu: Int32) -> Int32:
        return lane_of(self.job.fabric.cluster, gpu)

    def rail(self, gpu: Int32) -> Int32:
        return rail_of(self.job, gpu)

    def domain(self, gpu: Int32) -> Int32:
        return domain_of(self.job.fabric.cluster, gpu)


def collective_instances(
    phase: PhaseSpec,
    ranks: Int32,
    scope_of_group: Int32,
    placement: Placement,
    ports: PortModel,
    sink: Diagnostics,
) -> tuple[Instances, ...]:
    """All copies of a phase's topology, for groups given as rows of ranks: shape (groups, members)."""
    gpus, vertex, vertex_count = _vertices(ranks, placement)
    found: list[Instances] = []
    served = np.zeros(len(ranks), dtype=bool)
    served[vertex_count == 1] = True
    broken = np.zeros(len(ranks), dtype=bool)
    shapes: dict[int, Shape | None] = {}
    for n, rows, members in _lanes(gpus, vertex, vertex_count, placement, broken):
        served[rows] = True
        if n not in shapes:
            shapes[n] = shape(phase, n, ports, sink)
        form = shapes[n]
        if form is not None:
            scope = np.broadcast_to(scope_of_group[rows][:, None], members.shape).astype(np.int32)
            found.append(Instances(form, members, members, scope, rows.astype(np.int32)))
    _report_uneven(phase, ranks, served, broken, placement, sink)
    return tuple(found)


def _vertices(ranks: Int32, placement: Placement) -> tuple[Int32, Int32, Int32]:
    """GPUs of each group sorted by domain, the vertex each belongs to, and the number of vertices a group has."""
    gpus = placement.gpu_of_rank[ranks]
    ordinal = placement.ordinal_of_domain[placement.domain(gpus)]
    order = np.argsort(ordinal, axis=1, kind="stable")
    gpus = np.take_along_axis(gpus, order, axis=1)
    ordinal = np.take_along_axis(ordinal, order, axis=1)
    vertex = np.zeros_like(ordinal)
    vertex[:, 1:] = np.cumsum(ordinal[:, 1:] != ordinal[:, :-1], axis=1)
    return gpus, vertex, vertex[:, -1] + 1


def _lanes(
    gpus: Int32, vertex: Int32, vertex_count: Int32, placement: Placement, broken: NDArray[np.bool_]
) -> Iterator[tuple[int, NDArray[np.int64], Int32]]:
    """For each vertex count n > 1: (n, group of each copy, its GPUs in vertex order of shape (copies, n)).

    Marks in `broken` the groups of which some lane does not reach every domain on one rail.
    """
    groups, size = gpus.shape
    row = np.repeat(np.arange(groups), size)
    lane = placement.lane(gpus).ravel()
    order = np.lexsort((vertex.ravel(), lane, row))
    row, lane, gpu = row[order], lane[order], gpus.ravel()[order]
    first = np.flatnonzero(np.r_[True, (row[1:] != row[:-1]) | (lane[1:] != lane[:-1])])
    length = np.diff(np.r_[first, len(row)])
    of_row = row[first]
    rail = placement.rail(gpu)
    one_rail = np.minimum.reduceat(rail, first) == np.maximum.reduceat(rail, first)
    whole = (length == vertex_count[of_row]) & one_rail
    broken[of_row[~whole]] = True
    for n in distinct(vertex_count[vertex_count > 1])[0].tolist():
        chosen = np.flatnonzero(whole & (vertex_count[of_row] == n))
        if len(chosen):
            yield n, of_row[chosen], gpu[first[chosen][:, None] + np.arange(n)[None, :]]


def _report_uneven(
    phase: PhaseSpec,
    ranks: Int32,
    served: NDArray[np.bool_],
    broken: NDArray[np.bool_],
    placement: Placement,
    sink: Diagnostics,
) -> None:
    """Groups that are no product of domains and local ranks: an error where no rail is left, else a warning."""
    for bad, severe in ((~served, True), (broken & served, False)):
        rows = np.flatnonzero(bad)
        if not len(rows):
            continue
        members = ranks[rows[0]]
        odd = _odd_ones(members, placement)
        shown = ", ".join(map(str, odd[:8].tolist())) + (", ..." if len(odd) > 8 else "")
        what = "have no rail that reaches all their domains" if severe else "cannot use all rails of their members"
        add = sink.error if severe else sink.warning
        add(
            "OPUS405",
            f"{len(rows)} of the {len(ranks)} groups of phase `{phase.name}` {what}",
            phase.span,
            f"rank{'s' * (len(odd) > 1)} {shown} break the pattern",
            notes=[
                f"the group of ranks {_brief(members)} has members on different local ranks in different domains",
                "a topology is carried by the rails on which every domain of the group has a member",
            ],
            help=_way_out(placement),
        )


def _way_out(placement: Placement) -> str:
    fabric = placement.job.fabric
    if fabric.rail_by is RailBy.LOCAL_RANK and fabric.cluster.gpus_per_domain < fabric.cluster.gpus_per_node:
        return "use `rail_by = domain_rank`: by local rank, the domains of one node are on different rails"
    return "choose degrees whose product over the inner axes divides the GPUs of a domain, or set `domain.use`"


def _odd_ones(members: Int32, placement: Placement) -> Int32:
    """The ranks whose lane is not present in every domain of their group."""
    gpus = placement.gpu_of_rank[members]
    lanes, domains = placement.lane(gpus), placement.domain(gpus)
    key = lanes.astype(np.int64) * (int(placement.rail(gpus).max()) + 1) + placement.rail(gpus)
    count = Counter(key.tolist())
    everywhere = len(set(domains.tolist()))
    odd: Int32 = members[np.array([count[k] < everywhere for k in key.tolist()])]
    return odd


def _brief(members: Int32) -> str:
    shown = members.tolist()
    return ", ".join(map(str, shown)) if len(shown) <= 8 else f"{shown[0]}, {shown[1]}, ..., {shown[-1]}"
