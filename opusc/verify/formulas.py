"""The first opinion: formulas proved by Z3, rows compared with them, and the rest proved switch by switch."""

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from opusc.arrays import distinct
from opusc.plan.plan import Int32, Plan
from opusc.verify import irregular, layout, places, rows, symbolic, tables
from opusc.verify.finding import CLASH, EXCLUSION, FORMULA, PORT, UNDECIDED, Finding
from opusc.verify.packing import packing_findings
from opusc.verify.report import Method, Obligation
from opusc.verify.statement import Statement, solve

__all__ = ["prove", "statements"]

T = TypeVar("T")


class _Run:
    """Obligations and findings of one run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.obligations: list[Obligation] = []
        self.found: list[Finding] = []

    def compare(self, name: str, count: int, work: Callable[[], list[Finding]]) -> bool:
        begin = time.perf_counter()
        found = work()
        self.found += found
        if not found:
            spent = (time.perf_counter() - begin) * 1000
            self.obligations.append(Obligation(name, Method.COMPARED, count, spent))
        return not found

    def solve(self, statement: Statement, method: Method) -> None:
        begin = time.perf_counter()
        answer = solve(statement)
        if answer.verdict == "proved":
            spent = (time.perf_counter() - begin) * 1000
            name = f"{statement.name} ({statement.about})" if statement.about else statement.name
            self.obligations.append(Obligation(name, method, statement.count, spent))
        elif answer.verdict == "unknown":
            self.found.append(_undecided(statement, answer.example))
        elif method is Method.SYMBOLIC:
            text = f"the formula behind the plan is wrong: it does not hold that {statement.name}"
            example = (f"a counterexample: {answer.example}",) if answer.example else ()
            about = (f"for {statement.about}",) if statement.about else ()
            self.found.append(Finding(FORMULA, text, phase=statement.phase, notes=(*about, *example)))
        else:
            self.found += _clashes(self.plan, statement)


def prove(plan: Plan) -> tuple[tuple[Obligation, ...], list[Finding]]:
    """Everything that the first opinion has to say."""
    run = _Run(plan)
    for method, statement in _statements(run):
        run.solve(statement, method)
    return tuple(run.obligations), run.found


def statements(plan: Plan) -> Iterator[Statement]:
    """What `prove` asks the solver about a plan, in its order."""
    return (statement for _, statement in _statements(_Run(plan)))


def _statements(run: _Run) -> Iterator[tuple[Method, Statement]]:
    """Compare all that is compared, then give what the solver has to prove."""
    plan = run.plan
    placing = layout.placing_of(plan.model.job)
    placed = run.compare(
        "ranks are where the job puts them", plan.world, lambda: layout.placement_findings(plan, placing)
    )
    expected, pieces = layout.expected_cabling(plan)
    cables = int((expected.switch >= 0).sum())
    run.compare("cables end where the cabling says", cables, lambda: layout.cabling_findings(plan, expected))
    run.compare("switches are those of the fabric", len(plan.switches), lambda: layout.switch_findings(plan))
    run.compare("phases are those of the job", len(plan.phases), lambda: rows.phase_list_findings(plan))
    run.compare("circuits are sorted and on ports that exist", len(plan.circuits), lambda: rows.table_findings(plan))
    odd_parts, implied = set[int](), dict[int, Int32]()
    if placed:
        odd_parts, implied = _compare_phases(run)
    run.compare("relays are the hops that links need", len(plan.relays), lambda: tables.relay_findings(plan, implied))
    run.compare(
        "parts that share a port, and no others, exclude each other",
        len(plan.exclusions),
        lambda: tables.exclusion_findings(plan),
    )
    run.compare("packed phases are on ports of their own", len(plan.phases), lambda: packing_findings(plan))
    for statement in symbolic.statements(plan, placing, pieces):
        yield Method.SYMBOLIC, statement
    deviating = {row for finding in run.found for row in finding.circuits}
    for statement in _irregular(plan, expected.regular, pieces, odd_parts, deviating):
        yield Method.PER_SWITCH, statement


def _compare_phases(run: _Run) -> tuple[set[int], dict[int, Int32]]:
    """Each phase's tables, parameters, circuits and routes; returns irregular parts, and relays by phase."""
    plan = run.plan
    decoded, loose = rows.decode(plan)
    run.found += loose
    odd: set[int] = set()
    implied: dict[int, Int32] = {}
    for phase in plan.phases:
        at = places.places_of(plan, phase)
        implied[phase.index] = at.relays
        run.compare(f"phase `{phase.name}` serves its groups, in order", at.rows, lambda at=at: list(at.findings))  # type: ignore[misc]
        run.found += symbolic.phase_findings(plan, phase)
        if not at.findings:
            mine = [p.index for p in plan.parts if p.phase == phase.index]
            count = sum(plan.rows(p).stop - plan.rows(p).start for p in mine)
            run.compare(
                f"circuits of phase `{phase.name}` are those of its formulas",
                count,
                lambda phase=phase: rows.compare_links(plan, phase, decoded),  # type: ignore[misc]
            )
            run.found += tables.route_findings(phase)
        odd.update(rows.irregular_parts(plan, phase))
        if at.uneven:
            odd.update(p.index for p in plan.parts if p.phase == phase.index)
    return odd, implied


