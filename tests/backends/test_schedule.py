"""Target `schedule`: the schema holds, the schedule comes back, faults in the file are seen."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import opusc.backends
from opusc.backends.base import Options
from opusc.backends.emit import emit
from opusc.backends.schedule import BACKEND, FILE
from opusc.backends.validate import validate
from opusc.cli.main import main
from opusc.diagnostics import CompileError, Diagnostics
from opusc.driver import compile_file
from opusc.plan.plan import Plan

FIG13 = Path(__file__).parents[1] / "schedule" / "data" / "fig13.opus"
QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "quickstart.opus"
SCHEMA_FILE = Path(str(opusc.backends.__file__)).parent / "schemas" / "schedule.schema.json"


@cache
def scheduled() -> Plan:
    return compile_file(FIG13).plan


def written(folder: Path) -> dict[str, Any]:
    sink = Diagnostics()
    emit(scheduled(), ["schedule"], folder, Options(), sink)
    assert list(sink) == []
    found: dict[str, Any] = json.loads((folder / FILE).read_text())
    return found


def test_it_says_what_was_decided(tmp_path: Path) -> None:
    import jsonschema

    found = written(tmp_path)
    jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text())).validate(found)
    assert found["iteration"] == 2_688_508_128_904
    assert found["delay"] == 10 * 10**9
    names = found["parts"]
    assert [names[at] for at in found["start"]] == ["dp[0]", "dp[1]", "dp[2]", "dp[3]"]
    assert [([names[p] for p in c["disconnect"]], [names[p] for p in c["connect"]]) for c in found["changes"]] == [
        (["dp[0]", "dp[1]"], ["pp[0-1]"]),
        (["dp[2]"], ["pp[1-2]"]),
        (["dp[3]"], ["pp[2-3]"]),
        (["pp[2-3]"], ["dp[3]"]),
        (["pp[1-2]"], ["dp[2]"]),
        (["pp[0-1]"], ["dp[0]", "dp[1]"]),
    ]
    assert [one["stage"] for one in found["traffic"]] == [0, 1, 2, 3]
    assert [sum(names[p].startswith("pp") for p in one["part"]) for one in found["traffic"]] == [1, 2, 2, 1]


def first_change(document: dict[str, Any]) -> dict[str, Any]:
    change: dict[str, Any] = document["changes"][0]
    return change


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another schema": (lambda d: d.update({"$schema": "urn:x"}), "is not a schedule of version 1"),
    "a field gone": (lambda d: d.pop("delay"), "delay"),
    "a longer iteration": (lambda d: d.update(iteration=d["iteration"] + 1), "schedule.period"),
    "a change left out": (lambda d: d["changes"].pop(), "the length of schedule.changes"),
    "a change that is later": (lambda d: first_change(d).update(end=first_change(d)["end"] + 1), "end"),
    "other parts": (lambda d: first_change(d).update(connect=[5]), "came"),
    "another part's name": (lambda d: d["parts"].reverse(), "parts[0]"),
    "a transfer left out": (
        lambda d: [d["traffic"][0][k].pop() for k in ("operation", "part", "begin", "end")],
        "length",
    ),
    "columns of several lengths": (lambda d: d["traffic"][0]["end"].pop(), "shorter"),
    "no text": (lambda d: d["traffic"][0].update(operation=3), ""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_in_the_file_are_seen(fault: str, tmp_path: Path) -> None:
    change, text = FAULTS[fault]
    document = written(tmp_path)
    change(document)
    from opusc.backends import canonical

    (tmp_path / FILE).write_bytes(b"".join(canonical.dump(document)))
    sink = Diagnostics()
    validate(BACKEND, scheduled(), tmp_path, sink)
    assert [d.code for d in sink] == ["OPUS903"]
    assert text in sink.errors[0].message


def test_a_plan_without_a_schedule_is_refused(tmp_path: Path) -> None:
    sink = Diagnostics()
    with pytest.raises(CompileError):
        emit(compile_file(QUICKSTART).plan, ["schedule"], tmp_path, Options(), sink)
    assert [d.code for d in sink] == ["OPUS440"]
    assert list(tmp_path.iterdir()) == []


def test_compile_writes_it_and_the_same_bytes_again(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert main(["compile", str(FIG13), "-t", "schedule", "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / "one" / FILE).read_bytes() == (tmp_path / "two" / FILE).read_bytes()
