"""Sweeps: every point once, whoever measures it and however often the sweep is stopped."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from opusc.cli.main import main
from opusc.sweep import engines
from opusc.sweep.journal import Journal, OtherSweepError
from opusc.sweep.measure import COLUMNS, Record, Task, measure
from opusc.sweep.points import Axis, key, points
from opusc.sweep.tables import columns, csv_text, parquet, records

ROOT = Path(__file__).parents[2]
RAILS = ROOT / "examples" / "photonic-rails" / "photonic-rails.opus"

Capture = pytest.CaptureFixture[str]


def task(**point: str) -> Task:
    return Task(str(RAILS), str(RAILS.parent), {}, point, (), ())


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The points that were measured, in this process."""
    found: list[str] = []

    def here(tasks: Sequence[Task], workers: int, address: str) -> Iterator[tuple[int, list[Record]]]:
        for number, one in reversed(list(enumerate(tasks))):  # engines finish in any order
            found.append(key(one.point))
            if "stop" in os.environ and len(found) == 2:
                raise KeyboardInterrupt
            yield number, measure(one)

    monkeypatch.setitem(engines.ENGINES, "processes", here)
    return found


def test_a_point_that_breaks_a_requirement_on_a_result_is_measured(tmp_path: Path) -> None:
    """A sweep asks where the limit lies, so the points beyond it matter most."""
    program = tmp_path / "program.opus"
    program.write_text(RAILS.read_text() + "\nrequire cost < 1 USD\n")
    for path, point in ((RAILS, {"delay": "2 s"}), (program, {"delay": "10 ms"})):
        (one, *_) = measure(Task(str(path), str(path.parent), {}, point, (), ()))
        assert one["status"] == "ok"
    assert main(["check", str(RAILS), "-D", "delay=2 s"]) == 1


# --- points, measures, tables --------------------------------------------------------------------


def test_every_combination_is_a_point_the_last_axis_fastest() -> None:
    grid = points([Axis("dp", ("2", "4")), Axis("delay", ("1 ms", "2 ms"))])
    assert [tuple(point.values()) for point in grid] == [("2", "1 ms"), ("2", "2 ms"), ("4", "1 ms"), ("4", "2 ms")]
    assert len({key(point) for point in grid}) == 4
    assert key({"a": "1", "b": "2"}) == key({"b": "2", "a": "1"})


def test_a_point_is_measured_as_the_commands_say() -> None:
    (record,) = measure(task(dp="4"))
    assert record["status"] == "ok"
    assert (record["gpus"], record["switches"], record["radix"], record["positions"]) == (128, 8, 192, 32)
    assert (record["parts"], record["circuits"]) == (7, 448)
    assert record["policy"] == "provisioned"
    assert record["iteration_ps"] == 12_222_812_995_486  # `opusc simulate` prints 12,222.813 ms
    assert record["overhead_ppb"] == 24_412_794
    assert record["photonic_power_mw"] == 1_880_000  # `opusc cost`, whole chassis


def test_a_point_that_is_refused_says_why() -> None:
    (record,) = measure(task(dp="25"))
    assert (record["status"], record["code"]) == ("refused", "OPUS301")
    assert "200 positions" in str(record["message"])


def test_what_cannot_be_estimated_is_told_by_its_code(tmp_path: Path) -> None:
    quickstart = ROOT / "examples" / "quickstart" / "quickstart.opus"
    (record,) = measure(Task(str(quickstart), str(quickstart.parent), {}, {}, (), ()))
    assert record["status"] == "ok"
    assert record["time_code"] == "OPUS431"
    assert str(record["cost_code"]).startswith("OPUS4")
    assert "iteration_ps" not in record


def test_policies_and_delays_are_lines_of_their_own() -> None:
    found = measure(Task(str(RAILS), str(RAILS.parent), {}, {"dp": "2"}, ("on_demand", "provisioned"), (0, 10**9)))
    said = [(record["policy"], record["delay_ps"]) for record in found]
    assert said == [("on_demand", 0), ("on_demand", 10**9), ("provisioned", 0), ("provisioned", 10**9)]


