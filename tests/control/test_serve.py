"""`opusc serve`: ranks that speak the published protocol get their circuits, in order, whatever other clients do."""

import asyncio
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import opusc
from opusc.cli.main import main
from opusc.control.serve.circuits import Delta, RailCircuits
from opusc.control.serve.clients import Patience
from opusc.control.serve.hosts import Hosts, HostsError
from opusc.control.serve.metrics import Counted, Uncounted
from opusc.control.serve.protocol import Checkin, ProtocolError, Request, parsed
from opusc.control.serve.rails import Emulated, SwitchFailure
from opusc.control.serve.scopes import ScopeError, Scopes
from opusc.control.serve.server import MOST_OPEN, Server
from opusc.plan.plan import Plan
from tests.control.emulators import scpi
from tests.control.load import Job, Rank, members
from tests.control.test_push import wanted, written

ROOT = Path(__file__).parents[2]
RAILS = ROOT / "examples" / "photonic-rails" / "photonic-rails.opus"


@pytest.fixture(scope="module")
def plan() -> Plan:
    """128 ranks: tp 8 inside nodes, dp 4 and pp 4 on eight rails."""
    return opusc.compile(RAILS)


async def registered(port: int, name: str, ranks: Sequence[int], local: int = 0) -> list[Rank]:
    """One client for each rank of a communicator, all checked in."""
    found = [await Rank(port).__aenter__() for _ in ranks]
    listed = "-".join(map(str, ranks))
    for rank in found:
        rank.send(f"COMM;{name},{listed},{local}")
    assert {await rank.next() for rank in found} == {f"CHECKIN_ACK;{name},0"}
    return found


class Recorded(Emulated):
    """Emulated switches that remember what they were asked, and fail when told to."""

    def __init__(self, delay: float = 0.0) -> None:
        super().__init__(delay)
        self.asked: list[tuple[int, tuple[int, ...]]] = []
        self.failure: str | None = None

    async def change(self, delta: Delta) -> None:
        if self.failure is not None:
            raise SwitchFailure(self.failure)
        await super().change(delta)
        self.asked.append((delta.rail, delta.parts))


def serving(
    plan: Plan, work: Callable[[Server, int], Awaitable[None]], switches: Recorded | None = None, **options: Any
) -> list[str]:
    """Run a server and a script against it; what it logged."""
    log: list[str] = []

    async def both() -> None:
        server = Server(
            plan,
            switches or Recorded(),
            options.get("metrics", Uncounted()),
            log.append,
            options.get("members", {}),
            options.get("hosts"),
            options.get("patience", Patience()),
        )
        port = await server.start("127.0.0.1", 0)
        try:
            await asyncio.wait_for(work(server, port), 60)
        finally:
            await server.stop()

    asyncio.run(both())
    return log


# --- lines and scopes ----------------------------------------------------------------------------


