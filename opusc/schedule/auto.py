"""`policy = auto`: which circuits, which rule of asking and which order of operations make an iteration shortest.

A search over a few dozen combinations, in a fixed order: for each way of laying the phases on the ports, and from the
better of the published policies, one idea after another is tried with all its values and kept when the iteration gets
shorter, until none helps; then ideas that no longer help are dropped. Every iteration is simulated, so gains are
measured, not estimated. What is chosen must be legal: `audit` looks at its order and at its timeline.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from opusc.schedule import audit
from opusc.schedule.circuits import Part
from opusc.schedule.ideas import AS_WRITTEN, Reordering, reductions, reordered
from opusc.schedule.layouts import Refused, layouts, sharing
from opusc.schedule.operations import Program, Workload
from opusc.schedule.pairs import Length, Pair, asked_later, described
from opusc.schedule.policy import ON_DEMAND, PROVISIONED, Mode, Policy, Rendezvous, Scope
from opusc.schedule.simulation import Result
from opusc.schedule.variants import TurnsTooSlowlyError, Variant, redrawn, steady

__all__ = ["IDEAS", "Choice", "Finding", "Idea", "Search", "Trial"]

_ROUNDS = 3
_DESCENTS = 3  # packed variants that are looked into
_MANY = 40_000  # operations, above which a simulation takes a second and fewer values are tried


@dataclass(frozen=True, slots=True)
class Trial:
    """A combination: the variant (by number), the rule of asking, the order."""

    policy: Policy = PROVISIONED
    order: Reordering = AS_WRITTEN
    variant: int = 0


@dataclass(frozen=True, slots=True)
class Idea:
    """Something to try: `values` gives the trials that differ from one in this idea only, the plain one first."""

    name: str
    what: str
    values: Callable[[Trial, "Search"], Sequence[Trial]]


def _modes(trial: Trial, search: "Search") -> list[Trial]:
    return [replace(trial, policy=replace(trial.policy, mode=mode)) for mode in (Mode.ON_DEMAND, Mode.PROVISIONED)]


def _rendezvous(trial: Trial, search: "Search") -> list[Trial]:
    return [replace(trial, policy=replace(trial.policy, rendezvous=each)) for each in search.rendezvous]


def _scopes(trial: Trial, search: "Search") -> list[Trial]:
    return [replace(trial, policy=replace(trial.policy, scope=scope)) for scope in search.scopes]


def _handing(trial: Trial, search: "Search") -> list[Trial]:
    return [replace(trial, order=replace(trial.order, hand_back=back)) for back in (False, True)]


def _holding(trial: Trial, search: "Search") -> list[Trial]:
    most = len(search.ready[0]) // trial.order.batch
    values = (0, 4, 16) if search.coarse else (0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32)
    counts = [n for n in values if n == 0 or n < most]
    return [replace(trial, order=replace(trial.order, hold=n)) for n in counts]


def _batching(trial: Trial, search: "Search") -> list[Trial]:
    return [replace(trial, order=replace(trial.order, batch=n)) for n in ((1, 4) if search.coarse else (1, 2, 3, 4, 8))]


def _turning(trial: Trial, search: "Search") -> list[Trial]:
    return _alike(trial, search, lambda variant: variant.stated_packing)


def _packing(trial: Trial, search: "Search") -> list[Trial]:
    return _alike(trial, search, lambda variant: variant.one_way)


def _alike(trial: Trial, search: "Search", of: Callable[[Variant], object]) -> list[Trial]:
    """The variants that are like the trial's in this, the plainest first."""
    own = of(search.variants[trial.variant])
    return [replace(trial, variant=number) for number, variant in enumerate(search.variants) if of(variant) == own]