def test_tables_have_a_type_for_each_column() -> None:
    axes = [Axis("dp", ("2", "25")), Axis("delay", ("1 ms",))]
    types = columns(axes)
    assert (types["dp"], types["delay"], types["gpus"], types["message"]) == (int, str, int, str)
    assert set(types) == {"dp", "delay", *(name for name, _, _ in COLUMNS)}
    done = {key(point): measure(task(**point)) for point in points(axes)}
    found = records(points(axes), done)
    read = list(csv.DictReader(csv_text(axes, found).splitlines()))
    assert [row["dp"] for row in read] == ["2", "25"]
    assert read[1]["gpus"] == ""

    import pyarrow
    from pyarrow import parquet as reader

    table = reader.read_table(pyarrow.BufferReader(parquet(axes, found)))
    assert table.schema.field("iteration_ps").type == pyarrow.int64()
    assert table.schema.field("delay").type == pyarrow.string()
    assert table.column("gpus").to_pylist() == [64, None]


# --- going on ------------------------------------------------------------------------------------


def test_a_journal_forgets_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    journal = Journal(path, {"program": "a"})
    with journal.appending():
        journal.add("one", [{"status": "ok"}])
        journal.add("two", [{"status": "ok"}])
    path.write_text(path.read_text()[:-9])
    again = Journal(path, {"program": "a"})
    again.read()
    assert list(again.done) == ["one"]
    with again.appending():
        again.add("two", [{"status": "ok"}])
    whole = Journal(path, {"program": "a"})
    whole.read()
    assert list(whole.done) == ["one", "two"]


@pytest.mark.parametrize("first", ['{"program": "b"}', "rubbish", "[]"])
def test_the_journal_of_another_sweep_is_not_gone_on_with(first: str, tmp_path: Path) -> None:
    path = tmp_path / "points.jsonl"
    path.write_text(f"{first}\n")
    with pytest.raises(OtherSweepError, match="is of another sweep"):
        Journal(path, {"program": "a"}).read()


def test_a_sweep_measures_only_what_is_not_known(tmp_path: Path, asked: list[str], capsys: Capture) -> None:
    out = tmp_path / "out"
    assert main(["sweep", str(RAILS), "--vary", "dp=2,4", "-o", str(out)]) == 0
    assert asked == [key({"dp": "4"}), key({"dp": "2"})]
    assert [row["dp"] for row in rows(out)] == ["2", "4"]
    capsys.readouterr()
    asked.clear()
    assert main(["sweep", str(RAILS), "--vary", "dp=2,25,4", "-o", str(out)]) == 0
    assert asked == [key({"dp": "25"})]
    assert [(row["dp"], row["status"]) for row in rows(out)] == [("2", "ok"), ("25", "refused"), ("4", "ok")]
    said = capsys.readouterr().out
    assert "3 points, 2 measured before" in said
    assert "3 of 3 points, 1 refused" in said


def test_another_setting_is_another_sweep(tmp_path: Path, asked: list[str], capsys: Capture) -> None:
    out = tmp_path / "out"
    assert main(["sweep", str(RAILS), "--vary", "dp=2", "-o", str(out)]) == 0
    before = (out / "results.csv").read_bytes()
    assert main(["sweep", str(RAILS), "--vary", "dp=2", "-D", "delay=1 ms", "-o", str(out)]) == 2
    said = capsys.readouterr().err
    assert "its settings differ; give another directory with -o, or --fresh to start anew" in said
    assert (out / "results.csv").read_bytes() == before
    assert main(["sweep", str(RAILS), "--vary", "dp=2", "-D", "delay=1 ms", "-o", str(out), "--fresh"]) == 0
    assert rows(out)[0]["delay_ps"] == "1000000000"


def test_a_stopped_sweep_says_how_to_go_on(
    tmp_path: Path, asked: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    monkeypatch.setenv("stop", "1")
    assert main(["sweep", str(RAILS), "--vary", "dp=2,4,8", "-o", str(out)]) == 2
    streams = capsys.readouterr()
    assert "interrupted; the same command goes on with the 2 points left" in streams.err
    assert "1 of 3 points" in streams.out
    monkeypatch.delenv("stop")
    asked.clear()
    assert main(["sweep", str(RAILS), "--vary", "dp=2,4,8", "-o", str(out)]) == 0
    assert asked == [key({"dp": "4"}), key({"dp": "2"})]


# --- engines -------------------------------------------------------------------------------------


def test_processes_give_what_one_process_gives(tmp_path: Path) -> None:
    found = dict(engines.ENGINES["processes"]([task(dp="2"), task(dp="25")], 2, ""))
    assert found == {0: measure(task(dp="2")), 1: measure(task(dp="25"))}


def test_dask_gives_what_one_process_gives() -> None:
    found = dict(engines.ENGINES["dask"]([task(dp="2"), task(dp="25")], 1, ""))
    assert found == {0: measure(task(dp="2")), 1: measure(task(dp="25"))}


def test_ray_gives_what_one_process_gives() -> None:
    pytest.importorskip("ray", reason="Ray is an extra of 400 MB: pip install 'opusc[ray]'")
    found = dict(engines.ENGINES["ray"]([task(dp="2"), task(dp="25")], 1, ""))
    assert found == {0: measure(task(dp="2")), 1: measure(task(dp="25"))}


def test_an_engine_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["sweep", str(RAILS), "--vary", "dp=2", "--engine", "ray", "-o", str(tmp_path / "out")]) == 2
    assert "Ray is not installed: `pip install 'opusc[ray]'`" in capsys.readouterr().err


