"""Requirements on measured results, for the commands that measure them."""

import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from opusc.cli import terminal
from opusc.cli.tables import labelled
from opusc.diagnostics import Diagnostics
from opusc.source import Span

if TYPE_CHECKING:
    from opusc.driver import Compilation
    from opusc.model.entities import Requirement
    from opusc.schedule.requirements import Held

__all__ = ["NOT_CHECKED", "decide", "held", "waiting"]

#: The warning that a command leaves out for the requirements that it decides itself.
NOT_CHECKED = "OPUS420"


def held(kept: "Sequence[Held]", width: int) -> str:
    """The requirements on the plan that hold, each with what was measured."""
    lines = [f"require {requirement.text}: {'; '.join(requirement.measured)}" for requirement in kept]
    return "".join(labelled("" if at else "held", line, width) for at, line in enumerate(lines))


def waiting(compilation: "Compilation", measured: frozenset[str], sink: Diagnostics) -> list["Requirement"]:
    """The requirements that `measured` results decide; those that wait for others are said to be not checked."""
    requirements = compilation.plan.model.requirements
    pending = [r for r in requirements if r.decide is not None and set(r.needs) <= measured]
    for diagnostic in compilation.diagnostics:
        if diagnostic.code == NOT_CHECKED and not any(_inside(diagnostic.span, r.span) for r in pending):
            sink.add(diagnostic)
    return pending


def _inside(inner: Span, outer: Span) -> bool:
    return inner.source == outer.source and outer.start <= inner.start and inner.end <= outer.end


def decide(
    pending: Sequence["Requirement"],
    values: Mapping[str, Fraction],
    words: Mapping[str, str],
    where: str,
    sink: Diagnostics,
    form: str,
) -> None:
    """Say which requirements held; those that did not become errors with the measured values.

    `values` are in the language's base units, `words` the same for people; `where` says what was measured.
    """
    first = True
    for requirement in pending:
        assert requirement.decide is not None
        reason = requirement.decide({name: values[name] for name in requirement.needs}, sink)
        measured = [words[name] for name in requirement.needs]
        if reason == "" and form == "text":
            text = f"require {requirement.text}: {'; '.join(measured)}"
            sys.stdout.write(labelled("held" if first else "", f"{text}; {where}", terminal.width()))
            first = False
        elif reason:
            sink.error(
                "OPUS421",
                f"required, and not so: `{requirement.text}`: {reason}",
                requirement.span,
                "does not hold",
                notes=[*measured, where],
            )
