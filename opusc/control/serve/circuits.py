"""The circuits of a plan rail by rail, and the change from the parts that a rail holds to those that it should."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from opusc.plan.plan import Int32, Plan
from opusc.plan.ranks import rail_of
from opusc.plan.transitions import held, transition

__all__ = ["Delta", "RailCircuits"]


@dataclass(frozen=True, eq=False)
class Delta:
    """A change of one rail: `parts` come, `gone` go. Rows (switch, ingress, egress); disconnects are made first."""

    rail: int
    parts: tuple[int, ...]
    gone: tuple[int, ...]
    disconnect: Int32
    connect: Int32


class RailCircuits:
    """What a plan says of each of its rails."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.excluded = lru_cache(maxsize=4096)(self._excluded)
        self._cached = lru_cache(maxsize=4096)(self._delta)  # bounded: a job asks for the same changes again and again

    def _excluded(self, parts: tuple[int, ...]) -> frozenset[int]:
        """The parts that cannot hold beside these."""
        chosen = frozenset(parts)
        return frozenset().union(*(self.plan.excluded_with[part] for part in chosen)) - chosen

    def delta(self, rail: int, holds: frozenset[int], parts: tuple[int, ...]) -> Delta:
        """The smallest change of a rail that holds these parts; whatever can hold beside `parts` is not touched."""
        coming = tuple(part for part in parts if part not in holds)
        return self._cached(rail, tuple(sorted(holds & self.excluded(parts))), coming)

    def _delta(self, rail: int, gone: tuple[int, ...], parts: tuple[int, ...]) -> Delta:
        change = transition(self.plan, gone, parts)
        return Delta(rail, parts, gone, self.on(rail, change.disconnect), self.on(rail, change.connect))

    def rows(self, rail: int, parts: Iterable[int]) -> Int32:
        """The circuits of parts on a rail: rows (switch, ingress, egress)."""
        return self.on(rail, held(self.plan, parts))

    def on(self, rail: int, rows: Int32) -> Int32:
        """Those of some rows that are on a rail. A chassis may serve several: then the ingress port tells."""
        import numpy as np

        rails = [switch.rails for switch in self.plan.switches]
        mine = [rails[s] == (rail,) or (rail in rails[s] and self._rail_at[s, i] == rail) for s, i, _ in rows.tolist()]
        found: Int32 = rows[np.array(mine, dtype=bool)]
        return found

    @cached_property
    def _rail_at(self) -> dict[tuple[int, int], int]:
        """The rail of each port, by (switch, port)."""
        import numpy as np

        cabling, found = self.plan.cabling, {}
        rails = rail_of(self.plan.model.job, np.arange(len(cabling.switch), dtype=np.int32)).tolist()
        for side in (cabling.ingress, cabling.egress):
            for gpu, port in np.argwhere(side >= 0).tolist():
                found[int(cabling.switch[gpu, port]), int(side[gpu, port])] = rails[gpu]
        return found
