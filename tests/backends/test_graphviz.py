"""Target `graphviz`: drawings account for everything, stay small at any size, and need no Graphviz to be written."""

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from opusc.backends import canvas
from opusc.backends.canvas import counts_in
from opusc.backends.draw_fabric import fabric_counts, fabric_dot
from opusc.backends.draw_part import part_counts, part_dot, view
from opusc.backends.folding import fold, runs
from opusc.backends.graphviz import BACKEND, fabric, part
from opusc.cli.circuits import circuits_of
from opusc.model.entities import Peers
from tests import support
from tests.backends.cases import PLANS, objection, plan_of, read_back, same_as_golden, write
from tests.support import make_plan

SIZES: dict[str, dict[str, Any]] = {
    "16": {"nodes": 4, "gpus": 4, "tp": 4, "dp": 2, "pp": 2},
    "128": {"nodes": 16, "gpus": 8, "tp": 8, "dp": 4, "pp": 4},
    "2048": {"nodes": 256, "gpus": 8, "tp": 8, "dp": 64, "pp": 4},
    "16384": {"nodes": 2048, "gpus": 8, "tp": 8, "dp": 512, "pp": 4},
}
needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


@pytest.mark.parametrize("name", PLANS)
def test_drawings_account_for_every_circuit_of_every_stage_step_and_rail(name: str) -> None:
    plan = plan_of(name)
    assert counts_in(fabric_dot(plan), ("gpus", "switches", "cables")) == fabric_counts(plan)
    total = 0
    for phase in plan.phases:
        stages = range(len(phase.scopes)) if str(phase.scoping) == "stage" else [None]
        for stage in stages:
            for step in range(phase.step_count):
                for rail in range(len(plan.model.fabric.rails)):
                    if (found := view(plan, phase.name, stage, step, rail)) is not None:
                        assert counts_in(part_dot(plan, found), ("circuits",)) == part_counts(found)
                        total += found.circuits
    assert total == len(plan.circuits)


@pytest.mark.parametrize("size", SIZES)
def test_drawings_fold_so_that_they_stay_legible(size: str) -> None:
    plan = make_plan(**SIZES[size])
    for text in (fabric(plan), part(plan, "dp"), part(plan, "pp")):
        assert text is not None
        assert len(re.findall(r"^\tn\d+ \[", text, re.MULTILINE)) < 220
        assert text.count("->") < 120


@pytest.mark.parametrize("size", SIZES)
def test_nothing_overlaps(size: str) -> None:
    """Boxes with text, other than frames around boxes, keep apart."""
    plan = make_plan(**SIZES[size])
    for text in (fabric(plan), part(plan, "dp"), part(plan, "pp")):
        assert text is not None
        boxes = []
        for line in text.splitlines():
            if "->" in line or "shape=none" in line or not re.match(r"\tn\d+ \[", line):
                continue
            if re.match(r'\tn\d+ \[label=""', line) and "shape=box" in line:
                continue
            x, y = map(float, re.search(r'pos="([-\d.]+),([-\d.]+)"', line).groups())  # type: ignore[union-attr]
            w, h = (float(re.search(rf"{k}=([\d.]+)", line)[1]) * 72 for k in ("width", "height"))  # type: ignore[index]
            boxes.append((x, y, w, h))
        assert len(boxes) >= 2
        for i, (x, y, w, h) in enumerate(boxes):
            for a, b, c, d in boxes[i + 1 :]:
                assert abs(x - a) * 2 >= w + c - 0.1 or abs(y - b) * 2 >= h + d - 0.1 or min(w, c) < 20


def test_titles_say_phase_stage_step_rail_and_counts() -> None:
    plan = plan_of("rotor")
    text = part(plan, "all", step=1)
    assert text is not None
    for words in ("Phase all: rotor over dp", "step 1 of 0..2", "the only rail", "14 circuits on this rail"):
        assert words in text
    text = part(plan_of("rails"), "dp", stage=2, rail=5)
    assert text is not None
    for words in ("stage 2 of 0..3", "rail 5 of 0..7", "8 circuits on this rail, 64 on all rails"):
        assert words in text


def test_a_small_ring_names_its_switch_ports() -> None:
    text = part(plan_of("quickstart"), "dp")
    assert text is not None
    assert "1 to 36" in text
    assert "4 to 33" in text


def test_relays_are_named() -> None:
    text = part(make_plan(nodes=2, gpus=4, dp=2, pp=4), "pp")
    assert text is not None
    assert "2 links are relayed" in text
    assert "rank 2 reaches rank 4 through GPU 0" in text


