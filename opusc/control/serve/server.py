"""The server: clients, communicators, and requests that wait for their participants.

The protocol does not say which rank a connection is, so a participant is a connection: a communicator is complete when
as many as it has ranks have registered. A connection that ends frees its place, takes its own requests back, and leaves
those of the others: when the rank comes back, registers and asks again, they are complete.

Nobody can harm the others. A line that is too long or of no protocol, requests beyond `MOST_OPEN`, or answers that are
not read end the connection that they come from, with the reason in the log.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from opusc.control.serve.metrics import Metrics
from opusc.control.serve.protocol import (
    LONGEST,
    Checkin,
    ProtocolError,
    Request,
    acknowledged,
    checked_in,
    parsed,
)
from opusc.control.serve.rails import Rail, Switches
from opusc.control.serve.scopes import Scope, ScopeError, Scopes
from opusc.plan.plan import Plan

__all__ = ["MOST_OPEN", "Server"]

MOST_OPEN = 256  # requests of one connection that wait; a rank has one for each of its communicators
_UNREAD = 256 << 10  # bytes of answers that a client may leave unread

#: Ends that are nobody's fault.
_CLOSED, _STOPS = "it closed the connection", "the server stops"

Log = Callable[[str], None]


class _Client:
    """One connection."""

    def __init__(self, name: str, writer: asyncio.StreamWriter) -> None:
        self.name, self.writer = name, writer
        self.communicators: set[str] = set()
        self.open: set[tuple[str, int, int]] = set()  # requests that wait
        self.ended = False

    def send(self, data: bytes) -> str | None:
        """Send without waiting; why the client must go, if it does not read."""
        if self.ended or self.writer.is_closing():
            return None
        self.writer.write(data)
        if self.writer.transport.get_write_buffer_size() > _UNREAD:
            return "it does not read its answers"
        return None


@dataclass
class _Communicator:
    name: str
    size: int
    local_rank: int
    scope: Scope | None = None  # None until the members are known
    clients: dict[_Client, None] = field(default_factory=dict)
    complete: bool = False
    #: Who has asked, by (backend id, counter).
    asked: dict[tuple[int, int], dict[_Client, None]] = field(default_factory=dict)


class Server:
    """Serves a plan. `members` gives the ranks of communicators by name, where clients only say how many there are."""

    def __init__(
        self, plan: Plan, switches: Switches, metrics: Metrics, log: Log, members: Mapping[str, Sequence[int]]
    ) -> None:
        self.plan, self.metrics, self.log = plan, metrics, log
        self.scopes, self.members = Scopes(plan), members
        self.rails = [Rail(number, plan, switches, metrics.changed) for number in range(len(plan.model.fabric.rails))]
        self.communicators: dict[str, _Communicator] = {}
        self.clients: set[_Client] = set()
        self._workers: list[asyncio.Task[None]] = []
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, where 0 was asked for. Raises OSError."""
        self._server = await asyncio.start_server(self._connected, host, port, limit=LONGEST, backlog=4096)
        self._workers = [asyncio.create_task(rail.serve()) for rail in self.rails]
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """End every connection and the work on the rails."""
        if self._server is not None:
            self._server.close()
        for client in list(self.clients):
            self._end(client, _STOPS)
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    # --- one client ----------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        client = _Client(f"{peer[0]}:{peer[1]}" if peer else "a client", writer)
        self.clients.add(client)
        self.metrics.clients(len(self.clients))
        why = _CLOSED
        try:
            while not client.ended:
                line = await reader.readuntil(b"\n")
                if line.strip():
                    self._take(client, parsed(line[:-1]))
        except asyncio.IncompleteReadError:
            pass
        except (ProtocolError, ScopeError) as error:
            why = str(error)
            self.metrics.refused("protocol" if isinstance(error, ProtocolError) else "scope")
        except asyncio.LimitOverrunError:
            why = f"a line is longer than {LONGEST:,} bytes"
            self.metrics.refused("protocol")
        except (ConnectionError, TimeoutError) as error:
            why = f"the connection broke: {error}"
        finally:
            self._end(client, why)

    def _end(self, client: _Client, why: str) -> None:
        """Forget a client: its place in its communicators is free, and its requests are taken back."""
        if client.ended:
            return
        client.ended = True
        self.clients.discard(client)
        for name in client.communicators:
            communicator = self.communicators[name]
            communicator.clients.pop(client, None)
            for key in [key for key, asked in communicator.asked.items() if client in asked]:
                del communicator.asked[key][client]
                if not communicator.asked[key]:
                    del communicator.asked[key]
            if not communicator.clients:
                del self.communicators[name]
        client.writer.close()
        self.metrics.clients(len(self.clients))
        self.metrics.communicators(len(self.communicators))
        if why not in (_CLOSED, _STOPS):
            self.log(f"{client.name} ended: {why}")

    def _send(self, client: _Client, data: bytes) -> None:
        if (why := client.send(data)) is not None:
            self.metrics.refused("unread")
            self._end(client, why)
            client.writer.transport.abort()

    # --- messages ------------------------------------------------------------------------------

    def _take(self, client: _Client, message: Checkin | Request) -> None:
        if isinstance(message, Checkin):
            self._check_in(client, message)
        else:
            self._ask(client, message)

    def _check_in(self, client: _Client, message: Checkin) -> None:
        known = self.communicators.get(message.communicator)
        if known is None:
            members = message.members or tuple(self.members.get(message.communicator, ()))
            if not members:
                raise ScopeError(
                    f"communicator {message.communicator} says only that it has {message.size} ranks, and no list of "
                    "communicators has it"
                )
            if len(members) != message.size:
                raise ScopeError(f"communicator {message.communicator} has {len(members)} ranks, not {message.size}")
            known = _Communicator(message.communicator, message.size, message.local_rank, self.scopes.of(members))
            self.communicators[message.communicator] = known
            self.metrics.communicators(len(self.communicators))
        elif (known.size, known.local_rank) != (message.size, message.local_rank):
            raise ScopeError(f"communicator {message.communicator} is registered with other ranks")
        if client in known.clients:
            raise ScopeError(f"it registers for communicator {message.communicator} twice")
        if len(known.clients) == known.size:
            raise ScopeError(f"communicator {message.communicator} is complete with {known.size} ranks")
        known.clients[client] = None
        client.communicators.add(known.name)
        if len(known.clients) == known.size:
            assert known.scope is not None
            answer = checked_in(known.name, inside=known.scope.inside)
            # Who has registered again after a break is told alone: the others know.
            for one in [client] if known.complete else list(known.clients):
                self._send(one, answer)
            known.complete = True

    def _ask(self, client: _Client, message: Request) -> None:
        communicator = self.communicators.get(message.communicator)
        if communicator is None or client not in communicator.clients:
            raise ScopeError(f"it asks for communicator {message.communicator}, for which it has not registered")
        if not communicator.complete:
            raise ScopeError(f"it asks before communicator {message.communicator} is complete")
        scope = communicator.scope
        assert scope is not None
        self.metrics.asked()
        if scope.inside:
            self._send(client, acknowledged(communicator.name))
            self.metrics.acknowledged(1)
            return
        parts = self.scopes.parts(scope, message.pair)
        waiting = (communicator.name, message.backend, message.counter)
        if waiting in client.open:
            raise ScopeError(f"it asks twice for collective {message.counter} of communicator {communicator.name}")
        if len(client.open) >= MOST_OPEN:
            raise ScopeError(f"it has {MOST_OPEN} requests that wait")
        client.open.add(waiting)
        asked = communicator.asked.setdefault((message.backend, message.counter), {})
        asked[client] = None
        needed = 2 if message.pair is not None else communicator.size
        if len(asked) >= needed:
            self._grant(communicator, (message.backend, message.counter), scope.rail, parts)

    def _grant(self, communicator: _Communicator, key: tuple[int, int], rail: int, parts: tuple[int, ...]) -> None:
        """All participants have asked: queue the change of the rail, and tell them when it is made."""
        clients = list(communicator.asked.pop(key))

        async def done(failure: str | None) -> None:
            for client in clients:
                client.open.discard((communicator.name, *key))
                if client.ended:
                    continue
                if failure is None:
                    self._send(client, acknowledged(communicator.name))
                else:
                    self._end(client, f"rail {rail} could not be changed: {failure}")
            if failure is None:
                self.metrics.acknowledged(len(clients))
            else:
                self.metrics.refused("switch")

        self.rails[rail].ask(parts, done)
