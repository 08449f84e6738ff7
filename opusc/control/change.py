"""From what a switch holds to what it should: the smallest change, and whose circuits are in the way.

Ports belong to the program where one of its ranks' NIC ports ends. A circuit is the program's own when both its ends
are. Circuits of others are never named in a change; one that occupies a port which the goal needs is in the way, and
the change is not made.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from opusc.backends.switch_files import Pairs
from opusc.control.device import Held, Pair
from opusc.model.entities import Matrix
from opusc.plan.plan import Switch

__all__ = ["Change", "Goal", "Port", "Station", "change_to", "goal_of_return"]

#: Side (0 ingress, 1 egress; always 0 on an `any` matrix) and name.
Port: TypeAlias = tuple[int, str]


@dataclass(frozen=True, eq=False)
class Station:
    """A switch of the plan with the names of its ports; `owned` are the numbers of those that are the program's."""

    switch: Switch
    names: Mapping[int, str]
    owned_numbers: frozenset[int]

    @property
    def name(self) -> str:
        return self.switch.name

    @property
    def sided(self) -> bool:
        return self.switch.kind.matrix is Matrix.CROSSBAR

    def port(self, number: int) -> Port:
        return (int(self.sided and number > self.switch.kind.radix), self.names[number])

    @cached_property
    def owned(self) -> frozenset[Port]:
        return frozenset(map(self.port, self.owned_numbers))

    @cached_property
    def number_of(self) -> dict[Port, int]:
        return {self.port(number): number for number in self.names}

    def ends(self, pair: Pair) -> tuple[Port, Port]:
        return (0, pair[0]), (int(self.sided), pair[1])

    def canonical(self, held: Iterable[Pair]) -> Held:
        """Circuits of an `any` matrix have no direction: the lower port first, as the plan has them."""
        if self.sided:
            return frozenset(held)
        return frozenset(pair if self._rank(pair[0], 0) <= self._rank(pair[1], 0) else pair[::-1] for pair in held)

    def ordered(self, pairs: Iterable[Pair]) -> Pairs:
        """In the order of ingress ports; names that the program does not know last."""
        return tuple(sorted(pairs, key=lambda pair: [self._rank(name, side) for side, name in self.ends(pair)]))

    def _rank(self, name: str, side: int) -> tuple[int, str]:
        return self.number_of.get((side, name), 1 << 30), name


@dataclass(frozen=True, slots=True)
class Goal:
    """What a switch should hold. `gone`: circuits that must not stay; None: none of the program's own but `wanted`."""

    wanted: Held
    gone: Held | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Disconnects, then connects. `kept` are wanted circuits that are there; `foreign` those of others, which stay;
    `blocking` those of others that occupy a port of a wanted one."""

    disconnect: Pairs
    connect: Pairs
    kept: Pairs
    foreign: Pairs
    blocking: Pairs

    @property
    def empty(self) -> bool:
        """The goal is met."""
        return not (self.disconnect or self.connect or self.blocking)


def change_to(station: Station, held: Held, goal: Goal, taken: Held = frozenset()) -> Change:
    """The smallest change that meets a goal. Circuits in `taken` may go although others made them."""
    needed = {port for pair in goal.wanted for port in station.ends(pair)}
    disconnect, foreign, blocking = [], [], []
    for pair in held - goal.wanted:
        ends = station.ends(pair)
        own = pair in taken or all(port in station.owned for port in ends)
        touches = any(port in needed for port in ends)
        if own and (touches or goal.gone is None or pair in goal.gone):
            disconnect.append(pair)
        elif touches:
            blocking.append(pair)
        elif not own:
            foreign.append(pair)
    return Change(
        disconnect=station.ordered(disconnect),
        connect=station.ordered(goal.wanted - held),
        kept=station.ordered(goal.wanted & held),
        foreign=station.ordered(foreign),
        blocking=station.ordered(blocking),
    )


def goal_of_return(station: Station, before: Held, goal: Goal, change: Change) -> Goal:
    """The goal that leads back to what a switch held before a change, restricted to what the change may touch."""
    if goal.gone is None:
        mine = {pair for pair in before if all(port in station.owned for port in station.ends(pair))}
        return Goal(frozenset(mine) | frozenset(change.disconnect))
    return Goal(frozenset(change.disconnect + change.kept), goal.wanted - before)
