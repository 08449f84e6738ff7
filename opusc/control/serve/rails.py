"""The switches of a rail: which parts they hold, and one change after another.

A part that is asked for is lit on its rail; parts that share a port with it go first. Whoever asks for what is there
already is told at once, in turn. The order in which a rail is asked is the order in which it changes.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from opusc.plan.plan import Plan

__all__ = ["Emulated", "Rail", "SwitchFailure", "Switches"]


class SwitchFailure(Exception):
    """A change could not be made; the rail holds what it held. A sentence."""


class Switches(Protocol):
    """Those of one rail."""

    async def change(self, rail: int, parts: Sequence[int]) -> None:
        """Make these parts hold, in place of those that they exclude. Raises SwitchFailure."""


class Emulated:
    """Switches that take a time to change and hold whatever is asked (`delay` in seconds)."""

    def __init__(self, delay: float) -> None:
        self._delay = delay

    async def change(self, rail: int, parts: Sequence[int]) -> None:
        await asyncio.sleep(self._delay)


#: Told how a request ended: None, or why it failed.
Done = Callable[[str | None], Awaitable[None]]


@dataclass
class Rail:
    """One rail: what it holds, and what it is asked for, in order."""

    number: int
    plan: Plan
    switches: Switches
    changed: Callable[[int, float], None]  # told of each change: rail, seconds
    held: set[int] = field(default_factory=set)
    queue: "asyncio.Queue[tuple[tuple[int, ...], Done]]" = field(default_factory=asyncio.Queue)

    def ask(self, parts: tuple[int, ...], done: Done) -> None:
        """Queue a request; `done` is called in the order of the requests."""
        self.queue.put_nowait((parts, done))

    async def serve(self) -> None:
        """Work through the requests, for ever."""
        while True:
            parts, done = await self.queue.get()
            failure: str | None = None
            if not self.held.issuperset(parts):
                begin = time.monotonic()
                try:
                    await self.switches.change(self.number, parts)
                except SwitchFailure as error:
                    failure = str(error)
                else:
                    gone = set().union(*(self.plan.excluded_with[part] for part in parts)) - set(parts)
                    self.held = (self.held - gone) | set(parts)
                    self.changed(self.number, time.monotonic() - begin)
            await done(failure)
