"""Every diagnostic code has a page and a failing program that yields exactly it.

A program or a page's block may need more than `opusc check`: a line `# opusc: -t astra-sim -D dp=3` in it
gives further arguments; with `-t` it is compiled, and a command's word first (`simulate`) chooses that command.
Files that programs and arguments name stand in this directory, which is the project root of pages' blocks too.

Codes of opusc's own failures (008, 9xx) have a page but no program: tests/cli and tests/syntax inject them. So do
codes of the proofs (5xx), which no program can cause while opusc is right: tests/verify breaks plans to see them;
and codes of switches and clients that fail while a job runs (74x to 79x): tests/control emulates those.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from opusc.cli.commands import COMMANDS
from opusc.cli.main import main
from opusc.diagnostics.codes import CODES

HERE = Path(__file__).parent
PAGES = HERE.parents[1] / "docs" / "errors"
PROGRAMS = sorted(HERE.glob("OPUS*.opus"))
USER_CODES = [code for code in CODES if not re.match("OPUS(008|5|7[4-9]|9)", code)]
HEADINGS = ["## What it does", "## Why", "## Example", "## Instead"]
BLOCK = re.compile(r"^```opus\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


def messages(program: Path, output: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What opusc says about a program, as JSON."""
    match = re.search(r"^# opusc: (.*)$", program.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    extra = shlex.split(match[1]) if match else []
    command = ["compile", "-o", str(output / "build")] if "-t" in extra else ["check"]
    if extra and extra[0] in COMMANDS:
        command, extra = extra[:1], extra[1:]
    code = main([*command, str(program), "--root", str(HERE), "--format", "json", *extra])
    document = json.loads(capsys.readouterr().out)
    assert code == (1 if document["summary"]["errors"] else 0)
    found: list[dict[str, Any]] = document["diagnostics"]
    return found


def page(code: str) -> str:
    return (PAGES / f"{code}.md").read_text(encoding="utf-8")


def section(code: str, heading: str) -> str:
    after = page(code).split(f"\n{heading}\n")[1]
    return after.split("\n## ")[0]


def blocks(text: str) -> list[str]:
    return BLOCK.findall(text)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_a_failing_program_yields_its_code_and_no_other(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = messages(program, tmp_path, capsys)
    assert {d["code"] for d in found} == {program.stem[:7]}, found
    for diagnostic in found:
        assert diagnostic["message"]
        assert diagnostic["span"]["start"]["offset"] <= diagnostic["span"]["end"]["offset"]


@pytest.mark.parametrize("code", USER_CODES)
def test_every_code_has_a_failing_program_named_after_it(code: str) -> None:
    names = [p.stem for p in PROGRAMS if p.stem.startswith(code)]
    assert f"{code}-{CODES[code].slug}" in names, names


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_page_in_the_common_form(code: str) -> None:
    text = page(code)
    assert text.startswith(f"# {code}: "), "the title names the code"
    own = [line for line in text.splitlines() if line.startswith("## ")]
    expected = HEADINGS if code in USER_CODES else own
    assert own == expected
    assert len(CODES[code].slug) < 40


def test_no_page_or_program_is_left_over() -> None:
    assert {p.stem for p in PAGES.glob("*.md") if p.stem.startswith("OPUS")} == set(CODES)
    assert {p.stem[:7] for p in PROGRAMS} <= set(CODES)


@pytest.mark.parametrize("code", USER_CODES)
def test_the_example_of_a_page_yields_its_code_and_the_way_out_does_not(
    code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "example.opus"
    [example] = blocks(section(code, "## Example"))
    program.write_text(example)
    assert {d["code"] for d in messages(program, tmp_path, capsys)} == {code}
    instead = blocks(section(code, "## Instead"))
    assert instead, "the page shows no way out"
    for block in instead:
        program.write_text(block)
        assert messages(program, tmp_path, capsys) == []


def test_codes_are_ordered_and_their_slugs_differ() -> None:
    assert list(CODES) == sorted(CODES)
    assert len({code.slug for code in CODES.values()}) == len(CODES)
    for name, code in CODES.items():
        assert re.fullmatch(r"OPUS\d{3}", name)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code.slug)
        assert not code.title.endswith(".")
