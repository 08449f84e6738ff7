"""Verification: a plan is emitted only when it is proved.

Two opinions, which share no code. The first proves the formulas with Z3, once for all ranks (`symbolic`),
compares every row of the plan with them (`layout`, `places`, `rows`, `tables`), and proves the rows that follow no
formula switch by switch (`irregular`). The second (`structure`) derives from the model what each phase should
connect and follows the circuits through the cabling. Both must find nothing.
"""

from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan
from opusc.verify import explain, formulas, structure
from opusc.verify.finding import Finding
from opusc.verify.formulas import statements
from opusc.verify.report import Method, Obligation, Report
from opusc.verify.sequence import check_schedule
from opusc.verify.statement import Statement, answer, smt2

__all__ = [
    "Finding",
    "Method",
    "Obligation",
    "Report",
    "Statement",
    "answer",
    "first_opinion",
    "second_opinion",
    "smt2",
    "statements",
    "verify",
]


def verify(plan: Plan, sink: Diagnostics) -> Report:
    """Prove a plan; whatever is not proved is an error in the sink."""
    proved, found = first_opinion(plan)
    checked, objections = second_opinion(plan)
    scheduled, faults = check_schedule(plan)
    explain.explain(plan, [*found, *objections, *faults], sink)
    return Report((*proved, *checked, *scheduled))


def first_opinion(plan: Plan) -> tuple[tuple[Obligation, ...], list[Finding]]:
    """By formulas and Z3: what holds, and what is against the plan."""
    return formulas.prove(plan)


def second_opinion(plan: Plan) -> tuple[tuple[Obligation, ...], list[Finding]]:
    """By the independent checker: what holds, and what is against the plan."""
    return structure.check(plan)
