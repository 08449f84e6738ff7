"""What a stage does at each moment of an iteration."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Activity", "Interval", "with_waiting"]


class Activity(StrEnum):
    COMPUTE = "compute"
    TP = "tp"
    DP = "dp"
    PP = "pp"
    SWITCHING = "switching"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Interval:
    activity: Activity
    start: int
    end: int
    what: str


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
