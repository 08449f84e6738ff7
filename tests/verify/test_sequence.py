"""A schedule's sequence of changes on a real plan, and everything that can be wrong with one: each fault is found."""

from dataclasses import replace

import pytest

from opusc.diagnostics import Diagnostics
from opusc.plan.plan import PlannedChange, Schedule, Transfer
from opusc.verify import verify
from opusc.verify.finding import TRANSITION
from opusc.verify.sequence import check_sequence
from tests.verify.plans import plan

RAILS = plan("photonic rails")
NUMBER = {part.name: part.index for part in RAILS.parts}
MS = 10**9


def change(begin: int, went: str, came: str, length: int = 10) -> PlannedChange:
    named = [frozenset(NUMBER[name] for name in names.split()) for names in (went, came)]
    return PlannedChange(named[0], named[1], begin * MS, (begin + length) * MS)


START = [NUMBER[f"dp[{stage}]"] for stage in range(4)]
SAFE = (
    change(0, "dp[0] dp[1]", "pp[0-1]"),
    change(20, "pp[0-1] dp[2]", "dp[0] pp[1-2]"),
    change(40, "pp[1-2] dp[3]", "dp[1] pp[2-3]"),
    change(50, "dp[0] dp[1]", "pp[0-1]"),
    change(70, "pp[2-3] pp[0-1]", "dp[2] dp[3] dp[0] dp[1]"),
)
PERIOD = 100 * MS


def test_a_sequence_through_the_pipeline_and_back_is_safe() -> None:
    held, found = check_sequence(RAILS, START, SAFE, PERIOD)
    assert found == []
    circuits = sum(RAILS.rows(part).stop - RAILS.rows(part).start for c in SAFE for part in c.went | c.came)
    assert [o.count for o in held] == [5, circuits, 1]


FAULTS: dict[str, tuple[list[int], tuple[PlannedChange, ...], str]] = {
    "a change left out": (START, SAFE[:1] + SAFE[2:], "takes away parts that do not hold"),
    "changes in another order": (START, (SAFE[1], SAFE[0], *SAFE[2:]), "takes away parts that do not hold"),
    "later than the next": (
        START,
        (replace(SAFE[0], begin=30 * MS, end=40 * MS), *SAFE[1:]),
        "begins before an earlier one",
    ),
    "over before it begins": (START, (replace(SAFE[0], end=-MS), *SAFE[1:]), "is over before it begins"),
    "a ring that stays": (
        START,
        (replace(SAFE[0], went=frozenset([NUMBER["dp[0]"]])), *SAFE[1:]),
        "leads to parts that exclude each other: dp[1], pp[0-1]",
    ),
    "a part that is there already": (
        START,
        (replace(SAFE[0], came=frozenset([NUMBER["pp[0-1]"], NUMBER["dp[3]"]])), *SAFE[1:]),
        "brings parts that hold already: dp[3]",
    ),
    "ports that are still moving": (
        START,
        (*SAFE[:3], replace(SAFE[3], begin=45 * MS, end=55 * MS), SAFE[4]),
        "change 4 begins while the circuits of its ports are still changing",
    ),
    "not over at the end": (
        START,
        (*SAFE[:4], replace(SAFE[4], end=PERIOD + 1)),
        "a change is not over when the iteration is",
    ),
    "no way back": (START, SAFE[:4], "the iteration ends with"),
    "a start that cannot be": ([*START, NUMBER["pp[0-1]"]], SAFE, "starts with parts that exclude each other"),
    "a part that is not there": (START, (replace(SAFE[0], came=frozenset([99])), *SAFE[1:]), "does not have"),
    "a start that is not there": ([-1], (), "does not have"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found(fault: str) -> None:
    start, changes, text = FAULTS[fault]
    held, found = check_sequence(RAILS, start, changes, PERIOD)
    assert held == ()
    assert [f.code for f in found] == [TRANSITION]
    assert text in found[0].text


def test_without_a_period_nothing_need_come_back() -> None:
    held, found = check_sequence(RAILS, START, SAFE[:2])
    assert found == []
    assert len(held) == 2


# --- the schedule of a plan ----------------------------------------------------------------------

TRAFFIC = (
    Transfer(0, "reduce", NUMBER["dp[0]"], 0, 0),
    Transfer(0, "send", NUMBER["pp[0-1]"], 10 * MS, 20 * MS),
    Transfer(3, "reduce", NUMBER["dp[3]"], 0, 40 * MS),
    Transfer(0, "reduce again", NUMBER["dp[0]"], 80 * MS, PERIOD),
)
SCHEDULE = Schedule(10 * MS, PERIOD, frozenset(START), SAFE, TRAFFIC)


def test_a_plan_with_a_schedule_is_proved_with_it() -> None:
    sink = Diagnostics()
    report = verify(replace(RAILS, schedule=SCHEDULE), sink)
    assert list(sink) == []
    assert report.obligations[-1].name == "traffic meets light"
    assert report.obligations[-1].count == len(TRAFFIC)


DARK = {
    "before the circuits are lit": Transfer(0, "send", NUMBER["pp[0-1]"], 10 * MS - 1, 20 * MS),
    "while they go": Transfer(0, "send", NUMBER["pp[0-1]"], 10 * MS, 20 * MS + 1),
    "between two times": Transfer(0, "send", NUMBER["pp[0-1]"], 30 * MS, 31 * MS),
    "across a dark time": Transfer(0, "send", NUMBER["pp[0-1]"], 15 * MS, 65 * MS),
    "never lit": Transfer(0, "send", NUMBER["dp[2]"], 21 * MS, 22 * MS),
    "backwards": Transfer(3, "reduce", NUMBER["dp[3]"], 30 * MS, 20 * MS),
    "after the iteration": Transfer(0, "reduce", NUMBER["dp[0]"], 90 * MS, PERIOD + 1),
    "over no part": Transfer(0, "send", 99, 0, 1),
}


@pytest.mark.parametrize("fault", DARK)
def test_traffic_in_the_dark_is_an_error(fault: str) -> None:
    sink = Diagnostics()
    verify(replace(RAILS, schedule=replace(SCHEDULE, transfers=(*TRAFFIC, DARK[fault]))), sink)
    assert [d.code for d in sink] == [TRANSITION]


def test_a_schedule_whose_changes_are_not_safe_is_an_error() -> None:
    sink = Diagnostics()
    verify(replace(RAILS, schedule=replace(SCHEDULE, changes=SAFE[:4])), sink)
    assert [d.code for d in sink] == [TRANSITION]
