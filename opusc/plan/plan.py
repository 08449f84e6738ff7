"""The plan: every circuit of every part, as integers in arrays, with tables back to names and source.

Circuits are columns, sorted by part, then switch, then ingress; part p owns rows start[p] up to start[p + 1].
A part knows its phase, step and scope; a phase knows the groups it serves and how their links use the ports.
Nothing in a plan is enumerated over configurations: which parts may hold together follows from `exclusions`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opusc.model.entities import Model, PhaseSpec, SwitchKind
from opusc.plan.neighbours import Neighbour

__all__ = [
    "Cabling",
    "Circuits",
    "Directions",
    "Instances",
    "Int32",
    "Link",
    "Part",
    "Plan",
    "PlannedChange",
    "PlannedPhase",
    "Relays",
    "Routes",
    "Schedule",
    "Scoping",
    "Shape",
    "Switch",
    "Transfer",
]

Int32 = NDArray[np.int32]


@dataclass(frozen=True)
class Switch:
    """One optical circuit switch of the fabric.

    On a crossbar of radix N, position k (from 1) is ingress port k and egress port N + k. On an `any` matrix
    ports are the positions 1..N.
    """

    index: int
    name: str  # `rails.rail[3]`, `rails.rail[3].plane[1]`, `rails.rail[3].block[0]`, `rails` when all rails share it
    kind: SwitchKind
    rails: tuple[int, ...]
    plane: int
    block: int
    positions_used: int


@dataclass(frozen=True, eq=False)
class Cabling:
    """Where each NIC port ends: arrays of shape (GPUs, ports), -1 where a port has no cable.

    `switch` is an index into `Plan.switches`. `ingress` is the port that receives the light of the NIC
    port's transmitter, `egress` the one that feeds its receiver. With bidi optics on a crossbar exactly one
    of the two is set (the side it is on); with bidi optics on an `any` matrix both are the same number.
    """

    switch: Int32
    ingress: Int32
    egress: Int32
    regular: bool  # positions follow the in-order formula everywhere

    @property
    def ports(self) -> int:
        return int(self.switch.shape[1])


class Directions(StrEnum):
    """Which light a link carries from vertex v (leaving by `out_port`) and its neighbour w (by `in_port`)."""

    FORWARD = "forward"  # v to w
    BACKWARD = "backward"  # w to v
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Link:
    """One neighbour function and the NIC ports it uses: `out_port` at vertex v, `in_port` at its neighbour.

    Several copies of a topology have links that differ only in ports and `copy`.
    """

    neighbour: Neighbour
    out_port: int
    in_port: int
    directions: Directions
    copy: int = 0


@dataclass(frozen=True)
class Shape:
    """A topology among n vertices, spread over the ports: `steps[s]` are the links held in step s."""

    n: int
    steps: tuple[tuple[Link, ...], ...]
    copies: int
    fewest_steps: int  # lower bound on the number of steps with these ports
    named: bool  # every neighbour function is a formula (no Table)


@dataclass(frozen=True, eq=False)
class Instances:
    """All groups of a phase that have one shape, on every rail where they have one.

    Row i is one copy of the topology on one rail. Vertex v of row i is a domain; links that leave it start at
    GPU `exits[i, v]`, links that enter it end at GPU `entries[i, v]` (the same GPU unless a relay is needed).
    Arrays have shape (rows, n). `scope[i, v]` is the index, in the phase's `scopes`, of links that leave v,
    -1 where none does.
    """

    shape: Shape
    exits: Int32
    entries: Int32
    scope: Int32
    group: Int32  # (rows,): number of the group in its phase


class Scoping(StrEnum):
    """What one part of a phase covers."""

    STAGE = "stage"  # the groups of one pipeline stage
    JOIN = "join"  # the links between two pipeline stages
    JOB = "job"  # everything


@dataclass(frozen=True, eq=False)
class Routes:
    """Multi-hop traffic of a phase: vertex `source` reaches `target` through its neighbour `via` (columns)."""

    n: int
    source: Int32
    target: Int32
    via: Int32


@dataclass(frozen=True)
class PlannedPhase:
    index: int
    spec: PhaseSpec
    scoping: Scoping
    scopes: tuple[tuple[int, ...], ...]  # the pipeline stages of each scope; () for the whole job
    instances: tuple[Instances, ...]  # empty: every group lies inside one domain
    step_count: int
    group_count: int
    routes: tuple[Routes, ...] = ()
    ports: tuple[int, ...] = ()  # the NIC ports that it may use: all, unless it is packed

    @property
    def name(self) -> str:
        return self.spec.name


@dataclass(frozen=True, slots=True)
class Part:
    index: int
    phase: int
    step: int
    scope: int  # index into the phase's scopes
    name: str  # `dp[2]`, `pp[1-2]`, `ep[0] step 3`


@dataclass(frozen=True, eq=False)
class Circuits:
    """One row a circuit, sorted by part, switch, ingress. Unordered pairs (`any`, bidi) have ingress < egress."""

    part: Int32
    switch: Int32
    ingress: Int32
    egress: Int32
    start: NDArray[np.int64]  # (parts + 1,)

    def __len__(self) -> int:
        return int(self.part.shape[0])


@dataclass(frozen=True, eq=False)
class Relays:
    """Scale-up hops to another rail (columns): in `part`, traffic of `rank` to and from `peer` passes GPU `via`."""

    part: Int32
    rank: Int32
    peer: Int32
    via: Int32

    def __len__(self) -> int:
        return int(self.part.shape[0])


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One change of a schedule: the parts (by index) that go and come; their ports are dark from `begin` to `end` (ps
    since the iteration began)."""

    went: frozenset[int]
    came: frozenset[int]
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """One operation of the ranks of a stage over the circuits of a part, in ps since the iteration began."""

    stage: int
    operation: str
    part: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """What `policy = auto` decided: the parts that hold when an iteration begins, every change of it, and the traffic
    of each stage in order. Iterations of `period` ps follow each other; a change takes `delay` ps."""

    delay: int
    period: int
    start: frozenset[int]
    changes: tuple[PlannedChange, ...]
    transfers: tuple[Transfer, ...]


