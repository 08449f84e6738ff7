"""docs/language.md says what the compiler does: its programs are compiled, its tables are the compiler's own.

A comment before a block says more of it: `says: CODE` that this code, and no other, is said of it, `file: NAME`
that later blocks read it under that name, `reads: NAMES` that this one does.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from opusc import check
from opusc.model.functions import FUNCTIONS
from opusc.model.schema import KINDS, TOPOLOGIES
from opusc.model.units import UNITS
from tests.docs.tables import PAGE, TABLES, filled

TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:^<!-- (says|file|reads): ([^\n]*) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: A job for blocks that have none, with no standard module, so that nothing is used twice.
JOB = """
cluster whole { node_count = 4, gpus_per_node = 1, nic = { ports = 2, rate = 200 Gbps, optics = duplex } }
fabric whole_rails { cluster = whole, rail_by = local_rank, switch = { matrix = crossbar, radix = 32 } }
job whole_job { fabric = whole_rails, parallelism = { dp = 4 } }
"""


class Example(NamedTuple):
    mark: str
    value: str
    language: str
    text: str


BLOCKS = [Example(*(part or "" for part in match)) for match in BLOCK.findall(TEXT)]
FILES = {block.value: block.text for block in BLOCKS if block.mark == "file"}
PROGRAMS = [block for block in BLOCKS if block.language == "opus"]


def messages(program: Example, folder: Path) -> list[str]:
    for name in program.value.split() if program.mark == "reads" else []:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILES[name])
    text = program.text if re.search(r"^job ", program.text, re.MULTILINE) else program.text + JOB
    main = folder / "main.opus"
    main.write_text(text)
    return [f"{d.code} {d.message}" for d in check(main)]


@pytest.mark.parametrize("program", PROGRAMS, ids=[f"{number}" for number in range(1, len(PROGRAMS) + 1)])
def test_every_program_does_what_the_page_says(program: Example, tmp_path: Path) -> None:
    found = messages(program, tmp_path)
    if program.mark == "says":
        assert {message.split()[0] for message in found} == {program.value}, found
    else:
        assert found == []


def test_every_block_is_a_whole_program_a_file_or_marked_as_neither() -> None:
    assert TEXT.count("\n```") == 2 * len(BLOCKS)
    for block in BLOCKS:
        assert block.language in ("opus", "csv", "text")
        assert block.mark in ("", "says", "file", "reads")
        if block.language == "opus":
            assert block.text.startswith("opus 1\n")
    assert set(FILES) == {name for block in BLOCKS if block.mark == "reads" for name in block.value.split()}


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_the_compilers_own(name: str) -> None:
    """After a change: python -m tests.docs.tables"""
    assert f"<!-- table: {name} -->\n\n{TABLES[name]()}\n\n<!-- end -->" in TEXT
    assert filled(TEXT) == TEXT


@pytest.mark.parametrize(
    "names",
    [
        [field.name for kind in KINDS.values() for field in kind.fields],
        UNITS,
        FUNCTIONS,
        TOPOLOGIES,
    ],
    ids=["fields", "units", "functions", "topologies"],
)
def test_nothing_is_left_out(names: Iterable[str]) -> None:
    for name in names:
        assert re.search(rf"`{re.escape(name)}\b", TEXT) or f"`{name}`" in TEXT, name
