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
    base = c.switch.astype(np.int64) * span
    port = np.concatenate([base + c.ingress, base + c.egress])
    part = np.concatenate([c.part, c.part]).astype(np.int64)
    have = [(int(a), int(b)) for a, b in listed.tolist()]
    want = _sharing(port, part, len(plan.parts))
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


def _sharing(port: Int64, part: Int64, part_count: int) -> set[tuple[int, int]]:
    """Pairs of parts with a common port.

    Ports are grouped by a signature, the sum of a number for each part; the parts of each group are read off
    its first port, and every other port is then compared with them, so that no collision goes unnoticed.
    """
    entries = np.sort(port * part_count + part)
    entries = entries[np.r_[True, entries[1:] != entries[:-1]]] if len(entries) else entries
    port, part = np.divmod(entries, part_count)
    if not len(port):
        return set()
    first = np.flatnonzero(np.r_[True, port[1:] != port[:-1]])
    length = np.diff(np.r_[first, len(port)])
    # Multiples of an odd constant, scrambled by a multiplication (Steele, Lea and Flood 2014, SplitMix).
    weight = np.arange(1, part_count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    weight = (weight ^ (weight >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    signature = np.add.reduceat(weight[part], first)
    order = np.argsort(signature, kind="stable")
    fresh = np.r_[True, np.diff(signature[order]) != 0]
    where, group = order[fresh], np.empty_like(order)
    group[order] = np.cumsum(fresh) - 1
    members = np.zeros((len(where), part_count), dtype=bool)
    for number, at in enumerate(where.tolist()):
        members[number, part[first[at] : first[at] + length[at]]] = True
    exact = members[np.repeat(group, length), part].all() and (members.sum(axis=1)[group] == length).all()
    if not exact:  # two sets of parts with one signature: take every port by itself
        members = np.zeros((len(first), part_count), dtype=bool)
        members[np.repeat(np.arange(len(first)), length), part] = True
    found: set[tuple[int, int]] = set()
    for row in members:
        together = np.flatnonzero(row).tolist()
        found.update((a, b) for i, a in enumerate(together) for b in together[i + 1 :])
    return found
