"""Rows that follow no formula: proved by Z3, one switch at a time, with the bounds as constraints.

Two statements a switch. One-to-one: in every part, all ports exist, are not blocked, and differ. Isolation: a
port can be given to one set of parts that exclude each other, such that every part that uses the port is in the
set. Then no two parts that may hold together share a port: every configuration is covered, and none listed.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from opusc.model.entities import Matrix
from opusc.plan.plan import Int32, Plan, Switch
from opusc.verify.statement import Statement

__all__ = ["clash_core", "isolation", "one_to_one", "statements"]


def statements(plan: Plan, switches: Iterable[int]) -> Iterator[Statement]:
    """The statements of irregular switches; switches with equal rows are proved once."""
    done: set[tuple[object, ...]] = set()
    c = plan.circuits
    order = np.argsort(c.switch, kind="stable")
    edges = np.searchsorted(c.switch[order], np.arange(len(plan.switches) + 1))
    for index in sorted(switches):
        switch = plan.switches[index]
        rows = order[edges[index] : edges[index + 1]]
        part, ingress, egress = c.part[rows], c.ingress[rows], c.egress[rows]
        kind = switch.kind
        key = (kind.matrix, kind.radix, kind.blocked, part.tobytes(), ingress.tobytes(), egress.tobytes())
        if len(rows) and key not in done:
            done.add(key)
            yield one_to_one(switch, part, ingress, egress)
            yield isolation(switch, part, ingress, egress, plan.excluded_with)


def one_to_one(switch: Switch, part: Int32, ingress: Int32, egress: Int32) -> Statement:
    """The circuits of each part use ports that exist, are not blocked, and are all different."""
    kind = switch.kind
    sides: list[tuple[str, Int32, Int32, int]] = [("ingress", part, ingress, 0), ("egress", part, egress, kind.radix)]
    if kind.matrix is Matrix.ANY:
        sides = [("port", np.r_[part, part], np.r_[ingress, egress], 0)]
    names: list[str] = []
    facts: list[str] = []
    for side, parts, values, low in sides:
        of_part: dict[int, list[str]] = {}
        for at, (owner, value) in enumerate(zip(parts.tolist(), values.tolist(), strict=True)):
            name = f"{side}{at}"
            names.append(name)
            of_part.setdefault(owner, []).append(name)
            facts.append(f"(= {name} {_numeral(value)}) (> {name} {low}) (<= {name} {low + kind.radix})")
            facts += [f"(not (= {name} {low + position}))" for position in kind.blocked]
        facts += [f"(distinct {' '.join(mine)})" for mine in of_part.values() if len(mine) > 1]
    return _statement("the circuits of each part use different ports that exist", switch, names, facts, len(ingress))


def isolation(
    switch: Switch, part: Int32, ingress: Int32, egress: Int32, excluded: tuple[frozenset[int], ...]
) -> Statement:
    """Parts that share a port of a switch are declared exclusive."""
    # Ingress and egress of a crossbar are numbered apart, so one column of ports serves both matrices.
    pairs = sorted(set(zip(np.r_[ingress, egress].tolist(), np.r_[part, part].tolist(), strict=True)))
    users: dict[int, list[int]] = {}
    for port, user in pairs:
        users.setdefault(port, []).append(user)
    # The sets on offer: those that ports serve, as far as they are exclusive as declared, largest only.
    served = {tuple(u) for u in users.values()} | {(user,) for _, user in pairs}
    offered = {frozenset(u) for u in served if all(b in excluded[a] for a in u for b in u if a != b)}
    largest = [s for s in sorted(offered, key=sorted) if not any(s < other for other in offered)]
    choices: dict[int, list[int]] = {}
    for at, together in enumerate(largest):
        for user in sorted(together):
            choices.setdefault(user, []).append(at)
    names = [f"port{at}" for at in range(len(pairs))]
    facts = []
    for name, (port, user) in zip(names, pairs, strict=True):
        sets = " ".join(f"(= (served_set {name}) {choice})" for choice in choices[user])
        facts.append(f"(= {name} {_numeral(port)}) (or {sets})")
    return _statement("parts that share a port exclude each other", switch, names, facts, len(ingress))


def _statement(name: str, switch: Switch, names: list[str], facts: list[str], count: int) -> Statement:
    """Facts about given ports, as text: Z3 reads it ten times faster than Python builds the terms."""
    import z3

    declared = "".join(f"(declare-const {constant} Int)" for constant in names)
    text = f"(declare-fun served_set (Int) Int){declared}(assert (and true {' '.join(facts)}))"
    assertions = tuple(z3.parse_smt2_string(text))
    return Statement(name, assertions, expect="sat", about=switch.name, switch=switch.index, count=count)


def _numeral(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def clash_core(circuits: list[int], ports: list[int], timeout: int = 10_000) -> list[int]:
    """The circuits that claim one port: an unsatisfiable core of `owner(port) = circuit`. Empty if none do.

    `circuits` and `ports` are columns: a circuit and a port that it uses.
    """
    import z3

    owner = z3.Function("owner", z3.IntSort(), z3.IntSort())
    solver = z3.SimpleSolver()
    solver.set("timeout", timeout)
    labels = {}
    for at, (circuit, port) in enumerate(zip(circuits, ports, strict=True)):
        label = z3.Bool(f"use{at}")
        labels[label.decl().name()] = circuit
        solver.assert_and_track(owner(z3.IntVal(port)) == z3.IntVal(circuit), label)
    if solver.check() != z3.unsat:
        return []
    return sorted({labels[label.decl().name()] for label in solver.unsat_core()})
