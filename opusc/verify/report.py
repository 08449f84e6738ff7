"""The report: what was proved of a plan, how, and how long it took."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Method", "Obligation", "Report"]


class Method(StrEnum):
    SYMBOLIC = "symbolic"  # a formula, proved by Z3 once for all ranks
    COMPARED = "compared"  # every row of the plan against the formula
    PER_SWITCH = "per switch"  # rows that follow no formula, proved by Z3 one switch at a time
    CHECKED = "checked"  # by the second checker, which shares no code with the others


@dataclass(frozen=True, slots=True)
class Obligation:
    """One thing that holds. `count` says of how many rows, switches or parts (1 for a formula).

    `milliseconds` is for people and never enters an emitted file.
    """

    name: str
    method: Method
    count: int
    milliseconds: float


_HOW = {
    Method.SYMBOLIC: "{n} formula{s} by Z3, once for all ranks",
    Method.COMPARED: "{count} rows compared with the formulas",
    Method.PER_SWITCH: "{n} statement{s} by Z3 about single switches, whose circuits follow no formula",
    Method.CHECKED: "{n} propert{ies} by an independent checker",
}


@dataclass(frozen=True)
class Report:
    """Every obligation of a plan. A report of a plan that failed lists only what held."""

    obligations: tuple[Obligation, ...]

    @property
    def summary(self) -> tuple[str, ...]:
        """One line for each method that was used."""
        lines = []
        for method, how in _HOW.items():
            mine = [o for o in self.obligations if o.method is method]
            if mine:
                n, spent = len(mine), sum(o.milliseconds for o in mine)
                text = how.format(
                    n=f"{n:,}", s="s" * (n != 1), ies="ies" if n != 1 else "y", count=f"{sum(o.count for o in mine):,}"
                )
                lines.append(f"{text} ({spent:.0f} ms)")
        return tuple(lines)
