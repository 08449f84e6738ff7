"""The target `smt2`: what was proved by Z3, for other solvers.

    smt2/obligations.smt2       every statement, in a scope of its own, with the answer that proves it
    smt2/expected.txt           these answers, a line each: what a solver should print

Each statement stands for itself and says in a comment what it means; nothing else of the plan is needed. What was
proved by comparing rows, and by the second opinion, is no statement for a solver and is not there.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from opusc.backends.base import Options, Unreadable
from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan
from opusc.verify import answer, smt2, statements

__all__ = ["BACKEND", "Asked"]

_END = "(reset)\n"
_STATUS = "(set-info :status "


@dataclass(frozen=True, slots=True)
class Asked:
    """One statement: its SMT-LIB text, and the answer that proves it."""

    title: str
    text: str
    expect: str


class _Target:
    name = "smt2"
    summary = "what Z3 proved, as SMT-LIB for other solvers, with the answers"

    def check(self, plan: Plan, options: Options, sink: Diagnostics) -> None:
        """Any plan that is proved has these."""

    def write(self, plan: Plan, options: Options) -> Iterator[tuple[str, Iterable[bytes]]]:
        asked = list(self.project(plan))
        yield f"{self.name}/obligations.smt2", (f"{one.text}\n".encode() for one in asked)
        yield f"{self.name}/expected.txt", (f"{one.expect}\n".encode() for one in asked)

    def project(self, plan: Plan) -> Iterator[Asked]:
        return map(_asked, smt2(statements(plan)))

    def read(self, directory: Path) -> Iterator[Asked]:
        folder = directory / self.name
        try:
            text = (folder / "obligations.smt2").read_text(encoding="utf-8")
            expected = (folder / "expected.txt").read_text(encoding="utf-8").split()
        except (OSError, ValueError) as error:
            raise Unreadable(f"{self.name}: {error}") from error
        blocks = [block.lstrip("\n") + _END for block in text.split(_END)[:-1]]
        if [_asked(block).expect for block in blocks] != expected:
            raise Unreadable(f"{self.name}/expected.txt: the answers are not those of obligations.smt2")
        yield from map(_asked, blocks)

    def faults(self, plan: Plan, statement: object) -> Iterator[str]:
        """The text, parsed anew, has the answer that it promises."""
        assert isinstance(statement, Asked)
        try:
            found = answer(statement.text.removesuffix(_END))
        except ValueError as error:
            found = str(error)
        if found != statement.expect:
            yield f"the answer is {found} and should be {statement.expect}"

    def note(self, options: Options) -> str:
        return ""


def _asked(text: str) -> Asked:
    title = text.partition("\n")[0].removeprefix("; ")
    return Asked(title, text, text.partition(_STATUS)[2].partition(")")[0])


BACKEND = _Target()
