"""The registry, and writing of targets: refusals first, reading back always."""

import dataclasses
import importlib.metadata
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opusc.backends import registry
from opusc.backends.base import Options
from opusc.backends.emit import emit
from opusc.backends.plan import BACKEND as PLAN
from opusc.backends.plan import PlanBackend
from opusc.backends.registry import DEFAULT_TARGETS, UnknownTarget, get, names
from opusc.backends.validate import difference, one_to_one
from opusc.diagnostics import CompileError, Diagnostics
from opusc.plan.plan import Plan
from tests.backends.cases import plan_of, timed


def test_every_target_has_what_a_backend_needs() -> None:
    assert set(DEFAULT_TARGETS) <= set(names())
    for name in names():
        backend = get(name)
        assert backend.name == name
        assert 20 < len(backend.summary) < 120


def test_an_unknown_target_names_those_that_there_are() -> None:
    with pytest.raises(UnknownTarget, match="no target `plans`; there are astra-sim, cabling, calient, graphviz"):
        get("plans")


def test_naming_the_targets_imports_none_of_them() -> None:
    script = "import sys; from opusc.backends.registry import names; names(); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_other_packages_add_targets_but_cannot_replace_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclasses.dataclass
    class Entry:
        name: str
        value: str = "somewhere:Backend"

        def load(self) -> Any:
            return lambda: PlanBackend(name=self.name)

    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [Entry("mine"), Entry("plan")])
    assert {"astra-sim", "mine", "plan"} <= set(registry.names())
    assert registry.names() == tuple(sorted(registry.names()))
    assert registry.get("mine").name == "mine"
    assert registry.get("plan") is PLAN


def test_targets_are_written_and_read_back(tmp_path: Path) -> None:
    sink = Diagnostics()
    entered: list[str] = []
    plan = timed(plan_of("quickstart"))
    done = emit(plan, ["plan", "opus-controller", "astra-sim", "plan"], tmp_path, Options(), sink, entered.append)
    assert [written.target for written in done] == entered == ["plan", "opus-controller", "astra-sim"]
    files = {str(p.relative_to(tmp_path)): p.stat().st_size for p in tmp_path.rglob("*") if p.is_file()}
    assert set(files) == {name for written in done for name in written.files}
    assert sum(files.values()) == sum(written.size for written in done)
    assert all(written.compared for written in done)
    assert [d.code for d in sink] == ["OPUS607"], "a plan without a model has no traces"


def test_a_refusal_of_any_target_comes_before_anything_is_written(tmp_path: Path) -> None:
    sink = Diagnostics()
    with pytest.raises(CompileError):
        emit(plan_of("context"), ["plan", "opus-controller", "astra-sim"], tmp_path, Options(), sink)
    assert {d.code for d in sink} == {"OPUS601", "OPUS604"}
    assert not list(tmp_path.iterdir())


def test_no_target_writes_more_than_the_limit(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"OPUS603.*`graphviz` writes more than 1,000 bytes"):
        emit(plan_of("quickstart"), ["graphviz"], tmp_path, Options(max_output=1000), Diagnostics())
    assert sum(p.stat().st_size for p in tmp_path.rglob("*")) < 20_000


def test_a_file_that_does_not_say_what_the_plan_says_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = PlanBackend.write

    def lying(self: PlanBackend, plan: Plan, options: Options) -> Iterator[tuple[str, Iterable[bytes]]]:
        circuits = dataclasses.replace(plan.circuits, egress=np.roll(plan.circuits.egress, 1))
        return honest(self, dataclasses.replace(plan, circuits=circuits), options)

    monkeypatch.setattr(PlanBackend, "write", lying)
    with pytest.raises(CompileError, match=r"OPUS903.*dp\[0\]: egress\[0\] is 60, the plan says 36"):
        emit(plan_of("quickstart"), ["plan"], tmp_path, Options(), Diagnostics())


@dataclasses.dataclass
class Pair:
    a: Any
    b: Any = 0


@pytest.mark.parametrize(
    ("wanted", "found", "says"),
    [
        (Pair(1), Pair(1), None),
        (Pair(1), Pair(2), "a is 2, the plan says 1"),
        (Pair(1), Pair("1"), "a is '1', the plan says 1"),
        (Pair(np.arange(3)), Pair(np.arange(3, dtype=np.int8)), None),
        (Pair(np.arange(3)), Pair(np.array([0, 1, 5])), "a[2] is 5, the plan says 2"),
        (Pair(np.arange(3)), Pair(np.arange(4)), "the shape of a is (4,), the plan says (3,)"),
        (Pair({"x": (1, 2)}), Pair({"x": (1, 3)}), "a[x][1] is 3, the plan says 2"),
        (Pair({"x": 1}), Pair({}), "a[x] is 'absent', the plan says 1"),
        (Pair([1]), Pair([1, 2]), "the length of a is 2, the plan says 1"),
    ],
)
def test_a_difference_is_said_in_words(wanted: object, found: object, says: str | None) -> None:
    assert difference(wanted, found) == says


def test_one_to_one_looks_at_both_sides_and_keeps_switches_apart() -> None:
    ports = np.array([1, 2, 1])
    assert one_to_one(ports, np.array([4, 5, 6])) == "ingress 1 is used twice"
    assert one_to_one(np.array([4, 5, 6]), ports) == "egress 1 is used twice"
    assert one_to_one(ports, np.array([4, 5, 4]), np.array([0, 0, 1])) is None
