"""Statements for the solver: a name, assertions, and the answer that proves it.

Kept apart from what they are about, so that they can be solved, counted, or written out as SMT-LIB text.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["TIMEOUT", "Answer", "Statement", "answer", "smt2", "solve"]

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


def smt2(statements: Iterable[Statement]) -> Iterator[str]:
    """Each statement as SMT-LIB 2.6 text that ends in `(check-sat)` and `(reset)`: what it says as a comment, the
    answer that proves it as `:status`. The same statements give the same text."""
    import z3

    # Names of shared terms come from numbers that a context gives out: one of our own always starts anew.
    context = z3.Context()
    for statement in statements:
        solver = z3.Solver(ctx=context)
        solver.add(*(term.translate(context) for term in statement.assertions))
        body = solver.to_smt2().partition("(set-info :status unknown)\n")[2]
        about = f" ({statement.about})" if statement.about else ""
        head = f"; {statement.name}{about}\n(set-logic ALL)\n(set-info :status {statement.expect})\n"
        yield f"{head}{body}(reset)\n"


def answer(text: str, timeout: int = TIMEOUT) -> str:
    """What our solver says to SMT-LIB text with one `(check-sat)`: sat, unsat or unknown.

    Raises ValueError where the text is not SMT-LIB.
    """
    import z3

    solver = z3.SimpleSolver()
    solver.set("timeout", timeout)
    try:
        solver.from_string(text)
        return str(solver.check())
    except z3.Z3Exception as error:
        raise ValueError(str(error)) from error


def _example(model: Any) -> str:
    """A counterexample as `a = 3, b = 4`; functions and helper variables are left out."""
    shown = [(d.name(), model[d]) for d in model.decls() if d.arity() == 0 and "!" not in d.name()]
    return ", ".join(f"{name} = {value}" for name, value in sorted(shown, key=lambda x: x[0])[:8])
