"""The ways in which one job can lie on its ports: phases that take turns, or phases that are packed.

All ways of a job do the same operations. `links`, the iteration with every link present, is that of the phases that
take turns, each of which has all ports: packing is an answer to switching, so what it costs counts as overhead.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from opusc.diagnostics import Diagnostics
from opusc.model.entities import Job, Packed
from opusc.plan.build import build_plan
from opusc.plan.packing import packed_phases
from opusc.plan.plan import Directions, Plan
from opusc.schedule.carriers import names_of
from opusc.schedule.circuits import Change, Part, join_of, ring_of
from opusc.schedule.job import Setting, setting
from opusc.schedule.operations import Program, Workload
from opusc.schedule.policy import ALL_LINKS, Policy
from opusc.schedule.simulation import Result, simulate
from opusc.schedule.timeline import Activity, Interval, with_waiting

__all__ = ["Pack", "TurnsTooSlowlyError", "Variant", "packed", "redrawn", "steady", "variant_of"]


#: Phases that get NIC ports of their own, each with how many (None: as the planner shares them out).
Pack = Mapping[str, int | None]

#: The operations, rates and circuits of a plan; None when the sink says why not.
Make = Callable[[Plan, Diagnostics], Setting | None]


class TurnsTooSlowlyError(ValueError):
    """A pipeline that holds one direction at a time has no gap as long as a change takes; `delay` in ps."""

    def __init__(self, delay: int) -> None:
        super().__init__(f"no gap of {delay} ps")
        self.delay = delay

    def explain(self, job: Job, sink: Diagnostics) -> None:
        """As an error of the program."""
        sink.error(
            "OPUS439",
            f"a change of {self.delay / 10**9:,g} ms takes longer than this pipeline has to turn round",
            job.at("pack"),
            "here a chain holds one direction at a time",
            notes=["between its last message ahead and its first one back a stage computes; the change must fit in"],
            help="leave out `pack`, or give the chain a port for each direction",
        )


@dataclass(frozen=True)
class Variant:
    """A plan, and how its iteration runs. `base` is the setting of the phases that take turns (the same as `setting`
    where nothing is packed), `make` what gave it."""

    plan: Plan
    setting: Setting
    base: Setting
    make: Make

    @property
    def packs(self) -> tuple[str, ...]:
        """The phases that have ports to themselves."""
        names = packed_phases(self.plan.model.job)
        return tuple(phase.name for phase in self.plan.phases if phase.name in names and phase.instances)

    @property
    def stated(self) -> str:
        """What a program says to have this plan; "" where phases take turns as they are written."""
        job = self.plan.model.job
        rings = [f"phase {p.name} {{ topology = ring {{ one_way = true }} }}" for p in job.phases if p.topology.one_way]
        return ", ".join([*rings, *([self.stated_packing] if self.stated_packing else [])])

    @property
    def stated_packing(self) -> str:
        """The part of it that packs."""
        job = self.plan.model.job
        phases = [p.phase if p.ports is None else f"{p.phase} {{ ports = {p.ports} }}" for p in job.pack]
        static = ["policy = static"] if job.policy == "static" else []
        return ", ".join([*static, *([f"pack = [{', '.join(phases)}]"] if phases else [])])

    @property
    def one_way(self) -> tuple[str, ...]:
        """The phases whose rings run one way on every port."""
        return tuple(phase.name for phase in self.plan.phases if phase.spec.topology.one_way)

    @property
    def fixed(self) -> bool:
        """Whether nothing ever changes."""
        return len(self.plan.exclusions) == 0

    @property
    def turning(self) -> bool:
        """Whether the only changes are those of pipelines that turn round: published operations, packed."""
        return not self.fixed and self.setting.network is None and bool(self.packs)

    @cached_property
    def links(self) -> Result:
        """An iteration with every link present, as with packet switches, in the order that is written."""
        return simulate(self.base.program, ALL_LINKS, record=True)

    def reference(self, workload: Workload) -> Result:
        """An iteration with every link present in another order; at the rates of one-way rings, if those are faster."""
        settings = (self.base, self.setting) if self.one_way else (self.base,)
        return min((simulate(s.lower(workload), ALL_LINKS) for s in settings), key=lambda result: result.iteration)

    def run(self, program: Program, policy: Policy, delay: int, *, record: bool = False) -> Result | None:
        """An iteration on these circuits; None where a pipeline cannot turn round in time."""
        if self.fixed:
            return simulate(program, ALL_LINKS, record=record)
        if self.turning:
            return _turning(self, simulate(program, ALL_LINKS, record=True), program, delay)
        return simulate(program, policy, delay, record=record)

    @cached_property
    def start(self) -> frozenset[Part]:
        """The parts that hold when an iteration begins."""
        table = self.setting.program.timetable
        if table is not None:
            free = [part for part, others in zip(table.parts, table.conflicts, strict=True) if not others]
            return frozenset(free) | frozenset(table.parts[at] for at in table.held)
        if self.turning:
            return frozenset(part for part in self.indices if part.step in (-1, _step_ahead(self.plan)))
        if self.fixed:
            return frozenset(self.indices)
        return frozenset(ring_of(stage) for stage in range(self.plan.model.job.parallelism.pp))

    @cached_property
    def indices(self) -> Mapping[Part, int]:
        """The numbers of the plan's parts, by the names that schedules use."""
        return {name: index for index, name in enumerate(names_of(self.plan))}

    def exclusive(self, one: Part, other: Part) -> bool:
        return self.indices[other] in self.plan.excluded_with[self.indices[one]]


