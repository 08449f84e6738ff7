"""A job with `policy = auto`: what compile, check and simulate make of it."""

import csv
import json
import re
from pathlib import Path

import pytest

from opusc.cli.main import main
from opusc.driver import compile_source
from opusc.source import Source

FIG13 = Path(__file__).parents[1] / "schedule" / "data" / "fig13.opus"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def flat(text: str) -> str:
    return " ".join(text.split())


def test_compile_takes_turns_where_that_is_shorter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "compile", str(FIG13), "-o", str(tmp_path / "out"), "-D", "ports=4")
    assert (code, err) == (0, "")
    assert "at 10 ms a change: 2,688.508 ms an iteration, 65.632 ms (2.383 %) less than provisioned" in flat(out)
    chosen = re.search(r"; chosen: ([a-z, -]+); `opusc simulate` says why", flat(out))
    assert chosen is not None
    assert "early" in chosen[1].split(", ")
    assert "pack" not in chosen[1].split(", ")
    assert "to itself" not in out


def test_compile_packs_where_changes_are_slow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["-o", str(tmp_path / "out"), "-D", "ports=4", "-D", "delay=1 s"]
    code, out, err = run(capsys, "compile", str(FIG13), *arguments)
    assert (code, err) == (0, "")
    assert "phase `dp` has ports 0, 1 of each GPU to itself" in out
    assert "phase `pp` has ports 2, 3 of each GPU to itself" in out
    assert "the plan is that of `pack = [dp, pp]`" in out
    assert re.search(r"chosen: (?!.*early).*pack.*; `opusc", flat(out)), "nothing is asked where nothing changes"
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert plan["exclusions"] == {"a": [], "b": []}


def test_the_plan_that_was_chosen_is_the_one_that_is_proved() -> None:
    text = FIG13.read_text()
    made = compile_source(Source("x", text), FIG13.parent, {"ports": "4", "delay": "1 s"})
    assert made.choice is not None
    assert made.plan.schedule is not None
    assert made.plan.schedule.changes == ()
    assert len(made.plan.exclusions) == 0
    assert made.report.obligations[-1].name == "traffic meets light"
    turns = compile_source(Source("x", text), FIG13.parent, {"ports": "4"})
    assert turns.plan.schedule is not None
    assert len(turns.plan.schedule.changes) == 6
    # A message over each of three joins both ways.
    assert turns.report.obligations[-1].count == len(turns.plan.schedule.transfers)
    assert sum(t.operation.endswith("send") for t in turns.plan.schedule.transfers) == 6
    left_open = compile_source(Source("x", text), FIG13.parent, {"ports": "4", "delay": "1 s"}, choosing=False)
    assert (left_open.choice, left_open.plan.schedule) == (None, None)
    assert len(left_open.plan.exclusions) > 0


def test_nothing_is_asked_where_nothing_shares_a_port(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "p.opus"
    program.write_text(
        "opus 1\nuse std.switches\n"
        "cluster c { node_count = 4, gpus_per_node = 1, nic = { ports = 2, rate = 400 Gbps, optics = duplex } }\n"
        "fabric f { cluster = c, rail_by = local_rank, switch = switches.generic { matrix = crossbar, radix = 8 } }\n"
        "job j { fabric = f, parallelism = { dp = 4 }, policy = auto }\n"
    )
    code, out, err = run(capsys, "compile", str(program), "-o", str(tmp_path / "out"))
    assert (code, err) == (0, "")
    assert "auto" not in out


def test_simulate_chooses_for_each_delay_and_decides_requirements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "p.opus"
    program.write_text(FIG13.read_text() + "\nrequire overhead < 0.1 %\nrequire reconfigurations == 6\n")
    arguments = ["--reconfigure", "10ms,1s", "-D", "ports=4", "-o", str(tmp_path / "out")]
    code, out, err = run(capsys, "simulate", str(program), *arguments)
    assert (code, err) == (0, "")
    assert "held         require overhead < 0.1 %: overhead = 0.000 %" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    with (tmp_path / "out" / "overhead.csv").open() as file:
        rows = {(r["policy"], r["delay_ps"]): int(r["iteration_ps"]) for r in csv.DictReader(file)}
    assert rows["auto", "10000000000"] < rows["auto", "1000000000000"] < 2_750 * 10**9
    document = json.loads((tmp_path / "out" / "auto.json").read_text())
    by_delay = {one["delay"]: one for one in document["schedules"]}
    assert by_delay[10**12]["packed"] == ["dp", "pp"]
    assert by_delay[10**12]["changes"] == []
    assert len(by_delay[10**10]["changes"]) == 6
    assert by_delay[10**10]["start"] == ["dp[0]", "dp[1]", "dp[2]", "dp[3]"]
    assert {one["what"] for one in by_delay[10**10]["proved"]} >= {"traffic meets light"}
