"""Properties of the simulation that do not depend on the published figures."""

from dataclasses import replace

import pytest

from opusc.schedule import ALL_LINKS, ON_DEMAND, PROVISIONED, Accelerator, Policy, Rates, Workload, lower, simulate
from opusc.schedule.circuits import join_of, ring_of
from opusc.schedule.operations import Collective, Compute, Operation, WorkloadError
from opusc.schedule.policy import Mode, Rendezvous, Scope
from opusc.schedule.simulation import Result, StalledError, changes_on_critical_path
from opusc.schedule.timeline import Activity
from opusc.schedule.timing import MILLISECOND, Algorithm, compute_time, ring_time, send_time
from opusc.schedule.transformer import FORWARD_OUT, Transformer, workload
from tests.schedule import published

GPU = Accelerator(10**15, 10**12)
PLAIN = Rates(2**30, 2**30, 2**30, latency=0, endpoint=0, recovery=0, chunks=1, reduce_passes=0)
FIG13 = published.program(published.sample()["runs"][1])
RELAXED = Policy(Mode.PROVISIONED, Rendezvous.AT_CHANGE, Scope.FOOTPRINT)


def test_roofline_is_the_longer_of_compute_and_memory() -> None:
    assert compute_time(10**15, 1, GPU) == 10**12
    assert compute_time(1, 10**12, GPU) == 10**12


@pytest.mark.parametrize(
    ("algorithm", "buffers"),
    [(Algorithm.ALL_GATHER, 12), (Algorithm.REDUCE_SCATTER, 3), (Algorithm.ALL_REDUCE, 6)],
)
def test_volume_of_a_ring(algorithm: Algorithm, buffers: int) -> None:
    """Four members and 1 GiB at 1 GiB/s: a shard goes to three others; a buffer is cut into four first."""
    assert 4 * ring_time(algorithm, 2**30, 4, 2**30, GPU, PLAIN) == buffers * 10**12
    assert ring_time(algorithm, 2**30, 1, 2**30, GPU, PLAIN) == 0


def test_each_term_of_the_ring_formula() -> None:
    """Two members, 8 kB, two chunks of two messages of 2 kB at 1 GB/s: 2 us each on the wire."""
    rates = Rates(1, 10**9, 1, latency=300_000, endpoint=20_000, recovery=0, chunks=2, reduce_passes=3)
    wire, turn, reduce = 2_000_000, 320_000, 6_000

    def took(algorithm: Algorithm, rates: Rates) -> int:
        return ring_time(algorithm, 8000, 2, 10**9, GPU, rates)

    assert took(Algorithm.REDUCE_SCATTER, rates) == 2 * (wire + turn + reduce)
    assert took(Algorithm.ALL_REDUCE, rates) == 2 * (2 * (wire + turn) + reduce)
    assert took(Algorithm.ALL_REDUCE, replace(rates, recovery=10**6)) == 2 * 2 * (wire + 10**6)
    assert send_time(8000, 10**9, rates) == 8_300_000


@pytest.mark.parametrize("policy", [ON_DEMAND, PROVISIONED, RELAXED])
def test_deterministic_and_never_shorter_with_a_longer_delay(policy: Policy) -> None:
    times = [simulate(FIG13, policy, d * MILLISECOND).iteration for d in (0, 1, 10, 100, 1000)]
    assert times == sorted(times)
    assert times[2] == simulate(FIG13, policy, 10 * MILLISECOND).iteration


def test_the_slope_is_the_number_of_changes_on_the_critical_path() -> None:
    assert changes_on_critical_path(FIG13, ON_DEMAND, 100 * MILLISECOND) == 10
    assert changes_on_critical_path(FIG13, PROVISIONED, 100 * MILLISECOND) == 6
    assert changes_on_critical_path(FIG13, ALL_LINKS, 100 * MILLISECOND) == 0


