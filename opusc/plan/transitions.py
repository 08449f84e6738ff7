"""Transitions: the ordered change from one configuration to another.

Disconnects come before connects, circuits that both configurations hold are never named, and nothing outside
the footprint (the scopes of the parts that go and come) is touched. Derived for any two sets of parts, so a
plan never lists configurations.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opusc.model.entities import SwitchKind
from opusc.plan.plan import Int32, Plan

__all__ = ["Transition", "dark_time", "held", "not_stated", "transition"]


@dataclass(frozen=True, eq=False)
class Transition:
    """`disconnect` then `connect`: columns (switch, ingress, egress) of shape (rows, 3), sorted."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    disconnect: Int32
    connect: Int32
    kept: int

    @property
    def footprint(self) -> tuple[int, ...]:
        """The parts that go or come."""
        return tuple(sorted(set(self.before) ^ set(self.after)))


def held(plan: Plan, parts: Iterable[int]) -> Int32:
    """The circuits of a configuration: rows (switch, ingress, egress), sorted by switch and ingress."""
    chosen = sorted(set(parts))
    if not plan.compatible(chosen):
        clash = next((p, q) for p in chosen for q in sorted(plan.excluded_with[p]) if q in chosen)
        raise ValueError(f"{plan.parts[clash[0]].name} and {plan.parts[clash[1]].name} exclude each other")
    c = plan.circuits
    blocks = [np.stack([c.switch[r], c.ingress[r], c.egress[r]], axis=1) for r in map(plan.rows, chosen)]
    rows = np.concatenate(blocks) if blocks else np.zeros((0, 3), np.int32)
    return rows[np.lexsort((rows[:, 1], rows[:, 0]))]


def transition(plan: Plan, before: Iterable[int], after: Iterable[int]) -> Transition:
    """The smallest change that leads from the parts `before` to the parts `after`.

    Raises ValueError when either set holds two parts that exclude each other.
    """
    old_parts, new_parts = tuple(sorted(set(before))), tuple(sorted(set(after)))
    old, new = held(plan, old_parts), held(plan, new_parts)
    old_key, new_key = _keys(old), _keys(new)
    disconnect, connect = old[~np.isin(old_key, new_key)], new[~np.isin(new_key, old_key)]
    return Transition(old_parts, new_parts, disconnect, connect, len(old) - len(disconnect))


def dark_time(kind: SwitchKind) -> int | None:
    """ps from the request of a change until its circuits carry light: settle + relock + control.

    All circuits of a change move at once. `control` is 0 where it is not stated; None where the others are not.
    """
    if not_stated(kind):
        return None
    return (kind.settle or 0) + (kind.relock or 0) + (kind.control or 0)


def not_stated(kind: SwitchKind) -> tuple[str, ...]:
    """Which of the times that a change takes the program does not say."""
    return tuple(name for name in ("settle", "relock") if getattr(kind, name) is None)


def _keys(rows: Int32) -> NDArray[np.int64]:
    wide = rows.astype(np.int64)
    return (wide[:, 0] << 40) | (wide[:, 1] << 20) | wide[:, 2]
