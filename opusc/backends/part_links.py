"""What a drawing of a phase shows: its groups on one rail, and the lines between their vertices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opusc.backends.ends import ends_of
from opusc.model.entities import Optics
from opusc.plan.neighbours import targets
from opusc.plan.plan import Directions, Instances, Link, Part, Plan, PlannedPhase, Scoping
from opusc.plan.ranks import grid_of, groups, rail_of

__all__ = ["Lines", "View", "lines_of"]


@dataclass(frozen=True)
class Lines:
    """One group, or for joins one pipeline. Vertices are domains in rank order; for joins, pipeline stages."""

    number: int
    n: int
    ranks: Sequence[int]  # of each vertex, -1 where the GPU has none
    units: Sequence[int]  # node or domain of each vertex, as people count
    domains: Sequence[int]
    lines: tuple[tuple[int, int, int, int], ...]  # vertex, vertex, index of the kind, circuits
    ports: Mapping[tuple[int, int, int], tuple[str, ...]]  # switch ports of a line: `in 1 to out 36`

    @property
    def circuits(self) -> int:
        return sum(line[3] for line in self.lines)

    @property
    def stage_pairs(self) -> list[tuple[int, int]]:
        return [line[:2] for line in self.lines]


@dataclass(frozen=True)
class View:
    """One phase and step on one rail, in one scope or (joins) in several."""

    phase: PlannedPhase
    parts: tuple[Part, ...]
    stages: tuple[int, ...]  # of the first part
    rail: int
    unit: str  # what a vertex is called: node or domain
    kinds: tuple[Link, ...]  # what lines there are; those that differ in ports or direction
    groups: tuple[Lines, ...]
    circuits: int  # on this rail, counted in the plan
    everywhere: int  # on all rails


def lines_of(plan: Plan, phase: PlannedPhase, parts: Sequence[Part], rail: int | None) -> View | None:
    """Collect the links of some parts of one step; on the first rail that has any, when none is given."""
    rows = np.concatenate([np.arange(r.start, r.stop) for r in (plan.rows(p.index) for p in parts)])
    rails = ends_of(plan).rail[rows]
    chosen = int(rails.min()) if rail is None else rail
    here = int((rails == chosen).sum())
    if not here:
        return None
    cluster = plan.model.cluster
    builder = _Builder(plan, phase, parts, chosen)
    found = builder.joins() if phase.scoping is Scoping.JOIN else builder.groups()
    return View(
        phase=phase,
        parts=tuple(parts),
        stages=phase.scopes[parts[0].scope],
        rail=chosen,
        unit="node" if cluster.gpus_per_domain == cluster.gpus_per_node else "domain",
        kinds=tuple(builder.kinds),
        groups=tuple(found),
        circuits=here,
        everywhere=len(rows),
    )


class _Builder:
    def __init__(self, plan: Plan, phase: PlannedPhase, parts: Sequence[Part], rail: int) -> None:
        self.plan, self.phase, self.rail = plan, phase, rail
        self.step = parts[0].step
        self.scopes = {part.scope for part in parts}
        self.kinds: list[Link] = []
        self.known: dict[tuple[Link, int], list[int]] = {}
        self.per_domain = plan.model.cluster.gpus_per_domain
        self.bidi = plan.model.cluster.rail_nic.optics is Optics.BIDI

    def groups(self) -> list[Lines]:
        found = []
        for instances in self.phase.instances:
            for row in self._rows(instances):
                gpus = instances.exits[row]
                lines, ports = [], {}
                for a, b, link in self._links(instances, row):
                    kind = self._kind(link)
                    lines.append((a, b, kind, self._circuits(link)))
                    ports[a, b, kind] = self._ports(link, int(instances.exits[row, a]), int(instances.entries[row, b]))
                found.append(self._group(int(instances.group[row]), gpus, lines, ports))
        return sorted(found, key=lambda group: (group.number, group.ranks[0]))

    def joins(self) -> list[Lines]:
        """Pipelines: the lines between stages, on this rail."""
        lines: dict[int, list[tuple[int, int, int, int]]] = {}
        for instances in self.phase.instances:
            for row in self._rows(instances):
                for a, _, link in self._links(instances, row):
                    low, high = self.phase.scopes[int(instances.scope[row, a])]
                    line = (low, high, self._kind(link), self._circuits(link))
                    lines.setdefault(int(instances.group[row]), []).append(line)
        axes = self.phase.spec.axes
        ranks = groups(grid_of(self.plan.model.job, axes), axes)
        return [
            self._group(number, self.plan.gpu_of_rank[ranks[number]], lines[number], {}) for number in sorted(lines)
        ]

    def _rows(self, instances: Instances) -> list[int]:
        """Rows with a link in the chosen scopes that is on the chosen rail."""
        wanted = np.isin(instances.scope, np.array(sorted(self.scopes)))
        on_rail = rail_of(self.plan.model.job, instances.exits) == self.rail
        found: list[int] = np.flatnonzero((wanted & on_rail).any(axis=1)).tolist()
        return found

    def _links(self, instances: Instances, row: int) -> list[tuple[int, int, Link]]:
        if self.step >= len(instances.shape.steps):
            return []
        exits, scope, n = instances.exits[row], instances.scope[row], instances.shape.n
        rails = rail_of(self.plan.model.job, exits)
        return [
            (a, b, link)
            for link in instances.shape.steps[self.step]
            for a, b in enumerate(self._targets(link, n))
            if b >= 0 and int(scope[a]) in self.scopes and rails[a] == self.rail
        ]

    def _targets(self, link: Link, n: int) -> list[int]:
        if (link, n) not in self.known:
            self.known[link, n] = targets(link.neighbour, n).tolist()
        return self.known[link, n]

    def _group(
        self,
        number: int,
        gpus: np.ndarray,
        lines: list[tuple[int, int, int, int]],
        ports: Mapping[tuple[int, int, int], tuple[str, ...]],
    ) -> Lines:
        domains = (gpus // self.per_domain).tolist()
        return Lines(
            number=number,
            n=len(gpus),
            ranks=self.plan.rank_of_gpu[gpus].tolist(),
            units=domains,
            domains=domains,
            lines=tuple(lines),
            ports=ports,
        )

    def _kind(self, link: Link) -> int:
        """Lines are of one kind when they use the same ports in the same direction."""
        for index, kind in enumerate(self.kinds):
            same = (kind.out_port, kind.in_port, kind.directions, kind.copy)
            if same == (link.out_port, link.in_port, link.directions, link.copy):
                return index
        self.kinds.append(link)
        return len(self.kinds) - 1

    def _circuits(self, link: Link) -> int:
        return 2 if link.directions is Directions.BOTH and not self.bidi else 1

    def _ports(self, link: Link, a: int, b: int) -> tuple[str, ...]:
        """The switch ports of a line between two GPUs."""
        cabling = self.plan.cabling
        ends = [(cabling, a, link.out_port, b, link.in_port), (cabling, b, link.in_port, a, link.out_port)]
        if link.directions is not Directions.BOTH:
            ends = ends[:1] if link.directions is Directions.FORWARD else ends[1:]
        if self.bidi:
            one, other = (max(int(c.ingress[g, p]), int(c.egress[g, p])) for c, g, p, *_ in (ends[0], ends[-1]))
            return (f"{one} - {other}",)
        return tuple(f"{int(c.ingress[g, p])} to {int(c.egress[h, q])}" for c, g, p, h, q in ends)