@dataclass(frozen=True)
class Plan:
    """The product of the compiler.

    `gpu_of_rank` maps each rank of the job to a GPU of the cluster (numbered node by node); `stage_of_rank`
    to its pipeline stage. `exclusions` are the pairs of parts (a < b, sorted) that share a port, so that a
    configuration is any set of parts of which no two are listed.
    """

    model: Model
    switches: tuple[Switch, ...]
    cabling: Cabling = field(compare=False)
    gpu_of_rank: Int32 = field(compare=False)
    stage_of_rank: Int32 = field(compare=False)
    phases: tuple[PlannedPhase, ...]
    parts: tuple[Part, ...]
    circuits: Circuits = field(compare=False)
    exclusions: Int32 = field(compare=False)  # (pairs, 2)
    relays: Relays = field(compare=False)
    assumptions: tuple[str, ...] = ()  # what the compiler took for granted, for people
    schedule: Schedule | None = None  # where the compiler chose one

    @property
    def world(self) -> int:
        return int(self.gpu_of_rank.shape[0])

    def rows(self, part: int) -> slice:
        """The rows of `circuits` that belong to a part."""
        return slice(int(self.circuits.start[part]), int(self.circuits.start[part + 1]))

    @cached_property
    def rank_of_gpu(self) -> Int32:
        """Rank on each GPU of the cluster, -1 where the job has none."""
        ranks = np.full(self.model.cluster.gpu_count, -1, dtype=np.int32)
        ranks[self.gpu_of_rank] = np.arange(self.world, dtype=np.int32)
        return ranks

    @cached_property
    def excluded_with(self) -> tuple[frozenset[int], ...]:
        """For each part, the parts it cannot hold together with."""
        sets: list[set[int]] = [set() for _ in self.parts]
        for a, b in self.exclusions.tolist():
            sets[a].add(b)
            sets[b].add(a)
        return tuple(frozenset(s) for s in sets)

    def compatible(self, parts: Iterable[int]) -> bool:
        """Whether these parts may hold together."""
        chosen = set(parts)
        return all(not (self.excluded_with[p] & chosen) for p in chosen)

    def part(self, phase: str, stages: Sequence[int] = (), step: int = 0) -> Part | None:
        """The part of a phase (by name) with this scope and step, or None if it has no circuits."""
        for part in self.parts:
            planned = self.phases[part.phase]
            if planned.name == phase and planned.scopes[part.scope] == tuple(stages) and part.step == step:
                return part
        return None
