"""`opusc push` against emulated switches with every kind of fault: all of them or none, and never a half-applied rail
reported as good."""

import json
import ssl
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from opusc.cli.main import main
from opusc.plan.configurations import configurations
from opusc.plan.plan import Plan
from opusc.plan.transitions import held
from tests.control.emulators import Drop, Emulated, http, scpi
from tests.real.conftest import program as executable

Capture = pytest.CaptureFixture[str]

PROGRAM = """\
opus 1

use std.switches

cluster c {{
  node_count    = 8
  gpus_per_node = {gpus}
  nic           = {{ ports = 2, rate = 200 Gbps, optics = duplex }}
}}

fabric rails {{
  cluster = c
  rail_by = local_rank
  switch  = switches.generic {{ matrix = crossbar, radix = 16, driver = {driver}, {names} address = {address} }}
}}

job j {{
  fabric      = rails
  parallelism = {{ tp = {gpus}, dp = 2, pp = 4 }}
}}
"""
NAMES = 'ingress_name = "1.1.{position}", egress_name = "2.1.{position}",'


def written(path: Path, *ports: int, driver: str = "polatis", scheme: str = "") -> Path:
    """A program whose switches answer at these ports of the loopback interface."""
    numbers = ", ".join(f'"{scheme}127.0.0.1:{port}"' for port in ports)
    names = NAMES if driver == "calient" else ""
    text = PROGRAM.format(gpus=len(ports), driver=driver, names=names, address=f"[{numbers}][rail]")
    path.mkdir(exist_ok=True)
    (path / "p.opus").write_text(text)
    return path / "p.opus"


def plan_of(path: Path) -> Plan:
    import opusc

    return opusc.compile(path)


def wanted(path: Path, name: str, rail: int = 0) -> set[tuple[str, str]]:
    """What a configuration asks of a rail's switch, by numbers."""
    plan = plan_of(path)
    [found] = [c for c in configurations(plan) if c.name == name]
    return {(str(a), str(b)) for switch, a, b in held(plan, found.parts).tolist() if switch == rail}


def push(path: Path, *arguments: str) -> int:
    over = [] if "--over" in arguments else ["--over", "scpi"]
    return main(["push", str(path), *over, "--timeout", "1s", *arguments])


# --- showing and applying ------------------------------------------------------------------------


def test_without_apply_nothing_is_changed(tmp_path: Path, capsys: Capture) -> None:
    with scpi() as switch:
        path = written(tmp_path, switch.port)
        assert push(path, "--phase", "dp", "--dry-run") == 0
        assert push(path, "--phase", "dp") == 0
        assert (switch.pairs, switch.asked) == (set(), [])
        said = capsys.readouterr().out
        assert "rails.rail[0]           0       16     0       0" in said
        assert "+  1 > 20         node 0 GPU 0 port 0, rank 0  node 1 GPU 0 port 1, rank 1" in said
        assert said.endswith("nothing was changed: --apply does it\n")


def test_a_phase_is_applied_and_read_back(tmp_path: Path, capsys: Capture) -> None:
    with scpi() as switch:
        path = written(tmp_path, switch.port)
        assert push(path, "--phase", "dp", "--apply") == 0
        assert switch.pairs == wanted(path, "dp") != set()
        assert "1 switch changed" in capsys.readouterr().out
        assert push(path, "--phase", "dp", "--apply") == 0
        assert "1 switch held it already" in capsys.readouterr().out
        assert len(switch.asked) == 1, "what holds already is not asked for again"


def test_a_schedule_disconnects_first_and_names_nothing_that_stays(tmp_path: Path) -> None:
    with scpi() as switch:
        path = written(tmp_path, switch.port)
        assert push(path, "--schedule", "--times", "3", "--apply") == 0
        assert switch.pairs == wanted(path, "pp")
        verbs = [line.split(" ")[0].rpartition(":")[2] for line in switch.asked]
        assert verbs == ["add", *["sub", "add"] * 5]


def test_parts_leave_what_can_hold_beside_them(tmp_path: Path) -> None:
    with scpi() as switch:
        path = written(tmp_path, switch.port)
        assert push(path, "--phase", "dp", "--apply") == 0
        assert push(path, "--phase", "pp", "--stage", "0", "--apply") == 0
        plan = plan_of(path)
        parts = {plan.parts[at].name: at for at in range(len(plan.parts))}
        left = held(plan, [parts["pp[0-1]"], parts["dp[2]"], parts["dp[3]"]])
        assert switch.pairs == {(str(a), str(b)) for _, a, b in left.tolist()}


def test_the_log_has_every_change(tmp_path: Path) -> None:
    with scpi() as switch:
        path = written(tmp_path, switch.port)
        log = tmp_path / "log.jsonl"
        assert push(path, "--schedule", "--apply", "--log", str(log)) == 0
        events = [json.loads(line) for line in log.read_text().splitlines()]
        assert [event["event"] for event in events] == ["change", "changed"] * 2
        assert {tuple(pair) for pair in events[-1]["holds"]} == switch.pairs


# --- faults --------------------------------------------------------------------------------------


