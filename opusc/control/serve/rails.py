"""The switches of a rail: which parts they hold, who uses them, and the changes from one to the next.

A part that is asked for is lit on its rail; parts that share a port with it go first, and only once nobody uses them
any more. Requests that are in each other's way are served in the order in which they came; others run side by side.
Whoever asks for what is there already is told at once.
"""

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from opusc.control.serve.circuits import Delta, RailCircuits

__all__ = ["Emulated", "Rail", "SwitchFailure", "Switches", "Use"]


class SwitchFailure(Exception):
    """A change could not be made: a sentence. The rail holds what it held, unless `lost`: then nobody knows."""

    def __init__(self, text: str, *, lost: bool = False) -> None:
        super().__init__(text)
        self.lost = lost


class Switches(Protocol):
    """Those of all rails."""

    async def change(self, delta: Delta) -> None:
        """Make a change on the switches of its rail. Raises SwitchFailure."""


class Emulated:
    """Switches that take `delay` seconds to change, and refuse what a real one would: a circuit on a port that has one,
    and the end of a circuit that is not there."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._circuit_at: dict[tuple[int, int], tuple[int, int]] = {}  # (switch, port): its circuit

    async def change(self, delta: Delta) -> None:
        await asyncio.sleep(self._delay)
        at = self._circuit_at
        disconnect, connect = delta.disconnect.tolist(), delta.connect.tolist()
        for switch, ingress, egress in disconnect:
            if at.get((switch, ingress)) != (ingress, egress):
                raise SwitchFailure(f"there is no circuit from {ingress} to {egress}")
        going = {(row[0], port) for row in disconnect for port in row[1:]}
        for switch, ingress, egress in connect:
            for port in (ingress, egress):
                if (switch, port) in at and (switch, port) not in going:
                    raise SwitchFailure(f"port {port} has a circuit")
        for end in going:
            del at[end]
        for switch, ingress, egress in connect:
            at[switch, ingress] = at[switch, egress] = (ingress, egress)

    @property
    def held(self) -> set[tuple[int, int, int]]:
        """Every circuit: (switch, ingress, egress)."""
        return {(switch, *circuit) for (switch, _), circuit in self._circuit_at.items()}


def _told(failure: str | None) -> None:
    """In place of what was called, which holds the use in turn: nothing is left for the collector of cycles."""


@dataclass(eq=False)
class Use:
    """The use of parts by a communicator, from its request until its clients have gone on to other circuits.

    `done` is told once how the request ended: None, or why it failed.
    """

    name: str
    parts: tuple[int, ...]
    rails: "tuple[Rail, ...]"
    clients: set[Hashable]
    alone: bool  # ends with the first client that leaves: the two ranks of a pipeline pair are one
    done: Callable[[str | None], None]
    waits_for: "set[int]" = field(default_factory=set)  # numbers of rails that have not answered
    failure: str | None = None
    over: bool = False

    def begin(self) -> None:
        """Ask all rails, in the same order as every other request."""
        self.waits_for = {rail.number for rail in self.rails}
        for rail in self.rails:
            rail.pending[self] = None
        for rail in self.rails:
            rail.proceed()

    def leave(self, client: Hashable) -> None:
        """A client needs these parts no more."""
        self.clients.discard(client)
        if self.alone or not self.clients:
            self.end()

    def end(self) -> None:
        """Nobody uses the parts: others may have their ports."""
        if self.over:
            return
        self.over = True
        for rail in self.rails:
            rail.forget(self)

    def answered(self, rail: int, failure: str | None) -> None:
        """A rail has the parts, or cannot have them."""
        self.waits_for.discard(rail)
        self.failure = self.failure or (failure and f"rail {rail} could not be changed: {failure}")
        if not self.waits_for:
            if self.failure is not None:
                self.end()
            done, self.done = self.done, _told
            done(self.failure)


@dataclass(eq=False)
class Rail:
    """One rail: what it holds, who uses that, and the requests that wait, in order."""

    number: int
    circuits: RailCircuits
    switches: Switches
    changed: Callable[[int, float], None]  # told of each change: rail, seconds
    held: set[int] = field(default_factory=set)
    users: dict[int, set[Use]] = field(default_factory=dict)  # by part
    pending: dict[Use, None] = field(default_factory=dict)
    moving: set[int] = field(default_factory=set)  # parts that come or go now
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def proceed(self) -> None:
        """Serve every request that nothing is in the way of."""
        reserved: set[int] = set()  # by requests that came earlier and wait
        for use in list(self.pending):
            if use not in self.pending:
                continue
            parts = use.parts
            free = reserved.isdisjoint(parts)
            if self.held.issuperset(parts) and self.moving.isdisjoint(parts) and (free or self._goes_on(use)):
                self._grant(use)
                continue
            excluded = self.circuits.excluded(parts)
            if free and self.moving.isdisjoint(parts) and self.moving.isdisjoint(excluded) and not self._used(excluded):
                self._start(use)
            else:
                reserved.update(parts, excluded)

    def _goes_on(self, use: Use) -> bool:
        """Whether its communicator has these parts, and needs them for one collective more."""
        return any(other.name == use.name for part in use.parts for other in self.users.get(part, ()))

    def in_the_way(self, use: Use) -> set[Use]:
        """Who uses parts that exclude those of a request that waits."""
        excluded = self.circuits.excluded(use.parts)
        return {other for part in excluded for other in self.users.get(part, ()) if other is not use}

    def _used(self, parts: Iterable[int]) -> bool:
        return any(self.users.get(part) for part in parts)

    def _grant(self, use: Use) -> None:
        del self.pending[use]
        for part in use.parts:
            self.users.setdefault(part, set()).add(use)
        use.answered(self.number, None)

    def _start(self, use: Use) -> None:
        delta = self.circuits.delta(self.number, frozenset(self.held), use.parts)
        self.moving |= {*delta.gone, *delta.parts}
        task = asyncio.create_task(self._change(use, delta))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _change(self, use: Use, delta: Delta) -> None:
        begun, failure = time.monotonic(), None
        try:
            await self.switches.change(delta)
        except SwitchFailure as error:
            failure = str(error)
            if error.lost:
                self.held -= {*delta.gone, *delta.parts}
        except Exception as error:  # a fault of opusc: the rail must not wait for ever, nor be taken to hold anything
            failure = f"opusc itself failed, {error!r}"
            self.held -= {*delta.gone, *delta.parts}
        else:
            self.held = (self.held - set(delta.gone)) | set(delta.parts)
            self.changed(self.number, time.monotonic() - begun)
        self.moving -= {*delta.gone, *delta.parts}
        if use in self.pending:
            if failure is None:
                self._grant(use)
            else:
                del self.pending[use]
                use.answered(self.number, failure)
        self.proceed()

    def forget(self, use: Use) -> None:
        """A use is over, whether it was granted or waits."""
        self.pending.pop(use, None)
        for part in use.parts:
            if part in self.users:
                self.users[part].discard(use)
                if not self.users[part]:
                    del self.users[part]
        self.proceed()

    async def stop(self) -> None:
        """End the changes that are under way where they stand."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
