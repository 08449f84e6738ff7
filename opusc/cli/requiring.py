"""Requirements on measured results, for the commands that measure them."""

import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from opusc.cli import terminal
from opusc.cli.tables import labelled
from opusc.diagnostics import Diagnostics

if TYPE_CHECKING:
    from opusc.driver import Compilation
    from opusc.model.entities import Requirement
    from opusc.schedule.requirements import Held

__all__ = ["NOT_CHECKED", "decide", "held", "waiting"]

#: The warning that a command leaves out for the requirements that it decides itself.
NOT_CHECKED = "OPUS420"


def held(kept: "Sequence[Held]", width: int) -> str:
    """The requirements on the plan that hold, each with what was measured."""
    lines = [f"require {one.requirement.text}: {'; '.join(one.measured)}" for one in kept]
    return "".join(labelled("" if at else "held", line, width) for at, line in enumerate(lines))


def waiting(compilation: "Compilation", measured: frozenset[str], sink: Diagnostics) -> list["Requirement"]:
    """The requirements that `measured` results decide; those that ask for results of the plan as well are said to be
    not checked."""
    from opusc.model.requirements import PLANNED, of_phase
    from opusc.schedule.requirements import not_checked

    pending: list[Requirement] = []
    for requirement in compilation.plan.model.requirements:
        if requirement.decide is None or all(of_phase(name)[0] in PLANNED for name in requirement.needs):
            continue
        if set(requirement.needs) <= measured:
            pending.append(requirement)
        else:
            not_checked(requirement, ["`opusc check` decides what names results of the plan as well"], sink)
    return pending


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
