"""Who takes part: connections, communicators, and requests for one collective that wait for their participants."""

import asyncio
from dataclasses import dataclass, field

from opusc.control.serve.rails import Use
from opusc.control.serve.scopes import Scope

__all__ = ["Client", "Communicator", "Patience", "Waiting"]

_UNREAD = 256 << 10  # bytes of answers that a client may leave unread


@dataclass(frozen=True)
class Patience:
    """Seconds: for a request to be granted, for a rank that has gone to come back, and for a connection to register."""

    wait: float = 600
    rejoin: float = 30
    register: float = 30


class Client:
    """One connection."""

    def __init__(self, name: str, address: str, writer: asyncio.StreamWriter) -> None:
        self.name, self.address, self.writer = name, address, writer
        self.communicators: set[str] = set()
        self.open: set[tuple[str, int, int]] = set()  # requests that wait
        self.uses: set[Use] = set()  # parts that it was given, or waits for with all participants
        self.ended = False

    def send(self, data: bytes) -> str | None:
        """Send without waiting; why the client must go, if it does not read."""
        if self.ended or self.writer.is_closing():
            return None
        self.writer.write(data)
        if self.writer.transport.get_write_buffer_size() > _UNREAD:
            return "it does not read its answers"
        return None


@dataclass(eq=False)
class Waiting:
    """A request of some participants for one collective."""

    clients: dict[Client, None]
    timer: asyncio.TimerHandle


@dataclass(eq=False)
class Communicator:
    """A communicator with at least one connection."""

    name: str
    size: int
    clients: dict[Client, int | None] = field(default_factory=dict)  # and the rank of each, where hosts tell it
    members: tuple[int, ...] = ()  # where the line or a list says them
    scope: Scope | None = None  # None until it is complete
    refused: str | None = None  # why the plan has no circuits for it
    #: Who has asked, by (backend id, counter).
    asked: dict[tuple[int, int], Waiting] = field(default_factory=dict)
    timer: asyncio.TimerHandle | None = None  # runs while a rank is away
