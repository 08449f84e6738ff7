"""A switch as a program that drives it sees it: what it holds, how it changes, and what can go wrong on the way.

A device takes a change in one call: what goes, then what comes. It never resolves conflicts on its own account, and
never says that a change is there: whoever wants to know reads it back.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from opusc.backends.switch_files import Pairs

__all__ = [
    "Device",
    "Garbled",
    "Held",
    "NoEntry",
    "Pair",
    "Patience",
    "Refused",
    "Session",
    "Trouble",
    "Unreachable",
    "Untrusted",
]

#: A cross-connect by the names of its ports: ingress, egress.
Pair: TypeAlias = tuple[str, str]
Held: TypeAlias = frozenset[Pair]


class Trouble(Exception):
    """What went wrong with one switch: a phrase that follows `the switch ...` or stands after a colon."""


class Unreachable(Trouble):
    """No connection, or it broke, or no answer in time. After a change this leaves open whether it was made."""


class Untrusted(Trouble):
    """Its host key or certificate is not one that we trust."""


class NoEntry(Trouble):
    """It does not take our credentials."""


class Refused(Trouble):
    """It answered, and the answer is no."""


class Garbled(Trouble):
    """Its answer is not in the format of its protocol."""


class Device(Protocol):
    """One connection to one switch. Any method raises Trouble."""

    def read(self) -> Held:
        """Every cross-connect that the switch holds, whoever made it."""

    def change(self, disconnect: Pairs, connect: Pairs) -> None:
        """Ask for the disconnects, then for the connects. Returns when the switch has acknowledged."""

    def close(self) -> None:
        """End the connection; never raises."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in milliseconds, and how often to try.

    `reply`: for a connection and for each answer. `reconnect`: for a switch that was there before, when it is away.
    `settle`: until what it holds is what it acknowledged. `tries`: changes that may go unanswered in one step.
    """

    reply: int = 10_000
    reconnect: int = 60_000
    settle: int = 2_000
    tries: int = 3


class Session:
    """A switch that may be away for a while: connects when needed, and again when the connection breaks."""

    def __init__(self, opener: Callable[[], Device], patience: Patience) -> None:
        self._open, self._patience = opener, patience
        self._device: Device | None = None
        self._met = False  # it has answered before, so being away is worth waiting for

    def read(self) -> Held:
        """What the switch holds. Waits for a switch that has answered before. Raises Trouble."""
        deadline = time.monotonic() + (self._patience.reconnect / 1000 if self._met else 0)
        pause = 0.05
        while True:
            try:
                found = self._connected().read()
            except Unreachable:
                self.close()
                if time.monotonic() + pause > deadline:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, 2.0)
            except Trouble:
                self.close()
                raise
            else:
                self._met = True
                return found

    def change(self, disconnect: Pairs, connect: Pairs) -> None:
        """Ask once; a change is never repeated before somebody has read what the last one did. Raises Trouble."""
        try:
            self._connected().change(disconnect, connect)
        except Refused:
            raise
        except Trouble:
            self.close()
            raise

    def close(self) -> None:
        if self._device is not None:
            self._device.close()
            self._device = None

    def _connected(self) -> Device:
        if self._device is None:
            self._device = self._open()
        return self._device
