"""What `policy = auto` chose, for people: why, and what was proved of it."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from opusc.cli.tables import labelled as wrapped
from opusc.cli.tables import plural
from opusc.diagnostics import Diagnostics

if TYPE_CHECKING:
    from opusc.plan.plan import Plan
    from opusc.schedule.auto import Choice
    from opusc.schedule.pairs import Pair
    from opusc.verify.report import Obligation

__all__ = ["outline", "prove", "shown"]

_MS = 10**9
_HELD = "\N{NO-BREAK SPACE}"  # between a number and its unit until lines are cut


def labelled(label: str, text: str, width: int) -> str:
    return wrapped(label, text, width).replace(_HELD, " ")


def prove(choice: "Choice", compiled: "Plan", sink: Diagnostics) -> tuple["Obligation", ...]:
    """Prove the schedule that was chosen, and its plan where it is not the one that was compiled. What is not proved is
    an error in the sink."""
    from opusc.schedule.choice import scheduled
    from opusc.verify import verify
    from opusc.verify.explain import explain
    from opusc.verify.sequence import check_schedule

    plan = scheduled(choice)
    if choice.variant.plan is not compiled:
        return verify(plan, sink).obligations
    held, found = check_schedule(plan)
    explain(plan, found, sink)
    return held


def shown(choice: "Choice", proved: Sequence["Obligation"], width: int) -> str:
    """A paragraph for each thing that was chosen or left, and one for the proof."""
    out = labelled("auto", _gain(choice), width) + _reasons(choice, width)
    return out + labelled("  proved", _proof(choice, proved), width) + "\n"


def outline(choice: "Choice", width: int) -> str:
    """What was chosen and what it gains, in one paragraph."""
    names = [found.idea.name for found in choice.findings if found.chosen]
    chosen = f"chosen: {', '.join(names) or 'nothing new'}; `opusc simulate` says why"
    return labelled("auto", f"{_gain(choice)}; {chosen}", width) + _plan(choice, width) + _pairs(choice, width)


def _gain(choice: "Choice") -> str:
    better = choice.published - choice.result.iteration
    share = _percent(Fraction(better, choice.published))
    mode = str(choice.published_mode)
    text = (
        f"at {_time(choice.delay)} a change: {_time(choice.result.iteration)} an iteration, {_time(better)} ({share}) "
    )
    text += f"less than {mode}; "
    own = Fraction(choice.result.iteration, choice.reference) - 1
    return text + f"{_percent(own)} over all links present in the same order; {choice.tried} combinations simulated"


def _reasons(choice: "Choice", width: int) -> str:
    """A paragraph for each thing that was chosen or left, with what it gains."""
    out = ""
    for found in (f for f in choice.findings if f.tried):
        what = found.idea.what if found.chosen else f"not: {found.idea.what}"
        if found.chosen not in ("", "yes") and found.idea.name != "pack":
            what += f" ({found.chosen})"
        gains = f"alone {_time(found.alone)}" + (f", on top of the rest {_time(found.last)}" if found.chosen else "")
        out += labelled(f"  {found.idea.name}", f"{what}; {gains}", width)
    out += _plan(choice, width)
    reasons: dict[tuple[str, ...], list[str]] = {}
    for names, why in choice.refused:
        reasons.setdefault(why, []).append(names)
    for why, sets in reasons.items():
        out += labelled("", f"{' and '.join(sets)} cannot be packed: {'; '.join(why)}", width)
    return out + _pairs(choice, width)


def _pairs(choice: "Choice", width: int) -> str:
    """A line for each two phases that share ports when nothing is packed."""
    lines = [f"{' | '.join(pair.phases)}: {_decided(pair)}" for pair in choice.pairs]
    return "".join(labelled("" if at else "  pairs", line, width) for at, line in enumerate(lines))


def _decided(pair: "Pair") -> str:
    """What became of two phases that share ports, and why."""
    turns = f"take turns, {plural(pair.changes, 'change')}"
    return {
        "packed": "packed, so that nothing changes between them",
        "provisioned": f"{turns}, provisioned: {_time(pair.gain)} less than on demand",
        "on_demand": f"{turns}, on demand: asking early gains nothing",
        "apart": "take turns, and never follow each other",
    }[pair.how]


def _plan(choice: "Choice", width: int) -> str:
    if not choice.variant.stated:
        return ""
    return labelled("", f"the plan is that of `{choice.variant.stated}`", width)


def _proof(choice: "Choice", proved: Sequence["Obligation"]) -> str:
    count = len(choice.result.changes)
    held = len({frozenset(s) for s in _configurations(choice)})
    states = f"{plural(count, 'change')} between {plural(held, 'configuration')} of parts that may hold together, each "
    states += "disconnecting first and touching its own circuits only, the last leading back to the first"
    if not count:
        states = "one configuration, which never changes"
    plan = "; its plan, by both checkers" if choice.variant.stated else ""
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

    return f"{fixed(ratio * 100, 3)}{_HELD}%"


def _time(picoseconds: int) -> str:
    from opusc.backends.simulation import fixed

    text = fixed(Fraction(picoseconds, _MS), 3)
    return f"{text.rstrip('0').rstrip('.')}{_HELD}ms"
