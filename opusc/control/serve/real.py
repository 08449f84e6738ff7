"""Real switches of a rail, changed as `opusc push` does: read, changed, read back, put back where something fails."""

import asyncio
import threading
from collections.abc import Mapping, Sequence

from opusc.control.change import Station
from opusc.control.device import Patience, Session
from opusc.control.goals import part_step
from opusc.control.push import Pusher
from opusc.control.serve.rails import SwitchFailure
from opusc.plan.plan import Plan

__all__ = ["Real"]


class Real:
    """`stations` and `sessions` as `opusc push` makes them."""

    def __init__(
        self, plan: Plan, stations: Sequence[Station], sessions: Mapping[int, Session], patience: Patience
    ) -> None:
        self._plan = plan
        self._stations = {
            rail: [station for station in stations if rail in station.switch.rails]
            for rail in range(len(plan.model.fabric.rails))
        }
        # A chassis that serves several rails is one connection: its rails take turns.
        self._turns = {index: threading.Lock() for index in sessions}
        self._pusher = Pusher(stations, sessions, patience)

    async def change(self, rail: int, parts: Sequence[int]) -> None:
        await asyncio.to_thread(self._change, rail, parts)

    def _change(self, rail: int, parts: Sequence[int]) -> None:
        name = ", ".join(self._plan.parts[part].name for part in parts)
        step = part_step(self._plan, name, parts, self._stations[rail])
        locks = [self._turns[index] for index in sorted(step.goals)]
        for lock in locks:
            lock.acquire()
        try:
            readings = self._pusher.read(step)
            result = self._pusher.apply(step, readings)
        finally:
            for lock in locks:
                lock.release()
        for outcome in result.outcomes:
            trouble = outcome.trouble or outcome.reading.trouble
            if trouble is not None:
                raise SwitchFailure(f"{outcome.station.name}: {trouble}; {outcome.fate}")
        if not result.good:
            raise SwitchFailure("circuits of others are in the way: `opusc push` shows them")

    def close(self) -> None:
        self._pusher.close()