def _irregular(
    plan: Plan, regular: bool, pieces: tuple[layout.Piece, ...], odd_parts: set[int], deviating: set[int]
) -> list[Statement]:
    """Statements for switches whose cabling, one of whose parts, or one of whose rows follows no formula."""
    c = plan.circuits
    if len(c) and (c.switch.min() < 0 or c.switch.max() >= len(plan.switches)):
        return []
    switches = {piece.switch for piece in pieces if not piece.regular}
    switches |= {int(c.switch[row]) for row in deviating}
    if not regular:
        switches = set(range(len(plan.switches)))
    if odd_parts:
        odd = np.zeros(len(plan.parts), dtype=bool)
        odd[sorted(odd_parts)] = True
        switches.update(distinct(c.switch[odd[c.part]])[0].tolist())
    return list(irregular.statements(plan, switches))


def _undecided(statement: Statement, reason: str) -> Finding:
    about = f" ({statement.about})" if statement.about else ""
    return Finding(
        UNDECIDED,
        f"the solver could not decide whether {statement.name}{about}",
        notes=(f"its reason: {reason}",) if reason else (),
    )


def _clashes(plan: Plan, statement: Statement) -> list[Finding]:
    """What is wrong on an irregular switch: which circuits of a part, or which parts, claim one port."""
    c = plan.circuits
    name = plan.switches[statement.switch].name
    rows = np.flatnonzero(c.switch == statement.switch)
    for part in distinct(c.part[rows])[0].tolist():
        mine = rows[c.part[rows] == part]
        culprits = _core(plan, mine)
        if culprits:
            text = f"part `{plan.parts[part].name}` uses a port of {name} twice"
            return [Finding(CLASH, text, part, plan.parts[part].phase, tuple(culprits))]
    for a, b in _sharing(plan, rows):
        culprits = _core(plan, rows[np.isin(c.part[rows], [a, b])])
        first, second = plan.parts[a], plan.parts[b]
        text = f"parts `{first.name}` and `{second.name}` use one port of {name} and are not declared exclusive"
        return [Finding(EXCLUSION, text, a, first.phase, tuple(culprits))]
    return [Finding(PORT, f"it does not hold on {name} that {statement.name}")]


def _core(plan: Plan, rows: NDArray[np.int64]) -> list[int]:
    """The circuits among these that claim one port, by a core over the owners of ports."""
    c = plan.circuits
    both, ends = np.r_[rows, rows], np.r_[c.ingress[rows], c.egress[rows]]
    _, which = distinct(ends)
    shared = np.bincount(which)[which] > 1  # only for the message: the others cannot be in the core
    return irregular.clash_core(both[shared].tolist(), ends[shared].tolist())


def _sharing(plan: Plan, rows: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Pairs of parts that share a port of a switch and may hold together."""
    c = plan.circuits
    users: dict[int, set[int]] = {}
    for port, part in zip(
        np.r_[c.ingress[rows], c.egress[rows]].tolist(), np.r_[c.part[rows], c.part[rows]].tolist(), strict=True
    ):
        users.setdefault(port, set()).add(part)
    apart = plan.excluded_with
    return sorted({(a, b) for u in users.values() for a in u for b in u if a < b and b not in apart[a]})
