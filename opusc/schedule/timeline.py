"""What a stage does at each moment of an iteration."""

from dataclasses import dataclass
from enum import StrEnum

from opusc.schedule.circuits import Part
from opusc.schedule.operations import Program
from opusc.schedule.replay import Run
from opusc.schedule.timetable import Timetable

__all__ = ["Activity", "Interval", "lanes", "with_waiting"]


class Activity(StrEnum):
    COMPUTE = "compute"
    TP = "tp"
    DP = "dp"
    PP = "pp"
    CP = "cp"
    EP = "ep"
    SWITCHING = "switching"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Interval:
    activity: Activity
    start: int
    end: int
    what: str
    part: Part | None = None  # the circuits that it uses


def with_waiting(lane: list[Interval], end: int) -> list[Interval]:
    """Sort, and name the gaps in which the stage neither computes nor communicates nor switches."""
    lane.sort(key=lambda interval: (interval.start, interval.end))
    gaps, reached = [], 0
    for interval in lane:
        if interval.start > reached:
            gaps.append(Interval(Activity.WAITING, reached, interval.start, ""))
        reached = max(reached, interval.end)
    if reached < end:
        gaps.append(Interval(Activity.WAITING, reached, end, ""))
    return sorted(lane + gaps, key=lambda interval: (interval.start, interval.end))


def lanes(program: Program, table: Timetable, run: Run) -> tuple[tuple[Interval, ...], ...]:
    """What each stage does, from a recorded run over the parts of a plan."""
    found: list[list[Interval]] = [[] for _ in program.stages]
    names = [name for stage in program.stages for name in stage.names]
    for row, start, end in zip(table.rows, run.starts, run.ends, strict=True):
        if row[3] < 0 and row[5]:
            found[row[0]].append(Interval(Activity.COMPUTE, start, end, names[row[1]]))
    for at, number, start, end in run.uses:
        row = table.rows[at]
        part = table.parts[number] if number >= 0 else None
        activity = Activity.TP if part is None else _ACTIVITIES.get(part.phase, Activity.DP)
        found[row[0]].append(Interval(activity, start, end, names[row[1]], part))
    for change in run.changes:
        for stage in sorted(change.footprint):
            found[stage].append(Interval(Activity.SWITCHING, change.drained, change.lit, str(change)))
    return tuple(tuple(with_waiting(lane, run.iteration)) for lane in found)


_ACTIVITIES = {"pp": Activity.PP, "cp": Activity.CP, "ep": Activity.EP}
