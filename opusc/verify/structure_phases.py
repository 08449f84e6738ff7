"""For the independent checker: phases. What each should connect, and whether its circuits do, and only that."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from opusc.model.entities import Traffic
from opusc.plan.plan import Part, Plan, PlannedPhase, Routes, Scoping
from opusc.verify.finding import REALISATION, Finding, gpu_name, rank_text
from opusc.verify.structure_model import Graph, World, edge_list, graph_of, group_numbers
from opusc.verify.structure_ports import Ends

__all__ = ["Relay", "check_phase", "check_relays", "check_routes"]

Ints = NDArray[np.int64]

#: (part, rank, peer, via)
Relay = tuple[int, int, int, int]


def check_phase(
    plan: Plan, world: World, phase: PlannedPhase, ends: Ends
) -> tuple[list[Finding], list[Relay], dict[int, Graph]]:
    """Whether the circuits of a phase are what it asks for; the relays it needs; its graphs by number of domains."""
    join = phase.spec.axes == ("pp",) and phase.spec.traffic is Traffic.POINT_TO_POINT
    expected = Scoping.JOIN if join else Scoping.JOB if "pp" in phase.spec.axes else Scoping.STAGE
    if phase.scoping is not expected:
        return [_found(phase, f"has parts by {phase.scoping}, and should have them by {expected}")], [], {}
    if join:
        found, relays = _check_join(plan, world, phase, ends)
        return found, relays, {}
    found, graphs = _check_collective(plan, world, phase, ends)
    return found, [], graphs


def _found(phase: PlannedPhase, text: str, part: int = -1, rows: tuple[int, ...] = (), *notes: str) -> Finding:
    return Finding(REALISATION, f"phase `{phase.name}` {text}", part, phase.index, rows, notes)


def _arcs(plan: Plan, phase: PlannedPhase, ends: Ends) -> tuple[Ints, Ints, Ints, Ints]:
    """Row, part, sending GPU and receiving GPU of everything a phase lights."""
    part = plan.circuits.part[ends.row]
    mine = np.array([p.phase == phase.index for p in plan.parts], dtype=bool)[part]
    return (
        ends.row[mine],
        part[mine],
        ends.sender[mine] // plan.cabling.ports,
        ends.receiver[mine] // plan.cabling.ports,
    )


# --- collectives ---------------------------------------------------------------------------------


def _check_collective(
    plan: Plan, world: World, phase: PlannedPhase, ends: Ends
) -> tuple[list[Finding], dict[int, Graph]]:
    group, vertex, size, whole = _vertices(world, phase.spec.axes)
    if phase.scoping is Scoping.STAGE:
        highest = np.zeros(int(group.max()) + 1, dtype=np.int64)
        np.maximum.at(highest, group[world.gpu], world.stage)
        if (highest[group[world.gpu]] != world.stage).any():
            return [_found(phase, "has groups with ranks of several pipeline stages")], {}
    graphs: dict[int, Graph] = {}
    for n in sorted(set(size[whole].tolist())):
        graph = graph_of(world, phase.spec, n, phase.ports)
        if graph is None:
            return [_found(phase, f"has a topology that does not fit {n} domains")], {}
        graphs[n] = graph
    row, part, a, b = _arcs(plan, phase, ends)
    outside = np.flatnonzero((world.rank[a] < 0) | (world.rank[b] < 0) | (group[a] != group[b]))
    if len(outside):
        return [_stray(plan, phase, row, part, a, b, outside, "joins GPUs of different groups")], graphs
    stray = np.flatnonzero((world.lane[a] != world.lane[b]) | ~whole[a])
    if len(stray):
        return [_stray(plan, phase, row, part, a, b, stray, "leaves the lanes that carry its topology")], graphs
    if phase.scoping is Scoping.STAGE:
        stages = np.array([phase.scopes[p.scope][0] if p.phase == phase.index else -1 for p in plan.parts])[part]
        wrong = np.flatnonzero((world.stage[world.rank[a]] != stages) | (world.stage[world.rank[b]] != stages))
        if len(wrong):
            return [_stray(plan, phase, row, part, a, b, wrong, "reaches outside its pipeline stage")], graphs
    for n, graph in graphs.items():
        mine = size[a] == n
        found = _compare(
            plan, phase, graph, row[mine], part[mine], a[mine], b[mine], vertex, int((whole & (size == n)).sum()) // n
        )
        if found:
            return found, graphs
    return [], graphs


def _vertices(world: World, axes: tuple[str, ...]) -> tuple[Ints, Ints, Ints, NDArray[np.bool_]]:
    """By GPU: its group (-1: none), its domain's place in the group, the domains of the group, and whether its
    lane carries a copy: whether all domains of the group have a GPU there, on one rail."""
    number = group_numbers(world, axes)
    total = len(world.rank)
    group, vertex, size = (np.full(total, -1, dtype=np.int64) for _ in range(3))
    whole = np.zeros(total, dtype=bool)
    group[world.gpu] = number
    order = world.gpu[np.lexsort((world.order_of_domain[world.domain[world.gpu]], number))]
    new_group = np.r_[True, group[order][1:] != group[order][:-1]]
    new_domain = new_group | np.r_[True, world.domain[order][1:] != world.domain[order][:-1]]
    count = np.cumsum(new_domain)
    start = np.maximum.accumulate(np.where(new_group, count, 0))
    vertex[order] = count - start
    domains = np.zeros(int(number.max()) + 1, dtype=np.int64)
    np.maximum.at(domains, group[order], vertex[order] + 1)
    size[world.gpu] = domains[number]
    lanes = int(world.lane.max()) + 1
    key = group[world.gpu] * lanes + world.lane[world.gpu]
    members = np.bincount(key)
    by_lane = np.argsort(key, kind="stable")
    rails, keys = world.rail[world.gpu][by_lane], key[by_lane]
    split = np.flatnonzero((keys[1:] == keys[:-1]) & (rails[1:] != rails[:-1]))
    members[keys[split]] = -1
    whole[world.gpu] = (members[key] == size[world.gpu]) & (size[world.gpu] > 1)
    return group, vertex, size, whole


def _compare(
    plan: Plan,
    phase: PlannedPhase,
    graph: Graph,
    row: Ints,
    part: Ints,
    a: Ints,
    b: Ints,
    vertex: Ints,
    copies: int,
) -> list[Finding]:
    """Every arc of the graph is lit as often as it is meant, on every lane of every group, and no other."""
    total = len(plan.rank_of_gpu)
    keys = a * total + b
    arcs, times = _counted(keys)
    from_v, to_v = vertex[arcs // total], vertex[arcs % total]
    meant = graph.times(from_v, to_v)
    odd = np.flatnonzero(meant == 0)
    if len(odd):
        strays = np.flatnonzero(keys == arcs[odd[0]])
        return [_stray(plan, phase, row, part, a, b, strays, f"joins domains that no {graph.name} of {graph.n} joins")]
    each = {i.shape.copies for i in phase.instances if i.shape.n == graph.n} or {1}
    wrong = np.flatnonzero(times != meant * max(each))
    if len(wrong):
        at = int(np.flatnonzero(keys == arcs[wrong[0]])[0])
        text = (
            f"joins {rank_text(plan, int(a[at]))} to {rank_text(plan, int(b[at]))} {times[wrong[0]]} times, and its "
            f"{graph.name} means {meant[wrong[0]] * max(each)}"
        )
        return [_found(phase, text, int(part[at]), (int(row[at]),))]
    if len(arcs) != copies * graph.size:
        text = f"lights {len(arcs):,} links, and a {graph.name} of {graph.n} domains on {copies:,} lanes has "
        return [_found(phase, f"{text}{copies * graph.size:,}", _first_part(plan, phase))]
    return []


def _counted(values: Ints) -> tuple[Ints, Ints]:
    """The different values, sorted, and how often each occurs."""
    ordered = np.sort(values)
    first = np.flatnonzero(np.r_[np.ones(min(len(ordered), 1), dtype=bool), ordered[1:] != ordered[:-1]])
    return ordered[first], np.diff(np.r_[first, len(ordered)])


def _first_part(plan: Plan, phase: PlannedPhase) -> int:
    return next((p.index for p in plan.parts if p.phase == phase.index), -1)


def _stray(plan: Plan, phase: PlannedPhase, row: Ints, part: Ints, a: Ints, b: Ints, bad: Ints, text: str) -> Finding:
    at = int(bad[0])
    what = f"{text}: {rank_text(plan, int(a[at]))} to {rank_text(plan, int(b[at]))}, in part"
    name = plan.parts[int(part[at])].name
    return _found(phase, f"{what} `{name}`", int(part[at]), (int(row[at]),), f"{len(bad)} such circuits")


# --- joins ---------------------------------------------------------------------------------------


def _check_join(plan: Plan, world: World, phase: PlannedPhase, ends: Ends) -> tuple[list[Finding], list[Relay]]:
    """Every two stages that the topology joins are joined, in every pipeline, at their GPUs or their relays."""
    number = group_numbers(world, ("pp",))
    pipelines = np.argsort(number, kind="stable").reshape(-1, world.job.parallelism.pp)
    gpus = world.gpu[pipelines]
    wanted = _stage_pairs(world, phase, pipelines.shape[1])
    scope_of = {stages: at for at, stages in enumerate(phase.scopes)}
    parts = [p for p in plan.parts if p.phase == phase.index]
    served = {frozenset(phase.scopes[p.scope]) for p in parts}
    expected: list[Ints] = [np.zeros(0, np.int64)]
    relays: list[Relay] = []
    total = len(world.rank)
    for a, b, both in wanted:
        rows = np.flatnonzero(world.domain[gpus[:, a]] != world.domain[gpus[:, b]])
        present = [p for p in parts if (a, b) == phase.scopes[p.scope]]
        if not len(rows) or (not present and len(pipelines[0]) == 2 and frozenset((a, b)) in served):
            continue  # inside the domains; or a ring of two stages, whose way back is the way there
        if not present:
            return [_found(phase, f"joins stages {a} and {b} by no part")], []
        own, peer = gpus[rows, a], gpus[rows, b]
        leaves = _leaving(world, own, peer)
        if (leaves < 0).any():
            return [_found(phase, f"cannot join stages {a} and {b}: no GPU on the rail of the other")], []
        if len(present) > 1 and (leaves == own).all():
            divided = _divided(plan, phase, ends, present, _alike(world, gpus[rows]), leaves, peer)
            if divided:
                return divided, []
        times = _times(world, phase, gpus[rows])
        keys = (scope_of[a, b] * total + leaves) * total + peer
        expected.append(np.repeat(keys, times))
        if both:
            expected.append(np.repeat((scope_of[a, b] * total + peer) * total + leaves, times))
        hops = np.flatnonzero(leaves != own)
        for p in present:
            columns = (pipelines[rows[hops], a], pipelines[rows[hops], b], leaves[hops])
            relays += [(p.index, *hop) for hop in zip(*(x.tolist() for x in columns), strict=True)]
    return _compare_joins(plan, phase, ends, np.concatenate(expected), total), relays


def _alike(world: World, gpus: Ints) -> Ints:
    """By pipeline: a number that pipelines share which enter and leave domains at the same stages."""
    domains = world.domain[gpus]
    moves = np.c_[domains[:, 1:] != domains[:, :-1], domains[:, 0] != domains[:, -1]]
    return np.asarray(np.unique(moves, axis=0, return_inverse=True)[1], dtype=np.int64).reshape(-1)


def _divided(
    plan: Plan, phase: PlannedPhase, ends: Ends, parts: list[Part], alike: Ints, own: Ints, peer: Ints
) -> list[Finding]:
    """A step that serves some pipelines one way and leaves out others that lie alike: those would wait for a later
    step while the traffic of all is there. (Where relays meet, links are shared out one by one, and this is so.)"""
    _, part, a, b = _arcs(plan, phase, ends)
    for p in parts:
        lit = a[part == p.index] * len(plan.rank_of_gpu) + b[part == p.index]
        for one, other in ((own, peer), (peer, own)):
            served = np.isin(one * len(plan.rank_of_gpu) + other, lit)
            some = np.isin(alike, alike[served])
            if (some & ~served).any():
                at = int(np.flatnonzero(some & ~served)[0])
                text = f"joins {rank_text(plan, int(one[at]))} to {rank_text(plan, int(other[at]))} in another step"
                return [_found(phase, f"{text} than other pipelines, which part `{p.name}` holds", p.index)]
    return []


def _stage_pairs(world: World, phase: PlannedPhase, pp: int) -> list[tuple[int, int, bool]]:
    """(stage, stage, whether light goes both ways) of every link that the topology asks for."""
    stated = edge_list(phase.spec, pp)
    if stated is not None:
        both = not world.independent or phase.spec.topology.name == "pairs"
        return [(a, b, both) for a, b in stated]
    chain = [(s, s + 1, True) for s in range(pp - 1)]
    if phase.spec.topology.name == "chain":
        return chain
    if phase.spec.topology.name == "ring":
        return [*chain, (pp - 1, 0, True)]
    graph = graph_of(world, phase.spec, pp, phase.ports)
    if graph is None:
        return []
    a, b = np.divmod(np.arange(pp * pp), pp)
    chosen = np.flatnonzero((graph.times(a, b) > 0) & ((a < b) | world.independent | graph.double_half))
    found = []
    for at in chosen.tolist():
        v, w = int(a[at]), int(b[at])
        if graph.double_half and not _drawn_from(v, w, graph.dims):
            continue
        found.append((v, w, not world.independent))
    return found


def _drawn_from(v: int, w: int, dims: tuple[int, ...]) -> bool:
    """On sided ports a link is drawn from the vertex from which the other is the shorter way ahead."""
    for size in dims:
        if v % size != w % size:
            return (w - v) % size <= size // 2
        v, w = v // size, w // size
    return False


def _leaving(world: World, own: Ints, peer: Ints) -> Ints:
    """The GPU from which a link leaves: the stage's own if the peer is its namesake, else the relay; -1 if none."""
    per_domain = world.job.fabric.cluster.gpus_per_domain
    namesake = world.domain[own] * per_domain + world.lane[peer]
    at = np.where((world.lane[own] == world.lane[peer]) & (world.rail[own] == world.rail[peer]), own, namesake)
    for odd in np.flatnonzero(world.rail[at] != world.rail[peer]).tolist():
        start = int(world.domain[own[odd]]) * per_domain
        fitting = [g for g in range(start, start + per_domain) if world.rail[g] == world.rail[peer[odd]]]
        at[odd] = fitting[0] if fitting else -1
    return at


