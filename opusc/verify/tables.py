"""The plan's other tables, compared: relays, routes, and which parts exclude each other."""

import numpy as np
from numpy.typing import NDArray

from opusc.model.entities import Traffic
from opusc.plan.plan import Int32, Plan, PlannedPhase, Routes
from opusc.plan.routes import neighbours_of
from opusc.verify.finding import EXCLUSION, REALISATION, Finding

__all__ = ["exclusion_findings", "relay_findings", "route_findings"]

Int64 = NDArray[np.int64]


def relay_findings(plan: Plan, implied: dict[int, Int32]) -> list[Finding]:
    """Relays are exactly the hops that the tables of the phases imply: rows (scope, rank, peer, via) by phase."""
    r = plan.relays
    have = sorted(zip(r.part.tolist(), r.rank.tolist(), r.peer.tolist(), r.via.tolist(), strict=True))
    want = sorted(
        (part.index, rank, peer, via)
        for part in plan.parts
        for scope, rank, peer, via in implied.get(part.phase, np.zeros((0, 4), np.int32)).tolist()
        if scope == part.scope
    )
    if have == want:
        return []
    missing = sorted(set(want) - set(have))
    part, rank, peer, via = missing[0] if missing else sorted(set(have) - set(want) or have)[0]
    text = "has no relay" if missing else "has a relay that nothing needs"
    where = plan.parts[part] if 0 <= part < len(plan.parts) else None
    name = f"part `{where.name}`" if where else "the plan"
    return [
        Finding(
            REALISATION,
            f"{name} {text} for traffic of rank {rank} and rank {peer} through GPU {via}",
            part if where else -1,
            where.phase if where else -1,
            notes=(f"{len(missing)} relays are missing",) if missing else (),
        )
    ]


def route_findings(phase: PlannedPhase) -> list[Finding]:
    """Every pair without a link has a way through a direct neighbour that is nearer to the target."""
    if phase.spec.traffic is not Traffic.ALL_TO_ALL:
        return [_route(phase, "has routes, and its traffic is not all-to-all")] if phase.routes else []
    stated = {routes.n: routes for routes in phase.routes}
    for n, direct in {i.shape.n: neighbours_of(i.shape) for i in phase.instances}.items():
        text = _wrong_routes(n, direct, stated.get(n))
        if text:
            return [_route(phase, text)]
    return []


def _route(phase: PlannedPhase, text: str) -> Finding:
    return Finding(REALISATION, f"phase `{phase.name}` {text}", phase=phase.index)


def _wrong_routes(n: int, direct: NDArray[np.bool_], routes: Routes | None) -> str | None:
    far = ~direct & ~np.eye(n, dtype=bool)
    if not far.any():
        return "has routes for domains that are neighbours" if routes is not None and len(routes.source) else None
    if routes is None:
        a, b = np.argwhere(far)[0].tolist()
        return f"has no route from domain {a} of a group to domain {b}"
    columns = np.stack([routes.source, routes.target, routes.via]).astype(np.int64)
    if columns.size and (columns.min() < 0 or columns.max() >= n):
        return "has a route through a domain that does not exist"
    pairs = columns[0] * n + columns[1]
    if not np.array_equal(np.sort(pairs), np.flatnonzero(far.ravel())):
        return "has routes for other pairs of domains than those without a link"
    hops = _hops(direct)
    a, b, via = columns
    wrong = ~direct[a, via] | (hops[via, b] >= hops[a, b]) | (hops[via, b] < 0)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        return (
            f"routes traffic from domain {a[at]} of a group to domain {b[at]} through domain {via[at]}, which is no "
            "neighbour of it that is nearer"
        )
    return None


