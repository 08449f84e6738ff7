"""How the circuits of a plan carry each phase: over which parts, in which steps, at what rate.

Members of a group in one scale-up domain are one vertex of its topology, and each of them has a copy of the
topology on its own rail. So a collective runs in levels: inside the domains at the scale-up rate, between them
over the circuits, each member with its share. One rank stands for all ranks of a stage; where groups of a stage
differ, the slowest counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from opusc.model.entities import Traffic
from opusc.plan.neighbours import targets
from opusc.plan.plan import Directions, Instances, Plan, PlannedPhase, Routes, Scoping, Shape
from opusc.schedule.circuits import Part
from opusc.schedule.timing import Accelerator, Algorithm, Rates, ring_time

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["INSIDE_DOMAIN", "Carrier", "Join", "Legs", "Network", "legs_of", "names_of", "network", "send_legs"]

_SECOND = 10**12

#: In place of a part: the time is spent inside scale-up domains.
INSIDE_DOMAIN = -1

#: Parts that an operation uses one after another, and the time on each (ps).
Legs = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Carrier:
    """A collective among `inside` members in each of `domains` domains.

    `rate` is bytes per second of one neighbour's circuits; `parts` the part of each step. `loads[k]` is (step,
    messages over the busiest circuit) for each leg of a direct exchange of one message between every two domains;
    empty where the topology is a ring.
    """

    inside: int
    domains: int = 1
    rate: int = 0
    parts: tuple[int, ...] = ()
    loads: tuple[tuple[int, Fraction], ...] = ()


@dataclass(frozen=True, slots=True)
class Join:
    """Point-to-point circuits between two stages. `hop`: some traffic first hops to another rail in its domain."""

    parts: tuple[int, ...]
    rate: int
    hop: bool


@dataclass(frozen=True, slots=True)
class Network:
    """Everything that traffic needs to know of the circuits.

    `conflicts[p]` are the parts that share a port with part p. `carriers` are listed by phase and stage: a phase
    that stays inside a domain has one without parts. `joins` are listed by (phase, lower stage, higher stage).
    `holds[p]` is how long part p stays once it is lit (ps); empty for no such demand.
    """

    parts: tuple[Part, ...]
    conflicts: tuple[tuple[int, ...], ...]
    carriers: Mapping[tuple[str, int], tuple[Carrier, ...]] = field(default_factory=dict)
    joins: Mapping[tuple[str, int, int], Join] = field(default_factory=dict)
    holds: tuple[int, ...] = ()


# --- from a plan ---------------------------------------------------------------------------------


def names_of(plan: Plan) -> tuple[Part, ...]:
    """The parts of a plan by the names that schedules use. Of two joins of the same stages, those of a ring of two,
    one leads back: their stages stand in the order of the plan."""
    stages = tuple(range(plan.model.job.parallelism.pp))
    found = []
    for part in plan.parts:
        phase = plan.phases[part.phase]
        step = part.step if phase.step_count > 1 else -1
        found.append(Part(phase.name, phase.scopes[part.scope] or stages, step))
    return tuple(found)


def network(plan: Plan, sizes: Mapping[str, int]) -> Network:
    """The network of a plan; `sizes[phase]` is the number of members of its groups."""
    stages = plan.model.job.parallelism.pp
    carriers: dict[tuple[str, int], tuple[Carrier, ...]] = {}
    joins: dict[tuple[str, int, int], Join] = {}
    for phase in plan.phases:
        if phase.scoping is Scoping.JOIN:
            joins.update(_joins(plan, phase))
        else:
            for stage in range(stages):
                carriers[phase.name, stage] = _carriers(plan, phase, stage, sizes[phase.name])
    conflicts = tuple(tuple(sorted(others)) for others in plan.excluded_with)
    holds = tuple(plan.phases[part.phase].spec.hold or 0 for part in plan.parts)
    return Network(names_of(plan), conflicts, carriers, joins, holds if any(holds) else ())


def _joins(plan: Plan, phase: PlannedPhase) -> dict[tuple[str, int, int], Join]:
    relayed = set(plan.relays.part.tolist())
    port = plan.model.cluster.rail_nic.rate // 8
    found: dict[tuple[str, int, int], Join] = {}
    pairs = {tuple(sorted(scope)) for scope in phase.scopes}
    for low, high in sorted(pairs):
        scopes = [n for n, scope in enumerate(phase.scopes) if set(scope) == {low, high}]
        parts = tuple(p.index for p in plan.parts if p.phase == phase.index and p.scope in scopes)
        copies = [i.shape.copies for i in phase.instances if any(bool((i.scope == n).any()) for n in scopes)]
        if parts:
            rate = port * min(copies)
            found[phase.name, low, high] = Join(parts, rate, any(part in relayed for part in parts))
    return found


def _carriers(plan: Plan, phase: PlannedPhase, stage: int, size: int) -> tuple[Carrier, ...]:
    """One for each way in which groups of the phase lie over the domains."""
    scope = next((n for n, s in enumerate(phase.scopes) if s in ((), (stage,))), -1)
    parts = {p.step: p.index for p in plan.parts if (p.phase, p.scope) == (phase.index, scope)}
    port = plan.model.cluster.rail_nic.rate // 8
    found: dict[Carrier, None] = {}
    outside: set[int] = set()
    for instances in phase.instances:
        chosen = instances.scope[:, 0] == scope
        if not chosen.any():
            continue
        outside.update(instances.group[chosen].tolist())
        shape = instances.shape
        steps = tuple(parts[step] for step in range(len(shape.steps)) if step in parts)
        turns = phase.spec.traffic is Traffic.REDUCTION and _is_ring(phase, shape)
        loads = () if turns else _loads(shape, _routes(phase, instances))
        found[Carrier(-(-size // shape.n), shape.n, port * shape.copies, steps, loads)] = None
    groups = phase.group_count if phase.scoping is Scoping.JOB else phase.group_count // len(phase.scopes)
    if len(outside) < groups:
        found[Carrier(size)] = None
    return tuple(found)


def _is_ring(phase: PlannedPhase, shape: Shape) -> bool:
    word = phase.spec.topology.name
    return word == "ring" or (shape.n == 2 and word in ("chain", "pairs"))


def _routes(phase: PlannedPhase, instances: Instances) -> Routes | None:
    return next((r for r in phase.routes if r.n == instances.shape.n), None)


def _loads(shape: Shape, relays: Routes | None) -> tuple[tuple[int, Fraction], ...]:
    """For a message between every two vertices: what the busiest circuit carries in each step, in order.

    A message that needs a link of an earlier step after one of a later step waits for the next pass through the
    steps. Links side by side share the load.
    """
    import numpy as np

    n = shape.n
    step_of, beside = np.full((n, n), -1), np.zeros((n, n), dtype=np.int64)
    for step, links in enumerate(shape.steps):
        for link in links:
            to = targets(link.neighbour, n)
            v = np.flatnonzero(to >= 0)
            for a, b, against in ((v, to[v], Directions.BACKWARD), (to[v], v, Directions.FORWARD)):
                if link.directions is against:
                    continue
                fresh = step_of[a, b] < 0
                step_of[a[fresh], b[fresh]] = step
                np.add.at(beside, (a, b), (step_of[a, b] == step).astype(np.int64))
    via = np.full((n, n), -1)
    if relays is not None:
        via[relays.source, relays.target] = relays.via
    at, target = (axis.ravel() for axis in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    at, target = at[at != target], target[at != target]
    turn, last = np.zeros(len(at), dtype=np.int64), np.full(len(at), -1)
    load: dict[int, NDArray[np.int64]] = {}
    while len(at):
        on = np.where(via[at, target] >= 0, via[at, target], target)
        step = step_of[at, on]
        turn = turn + (step < last)
        for number in np.unique(turn).tolist():
            carried = load.setdefault(number, np.zeros((n, n), dtype=np.int64))
            np.add.at(carried, (at[turn == number], on[turn == number]), 1)
        going = on != target
        at, target, turn, last = on[going], target[going], turn[going], step[going]
    found = []
    for number in sorted(load):
        busiest: dict[int, Fraction] = {}
        for a, b in zip(*np.nonzero(load[number]), strict=True):
            share = Fraction(int(load[number][a, b]), max(1, int(beside[a, b])))
            step_at = int(step_of[a, b])
            busiest[step_at] = max(share, busiest.get(step_at, Fraction(0)))
        found += [(step_at, busiest[step_at]) for step_at in sorted(busiest)]
    return tuple(found)


# --- times ---------------------------------------------------------------------------------------


def legs_of(carriers: Sequence[Carrier], algorithm: Algorithm, size: int, gpu: Accelerator, rates: Rates) -> Legs:
    """The parts and times of one collective, of the slowest carrier. `size` as `ring_time` takes it; the bytes that
    a member sends in all for an all-to-all, those of one block for an exchange."""
    return max((_legs(c, algorithm, size, gpu, rates) for c in carriers), key=lambda legs: sum(legs[1]))


def _legs(c: Carrier, algorithm: Algorithm, size: int, gpu: Accelerator, rates: Rates) -> Legs:
    between = size if algorithm in (Algorithm.ALL_GATHER, Algorithm.EXCHANGE) else size // c.inside
    first, last = _inside(c, algorithm, size, gpu, rates)
    parts: list[int] = []
    times: list[int] = []
    if first:
        parts.append(INSIDE_DOMAIN)
        times.append(first)
    if c.domains > 1:
        for part, time in _between(c, algorithm, between, gpu, rates):
            parts.append(part)
            times.append(time)
    if last:
        parts.append(INSIDE_DOMAIN)
        times.append(last)
    return tuple(parts), tuple(times)


def _inside(c: Carrier, algorithm: Algorithm, size: int, gpu: Accelerator, rates: Rates) -> tuple[int, int]:
    """Time inside the domains before and after the circuits are used."""
    k, rate, turn = c.inside, rates.scale_up_rate, rates.latency + rates.endpoint
    if k == 1:
        return 0, 0
    match algorithm:
        case Algorithm.ALL_GATHER:
            return 0, ring_time(algorithm, size * c.domains, k, rate, gpu, rates)
        case Algorithm.REDUCE_SCATTER:
            return ring_time(algorithm, size, k, rate, gpu, rates), 0
        case Algorithm.ALL_REDUCE:
            if c.domains == 1:
                return ring_time(algorithm, size, k, rate, gpu, rates), 0
            scatter = ring_time(Algorithm.REDUCE_SCATTER, size, k, rate, gpu, rates)
            return scatter, ring_time(Algorithm.ALL_GATHER, size // k, k, rate, gpu, rates)
        case Algorithm.ALL_TO_ALL:
            return size * (k - 1) * _SECOND // (k * rate) + turn, 0
        case Algorithm.EXCHANGE:
            return c.domains * (k - 1) * (size * _SECOND // rate + turn), 0


def _between(c: Carrier, algorithm: Algorithm, size: int, gpu: Accelerator, rates: Rates) -> list[tuple[int, int]]:
    """(part, time) between the domains, in order. A ring whose links are not all there at once moves every message
    one hop in as many legs as there are steps."""
    n = c.domains
    if c.loads:
        return _direct(c, algorithm, size, gpu, rates)
    match algorithm:
        case Algorithm.EXCHANGE:
            rounds, whole = n - 1, (n - 1) * (size * _SECOND // c.rate + rates.latency + rates.endpoint)
        case _:
            rounds = 2 * (n - 1) if algorithm is Algorithm.ALL_REDUCE else n - 1
            whole = ring_time(algorithm, size, n, c.rate, gpu, rates)
    if len(c.parts) == 1:
        return [(c.parts[0], whole)]
    return [(part, whole // rounds) for _ in range(rounds) for part in c.parts]


def _direct(c: Carrier, algorithm: Algorithm, size: int, gpu: Accelerator, rates: Rates) -> list[tuple[int, int]]:
    """Every two domains exchange a message over the circuits of each step in turn: a mesh, a rotor, relays."""
    n, turn = c.domains, rates.latency + rates.endpoint
    message = size if algorithm in (Algorithm.ALL_GATHER, Algorithm.EXCHANGE) else Fraction(size, n)
    reduced = rates.reduce_passes * Fraction(size, n) / gpu.memory_rate * _SECOND

    def leg(step: int, load: Fraction, reducing: bool) -> tuple[int, int]:
        wire = message * load / c.rate * _SECOND
        return c.parts[step], int(wire + (reduced * load if reducing else 0)) + turn

    scatter = [leg(step, load, True) for step, load in c.loads]
    gather = [leg(step, load, False) for step, load in c.loads]
    if algorithm is Algorithm.REDUCE_SCATTER:
        return scatter
    return scatter + gather if algorithm is Algorithm.ALL_REDUCE else gather


def send_legs(join: Join | None, size: int, rates: Rates) -> Legs:
    """One message between two stages; without a join it stays inside a domain."""
    inside = size * _SECOND // rates.scale_up_rate + rates.latency
    if join is None:
        return (INSIDE_DOMAIN,), (inside,)
    time = size * _SECOND // join.rate + rates.latency
    parts, times = join.parts, (time,) * len(join.parts)
    return ((INSIDE_DOMAIN, *parts), (inside, *times)) if join.hop else (parts, times)
