"""What the documentation prints below a command is what the command prints, times left out.

A command is indented by four spaces and names a program of `examples/`; the next fence of `text` is its output, one of
`yaml`, `json` or `xml` a file that it writes below `-o`. A line `...` stands for any lines.
"""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from opusc.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: A command, at most a sentence, and the fence below it.
PRINTED = re.compile(
    r"^ {4}[^\n]*?\b(opusc [a-z-]+ examples/[^\n]*)\n\n(?:[^\n`#][^\n]*\n){0,3}\n?"
    r"^```(text|yaml|json|xml)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
#: How long something took, which no two runs have in common.
SECONDS = re.compile(r"\(\d[\d,.]* m?s\)|\bin \d[\d.]* m?s\b")


class Printed(NamedTuple):
    page: str
    command: str
    form: str
    text: str


def printed() -> list[object]:
    return [
        pytest.param(Printed(page.name, *found), id=f"{page.stem}: {found[0]}")
        for page in PAGES
        for found in PRINTED.findall(page.read_text(encoding="utf-8"))
    ]


def like(shown: str, whole: str) -> str | None:
    """The first line that is shown and not there; None when all are, in order and without gaps but those of `...`."""
    there = [SECONDS.sub("#", line.rstrip()) for line in whole.rstrip().splitlines()]
    at, gap = 0, False
    for line in shown.splitlines():
        if line.strip() in ("...", "# ..."):
            gap = True
            continue
        wanted = SECONDS.sub("#", line.rstrip())
        found = next((n for n in range(at, len(there)) if there[n] == wanted), None)
        if found is None or (found != at and not gap):
            return f"{line!r} is shown, and there is {there[at] if at < len(there) else 'no more'!r}"
        at, gap = found + 1, False
    return None if gap or at == len(there) else f"{there[at]!r} is not shown"


@pytest.mark.parametrize("case", printed())
def test_the_output_is_that_of_the_command(
    case: Printed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert main(shlex.split(case.command, comments=True)[1:]) == 0
    out = capsys.readouterr().out
    if case.form == "text":
        assert like(case.text, out) is None
    else:
        files = [path.read_text() for path in tmp_path.rglob(f"*.{case.form}") if "examples" not in path.parts]
        assert any(like(case.text, text) is None for text in files), [like(case.text, text) for text in files]


def test_the_readme_shows_outputs() -> None:
    assert [case.values[0].page for case in printed()].count("README.md") >= 4  # type: ignore[attr-defined]


def test_a_shown_line_that_is_wrong_is_noticed() -> None:
    whole = "a  1\nb\nc (3 ms)\nd\n"
    assert like("a  1\nb\nc (7 ms)\nd\n", whole) is None
    assert like("a  1\n...\nd\n", whole) is None
    assert like("a  1\n...\n", whole) is None
    for wrong in ("a  2\n...\n", "a  1\nb\nc (3 ms)\n", "a  1\nc (3 ms)\nd\n", "b\nc (3 ms)\nd\n", f"{whole}e\n"):
        assert like(wrong, whole) is not None
