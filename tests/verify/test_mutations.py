"""Real plans with one invariant broken: both opinions object to every one.

The first opinion is the formulas (Z3 and the comparison with them), the second the structural checker; they
share no code. Counts are printed at the end of the run.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from opusc.diagnostics import Diagnostics
from opusc.plan.transitions import transition
from opusc.verify import first_opinion, second_opinion, verify
from opusc.verify.lemmas import steps_are_safe
from opusc.verify.statement import solve
from opusc.verify.transitions import Step, check_steps, check_transition, steps_of
from tests.verify.mutations import MUTATIONS
from tests.verify.plans import PLANS, plan


@pytest.mark.parametrize("name", PLANS)
def test_real_plans_are_proved(name: str) -> None:
    sink = Diagnostics()
    report = verify(plan(name), sink)
    assert list(sink) == []
    assert {o.method for o in report.obligations} >= {"symbolic", "compared", "checked"}


@pytest.mark.usefixtures("remembered")
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_both_opinions_object(mutation: str, tally: dict[str, Counter[str]]) -> None:
    object_to(mutation, [0], tally)


@pytest.mark.slow
@pytest.mark.usefixtures("remembered")
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_both_opinions_object_wherever_it_breaks(mutation: str, tally: dict[str, Counter[str]]) -> None:
    object_to(mutation, range(1, 9), tally)


def object_to(mutation: str, places: Iterable[int], tally: dict[str, Counter[str]]) -> None:
    """Break every plan that has anything of the kind, at several places; the objections must be to what is broken."""
    counts = tally.setdefault(mutation, Counter())
    change, codes = MUTATIONS[mutation]
    missed = []
    for name in PLANS:
        mutants = [m for place in places if (m := change(plan(name), place)) is not None]
        counts["plans"] += bool(mutants)
        for number, mutant in enumerate(mutants):
            first, second = (
                {f.code for f in opinion(mutant)[1]} & codes for opinion in (first_opinion, second_opinion)
            )
            counts.update({"mutants": 1, "first": bool(first), "second": bool(second)})
            if not (first and second):
                missed.append((name, number, first, second))
    assert counts["mutants"], "no plan has anything of the kind"
    assert missed == []


# --- transitions ---------------------------------------------------------------------------------


def _configurations(name: str) -> tuple[list[int], list[int]]:
    """Two largest configurations of a plan that differ."""
    whole = plan(name)
    found: list[list[int]] = []
    for _ in range(2):
        chosen: list[int] = []
        order = sorted(range(len(whole.parts)), key=lambda part: (part in found[0], -part) if found else (False, part))
        for part in order:
            if whole.compatible([*chosen, part]):
                chosen.append(part)
        found.append(sorted(chosen))
    return found[0], found[1]


def _wrong(name: str, steps: list[Step]) -> dict[str, list[Step]]:
    """Broken versions of a transition."""
    ups, downs = ([s for s in steps if s[0] == verb] for verb in ("connect", "disconnect"))
    before, _ = _configurations(name)
    c, rows = plan(name).circuits, plan(name).rows(before[0])
    held = (int(c.switch[rows.start]), int(c.ingress[rows.start]), int(c.egress[rows.start]))
    foreign = (held[0], held[1], held[2] + 1)
    found = {
        "a step forgotten": steps[:-1],
        "another step forgotten": steps[1:],
        "a foreign circuit": [*steps, ("connect", foreign)],
        "a step taken twice": [steps[0], *steps],
    }
    if ups and downs:
        found["connects first"] = ups + downs
        found["one connect too early"] = [*downs[:-1], ups[0], downs[-1], *ups[1:]]
    return found


@pytest.mark.parametrize("name", PLANS)
def test_transitions_are_safe_and_broken_ones_are_not(name: str, tally: dict[str, Counter[str]]) -> None:
    whole = plan(name)
    before, after = _configurations(name)
    if before == after:
        assert len(whole.exclusions) == 0, "parts that exclude each other give two configurations"
        return
    change = transition(whole, before, after)
    assert check_transition(whole, change) == []
    old, new = ([s[1] for s in steps_of(transition(whole, [], parts))] for parts in (before, after))
    assert {solve(s).verdict for s in steps_are_safe(old, new, steps_of(change))} == {"proved"}
    counts = tally.setdefault("transition in the wrong order", Counter())
    counts["plans"] += 1
    for what, steps in _wrong(name, steps_of(change)).items():
        first = any(solve(s).verdict == "refuted" for s in steps_are_safe(old, new, steps))
        second = check_steps(whole, before, after, steps) != []
        counts.update({"mutants": 1, "first": first, "second": second})
        assert first, what
        assert second, what


def test_a_transition_that_miscounts_or_mixes_exclusive_parts_is_wrong() -> None:
    whole = plan("photonic rails")
    before, after = _configurations("photonic rails")
    change = transition(whole, before, after)
    assert check_transition(whole, replace(change, kept=change.kept + 1))
    assert check_transition(whole, replace(change, after=tuple(range(len(whole.parts)))))
