"""Concrete transitions: is a change from one configuration to another safe, minimal, and what it promises?

That the order is safe for any two configurations is proved once (`lemmas.changes_are_safe`). This checks one
transition as it is: what backends that write transitions, and tests, use.
"""

from collections.abc import Iterable

from opusc.plan.plan import Int32, Plan
from opusc.plan.transitions import Transition
from opusc.verify.finding import TRANSITION, Finding

__all__ = ["Step", "check_steps", "check_transition", "steps_of"]

Circuit = tuple[int, int, int]

#: ("disconnect" or "connect", circuit as (switch, ingress, egress))
Step = tuple[str, Circuit]


def steps_of(change: Transition) -> list[Step]:
    """The steps of a transition, in its order."""
    down: list[Step] = [("disconnect", circuit) for circuit in _tuples(change.disconnect)]
    up: list[Step] = [("connect", circuit) for circuit in _tuples(change.connect)]
    return down + up


def check_transition(plan: Plan, change: Transition) -> list[Finding]:
    """A transition leads from what its parts hold to what its parts hold, as `check_steps` demands."""
    found = check_steps(plan, change.before, change.after, steps_of(change))
    old, new = (_held(plan, parts) for parts in (change.before, change.after))
    if old is not None and new is not None and change.kept != len(old & new):
        text = f"a change says that {change.kept} circuits stay, and {len(old & new)} do"
        found.append(Finding(TRANSITION, text))
    return found


def check_steps(plan: Plan, before: Iterable[int], after: Iterable[int], steps: Iterable[Step]) -> list[Finding]:
    """Replay steps on what `before` holds: every state is one-to-one, disconnects come first, nothing is done that
    need not be, and the end is what `after` holds."""
    old, new = _held(plan, before), _held(plan, after)
    if old is None or new is None:
        return [Finding(TRANSITION, "a change starts or ends in parts that exclude each other")]
    state, used = set(old), {port for circuit in old for port in _ports(circuit)}
    connected = False
    for verb, circuit in steps:
        text = _wrong_step(verb, circuit, state, old, new, connected)
        if text is None and verb == "connect" and not used.isdisjoint(_ports(circuit)):
            text = "connects a port that still has a circuit"
        if text is not None:
            return [Finding(TRANSITION, f"a change {text}: {_name(plan, circuit)}")]
        if verb == "connect":
            connected = True
            state.add(circuit)
            used.update(_ports(circuit))
        else:
            state.remove(circuit)
            used.difference_update(_ports(circuit))
    if state != new:
        circuit = min(state ^ new)
        text = (
            "leaves up a circuit that should go" if circuit in state else "does not connect a circuit that it promises"
        )
        return [Finding(TRANSITION, f"a change {text}: {_name(plan, circuit)}")]
    return []


def _wrong_step(
    verb: str, circuit: Circuit, state: set[Circuit], old: set[Circuit], new: set[Circuit], connected: bool
) -> str | None:
    if circuit in old and circuit in new:
        return "touches a circuit that stays"
    if circuit not in old and circuit not in new:
        return "touches a circuit outside its footprint"
    if verb == "connect":
        return None if circuit not in state and circuit in new else "connects a circuit that it should not"
    if connected:
        return "disconnects after it has connected"
    return None if circuit in state and circuit in old else "disconnects a circuit that is not there"


def _held(plan: Plan, parts: Iterable[int]) -> set[Circuit] | None:
    """What a configuration holds; None when its parts exclude each other."""
    chosen = sorted(set(parts))
    if not all(0 <= part < len(plan.parts) for part in chosen) or not plan.compatible(chosen):
        return None
    c = plan.circuits
    return {
        circuit
        for part in chosen
        for circuit in zip(
            c.switch[plan.rows(part)].tolist(),
            c.ingress[plan.rows(part)].tolist(),
            c.egress[plan.rows(part)].tolist(),
            strict=True,
        )
    }


def _ports(circuit: Circuit) -> set[tuple[int, int]]:
    """The ports that a circuit takes; ingress and egress of a crossbar are numbered apart."""
    switch, ingress, egress = circuit
    return {(switch, ingress), (switch, egress)}


def _tuples(rows: Int32) -> list[Circuit]:
    return [(int(s), int(i), int(e)) for s, i, e in rows.tolist()]


def _name(plan: Plan, circuit: Circuit) -> str:
    switch, ingress, egress = circuit
    name = plan.switches[switch].name if 0 <= switch < len(plan.switches) else f"switch {switch}"
    return f"ingress {ingress} to egress {egress} of {name}"
