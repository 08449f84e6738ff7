"""A schedule's sequence of changes on a real plan, and everything that can be wrong with one: each fault is found."""

from dataclasses import replace

import pytest

from opusc.verify.finding import TRANSITION
from opusc.verify.sequence import Planned, check_sequence
from tests.verify.plans import plan

RAILS = plan("photonic rails")
NUMBER = {part.name: part.index for part in RAILS.parts}
MS = 10**9


def change(begin: int, went: str, came: str, length: int = 10) -> Planned:
    named = [frozenset(NUMBER[name] for name in names.split()) for names in (went, came)]
    return Planned(named[0], named[1], begin * MS, (begin + length) * MS)


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


FAULTS: dict[str, tuple[list[int], tuple[Planned, ...], str]] = {
    "a change left out": (START, SAFE[:1] + SAFE[2:], "takes away parts that do not hold"),
    "changes in another order": (START, (SAFE[1], SAFE[0], *SAFE[2:]), "takes away parts that do not hold"),
    "later than the next": (START, (replace(SAFE[0], begin=30 * MS, end=40 * MS), *SAFE[1:]), "before an earlier one"),
    "over before it begins": (START, (replace(SAFE[0], end=-MS), *SAFE[1:]), "ends before it begins"),
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
