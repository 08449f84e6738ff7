"""Statements for the solver: a name, assertions, and the answer that proves it.

Kept apart from what they are about, so that they can be solved, counted, or written out as SMT-LIB text.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["TIMEOUT", "Answer", "Statement", "smt2", "solve"]

#: Milliseconds that the solver may take for one statement. Those of real plans take one to twenty.
TIMEOUT = 20_000


@dataclass(frozen=True)
class Statement:
    """Assertions that must have the answer `expect` for what `name` says to hold.

    `unsat`: the assertions describe a counterexample, and there is none. `sat`: they describe given circuits
    together with what must hold of them. `about` says which parts or phases are meant, for messages.
    """

    name: str
    assertions: tuple[Any, ...]  # z3.BoolRef
    expect: str = "unsat"
    about: str = ""
    phase: int = -1
    switch: int = -1
    count: int = 1


@dataclass(frozen=True)
class Answer:
    """`verdict` is proved, refuted or unknown; `example` the counterexample or the solver's reason."""

    verdict: str
    example: str = ""


def solve(statement: Statement, timeout: int = TIMEOUT) -> Answer:
    """Ask a fresh solver. A time-out or `unknown` is an answer of its own, never a proof."""
    import z3

    solver = z3.SimpleSolver()
    solver.set("timeout", timeout)
    solver.add(*statement.assertions)
    result = solver.check()
    if result == z3.unknown:
        return Answer("unknown", solver.reason_unknown())
    if str(result) == statement.expect:
        return Answer("proved")
    return Answer("refuted", _example(solver.model()) if result == z3.sat else "")


def smt2(statements: Iterable[Statement]) -> str:
    """The statements as SMT-LIB text, each in a scope of its own, with the expected answer as a comment."""
    import z3

    blocks = []
    for statement in statements:
        solver = z3.Solver()
        solver.add(*statement.assertions)
        about = f" ({statement.about})" if statement.about else ""
        blocks.append(f"; {statement.name}{about}\n; expect {statement.expect}\n{solver.to_smt2()}(reset)\n")
    return "\n".join(blocks)


def _example(model: Any) -> str:
    """A counterexample as `a = 3, b = 4`; functions and helper variables are left out."""
    shown = [(d.name(), model[d]) for d in model.decls() if d.arity() == 0 and "!" not in d.name()]
    return ", ".join(f"{name} = {value}" for name, value in sorted(shown, key=lambda x: x[0])[:8])