def test_ctrl_c_keeps_what_is_measured(tmp_path: Path) -> None:
    out = tmp_path / "out"
    values = ",".join(map(str, range(2, 23)))
    command = [sys.executable, "-m", "opusc", "sweep", str(RAILS), "--vary", f"dp={values}", "-j", "1", "-o", str(out)]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT
    )
    journal = out / "points.jsonl"
    end = time.monotonic() + 60
    while time.monotonic() < end and not (journal.exists() and len(journal.read_text().splitlines()) >= 3):
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 2
    assert "interrupted; the same command goes on" in said
    assert "Traceback" not in said
    lines = journal.read_text().splitlines()
    assert 3 <= len(lines) < 22
    assert all(json.loads(line) for line in lines)
    assert len(rows(out)) == len(lines) - 1


# --- wrong orders --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--vary", "dp"], "should be NAME=VALUE,..."),
        (["--vary", "dp=2,,4"], "should be NAME=VALUE,..."),
        (["--vary", "dp=2,2"], "names 2 twice"),
        (["--vary", "dp=2", "--vary", "dp=4"], "`--vary dp` is given twice"),
        (["--vary", "dp=2", "-D", "dp=4"], "has a value with -D and several with --vary"),
        (["--vary", "dp=2", "-j", "0"], "should be a number of processes"),
        (["--vary", "dp=2", "--policy", "best"], "should be on_demand"),
    ],
)
def test_an_order_that_makes_no_sense(arguments: list[str], said: str, capsys: Capture, tmp_path: Path) -> None:
    try:
        code = main(["sweep", str(RAILS), *arguments, "-o", str(tmp_path / "out")])
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_program_without_meaning_is_told_once(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "x.opus"
    path.write_text("opus 1\nlet = 1\n")
    assert main(["sweep", str(path), "--vary", "dp=2,4", "-o", str(tmp_path / "out")]) == 1
    assert "OPUS001" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main(["sweep", str(RAILS), "--vary", "ports=2,4", "-o", str(tmp_path / "out")]) == 1
    assert "the program has no parameter `ports`" in capsys.readouterr().err


# --- plots ---------------------------------------------------------------------------------------

TABLE = "dp,delay,policy,iteration_ps,message\n2,1 ms,auto,1000000000,\n4,10 ms,auto,2000000000,\n8,1 s,auto,,refused\n"


def test_a_plot_is_drawn_and_always_the_same(tmp_path: Path, capsys: Capture) -> None:
    table = tmp_path / "results.csv"
    table.write_text(TABLE)
    for ending in ("svg", "png", "pdf"):
        pictures = []
        for _ in range(2):
            target = tmp_path / f"x.{ending}"
            assert main(["plot", str(table), "delay", "iteration_ps", "--by", "policy", "-o", str(target)]) == 0
            pictures.append(target.read_bytes())
        assert pictures[0] == pictures[1]
    assert main(["plot", str(table), "dp", "iteration_ps"]) == 0
    text = (tmp_path / "results-dp-iteration_ps.svg").read_text()
    assert "iteration, ms" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dq", "iteration_ps"], "has no column `dq`; did you mean `dp`?"),
        (["policy", "iteration_ps"], "`auto` in column `policy` is no number; draw by it with `--by policy`"),
        (["dp", "message"], "no row has both `dp` and `message`"),
        (["dp", "iteration_ps", "-o", "x.gif"], "should end in .png, .svg or .pdf"),
    ],
)
def test_a_plot_that_cannot_be_drawn(words: list[str], said: str, tmp_path: Path, capsys: Capture) -> None:
    table = tmp_path / "results.csv"
    table.write_text(TABLE.replace("refused", ""))
    assert main(["plot", str(table), *words]) == 2
    assert said in capsys.readouterr().err