def variant_of(plan: Plan, sink: Diagnostics, make: Make = setting) -> Variant | None:
    """The plan as it is; None when the sink says why there is no time model for it."""
    if not packed_phases(plan.model.job):
        own = make(plan, sink)
        return None if own is None else Variant(plan, own, own, make)
    apart = _planned(plan, {}, None)
    base = make(apart, sink) if isinstance(apart, Plan) else None
    return None if base is None else _packed(plan, base, sink, make)


def packed(
    of: Variant, pack: Pack, *, static: bool = False, one_way: Collection[str] = ()
) -> Variant | tuple[str, ...]:
    """The same job with these phases packed (`static`: all others too, and no change at all) and the rings of those
    phases one way; or why it cannot be."""
    made = _planned(of.plan, pack, "static" if static else of.plan.model.job.policy, one_way)
    if not isinstance(made, Plan):
        return made
    sink = Diagnostics()
    found = _packed(made, of.base, sink, of.make)
    return found if found is not None else tuple(d.message for d in sink)


def _planned(plan: Plan, wanted: Pack, policy: str | None, one_way: Collection[str] = ()) -> Plan | tuple[str, ...]:
    job = plan.model.job
    phases = tuple(
        replace(p, topology=replace(p.topology, one_way=True)) if p.name in one_way else p for p in job.phases
    )
    pack = tuple(Packed(phase=name, ports=ports, span=job.span) for name, ports in wanted.items())
    sink = Diagnostics()
    made = build_plan(replace(plan.model, job=replace(job, pack=pack, policy=policy, phases=phases)), sink)
    return made if made is not None else tuple(note for d in sink for note in (d.notes or (d.message,)))


def _packed(plan: Plan, base: Setting, sink: Diagnostics, make: Make) -> Variant | None:
    own = make(plan, sink)
    if own is None:
        return None
    together = all(plan.parts[a].phase == plan.parts[b].phase for a, b in plan.exclusions.tolist())
    if base.network is None and together:  # the published operations, at the rates of the ports that each phase gets
        own = replace(base, rates=own.rates)
    return Variant(plan, own, base, make)


# --- iterations that repeat -----------------------------------------------------------------------


