"""The page of a report: what is embedded is the plan, names cannot break out, the same plan gives the same bytes."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from opusc.backends.base import Options
from opusc.backends.report import BACKEND, Page
from opusc.backends.report_data import CIRCUITS, data_of
from opusc.backends.validate import validate
from opusc.diagnostics import Diagnostics
from opusc.driver import compile_file
from opusc.plan.plan import Plan
from tests.backends.cases import PLANS
from tests.support import make_plan

RAILS = Path(__file__).parents[2] / "examples" / "photonic-rails" / "photonic-rails.opus"


def page(plan: Plan, directory: Path) -> str:
    [(name, chunks)] = BACKEND.write(plan, Options())
    path = directory / name
    path.write_bytes(b"".join(chunks))
    return path.read_text()


@pytest.mark.parametrize("name", PLANS)
def test_what_is_embedded_is_the_plan(name: str, tmp_path: Path) -> None:
    plan = make_plan(**PLANS[name])
    page(plan, tmp_path)
    sink = Diagnostics()
    assert validate(BACKEND, plan, tmp_path, sink) == 1
    assert list(sink) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r'"egress":\[(\d+),(\d+)', r'"egress":[\2,\2'),
        (r'"rank_of_gpu":\[0', '"rank_of_gpu":[1'),
        (r'id="data">\{', 'id="data">'),
        (r'id="data"', 'id="date"'),
    ],
)
def test_a_changed_page_is_noticed(old: str, new: str, tmp_path: Path) -> None:
    plan = make_plan(**PLANS["rails"])
    text = page(plan, tmp_path)
    assert re.search(old, text)
    (tmp_path / "report.html").write_text(re.sub(old, new, text, count=1))
    sink = Diagnostics()
    validate(BACKEND, plan, tmp_path, sink)
    assert [d.code for d in sink] == ["OPUS903"]


def test_two_circuits_on_a_port_are_a_fault() -> None:
    plan = make_plan(**PLANS["rails"])
    data = data_of(plan)
    assert list(BACKEND.faults(plan, Page("x", data))) == []
    data["circuits"]["egress"][1] = data["circuits"]["egress"][0]
    (said,) = BACKEND.faults(plan, Page("x", data))
    assert "is used twice" in said


def test_names_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    plan = make_plan(**PLANS["rails"])
    evil = '</script><img src=x onerror="alert(1)">'
    switches = tuple(replace(switch, name=evil) for switch in plan.switches)
    text = page(replace(plan, switches=switches), tmp_path)
    assert evil not in text
    assert "<img" not in text
    (found,) = BACKEND.read(tmp_path)
    assert found.data["switch_names"][0] == evil


def test_the_page_asks_the_network_for_nothing_and_is_always_the_same(tmp_path: Path) -> None:
    plan = compile_file(RAILS).plan
    text = page(plan, tmp_path)
    assert page(plan, tmp_path) == text
    plain = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    outside = set(re.findall(r'(?:https?:)?//[\w.]+[^\s"<]*', plain))
    assert outside == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text
    assert "12,222.813 ms" in text
    assert "2.441 %" in text
    assert "1,880" in text


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    text = page(make_plan(**PLANS["one stage"]), tmp_path)
    assert "There is no estimate of an iteration:" in text
    assert "There is no comparison of cost and power:" in text


def test_a_page_keeps_below_five_megabytes(tmp_path: Path) -> None:
    plan = make_plan(nodes=4096, gpus=8, tp=8, dp=1024, pp=4, radix=8192)
    assert len(plan.circuits) > CIRCUITS
    text = page(plan, tmp_path)
    assert len(text) < 5_000_000
    found = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    assert 0 < len(found["circuits"]["rails"]) < 8
    assert found["rail_count"] == 8