def test_lines_of_the_protocol() -> None:
    assert parsed(b"COMM;dp_0,0-8-16-24,0") == Checkin("dp_0", 4, (0, 8, 16, 24), 0)
    assert parsed(b"COMM;dp_0,[0 8 16 24],0\r") == Checkin("dp_0", 4, (0, 8, 16, 24), 0)
    assert parsed(b"COMM;dp_0,4,0") == Checkin("dp_0", 4, (), 0)
    assert parsed(b"CONFIG_REQ;dp_0,5,17") == Request("dp_0", 5, 17)
    assert parsed(b"CONFIG_REQ;pp_0,21,2000001").pair == 2  # type: ignore[union-attr]
    assert parsed(b"CONFIG_REQ;dp_0,10,1").pair is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "line",
    [b"", b"GET / HTTP/1.1", b"COMM;", b"COMM;a,1", b"COMM;a,x,0", b"COMM;,1-2,0", b"CONFIG_REQ;a,-1,0", b"\xff;a,1,2"],
)
def test_rubbish_is_no_line(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        parsed(line)


def test_a_group_of_a_phase_is_its_scope(plan: Plan) -> None:
    scopes = Scopes(plan)
    names = {part.index: part.name for part in plan.parts}
    for group in members(plan, "dp"):
        scope = scopes.of(group)
        stage = int(plan.stage_of_rank[group[0]])
        assert [names[part] for part in scopes.parts(scope, None)] == [f"dp[{stage}]"]
        assert scope.rails == (int(plan.gpu_of_rank[group[0]]) % 8,)
    whole = members(plan, "pp")[3]
    scope = scopes.of(whole)
    found = [names[part] for pair in (1, 2, 3) for part in scopes.parts(scope, pair)]
    assert found == ["pp[0-1]", "pp[1-2]", "pp[2-3]"]
    assert [names[part] for part in scopes.parts(scopes.of(whole[1:3]), None)] == ["pp[1-2]"]
    assert scopes.of([0, 1, 2, 3, 4, 5, 6, 7]).inside


@pytest.mark.parametrize(
    ("ranks", "said"),
    [([0, 8, 17], "no group of any phase"), ([0, 8, 999], "no rank 999"), ([0, 0], "listed twice")],
)
def test_ranks_that_are_no_scope(plan: Plan, ranks: list[int], said: str) -> None:
    with pytest.raises(ScopeError, match=said):
        Scopes(plan).of(ranks)


def test_a_pipeline_says_which_pair(plan: Plan) -> None:
    scopes = Scopes(plan)
    scope = scopes.of(members(plan, "pp")[0])
    with pytest.raises(ScopeError, match="asks for a pair"):
        scopes.parts(scope, None)
    with pytest.raises(ScopeError, match="no circuits between stages 3, 4"):
        scopes.parts(scope, 4)


# --- a job ---------------------------------------------------------------------------------------


def test_a_change_waits_for_all_that_take_part(plan: Plan) -> None:
    switches = Recorded()

    async def work(server: Server, port: int) -> None:
        ranks = await registered(port, "dp_0", members(plan, "dp")[0])
        for rank in ranks[:-1]:
            rank.send("CONFIG_REQ;dp_0,5,1")
        assert all([await rank.silent() for rank in ranks])
        assert switches.asked == []
        ranks[-1].send("CONFIG_REQ;dp_0,5,1")
        assert {await rank.next() for rank in ranks} == {"CONFIG_ACK;dp_0"}
        assert len(switches.asked) == 1
        for rank in ranks:  # what holds already is acknowledged without a change
            rank.send("CONFIG_REQ;dp_0,5,2")
        assert {await rank.next() for rank in ranks} == {"CONFIG_ACK;dp_0"}
        assert len(switches.asked) == 1

    assert serving(plan, work, switches) == []


def test_two_ranks_suffice_for_a_pipeline_pair(plan: Plan) -> None:
    switches = Recorded()

    async def work(server: Server, port: int) -> None:
        ranks = await registered(port, "pp_0", members(plan, "pp")[0])
        for rank in ranks[1:3]:
            rank.send("CONFIG_REQ;pp_0,21,2000001")
        assert {await rank.next() for rank in ranks[1:3]} == {"CONFIG_ACK;pp_0"}
        assert await ranks[0].silent()
        assert [plan.parts[part].name for _, parts in switches.asked for part in parts] == ["pp[1-2]"]

    serving(plan, work, switches)


def on_rail(plan: Plan, switches: Emulated, rail: int) -> set[tuple[int, int, int]]:
    here = {switch.index for switch in plan.switches if rail in switch.rails}
    return {row for row in switches.held if row[0] in here}


def test_parts_that_share_ports_replace_each_other(plan: Plan) -> None:
    switches = Recorded()

    async def work(server: Server, port: int) -> None:
        job = Job(plan)
        await job.connect(port)

        def names() -> set[str]:
            for rail in server.rails:
                rows = RailCircuits(plan).rows(rail.number, rail.held)
                assert on_rail(plan, switches, rail.number) == set(map(tuple, rows.tolist()))
            assert len({frozenset(rail.held) for rail in server.rails}) == 1
            return {plan.parts[part].name for part in server.rails[0].held}

        await job.reduce()
        assert names() == {"dp[0]", "dp[1]", "dp[2]", "dp[3]"}
        await job.hand_on([2])
        assert names() == {"dp[0]", "pp[1-2]", "dp[3]"}
        await job.hand_on([1, 3])
        assert "pp[0-1]" in names()
        await job.reduce()
        assert {"dp[0]", "dp[1]", "dp[2]", "dp[3]"} <= names()
        await job.nothing_more()

    assert serving(plan, work, switches) == []


def test_circuits_stay_while_somebody_uses_them(plan: Plan) -> None:
    """The seeded fault of a controller that changes as soon as two ranks ask: it breaks the ring of the others."""
    switches = Recorded()

    async def work(server: Server, port: int) -> None:
        job = Job(plan)
        await job.connect(port)
        await job.reduce()
        before = len(switches.asked)
        first, *others = [at for at, group in enumerate(members(plan, "pp")) if group[0] % 8 == 0]
        pipelines = members(plan, "pp")
        for rank in pipelines[first][:2]:
            job.ranks[rank].send(f"CONFIG_REQ;pp_{first},11,1")
        assert await job.ranks[pipelines[first][0]].silent(), "three of four are still in their ring"
        assert len(switches.asked) == before
        for at in others[:-1]:
            for rank in pipelines[at][:2]:
                job.ranks[rank].send(f"CONFIG_REQ;pp_{at},11,1")
        job.ranks[pipelines[others[-1]][0]].writer.close()  # who is gone uses nothing
        job.ranks[pipelines[others[-1]][1]].writer.close()
        for at in [first, *others[:-1]]:
            for rank in pipelines[at][:2]:
                assert await job.ranks[rank].next() == f"CONFIG_ACK;pp_{at}"
        assert len(switches.asked) == before + 1

    serving(plan, work, switches)


def test_requests_that_are_not_in_each_others_way_do_not_wait(plan: Plan) -> None:
    async def work(server: Server, port: int) -> None:
        begun = time.monotonic()
        job = Job(plan)
        await job.connect(port)
        await job.reduce()  # 4 stages on 8 rails, 0.3 s each
        assert time.monotonic() - begun < 5

    serving(plan, work, Recorded(0.3))


@pytest.mark.parametrize("wrong", ["occupied", "not there"])
def test_an_emulated_switch_refuses_what_a_real_one_would(plan: Plan, wrong: str) -> None:
    circuits, switches = RailCircuits(plan), Emulated(0)
    ring, pair = (next(p.index for p in plan.parts if p.name == name) for name in ("dp[0]", "pp[0-1]"))
    asyncio.run(switches.change(circuits.delta(0, frozenset(), (ring,))))
    held = switches.held
    delta = (
        circuits.delta(0, frozenset(), (pair,))
        if wrong == "occupied"
        else circuits.delta(1, frozenset({ring}), (pair,))
    )
    with pytest.raises(SwitchFailure, match="has a circuit" if wrong == "occupied" else "no circuit from"):
        asyncio.run(switches.change(delta))
    assert switches.held == held, "it is refused as a whole"


def test_inside_a_domain_nothing_is_asked(plan: Plan) -> None:
    switches = Recorded()

    async def work(server: Server, port: int) -> None:
        ranks = [await Rank(port).__aenter__() for _ in range(8)]
        for rank in ranks:
            rank.send("COMM;tp_0,0-1-2-3-4-5-6-7,0")
        assert {await rank.next() for rank in ranks} == {"CHECKIN_ACK;tp_0,1"}
        ranks[0].send("CONFIG_REQ;tp_0,3,1")
        assert await ranks[0].next() == "CONFIG_ACK;tp_0"

    serving(plan, work, switches)
    assert switches.asked == []


def test_communicators_by_name(plan: Plan) -> None:
    group = members(plan, "dp")[5]

    async def work(server: Server, port: int) -> None:
        ranks = [await Rank(port).__aenter__() for _ in range(4)]
        for rank in ranks:
            rank.send("COMM;dp_5,4,5")
        assert {await rank.next() for rank in ranks} == {"CHECKIN_ACK;dp_5,0"}
        async with Rank(port) as unknown:
            unknown.send("COMM;dp_6,4,6")
            assert await unknown.next() == ""

    log = serving(plan, work, members={"dp_5": group})
    assert len(log) == 1
    assert "--hosts or --communicators would tell which" in log[0]


def test_hosts_tell_who_a_connection_is(plan: Plan) -> None:
    """As the published shim registers: only how many ranks there are, under a name that nobody knows before."""
    nodes = [f"127.0.1.{node + 1}" for node in range(16)]
    group = members(plan, "dp")[9]

    async def work(server: Server, port: int) -> None:
        async def client(rank: int) -> Rank:
            found = Rank(port)
            address = (nodes[rank // 8], 0)
            found.reader, found.writer = await asyncio.open_connection("127.0.0.1", port, local_addr=address)
            return found

        ranks = [await client(rank) for rank in group]
        for rank, number in zip(ranks, group, strict=True):
            rank.send(f"COMM;9F3C0A,{len(group)},{number % 8}")
        assert {await rank.next() for rank in ranks} == {"CHECKIN_ACK;9F3C0A,0"}
        for rank in ranks:
            rank.send("CONFIG_REQ;9F3C0A,5,1")
        assert {await rank.next() for rank in ranks} == {"CONFIG_ACK;9F3C0A"}
        assert [server.plan.parts[p].name for p in server.rails[group[0] % 8].held] == [
            f"dp[{plan.stage_of_rank[group[0]]}]"
        ]
        inside = [await client(rank) for rank in range(8)]
        for number, rank in enumerate(inside):
            rank.send(f"COMM;77AB,8,{number}")
        assert {await rank.next() for rank in inside} == {"CHECKIN_ACK;77AB,1"}
        async with Rank(port) as stranger:
            stranger.send("COMM;77AC,8,0")
            assert await stranger.next() == ""

    log = serving(plan, work, hosts=Hosts(plan, nodes))
    assert len(log) == 1
    assert "127.0.0.1 is no address of a node" in log[0]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["127.0.1.1"], "it lists 1 of the 16 nodes"),
        (["127.0.1.1 # first", "", "127.0.1.1"], "node 0 and node 1 have the same address"),
    ],
)
def test_hosts_that_do_not_fit(plan: Plan, lines: list[str], said: str) -> None:
    with pytest.raises(HostsError, match=said):
        Hosts(plan, lines)


