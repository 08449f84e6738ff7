"""Ranks: from degrees and order to coordinates, and from ranks to GPUs.

A job has two grids over the same ranks. The dense grid numbers attention and dense layers; the expert grid
numbers the experts of a mixture, whose tensor and data degrees differ. In the order of a grid, innermost
first, rank = sum(coordinate * stride) with stride the product of the sizes further in.

Megatron-LM (`RankGenerator` in megatron/core/parallel_state.py): one order for both grids; the dense one has
ep = 1, the expert one tp = expert_tp, cp = 1 and dp = edp. TorchTitan (`ParallelDims`): tp, cp, dp.shard,
dp.replicate, pp; experts split dp.shard * cp * tp into ep (inner) and edp.
"""

from dataclasses import dataclass

import numpy as np

from opusc.model.entities import Cluster, Dialect, Job, RailBy
from opusc.plan.plan import Int32

__all__ = [
    "EXPERT_AXES",
    "Axis",
    "Grid",
    "dense_grid",
    "domain_of",
    "expert_grid",
    "grid_of",
    "groups",
    "lane_of",
    "place",
    "rail_of",
]

EXPERT_AXES = frozenset({"expert_tp", "ep", "edp"})


@dataclass(frozen=True, slots=True)
class Axis:
    name: str
    size: int
    stride: int


@dataclass(frozen=True, slots=True)
class Grid:
    """Axes, innermost first; their sizes multiply to the world size."""

    axes: tuple[Axis, ...]

    @classmethod
    def of(cls, sizes: list[tuple[str, int]]) -> "Grid":
        axes, stride = [], 1
        for name, size in sizes:
            axes.append(Axis(name, size, stride))
            stride *= size
        return cls(tuple(axes))

    @property
    def world(self) -> int:
        return self.axes[-1].stride * self.axes[-1].size if self.axes else 1

    def coordinate(self, name: str, rank: Int32) -> Int32:
        """The coordinate of each rank on an axis; 0 where the grid has no such axis."""
        for axis in self.axes:
            if axis.name == name:
                return np.asarray(rank // axis.stride % axis.size, dtype=np.int32)
        return np.zeros_like(rank)


def dense_grid(job: Job) -> Grid:
    p = job.parallelism
    if job.dialect is Dialect.TORCHTITAN and not p.split:
        order: tuple[str, ...] = ("tp", "cp", "dp", "pp")
    else:
        order = job.order
    sizes: list[tuple[str, int]] = []
    for name in order:
        if name == "dp" and p.split:
            sizes += [("dp.shard", p.dp_shard or 1), ("dp.replicate", p.dp_replicate or 1)]
        elif name != "ep":
            sizes.append((name, _degree(job, name)))
    return Grid.of(sizes)


def expert_grid(job: Job) -> Grid:
    p = job.parallelism
    if job.dialect is Dialect.TORCHTITAN:
        shard = p.dp_shard if p.split and p.dp_shard else p.dp
        replicate = p.dp_replicate or 1
        inner = shard * p.cp * p.tp
        return Grid.of([("ep", p.ep), ("edp", inner // p.ep), ("dp.replicate", replicate), ("pp", p.pp)])
    expert_tp = p.expert_tp or p.tp
    sizes = {
        "tp": ("expert_tp", expert_tp),
        "cp": ("cp", 1),
        "ep": ("ep", p.ep),
        "dp": ("edp", p.tp * p.cp * p.dp // (expert_tp * p.ep)),
        "pp": ("pp", p.pp),
    }
    return Grid.of([sizes[name] for name in job.order if name in sizes])


def grid_of(job: Job, axes: tuple[str, ...]) -> Grid:
    """The grid that a phase over these axes is defined on."""
    return expert_grid(job) if EXPERT_AXES & set(axes) else dense_grid(job)


def _degree(job: Job, name: str) -> int:
    p = job.parallelism
    return {
        "tp": p.tp,
        "cp": p.cp,
        "dp": p.dp,
        "pp": p.pp,
        "dp.shard": p.dp_shard or 1,
        "dp.replicate": p.dp_replicate or 1,
    }[name]


def groups(grid: Grid, axes: tuple[str, ...]) -> Int32:
    """The groups over `axes`: shape (groups, members), ranks ascending, groups by their lowest rank."""
    rank = np.arange(grid.world, dtype=np.int64)
    inside = np.zeros(grid.world, dtype=np.int64)
    size = 1
    for axis in grid.axes:
        if axis.name in axes:
            inside += rank // axis.stride % axis.size * axis.stride
            size *= axis.size
    lowest = rank - inside
    return np.argsort(lowest, kind="stable").reshape(-1, size).astype(np.int32)


def place(job: Job) -> Int32:
    """GPU of each rank: nodes in order (or as listed), the first `use` GPUs of each domain."""
    cluster = job.fabric.cluster
    per_node = cluster.gpus_per_node
    nodes = np.arange(cluster.node_count) if job.nodes is None else np.array(job.nodes, dtype=np.int64)
    gpus = (nodes[:, None] * per_node + np.arange(per_node)[None, :]).ravel()
    usable = gpus[gpus % cluster.gpus_per_domain < cluster.use]
    return usable[: job.parallelism.world].astype(np.int32)


def domain_of(cluster: Cluster, gpu: Int32) -> Int32:
    return gpu // np.int32(cluster.gpus_per_domain)


def lane_of(cluster: Cluster, gpu: Int32) -> Int32:
    """A GPU's rank in its domain: the same lane of every domain carries one copy of a topology."""
    return gpu % np.int32(cluster.gpus_per_domain)


def rail_of(job: Job, gpu: Int32) -> Int32:
    cluster = job.fabric.cluster
    by_node = job.fabric.rail_by is RailBy.LOCAL_RANK
    return gpu % np.int32(cluster.gpus_per_node if by_node else cluster.gpus_per_domain)
