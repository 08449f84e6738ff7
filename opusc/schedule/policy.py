"""Reconfiguration policies: who asks for a change, who must agree, and what a change waits for."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["ALL_LINKS", "ON_DEMAND", "PROVISIONED", "Mode", "Policy", "Rendezvous", "Scope"]


class Mode(StrEnum):
    """`ALL_LINKS`: every part holds at once, as with packet switches. `ON_DEMAND`: a stage asks when it has traffic
    for a part that does not hold. `PROVISIONED`: it also asks for its next part as soon as its last one is through."""

    ALL_LINKS = "all_links"
    ON_DEMAND = "on_demand"
    PROVISIONED = "provisioned"


class Rendezvous(StrEnum):
    """Who must agree before a collective uses a ring.

    `EVERY_COLLECTIVE` (published): its members vote before each one. A member that finds the vote incomplete lets go
    of its communication stream and takes its next ready operation; only the member that votes last starts at once.
    `AT_CHANGE`: members ask only when the ring does not hold.
    """

    EVERY_COLLECTIVE = "every_collective"
    AT_CHANGE = "at_change"


class Scope(StrEnum):
    """What a change waits for: `FABRIC` (published), until no collective uses any ring and every circuit is idle;
    `FOOTPRINT`, only for the parts that go."""

    FABRIC = "fabric"
    FOOTPRINT = "footprint"


@dataclass(frozen=True, slots=True)
class Policy:
    """How circuits are asked for; the defaults are the published protocol.

    `later` are pairs of phases (a pair of one: its own steps) whose circuits follow each other on demand although the
    mode is provisioned. The published controller, whose rings and joins are one pair, knows no such difference.
    """

    mode: Mode
    rendezvous: Rendezvous = Rendezvous.EVERY_COLLECTIVE
    scope: Scope = Scope.FABRIC
    later: frozenset[frozenset[str]] = frozenset()


ALL_LINKS = Policy(Mode.ALL_LINKS)
ON_DEMAND = Policy(Mode.ON_DEMAND)
PROVISIONED = Policy(Mode.PROVISIONED)