# --- clients that misbehave ----------------------------------------------------------------------


def test_rubbish_long_lines_and_wrong_requests_end_only_their_own_connection(plan: Plan) -> None:
    async def work(server: Server, port: int) -> None:
        good = await registered(port, "dp_0", members(plan, "dp")[0])
        wrong = [
            b"hello\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"\x00" * 100 + b"\n",
            b"COMM;x," + b"1-" * 60_000 + b"1,0\n",
            b"CONFIG_REQ;dp_0,5,1\n",  # of a communicator that it is not in
            b"COMM;dp_0,0-8-16-24,0\n",  # which is complete
        ]
        for data in wrong:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(data)
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()
        for rank in good:
            rank.send("CONFIG_REQ;dp_0,5,1")
        assert {await rank.next() for rank in good} == {"CONFIG_ACK;dp_0"}
        assert len(server.clients) == 4

    assert len(serving(plan, work)) == 6


def test_a_client_that_dies_frees_its_place_and_can_come_back(plan: Plan) -> None:
    group = members(plan, "dp")[0]

    async def work(server: Server, port: int) -> None:
        ranks = await registered(port, "dp_0", group)
        for rank in ranks:
            if rank is not ranks[3]:
                rank.send("CONFIG_REQ;dp_0,5,1")
        await asyncio.sleep(0.05)
        ranks[2].writer.transport.abort()  # it has asked, and dies
        other = await registered(port, "dp_1", members(plan, "dp")[1], 1)
        for rank in other:
            rank.send("CONFIG_REQ;dp_1,5,1")
        assert {await rank.next() for rank in other} == {"CONFIG_ACK;dp_1"}, "others go on"
        ranks[3].send("CONFIG_REQ;dp_0,5,1")
        assert await ranks[0].silent(), "it takes its request with it"
        async with Rank(port) as again:
            again.send("COMM;dp_0,0-8-16-24,0")
            assert await again.next() == "CHECKIN_ACK;dp_0,0"
            again.send("CONFIG_REQ;dp_0,5,1")
            assert {await rank.next() for rank in (ranks[0], ranks[1], ranks[3], again)} == {"CONFIG_ACK;dp_0"}

    serving(plan, work)


