"""What an iteration takes and loses, at each delay and under each policy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from opusc.schedule.auto import Choice, Search
from opusc.schedule.operations import Program
from opusc.schedule.policy import ALL_LINKS, ON_DEMAND, PROVISIONED, Policy
from opusc.schedule.simulation import Result, simulate
from opusc.schedule.variants import TurnsTooSlowlyError, Variant

__all__ = ["POLICIES", "Estimate", "Row", "estimate", "estimate_plan", "recorded", "row_of"]

#: The policies of the language. `static` needs a variant of the plan in which nothing changes.
POLICIES: Mapping[str, Policy | None] = {
    "on_demand": ON_DEMAND,
    "provisioned": PROVISIONED,
    "static": None,
    "auto": None,
}

_STEP = 10**6  # ps: how much longer a delay is made to see what grows with it


@dataclass(frozen=True)
class Row:
    """One policy at one delay (ps). Overheads are ratios to the iteration with all links present.

    `at_zero` is there at zero delay, `added` comes with the delay; their sum is `overhead`. `visible` is how many
    changes are on the critical path: the slope of the iteration in the delay.
    """

    policy: str
    delay: int
    iteration: int
    at_zero: Fraction
    added: Fraction
    changes: int
    visible: int
    exposed: tuple[int, ...]

    @property
    def overhead(self) -> Fraction:
        return self.at_zero + self.added


@dataclass(frozen=True)
class Estimate:
    """`choices` says for each delay what `auto` chose, where it was asked for."""

    all_links: Result
    rows: tuple[Row, ...]
    choices: Mapping[int, Choice] = field(default_factory=dict)

    def row(self, policy: str, delay: int) -> Row:
        return next(row for row in self.rows if (row.policy, row.delay) == (policy, delay))


#: An iteration at a delay (ps).
_Run = Callable[[int], Result]


def estimate(program: Program, policies: Mapping[str, Policy], delays: Sequence[int]) -> Estimate:
    """Simulate every policy at zero delay and at every delay given (ps)."""
    links = simulate(program, ALL_LINKS)
    rows = []
    for name, policy in policies.items():
        run = _runner(program, policy)
        rows += [row_of(name, delay, run, links) for delay in sorted({0, *delays})]
    return Estimate(links, tuple(rows))


def estimate_plan(
    variant: Variant, names: Sequence[str], delays: Sequence[int], static: Variant | None = None
) -> Estimate:
    """The same for a plan, its packed phases included. `static` is the variant that never changes, for that policy;
    `auto` chooses for each delay anew, and its row at that delay is what was chosen for it."""
    rows: list[Row] = []
    choices: dict[int, Choice] = {}
    search = Search(variant) if "auto" in names else None
    for name in names:
        for delay in sorted({0, *delays}):
            if name == "auto" and search is not None:
                choices[delay] = search.choose(delay)
                row = row_of(name, delay, choices[delay].at, variant.links)
                rows.append(replace(row, changes=len(choices[delay].result.changes)))
            else:
                on = static or variant if name == "static" else variant
                rows.append(row_of(name, delay, _variant_runner(on, POLICIES[name] or ON_DEMAND), variant.links))
    return Estimate(variant.links, tuple(rows), choices)


def recorded(variant: Variant, name: str, delay: int, found: Estimate, static: Variant | None = None) -> Result:
    """The iteration of a row with its timeline; `all_links` for every link present."""
    if name == "all_links":
        return variant.links
    if name == "auto":
        return found.choices[delay].result
    on = static or variant if name == "static" else variant
    result = on.run(on.setting.program, POLICIES[name] or ON_DEMAND, delay, record=True)
    assert result is not None, "its row says so"
    return result


def _runner(program: Program, policy: Policy) -> _Run:
    return lambda delay: simulate(program, policy, delay)


def _variant_runner(variant: Variant, policy: Policy) -> _Run:
    def run(delay: int) -> Result:
        found = variant.run(variant.setting.program, policy, delay)
        if found is None:
            raise TurnsTooSlowlyError(delay)
        return found

    return run


def row_of(name: str, delay: int, run: _Run, links: Result) -> Row:
    """The row of one policy at one delay, from its iterations at zero delay, at the delay and a little above."""
    zero = run(0)
    result = run(delay) if delay else zero
    growth = run(delay + _STEP).iteration - result.iteration
    return Row(
        policy=name,
        delay=delay,
        iteration=result.iteration,
        at_zero=Fraction(zero.iteration - links.iteration, links.iteration),
        added=Fraction(result.iteration - zero.iteration, links.iteration),
        changes=len(result.changes),
        visible=(2 * growth + _STEP) // (2 * _STEP),
        exposed=result.exposed,
    )
