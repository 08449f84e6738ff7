"""Real switches of a rail, changed as `opusc push` does: read, changed, read back, put back where something fails."""

import asyncio
import threading
from collections.abc import Mapping, Sequence

from opusc.control.change import Goal, Station
from opusc.control.device import Patience, Session
from opusc.control.goals import Step, part_step
from opusc.control.push import Fate, Pusher
from opusc.control.serve.circuits import Delta, RailCircuits
from opusc.control.serve.rails import SwitchFailure
from opusc.plan.plan import Plan

__all__ = ["Real"]


class Real:
    """`stations` and `sessions` as `opusc push` makes them."""

    def __init__(
        self, plan: Plan, stations: Sequence[Station], sessions: Mapping[int, Session], patience: Patience
    ) -> None:
        self._plan, self._circuits = plan, RailCircuits(plan)
        self._stations = {
            rail: [station for station in stations if rail in station.switch.rails]
            for rail in range(len(plan.model.fabric.rails))
        }
        # A session takes one order at a time, and a chassis that serves several rails is one session.
        self._turns = {index: threading.Lock() for index in sessions}
        self._pusher = Pusher(stations, sessions, patience)

    async def change(self, delta: Delta) -> None:
        await asyncio.to_thread(self._change, delta)

    def _step(self, delta: Delta) -> Step:
        """The goals of a change; on a chassis that others share, those of the rail's own circuits."""
        name = ", ".join(self._plan.parts[part].name for part in delta.parts)
        stations = self._stations[delta.rail]
        step = part_step(self._plan, name, delta.parts, stations)
        goals = {}
        for station in stations:
            goal = step.goals.get(station.switch.index)
            if goal is not None and len(station.switch.rails) > 1:
                own = self._own(delta.rail, station)
                goal = Goal(goal.wanted & own, (goal.gone or frozenset()) & own)
            if goal is not None:
                goals[station.switch.index] = goal
        return Step(name, goals)

    def _own(self, rail: int, station: Station) -> frozenset[tuple[str, str]]:
        names, parts = station.names, range(len(self._plan.parts))
        rows = [row for part in parts for row in self._circuits.rows(rail, [part]).tolist()]
        return frozenset((names[a], names[b]) for switch, a, b in rows if switch == station.switch.index)

    def _change(self, delta: Delta) -> None:
        step = self._step(delta)
        known = {station.switch.index for station in self._stations[delta.rail]}
        for index in sorted({row[0] for row in delta.connect.tolist()} - known):
            raise SwitchFailure(f"{self._plan.switches[index].name} is none of the switches that `--switch` names")
        locks = [self._turns[index] for index in sorted(step.goals)]
        for lock in locks:
            lock.acquire()
        try:
            readings = self._pusher.read(step)
            result = self._pusher.apply(step, readings)
        finally:
            for lock in reversed(locks):
                lock.release()
        lost = any(outcome.fate is Fate.LOST for outcome in result.outcomes)
        for outcome in result.outcomes:
            trouble = outcome.trouble or outcome.reading.trouble
            if trouble is not None:
                raise SwitchFailure(f"{outcome.station.name}: {trouble}; {outcome.fate}", lost=lost)
        if not result.good:
            raise SwitchFailure("circuits of others are in the way: `opusc push` shows them", lost=lost)

    def close(self) -> None:
        self._pusher.close()