def test_a_rank_that_does_not_come_back_ends_the_wait_of_its_communicator_only(plan: Plan) -> None:
    async def work(server: Server, port: int) -> None:
        ranks = await registered(port, "dp_0", members(plan, "dp")[0])
        other = await registered(port, "dp_1", members(plan, "dp")[1], 1)
        other[0].send("CONFIG_REQ;dp_1,5,1")
        for rank in ranks[:3]:
            rank.send("CONFIG_REQ;dp_0,5,1")
        ranks[3].writer.transport.abort()
        assert [await rank.next() for rank in ranks[:3]] == [""] * 3, "told by the end of the connection"
        for rank in other[1:]:
            rank.send("CONFIG_REQ;dp_1,5,1")
        assert {await rank.next() for rank in other} == {"CONFIG_ACK;dp_1"}

    log = serving(plan, work, patience=Patience(rejoin=0.2))
    assert len([line for line in log if "1 of the 4 ranks of dp_0 did not come back" in line]) == 3


def test_a_rank_that_stalls_ends_the_wait_of_its_communicator_only(plan: Plan) -> None:
    async def work(server: Server, port: int) -> None:
        ranks = await registered(port, "dp_0", members(plan, "dp")[0])
        other = await registered(port, "dp_1", members(plan, "dp")[1], 1)
        for rank in ranks[:3]:
            rank.send("CONFIG_REQ;dp_0,5,1")
        assert [await rank.next() for rank in ranks[:3]] == [""] * 3
        assert await ranks[3].silent(), "it has asked for nothing, and may"
        for rank in other:
            rank.send("CONFIG_REQ;dp_1,5,1")
        assert {await rank.next() for rank in other} == {"CONFIG_ACK;dp_1"}

    log = serving(plan, work, patience=Patience(wait=0.2))
    assert len([line for line in log if "only 3 ranks of dp_0 asked for collective 1 in 0.2 s" in line]) == 3


