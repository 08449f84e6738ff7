"""Event simulation of one training iteration over pipeline stages.

Units of a rank: one compute stream and one communication stream, each running one operation at a time;
receives need neither. When a unit falls free it takes the first ready operation in the workload's
order. Ranks that behave alike are folded: one rank stands for all tensor-parallel ranks of a stage,
and one *cohort* for all members of a data-parallel ring that act at the same moment. Under the
published protocol a ring has two cohorts (see `Rendezvous.EVERY_COLLECTIVE`), else one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from opusc.schedule.circuits import Change, Circuits, Part, join_of, ring_of
from opusc.schedule.operations import COMPUTE, INSIDE, RECEIVE, RING, Program
from opusc.schedule.policy import Mode, Policy, Rendezvous, Scope
from opusc.schedule.replay import replay
from opusc.schedule.timeline import Activity, Interval, lanes, with_waiting
from opusc.schedule.timetable import Timetable

__all__ = ["Result", "StalledError", "changes_on_critical_path", "simulate"]


@dataclass(frozen=True, slots=True)
class Result:
    """Times in picoseconds. `timelines[s]` is filled when the simulation was asked to record; it
    shows the cohort that votes last. `exposed[s]` is the iteration minus stage s's compute."""

    iteration: int
    exposed: tuple[int, ...]
    changes: tuple[Change, ...]
    traffic_order: tuple[tuple[Part, ...], ...]
    timelines: tuple[tuple[Interval, ...], ...]


class StalledError(RuntimeError):
    """Operations are left that can never start."""


#: For each stage, the parts that its traffic uses, one entry per operation.
Order = Sequence[Sequence[Part]]


def simulate(
    program: Program, policy: Policy, delay: int = 0, *, order: Order | None = None, record: bool = False
) -> Result:
    """Run one iteration; `delay` is what a change costs from drained to lit.

    `order[s]` is the order in which stage s uses parts, which tells a provisioned stage what to ask for
    next. Without one it is taken from an on-demand run, as the published tool does.
    """
    if delay < 0:
        raise ValueError("the reconfiguration delay is negative")
    if program.timetable is not None:
        return _over_parts(program, program.timetable, policy, delay, record)
    if policy.mode is Mode.PROVISIONED and order is None:
        order = simulate(program, replace(policy, mode=Mode.ON_DEMAND), delay).traffic_order
    run = _Run(program, policy, delay, order if policy.mode is Mode.PROVISIONED else None, record)
    return run.result()


def _over_parts(program: Program, table: Timetable, policy: Policy, delay: int, record: bool) -> Result:
    """A program whose circuits are the parts of a plan, in the order of its timetable."""
    run = replay(table, policy, delay, record=record)
    compute = [sum(d for k, d in zip(s.kinds, s.durations, strict=True) if k == COMPUTE) for s in program.stages]
    orders: list[list[Part]] = [[] for _ in program.stages]
    if record:
        for row, part, _, _ in run.uses:
            if part >= 0:
                orders[table.rows[row][0]].append(table.parts[part])
    return Result(
        run.iteration,
        tuple(run.iteration - c for c in compute),
        tuple(run.changes),
        tuple(map(tuple, orders)),
        lanes(program, table, run) if record else (),
    )


def changes_on_critical_path(program: Program, policy: Policy, delay: int, step: int = 10**6) -> int:
    """How many delays the iteration grows by per delay added: the slope just above `delay`."""
    here = simulate(program, policy, delay).iteration
    there = simulate(program, policy, delay + step).iteration
    return (2 * (there - here) + step) // (2 * step)


@dataclass(slots=True, eq=False)
class _Rank:
    """The state of one cohort of one stage."""

    stage: int
    cohort: int
    missing: list[int]
    compute: list[int] = field(default_factory=list)
    traffic: list[int] = field(default_factory=list)
    computing: bool = False
    communicating: bool = False
    rounds: int = 0  # ring collectives finished
    used: list[Part] = field(default_factory=list)


@dataclass(slots=True)
class _Round:
    """One collective on one ring: who has voted, who takes part with which operation."""

    voted: set[int] = field(default_factory=set)
    joined: dict[int, int] = field(default_factory=dict)
    started: bool = False
    left: int = 0


_Event = tuple[int, int, int, int, int]  # time, tie-breaker, stage (-1: controller), cohort, operation