def test_the_timeline_covers_the_iteration() -> None:
    result = simulate(FIG13, PROVISIONED, 50 * MILLISECOND, record=True)
    for lane in result.timelines:
        reached = 0
        for interval in lane:
            assert interval.start <= reached
            reached = max(reached, interval.end)
        assert reached == result.iteration
        assert {i.activity for i in lane} >= {Activity.COMPUTE, Activity.TP, Activity.DP, Activity.SWITCHING}


@pytest.mark.parametrize("policy", [ON_DEMAND, PROVISIONED, RELAXED])
def test_traffic_only_over_lit_circuits(policy: Policy) -> None:
    assert _dark_traffic(simulate(FIG13, policy, 50 * MILLISECOND, record=True)) == []


def test_traffic_over_dark_circuits_would_be_seen() -> None:
    result = simulate(FIG13, ON_DEMAND, 50 * MILLISECOND, record=True)
    late = [replace(change, lit=change.lit + MILLISECOND) for change in result.changes]
    assert _dark_traffic(replace(result, changes=tuple(late)))


def _dark_traffic(result: Result) -> list[str]:
    """Traffic that overlaps a change of its own part, or whose part does not hold when it starts."""
    found = []
    for stage, lane in enumerate(result.timelines):
        for i in (i for i in lane if i.activity in (Activity.DP, Activity.PP)):
            ahead = stage + 1 if i.what == FORWARD_OUT else stage - 1
            part = ring_of(stage) if i.activity is Activity.DP else join_of(stage, ahead)
            holds = part.phase == "dp"
            for change in result.changes:
                if part in change.went | change.came:
                    if i.end > change.drained and i.start < change.lit:
                        found.append(f"{i.what} during {change}")
                    if change.lit <= i.start:
                        holds = part in change.came
            if not holds:
                found.append(f"{i.what} without {part}")
    return found


SMALL = Transformer(1024, 256, 1024, 8, 8, 512, False, tp=2, dp=2)


@pytest.mark.parametrize("policy", [ALL_LINKS, ON_DEMAND, PROVISIONED])
@pytest.mark.parametrize(("dp", "stages"), [(1, 1), (1, 3), (2, 1), (2, 2), (5, 7)])
def test_small_and_odd_layouts_finish(policy: Policy, dp: int, stages: int) -> None:
    """One stage or no data parallelism: nothing to switch between."""
    made = workload("small", replace(SMALL, dp=dp), tuple(range(1, stages + 1)))
    result = simulate(lower(made, GPU, PLAIN), policy, 10**6)
    assert result.iteration > 0
    assert bool(result.changes) == (stages > 1 and policy is not ALL_LINKS)
    assert result.exposed[0] < result.iteration


def test_bad_input_is_named() -> None:
    loop = (Operation("a", Compute(1, 1), ("b",)), Operation("b", Compute(1, 1), ("a",)))
    with pytest.raises(StalledError, match="cycle"):
        simulate(lower(Workload("loop", {"dp": 1}, (loop,)), GPU, PLAIN), ALL_LINKS)
    with pytest.raises(WorkloadError, match="waits for c"):
        lower(Workload("hole", {"dp": 1}, ((replace(loop[0], after=("c",)),),)), GPU, PLAIN)
    with pytest.raises(WorkloadError, match="same name"):
        lower(Workload("twice", {"dp": 1}, ((loop[0], loop[0]),)), GPU, PLAIN)
    with pytest.raises(ValueError, match="negative"):
        simulate(FIG13, ON_DEMAND, -1)


def test_a_collective_among_one_takes_no_time_and_no_ring() -> None:
    alone = Operation("reduce", Collective("dp", Algorithm.ALL_REDUCE, 2**30))
    result = simulate(lower(Workload("alone", {"dp": 1, "tp": 1}, ((alone,),)), GPU, PLAIN), ON_DEMAND)
    assert (result.iteration, result.changes) == (0, ())