def test_who_waits_for_circuits_that_others_do_not_leave_is_told_whose_they_are(plan: Plan) -> None:
    async def work(server: Server, port: int) -> None:
        ring = await registered(port, "dp_0", members(plan, "dp")[0])
        for rank in ring:
            rank.send("CONFIG_REQ;dp_0,5,1")
        assert {await rank.next() for rank in ring} == {"CONFIG_ACK;dp_0"}
        two = await registered(port, "pp_0", members(plan, "pp")[0][:2])
        for rank in two:
            rank.send("CONFIG_REQ;pp_0,11,1")
        assert [await rank.next() for rank in two] == [""] * 2
        assert server.rails[0].pending == {}

    log = serving(plan, work, patience=Patience(wait=0.2))
    assert len([line for line in log if "pp_0 waited 0.2 s for circuits of dp_0" in line]) == 2


def test_a_participant_that_dies_before_the_circuits_are_there_takes_the_request_back(plan: Plan) -> None:
    async def work(server: Server, port: int) -> None:
        ring = await registered(port, "dp_0", members(plan, "dp")[0])
        for rank in ring:
            rank.send("CONFIG_REQ;dp_0,5,1")
        for rank in ring:
            await rank.next()
        one, two = await registered(port, "pp_0", members(plan, "pp")[0][:2])
        for rank in (one, two):
            rank.send("CONFIG_REQ;pp_0,11,1")
        await asyncio.sleep(0.05)
        two.writer.transport.abort()
        await asyncio.sleep(0.05)
        for rank in ring:
            rank.writer.close()  # the ring is free now, and half a pair does not get its ports
        assert await one.silent()
        async with Rank(port) as again:
            listed = "-".join(map(str, members(plan, "pp")[0][:2]))
            again.send(f"COMM;pp_0,{listed},0")
            assert await again.next() == "CHECKIN_ACK;pp_0,0"
            again.send("CONFIG_REQ;pp_0,11,1")
            assert {await rank.next() for rank in (one, again)} == {"CONFIG_ACK;pp_0"}

    serving(plan, work)


def test_a_communicator_without_circuits_may_register_and_not_ask(plan: Plan) -> None:
    async def work(server: Server, port: int) -> None:
        ranks = await registered(port, "setup", [0, 1, 9])
        ranks[0].send("CONFIG_REQ;setup,5,1")
        assert await ranks[0].next() == ""
        assert await ranks[1].silent()

    log = serving(plan, work)
    assert "communicator setup can have no circuits: ranks 0, 1, 9 are no group of any phase" in log[0]


def test_a_flood_ends_the_flooder(plan: Plan) -> None:
    async def work(server: Server, port: int) -> None:
        ranks = await registered(port, "dp_0", members(plan, "dp")[0])
        for counter in range(MOST_OPEN + 10):
            ranks[0].send(f"CONFIG_REQ;dp_0,5,{counter}")
        assert await asyncio.wait_for(ranks[0].reader.read(), 5) == b""
        assert all(not c.asked for c in server.communicators.values())
        other = await registered(port, "dp_1", members(plan, "dp")[1], 1)
        assert len(server.clients) == 7
        for rank in other:
            rank.send("CONFIG_REQ;dp_1,5,1")
        assert {await rank.next() for rank in other} == {"CONFIG_ACK;dp_1"}

    (line,) = serving(plan, work)
    assert f"it has {MOST_OPEN} requests that wait" in line