def two(stack: ExitStack, tmp_path: Path) -> tuple[Path, Emulated, Emulated]:
    """Two rails that hold phase dp."""
    first, second = stack.enter_context(scpi()), stack.enter_context(scpi())
    path = written(tmp_path, first.port, second.port)
    assert push(path, "--phase", "dp", "--apply") == 0
    return path, first, second


def test_where_one_switch_refuses_all_go_back(tmp_path: Path, capsys: Capture) -> None:
    with ExitStack() as stack:
        path, first, second = two(stack, tmp_path)
        before = set(first.pairs), set(second.pairs)
        refused: list[str] = []

        def refuse_once(switch: Emulated, words: str) -> str | None:
            if ":add" in words and not refused:
                refused.append(words)
                return "port 22 is disabled"
            return None

        second.fault = refuse_once
        assert push(path, "--phase", "pp", "--apply") == 1
        assert (first.pairs, second.pairs) == before
        said = capsys.readouterr()
        assert "error[OPUS743]: rails.rail[1] did not take `pp`: port 22 is disabled (-200)" in said.err
        words = " ".join(said.err.split())
        assert "it lacks port 1 (node 0 GPU 1 port 0, rank 1) to port 22 (node 2 GPU 1 port 1, rank 5)" in words
        assert "it was put back to what it held" in said.err
        assert "2 switches put back" in said.out


def test_a_switch_that_does_nothing_and_says_yes_is_found_out(tmp_path: Path, capsys: Capture) -> None:
    with ExitStack() as stack:
        path, first, second = two(stack, tmp_path)
        before = set(first.pairs), set(second.pairs)

        original = second.change
        second.change = lambda words, gone, come: None  # type: ignore[method-assign]
        assert push(path, "--phase", "pp", "--apply") == 1
        second.change = original  # type: ignore[method-assign]
        assert (first.pairs, second.pairs) == before
        assert "OPUS745" in capsys.readouterr().err


def test_a_lost_answer_is_read_back_not_repeated(tmp_path: Path, capsys: Capture) -> None:
    with scpi() as switch:
        path = written(tmp_path, switch.port)
        dropped: list[str] = []

        def drop_once(emulated: Emulated, words: str) -> str | None:
            if not dropped:
                dropped.append(words)
                emulated.pairs = wanted(path, "dp")  # it was made, and nobody hears of it
                raise Drop
            return None

        switch.fault = drop_once
        assert push(path, "--phase", "dp", "--apply") == 0
        assert switch.pairs == wanted(path, "dp")
        assert len(switch.asked) == 1
        assert "no acknowledgement" in capsys.readouterr().out


def test_a_lost_request_is_made_again(tmp_path: Path) -> None:
    with scpi() as switch:
        path = written(tmp_path, switch.port)

        def drop_once(emulated: Emulated, words: str) -> str | None:
            if len(emulated.asked) == 1:
                raise Drop
            return None

        switch.fault = drop_once
        assert push(path, "--phase", "dp", "--apply") == 0
        assert switch.pairs == wanted(path, "dp")
        assert len(switch.asked) == 2


def test_a_switch_that_restarts_between_steps_gets_its_whole_set(tmp_path: Path, capsys: Capture) -> None:
    with scpi() as switch:
        path = written(tmp_path, switch.port)

        def restart(emulated: Emulated, words: str) -> str | None:
            if len(emulated.asked) == 1:
                threading.Timer(0.15, emulated.pairs.clear).start()
            return None

        switch.fault = restart
        assert push(path, "--schedule", "--apply") == 0
        time.sleep(0.2)
        switch.fault = None
        assert push(path, "--phase", "pp", "--apply") == 0
        assert switch.pairs == wanted(path, "pp")


def test_a_switch_that_stays_away_stops_the_step_before_anything_is_changed(tmp_path: Path, capsys: Capture) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(scpi())
        with scpi() as second:
            gone = second.port
        path = written(tmp_path, first.port, gone)
        assert push(path, "--phase", "dp", "--apply") == 1
        assert (first.pairs, first.asked) == (set(), [])
        said = capsys.readouterr()
        assert "error[OPUS740]: rails.rail[1] cannot be read: Connection refused" in said.err
        assert "2 switches not touched" in said.out


def test_a_switch_that_cannot_be_put_back_is_told(tmp_path: Path, capsys: Capture) -> None:
    with ExitStack() as stack:
        path, first, second = two(stack, tmp_path)
        second.fault = lambda switch, words: "out of order"
        first.fault = lambda switch, words: "out of order" if ":add" in words else None
        assert push(path, "--phase", "pp", "--apply") == 1
        said = capsys.readouterr().err
        assert "OPUS747" in said
        assert "rails.rail[0] could not be put back" in said


