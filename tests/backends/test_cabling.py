"""Patch lists: what is written is every cable, and the language gets the same cabling back from it."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opusc.backends.base import Options
from opusc.backends.cabling import BACKEND, PatchList
from opusc.backends.validate import validate
from opusc.diagnostics import Diagnostics
from opusc.driver import compile_file
from opusc.model.entities import Optics
from opusc.plan.plan import Plan
from tests.backends.cases import PLANS
from tests.support import make_plan

PROGRAM = """\
opus 1

use std.switches

cluster c {{
  node_count    = 6
  gpus_per_node = 2
  nic           = {{ ports = {ports}, rate = 200 Gbps, optics = {optics} }}
}}

fabric rails {{
  cluster = c
  rail_by = local_rank
  switch  = switches.generic {{ matrix = {matrix}, radix = 32, blocked = [3]{more} }}
  planes  = {planes}
{cabling}
}}

job j {{
  fabric      = rails
  parallelism = {{ tp = 2, dp = 3, pp = 2 }}
}}
"""


def program(directory: Path, cabling: str = "", **options: Any) -> Plan:
    options = {"ports": 2, "optics": "duplex", "matrix": "crossbar", "planes": 1, "more": ""} | options
    path = directory / "p.opus"
    path.write_text(PROGRAM.format(cabling=cabling, **options))
    return compile_file(path).plan


def write(plan: Plan, directory: Path) -> Path:
    for name, chunks in BACKEND.write(plan, Options()):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(chunks))
    return directory / "cabling"


def objections(plan: Plan, directory: Path) -> list[str]:
    sink = Diagnostics()
    validate(BACKEND, plan, directory, sink)
    return [d.message for d in sink]


@pytest.mark.parametrize("name", PLANS)
def test_what_was_written_is_read_back(name: str, tmp_path: Path) -> None:
    plan = make_plan(**PLANS[name])
    write(plan, tmp_path)
    assert objections(plan, tmp_path) == []


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ports": 4, "planes": 2},
        {"optics": "bidi"},
        {"matrix": "any"},
        {"optics": "bidi", "matrix": "any"},
        {"more": ', driver = sonic, address = "10.0.0.{rail}"'},
        {"more": ', ingress_name = "1.1.{position}", egress_name = "2.1.{position}"'},
    ],
    ids=str,
)
def test_the_language_gets_the_same_cabling_back(options: dict[str, Any], tmp_path: Path) -> None:
    before = program(tmp_path, **options)
    write(before, tmp_path)
    after = program(tmp_path, '  cabling = csv "cabling/cabling.csv"', **options)
    assert not after.cabling.regular
    for column in ("switch", "ingress", "egress"):
        assert np.array_equal(getattr(before.cabling, column), getattr(after.cabling, column))


def test_both_ends_are_called_as_they_are_labelled(tmp_path: Path) -> None:
    folder = write(program(tmp_path, more=', driver = sonic, address = "10.0.0.{rail}"'), tmp_path)
    head, first, *_ = (folder / "cabling.csv").read_text().splitlines()
    assert head == "rail,node,gpu,port,switch,position,transmit to,receive from"
    assert first == "0,0,0,0,rails.rail[0],1,1A,1B"
    sheet = (folder / "rails.rail-1.md").read_text()
    assert sheet.startswith("# rails.rail[1]: 12 cables\n")
    assert "at 10.0.0.1," in sheet
    assert "Leave free (blocked): 3." in sheet
    rows = [re.split(r" *\| *", line.strip("| ")) for line in sheet.splitlines() if line.startswith("| [ ]")]
    assert [row[1] for row in rows] == [str(p) for p in (1, 2, *range(4, 14))], "the walk along the front panel"
    assert max(map(len, sheet.splitlines())) <= 100


def test_the_jacks_of_patch_panels_are_on_the_list(tmp_path: Path) -> None:
    near = ["node,gpu,port,far"]
    middle, far = ["near,far"], ["near,position"]
    for at, (node, gpu, port) in enumerate((n, g, p) for n in range(6) for g in range(2) for p in range(2)):
        near.append(f"{node},{gpu},{port},row-{at}")
        middle.append(f"row-{at},core|{at}")
        far.append(f"core|{at},{4 + at // 4 * 2 + port}")
    for name, lines in (("near.csv", near), ("middle.csv", middle), ("far.csv", far)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    plan = program(tmp_path, '  cabling = csv ["near.csv", "middle.csv", "far.csv"]')
    folder = write(plan, tmp_path)
    assert objections(plan, tmp_path) == []
    assert (folder / "cabling.csv").read_text().splitlines()[:2] == [
        "rail,node,gpu,port,jack 1,jack 2,switch,position,transmit to,receive from",
        "0,0,0,0,row-0,core|0,rails.rail[0],4,4,36",
    ]
    sheet = (folder / "rails.rail-0.md").read_text().splitlines()
    assert (
        re.sub(r" +", " ", sheet[6])
        == "| done | position | transmit to | receive from | jack 2 | jack 1 | node | gpu | port |"
    )
    assert r"core\|0" in sheet[8], "from the switch to the node"


FAULTS = {
    "another position": ("cabling.csv", "0,0,0,0,rails.rail[0],1,", "0,0,0,0,rails.rail[0],9,"),
    "a row less": ("rails.rail-1.md", "| [ ]  | 2 ", "  [ ]  | 2 "),
    "another node": ("rails.rail-0.md", "| 1   ", "| 5   "),
    "no table": ("rails.rail-0.md", "|---", "|-x-"),
    "a broken quote": ("cabling.csv", "0,0,0,0,", '"0"x,0,0,0,'),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_what_was_written_is_found(fault: str, tmp_path: Path) -> None:
    plan = program(tmp_path)
    folder = write(plan, tmp_path)
    name, good, bad = FAULTS[fault]
    text = (folder / name).read_text()
    assert good in text
    (folder / name).write_text(text.replace(good, bad, 1))
    assert objections(plan, tmp_path)


@pytest.mark.parametrize("optics", Optics)
def test_a_port_that_is_cabled_twice_is_a_fault(optics: Optics) -> None:
    plan = make_plan(nodes=6, gpus=1, dp=3, pp=2, optics=optics)
    whole = next(iter(BACKEND.project(plan)))
    assert list(BACKEND.faults(plan, whole)) == []
    last = "transmit to" if optics is Optics.DUPLEX else "to"
    for column in ("port", last):
        at = whole.columns.index(column)
        rows = list(whole.rows)
        rows[1] = (*rows[1][:at], rows[0][at], *rows[1][at + 1 :])
        wrong: PatchList = dataclasses.replace(whole, rows=tuple(rows))
        assert any("is cabled twice" in fault for fault in BACKEND.faults(plan, wrong))
