"""Schedules that the author states, or has measured: `schedule = [pp, dp]`, `schedule = trace "file"`."""

from pathlib import Path

import pytest

from opusc.diagnostics import CompileError, Diagnostics
from opusc.driver import compile as compiled
from opusc.schedule import ALL_LINKS, ON_DEMAND, PROVISIONED, simulate
from opusc.schedule.job import Setting, setting
from opusc.schedule.operations import Busy
from opusc.schedule.timeline import Activity
from tests.schedule.test_traffic import PROGRAM

MS = 10**9


def program(schedule: str, *, pp: int = 2, pipeline: str = "one_f_one_b", microbatches: int = 4) -> str:
    text = PROGRAM.format(
        degrees=f"tp = 4, dp = 4, pp = {pp}", nodes=4 * pp, gpus=4, ports=2, batch=64, microbatches=microbatches,
        job=f"pipeline = {pipeline}\n  {schedule}", network="",
    )  # fmt: skip
    return text


def made(tmp_path: Path, text: str, trace: str = "") -> tuple[Setting | None, list[tuple[str, str]]]:
    """The setting, or what is wrong: (code, line that is pointed at)."""
    (tmp_path / "pattern.txt").write_text(trace)
    (tmp_path / "program.opus").write_text(text)
    sink = Diagnostics()
    try:
        found = setting(compiled(tmp_path / "program.opus"), sink)
    except CompileError as error:
        return None, [(d.code, _line(d.span)) for d in error.diagnostics]
    return found, [(d.code, _line(d.span)) for d in sink]


def _line(span: object) -> str:
    source, start = span.source, span.start  # type: ignore[attr-defined]
    return str(source.text[:start].rpartition("\n")[2] + source.text[start:].partition("\n")[0]).strip()


def order(found: Setting, stage: int) -> list[str]:
    """Phases of a stage's traffic in the order in which it starts, each once in a row."""
    lane = simulate(found.program, ALL_LINKS, record=True).timelines[stage]
    phases = [str(i.activity) for i in lane if i.activity in (Activity.DP, Activity.PP)]
    return [phase for n, phase in enumerate(phases) if n == 0 or phases[n - 1] != phase]


def test_a_stated_order_is_kept(tmp_path: Path) -> None:
    free, _ = made(tmp_path, program(""))
    held, wrong = made(tmp_path, program("schedule = [pp, dp]"))
    assert free is not None
    assert held is not None
    assert wrong == []
    assert order(free, 1) == ["pp", "dp", "pp", "dp"]
    assert order(held, 1) == ["pp", "dp"]
    before, after = (len(simulate(s.program, ON_DEMAND, MS).changes) for s in (free, held))
    assert after < before


def test_turns_share_the_traffic_out(tmp_path: Path) -> None:
    found, _ = made(tmp_path, program("schedule = [pp, dp, pp, dp]\n  sharding = gradients"))
    assert found is not None
    assert order(found, 1) == ["pp", "dp", "pp", "dp"]


def test_an_order_that_waits_for_itself(tmp_path: Path) -> None:
    _, wrong = made(tmp_path, program("schedule = [dp, pp]"))
    assert wrong == [("OPUS436", "schedule = [dp, pp]")]


# --- traces --------------------------------------------------------------------------------------

HEADER = "Node: host{rank}, Rank: {rank}, Tid: 7\n"


def run(phase: str, backend: int, length: int, first: int = 0) -> str:
    return (
        f"{phase} start_backend: {backend} start_idx: {first} end_backend: {backend} "
        f"end_idx: {first + length - 1} len: {length}\n"
    )


def stage(rank: int, *runs: str) -> str:
    return HEADER.format(rank=rank) + "".join(runs)


#: Four micro-batches: stage 0 sends and receives four times each, so does stage 1; then the gradients.
GOOD = stage(0, run("PP", 1, 8), run("DP", 5, 5)) + stage(
    16, run("PP", 1, 7), run("DP", 5, 3), run("PP", 1, 1, 7), run("DP", 5, 2, 3)
)
TRACE = 'schedule = trace "pattern.txt"'


def test_a_trace_is_played(tmp_path: Path) -> None:
    found, wrong = made(tmp_path, program(TRACE), GOOD)
    assert wrong == []
    assert found is not None
    assert found.iterations == 1
    assert order(found, 0) == ["pp", "dp"]
    assert order(found, 1) == ["pp", "dp", "pp", "dp"]
    for policy in (ALL_LINKS, ON_DEMAND, PROVISIONED):
        assert simulate(found.program, policy, MS).iteration > 0


def test_compute_of_a_trace_is_fitted_or_stated(tmp_path: Path) -> None:
    """Fitted: what the model computes. Stated: as stated. Traffic takes what the model's does, in all."""
    model, _ = made(tmp_path, program(""))
    fitted, _ = made(tmp_path, program(TRACE), GOOD)
    stated, _ = made(tmp_path, program(TRACE + " { compute = [12 ms, 14 ms] }"), GOOD)
    assert model is not None
    assert fitted is not None
    assert stated is not None
    assert [computed(fitted, s) for s in (0, 1)] == [computed(model, s) for s in (0, 1)]
    assert [computed(stated, s) for s in (0, 1)] == [12 * MS, 14 * MS]
    for s in (0, 1):
        assert reduced(fitted, s) == pytest.approx(reduced(model, s), abs=10)


