"""The server: clients, communicators, and requests that wait for their participants.

A communicator is complete when as many connections as it has ranks have registered. A connection that ends frees its
place, takes its own requests back, and leaves those of the others: when the rank comes back within `rejoin` seconds,
registers and asks again, they are complete. When it does not, or when a request has waited for `wait` seconds, those
who wait are told in the only way that the protocol has: their connections end.

Nobody can harm the others. A line that is too long or of no protocol, requests beyond `MOST_OPEN`, or answers that are
not read end the connection that they come from, with the reason in the log.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from opusc.control.serve.circuits import RailCircuits
from opusc.control.serve.clients import Client, Communicator, Patience, Waiting
from opusc.control.serve.hosts import Hosts, HostsError
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
from opusc.control.serve.rails import Rail, Switches, Use
from opusc.control.serve.scopes import Scope, ScopeError, Scopes
from opusc.plan.plan import Plan

__all__ = ["MOST_JOINED", "MOST_OPEN", "Server"]

MOST_OPEN = 256  # requests of one connection that wait; a rank has one for each of its communicators
MOST_JOINED = 1024  # communicators of one connection

#: Ends that are nobody's fault, and not worth a line.
_CLOSED, _STOPS = "it closed the connection", "the server stops"
_UNHURRIED = Patience()

Log = Callable[[str], None]


class _TooMuch(ScopeError):
    """A client goes beyond what one may have."""


#: Why a connection is ended: the code of the message, by the reason that the metrics count.
_CODES = {
    "protocol": "OPUS760",
    "scope": "OPUS761",
    "limit": "OPUS762",
    "waited": "OPUS763",
    "away": "OPUS763",
    "switch": "OPUS764",
}


class Server:
    """Serves a plan. `members` gives the ranks of communicators by name, where clients only say how many there are."""

    def __init__(
        self,
        plan: Plan,
        switches: Switches,
        metrics: Metrics,
        log: Log,
        members: Mapping[str, Sequence[int]],
        hosts: Hosts | None = None,
        patience: Patience = _UNHURRIED,
    ) -> None:
        self.plan, self.metrics, self.log = plan, metrics, log
        self.scopes, self.members, self.hosts, self.patience = Scopes(plan), members, hosts, patience
        circuits = RailCircuits(plan)
        numbers = range(len(plan.model.fabric.rails))
        self.rails = [Rail(number, circuits, switches, metrics.changed) for number in numbers]
        self.communicators: dict[str, Communicator] = {}
        self.clients: set[Client] = set()
        self.most = 2 * plan.world + 32  # connections: each rank may come back before its old one is known to be dead
        self._granting: dict[Use, tuple[Communicator, tuple[int, int], asyncio.TimerHandle]] = {}  # rails are asked
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, where 0 was asked for. Raises OSError."""
        self._server = await asyncio.start_server(self._connected, host, port, limit=LONGEST, backlog=4096)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """End every connection and the work on the rails."""
        if self._server is not None:
            self._server.close()
        for client in list(self.clients):
            self._end(client, _STOPS)
        await asyncio.gather(*(rail.stop() for rail in self.rails))

    # --- one client ----------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        client = Client(f"{peer[0]}:{peer[1]}", str(peer[0]), writer) if peer else Client("a client", "", writer)
        self.clients.add(client)
        self.metrics.clients(len(self.clients))
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self.patience.register, self._unregistered, client)
        reason, why = "", _CLOSED
        try:
            if len(self.clients) > self.most:
                raise _TooMuch(f"there are {self.most:,} connections")
            while not client.ended:
                line = await reader.readuntil(b"\n")
                if line.strip():
                    self._take(client, parsed(line[:-1]))
        except asyncio.IncompleteReadError:
            pass
        except ProtocolError as error:
            reason, why = "protocol", str(error)
        except _TooMuch as error:
            reason, why = "limit", str(error)
        except (ScopeError, HostsError) as error:
            reason, why = "scope", str(error)
        except asyncio.LimitOverrunError:
            reason, why = "protocol", f"a line is longer than {LONGEST:,} bytes"
        except (ConnectionError, TimeoutError) as error:
            why = f"the connection broke: {error}"
        finally:
            timer.cancel()
            if reason:
                self._refuse(client, reason, why)
            self._end(client, why)

    def _unregistered(self, client: Client) -> None:
        if not client.communicators:
            self._refuse(client, "limit", f"it did not register in {self.patience.register:g} s")

    def _end(self, client: Client, why: str) -> None:
        """Forget a client: its place in its communicators is free, and its requests are taken back."""
        if client.ended:
            return
        client.ended = True
        self.clients.discard(client)
        for name in sorted(client.communicators):
            self._left(client, self.communicators[name])
        for use in client.uses:
            if use in self._granting:
                self._take_back(client, use)
            else:
                use.leave(client)
        client.uses.clear()
        client.writer.close()
        self.metrics.clients(len(self.clients))
        self.metrics.communicators(len(self.communicators))
        if why not in (_CLOSED, _STOPS):
            self.log(f"{client.name} ended: {why}")

    def _left(self, client: Client, communicator: Communicator) -> None:
        """A client is gone: the others of its communicator wait for it for a while."""
        del communicator.clients[client]
        for key, waiting in list(communicator.asked.items()):
            waiting.clients.pop(client, None)
            if not waiting.clients:
                self._settle(communicator, key)
        if not communicator.clients:
            del self.communicators[communicator.name]
            if communicator.timer is not None:
                communicator.timer.cancel()
        else:
            self._await_return(communicator)

    def _await_return(self, communicator: Communicator) -> None:
        if communicator.timer is None and communicator.scope is not None:
            loop = asyncio.get_running_loop()
            communicator.timer = loop.call_later(self.patience.rejoin, self._not_back, communicator)

    def _take_back(self, client: Client, use: Use) -> None:
        """A participant is gone before its request was granted: the others wait for it to come back and ask again."""
        communicator, key, timer = self._granting.pop(use)
        timer.cancel()
        use.end()
        for other in communicator.clients:
            if use in other.uses:
                other.uses.discard(use)
                self._wait(communicator, key).clients[other] = None

    def _wait(self, communicator: Communicator, key: tuple[int, int]) -> Waiting:
        """Those who wait for a collective's other participants."""
        waiting = communicator.asked.get(key)
        if waiting is None:
            timer = asyncio.get_running_loop().call_later(self.patience.wait, self._too_long, communicator, key)
            waiting = communicator.asked[key] = Waiting({}, timer)
        return waiting

    def _not_back(self, communicator: Communicator) -> None:
        away = communicator.size - len(communicator.clients)
        communicator.timer = None
        for client in {client: None for waiting in communicator.asked.values() for client in waiting.clients}:
            self._refuse(
                client, "away", f"{away} of the {communicator.size} ranks of {communicator.name} did not come back"
            )

    def _settle(self, communicator: Communicator, key: tuple[int, int]) -> None:
        communicator.asked.pop(key).timer.cancel()

    def _refuse(self, client: Client, reason: str, why: str) -> None:
        if not client.ended:
            self.metrics.refused(reason)
            self._end(client, f"{_CODES[reason]} {why}")

    def _send(self, client: Client, data: bytes) -> None:
        if (why := client.send(data)) is not None:
            self._refuse(client, "limit", why)
            client.writer.transport.abort()

    # --- messages ------------------------------------------------------------------------------

    def _take(self, client: Client, message: Checkin | Request) -> None:
        if isinstance(message, Checkin):
            self._check_in(client, message)
        else:
            self._ask(client, message)

    def _check_in(self, client: Client, message: Checkin) -> None:
        known = self.communicators.get(message.communicator)
        if known is None:
            members = message.members or tuple(self.members.get(message.communicator, ()))
            if not members and self.hosts is None:
                raise ScopeError(
                    f"communicator {message.communicator} says only that it has {message.size} ranks: --hosts or "
                    "--communicators would tell which"
                )
            if members and len(members) != message.size:
                raise ScopeError(f"communicator {message.communicator} has {len(members)} ranks, not {message.size}")
            known = Communicator(message.communicator, message.size, members=members)
        elif known.size != message.size or (message.members and message.members != known.members):
            raise ScopeError(f"communicator {message.communicator} is registered with other ranks")
        if client in known.clients:
            raise ScopeError(f"it registers for communicator {message.communicator} twice")
        if len(known.clients) == known.size:
            raise ScopeError(f"communicator {message.communicator} is complete with {known.size} ranks")
        if len(client.communicators) >= MOST_JOINED:
            raise _TooMuch(f"it is in {MOST_JOINED:,} communicators")
        rank = self.hosts.rank(client.address, message.local_rank) if self.hosts and not known.members else None
        if rank is not None and rank in known.clients.values():
            raise ScopeError(f"rank {rank} is in communicator {message.communicator} already")
        self.communicators[known.name] = known
        known.clients[client] = rank
        client.communicators.add(known.name)
        self.metrics.communicators(len(self.communicators))
        if len(known.clients) == known.size:
            self._complete(known, client)

    def _complete(self, known: Communicator, last: Client) -> None:
        """All ranks have registered. Who has registered again after a break is told alone: the others know."""
        told = [last] if known.scope is not None else list(known.clients)
        if known.timer is not None:
            known.timer.cancel()
            known.timer = None
        members = known.members or tuple(rank for rank in known.clients.values() if rank is not None)
        try:
            known.scope, known.refused = self.scopes.of(members), None
        except ScopeError as error:  # one for setting up, say: it may register, and not ask
            if known.refused is None:
                self.log(f"OPUS761 communicator {known.name} can have no circuits: {error}")
            known.scope, known.refused = Scope(inside=False), str(error)
        answer = checked_in(known.name, inside=known.scope.inside)
        for one in told:
            self._send(one, answer)

    def _ask(self, client: Client, message: Request) -> None:
        communicator = self.communicators.get(message.communicator)
        if communicator is None or client not in communicator.clients:
            raise ScopeError(f"it asks for communicator {message.communicator}, for which it has not registered")
        scope = communicator.scope
        if scope is None:
            raise ScopeError(f"it asks before communicator {message.communicator} is complete")
        if communicator.refused is not None:
            raise ScopeError(communicator.refused)
        self.metrics.asked()
        if scope.inside:
            self._send(client, acknowledged(communicator.name))
            self.metrics.acknowledged(1)
            return
        parts = self.scopes.parts(scope, message.pair)
        key = (message.backend, message.counter)
        if (communicator.name, *key) in client.open:
            raise ScopeError(f"it asks twice for collective {message.counter} of communicator {communicator.name}")
        if len(client.open) >= MOST_OPEN:
            raise _TooMuch(f"it has {MOST_OPEN} requests that wait")
        client.open.add((communicator.name, *key))
        for use in [use for use in client.uses if use.parts != parts and use not in self._granting]:
            client.uses.discard(use)  # it has gone on, so that those circuits may go
            use.leave(client)
        waiting = self._wait(communicator, key)
        waiting.clients[client] = None
        if len(communicator.clients) < communicator.size:
            self._await_return(communicator)
        needed = 2 if message.pair is not None else communicator.size
        if len(waiting.clients) >= needed:
            self._settle(communicator, key)
            self._grant(communicator, key, scope, parts, list(waiting.clients), alone=message.pair is not None)

    def _too_long(self, communicator: Communicator, key: tuple[int, int]) -> None:
        waiting = communicator.asked.pop(key)
        seconds = f"{self.patience.wait:g} s"
        why = f"only {len(waiting.clients)} ranks of {communicator.name} asked for collective {key[1]} in {seconds}"
        for client in waiting.clients:
            self._refuse(client, "waited", why)

    def _grant(
        self,
        communicator: Communicator,
        key: tuple[int, int],
        scope: Scope,
        parts: tuple[int, ...],
        clients: Sequence[Client],
        *,
        alone: bool,
    ) -> None:
        """All participants have asked: ask the rails, and tell the participants when the circuits are there."""
        name, loop = communicator.name, asyncio.get_running_loop()

        def done(failure: str | None) -> None:
            if self._granting.pop(use, None) is None:
                return  # taken back meanwhile
            timer.cancel()
            for client in clients:
                client.open.discard((name, *key))
                if failure is None:
                    for old in [old for old in client.uses if old.name == name and old is not use]:
                        client.uses.discard(old)
                        old.leave(client)
                    if client.open:  # it asks for more already
                        client.uses.discard(use)
                        use.leave(client)
                    self._send(client, acknowledged(name))
                else:
                    client.uses.discard(use)
                    self._refuse(client, "switch", failure)
            if failure is None:
                self.metrics.acknowledged(len(clients))

        def blocked() -> None:
            users = {other.name for rail in use.rails for other in rail.in_the_way(use)}
            why = (
                f"{name} waited {self.patience.wait:g} s for circuits of {', '.join(sorted(users)) or 'a slow switch'}"
            )
            self._granting.pop(use, None)
            use.end()
            for client in clients:
                self._refuse(client, "waited", why)

        use = Use(name, parts, tuple(self.rails[rail] for rail in scope.rails), set(clients), alone, done)
        timer = loop.call_later(self.patience.wait, blocked)
        self._granting[use] = (communicator, key, timer)
        for client in clients:
            client.uses.add(use)
        use.begin()
