"""One iteration of a timetable over circuits: every operation as soon as its order, its inputs and its part allow.

A part must be lit before its traffic runs. To light it, the parts that share a port with it must go: the change
starts when they are idle and have been held as long as their phase demands, and takes the delay. `on_demand` it also
waits until the operation that needs the part is ready; `provisioned` it does not, but for pairs of phases that are
asked later. `rendezvous` and `scope` of a policy are questions of the published controller, which knows no order
ahead; here there are none to ask.
"""

from collections.abc import Sequence

from opusc.schedule.circuits import Change
from opusc.schedule.policy import Mode, Policy
from opusc.schedule.timetable import Timetable

__all__ = ["Run", "replay"]


class Run:
    """When each row starts and ends (ps), and the changes of parts. `uses`: (row, part, start, end), when recorded."""

    __slots__ = ("changes", "ends", "iteration", "starts", "uses")

    def __init__(self) -> None:
        self.iteration = 0
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.changes: list[Change] = []
        self.uses: list[tuple[int, int, int, int]] = []


def replay(table: Timetable, policy: Policy, delay: int, *, record: bool = False) -> Run:
    run = Run()
    ends, starts = run.ends, run.starts
    lights = None if policy.mode is Mode.ALL_LINKS else _Lights(table, policy, delay, run, record)
    for _, _, before, route, times, total in table.rows:
        time = 0
        for row in before:
            if ends[row] > time:
                time = ends[row]
        starts.append(time)
        if lights is None or route < 0 or not table.switched[route]:
            ends.append(time + total)
        else:
            ends.append(lights.use(len(ends), route, times, time))
        if record and route >= 0 and (lights is None or not table.switched[route]):
            at = time
            for part, took in zip(table.routes[route], times, strict=True):
                run.uses.append((len(starts) - 1, part, at, at + took))
                at += took
    run.iteration = max(ends, default=0)
    return run


class _Lights:
    """Which parts hold, since when, until when they are used, and when those that do not hold went."""

    def __init__(self, table: Timetable, policy: Policy, delay: int, run: Run, record: bool) -> None:
        self.table, self.delay, self.run, self.record = table, delay, run, record
        self.early, self.later = policy.mode is Mode.PROVISIONED, policy.later
        count = len(table.parts)
        self.held = [False] * count
        for part in table.held:
            self.held[part] = True
        self.lit, self.idle, self.gone = [0] * count, [0] * count, [0] * count

    def use(self, row: int, route: int, times: tuple[int, ...], time: int) -> int:
        stage = self.table.rows[row][0]
        for part, took in zip(self.table.routes[route], times, strict=True):
            start = time
            if part >= 0:
                if not self.held[part]:
                    self._light(part, stage, time)
                start = max(time, self.lit[part])
                self.idle[part] = max(self.idle[part], start + took)
            time = start + took
            if self.record:
                self.run.uses.append((row, part, start, time))
        return time

    def _light(self, part: int, stage: int, asked: int) -> None:
        drained, going = 0, []
        for other in self.table.conflicts[part]:
            if self.held[other]:
                going.append(other)
                drained = max(drained, self.idle[other], self.lit[other] + self.table.holds[other])
            else:
                drained = max(drained, self.gone[other])
        if self.early and not (self.later and self._later(part, going or self.table.conflicts[part])):
            asked = drained
        else:
            drained = max(drained, asked)
        for other in going:
            self.held[other], self.gone[other] = False, drained
        self.held[part] = True
        lit = drained + self.delay
        self.lit[part] = lit
        names = self.table.parts
        went = frozenset(names[other] for other in going)
        self.run.changes.append(Change(stage, asked, drained, lit, went, frozenset((names[part],))))

    def _later(self, part: int, before: Sequence[int]) -> bool:
        """Whether the part follows one (or where all have gone already, may have followed one) on demand only."""
        names = self.table.parts
        return any(frozenset((names[part].phase, names[other].phase)) in self.later for other in before)