class _Run:
    def __init__(self, program: Program, policy: Policy, delay: int, order: Order | None, record: bool) -> None:
        self.program, self.policy, self.order = program, policy, order
        self.switched = policy.mode is not Mode.ALL_LINKS
        voting = self.switched and policy.rendezvous is Rendezvous.EVERY_COLLECTIVE
        self.cohorts = min(2, program.ring_members) if voting else 1
        self.circuits = Circuits(len(program.stages), delay, whole_fabric=policy.scope is Scope.FABRIC)
        self.now, self.ties = 0, 0
        self.events: list[_Event] = []
        self.rounds: list[dict[int, _Round]] = [{} for _ in program.stages]
        self.refused: list[_Rank] = []
        self.log: list[tuple[int, Activity, int, int, str]] | None = [] if record else None
        self.ranks = [
            [_Rank(s, c, list(stage.waits)) for c in range(self.cohorts)] for s, stage in enumerate(program.stages)
        ]
        self.left = sum(len(stage.names) for stage in program.stages) * self.cohorts

    # --- the loop

    def result(self) -> Result:
        everyone = [rank for ranks in self.ranks for rank in ranks]
        for rank in everyone:
            for i, missing in enumerate(rank.missing):
                if not missing:
                    self._ready(rank, i)
        for stage, parts in enumerate(self.order or ()):
            ahead = join_of(stage, stage + 1)
            if parts and parts[0] == ahead:
                self._ask(stage, ahead)
        for rank in everyone:
            self._issue(rank)
        while self.left:
            if not self.events:
                for rank in everyone:
                    self._issue(rank)
                if not self.events:
                    raise StalledError(self._stalled())
                continue
            self.now, _, stage, cohort, i = heappop(self.events)
            if stage < 0:
                self._wake()
            else:
                self._complete(self.ranks[stage][cohort], i)
        compute = [
            sum(d for k, d in zip(s.kinds, s.durations, strict=True) if k == COMPUTE) for s in self.program.stages
        ]
        return Result(
            self.now,
            tuple(self.now - c for c in compute),
            tuple(self.circuits.changes),
            tuple(tuple(ranks[0].used) for ranks in self.ranks),
            self._timelines(),
        )

    def _complete(self, rank: _Rank, i: int) -> None:
        stage = self.program.stages[rank.stage]
        kind = stage.kinds[i]
        if kind == COMPUTE:
            rank.computing = False
        elif kind != RECEIVE:
            rank.communicating = False
        if kind >= RING:
            self._used(rank, kind, stage.peers[i])
        self.left -= 1
        missing = rank.missing
        for child in stage.children[i]:
            missing[child] -= 1
            if not missing[child]:
                self._ready(rank, child)
        self._issue(rank)

    def _ready(self, rank: _Rank, i: int) -> None:
        kind = self.program.stages[rank.stage].kinds[i]
        if kind == COMPUTE:
            heappush(rank.compute, i)
        elif kind != RECEIVE:
            heappush(rank.traffic, i)

    def _issue(self, rank: _Rank) -> None:
        if rank.compute and not rank.computing:
            i = heappop(rank.compute)
            rank.computing = True
            duration = self.program.stages[rank.stage].durations[i]
            self._at(self.now + duration, rank.stage, rank.cohort, i)
            if self.log is not None:
                self._note(rank, Activity.COMPUTE, self.now, self.now + duration, i)
        if rank.communicating or not rank.traffic:
            return
        kinds = self.program.stages[rank.stage].kinds
        passed: list[int] = []
        ring_refused = False  # then the others of this rank's ring would be refused too
        while rank.traffic and not rank.communicating:
            i = heappop(rank.traffic)
            kind = kinds[i]
            if kind == INSIDE:
                self._inside(rank, i)
            elif kind == RING:
                if ring_refused or not self._ring(rank, i):
                    ring_refused = True
                    passed.append(i)
            elif not self._send(rank, i):
                passed.append(i)
        for i in passed:
            heappush(rank.traffic, i)

    # --- traffic

    def _inside(self, rank: _Rank, i: int) -> None:
        rank.communicating = True
        end = self.now + self.program.stages[rank.stage].durations[i]
        self._at(end, rank.stage, rank.cohort, i)
        if self.log is not None:
            self._note(rank, Activity.TP, self.now, end, i)

    def _ring(self, rank: _Rank, i: int) -> bool:
        """Vote for, start or take part in the next collective of the stage's ring."""
        stage = rank.stage
        turn = self.rounds[stage].setdefault(rank.rounds, _Round(left=self.cohorts))
        turn.voted.add(rank.cohort)
        if len(turn.voted) < self.cohorts:
            return False
        if not turn.started:
            if self.switched and not self._configured(rank, ring_of(stage)):
                return False
            turn.started = True
            self.circuits.collective_starts(stage)
        rank.communicating = True
        turn.joined[rank.cohort] = i
        if len(turn.joined) == self.cohorts:
            lit = self.circuits.lit(ring_of(stage)) if self.switched else 0
            start = max(self.now, lit)
            end = start + self.program.stages[stage].durations[i]
            for cohort, operation in turn.joined.items():
                self._at(end, stage, cohort, operation)
            if self.log is not None:
                self._note(self.ranks[stage][-1], Activity.DP, start, end, i)
        return True

    def _send(self, rank: _Rank, i: int) -> bool:
        stage = self.program.stages[rank.stage]
        peer = stage.peers[i]
        part = join_of(rank.stage, peer)
        start = self.now
        if self.switched:
            if not self._configured(rank, part):
                return False
            start = max(start, self.circuits.lit(part))
        rank.communicating = True
        end = start + stage.durations[i]
        self.circuits.send_ends(part, end)
        self._at(end, rank.stage, rank.cohort, i)
        self._at(end, peer, rank.cohort, stage.lands[i])
        if self.log is not None:
            self._note(rank, Activity.PP, start, end, i)
        return True

    # --- circuits

    def _configured(self, rank: _Rank, part: Part) -> bool:
        """The part holds or is being set; else ask for it, and come back later if that is refused."""
        if self.circuits.holds(part) or self._ask(rank.stage, part):
            return True
        if rank not in self.refused:
            self.refused.append(rank)
        return False

    def _ask(self, stage: int, part: Part) -> bool:
        accepted = self.circuits.ask(stage, part, self.now)
        if accepted and self.circuits.drained > self.now:
            self._at(self.circuits.drained, -1, 0, 0)
        return accepted

    def _wake(self) -> None:
        self.circuits.retry(self.now)
        refused, self.refused = self.refused, []
        for rank in refused:
            self._issue(rank)

    def _used(self, rank: _Rank, kind: int, peer: int) -> None:
        """Traffic over circuits has ended: free the ring, and ask for what the stage needs next as
        soon as its last cohort is through."""
        stage = rank.stage
        rank.used.append(ring_of(stage) if kind == RING else join_of(stage, peer))
        if kind == RING:
            turn = self.rounds[stage][rank.rounds]
            rank.rounds += 1
            turn.left -= 1
            if not turn.left:
                del self.rounds[stage][rank.rounds - 1]
                self.circuits.collective_ends(stage)
                if self.refused or self.circuits.pending:
                    self._at(self.now, -1, 0, 0)
        if self.order is None:
            return
        done = min(len(other.used) for other in self.ranks[stage])
        if done == len(rank.used) and done < len(self.order[stage]):
            part = self.order[stage][done]
            if part != self.order[stage][done - 1] and not self.circuits.holds(part):
                self._ask(stage, part)

    # --- bookkeeping

    def _at(self, time: int, stage: int, cohort: int, i: int) -> None:
        self.ties += 1
        heappush(self.events, (time, self.ties, stage, cohort, i))

    def _note(self, rank: _Rank, activity: Activity, start: int, end: int, i: int) -> None:
        if self.log is not None and rank.cohort == self.cohorts - 1:
            self.log.append((rank.stage, activity, start, end, self.program.stages[rank.stage].names[i]))

    def _stalled(self) -> str:
        for rank in (rank for ranks in self.ranks for rank in ranks):
            stage = self.program.stages[rank.stage]
            if rank.traffic:
                return f"stage {rank.stage}: {stage.names[rank.traffic[0]]} never gets its circuit"
        waiting = next(
            f"stage {s}: {self.program.stages[s].names[i]}"
            for s, ranks in enumerate(self.ranks)
            for i, missing in enumerate(ranks[0].missing)
            if missing
        )
        return f"{waiting} waits for something that never ends: its dependencies form a cycle"

    def _timelines(self) -> tuple[tuple[Interval, ...], ...]:
        if self.log is None:
            return ()
        lanes: list[list[Interval]] = [[] for _ in self.program.stages]
        for stage, activity, start, end, what in self.log:
            lanes[stage].append(Interval(activity, start, end, what))
        for change in self.circuits.changes:
            for stage in sorted(change.footprint):
                lanes[stage].append(Interval(Activity.SWITCHING, change.drained, change.lit, str(change)))
        return tuple(tuple(with_waiting(lane, self.now)) for lane in lanes)
