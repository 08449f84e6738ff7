"""What the reconfigurable simulator runs on the circuits of a plan: communicators, traces, early requests; or why not.

The simulator takes a collective of an axis to be a ring along the members of its communicator, and sends from a rank
to the rank at the same place of another stage.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opusc.backends.astra_matrices import Edges, Schedule
from opusc.backends.astra_traces import (
    Communicators,
    Steps,
    Writer,
    communicators_of,
    finished,
    kept,
    provisioning,
    steps_of,
)
from opusc.diagnostics import Diagnostics
from opusc.model.entities import Job
from opusc.plan.plan import Int32, Plan, PlannedPhase
from opusc.plan.ranks import dense_grid, grid_of, groups
from opusc.schedule.job import Setting, setting
from opusc.schedule.operations import Busy, Collective, Compute, Operation, Send

__all__ = ["Run", "busy", "operations_of", "run_of"]


@dataclass(frozen=True, eq=False)
class Run:
    """Without `steps` there are no traces; `reason` says why. `order[s]` is the communication of stage s as it ends.

    `refusals` are operations that cannot be said: the reason, and the phase that is to blame, if one is.
    """

    communicators: Communicators
    reason: str = ""
    steps: Steps | None = None
    order: tuple[tuple[tuple[int, int], ...], ...] = ()
    refusals: tuple[tuple[str, PlannedPhase | None], ...] = ()

    def requests(self, world: int) -> dict[int, dict[int, list[int]]]:
        """What each rank asks for early."""
        per_stage = world // max(len(self.order), 1)
        return {rank: provisioning(self.order[rank // per_stage], rank) for rank in range(world)}

    def size(self, world: int) -> int:
        """No less than the bytes of all traces: each counts as much as the last of its stage."""
        per_stage = world // max(len(self.steps or ()), 1)
        last = [
            (Writer(own, self.communicators), (stage + 1) * per_stage - 1) for stage, own in enumerate(self.steps or ())
        ]
        return per_stage * sum(len(chunk) for writer, rank in last for chunk in writer.file(rank))


def operations_of(plan: Plan) -> tuple[Setting | None, str]:
    """The operations of the plan's job, or why they are not known. Bytes and operations count as for `simulate`."""
    if plan.model.job.network is None:
        return None, f"job `{plan.model.job.name}` names no `model`, so its operations are not known"
    sink = Diagnostics()
    found = setting(plan, sink)
    return found, "" if found is not None else next(d.message for d in sink)


def busy(op: Operation, sizes: Mapping[str, int]) -> bool:
    """Whether an operation takes any time; `sizes` are the members of a group of each axis."""
    match op.work:
        case Compute(flops=flops, size=size):
            return flops > 0 or size > 0
        case Busy(duration=duration):
            return duration > 0
        case Collective(axis=axis, size=size):
            return size > 0 and sizes.get(axis, 2) > 1
    return True


def run_of(plan: Plan, found: Schedule, dark: int) -> Run:
    """The run of a plan that fits the format; `dark` is what a change takes (ps)."""
    made, reason = operations_of(plan)
    lists, refusals = _groups(plan, found, strict=made is not None)
    communicators = communicators_of(lists, plan.world)
    if made is None:
        return Run(communicators, reason)
    sizes = _sizes(plan)
    stages = [kept(ops, lambda op: busy(op, sizes)) for ops in made.workload.stages]
    refusals += list(_strange(plan, stages, communicators, found))
    if refusals:
        return Run(communicators, refusals=tuple(refusals))
    per_stage = plan.world // len(stages)
    steps = steps_of(stages, made, lambda a, b: (b - a) * per_stage)
    inside = frozenset(axis for axis, _ in lists if axis == "tp" or _inside(plan, axis))
    order = finished(made, steps, inside, dark)
    return Run(communicators, "", steps, tuple(map(tuple, order)))


# --- communicators -------------------------------------------------------------------------------


def _sizes(plan: Plan) -> dict[str, int]:
    """Members of a group of tensor parallelism and of each phase."""
    job = plan.model.job
    found = {phase.name: _members(job, phase.spec.axes).shape[1] for phase in plan.phases}
    return {**found, "tp": job.parallelism.tp}


def _members(job: Job, axes: tuple[str, ...]) -> Int32:
    return groups(grid_of(job, axes), axes)