def steady(variant: Variant, result: Result) -> tuple[frozenset[Part], tuple[Change, ...]]:
    """The parts that hold when an iteration begins, and its changes, once iterations follow each other.

    A simulated iteration begins with the rings. Where it ends with other parts, the next one begins with those: then
    some changes have nothing left to do, and every part is lit no later than simulated.
    """
    changes = sorted(result.changes, key=lambda change: change.drained)
    end = set(variant.start)
    for change in changes:
        end = (end - change.went) | change.came
    if end == variant.start:
        return variant.start, tuple(changes)
    held, found = set(end), []
    for change in changes:
        coming = change.came - held
        going = {part for part in held - change.came if any(variant.exclusive(part, other) for other in coming)}
        going |= change.went & held
        if coming or going:
            found.append(replace(change, went=frozenset(going), came=frozenset(coming)))
        held = (held - going) | coming
    return frozenset(end), tuple(found)


def redrawn(result: Result, changes: Sequence[Change]) -> Result:
    """The result with other changes, also in its timelines."""
    lanes = []
    for stage, lane in enumerate(result.timelines):
        kept = [i for i in lane if i.activity not in (Activity.SWITCHING, Activity.WAITING)]
        mine = [c for c in changes if stage in c.footprint]
        kept += [Interval(Activity.SWITCHING, c.drained, c.lit, str(c)) for c in mine]
        lanes.append(tuple(with_waiting(kept, result.iteration)))
    return replace(result, changes=tuple(changes), timelines=tuple(lanes))


# --- pipelines that turn round --------------------------------------------------------------------


def _turning(variant: Variant, result: Result, program: Program, delay: int) -> Result | None:
    """The iteration with the changes of a chain that holds one direction at a time.

    Every change starts when the circuits in its way are idle for the rest of that direction. None when one of them is
    not lit before its first use, or not back before the next iteration: then the iteration would take longer.
    """
    ahead = _step_ahead(variant.plan)
    lanes = tuple(
        tuple(_directed(interval, stage, program, ahead) for interval in lane)
        for stage, lane in enumerate(result.timelines)
    )
    uses: dict[Part, list[Interval]] = {}
    for interval in (i for lane in lanes for i in lane if i.part is not None):
        uses.setdefault(interval.part, []).append(interval)  # type: ignore[arg-type]
    held = set(variant.start)
    changes: list[Change] = []
    turned = sorted((part for part in uses if part not in held), key=lambda p: (min(i.start for i in uses[p]), p))
    back = sorted(part for part in held if part.step >= 0)
    for part, due in [*((p, min(i.start for i in uses[p])) for p in turned), *((p, result.iteration) for p in back)]:
        if part in held:
            continue
        going = {other for other in held if variant.exclusive(part, other)}
        before = [i.end for other in going for i in uses.get(other, ()) if i.end <= due]
        since = [change.lit for change in changes if change.came & going]
        since += [c.drained for c in changes if any(variant.exclusive(part, other) for other in c.went)]
        idle = max([0, *before, *since])
        if idle + delay > due or any(idle < i.end and i.start < due for other in going for i in uses.get(other, ())):
            return None
        held = (held - going) | {part}
        changes.append(Change(part.stages[0], idle, idle, idle + delay, frozenset(going), frozenset((part,))))
    changes.sort(key=lambda change: change.drained)
    return redrawn(replace(result, timelines=lanes), changes)


def _step_ahead(plan: Plan) -> int:
    """The step in which the chain's light goes from a stage to the next."""
    phase = next(phase for phase in plan.phases if phase.name == "pp")
    first = phase.instances[0].shape.steps[0][0].directions
    return 0 if first is Directions.FORWARD else 1


def _directed(interval: Interval, stage: int, program: Program, ahead: int) -> Interval:
    """The interval with the part that it uses, by direction."""
    if interval.activity is Activity.DP:
        return replace(interval, part=ring_of(stage))
    if interval.activity is not Activity.PP:
        return interval
    own = program.stages[stage]
    peer = own.peers[own.names.index(interval.what)]
    step = ahead if peer > stage else 1 - ahead
    return replace(interval, part=Part("pp", join_of(stage, peer).stages, step))
