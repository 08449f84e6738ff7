"""Parts: the circuits of one phase and step in one scope, and which parts exclude each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opusc.arrays import distinct, distinct_rows
from opusc.diagnostics import Diagnostics
from opusc.model.entities import Cluster, Matrix, Optics
from opusc.plan.neighbours import targets
from opusc.plan.plan import (
    Cabling,
    Circuits,
    Directions,
    Instances,
    Int32,
    Link,
    Part,
    PlannedPhase,
    Scoping,
    Switch,
)
from opusc.source import Span

__all__ = ["Wiring", "circuits_and_parts", "exclusions", "part_name"]

Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class Wiring:
    """The fabric that links are drawn on."""

    cluster: Cluster
    switches: tuple[Switch, ...]
    cabling: Cabling

    @property
    def bidi(self) -> bool:
        return self.cluster.rail_nic.optics is Optics.BIDI

    @property
    def any(self) -> bool:
        return self.switches[0].kind.matrix is Matrix.ANY


@dataclass(frozen=True, eq=False)
class _Rows:
    """Circuits before they are sorted: columns of one length."""

    phase: Int32
    step: Int32
    scope: Int32
    switch: Int32
    ingress: Int32
    egress: Int32


class _Loose:
    """NIC ports that links need and that have no cable, told at once: a node that was forgotten is one mistake."""

    def __init__(self) -> None:
        self.ports: set[tuple[int, int]] = set()  # (GPU, port)
        self.phases: dict[str, Span] = {}

    def none_of(self, phase: PlannedPhase, link: Link, lower: Int32, upper: Int32, cabling: Cabling) -> bool:
        """Whether both ends of every link are cabled."""
        found = False
        for gpu, port in ((lower, link.out_port), (upper, link.in_port)):
            loose = gpu[cabling.switch[gpu, port] < 0].tolist()
            self.ports.update((each, port) for each in loose)
            found |= bool(loose)
        if found:
            self.phases.setdefault(phase.name, phase.spec.span)
        return not found

    def report(self, cluster: Cluster, sink: Diagnostics) -> None:
        names = [f"`{name}`" for name in self.phases]
        count, (first, port) = len(self.ports), min(self.ports)
        nodes = sorted({gpu // cluster.gpus_per_node for gpu, _ in self.ports})
        many = len(names) > 1
        phases = f"phase{'s' * many} {', '.join(names[:-1])}{' and ' * many}{names[-1]} need{'s' * (not many)}"
        where = f"port {port} of {_gpu_name(cluster, first)}"
        what = f"{where}, which has no cable" if count == 1 else f"{count:,} NIC ports without a cable; {where} is one"
        sink.error(
            "OPUS408",
            f"{phases} {what}",
            next(iter(self.phases.values())),
            f"of node{'s' * (len(nodes) > 1)} {_few(nodes)}",
            help="add the rows to the cabling, or leave nodes out with `nodes`",
        )


def _few(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:6]))
    return f"{shown} and {len(numbers) - 6:,} more" if len(numbers) > 6 else shown


def circuits_and_parts(
    phases: Sequence[PlannedPhase], wiring: Wiring, sink: Diagnostics
) -> tuple[Circuits, tuple[Part, ...]]:
    """Draw every link of every phase; number the parts by phase, scope and step."""
    drawn: list[_Rows] = []
    loose = _Loose()
    for phase in phases:
        for instances in phase.instances:
            for step, links in enumerate(instances.shape.steps):
                for link in links:
                    drawn += _draw(phase, step, link, instances, wiring, loose, sink)
    if loose.ports:
        loose.report(wiring.cluster, sink)
    columns = [
        np.concatenate([getattr(rows, name) for rows in drawn]) if drawn else np.zeros(0, np.int32)
        for name in ("phase", "step", "scope", "switch", "ingress", "egress")
    ]
    phase_of, step_of, scope_of, switch, ingress, egress = columns
    steps = max((phase.step_count for phase in phases), default=1)
    scopes = max((len(phase.scopes) for phase in phases), default=1)
    key = (phase_of.astype(np.int64) * scopes + scope_of) * steps + step_of
    keys, which = distinct(key)
    part_of = which.astype(np.int32)
    order = np.lexsort((ingress, switch, part_of))
    start = np.searchsorted(part_of[order], np.arange(len(keys) + 1))
    circuits = Circuits(part_of[order], switch[order], ingress[order], egress[order], start.astype(np.int64))
    parts = []
    for index, value in enumerate(keys.tolist()):
        planned = phases[value // (scopes * steps)]
        scope, step = value // steps % scopes, value % steps
        parts.append(Part(index, planned.index, step, scope, part_name(planned, scope, step)))
    return circuits, tuple(parts)


def part_name(phase: PlannedPhase, scope: int, step: int) -> str:
    """`dp[2]`, `pp[1-2]`, `ep[0] step 3`; a phase over the whole job has no brackets."""
    stages = phase.scopes[scope]
    name = phase.name if phase.scoping is Scoping.JOB else f"{phase.name}[{'-'.join(map(str, stages))}]"
    return name + (f" step {step}" if phase.step_count > 1 else "")


def _draw(
    phase: PlannedPhase,
    step: int,
    link: Link,
    instances: Instances,
    wiring: Wiring,
    loose: "_Loose",
    sink: Diagnostics,
) -> list[_Rows]:
    """The circuits of one link at every vertex of every instance."""
    to = targets(link.neighbour, instances.shape.n)
    vertex = np.flatnonzero(to >= 0)
    scope = instances.scope[:, vertex].ravel()
    kept = scope >= 0
    lower = instances.exits[:, vertex].ravel()[kept]
    upper = instances.entries[:, to[vertex]].ravel()[kept]
    scope = scope[kept]
    cabling = wiring.cabling
    if not len(scope) or not loose.none_of(phase, link, lower, upper, cabling):
        return []
    if not _joinable(phase, link, lower, upper, wiring, sink):
        return []
    switch = cabling.switch[lower, link.out_port]

    def rows(ingress: Int32, egress: Int32) -> _Rows:
        count = len(ingress)
        return _Rows(
            np.full(count, phase.index, np.int32), np.full(count, step, np.int32), scope, switch, ingress, egress
        )

    if wiring.bidi:
        a, b = cabling.ingress[lower, link.out_port], cabling.egress[upper, link.in_port]
        if wiring.any:
            return [rows(np.minimum(a, b), np.maximum(a, b))]
        # The end on side A is the ingress, whichever end that is.
        other = cabling.ingress[upper, link.in_port], cabling.egress[lower, link.out_port]
        return [rows(np.where(a >= 0, a, other[0]), np.where(a >= 0, b, other[1]))]
    found = []
    for ahead in (True, False):
        if link.directions is (Directions.BACKWARD if ahead else Directions.FORWARD):
            continue
        sender, receiver = (lower, upper) if ahead else (upper, lower)
        out, into = (link.out_port, link.in_port) if ahead else (link.in_port, link.out_port)
        ingress, egress = cabling.ingress[sender, out], cabling.egress[receiver, into]
        if wiring.any:
            ingress, egress = np.minimum(ingress, egress), np.maximum(ingress, egress)
        found.append(rows(ingress, egress))
    return found


def _joinable(phase: PlannedPhase, link: Link, lower: Int32, upper: Int32, wiring: Wiring, sink: Diagnostics) -> bool:
    """Whether both ends of every link are cabled to one switch, on sides that can be joined."""
    cabling = wiring.cabling
    a, b = cabling.switch[lower, link.out_port], cabling.switch[upper, link.in_port]
    apart = np.flatnonzero(a != b)
    if len(apart):
        at = int(apart[0])
        ends = [_gpu_name(wiring.cluster, int(gpu[at])) for gpu in (lower, upper)]
        names = [wiring.switches[int(s[at])].name for s in (a, b)]
        sink.error(
            "OPUS409",
            f"phase `{phase.name}` cannot join {ends[0]} on {names[0]} and {ends[1]} on {names[1]}",
            phase.spec.span,
            f"{len(apart)} such link{'s' * (len(apart) > 1)}",
            help="a circuit stays inside one switch: use fewer blocks, or keep each group inside one block",
        )
        return False
    if wiring.bidi and not wiring.any:
        one = (cabling.ingress[lower, link.out_port] >= 0) == (cabling.ingress[upper, link.in_port] >= 0)
        same = np.flatnonzero(one)
        if len(same):
            ends = [_gpu_name(wiring.cluster, int(gpu[same[0]])) for gpu in (lower, upper)]
            sink.error(
                "OPUS401",
                f"phase `{phase.name}` cannot join {ends[0]} and {ends[1]}: both ports are on one side of the switch",
                phase.spec.span,
                help="cable one of them to the other side, or use `matrix = any`",
            )
            return False
    return True


def _gpu_name(cluster: Cluster, gpu: int) -> str:
    return f"GPU {gpu % cluster.gpus_per_node} of node {gpu // cluster.gpus_per_node}"


def exclusions(circuits: Circuits, switches: Sequence[Switch]) -> Int32:
    """The pairs of parts (a < b, sorted) that use some port of some switch both: shape (pairs, 2)."""
    if not len(circuits):
        return np.zeros((0, 2), np.int32)
    span = 2 * max(switch.kind.radix for switch in switches) + 1
    base = circuits.switch.astype(np.int64) * span
    part_count = len(circuits.start) - 1
    # One entry a (port, part), ports sorted, parts sorted within a port.
    ports = np.concatenate([base + circuits.ingress, base + circuits.egress])
    entries = np.sort(ports * part_count + np.concatenate([circuits.part, circuits.part]))
    entries = entries[np.r_[True, entries[1:] != entries[:-1]]]
    port, part = entries // part_count, entries % part_count
    first = np.flatnonzero(np.r_[True, port[1:] != port[:-1]])
    length = np.diff(np.r_[first, len(port)])
    pairs: set[tuple[int, int]] = set()
    # Most ports serve the same few parts: collect the distinct sets, then their pairs.
    for size in distinct(length[length > 1])[0].tolist():
        rows = part[first[length == size][:, None] + np.arange(size)[None, :]]
        for together in distinct_rows(rows)[0].tolist():
            pairs.update((a, b) for i, a in enumerate(together) for b in together[i + 1 :])
    return np.array(sorted(pairs), dtype=np.int32).reshape(-1, 2)
