"""What `auto` decided for each two phases that share ports, and why."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from opusc.schedule.circuits import Change
from opusc.schedule.policy import Mode, Policy

__all__ = ["How", "Pair", "asked_later", "described"]


class How(StrEnum):
    """`PACKED`: both hold at once. Else they take turns: `PROVISIONED`, the next is lit as soon as the ports fall idle;
    `ON_DEMAND`, when it is needed, because earlier gains nothing; `APART`, they never follow each other."""

    PACKED = "packed"
    PROVISIONED = "provisioned"
    ON_DEMAND = "on_demand"
    APART = "apart"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two phases, or the steps of one. `changes` from one to the other in an iteration; `gain`: what asking early gains
    over asking on demand for this pair alone (ps)."""

    phases: tuple[str, ...]
    how: How
    changes: int
    gain: int


#: The length of an iteration under a policy (ps); None where it does not work.
Length = Callable[[Policy], tuple[int, int] | None]


def asked_later(policy: Policy, pairs: Iterable[Sequence[str]], measure: Length) -> Policy:
    """The policy with every pair on demand that makes no difference: a controller that is asked less is simpler."""
    if policy.mode is not Mode.PROVISIONED:
        return policy
    for pair in pairs:
        other = replace(policy, later=policy.later | {frozenset(pair)})
        one, two = measure(policy), measure(other)
        if one is not None and two is not None and two <= one:
            policy = other
    return policy


def described(
    policy: Policy,
    pairs: Iterable[tuple[str, ...]],
    held: Iterable[Sequence[str]],
    changes: Sequence[Change],
    measure: Length,
) -> tuple[Pair, ...]:
    """Every pair of phases that share ports when nothing is packed. `held` are the pairs that still do."""
    left = {frozenset(pair) for pair in held}
    known = list(pairs)
    found = []
    for pair in known:
        both = frozenset(pair)
        if both not in left:
            found.append(Pair(pair, How.PACKED, 0, 0))
            continue
        count = sum(_between(change, both) for change in changes)
        later = policy.mode is Mode.ON_DEMAND or both in policy.later
        early, late = (measure(p) for p in _both_ways(policy, both, alone=len(known) == 1))
        gain = late[0] - early[0] if early is not None and late is not None else 0
        how = How.APART if not count else How.ON_DEMAND if later else How.PROVISIONED
        found.append(Pair(pair, how, count, gain))
    return tuple(found)


def _both_ways(policy: Policy, pair: frozenset[str], *, alone: bool) -> tuple[Policy, Policy]:
    """The policy with the pair asked early, and on demand."""
    if alone:  # also under the published controller, which knows no pairs
        return replace(policy, mode=Mode.PROVISIONED, later=frozenset()), replace(policy, mode=Mode.ON_DEMAND)
    early = policy if policy.mode is Mode.PROVISIONED else replace(policy, mode=Mode.PROVISIONED)
    return replace(early, later=early.later - {pair}), replace(early, later=early.later | {pair})


def _between(change: Change, pair: frozenset[str]) -> bool:
    """Whether a part of one gives its ports to a part of the other."""
    return any({a.phase, b.phase} == pair for a in change.went for b in change.came)
