"""The command line as a shell sees it: exit codes, streams, help. Programs are compiled in test_commands.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opusc.cli import explain
from opusc.cli.arguments import make_parser
from opusc.cli.commands import COMMANDS
from opusc.cli.main import main
from opusc.version import __version__

ROOT = Path(__file__).parents[2]
def shell(*arguments: str, **options: object) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, "-m", "opusc", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        **options,  # type: ignore[call-overload]
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == main(["-V"]) == 0
    assert capsys.readouterr().out == f"opusc {__version__}\n" * 2
    assert shell("--version").stdout == f"opusc {__version__}\n"


def test_help_teaches_every_command_with_examples() -> None:
    text = shell("--help").stdout
    for command in COMMANDS:
        assert f"  {command} " in text
        page = shell(command, "--help").stdout
        assert f"opusc {command}" in page.split("examples:")[1]
    for line in text.splitlines():
        assert len(line) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_terminal(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        make_parser().parse_args([command, "--help"])
    assert stopped.value.code == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "COMMAND"),
        (["frobnicate"], "frobnicate"),
        (["check"], "FILE"),
        (["check", "no-such-file.opus"], "cannot read `no-such-file.opus`: No such file"),
        (["check", "."], "cannot read `.`: Is a directory"),
        (["check", "x.opus", "-D", "dp"], "should be NAME=VALUE"),
        (["check", "x.opus", "--root", "/no/such/folder"], "is not a folder"),
        (["compile", "x.opus", "-t", "plam"], "did you mean `plan`?"),
        (["compile", "x.opus", "--max-output", "2 XB"], "2 GiB"),
        (["explain", "OPUS9999"], "there is no message `OPUS9999`"),
        (["explain", "OPUS01"], "did you mean `OPUS001`?"),
        (["show", "switchs"], "did you mean the topic `switches`?"),
        (["show", "units", "extra"], "takes no further word"),
        (["show", "units", "--rank", "3"], "for programs"),
        (["show", "x.opus", "extra"], "is no topic"),
        (["show", "x.opus", "--rank", "-1"], "a number from 0"),
        (["show", "x.opus", "--rank", "one"], "a number from 0"),
        (["schema", "plam"], "did you mean `plan`?"),
        (["fmt", "a.opus", "b.opus"], "say -i (rewrite), --check or --diff"),
        (["fmt", "-i", "-"], "cannot be rewritten"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_invocation_ends_with_2_and_says_why(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.opus").write_text("opus 1\n")
    try:
        code = main(arguments)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    streams = capsys.readouterr()
    assert code == 2
    assert says in streams.err
    assert streams.out == ""
    assert "Traceback" not in streams.err


def test_an_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(explain, "run", interrupted)
    assert main(["explain"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_defect_of_a_command_is_reported_without_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(options: object) -> int:
        raise ZeroDivisionError("seeded")

    monkeypatch.setattr(explain, "run", broken)
    assert main(["explain"]) == 2
    said = capsys.readouterr().err
    assert "internal error in `explain`: ZeroDivisionError: seeded" in said
    assert "Traceback" not in said
    monkeypatch.setenv("OPUSC_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["explain"])


def test_a_reader_that_goes_away_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "opusc", "explain", "OPUS001"],
        stdout=writer,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    os.close(writer)
    assert done.returncode == 141
    assert done.stderr == b""


def test_explain_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "opus901"]) == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "errors" / "OPUS901.md").read_text()
    assert main(["explain"]) == 0
    assert "OPUS901" in capsys.readouterr().out


def test_a_terminal_without_unicode_still_gets_its_text() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "opusc", "check", "né.opus"], capture_output=True, env=environment, timeout=60
    )
    assert done.returncode == 2
    assert b"n\\xe9.opus" in done.stderr


def test_the_installed_script_imports_nothing_but_opusc() -> None:
    script = ROOT / "scripts" / "opusc"
    assert os.access(script, os.X_OK), "pip installs it with the mode that it has here"
    assert script.read_text().startswith("#!python\n"), "the line that installers replace"
    done = subprocess.run(
        [sys.executable, str(script), "--version"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert done.stdout == f"opusc {__version__}\n"