def test_a_client_that_reads_nothing_is_ended(plan: Plan) -> None:
    metrics = Counted()

    async def work(server: Server, port: int) -> None:
        stalled = socket.create_connection(("127.0.0.1", port))
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.setblocking(False)
        loop = asyncio.get_running_loop()
        others = [await Rank(port).__aenter__() for _ in range(7)]
        for rank in others:
            rank.send("COMM;tp_0,0-1-2-3-4-5-6-7,0")
        await loop.sock_sendall(stalled, b"COMM;tp_0,0-1-2-3-4-5-6-7,0\n")
        for rank in others:
            await rank.next()
        for _ in range(2000):  # answered at once, and never read
            try:
                await asyncio.wait_for(loop.sock_sendall(stalled, b"CONFIG_REQ;tp_0,3,1\n" * 400), 2)
            except (ConnectionError, TimeoutError):
                break
            if len(server.clients) == 7:
                break
        assert len(server.clients) == 7
        others[0].send("CONFIG_REQ;tp_0,3,1")
        assert await others[0].next() == "CONFIG_ACK;tp_0"
        stalled.close()

    log = serving(plan, work, metrics=metrics)
    assert any("does not read its answers" in line for line in log)


def test_a_fault_of_our_own_ends_those_that_need_the_change_and_not_the_rail(plan: Plan) -> None:
    class Faulty(Recorded):
        async def change(self, delta: Delta) -> None:
            if not self.asked:
                self.asked.append((delta.rail, ()))
                raise ZeroDivisionError("seeded")
            await super().change(delta)

    async def work(server: Server, port: int) -> None:
        for expected in ("", "CONFIG_ACK;dp_0"):
            ranks = await registered(port, "dp_0", members(plan, "dp")[0])
            for rank in ranks:
                rank.send("CONFIG_REQ;dp_0,5,1")
            assert {await rank.next() for rank in ranks} == {expected}
            await asyncio.sleep(0.05)

    log = serving(plan, work, Faulty())
    assert len([line for line in log if "OPUS764" in line and "ZeroDivisionError('seeded')" in line]) == 4


def test_a_switch_that_could_not_be_put_back_is_asked_again(plan: Plan) -> None:
    class Lost(Recorded):
        async def change(self, delta: Delta) -> None:
            self.asked.append((delta.rail, delta.parts))
            if len(self.asked) == 2:
                raise SwitchFailure("gone", lost=True)

    switches = Lost()

    async def work(server: Server, port: int) -> None:
        ring = await registered(port, "dp_0", members(plan, "dp")[0])
        for rank in ring:
            rank.send("CONFIG_REQ;dp_0,5,1")
        for rank in ring:
            assert await rank.next() == "CONFIG_ACK;dp_0"
        for rank in ring:
            rank.writer.close()
        two = await registered(port, "pp_0", members(plan, "pp")[0][:2])
        for rank in two:
            rank.send("CONFIG_REQ;pp_0,11,1")
        assert [await rank.next() for rank in two] == [""] * 2
        assert server.rails[0].held == set(), "nobody knows whether the ring is there"

    serving(plan, work, switches)


def test_connections_that_do_not_register_or_are_too_many_are_ended(plan: Plan) -> None:
    async def work(server: Server, port: int) -> None:
        good = await registered(port, "dp_0", members(plan, "dp")[0])
        idle = await Rank(port).__aenter__()
        half = await Rank(port).__aenter__()
        half.writer.write(b"COMM;dp_1,")  # and no more
        assert [await idle.next(), await half.next()] == ["", ""]
        server.most = 4
        async with Rank(port) as fifth:
            assert await fifth.next() == ""
        for rank in good:
            rank.send("CONFIG_REQ;dp_0,5,1")
        assert {await rank.next() for rank in good} == {"CONFIG_ACK;dp_0"}

    log = serving(plan, work, patience=Patience(register=0.3))
    assert [line.split(" ended: ")[1] for line in log] == [
        "OPUS762 it did not register in 0.3 s",
        "OPUS762 it did not register in 0.3 s",
        "OPUS762 there are 4 connections",
    ]


def test_a_change_that_fails_ends_those_that_need_it(plan: Plan) -> None:
    switches = Recorded()

    async def work(server: Server, port: int) -> None:
        ranks = await registered(port, "dp_0", members(plan, "dp")[0])
        switches.failure = "port 3 is dark"
        for rank in ranks:
            rank.send("CONFIG_REQ;dp_0,5,1")
        assert [await rank.next() for rank in ranks] == [""] * 4
        assert server.rails[0].held == set()
        switches.failure = None
        again = await registered(port, "dp_0", members(plan, "dp")[0])
        for rank in again:
            rank.send("CONFIG_REQ;dp_0,5,1")
        assert {await rank.next() for rank in again} == {"CONFIG_ACK;dp_0"}

    log = serving(plan, work, switches)
    assert len([line for line in log if "rail 0 could not be changed: port 3 is dark" in line]) == 4


