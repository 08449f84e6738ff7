"""SimGrid plays every example: no message meets a dark circuit, time is what the plan's walk says, faults show."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from opusc.backends.simgrid import BACKEND, MESSAGE_BYTES
from opusc.diagnostics import CompileError
from opusc.driver import compile_source
from opusc.plan.configurations import walk
from opusc.plan.plan import Plan
from opusc.plan.transitions import held, transition
from opusc.source import Source
from tests.backends.cases import PLANS, plan_of, timed, write
from tests.real.conftest import missing

PYTHON = "/usr/bin/python3"  # Debian builds the module for its own Python
MS = 10**9
LATENCY = 936_250  # ps
EXAMPLES = Path(__file__).parents[2] / "examples"
SLOW = {"flattened-butterfly", "nvl72"}  # 12,032 and 2,880 circuits: SimGrid has a thread for each NIC port

NAMES = sorted(path.stem for path in EXAMPLES.glob("*/*.opus") if "# refused:" not in path.read_text(encoding="utf-8"))
CASES = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in NAMES]


@pytest.fixture(scope="module", autouse=True)
def simgrid() -> None:
    try:
        subprocess.run([PYTHON, "-c", "import simgrid"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        missing("python3-simgrid")


@cache
def example(name: str) -> Plan:
    path = EXAMPLES / name / f"{name}.opus"
    try:
        # Most examples state no times of their switches, and this target demands them.
        return timed(compile_source(Source(str(path), path.read_text(encoding="utf-8")), path.parent).plan)
    except CompileError:
        pytest.fail(f"{name} no longer compiles")


def play(folder: Path, *options: str) -> tuple[int, dict[str, int], str]:
    """Exit code, what was printed, and the messages about dark circuits."""
    command = [PYTHON, str(folder / "simgrid" / "run.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    found = {key: int(value) for key, value in re.findall(r"^(\w+) (\d+)$", done.stdout, re.MULTILINE)}
    assert found, done.stderr
    return done.returncode, found, done.stderr


def moves(plan: Plan) -> int:
    """Changes of one iteration, back to its first configuration, that move a circuit."""
    order = walk(plan)
    pairs = zip(order, (*order[1:], order[0]), strict=True)
    found = [transition(plan, before.parts, after.parts) for before, after in pairs]
    return sum(len(change.disconnect) + len(change.connect) > 0 for change in found)


@pytest.mark.parametrize("name", CASES)
def test_an_iteration_takes_what_the_plan_says_and_meets_no_dark_circuit(name: str, tmp_path: Path) -> None:
    plan = example(name)
    write(BACKEND, plan, tmp_path)
    count, order = moves(plan), walk(plan)
    rate = plan.model.cluster.rail_nic.rate
    closed_form = sum(LATENCY + round(MESSAGE_BYTES * 8 * 10**12 / rate) for _ in order)
    times = {}
    for delay in (0, MS, 50 * MS):
        code, found, errors = play(tmp_path, "--reconfigure", str(delay))
        assert (code, found["changes"]) == (0, count), errors
        assert found["messages"] == sum(len(held(plan, c.parts)) for c in order)
        times[delay] = found["time_ps"]
    assert abs(times[0] - closed_form) <= len(order), "off by more than a picosecond a configuration"
    assert {delay: time - times[0] for delay, time in times.items()} == {d: count * d for d in times}
    assert play(tmp_path)[1]["time_ps"] - times[0] == count * 10 * MS, "the plan's own delay is 10 ms here"


@pytest.mark.parametrize("name", CASES)
def test_a_circuit_that_does_not_come_up_is_met(name: str, tmp_path: Path) -> None:
    plan = example(name)
    if moves(plan) == 0:
        pytest.fail(f"{name} has no change to break")
    write(BACKEND, plan, tmp_path)
    for change in {0, moves(plan) - 1}:
        code, _, errors = play(tmp_path, "--break", str(change), "--iterations", "2")
        assert code == 1, f"change {change} of {name} was broken, and nothing noticed"
        assert "dark: " in errors


def test_a_schedule_that_turns_off_what_it_still_needs_is_met(tmp_path: Path) -> None:
    write(BACKEND, timed(plan_of("quickstart")), tmp_path)
    job = tmp_path / "simgrid" / "job.json"
    text = job.read_text()
    broken = re.sub(r'"up": \[\d+, ', '"up": [', text, count=1)
    assert broken != text
    job.write_text(broken)
    assert play(tmp_path)[0] == 1


@pytest.mark.parametrize("name", sorted(PLANS))
def test_every_kind_of_plan_plays(name: str, tmp_path: Path) -> None:
    """Two-way light, matrices that join any two ports, planes, relays and exclusive steps."""
    plan = timed(plan_of(name))
    write(BACKEND, plan, tmp_path)
    code, found, errors = play(tmp_path)
    assert (code, found["changes"]) == (0, moves(plan)), errors
