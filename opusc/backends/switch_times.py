"""How long each change of a switch takes: `<target>/<switch>/changes.json`.

    {
      "changes": [
        {"before": "dp", "after": "pp", "disconnect": 16, "connect": 16, "kept": 0, "time": 25000000000},
        ...
      ],
      "control": 0, "not_stated": [], "relock": 0, "settle": 25000000000, "switch": "rails.rail[0]"
    }

Times are picoseconds, from the request until the circuits carry light: settle + relock + control, since all circuits
of a change move at once; 0 for a change that leaves the switch as it is. Where the program does not state settle or
relock, `not_stated` names them, and times are null.
"""

import json
from dataclasses import asdict, dataclass
from typing import TypeAlias

import numpy as np

from opusc.backends import canonical
from opusc.plan.configurations import Configuration
from opusc.plan.plan import Plan
from opusc.plan.transitions import Transition, dark_time, held, not_stated

__all__ = ["FILE", "Change", "Changes", "Steps", "changes_of", "read_changes", "text_of"]

FILE = "changes.json"

#: From which configuration to which, and how.
Steps: TypeAlias = tuple[tuple[Configuration, Configuration, Transition], ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a switch: from which configuration to which, how many circuits, and ps until they carry light."""

    before: str
    after: str
    disconnect: int
    connect: int
    kept: int
    time: int | None


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes of a switch in one iteration after another, and what its times are made of (ps)."""

    title: str
    switch: str
    settle: int | None
    relock: int | None
    control: int | None
    not_stated: tuple[str, ...]
    changes: tuple[Change, ...]


def changes_of(plan: Plan, steps: Steps) -> list[Changes]:
    """The changes `steps` as each switch of a plan sees them, without titles."""
    count = len(plan.switches)
    rows: list[list[Change]] = [[] for _ in range(count)]
    for before, after, change in steps:
        down, up, old = (
            np.bincount(circuits[:, 0], minlength=count).tolist()
            for circuits in (change.disconnect, change.connect, held(plan, before.parts))
        )
        for switch in plan.switches:
            at = switch.index
            time = dark_time(switch.kind) if down[at] or up[at] else 0
            rows[at].append(Change(before.name, after.name, down[at], up[at], old[at] - down[at], time))
    return [
        Changes("", s.name, s.kind.settle, s.kind.relock, s.kind.control, not_stated(s.kind), tuple(rows[s.index]))
        for s in plan.switches
    ]


def text_of(changes: Changes) -> str:
    document = asdict(changes)
    del document["title"]
    return b"".join(canonical.dump(document)).decode()


def read_changes(title: str, text: str) -> Changes:
    """Raises ValueError, KeyError or TypeError for anything else than what was written."""
    found = json.loads(text)
    rows = tuple(Change(**row) for row in found.pop("changes"))
    return Changes(title, changes=rows, not_stated=tuple(found.pop("not_stated")), **found)
