"""What `policy = auto` chose, for people: why, and what was proved of it."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from opusc.cli.tables import labelled, plural
from opusc.diagnostics import Diagnostics

if TYPE_CHECKING:
    from opusc.plan.plan import Plan
    from opusc.schedule.auto import Choice
    from opusc.verify.report import Obligation

__all__ = ["prove", "shown"]

_MS = 10**9


def prove(choice: "Choice", compiled: "Plan", sink: Diagnostics) -> tuple["Obligation", ...]:
    """Prove the plan that was chosen, where it is not the one that was compiled, and its sequence of configurations.
    What is not proved is an error in the sink."""
    from opusc.verify import verify
    from opusc.verify.explain import explain
    from opusc.verify.sequence import Planned, check_sequence

    variant = choice.variant
    obligations: tuple[Obligation, ...] = ()
    if variant.plan is not compiled:
        obligations = verify(variant.plan, sink).obligations
    number = variant.indices
    changes = [
        Planned(frozenset(number[p] for p in c.went), frozenset(number[p] for p in c.came), c.drained, c.lit)
        for c in choice.result.changes
    ]
    start = [number[part] for part in choice.start]
    held, found = check_sequence(variant.plan, start, changes, period=choice.result.iteration)
    explain(variant.plan, found, sink)
    return (*obligations, *held)


def shown(choice: "Choice", proved: Sequence["Obligation"], width: int) -> str:
    """A paragraph for each thing that was chosen or left, and one for the proof."""
    better = choice.published - choice.result.iteration
    share = _percent(Fraction(better, choice.published))
    mode = str(choice.published_mode)
    text = (
        f"at {_time(choice.delay)} a change: {_time(choice.result.iteration)} an iteration, {_time(better)} ({share}) "
    )
    text += f"less than {mode}; "
    own = Fraction(choice.result.iteration, choice.reference) - 1
    text += f"{_percent(own)} over all links present in the same order; {choice.tried} combinations simulated"
    out = labelled("auto", text, width)
    for found in choice.findings:
        what = found.idea.what if found.chosen else f"not: {found.idea.what}"
        if found.chosen not in ("", "yes"):
            what += f" ({found.chosen})"
        gains = f"alone {_time(found.alone)}" + (f", on top of the rest {_time(found.last)}" if found.chosen else "")
        out += labelled(f"  {found.idea.name}", f"{what}; {gains}", width)
    if choice.variant.packs:
        line = f"pack = [{', '.join(choice.variant.packs)}]" if not choice.variant.fixed else "policy = static"
        out += labelled("", f"to compile it so, write `{line}`", width)
    for names, why in choice.refused:
        out += labelled("", f"{names} cannot be packed: {'; '.join(why)}", width)
    return out + labelled("  proved", _proof(choice, proved), width) + "\n"


def _proof(choice: "Choice", proved: Sequence["Obligation"]) -> str:
    count = len(choice.result.changes)
    held = len({frozenset(s) for s in _configurations(choice)})
    states = f"{plural(count, 'change')} between {plural(held, 'configuration')} of parts that may hold together, each "
    states += "disconnecting first and touching its own circuits only, the last leading back to the first"
    if not count:
        states = "one configuration, which never changes"
    plan = "; the packed plan, by both checkers" if choice.variant.packs else ""
    order = "; checked: every operation after all that it waits for, the same bytes, every transfer on lit circuits"
    return (states + plan if proved else "nothing") + order


def _configurations(choice: "Choice") -> list[frozenset[object]]:
    held: frozenset[object] = frozenset(choice.start)
    found = [held]
    for change in choice.result.changes:
        held = (held - change.went) | change.came
        found.append(held)
    return found


def _percent(ratio: Fraction) -> str:
    from opusc.backends.simulation import fixed

    return f"{fixed(ratio * 100, 3)} %"


def _time(picoseconds: int) -> str:
    from opusc.backends.simulation import fixed

    text = fixed(Fraction(picoseconds, _MS), 3)
    return f"{text.rstrip('0').rstrip('.')} ms"
