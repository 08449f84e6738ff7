"""Bring switches from what they hold to a configuration, all of them or none.

A step reads every switch first; nothing is changed while one of them cannot be read, or holds circuits of others where
the program needs the ports. Then the switches change side by side. What a switch holds afterwards decides, whatever it
acknowledged or failed to; a request that was lost is made again from what the switch then holds. Where one switch
refuses, holds something else than asked, or stays away, every switch that was touched goes back to what it held before.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from threading import Event

from opusc.control.change import Change, Goal, Station, change_to, goal_of_return
from opusc.control.device import Garbled, Held, Patience, Refused, Session, Trouble, Unreachable
from opusc.control.goals import Step

__all__ = ["Fate", "Mismatch", "Outcome", "Pusher", "Reading", "Record", "StepResult"]

_WORKERS = 32

Record = Callable[[str, str, Mapping[str, object]], None]


class Mismatch(Trouble):
    """It acknowledged a change and does not hold it. `left` is what remains to be done."""

    def __init__(self, left: Change) -> None:
        super().__init__("it acknowledged the change and does not hold it")
        self.left = left


class Fate(StrEnum):
    """What became of a switch in a step."""

    SAME = "held it already"
    DONE = "changed"
    PUT_BACK = "put back"
    LOST = "not put back"
    UNTOUCHED = "not touched"


@dataclass(frozen=True)
class Reading:
    """What a switch held before a step and what the step asks of it; or why it could not be read."""

    station: Station
    goal: Goal
    held: Held = frozenset()
    change: Change | None = None
    trouble: Trouble | None = None
    vanished: int = 0  # circuits of the last step that it no longer holds
    emptied: bool = False  # ... which were all

    @property
    def ready(self) -> bool:
        return self.change is not None and not self.change.blocking


@dataclass(frozen=True)
class Outcome:
    """What became of one switch. `left` is what it lacked and should not hold when it failed, `now` what it holds where
    that is known, `returning` why it could not be put back."""

    reading: Reading
    fate: Fate
    milliseconds: int = 0
    notes: tuple[str, ...] = ()
    trouble: Trouble | None = None
    left: Change | None = None
    now: Held | None = None
    returning: Trouble | None = None

    @property
    def station(self) -> Station:
        return self.reading.station


@dataclass(frozen=True)
class StepResult:
    step: Step
    outcomes: tuple[Outcome, ...]

    @property
    def good(self) -> bool:
        """Every switch holds the configuration."""
        return all(o.fate in (Fate.SAME, Fate.DONE) and o.trouble is None for o in self.outcomes)


def _silent(switch: str, event: str, facts: Mapping[str, object]) -> None:
    pass


@dataclass
class Pusher:
    """The switches of a run with their sessions, by switch index. `record` is told, before and after, what is done."""

    stations: Sequence[Station]
    sessions: Mapping[int, Session]
    patience: Patience
    taken: Mapping[int, Held] = field(default_factory=dict)
    record: Record = _silent
    _last: dict[int, Held] = field(default_factory=dict)  # own circuits after the last step

    def read(self, step: Step) -> tuple[Reading, ...]:
        """What the switches hold, and what a step asks of each."""
        wanted = [station for station in self.stations if station.switch.index in step.goals]
        with ThreadPoolExecutor(max_workers=min(_WORKERS, max(len(wanted), 1))) as pool:
            return tuple(pool.map(lambda station: self._read(station, step.goals[station.switch.index]), wanted))

    def apply(self, step: Step, readings: Sequence[Reading]) -> StepResult:
        """Carry out a step that `read` prepared. When a reading is not ready nothing is touched."""
        if not all(reading.ready for reading in readings):
            return StepResult(step, tuple(Outcome(r, Fate.UNTOUCHED, trouble=r.trouble) for r in readings))
        stop = Event()
        with ThreadPoolExecutor(max_workers=min(_WORKERS, max(len(readings), 1))) as pool:
            outcomes = tuple(pool.map(lambda reading: self._change(reading, step, stop), readings))
            if stop.is_set():
                outcomes = tuple(pool.map(self._put_back, outcomes))
        for outcome in outcomes:
            self._remember(outcome)
        return StepResult(step, outcomes)

    def close(self) -> None:
        for session in self.sessions.values():
            session.close()

    # --- one switch ----------------------------------------------------------------------------

    def _read(self, station: Station, goal: Goal) -> Reading:
        try:
            held = station.canonical(self.sessions[station.switch.index].read())
        except Trouble as trouble:
            return Reading(station, goal, trouble=trouble)
        last = self._last.get(station.switch.index, frozenset())
        gone = last - held
        change = change_to(station, held, goal, self.taken.get(station.switch.index, frozenset()))
        return Reading(station, goal, held, change, vanished=len(gone), emptied=bool(gone) and not last & held)

    def _change(self, reading: Reading, step: Step, stop: Event) -> Outcome:
        assert reading.change is not None
        if reading.change.empty:
            return Outcome(reading, Fate.SAME, now=reading.held)
        if stop.is_set():
            return Outcome(reading, Fate.UNTOUCHED, now=reading.held)
        name, change = reading.station.name, reading.change
        facts = {"step": step.name, "held": sorted(reading.held)}
        self.record(name, "change", facts | {"disconnect": change.disconnect, "connect": change.connect})
        outcome = self._carry_out(reading, reading.goal, change)
        if outcome.trouble is not None:
            stop.set()
        self.record(name, "changed" if outcome.trouble is None else "failed", {"step": step.name, **_told(outcome)})
        return outcome

    def _put_back(self, outcome: Outcome) -> Outcome:
        """A switch that was touched in a step that failed goes back to what it held before."""
        if outcome.fate in (Fate.SAME, Fate.UNTOUCHED):
            return outcome
        reading, station = outcome.reading, outcome.station
        assert reading.change is not None
        goal = goal_of_return(station, reading.held, reading.goal, reading.change)
        try:
            held = station.canonical(self.sessions[station.switch.index].read())
            change = change_to(station, held, goal, frozenset(reading.change.connect))
        except Trouble as trouble:
            back = replace(outcome, fate=Fate.LOST, now=None, returning=trouble)
        else:
            back = Outcome(reading, Fate.DONE, now=held)
            if not change.empty:
                back = self._carry_out(reading, goal, change)
            back = replace(
                outcome,
                fate=Fate.PUT_BACK if back.trouble is None else Fate.LOST,
                now=back.now,
                returning=back.trouble,
                milliseconds=outcome.milliseconds + back.milliseconds,
            )
        self.record(station.name, str(back.fate), _told(back))
        return back

    def _carry_out(self, reading: Reading, goal: Goal, change: Change) -> Outcome:
        """Ask, read back, and ask again for what is missing only when the switch was away in between."""
        station, begun, lost = reading.station, time.monotonic(), 0
        session = self.sessions[station.switch.index]
        notes: list[str] = []

        def outcome(trouble: Trouble | None, left: Change | None, now: Held | None) -> Outcome:
            spent = round((time.monotonic() - begun) * 1000)
            return Outcome(reading, Fate.DONE, spent, tuple(notes), trouble, left, now)

        while True:
            trouble: Trouble | None = None
            try:
                if change.blocking:
                    return outcome(Mismatch(change), change, None)
                session.change(change.disconnect, change.connect)
            except (Refused, Unreachable, Garbled) as error:
                trouble = error
            except Trouble as error:
                return outcome(error, None, None)
            try:
                held = self._settled(session, station, goal, waiting=trouble is None)
            except Trouble as error:
                return outcome(error if trouble is None else trouble, None, None)
            left = change_to(station, held, goal)
            if left.empty:
                if trouble is not None:
                    notes.append(f"no acknowledgement ({trouble}); reading back shows the change")
                return outcome(None, None, held)
            if isinstance(trouble, Refused | Garbled):
                return outcome(trouble, left, held)
            if trouble is None:
                return outcome(Mismatch(left), left, held)
            lost += 1
            if lost >= self.patience.tries:
                return outcome(trouble, left, held)
            notes.append(_after_loss(station, reading, held, trouble))
            change = left

    def _settled(self, session: Session, station: Station, goal: Goal, *, waiting: bool) -> Held:
        """What the switch holds, once that is what was asked or the time to settle is over."""
        deadline = time.monotonic() + (self.patience.settle / 1000 if waiting else 0)
        pause = 0.02
        while True:
            held = station.canonical(session.read())
            if change_to(station, held, goal).empty or time.monotonic() + pause > deadline:
                return held
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _remember(self, outcome: Outcome) -> None:
        station, index = outcome.station, outcome.station.switch.index
        if outcome.now is None:
            self._last.pop(index, None)
            return
        own = station.owned
        self._last[index] = frozenset(p for p in outcome.now if all(port in own for port in station.ends(p)))


def _after_loss(station: Station, reading: Reading, held: Held, trouble: Trouble) -> str:
    """Why the change is asked for once more."""
    if reading.held and not held:
        return f"came back empty ({trouble}): the whole set was put in"
    return f"lost the connection ({trouble}): what was missing was put in"


def _told(outcome: Outcome) -> dict[str, object]:
    trouble = outcome.returning or outcome.trouble
    return {
        "holds": None if outcome.now is None else sorted(outcome.now),
        "trouble": None if trouble is None else str(trouble),
        "milliseconds": outcome.milliseconds,
    }