def test_what_is_not_there_is_not_drawn() -> None:
    plan = plan_of("quickstart")
    assert part(plan, "ep") is None
    assert part(plan, "dp", stage=7) is None
    assert part(plan, "dp", step=1) is None
    assert part(plan, "dp", rail=9) is None


def test_golden_drawings(tmp_path: Path) -> None:
    names = write(BACKEND, plan_of("quickstart"), tmp_path, svg=False)
    assert names == ["fabric.dot", "phase-dp.dot", "phase-pp.dot"]
    assert read_back(BACKEND, plan_of("quickstart"), tmp_path) == []
    for name in names:
        same_as_golden(name, (tmp_path / name).read_bytes())


@needs_dot
@pytest.mark.parametrize("name", ["quickstart", "rotor", "butterfly", "racks"])
def test_graphviz_accepts_them_without_a_word(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plan = plan_of(name)
    names = write(BACKEND, plan, tmp_path)
    assert capfd.readouterr() == ("", "")
    for svg in (tmp_path / n for n in names if n.endswith(".svg")):
        tree = ET.parse(svg)
        text = "".join(tree.getroot().itertext())
        assert "Fabric" in text or "Phase" in text


def test_without_graphviz_the_dot_text_is_written_and_a_note_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opusc.backends.base import Options

    monkeypatch.setenv("PATH", str(tmp_path))
    assert not canvas.has_graphviz()
    assert write(BACKEND, plan_of("quickstart"), tmp_path / "out") == ["fabric.dot", "phase-dp.dot", "phase-pp.dot"]
    assert "apt install graphviz" in BACKEND.note(Options())
    assert BACKEND.note(Options(svg=False)) == ""


def test_a_graphviz_that_cannot_draw_is_as_good_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho 'Format: svg not recognized' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert shutil.which("dot") == str(program)
    assert not canvas.has_graphviz()
    assert write(BACKEND, plan_of("one stage"), tmp_path / "out") == ["fabric.dot", "phase-dp.dot"]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("phase-dp.dot", lambda text: text.replace("circuits=2", "circuits=4", 1)),
        ("phase-dp.dot", lambda text: re.sub(r"\n\tn\d+ -> [^\n]*circuits=2[^\n]*", "", text, count=1)),
        ("fabric.dot", lambda text: text.replace("cables=2", "cables=1", 1)),
    ],
)
def test_a_drawing_that_lost_something_is_seen(name: str, fault: Any, tmp_path: Path) -> None:
    assert name in objection(BACKEND, plan_of("quickstart"), tmp_path, name, fault)


def test_labels_cannot_be_markup_or_counts() -> None:
    drawing = canvas.Canvas("x")
    drawing.box(0, 0, 10, 10, "<b> circuits=7\\N\nx", counts={"circuits": 2})
    drawing.text(0, 0, "<&> circuits=9", bold=True)
    drawing.text(0, 0, "circuits=9", align="n", bold=True)
    assert counts_in(drawing.dot(), ("circuits",)) == {"circuits": 2}
    assert "&lt;&amp;&gt;" in drawing.dot()
    assert "\\\\N" in drawing.dot()


def test_folding_keeps_every_index_once() -> None:
    for count in range(1, 40):
        places = fold(count, 8, 5, 2)
        assert [i for place in places for i in place] == list(range(count))
        assert len(places) <= 8
    assert runs([0, 2, 3, 4, 9]) == "0, 2..4, 9"


@pytest.mark.parametrize("shape", [{"pp": 4}, {"dp": 4, "phases": (support.phase("dp", ("dp",), "chain"),)}])
def test_arrows_lead_where_the_light_goes(shape: dict[str, Any]) -> None:
    """Independent ports: a chain has one port for each direction, and its lines are drawn from lower to upper end."""
    plan = make_plan(nodes=4, gpus=1, radix=32, peers=Peers.INDEPENDENT, **shape)
    name = plan.phases[0].name
    found = view(plan, name, None if "pp" in shape else 0, 0, 0)
    assert found is not None
    text = part_dot(plan, found)
    ranks = {node: int(rank) for node, rank in re.findall(r'(n\d+) \[label="node \d+\\nrank (\d+)"', text)}
    arrows = re.findall(r"(n\d+) -> (n\d+) \[circuits=1 .*dir=forward", text)
    to = {(r, use.peer) for r in range(4) for use in circuits_of(plan, plan.phases[0], r) if use.way == "to"}
    assert {(ranks[a], ranks[b]) for a, b in arrows} == to == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)}
