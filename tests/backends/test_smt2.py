"""Statements for other solvers: another solver gives the answers that are promised, and a changed number is noticed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from opusc.backends.base import Options
from opusc.backends.smt2 import BACKEND
from opusc.backends.validate import validate
from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan
from tests.verify.plans import PLANS, plan


def written(whole: Plan, directory: Path) -> Path:
    for name, chunks in BACKEND.write(whole, Options()):
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"".join(chunks))
    return directory / "smt2"


def answers_of_cvc5(path: Path) -> Iterator[str]:
    """What the solver cvc5 prints for a file, a line each."""
    import cvc5

    solver = cvc5.Solver(cvc5.TermManager())
    parser = cvc5.InputParser(solver)
    parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, str(path))
    while not (command := parser.nextCommand()).isNull():
        if said := command.invoke(solver, parser.getSymbolManager()):
            yield said.strip()


@pytest.mark.parametrize("name", PLANS)
def test_another_solver_agrees(name: str, tmp_path: Path) -> None:
    folder = written(plan(name), tmp_path)
    expected = (folder / "expected.txt").read_text().split()
    assert len(expected) > 10
    assert list(answers_of_cvc5(folder / "obligations.smt2")) == expected


def test_all_that_was_proved_by_z3_is_written(tmp_path: Path) -> None:
    from opusc.verify import Method, first_opinion

    for name in ("photonic rails", "listed cables"):
        proved, _ = first_opinion(plan(name))
        titles = [one.title for one in BACKEND.project(plan(name))]
        assert titles == [one.name for one in proved if one.method in (Method.SYMBOLIC, Method.PER_SWITCH)]


def test_the_same_plan_gives_the_same_bytes_whatever_was_solved_before(tmp_path: Path) -> None:
    first = list(BACKEND.project(plan("listed cables")))
    assert list(BACKEND.project(plan("racks"))) != first
    assert list(BACKEND.project(plan("listed cables"))) == first


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("obligations.smt2", "(< a0 8)", "(< a0 16)", "should be unsat"),
        ("obligations.smt2", "(check-sat)", "(assert (< no-such 3))\n(check-sat)", "unknown constant"),
        ("obligations.smt2", "(set-info :status unsat)", "(set-info :status sat)", "are not those of"),
        ("expected.txt", "unsat", "sat", "are not those of"),
    ],
)
def test_a_changed_file_is_noticed(file: str, old: str, new: str, told: str, tmp_path: Path) -> None:
    whole = plan("photonic rails")
    path = written(whole, tmp_path) / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    sink = Diagnostics()
    validate(BACKEND, whole, tmp_path, sink)
    assert [d.code for d in sink] == ["OPUS903"]
    if told.startswith("are"):
        assert told in next(iter(sink)).message
    else:  # the difference from the plan comes first; the solver has its say without it
        (found,) = [fault for one in BACKEND.read(tmp_path) for fault in BACKEND.faults(whole, one)]
        assert told in found
