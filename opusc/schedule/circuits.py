"""Which parts hold during an iteration, which are being set, and when a change may start.

The controller keeps one bit per stage: set, the stage is joined to the neighbours whose bit is set too;
clear (or set with no such neighbour), it has its data-parallel ring. Asking for a ring clears the bit,
asking for a join sets two. This is the published protocol (arXiv 2602.12521; Scheduler.cc and
TopologyManager.cpp of its artifact).
"""

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Change", "Circuits", "Part", "join_of", "ring_of"]


class Part(NamedTuple):
    """The circuits of one phase in one scope: the rings of a stage, or the joins of two stages.

    `step` is -1 where the ports hold the phase at once, else which of its steps this is.
    """

    phase: str
    stages: tuple[int, ...]
    step: int = -1

    def __str__(self) -> str:
        name = f"{self.phase}[{'-'.join(map(str, self.stages))}]"
        return name if self.step < 0 else f"{name} step {self.step}"


def ring_of(stage: int) -> Part:
    return Part("dp", (stage,))


def join_of(a: int, b: int) -> Part:
    return Part("pp", (a, b) if a < b else (b, a))


@dataclass(frozen=True, slots=True)
class Change:
    """One change: asked for, drained (old circuits idle), lit (new circuits usable)."""

    stage: int
    asked: int
    drained: int
    lit: int
    went: frozenset[Part]
    came: frozenset[Part]

    @property
    def footprint(self) -> frozenset[int]:
        return frozenset(stage for part in self.went | self.came for stage in part.stages)

    def __str__(self) -> str:
        return f"{', '.join(map(str, sorted(self.went)))} -> {', '.join(map(str, sorted(self.came)))}"


class Circuits:
    """The controller's state during one simulated iteration."""

    def __init__(self, stages: int, delay: int, *, whole_fabric: bool) -> None:
        self.delay, self.whole_fabric = delay, whole_fabric
        self.wanted = [False] * stages
        self.set = tuple(self.wanted)
        self.lit_at = dict.fromkeys(self._parts(self.set), 0)
        self.running = [0] * stages
        self.running_total = 0
        self.sending: dict[Part, int] = {}
        self.drained = 0
        self.last_lit = 0
        self.pending = False
        self.changes: list[Change] = []
        self._asker = 0

    def holds(self, part: Part) -> bool:
        return part in self.lit_at

    def lit(self, part: Part) -> int:
        return self.lit_at[part]

    def collective_starts(self, stage: int) -> None:
        self.running[stage] += 1
        self.running_total += 1

    def collective_ends(self, stage: int) -> None:
        self.running[stage] -= 1
        self.running_total -= 1

    def send_ends(self, part: Part, time: int) -> None:
        self.sending[part] = max(time, self.sending.get(part, 0))

    def ask(self, stage: int, part: Part, now: int) -> bool:
        """Set the wanted bits and change to them; False when the change cannot start yet."""
        self._asker = stage
        if part.phase == "dp":
            self.wanted[stage] = False
        else:
            for member in part.stages:
                self.wanted[member] = True
        return self._change(now)

    def retry(self, now: int) -> None:
        if self.pending:
            self._change(now)

    def _change(self, now: int) -> bool:
        wanted = tuple(self.wanted)
        self.pending = False
        if wanted == self.set:
            return True
        new = self._parts(wanted)
        went = frozenset(self.lit_at.keys() - new)
        came = frozenset(new - self.lit_at.keys())
        drained = self._drained(went, now)
        if drained is None:
            self.pending = True
            return False
        lit = drained + self.delay
        for part in went:
            del self.lit_at[part]
        for part in came:
            self.lit_at[part] = lit
        self.set, self.drained, self.last_lit = wanted, drained, max(lit, self.last_lit)
        self.changes.append(Change(self._asker, now, drained, lit, went, came))
        return True

    def _drained(self, went: frozenset[Part], now: int) -> int | None:
        """When the circuits that must be idle are; None if a collective still uses them."""
        if self.whole_fabric:
            if self.running_total or now < self.drained:
                return None
            return max(now, self.last_lit, max(self.sending.values(), default=0))
        if any(part.phase == "dp" and self.running[part.stages[0]] for part in went):
            return None
        return max([now, *(max(self.lit_at[part], self.sending.get(part, 0)) for part in went)])

    def _parts(self, bits: tuple[bool, ...]) -> set[Part]:
        count = len(bits)
        joins = {join_of(s, s + 1) for s in range(count - 1) if bits[s] and bits[s + 1]}
        joined = {stage for part in joins for stage in part.stages}
        return joins | {ring_of(stage) for stage in range(count) if stage not in joined}
