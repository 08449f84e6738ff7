"""Programs and commands in the documentation work as printed."""

import re
import shlex
from pathlib import Path

import pytest

from opusc import check
from opusc.cli.arguments import make_parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```opus\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^ {4}(?:\$ )?(opusc .*)$", re.MULTILINE)


def programs() -> list[object]:
    """The `opus` blocks that are whole programs: they begin with the version line."""
    found = []
    for page in PAGES:
        if page.stem == "language":
            continue  # tests/docs compiles its programs, some of which are refused
        for number, block in enumerate(FENCE.findall(page.read_text()), 1):
            if re.search(r"^opus 1$", block, re.MULTILINE):
                found.append(pytest.param(block, id=f"{page.stem}-{number}"))
    return found


def commands() -> list[object]:
    return [
        pytest.param(command, id=f"{page.stem}: {command}")
        for page in PAGES
        for command in COMMAND.findall(page.read_text())
    ]


@pytest.mark.parametrize("program", programs())
def test_a_program_in_the_documentation_compiles(program: str, tmp_path: Path) -> None:
    if not re.search(r"^job ", program, re.MULTILINE):  # a module: used by a program that has a job
        (tmp_path / "block.opus").write_text(program)
        quickstart = (ROOT / "examples" / "quickstart" / "quickstart.opus").read_text()
        program = quickstart.replace("\nuse ", '\nuse "block.opus"\nuse ', 1)
    assert check(program, root=tmp_path).errors == []


@pytest.mark.parametrize("command", commands())
def test_a_command_in_the_documentation_exists(command: str) -> None:
    words = shlex.split(command.split(" | ")[0].split(" > ")[0].split(" < ")[0], comments=True)
    make_parser().parse_args(words[1:])


def test_links_lead_somewhere() -> None:
    for page in [*PAGES, *sorted((ROOT / "docs" / "errors").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
