"""What requirements measure of an iteration: time, overhead and changes, at the program's own delay and policy."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan
from opusc.schedule.auto import Choice
from opusc.schedule.demands import dark
from opusc.schedule.estimate import Row, estimate_plan, row_of
from opusc.schedule.light import decimal
from opusc.schedule.measured import Measured
from opusc.schedule.variants import TurnsTooSlowlyError, variant_of

__all__ = ["DEFAULT_POLICY", "measure", "words_of"]

#: What a job that states no policy is held to: it asks nothing of the controller.
DEFAULT_POLICY = "on_demand"


def measure(plan: Plan, choice: Choice | None, lacking: Diagnostics) -> Mapping[str, Measured] | None:
    """The results of an iteration; None when it cannot be simulated, and `lacking` says why.

    `choice` is what `policy = auto` chose for the plan, where it had anything to choose.
    """
    if choice is not None:
        found = row_of("auto", choice.delay, choice.at, choice.variant.links)
        return words_of(replace(found, changes=len(choice.result.changes)))
    variant = variant_of(plan, lacking)
    delay = dark(plan, lacking) if len(plan.exclusions) else 0
    if variant is None or delay is None:
        return None
    policy = plan.model.job.policy or DEFAULT_POLICY
    # Where there was nothing to choose, nothing changes, whatever the policy.
    name = "on_demand" if policy == "auto" else policy
    try:
        found = estimate_plan(variant, [name], [delay]).row(name, delay)
    except TurnsTooSlowlyError as error:
        error.explain(plan.model.job, lacking)
        return None
    return words_of(replace(found, policy=policy))


def words_of(row: Row) -> dict[str, Measured]:
    """A simulated iteration as results, each with the policy and the delay that it was measured at."""
    where = (f"{row.policy}, {decimal(row.delay, 10**9)} ms a change",)
    parts = f"{_percent(row.at_zero)} at zero delay, {_percent(row.added)} from the delay"
    return {
        "overhead": Measured(row.overhead, f"overhead = {_percent(row.overhead)} ({parts})", where),
        "iteration_time": Measured(
            Fraction(row.iteration), f"iteration_time = {_fixed(Fraction(row.iteration, 10**9), 3)} ms", where
        ),
        "reconfigurations": Measured(Fraction(row.changes), f"reconfigurations = {row.changes}", where),
    }


def _percent(value: Fraction) -> str:
    return f"{_fixed(value * 100, 3)} %"


def _fixed(value: Fraction, digits: int) -> str:
    """A decimal fraction with so many digits, rounded to the nearest."""
    scaled = round(value * 10**digits)
    whole, rest = divmod(abs(scaled), 10**digits)
    return f"{'-' * (scaled < 0)}{whole:,}.{rest:0{digits}}"