IDEAS: tuple[Idea, ...] = (
    Idea("early", "ask for the next circuits as soon as the ports fall idle", _modes),
    Idea("agree", "agree when circuits must change, not before each collective", _rendezvous),
    Idea("footprint", "start a change when its own circuits are idle, whatever others do", _scopes),
    Idea("hand-back", "hand gradients back before they are reduced", _handing),
    Idea("hold", "hold the first reductions of stage 0 back", _holding),
    Idea("batch", "reduce several layers together", _batching),
    Idea("one-way", "send the same way round on every port of a ring", _turning),
    Idea("pack", "give phases ports to themselves", _packing),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """What an idea gives (ps): on top of the published policy alone, and as the last of all that were chosen."""

    idea: Idea
    chosen: str  # "" when it was not
    alone: int
    last: int
    tried: bool  # whether there was anything to try: other values than the plain one


@dataclass(frozen=True)
class Choice:
    """The shortest iteration found for one delay. `published` is the better of the published policies, `reference` the
    iteration with all links present in the chosen order, `start` the parts that hold when an iteration begins."""

    delay: int
    trial: Trial
    variant: Variant
    workload: Workload
    program: Program
    result: Result
    published: int
    published_mode: Mode
    reference: int
    findings: tuple[Finding, ...]
    tried: int
    start: frozenset[Part]
    refused: tuple[Refused, ...]
    pairs: tuple[Pair, ...]

    def at(self, delay: int) -> Result:
        """The same choice at another delay."""
        found = self.variant.run(self.program, self.trial.policy, delay)
        return found if found is not None else self.result


class Search:
    """Everything that trials share: variants, orders, iterations that are known."""

    def __init__(self, base: Variant, *, pack: bool = True) -> None:
        self.variants, self.refused = layouts(base) if pack else ([base], [])
        self.sharing = tuple(map(sharing, self.variants))
        self.ready = _ready(base)
        self.coarse = sum(map(len, base.setting.workload.stages)) > _MANY
        # Questions of the published controller; where the order is known ahead there are none to ask.
        asks = base.setting.network is None
        self.rendezvous = tuple(Rendezvous) if asks else (Rendezvous.EVERY_COLLECTIVE,)
        self.scopes = tuple(Scope) if asks else (Scope.FABRIC,)
        self._workloads: dict[Reordering, Workload] = {}
        self._programs: dict[tuple[int, Reordering], Program] = {}
        self._known: dict[tuple[Trial, int], tuple[int, int] | None] = {}

    def workload(self, trial: Trial) -> Workload:
        if trial.order not in self._workloads:
            self._workloads[trial.order] = reordered(self.variants[0].setting.workload, self.ready, trial.order)
        return self._workloads[trial.order]

    def program(self, trial: Trial) -> Program:
        key = trial.variant, trial.order
        if key not in self._programs:
            self._programs[key] = self.variants[trial.variant].setting.lower(self.workload(trial))
        return self._programs[key]

    def measure(self, trial: Trial, delay: int) -> tuple[int, int] | None:
        """Length of the iteration (ps) and its number of changes; None where the trial does not work."""
        variant = self.variants[trial.variant]
        key = replace(trial, policy=PROVISIONED) if variant.fixed or variant.turning else trial, delay
        if key not in self._known:
            result = variant.run(self.program(trial), trial.policy, delay)
            self._known[key] = None if result is None else (result.iteration, len(steady(variant, result)[1]))
        return self._known[key]

    def gain(self, before: Trial, after: Trial, delay: int) -> int:
        """By how much `after` is shorter."""
        one, other = self.measure(before, delay), self.measure(after, delay)
        return one[0] - other[0] if one is not None and other is not None else 0

    def choose(self, delay: int) -> Choice:
        """The best combination found at this delay (ps). Raises TurnsTooSlowlyError where none works."""
        published = min((Trial(ON_DEMAND), Trial(PROVISIONED)), key=lambda t: self._score(t, delay))
        best = min(
            (self._descend(way, delay) for way in self._ways(published, delay)), key=lambda t: self._score(t, delay)
        )
        if self.measure(best, delay) is None:
            raise TurnsTooSlowlyError(delay)
        best = self._simplified(best, delay)
        if len(self.sharing[best.variant]) > 1 and self.variants[best.variant].setting.network is not None:
            policy = asked_later(best.policy, self.sharing[best.variant], self._length(best, delay))
            best = replace(best, policy=policy)
        return self._choice(best, published, delay)

    def _ways(self, published: Trial, delay: int) -> list[Trial]:
        """Where to begin: taking turns, and the packed variants that look best as they are and with gradients first."""
        packed = [replace(published, variant=number) for number in range(1, len(self.variants))]
        if len(packed) > _DESCENTS:
            handed = {t: replace(t, order=Reordering(hand_back=True)) for t in packed}
            packed.sort(key=lambda t: min(self._score(t, delay), self._score(handed[t], delay)))
        return [published, *packed[:_DESCENTS]]

    def _length(self, trial: Trial, delay: int) -> Length:
        return lambda policy: self.measure(replace(trial, policy=policy), delay)

    def _descend(self, best: Trial, delay: int) -> Trial:
        """The best that is reached by one idea after another on the same variant."""
        for _ in range(_ROUNDS):
            before = best
            for idea in IDEAS:
                if idea.name not in ("pack", "one-way"):
                    best = min([best, *idea.values(best, self)], key=lambda t: self._score(t, delay))
            if best == before:
                break
        return best

    def _score(self, trial: Trial, delay: int) -> tuple[int, int]:
        return self.measure(trial, delay) or (2**62, 0)

    def _simplified(self, best: Trial, delay: int) -> Trial:
        """Without what makes no difference."""
        for idea in reversed(IDEAS):
            plain = idea.values(best, self)[0]
            if plain != best and self._score(plain, delay) <= self._score(best, delay):
                best = plain
        return best

    def _choice(self, best: Trial, published: Trial, delay: int) -> Choice:
        variant, workload, program = self.variants[best.variant], self.workload(best), self.program(best)
        result = variant.run(program, best.policy, delay, record=True)
        assert result is not None, "a trial that was chosen works"
        start, changes = steady(variant, result)
        result = redrawn(result, changes)
        against = audit.reordering(variant.setting.workload, workload)
        against += audit.timeline(workload, program, result, start, variant.exclusive)
        if against:
            raise RuntimeError(f"the schedule is not legal: {against[0]}")
        return Choice(
            delay=delay,
            trial=best,
            variant=variant,
            workload=workload,
            program=program,
            result=result,
            published=self._score(published, delay)[0],
            published_mode=published.policy.mode,
            reference=variant.reference(workload).iteration,
            findings=tuple(self._findings(best, published, delay)),
            tried=len(self._known),
            start=start,
            refused=tuple(self.refused),
            pairs=described(
                best.policy, self.sharing[0], self.sharing[best.variant], result.changes, self._length(best, delay)
            ),
        )

    def _findings(self, best: Trial, published: Trial, delay: int) -> Iterator[Finding]:
        for idea in IDEAS:
            plain = idea.values(best, self)[0]
            values = idea.values(published, self)
            alone = max(self.gain(published, t, delay) for t in values)
            if idea.name == "early":
                alone = self.gain(Trial(ON_DEMAND), Trial(PROVISIONED), delay)
            chosen, last = self._value(idea, best, plain), self.gain(plain, best, delay)
            yield Finding(idea, chosen, alone, last, len(values) > 1)

    def _value(self, idea: Idea, best: Trial, plain: Trial) -> str:
        if best == plain:
            return ""
        match idea.name:
            case "hold":
                return str(best.order.hold)
            case "batch":
                return str(best.order.batch)
            case "pack":
                return self.variants[best.variant].stated
        return "yes"


def _ready(base: Variant) -> tuple[tuple[str, ...], ...]:
    """The reductions of each stage in the order in which they start with every link present."""
    found = []
    for stage, lane in enumerate(base.links.timelines):
        starts: dict[str, int] = {}
        for interval in lane:
            starts.setdefault(interval.what, interval.start)
        names = reductions(base.setting.workload.stages[stage])
        found.append(tuple(sorted((n for n in names if n in starts), key=lambda n: (starts[n], n))))
    return tuple(found)