def test_metrics_count_what_happens(plan: Plan) -> None:
    metrics = Counted()
    port = metrics.listen("127.0.0.1", 0)

    def scraped() -> str:
        return str(urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode())

    async def work(server: Server, at: int) -> None:
        ranks = await registered(at, "dp_3", members(plan, "dp")[3], 3)
        for rank in ranks:
            rank.send("CONFIG_REQ;dp_3,5,1")
        for rank in ranks:
            await rank.next()
        text = await asyncio.to_thread(scraped)
        for line in (
            "opusc_clients 4.0",
            "opusc_communicators 1.0",
            "opusc_requests_total 4.0",
            "opusc_acknowledgements_total 4.0",
            'opusc_change_seconds_count{rail="3"} 1.0',
        ):
            assert line in text

    serving(plan, work, metrics=metrics)


# --- load ----------------------------------------------------------------------------------------


def test_every_request_is_answered_once_and_in_order(plan: Plan) -> None:
    switches = Recorded()

    async def work(server: Server, port: int) -> None:
        job = Job(plan)
        await job.connect(port)
        for _ in range(6):
            await job.reduce()
            await job.hand_on([1, 3])
            await job.hand_on([2])
        await job.nothing_more()
        assert sum(job.told.values()) == 6 * (128 + 128 + 64)
        job.close()
        await asyncio.sleep(0.2)
        assert server.communicators == {}
        assert server.clients == set()
        assert not any(rail.users or rail.pending or rail.moving for rail in server.rails)

    assert serving(plan, work, switches) == []
    assert len(switches.asked) > 300


def resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.slow
def test_2048_clients_and_10000_changes_in_flat_memory() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 8192:
        pytest.skip(f"the system allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    generic = "switches.generic { matrix = crossbar, radix = 512,"
    big = opusc.compile(RAILS.read_text().replace("switches.polatis_6000n_192 {", generic), params={"dp": 64})
    assert big.world == 2048
    switches, sizes = Emulated(0), []
    made = [0]

    async def work(server: Server, port: int) -> None:
        job = Job(big)
        await job.connect(port)
        assert len(server.clients) == 2048
        turn = 0
        while made[0] < 10_000:
            await job.reduce()
            await job.hand_on([1, 3])
            turn += 1
            if turn == 20 or turn % 50 == 0:
                sizes.append(resident())
        await job.nothing_more()
        sizes.append(resident())
        assert sum(job.told.values()) == turn * 2 * 2048
        job.close()

    log: list[str] = []

    async def both() -> None:
        server = Server(big, switches, Uncounted(), log.append, {})
        for rail in server.rails:
            rail.changed = lambda number, seconds: made.__setitem__(0, made[0] + 1)
        port = await server.start("127.0.0.1", 0)
        await work(server, port)
        await server.stop()

    try:
        asyncio.run(both())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert log == []
    assert sizes[-1] - sizes[0] < 8 << 20, f"memory grows: {sizes}"


# --- the command ---------------------------------------------------------------------------------


def test_the_command_serves_until_it_is_told_to_end(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "opusc", "serve", str(RAILS), "--listen", "127.0.0.1:0", "--delay", "0"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert running.stdout is not None
    line = running.stdout.readline()
    assert line.startswith("serving      llama at 127.0.0.1:")
    port = int(line.split("127.0.0.1:")[1].split(":")[0])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as rank:
        rank.sendall(b"rubbish\n")
        assert rank.recv(100) == b""
    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=20)
    assert running.returncode == 0
    assert "ended: OPUS760 no message: 'rubbish'" in err
    assert "Traceback" not in err


def test_real_switches_are_changed(tmp_path: Path) -> None:
    with scpi() as switch:
        path = written(tmp_path, switch.port)
        small = opusc.compile(path)
        from opusc.backends.polatis import BACKEND
        from opusc.control.access import Access
        from opusc.control.device import Patience, Session
        from opusc.control.goals import station_of
        from opusc.control.opening import opener
        from opusc.control.places import Place
        from opusc.control.serve.real import Real

        station = station_of(small, small.switches[0], BACKEND)
        open_ = opener(small.switches[0], Place("scpi", "127.0.0.1", switch.port), Access(), 2000)
        real = Real(small, [station], {0: Session(open_, Patience(reply=2000))}, Patience(reply=2000))

        async def work(server: Server, port: int) -> None:
            every = [await registered(port, f"dp_{at}", group) for at, group in enumerate(members(small, "dp"))]
            for at, ranks in enumerate(every):
                for rank in ranks:
                    rank.send(f"CONFIG_REQ;dp_{at},5,1")
            for at, ranks in enumerate(every):
                assert {await rank.next() for rank in ranks} == {f"CONFIG_ACK;dp_{at}"}
            assert switch.pairs == wanted(path, "dp")

        serving(small, work, real)  # type: ignore[arg-type]
        real.close()


def test_more_ranks_than_open_files_are_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "opusc", "serve", str(RAILS), "--listen", "127.0.0.1:0", "--delay", "0"]

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, preexec_fn=few, timeout=60)
    assert done.returncode == 2
    assert "128 ranks need 192 open files, and the system allows 100" in done.stderr