def computed(found: Setting, stage: int) -> int:
    return sum(op.work.duration for op in found.workload.stages[stage] if isinstance(op.work, Busy))


def reduced(found: Setting, stage: int) -> int:
    lane = simulate(found.program, ALL_LINKS, record=True).timelines[stage]
    return sum(i.end - i.start for i in lane if i.activity is Activity.DP)


def test_several_iterations_and_several_ranks(tmp_path: Path) -> None:
    one = run("PP", 1, 8), run("DP", 5, 5)
    twice = "".join(stage(rank, *one, *one) for rank in (0, 1, 16, 17))
    once, _ = made(tmp_path, program(TRACE), "".join(stage(rank, *one) for rank in (0, 16)))
    found, wrong = made(tmp_path, program(TRACE), twice)
    assert wrong == []
    assert once is not None
    assert found is not None
    assert found.iterations == 2
    ratio = simulate(found.program, ALL_LINKS).iteration / simulate(once.program, ALL_LINKS).iteration
    assert 1.8 < ratio <= 2


#: What is wrong, and the line that is pointed at.
EVEN = run("PP", 1, 8) + run("DP", 5, 5)
FEW, FAR = run("PP", 1, 7), run("PP", 31, 8)
UNLIKE = run("PP", 1, 8).replace("end_idx: 7", "end_idx: 9")
WRONG = [
    ("", "OPUS433", ""),
    ("PP start_backend: 1 start_idx: 0\n", "OPUS433", "PP start_backend: 1 start_idx: 0"),
    (stage(0, "PP 3 of them\n"), "OPUS433", "PP 3 of them"),
    (stage(0, run("PP", 1, 0)), "OPUS433", run("PP", 1, 0)),
    (stage(0, UNLIKE), "OPUS433", UNLIKE),
    (GOOD.replace("Rank: 16", "Rank: 32"), "OPUS434", run("PP", 1, 7)),
    (GOOD.replace("Rank: 16", "Rank: 0"), "OPUS434", TRACE),
    (GOOD + stage(17, EVEN), "OPUS434", run("PP", 1, 8)),
    (stage(0, EVEN, run("EP", 5, 5)) + stage(16, EVEN), "OPUS434", run("EP", 5, 5)),
    (stage(0, FEW, run("DP", 5, 5)) + stage(16, EVEN), "OPUS434", FEW),
    (stage(0, FAR) + stage(16, EVEN), "OPUS434", FAR),
    (stage(0, run("PP", 1, 16), run("DP", 5, 5)) + stage(16, EVEN), "OPUS434", run("DP", 5, 5)),
    (stage(0, run("PP", 1, 8)) + stage(16, run("PP", 1, 8)), "OPUS434", run("PP", 1, 8)),
]


@pytest.mark.parametrize(("trace", "code", "line"), WRONG)
def test_a_trace_that_is_wrong_is_told_by_its_line(tmp_path: Path, trace: str, code: str, line: str) -> None:
    _, wrong = made(tmp_path, program(TRACE), trace)
    assert (code, line.strip()) in wrong
    assert {c for c, _ in wrong} == {code}


@pytest.mark.parametrize(
    ("times", "code"),
    [
        ("[12 ms]", "OPUS435"),
        ("[0 ms, 1 ms]", "OPUS435"),
        ("[-1 ms, 1 ms]", "OPUS204"),
        ("[]", "OPUS435"),
        ("[3, 4]", "OPUS202"),
    ],
)
def test_times_of_a_trace(tmp_path: Path, times: str, code: str) -> None:
    _, wrong = made(tmp_path, program(TRACE + f" {{ compute = {times} }}"), GOOD)
    assert {c for c, _ in wrong} == {code}


def test_a_trace_that_sends_before_it_receives(tmp_path: Path) -> None:
    """Three stages: the middle one hands the gradient back (pair 1) before it has got it (pair 2)."""
    good = [
        stage(0, run("PP", 11, 2), run("DP", 5, 3)),
        stage(16, run("PP", 11, 1), run("PP", 21, 2), run("PP", 11, 1, 1), run("DP", 5, 2)),
        stage(32, run("PP", 21, 2), run("DP", 5, 3)),
    ]
    text = program(TRACE + "\n  stages = [2, 3, 3]", pp=3, microbatches=1)
    found, wrong = made(tmp_path, text, "".join(good))
    assert (found is not None, wrong) == (True, [])
    bad = stage(16, run("PP", 11, 2), run("PP", 21, 2), run("DP", 5, 2))
    _, wrong = made(tmp_path, text, good[0] + bad + good[2])
    assert [code for code, _ in wrong] == ["OPUS436"]
    assert wrong[0][1] in bad + good[0] + good[2]


def test_no_traffic_runs_in_the_dark(tmp_path: Path) -> None:
    from tests.schedule.test_conservation import dark, overlaps

    found, _ = made(tmp_path, program(TRACE), GOOD)
    assert found is not None
    for policy in (ON_DEMAND, PROVISIONED):
        result = simulate(found.program, policy, 3 * MS, record=True)
        assert dark(result, found.program, True) == []
        assert overlaps(result, found.program) == []
