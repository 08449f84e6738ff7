"""What an iteration takes and loses, at each delay and under each policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from opusc.schedule.operations import Program
from opusc.schedule.policy import ALL_LINKS, Policy
from opusc.schedule.simulation import Result, changes_on_critical_path, simulate

__all__ = ["Estimate", "Row", "estimate"]


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
    all_links: Result
    rows: tuple[Row, ...]

    def row(self, policy: str, delay: int) -> Row:
        return next(row for row in self.rows if (row.policy, row.delay) == (policy, delay))


def estimate(program: Program, policies: Mapping[str, Policy], delays: Sequence[int]) -> Estimate:
    """Simulate every policy at zero delay and at every delay given (ps)."""
    links = simulate(program, ALL_LINKS)
    rows = []
    for name, policy in policies.items():
        zero = simulate(program, policy)
        for delay in sorted({0, *delays}):
            result = simulate(program, policy, delay) if delay else zero
            rows.append(
                Row(
                    policy=name,
                    delay=delay,
                    iteration=result.iteration,
                    at_zero=Fraction(zero.iteration - links.iteration, links.iteration),
                    added=Fraction(result.iteration - zero.iteration, links.iteration),
                    changes=len(result.changes),
                    visible=changes_on_critical_path(program, policy, delay),
                    exposed=result.exposed,
                )
            )
    return Estimate(links, tuple(rows))
