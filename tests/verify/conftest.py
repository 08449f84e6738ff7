"""The table of mutants at the end of a test run."""

from collections import Counter

import pytest

from opusc.verify import formulas
from opusc.verify.statement import Answer, Statement, solve

MUTANTS = pytest.StashKey[dict[str, Counter[str]]]()


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> dict[str, Counter[str]]:
    """Counts by mutation: `mutants`, `first` and `second` (objections of each opinion)."""
    return request.config.stash.setdefault(MUTANTS, {})


@pytest.fixture(scope="session")
def answers() -> dict[tuple[int, ...], tuple[Answer, Statement]]:
    """What the solver said of each list of assertions; holds the statements, so that their numbers stay theirs."""
    return {}


@pytest.fixture
def remembered(answers: dict[tuple[int, ...], tuple[Answer, Statement]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver is asked once for each list of assertions: most mutants have the formulas of their plan."""

    def ask(statement: Statement) -> Answer:
        key = tuple(term.get_id() for term in statement.assertions)
        if key not in answers:
            answers[key] = solve(statement), statement
        return answers[key][0]

    monkeypatch.setattr(formulas, "solve", ask)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash.get(MUTANTS, {})
    if not counts:
        return
    terminalreporter.section("mutants")
    terminalreporter.line(f"{'broken invariant':<30}{'plans':>7}{'mutants':>9}{'by formulas':>13}{'by structure':>14}")
    total: Counter[str] = Counter()
    for name, row in counts.items():
        total.update(row)
        terminalreporter.line(f"{name:<30}{row['plans']:>7}{row['mutants']:>9}{row['first']:>13}{row['second']:>14}")
    terminalreporter.line(f"{'all':<30}{'':>7}{total['mutants']:>9}{total['first']:>13}{total['second']:>14}")
