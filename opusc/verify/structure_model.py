"""For the independent checker: what a job's ranks, domains, rails and topologies are, by plain arithmetic.

Shares no code with the planner or the proofs. Everything is derived from the model: ranks by division and
remainder, neighbours by predicates on pairs of vertices.
"""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from opusc.model.entities import Dialect, Job, Matrix, Optics, Peers, PhaseSpec, RailBy, Side, Traffic

__all__ = ["Graph", "World", "edge_list", "graph_of", "group_numbers", "world_of"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class World:
    """Every rank's GPU and stage; every GPU's rank (-1: none), domain, lane, rail and node."""

    job: Job
    gpu: Ints
    stage: Ints
    rank: Ints
    domain: Ints
    lane: Ints
    rail: Ints
    node: Ints
    order_of_domain: Ints  # the lowest rank in each domain

    @property
    def independent(self) -> bool:
        nic = self.job.fabric.cluster.rail_nic
        return nic.optics is Optics.DUPLEX and nic.peers is Peers.INDEPENDENT


def world_of(job: Job) -> World:
    cluster = job.fabric.cluster
    nodes = range(cluster.node_count) if job.nodes is None else job.nodes
    gpus = np.concatenate([np.zeros(0, np.int64)] + [_gpus_of(job, node) for node in nodes])[: job.parallelism.world]
    everyone = np.arange(cluster.node_count * cluster.gpus_per_node, dtype=np.int64)
    rank = np.full(len(everyone), -1, dtype=np.int64)
    rank[gpus] = np.arange(len(gpus))
    domain = everyone // cluster.gpus_per_domain
    per_rail = cluster.gpus_per_node if job.fabric.rail_by is RailBy.LOCAL_RANK else cluster.gpus_per_domain
    lowest = np.full(int(domain[-1]) + 1, len(everyone), dtype=np.int64)
    lowest[domain[gpus[::-1]]] = np.arange(len(gpus))[::-1]
    stage = np.zeros(len(gpus), dtype=np.int64)
    inner = 1
    for name, size in _dense(job):
        if name == "pp":
            stage = np.arange(len(gpus)) // inner % size
        inner *= size
    return World(
        job,
        gpus,
        stage,
        rank,
        domain,
        everyone % cluster.gpus_per_domain,
        everyone % per_rail,
        everyone // cluster.gpus_per_node,
        lowest,
    )


def _gpus_of(job: Job, node: int) -> Ints:
    """GPUs of a node that the job may use: those among the first `use` of their domain."""
    cluster = job.fabric.cluster
    own = np.arange(node * cluster.gpus_per_node, (node + 1) * cluster.gpus_per_node, dtype=np.int64)
    return own[own % cluster.gpus_per_domain < cluster.use]


# --- groups --------------------------------------------------------------------------------------


def _dense(job: Job) -> list[tuple[str, int]]:
    """(axis, degree), innermost first, of attention and dense layers."""
    p = job.parallelism
    replicate, shard = p.dp_replicate or 1, p.dp_shard or 1
    data = [("dp.shard", shard), ("dp.replicate", replicate)] if p.split else [("dp", p.dp)]
    plain = {"tp": [("tp", p.tp)], "cp": [("cp", p.cp)], "pp": [("pp", p.pp)], "dp": data, "ep": []}
    plain |= {"dp.shard": [("dp.shard", shard)], "dp.replicate": [("dp.replicate", replicate)]}
    order = job.order
    if job.dialect is Dialect.TORCHTITAN:
        order = ("tp", "cp", "dp", "pp")
    return [axis for name in order for axis in plain[name]]


def _expert(job: Job) -> list[tuple[str, int]]:
    """(axis, degree), innermost first, of the experts."""
    p = job.parallelism
    if job.dialect is Dialect.TORCHTITAN:
        sharded = (p.dp_shard or 1 if p.split else p.dp) * p.cp * p.tp
        return [("ep", p.ep), ("edp", sharded // p.ep), ("dp.replicate", p.dp_replicate or 1), ("pp", p.pp)]
    tensor = p.expert_tp or p.tp
    data = p.tp * p.cp * p.dp // (tensor * p.ep)
    plain = {"tp": ("expert_tp", tensor), "ep": ("ep", p.ep), "dp": ("edp", data), "pp": ("pp", p.pp)}
    return [plain[name] for name in job.order if name in plain]


def group_numbers(world: World, axes: tuple[str, ...]) -> Ints:
    """The group of each rank: ranks that differ only on `axes` are together; groups by their lowest rank."""
    job = world.job
    expert = not {"expert_tp", "ep", "edp"}.isdisjoint(axes)
    ranks = np.arange(len(world.gpu))
    lowest, inner = ranks.copy(), 1
    for name, size in _expert(job) if expert else _dense(job):
        if name in axes:
            lowest -= ranks // inner % size * inner
        inner *= size
    heads = lowest == ranks
    return (np.cumsum(heads) - 1)[lowest]


# --- topologies ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Graph:
    """Who sends to whom among n vertices: `dims` for graphs by dimension, `arcs` for stated ones.

    `arcs` are v * n + w, sorted, with how often each is meant.
    """

    name: str
    n: int
    one_way: bool
    dims: tuple[int, ...]
    double_half: bool  # a link half way round a dimension is drawn from both ends
    double: bool  # a ring of two has two links
    arcs: tuple[Ints, Ints] | None

    @property
    def size(self) -> int:
        """Number of different arcs."""
        if self.arcs is not None:
            return len(self.arcs[0])
        match self.name:
            case "ring":
                return 2 if self.n == 2 else self.n if self.one_way else 2 * self.n
            case "chain":
                return 2 * (self.n - 1)
        return self.n * sum(size - 1 for size in self.dims)

    def times(self, v: Ints, w: Ints) -> Ints:
        """How often each arc is meant in one copy; 0 where it is not part of the topology."""
        n = self.n
        if self.arcs is not None:
            arcs, counts = self.arcs
            if not len(arcs):
                return np.zeros_like(v)
            at = np.minimum(np.searchsorted(arcs, v * n + w), len(arcs) - 1)
            return np.where(arcs[at] == v * n + w, counts[at], 0)
        if self.name == "ring":
            near = (w == v + 1) | ((v == n - 1) & (w == 0))
            if not self.one_way:
                near |= (v == w + 1) | ((w == n - 1) & (v == 0))
            return np.where(near, 2 if n == 2 and self.double else 1, 0)
        if self.name == "chain":
            return np.where(abs(v - w) == 1, 1, 0)
        different = np.zeros_like(v)
        times = np.ones_like(v)
        for size in self.dims:
            a, b = v % size, w % size
            different += a != b
            if self.double_half and size % 2 == 0:
                times = np.where(abs(a - b) == size // 2, 2, times)
            v, w = v // size, w // size
        return np.where(different == 1, times, 0)


def graph_of(world: World, phase: PhaseSpec, n: int, ports: tuple[int, ...]) -> Graph | None:
    """The graph that a phase asks for among n vertices, on these NIC ports; None when its dimensions do not fit."""
    fabric, topology = world.job.fabric, phase.topology
    nic = fabric.cluster.rail_nic
    sided = nic.optics is Optics.BIDI and fabric.rails[0].switches[0].matrix is Matrix.CROSSBAR
    single = len(ports) == 1 or topology.one_way
    one_way = world.independent and single and phase.traffic is not Traffic.POINT_TO_POINT
    stated = edge_list(phase, n)
    arcs = None
    if stated is not None:
        both = not world.independent or topology.name == "pairs"
        pairs = [v * n + w for v, w in stated] + [w * n + v for v, w in stated if both]
        arcs = np.unique(np.array(pairs, dtype=np.int64), return_counts=True)
    dims: tuple[int, ...] = (n,)
    if topology.name == "hypercube":
        dims = (2,) * (n.bit_length() - 1)
    elif topology.name == "flattened_butterfly":
        dims = topology.dims or (n,)
    if prod(dims) != n:
        return None
    double = not world.independent and _room_for_two(world.job, ports)
    return Graph(topology.name, n, one_way, dims, sided, double, arcs)


def edge_list(phase: PhaseSpec, n: int) -> list[tuple[int, int]] | None:
    """Edges that a program states, or that `pairs` implies; None for other named topologies."""
    if phase.topology.edges is not None:
        return [(edge.tail, edge.head) for edge in phase.topology.edges(n)]
    if phase.topology.name == "pairs":
        return [(v, v + 1) for v in range(0, n - 1, 2)]
    return None


def _room_for_two(job: Job, ports: tuple[int, ...]) -> bool:
    """Whether two of a GPU's ports can serve a next and a previous neighbour: on one plane, on both sides."""
    fabric = job.fabric
    nic = fabric.cluster.rail_nic
    sided = nic.optics is Optics.BIDI and fabric.rails[0].switches[0].matrix is Matrix.CROSSBAR
    sides = fabric.cabling.sides or tuple((Side.A, Side.B)[p % 2] for p in range(nic.ports))
    for plane in range(fabric.planes):
        mine = [p for p in ports if p % fabric.planes == plane]
        if len(mine) >= 2 and (not sided or len({sides[p] for p in mine}) == 2):
            return True
    return False