def test_circuits_of_others_are_never_touched(tmp_path: Path, capsys: Capture) -> None:
    with scpi() as switch:
        path = written(tmp_path, switch.port)
        path.write_text(path.read_text().replace("dp = 2, pp = 4", "dp = 2, pp = 3"))  # nodes 6 and 7 are free
        switch.pairs = {("13", "29"), ("14", "30")}
        assert push(path, "--phase", "dp", "--apply") == 0
        assert {("13", "29"), ("14", "30")} < switch.pairs
        switch.pairs = {("1", "29")}
        switch.asked.clear()
        assert push(path, "--phase", "dp", "--apply") == 1
        assert (switch.pairs, switch.asked) == ({("1", "29")}, [])
        said = capsys.readouterr().err
        assert "error[OPUS746]: rails.rail[0] holds 1 circuit of others" in said
        assert "--take 'rails.rail[0]:1>29'" in said
        assert push(path, "--phase", "dp", "--apply", "--take", "rails.rail[0]:1>29") == 0
        assert switch.pairs == wanted(path, "dp")


def test_a_wrong_protocol_is_told(tmp_path: Path, capsys: Capture) -> None:
    with http() as switch:
        path = written(tmp_path, switch.port)
        assert push(path, "--phase", "dp", "--apply") == 1
        assert "OPUS740" in (said := capsys.readouterr().err) or "OPUS744" in said


def test_ctrl_c_ends_after_a_step(tmp_path: Path) -> None:
    import os
    import signal

    with scpi() as switch:
        path = written(tmp_path, switch.port)
        command = [sys.executable, "-m", "opusc", "push", str(path), "--over", "scpi", "--schedule", "--times", "0"]
        running = subprocess.Popen(
            [*command, "--apply"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
        end = time.monotonic() + 30
        while time.monotonic() < end and len(switch.asked) < 20:
            time.sleep(0.01)
        os.kill(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=30)
        assert running.returncode == 1
        assert "every switch holds the last" in " ".join(out.split())
        assert "Traceback" not in err
        assert switch.pairs in (wanted(path, "dp"), wanted(path, "pp"))


# --- HTTP, TLS -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("driver", "over"), [("polatis", "restconf"), ("calient", "rest")])
def test_switches_over_http(driver: str, over: str, tmp_path: Path, capsys: Capture) -> None:
    with http() as switch:
        path = written(tmp_path, switch.port, driver=driver, scheme="http://")
        assert push(path, "--schedule", "--times", "2", "--apply", "--over", over) == 0
        want = wanted(path, "pp")
        if driver == "calient":
            want = {(f"1.1.{a}", f"2.1.{int(b) - 16}") for a, b in want}
        assert switch.pairs == want
        switch.fault = lambda emulated, words: "no"
        before = set(switch.pairs)
        assert push(path, "--phase", "dp", "--apply", "--over", over) == 1
        assert switch.pairs == before
        assert "OPUS743" in capsys.readouterr().err


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and a self-signed certificate for the loopback address, in one file."""
    place = tmp_path / "tls"
    place.mkdir()
    subprocess.run(
        [executable("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=switch", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
         "-keyout", str(place / "key.pem"), "-out", str(place / "cert.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    return place


def test_certificates_are_verified(certificate: Path, tmp_path: Path, capsys: Capture) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with http(context) as switch:
        path = written(tmp_path, switch.port)
        order = ["--phase", "dp", "--apply", "--over", "restconf"]
        assert push(path, *order) == 1
        assert switch.pairs == set()
        assert "error[OPUS741]" in capsys.readouterr().err
        assert push(path, *order, "--ca", str(certificate / "cert.pem")) == 0
        assert switch.pairs == wanted(path, "dp")
        switch.pairs = set()
        assert push(path, *order, "--insecure") == 0


def test_credentials_come_from_the_environment(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OPUSC_PASSWORD", raising=False)
    with http(password="Basic b3BlcmF0b3I6c2VjcmV0") as switch:
        path = written(tmp_path, switch.port, scheme="http://")
        order = ["--phase", "dp", "--apply", "--over", "restconf"]
        assert push(path, *order) == 1
        assert "OPUS742" in capsys.readouterr().err
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login operator password secret\n")
        (tmp_path / ".netrc").chmod(0o600)
        assert push(path, *order) == 0
        (tmp_path / ".netrc").unlink()
        monkeypatch.setenv("OPUSC_USER", "operator")
        monkeypatch.setenv("OPUSC_PASSWORD", "secret")
        assert push(path, *order) == 0
        said = capsys.readouterr()
        assert "secret" not in said.out + said.err


# --- wrong orders --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say what to push: --phase NAME, or --schedule"),
        (["--phase", "dp", "--schedule"], "say what to push"),
        (["--schedule", "--stage", "1"], "--stage and --step belong to --phase"),
        (["--phase", "dp", "--offline", "--apply"], "--offline asks no switch"),
        (["--phase", "dp", "--dry-run", "--apply"], "--dry-run changes nothing"),
        (["--phase", "dq", "--offline"], "the job has no phase `dq`; did you mean `dp`?"),
        (["--phase", "dp", "--offline", "--switch", "rails.rail[7]"], "did you mean `rails.rail[0]`?"),
        (["--phase", "dp", "--take", "3>4"], "should be SWITCH:IN>OUT"),
    ],
)
def test_an_order_that_makes_no_sense(arguments: list[str], said: str, tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path, 9)
    try:
        code = push(path, *arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert said in capsys.readouterr().err
