"""What no schedule may break, on small random jobs: two opinions on the general simulation."""

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opusc.schedule import ALL_LINKS, ON_DEMAND, PROVISIONED, Policy, simulate
from opusc.schedule.circuits import Part
from opusc.schedule.iteration import Layout, iteration
from opusc.schedule.operations import Program, Receive, Send
from opusc.schedule.simulation import Result
from opusc.schedule.timeline import Activity
from tests.schedule.general import GPU, circuits, layout, program

POLICIES = [ON_DEMAND, PROVISIONED]


@st.composite
def jobs(draw: st.DrawFn) -> Layout:
    stages = draw(st.integers(1, 4))
    pipeline = draw(st.sampled_from(["gpipe", "one_f_one_b", "interleaved"]))
    batches = draw(st.integers(1, 3)) * (stages if pipeline == "interleaved" else 1)
    tied = draw(st.booleans()) and stages == 2 and pipeline != "interleaved"
    made = layout(
        stages,
        batches,
        pipeline=pipeline,
        chunks=draw(st.integers(2, 3)) if pipeline == "interleaved" else 1,
        layers=draw(st.integers(1, 3)),
        forward=draw(st.integers(1, 10**8)),
        backward=draw(st.integers(1, 10**8)),
        weights=draw(st.integers(0, 200)),
        activation=draw(st.integers(0, 200)),
        dp=draw(st.integers(1, 3)),
        sharding=draw(st.sampled_from(["none", "optimizer", "gradients", "full"])),
    )
    return replace(made, tied="pp") if tied else made


def lowered(made: Layout, *, exclusive: bool = True) -> Program:
    return program(made, circuits(made.stages, made.degrees["dp"], exclusive=exclusive, ring=True))


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_every_send_is_received_once(made: Layout) -> None:
    stages = iteration(made, GPU).stages
    sent = [(op.work.to, op.work.lands, s) for s, ops in enumerate(stages) for op in ops if isinstance(op.work, Send)]
    received = [
        (s, op.name, op.work.source) for s, ops in enumerate(stages) for op in ops if isinstance(op.work, Receive)
    ]
    assert sorted(sent) == sorted(received)


@settings(max_examples=60, deadline=None)
@given(jobs(), st.sampled_from([ALL_LINKS, *POLICIES]), st.integers(0, 10**8))
def test_nothing_is_in_two_places_and_all_traffic_runs_over_lit_parts(made: Layout, policy: Policy, delay: int) -> None:
    tables = lowered(made)
    result = simulate(tables, policy, delay, record=True)
    assert overlaps(result, tables) == []
    assert dark(result, tables, policy is not ALL_LINKS) == []


def overlaps(result: Result, tables: Program) -> list[str]:
    """Operations of one stage that use one unit at once: the compute stream, or parts that share a port."""
    assert tables.timetable is not None
    parts, conflicts = tables.timetable.parts, tables.timetable.conflicts
    clash = {parts[a]: {parts[b] for b in others} | {parts[a]} for a, others in enumerate(conflicts)}
    found = []
    for lane in result.timelines:
        busy = [i for i in lane if i.activity not in (Activity.WAITING, Activity.SWITCHING) and i.end > i.start]
        for n, first in enumerate(busy):
            for second in busy[n + 1 :]:
                if second.start >= first.end:
                    continue
                if first.part is None and second.part is None and first.activity is second.activity:
                    found.append(f"{first.what} and {second.what}")
                if first.part is not None and second.part in clash[first.part]:
                    found.append(f"{first.what} and {second.what}")
    return found


def dark(result: Result, tables: Program, switched: bool) -> list[str]:
    """Traffic over a part that does not hold from its first to its last moment; parts that hold against the ports."""
    assert tables.timetable is not None
    table = tables.timetable
    clash = {table.parts[a]: {table.parts[b] for b in others} for a, others in enumerate(table.conflicts)}
    if not switched:
        return []
    holds: dict[Part, list[list[int]]] = defaultdict(list)
    for number in table.held:
        holds[table.parts[number]].append([0, 10**30])
    found = []
    for change in result.changes:
        for part in change.went:
            if not holds[part] or holds[part][-1][0] > change.drained:
                found.append(f"{part} goes and was not there")
            holds[part][-1][1] = change.drained
        for part in change.came:
            holds[part].append([change.lit, 10**30])
    for part, spans in holds.items():
        for other in clash[part] & holds.keys():
            if any(a < d and c < b for a, b in spans for c, d in holds[other]):
                found.append(f"{part} and {other} hold at once")
    for lane in result.timelines:
        for i in lane:
            if i.part is None or i.activity is Activity.SWITCHING or not clash[i.part]:
                continue
            if not any(a <= i.start and i.end <= b for a, b in holds[i.part]):
                found.append(f"{i.what} in the dark")
    return found


def test_the_checks_see_what_is_wrong() -> None:
    """Faults on purpose: a circuit that is lit later than said, and one stage's operations moved onto each other."""
    tables = lowered(layout(3, 4, layers=2, weights=20, activation=9, dp=2))
    result = simulate(tables, ON_DEMAND, 10**7, record=True)
    assert dark(result, tables, True) == []
    late = tuple(replace(change, lit=change.lit + 10**6) for change in result.changes)
    assert dark(replace(result, changes=late), tables, True)
    early = tuple(replace(change, drained=change.drained - 10**6) for change in result.changes)
    assert dark(replace(result, changes=early), tables, True)
    lanes = [[replace(i, end=i.end + 10**6) for i in lane] for lane in result.timelines]
    assert overlaps(replace(result, timelines=tuple(map(tuple, lanes))), tables)


@settings(max_examples=60, deadline=None)
@given(jobs(), st.sampled_from(POLICIES), st.lists(st.integers(0, 10**9), min_size=2, max_size=4))
def test_longer_delays_never_shorten_an_iteration(made: Layout, policy: Policy, delays: list[int]) -> None:
    tables = lowered(made)
    times = [simulate(tables, policy, delay).iteration for delay in sorted(delays)]
    assert times == sorted(times)
    assert simulate(tables, ALL_LINKS).iteration <= times[0]


@settings(max_examples=40, deadline=None)
@given(jobs(), st.sampled_from(POLICIES), st.integers(0, 10**9))
def test_parts_that_share_no_port_never_wait(made: Layout, policy: Policy, delay: int) -> None:
    tables = lowered(made, exclusive=False)
    assert simulate(tables, policy, delay).iteration == simulate(tables, ALL_LINKS).iteration
    assert simulate(tables, policy, delay).changes == ()


@settings(max_examples=40, deadline=None)
@given(jobs(), st.integers(0, 10**8))
def test_asking_ahead_never_takes_longer(made: Layout, delay: int) -> None:
    tables = lowered(made)
    assert simulate(tables, PROVISIONED, delay).iteration <= simulate(tables, ON_DEMAND, delay).iteration


@settings(max_examples=40, deadline=None)
@given(jobs(), st.sampled_from(POLICIES), st.integers(0, 10**8))
def test_no_stage_computes_longer_than_the_iteration(made: Layout, policy: Policy, delay: int) -> None:
    result = simulate(lowered(made), policy, delay)
    assert all(0 <= exposed <= result.iteration for exposed in result.exposed)


@pytest.mark.parametrize("policy", POLICIES)
def test_deterministic(policy: Policy) -> None:
    made = layout(3, 6, layers=2, weights=20, activation=9, dp=2, sharding="full")
    assert simulate(lowered(made), policy, 10**6, record=True) == simulate(lowered(made), policy, 10**6, record=True)