def _hops(direct: NDArray[np.bool_]) -> Int64:
    """Hops between all pairs, -1 where there is no way."""
    n = len(direct)
    hops = np.where(np.eye(n, dtype=bool), 0, -1).astype(np.int64)
    for distance in range(1, n):
        reached = hops == distance - 1
        onward = np.zeros((n, n), dtype=bool)
        for middle in range(n):  # one row at a time: no counts, so no rounding
            rows = reached[:, middle]
            if rows.any():
                onward[rows] |= direct[middle]
        new = onward & (hops < 0)
        if not new.any():
            break
        hops[new] = distance
    return hops


def exclusion_findings(plan: Plan) -> list[Finding]:
    """The listed pairs are exactly the parts that use some switch port both."""
    span = 2 * max((s.kind.radix for s in plan.switches), default=0) + 1
    c = plan.circuits
    listed = plan.exclusions
    flat = listed.ravel()
    pairs = listed.ndim == 2 and listed.shape[1] == 2
    if not pairs or (len(flat) and (flat.min() < 0 or flat.max() >= len(plan.parts))):
        return [Finding(EXCLUSION, "the table of exclusions names parts that do not exist, or is no table of pairs")]
    port = c.switch.astype(np.int64)[:, None] * span + np.stack([c.ingress, c.egress], axis=1)
    port = np.clip(port, 0, len(plan.switches) * span)  # ports out of range are objected to elsewhere
    have = [(int(a), int(b)) for a, b in listed.tolist()]
    want = _sharing([port[plan.rows(p.index)].ravel() for p in plan.parts], len(plan.switches) * span + 1)
    if have == sorted(want):
        return []
    missing, extra = sorted(want - set(have)), sorted(set(have) - want)
    if not missing and not extra:
        return [Finding(EXCLUSION, "the table of exclusions is not sorted, or has doubles")]
    a, b = (missing or extra)[0]
    names = f"parts `{plan.parts[a].name}` and `{plan.parts[b].name}`"
    text = "share a switch port and may hold together" if missing else "are kept apart and share no switch port"
    return [
        Finding(EXCLUSION, f"{names} {text}", a, plan.parts[a].phase, notes=(f"{len(missing or extra)} such pairs",))
    ]


def _sharing(ports_of: list[Int64], bound: int) -> set[tuple[int, int]]:
    """Pairs of parts with a common port, for the ports (below `bound`) of each part.

    Ports are grouped by a signature, the sum of a number for each part that uses them. Then every part must use
    all ports of a group or none, so that no collision of signatures goes unnoticed.
    """
    # Multiples of an odd constant, scrambled by a multiplication (Steele, Lea and Flood 2014, SplitMix).
    weight = np.arange(1, len(ports_of) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    weight = (weight ^ (weight >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    signature, used = np.zeros(bound, np.uint64), np.zeros(bound, dtype=bool)
    for number, ports in enumerate(ports_of):
        signature[ports] += weight[number]
        used[ports] = True
    there = np.flatnonzero(used)
    order = there[np.argsort(signature[there])]
    first = np.r_[np.ones(min(len(order), 1), dtype=bool), signature[order][1:] != signature[order][:-1]]
    group = np.zeros(bound, dtype=np.int64)
    group[order] = np.cumsum(first) - 1
    size = np.bincount(group[there])
    together: list[list[int]] = [[] for _ in size]
    for number, ports in enumerate(ports_of):
        met = np.bincount(group[ports], minlength=len(size))
        if ((met != size) & (met > 0)).any():  # a collision, or a part that uses a port twice
            return _sharing_by_port(ports_of)
        for at in np.flatnonzero(met).tolist():
            together[at].append(number)
    return {(a, b) for parts in together for at, a in enumerate(parts) for b in parts[at + 1 :]}


def _sharing_by_port(ports_of: list[Int64]) -> set[tuple[int, int]]:
    """The same, port by port."""
    users: dict[int, list[int]] = {}
    for number, ports in enumerate(ports_of):
        for port in set(ports.tolist()):
            users.setdefault(port, []).append(number)
    return {(a, b) for parts in users.values() for at, a in enumerate(parts) for b in parts[at + 1 :]}