def _inside(plan: Plan, name: str) -> bool:
    return any(phase.name == name and set(phase.spec.axes) <= {"tp"} for phase in plan.phases)


def _groups(
    plan: Plan, found: Schedule, *, strict: bool
) -> tuple[list[tuple[str, np.ndarray]], list[tuple[str, PlannedPhase | None]]]:
    """Members of the groups of each axis in ring order, one row a group; what has no ring, if anything runs on it."""
    job = plan.model.job
    lists: list[tuple[str, np.ndarray]] = []
    refusals: list[tuple[str, PlannedPhase | None]] = []
    if job.parallelism.tp > 1:
        lists.append(("tp", groups(dense_grid(job), ("tp",))))
    links = _keys(found.ring, plan.world)
    drawn = {part.phase for part in plan.parts}
    for phase in plan.phases:
        rows = _members(job, phase.spec.axes)
        if rows.shape[1] < 2 or phase.name == "tp" or "pp" in phase.spec.axes:
            continue
        if phase.index in drawn:
            ordered = _ring_order(rows, links, plan.world)
            if ordered is None and strict:
                word = phase.spec.topology.name
                refusals.append((f"its {word} has no ring of circuits over the members of a group", phase))
            lists.append((phase.name, rows if ordered is None else ordered))
        elif _inside(plan, phase.name):
            lists.append((phase.name, rows))
    return lists, refusals


def _keys(edges: Sequence[Edges], world: int) -> np.ndarray:
    """Links as source x world + target, sorted."""
    return np.sort(np.concatenate([e.source.astype(np.int64) * world + e.target for e in edges]))


def _ring_order(rows: np.ndarray, links: np.ndarray, world: int) -> np.ndarray | None:
    """Each group in an order in which every member has a link to the next, the last to the first; None without one."""
    turned = np.roll(rows, -1, axis=1)
    fits = np.isin(rows.astype(np.int64) * world + turned, links).all(axis=1)
    if fits.all():
        return rows
    found = rows.copy()
    held = set(links.tolist())
    for number in np.flatnonzero(~fits).tolist():
        order = _round(rows[number].tolist(), held, world)
        if order is None:
            return None
        found[number] = order
    return found


def _round(members: list[int], held: set[int], world: int) -> list[int] | None:
    """Along the links from the lowest member to its lowest neighbour, and on, never back."""
    order = [members[0]]
    while len(order) < len(members):
        ahead = [m for m in members if m not in order and order[-1] * world + m in held]
        if not ahead:
            return None
        order.append(ahead[0])
    return order if order[-1] * world + order[0] in held else None


# --- what cannot be said -------------------------------------------------------------------------


def _strange(
    plan: Plan, stages: Sequence[Sequence[Operation]], communicators: Communicators, found: Schedule
) -> Iterator[tuple[str, PlannedPhase | None]]:
    """Collectives of axes without a communicator, sends where no circuit leads; each kind once."""
    phases = {phase.name: phase for phase in plan.phases}
    told: set[object] = set()
    per_stage = plan.world // len(stages)
    for stage, ops in enumerate(stages):
        for op in ops:
            match op.work:
                case Collective(axis=axis) if axis not in communicators.of and axis not in told:
                    told.add(axis)
                    yield f"operation `{op.name}` of stage {stage} is a collective over `{axis}`", phases.get(axis)
                case Send(to=to, phase=name):
                    pair = (min(stage, to), max(stage, to))
                    if pair in told:
                        continue
                    told.add(pair)
                    if not _straight(found, stage, to, per_stage):
                        yield (
                            f"operation `{op.name}` sends from stage {stage} to stage {to}, "
                            "and no circuits join every rank to its peer there",
                            phases.get(name),
                        )


def _straight(found: Schedule, a: int, b: int, per_stage: int) -> bool:
    """Whether every rank of two stages has a link to the rank at the same place of the other one, both ways."""
    edges = found.join.get((min(a, b), max(a, b)))
    if edges is None:
        return False
    low, away = min(a, b) * per_stage, abs(b - a) * per_stage
    up = np.sort(edges.source[edges.target == edges.source + away])
    down = np.sort(edges.target[edges.source == edges.target + away])
    wanted = np.arange(low, low + per_stage)
    return np.array_equal(up, wanted) and np.array_equal(down, wanted)
