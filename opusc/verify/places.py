"""The tables that the formulas are applied to: which GPUs the vertices of each phase's topologies are.

Compared with the digits of ranks in the grids (`plan.ranks`), column by column.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opusc.arrays import counted, distinct, distinct_rows
from opusc.model.entities import Job, Optics, Peers, TopologySpec
from opusc.plan.neighbours import targets
from opusc.plan.plan import Directions, Instances, Int32, Link, Plan, PlannedPhase, Scoping
from opusc.plan.ranks import domain_of, grid_of, groups, lane_of, rail_of
from opusc.verify.finding import REALISATION, Finding

__all__ = ["Places", "places_of"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Places:
    """What the comparison of one phase found. `uneven`: some GPU is in several copies, or a relay is used."""

    findings: tuple[Finding, ...]
    uneven: bool
    rows: int
    relays: Int32  # (rows, 4): scope, rank, peer, via, as the tables imply them


def places_of(plan: Plan, phase: PlannedPhase) -> Places:
    """Compare the tables of a phase with the groups of its axes."""
    job = plan.model.job
    ranks = groups(grid_of(job, phase.spec.axes), phase.spec.axes)
    text = _wrong_scopes(plan, phase, ranks)
    if text is None:
        text = next((t for i in phase.instances if (t := _wrong_tables(plan, phase, i, len(ranks)))), None)
    none = np.zeros((0, 4), np.int32)
    if text is not None:
        return Places((Finding(REALISATION, f"phase `{phase.name}`: {text}", phase=phase.index),), True, 0, none)
    if phase.scoping is Scoping.JOIN:
        text, relays = _joins(plan, phase, ranks)
        uneven = len(relays) > 0
    else:
        text, relays, uneven = _collectives(plan, phase, ranks), none, False
    everywhere = [i.exits.ravel() for i in phase.instances]
    if everywhere and np.bincount(np.concatenate(everywhere)).max(initial=0) > 1:
        uneven = True
    found = () if text is None else (Finding(REALISATION, f"phase `{phase.name}`: {text}", phase=phase.index),)
    return Places(found, uneven, sum(i.exits.size for i in phase.instances), relays)


def _wrong_scopes(plan: Plan, phase: PlannedPhase, ranks: Int32) -> str | None:
    """Scopes are what the axes say, and groups of one stage are inside it."""
    pp = plan.model.job.parallelism.pp
    if phase.scoping is Scoping.JOIN:
        bad = [s for s in phase.scopes if len(s) != 2 or s[0] == s[1] or not all(0 <= stage < pp for stage in s)]
        return f"{bad[0]} is no pair of stages" if bad else None
    expected: tuple[tuple[int, ...], ...] = ((),)
    if phase.scoping is Scoping.STAGE:
        expected = tuple((stage,) for stage in range(pp))
        if "pp" in phase.spec.axes:
            return "runs over pp, and its parts are cut by stage"
        stages = plan.stage_of_rank[ranks]
        if len(ranks) and np.ptp(stages, axis=1).any():
            return "a group has ranks of several pipeline stages"
    return None if phase.scopes == expected else f"its scopes are {phase.scopes}, and should be {expected}"


def _wrong_tables(plan: Plan, phase: PlannedPhase, instances: Instances, group_count: int) -> str | None:
    n, rows = instances.shape.n, len(instances.exits)
    shapes = {a.shape for a in (instances.exits, instances.entries, instances.scope)}
    if shapes != {(rows, n)} or instances.group.shape != (rows,) or n < 2:
        return "its tables have the wrong shape"
    gpus = plan.model.cluster.gpu_count
    for table in (instances.exits, instances.entries):
        if table.min(initial=0) < 0 or table.max(initial=0) >= gpus:
            return "a vertex is on a GPU that does not exist"
    if instances.scope.min(initial=0) < -1 or instances.scope.max(initial=0) >= len(phase.scopes):
        return "a link is in a scope that does not exist"
    if instances.group.min(initial=0) < 0 or instances.group.max(initial=0) >= group_count:
        return "a copy serves a group that does not exist"
    if any(link.neighbour.digit.stride * link.neighbour.digit.size > n for s in instances.shape.steps for link in s):
        return "a link is on a digit that its vertices do not have"
    return None


# --- collectives ---------------------------------------------------------------------------------


def _collectives(plan: Plan, phase: PlannedPhase, ranks: Int32) -> str | None:
    """Each group has one copy for each lane that all its domains have on one rail, vertices in order of domains."""
    job = plan.model.job
    group_of_rank = np.empty(plan.world, dtype=np.int64)
    group_of_rank[ranks.ravel()] = np.repeat(np.arange(len(ranks)), ranks.shape[1])
    vertices, ordinal, wanted = _wanted_lanes(job, plan, ranks)
    lanes = job.fabric.cluster.gpus_per_domain
    found: list[Int64] = []
    for i in phase.instances:
        at = plan.rank_of_gpu[i.exits]
        domains, lane = domain_of(job.fabric.cluster, i.exits), lane_of(job.fabric.cluster, i.exits)
        rail = rail_of(job, i.exits)
        if not np.array_equal(i.exits, i.entries):
            return "links leave from other GPUs than they enter"
        if (at < 0).any() or (group_of_rank[at] != i.group[:, None]).any():
            return "a copy of its topology reaches a GPU outside its group"
        if (lane != lane[:, :1]).any() or (rail != rail[:, :1]).any():
            return "a copy of its topology is spread over several lanes or rails"
        if (np.diff(ordinal[domains], axis=1) <= 0).any():
            return "domains are not in the order of ranks"
        if (vertices[i.group] != i.shape.n).any():
            return "a copy of its topology leaves out domains of its group"
        stage = plan.stage_of_rank[at]
        inside = i.scope == 0 if phase.scoping is Scoping.JOB else i.scope == stage
        if not inside.all():
            return "a link is in the part of another stage"
        found.append(i.group.astype(np.int64) * lanes + lane[:, 0])
    have = np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)
    if not np.array_equal(have, wanted):
        return f"its topology has {len(have)} copies on rails, and should have {len(wanted)}"
    return None


def _wanted_lanes(job: Job, plan: Plan, ranks: Int32) -> tuple[Int32, Int64, Int64]:
    """Domains of each group, the order of domains, and the (group, lane) pairs that carry a copy, as numbers."""
    cluster = job.fabric.cluster
    gpus = plan.gpu_of_rank[ranks]
    domains, lane, rail = domain_of(cluster, gpus), lane_of(cluster, gpus), rail_of(job, gpus)
    in_rank_order = domain_of(cluster, plan.gpu_of_rank)
    first = np.full(cluster.domain_count, len(in_rank_order), dtype=np.int64)
    np.minimum.at(first, in_rank_order, np.arange(len(in_rank_order)))
    sorted_domains = np.sort(domains, axis=1)
    vertices = 1 + (np.diff(sorted_domains, axis=1) != 0).sum(axis=1, dtype=np.int32)
    key = (np.arange(len(ranks), dtype=np.int64)[:, None] * cluster.gpus_per_domain + lane).ravel()
    members = np.bincount(key, minlength=len(ranks) * cluster.gpus_per_domain)
    low = np.full(len(members), np.iinfo(np.int64).max)
    high = np.full(len(members), -1)
    np.minimum.at(low, key, rail.ravel())
    np.maximum.at(high, key, rail.ravel())
    of_group = np.arange(len(members)) // cluster.gpus_per_domain
    whole = (members == vertices[of_group]) & (low == high) & (vertices[of_group] > 1)
    return vertices, first, np.flatnonzero(whole)


# --- joins ---------------------------------------------------------------------------------------


def _joins(plan: Plan, phase: PlannedPhase, ranks: Int32) -> tuple[str | None, Int32]:
    """Links of a join have one end at the GPU of its second stage, the other at that of its first, or at its relay.

    Light goes both ways between every two stages that the topology joins, as often as there are copies.
    """
    cluster = plan.model.cluster
    relays: list[Int32] = []
    lit: list[Int64] = []  # (scope, pipeline, whether back) of every lit direction, as a number
    copies: list[Int64] = []
    for i in phase.instances:
        if len(i.scope) and (i.scope != i.scope[0]).any():
            return "copies of one shape differ in their scopes", _stacked(relays)
        for link, scope, v, w in _drawn(i):
            a, b = phase.scopes[scope]
            rank, peer = ranks[i.group, a], ranks[i.group, b]
            own, far = plan.gpu_of_rank[rank], plan.gpu_of_rank[peer]
            # A link may be drawn from either end.
            ahead = i.entries[:, w] == far
            near = np.where(ahead, i.exits[:, v], i.entries[:, w])
            if (np.where(ahead, i.entries[:, w], i.exits[:, v]) != far).any():
                return f"a link of stages {a} and {b} has no end at the GPU of stage {b}", _stacked(relays)
            if (domain_of(cluster, near) != domain_of(cluster, own)).any():
                return f"a link of stages {a} and {b} has an end outside the domain of stage {a}", _stacked(relays)
            if (rail_of(plan.model.job, near) != rail_of(plan.model.job, far)).any():
                return f"a link of stages {a} and {b} leads from one rail to another", _stacked(relays)
            place = (scope * len(ranks) + i.group.astype(np.int64)) * 2
            if link.directions is not Directions.BACKWARD:
                lit.append(place + ~ahead)
            if link.directions is not Directions.FORWARD:
                lit.append(place + ahead)
            copies += [np.full(len(rank), i.shape.copies)] * (2 if link.directions is Directions.BOTH else 1)
            hops = np.stack([np.full(len(rank), scope), rank, peer, near], axis=1).astype(np.int32)
            relays.append(hops[near != own])
    return _uncovered(plan, phase, ranks, lit, copies), _stacked(relays)


def _drawn(instances: Instances) -> list[tuple[Link, int, int, int]]:
    """(link, scope, from, to) of every link of a shape, over all steps, that is in a scope."""
    if not len(instances.scope):
        return []
    scope, found = instances.scope[0], []
    for link in (link for links in instances.shape.steps for link in links):
        to = targets(link.neighbour, instances.shape.n)
        found += [(link, int(scope[v]), v, int(to[v])) for v in np.flatnonzero((to >= 0) & (scope >= 0)).tolist()]
    return found


def _stacked(relays: list[Int32]) -> Int32:
    """All rows; copies of a link have one relay."""
    return distinct_rows(np.concatenate(relays))[0].astype(np.int32) if relays else np.zeros((0, 4), np.int32)


def _uncovered(plan: Plan, phase: PlannedPhase, ranks: Int32, lit: list[Int64], copies: list[Int64]) -> str | None:
    """Every two stages that the topology joins, in different domains, are joined in every pipeline; no others are."""
    pp = plan.model.job.parallelism.pp
    have, at, times = counted(np.concatenate([np.zeros(0, np.int64), *lit]))
    if (times != np.concatenate([np.zeros(0, np.int64), *copies])[at]).any():
        return "a link between stages is drawn more or less often than it has copies"
    # From scopes to stages: a join may be stated from either side.
    ends = np.array([*phase.scopes, (0, 0)], dtype=np.int64)
    scope, pipeline, back = have // (2 * len(ranks)), have // 2 % len(ranks), have % 2 == 1
    first, second = ends[scope, 0], ends[scope, 1]
    got, _ = distinct((pipeline * pp + np.where(back, second, first)) * pp + np.where(back, first, second))
    domains = domain_of(plan.model.cluster, plan.gpu_of_rank[ranks])
    wanted = [np.zeros(0, np.int64)]
    for a, b, both in _stage_pairs(plan, phase, pp):
        rows = np.flatnonzero(domains[:, a] != domains[:, b]).astype(np.int64)
        wanted += [(rows * pp + a) * pp + b] + [(rows * pp + b) * pp + a] * both
    need, _ = distinct(np.concatenate(wanted))
    if np.array_equal(got, need):
        return None
    missing = np.setdiff1d(need, got)
    key = int(missing[0]) if len(missing) else int(np.setdiff1d(got, need)[0])
    lacks = "lacks a link that it needs" if len(missing) else "has a link that its topology does not ask for"
    stages = f"from stage {key // pp % pp} to stage {key % pp}"
    return f"the pipeline of rank {int(ranks[key // (pp * pp), 0])} {lacks}, {stages}"


def _stage_pairs(plan: Plan, phase: PlannedPhase, pp: int) -> list[tuple[int, int, bool]]:
    """(stage, stage, whether light goes both ways) of every link that the topology asks for."""
    topology = phase.spec.topology
    nic = plan.model.cluster.rail_nic
    independent = nic.optics is Optics.DUPLEX and nic.peers is Peers.INDEPENDENT
    if topology.edges is not None:
        both = not independent or topology.name == "pairs"
        return [(edge.tail, edge.head, both) for edge in topology.edges(pp)]
    return [(a, b, True) for a, b in _named_pairs(topology, pp)]


def _named_pairs(topology: TopologySpec, pp: int) -> list[tuple[int, int]]:
    match topology.name:
        case "chain":
            return [(s, s + 1) for s in range(pp - 1)]
        case "ring":
            return [(s, (s + 1) % pp) for s in range(pp)]
        case "pairs":
            return [(s, s + 1) for s in range(0, pp - 1, 2)]
        case "hypercube":
            return [(a, b) for a in range(pp) for b in range(a + 1, pp) if (a ^ b).bit_count() == 1]
        case "flattened_butterfly":
            dims = topology.dims or (pp,)
            return [(a, b) for a in range(pp) for b in range(a + 1, pp) if _differing(a, b, dims) == 1]
    return [(a, b) for a in range(pp) for b in range(a + 1, pp)]


def _differing(a: int, b: int, dims: tuple[int, ...]) -> int:
    different = 0
    for size in dims:
        different += a % size != b % size
        a, b = a // size, b // size
    return different