def _times(world: World, phase: PlannedPhase, gpus: Ints) -> Ints:
    """How many copies of the link each pipeline has: by the number of domains in a row that it passes."""
    copies = {i.shape.n: i.shape.copies for i in phase.instances}
    if phase.spec.topology.edges is not None or phase.spec.topology.name not in ("ring", "chain"):
        return np.full(len(gpus), copies.get(2, 1))
    domains = world.domain[gpus]
    runs = 1 + (domains[:, 1:] != domains[:, :-1]).sum(axis=1)
    return np.array([copies.get(n, 1) for n in runs.tolist()], dtype=np.int64)


def _compare_joins(plan: Plan, phase: PlannedPhase, ends: Ends, expected: Ints, total: int) -> list[Finding]:
    row, part, a, b = _arcs(plan, phase, ends)
    scope = np.array([p.scope for p in plan.parts], dtype=np.int64)[part]
    have = (scope * total + a) * total + b
    got, times = _counted(have)
    want, needed = _counted(expected)
    extra = np.flatnonzero(~np.isin(got, want))
    if len(extra):
        strays = np.flatnonzero(have == got[extra[0]])
        return [_stray(plan, phase, row, part, a, b, strays, "joins GPUs that it should not")]
    missing = np.flatnonzero(~np.isin(want, got))
    if len(missing):
        key = int(want[missing[0]])
        stages = phase.scopes[key // total**2]
        ends_text = f"{gpu_name(plan, key // total % total)} and {gpu_name(plan, key % total)}"
        return [_found(phase, f"does not join {ends_text}, for stages {stages[0]} and {stages[1]}")]
    wrong = np.flatnonzero(times != needed)
    if len(wrong):
        at = int(np.flatnonzero(have == got[wrong[0]])[0])
        text = f"joins {rank_text(plan, int(a[at]))} and {rank_text(plan, int(b[at]))} {times[wrong[0]]} times"
        return [_found(phase, f"{text}, and should {needed[wrong[0]]} times", int(part[at]), (int(row[at]),))]
    return []


# --- relays and routes ---------------------------------------------------------------------------


def check_relays(plan: Plan, needed: list[Relay]) -> list[Finding]:
    """Relays are named where a link does not leave from its stage's own GPU, and nowhere else."""
    r = plan.relays
    stated = sorted(zip(r.part.tolist(), r.rank.tolist(), r.peer.tolist(), r.via.tolist(), strict=True))
    if stated == sorted(needed):
        return []
    lacking = sorted(set(needed) - set(stated))
    part, rank, peer, via = (lacking or sorted(set(stated) - set(needed)) or stated)[0]
    phase = plan.parts[part].phase if 0 <= part < len(plan.parts) else -1
    what = "is not named" if lacking else "is named wrongly"
    text = f"the relay through GPU {via} for traffic between ranks {rank} and {peer} {what}"
    return [Finding(REALISATION, text, part if phase >= 0 else -1, phase)]


def check_routes(phase: PlannedPhase, graphs: dict[int, Graph]) -> list[Finding]:
    """All-to-all traffic reaches everyone: by a link, or through a neighbour that is nearer."""
    if phase.spec.traffic is not Traffic.ALL_TO_ALL:
        return [_found(phase, "names routes that its traffic does not need")] if phase.routes else []
    stated: dict[int, Routes] = {}
    for routes in phase.routes:
        if routes.n in stated or routes.n not in graphs:
            return [_found(phase, f"names routes for {routes.n} domains, which no group has, or has twice")]
        stated[routes.n] = routes
    for n, graph in graphs.items():
        v, w = np.divmod(np.arange(n * n), n)
        direct = (graph.times(v, w) > 0).reshape(n, n)
        text = _check_ways(direct, stated.get(n))
        if text:
            return [_found(phase, f"{text}, for groups of {n} domains")]
    return []


def _check_ways(direct: NDArray[np.bool_], routes: Routes | None) -> str | None:
    n = len(direct)
    far = {(a, b) for a, b in np.argwhere(~direct).tolist() if a != b}
    ways = (
        []
        if routes is None
        else list(zip(routes.source.tolist(), routes.target.tolist(), routes.via.tolist(), strict=True))
    )
    pairs = {(a, b) for a, b, _ in ways}
    if pairs != far or len(ways) != len(pairs):
        a, b = sorted(pairs ^ far or pairs)[0]
        return f"names no single way from domain {a} to domain {b}, or one that is not needed"
    near = [np.flatnonzero(row).tolist() for row in direct]
    backwards = [np.flatnonzero(column).tolist() for column in direct.T]
    for target in sorted({b for _, b, _ in ways}):
        hops = _hops_to(target, backwards)
        for a, b, via in ways:
            if b == target and (via not in near[a] or hops.get(via, n) + 1 != hops.get(a, -1)):
                return (
                    f"sends traffic from domain {a} to domain {b} through domain {via}, which is not on a shortest way"
                )
    return None


def _hops_to(target: int, backwards: list[list[int]]) -> dict[int, int]:
    hops, waiting = {target: 0}, deque([target])
    while waiting:
        at = waiting.popleft()
        for before in backwards[at]:
            if before not in hops:
                hops[before] = hops[at] + 1
                waiting.append(before)
    return hops
