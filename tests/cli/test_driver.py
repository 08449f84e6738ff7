"""The pipeline and the Python API: values, errors as values, and what happens when opusc itself fails."""

from pathlib import Path

import numpy as np
import pytest

import opusc
from opusc import driver
from opusc.diagnostics import Diagnostics
from opusc.source import Source

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart" / "quickstart.opus"
RAILS = ROOT / "examples" / "photonic-rails" / "photonic-rails.opus"


def test_compile_takes_a_path_or_a_text() -> None:
    plans = [opusc.compile(QUICKSTART), opusc.compile(str(QUICKSTART)), opusc.compile(QUICKSTART.read_text())]
    for plan in plans:
        assert isinstance(plan, opusc.Plan)
        assert plan.circuits.ingress.dtype == np.int32
        assert np.array_equal(plan.circuits.egress, plans[0].circuits.egress)
    with pytest.raises(FileNotFoundError):
        opusc.compile("no-such-file.opus")


def test_params_are_python_values_or_the_language_notation() -> None:
    plan = opusc.compile(RAILS, params={"dp": 8, "delay": "25 ms"})
    assert plan.world == 256
    assert plan.model.fabric.rails[0].switches[0].settle == 25 * 10**9
    with pytest.raises(opusc.CompileError):
        opusc.compile(RAILS, params={"dp": True})


def test_a_wrong_program_raises_with_every_message() -> None:
    text = QUICKSTART.read_text().replace("200 Gbps", "200").replace("dp = 2", "dq = 2")
    with pytest.raises(opusc.CompileError) as raised:
        opusc.compile(text)
    assert len(raised.value.diagnostics.errors) == 2
    assert "<text>:9:39: error[OPUS202]" in str(raised.value)
    assert [d.code for d in opusc.check(text)] == [d.code for d in raised.value.diagnostics]
    assert [d.code for d in opusc.check(ROOT / "tests" / "errors" / "OPUS420-not-checked.opus")] == ["OPUS420"]
    assert len(opusc.check(QUICKSTART)) == 0


def test_stages_are_told_and_timed_in_order() -> None:
    entered: list[str] = []
    compilation = driver.compile_file(QUICKSTART, entering=entered.append)
    assert tuple(entered) == driver.STAGES == tuple(compilation.seconds)
    assert all(seconds >= 0 for seconds in compilation.seconds.values())


def test_a_stage_that_ends_with_errors_is_the_last() -> None:
    entered: list[str] = []
    with pytest.raises(opusc.CompileError):
        driver.compile_source(Source("x", "opus 1\ncluster {"), Path.cwd(), entering=entered.append)
    assert entered == ["syntax"]


STAGES = {
    "syntax": "opusc.syntax.parser.parse",
    "model": "opusc.model.build.build_model",
    "plan": "opusc.plan.build.build_plan",
    "proof": "opusc.verify.verify",
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (ZeroDivisionError("seeded"), "OPUS901", "internal compiler error in stage `{}`: ZeroDivisionError: seeded"),
        (RecursionError(), "OPUS902", "opusc ran out of stack in stage `{}`"),
        (MemoryError(), "OPUS902", "opusc ran out of memory in stage `{}`"),
    ],
)
def test_a_defect_is_a_message_that_names_the_stage(
    monkeypatch: pytest.MonkeyPatch, stage: str, error: Exception, code: str, says: str
) -> None:
    def broken(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(STAGES[stage], broken)
    [found] = opusc.check(QUICKSTART)
    assert (found.code, found.message) == (code, says.format(stage))
    assert found.help
    monkeypatch.setenv("OPUSC_DEBUG", "1")
    if code == "OPUS901":
        with pytest.raises(ZeroDivisionError, match="seeded"):
            opusc.check(QUICKSTART)


def test_a_stage_that_makes_nothing_and_says_nothing_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STAGES["plan"], lambda model, sink: None)
    [found] = opusc.check(QUICKSTART)
    assert found.code == "OPUS901"


def test_an_interrupt_is_not_taken_for_a_defect() -> None:
    def interrupt() -> None:
        with driver.guarded("plan", Source("x", ""), Diagnostics()):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_the_public_names_exist_and_no_others() -> None:
    assert sorted(opusc.__all__) == dir(opusc)
    for name in opusc.__all__:
        assert getattr(opusc, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'compile_all'"):
        _ = opusc.compile_all  # type: ignore[attr-defined]
