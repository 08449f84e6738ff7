"""Requirements on results: link margin, bandwidth of phases, cost and power of the plan, and those of an iteration.

Each is decided with what was measured, and fails with the largest contributors.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from opusc.diagnostics import Diagnostics
from opusc.model.entities import Requirement
from opusc.model.requirements import PLANNED, of_phase
from opusc.plan.plan import Plan
from opusc.schedule.cost import compare, contributors, figures
from opusc.schedule.light import DB, Path, budget, decimal
from opusc.schedule.measured import Measured
from opusc.schedule.shares import Share, shares

__all__ = ["Held", "Iteration", "decide", "not_checked"]

_MOST = 3  # contributors that are told of each result


#: The results of an iteration; None when it cannot be simulated, and the sink says why.
Iteration = Callable[[Diagnostics], Mapping[str, Measured] | None]


@dataclass(frozen=True, slots=True)
class Held:
    """A requirement that holds, with what was measured."""

    requirement: Requirement
    measured: tuple[str, ...]


def decide(plan: Plan, sink: Diagnostics, iteration: Iteration | None = None) -> tuple[Held, ...]:
    """Decide every requirement on results of the plan, and of an iteration where `iteration` measures one.

    Those that do not hold become errors (OPUS421); so do numbers that are missing for a result of the plan (OPUS431,
    OPUS441) and phases that have nothing to measure (OPUS442). What waits for an iteration that cannot be simulated is
    a warning with the reason (OPUS420).
    """
    results = _Results(plan, sink)
    held: list[Held] = []
    for requirement in plan.model.requirements:
        if requirement.decide is None:
            continue
        simulated = [name for name in requirement.needs if of_phase(name)[0] not in PLANNED]
        if simulated:
            if iteration is None:
                continue
            results.simulate(iteration)
            if results.lacking:
                not_checked(requirement, results.lacking, sink)
                continue
        measured = [results.of(name, requirement) for name in requirement.needs]
        known = [m for m in measured if m is not None]
        if len(known) == len(measured) and _holds(requirement, known, sink):
            held.append(Held(requirement, _words(known)))
    return tuple(held)


def not_checked(requirement: Requirement, reasons: Sequence[str], sink: Diagnostics) -> None:
    """Warn that nobody decided a requirement."""
    sink.warning(
        "OPUS420",
        f"not checked: `{requirement.text}`",
        requirement.span,
        f"needs {', '.join(requirement.needs)}",
        notes=list(reasons),
        help="the plan lists it as not checked",
    )


def _holds(requirement: Requirement, known: Sequence[Measured], sink: Diagnostics) -> bool:
    assert requirement.decide is not None
    values = {name: m.value for name, m in zip(requirement.needs, known, strict=True)}
    reason = requirement.decide(values, sink)
    if reason:
        sink.error(
            "OPUS421",
            f"required, and not so: `{requirement.text}`: {reason}",
            requirement.span,
            "does not hold",
            notes=list(dict.fromkeys(note for m in known for note in (m.words, *m.most[:_MOST]))),
        )
    return reason == ""


def _words(known: Sequence[Measured]) -> tuple[str, ...]:
    return tuple(m.words for m in known)


class _Results:
    """What was measured so far; each measure is taken once, when a requirement first asks for it."""

    def __init__(self, plan: Plan, sink: Diagnostics) -> None:
        self.plan, self.sink = plan, sink
        self.paths: tuple[Path, ...] | None = None
        self.given: tuple[Share, ...] = ()
        self.costs: dict[str, Measured] = {}
        self.taken: set[str] = set()
        self.simulated: Mapping[str, Measured] = {}
        self.lacking: tuple[str, ...] = ()

    def simulate(self, iteration: Iteration) -> None:
        """Measure an iteration, once; `lacking` says what is missing when it cannot be simulated."""
        if "iteration" in self.taken:
            return
        self.taken.add("iteration")
        lacking = Diagnostics()
        found = iteration(lacking)
        self.simulated = found or {}
        if found is None:
            self.lacking = tuple(diagnostic.message for diagnostic in lacking) or ("it cannot be simulated",)

    def of(self, name: str, requirement: Requirement) -> Measured | None:
        measure, phase = of_phase(name)
        if measure not in PLANNED:
            return self.simulated[measure]
        if phase and not self._measurable(name, phase, requirement):
            return None
        take: dict[str, Callable[[], None]] = {"margin": self._light, "bandwidth": self._shares}
        kind = measure if measure in take else "cost"
        if kind not in self.taken:
            self.taken.add(kind)
            take.get(kind, self._cost)()
        if measure == "margin":
            paths = [p for p in self.paths or () if phase in ("", p.phase)]
            return self._some(_margin(name, paths), paths, self.paths is not None, name, requirement)
        if measure == "bandwidth":
            given = [s for s in self.given if phase in ("", s.phase)]
            return self._some(_bandwidth(name, given), given, True, name, requirement)
        return self.costs.get(measure)

    def _some(
        self, found: Measured | None, rows: Sequence[object], known: bool, name: str, requirement: Requirement
    ) -> Measured | None:
        if known and not rows:
            self._nothing(name, "the job has no circuits: all its groups lie inside scale-up domains", requirement)
        return found

    def _measurable(self, name: str, phase: str, requirement: Requirement) -> bool:
        """Whether a phase has circuits; the sink is told when it has none."""
        planned = next((p for p in self.plan.phases if p.name == phase), None)
        if planned is not None and planned.instances:
            return True
        with_circuits = [p.name for p in self.plan.phases if p.instances]
        what = f"phase `{phase}` lies inside scale-up domains" if planned else f"the job has no phase `{phase}`"
        self._nothing(name, what, requirement, f"phases with circuits: {', '.join(with_circuits) or 'none'}")
        return False

    def _nothing(self, name: str, what: str, requirement: Requirement, help: str = "") -> None:
        self.sink.error("OPUS442", f"`{name}` has nothing to measure: {what}", requirement.span, help=help)

    def _light(self) -> None:
        self.paths = budget(self.plan, self.sink)

    def _shares(self) -> None:
        self.given = shares(self.plan)

    def _cost(self) -> None:
        known = figures(self.plan.model.fabric, self.sink)
        if known is None:
            return
        own = compare(self.plan, known).whole[0]
        most = contributors(self.plan, known)
        usd = tuple(f"{part.count:,} {part.what}: {round(part.cost / 100):,} USD" for part in most["cost"])
        watt = tuple(f"{part.count:,} {part.what}: {round(part.power / 1000):,} W" for part in most["power"])
        where = "photonic rails in whole chassis"
        self.costs["cost"] = Measured(own.cost, f"cost = {round(own.cost / 100):,} USD ({where})", usd)
        self.costs["power"] = Measured(own.power, f"power = {round(own.power / 1000):,} W ({where})", watt)


def _margin(name: str, paths: Sequence[Path]) -> Measured | None:
    if not paths:
        return None
    worst = min(paths, key=lambda path: path.margin)
    ends = " to ".join(f"GPU {gpu} port {port}" for gpu, port in worst.ends)
    words = f"{name} = {decimal(worst.margin, DB)} dB ({worst.part} on rail {worst.rail}: {ends} over {worst.switch})"
    most = tuple(f"{loss.what}: {decimal(loss.size, DB)} dB" for loss in worst.losses if loss.size)
    return Measured(Fraction(worst.margin * 1000, DB), words, most)


def _bandwidth(name: str, given: Sequence[Share]) -> Measured | None:
    if not given:
        return None
    ordered = sorted(given, key=lambda share: share.bandwidth)
    rows = tuple(f"{s.part} on rail {s.rail}: {_ports(s.ports)}, {_gbps(s.bandwidth)} ({_ranks(s)})" for s in ordered)
    least = ordered[0]
    words = f"{name} = {_gbps(least.bandwidth)} of a rank and direction ({_ports(least.ports)} in {least.part})"
    return Measured(Fraction(least.bandwidth, 10**12), words, rows)


def _ports(count: int) -> str:
    return f"{count} port{'s' * (count > 1)} at once"


def _ranks(share: Share) -> str:
    return f"{share.ranks:,} rank{'s' * (share.ranks > 1)}"


def _gbps(rate: int) -> str:
    return f"{decimal(rate, 10**9)} Gbps"