def test_the_command_changes_a_switch_for_ranks_as_the_shim_registers_them(tmp_path: Path) -> None:
    """The whole way: addresses of nodes, numbers of ranks, requests, SCPI, acknowledgement."""
    (tmp_path / "nodes.txt").write_text("\n".join(f"127.0.1.{node + 1}" for node in range(8)))
    with scpi() as switch:
        path = written(tmp_path, switch.port)
        small = opusc.compile(path)
        command = [sys.executable, "-m", "opusc", "serve", str(path), "--listen", "127.0.0.1:0", "--apply"]
        command += ["--over", "scpi", "--hosts", str(tmp_path / "nodes.txt")]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        assert running.stdout is not None
        line = running.stdout.readline()
        assert "real switches" in line
        port = int(line.split("127.0.0.1:")[1].split(":")[0])
        clients = [
            socket.create_connection(("127.0.0.1", port), 20, (f"127.0.1.{rank + 1}", 0)) for rank in range(small.world)
        ]
        for verb, answer in (("COMM;{},2,0", "CHECKIN_ACK;{},0"), ("CONFIG_REQ;{},5,1", "CONFIG_ACK;{}")):
            for at, group in enumerate(members(small, "dp")):
                for rank in group:
                    clients[rank].sendall(f"{verb.format(at)}\n".encode())
            for at, group in enumerate(members(small, "dp")):
                for rank in group:
                    assert clients[rank].recv(100).decode() == f"{answer.format(at)}\n"
        assert switch.pairs == wanted(path, "dp")
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=20)
        for client in clients:
            client.close()
    assert (running.returncode, err) == (0, "")


def test_rails_that_share_a_chassis_leave_each_other_alone() -> None:
    from opusc.backends.polatis import BACKEND
    from opusc.control.device import Patience as Tries
    from opusc.control.goals import station_of
    from opusc.control.serve.real import Real

    small = opusc.compile(ROOT / "examples" / "quickstart" / "quickstart.opus")
    assert [switch.rails for switch in small.switches] == [(0, 1)]
    station, circuits = station_of(small, small.switches[0], BACKEND), RailCircuits(small)
    real = Real(small, [station], {}, Tries())
    for part in small.parts:
        steps = [real._step(circuits.delta(rail, frozenset(), (part.index,))) for rail in (0, 1)]
        first, second = (step.goals[0] for step in steps)
        assert first.wanted
        assert second.wanted
        assert not first.wanted & second.wanted
        assert len(first.wanted | second.wanted) == len(range(*small.rows(part.index).indices(len(small.circuits))))
        assert not (first.gone or frozenset()) & (second.wanted | (second.gone or frozenset()))
        ports = set(small.cabling.ingress[small.gpu_of_rank[::2]].ravel().tolist())  # of even GPUs: rail 0
        assert {small_in for small_in, _ in first.wanted} <= {station.names[port] for port in ports if port > 0}


def test_a_switch_that_is_not_served_is_never_acknowledged(tmp_path: Path) -> None:
    from opusc.control.device import Patience as Tries
    from opusc.control.serve.real import Real

    small = opusc.compile(written(tmp_path, 1))
    real = Real(small, [], {}, Tries())
    with pytest.raises(SwitchFailure, match="none of the switches that `--switch` names"):
        asyncio.run(real.change(RailCircuits(small).delta(0, frozenset(), (0,))))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--listen", "here"], "should be HOST:PORT"),
        (["--communicators", "missing.json"], "cannot read `missing.json`"),
    ],
)
def test_an_order_that_makes_no_sense(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["serve", str(RAILS), *arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert said in capsys.readouterr().err


def test_a_port_that_is_taken_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", str(RAILS), "--listen", f"127.0.0.1:{port}"]) == 2
    assert f"cannot listen at 127.0.0.1:{port}" in capsys.readouterr().err
    assert time.monotonic() > 0
