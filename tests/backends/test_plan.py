"""Target `plan`: the schema holds, the circuits come back, faults in the file are seen."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opusc.backends
from opusc.backends.plan import BACKEND, FILE, load, read_circuits
from opusc.backends.plan_document import SCHEMA, transition_counts
from opusc.plan.transitions import transition
from tests.backends.cases import PLANS, objection, plan_of, read_back, refusals, same_as_golden, write
from tests.support import make_plan

SCHEMA_FILE = Path(str(opusc.backends.__file__)).parent / "schemas" / "plan.schema.json"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMA_FILE.read_text())
    return found


@pytest.mark.parametrize("name", PLANS)
def test_every_plan_fits_the_schema_and_comes_back(name: str, tmp_path: Path, schema: dict[str, Any]) -> None:
    import jsonschema

    plan = plan_of(name)
    assert refusals(BACKEND, plan) == []
    assert write(BACKEND, plan, tmp_path) == [FILE]
    jsonschema.Draft202012Validator(schema).validate(json.loads((tmp_path / FILE).read_text()))
    assert read_back(BACKEND, plan, tmp_path) == []
    found = read_circuits(load(tmp_path / FILE))
    for column in ("part", "switch", "ingress", "egress", "start"):
        assert np.array_equal(getattr(found, column), getattr(plan.circuits, column))


@pytest.mark.parametrize("name", PLANS)
def test_transitions_count_what_a_transition_does(name: str) -> None:
    plan = plan_of(name)
    columns = transition_counts(plan)
    rows = list(zip(*(columns[c].tolist() for c in ("before", "after", "disconnect", "connect", "kept")), strict=True))
    assert len(rows) == 2 * len(plan.exclusions)
    for before, after, disconnect, connect, kept in rows:
        found = transition(plan, [before], [after])
        assert (len(found.disconnect), len(found.connect), found.kept) == (disconnect, connect, kept)


def test_some_transition_keeps_circuits() -> None:
    """Otherwise the test above would not notice a count of 0 everywhere."""
    assert any(transition_counts(plan_of(name))["kept"].any() for name in PLANS)


def test_the_same_plan_gives_the_same_bytes_and_they_are_those_of_the_golden_file(tmp_path: Path) -> None:
    for name in ("quickstart", "one port"):
        write(BACKEND, plan_of(name), tmp_path)
        once = (tmp_path / FILE).read_bytes()
        write(BACKEND, plan_of(name), tmp_path)
        assert (tmp_path / FILE).read_bytes() == once
        same_as_golden(f"plan-{name.replace(' ', '-')}.json", once)


def test_the_file_is_canonical(tmp_path: Path) -> None:
    write(BACKEND, plan_of("rails"), tmp_path)
    text = (tmp_path / FILE).read_text()
    found = json.loads(text, parse_float=lambda text: pytest.fail(f"a float: {text}"))
    assert list(found) == sorted(found)
    assert text.endswith("}\n")
    assert '"kept"' in text


def test_columns_stand_on_one_line_so_large_plans_stay_small(tmp_path: Path) -> None:
    plan = make_plan(nodes=512, gpus=8, tp=8, dp=128, pp=4)
    write(BACKEND, plan, tmp_path)
    size = (tmp_path / FILE).stat().st_size
    assert size < 30 * len(plan.circuits)
    assert (tmp_path / FILE).read_text().count("\n") < 2000


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


def test_the_schema_is_closed_documented_and_versioned(schema: dict[str, Any]) -> None:
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == SCHEMA
    for found in objects(schema):
        assert found["additionalProperties"] is False or "properties" not in found
        assert found["description"]
        for name, value in found.get("properties", {}).items():
            assert value.get("description"), name


def edited(section: str, column: str, change: Callable[[list[int]], list[int]]) -> Callable[[str], str]:
    """Change the first `column` after the start of a section, keeping the layout."""

    def fault(text: str) -> str:
        at = text.index(f'\n  "{section}":')
        match = re.compile(rf'"{column}": \[([-\d,]+)\]').search(text, at)
        assert match is not None
        numbers = change([int(n) for n in match[1].split(",")])
        return text[: match.start(1)] + ",".join(map(str, numbers)) + text[match.end(1) :]

    return fault


def bumped(numbers: list[int]) -> list[int]:
    return [numbers[0] + 1, *numbers[1:]]


def swapped(numbers: list[int]) -> list[int]:
    return [numbers[1], numbers[0], *numbers[2:]]


@pytest.mark.parametrize(
    ("section", "column", "change", "says"),
    [
        ("circuits", "ingress", bumped, r"dp\[0\]: ingress\[0\] is 2, the plan says 1"),
        ("circuits", "egress", swapped, r"dp\[0\]: egress\[0\]"),
        ("circuits", "egress", lambda n: n[:-1], "egress"),
        ("exclusions", "b", bumped, r"exclusions: .* is 3"),
        ("cabling", "ingress", swapped, "cabling"),
        ("ranks", "gpu", swapped, r"ranks: values\[gpu\]"),
        ("transitions", "kept", bumped, "transitions"),
    ],
)
def test_faults_in_the_file_are_seen(
    section: str, column: str, change: Callable[[list[int]], list[int]], says: str, tmp_path: Path
) -> None:
    message = objection(BACKEND, plan_of("quickstart"), tmp_path, FILE, edited(section, column, change))
    assert re.search(says, message), message


@pytest.mark.parametrize(
    "fault",
    [
        lambda text: text.replace("urn:opusc:schema:plan:1", "urn:opusc:schema:plan:2"),
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"parts"', '"pieces"'),
        lambda text: "[]",
    ],
)
def test_a_file_of_another_form_is_refused(fault: Callable[[str], str], tmp_path: Path) -> None:
    assert "plan.json" in objection(BACKEND, plan_of("quickstart"), tmp_path, FILE, fault)


def test_a_plan_larger_than_the_limit_is_refused_with_the_figures() -> None:
    [(code, message)] = refusals(BACKEND, plan_of("rails"), max_output=100)
    assert code == "OPUS603"
    assert "448 circuits" in message
