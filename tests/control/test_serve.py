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
from opusc.control.serve.metrics import Counted, Uncounted
from opusc.control.serve.protocol import Checkin, ProtocolError, Request, parsed
from opusc.control.serve.rails import Emulated, SwitchFailure
from opusc.control.serve.scopes import ScopeError, Scopes
from opusc.control.serve.server import MOST_OPEN, Server
from opusc.plan.plan import Plan
from opusc.plan.ranks import grid_of, groups
from tests.control.emulators import scpi
from tests.control.test_push import wanted, written

ROOT = Path(__file__).parents[2]
RAILS = ROOT / "examples" / "photonic-rails" / "photonic-rails.opus"


@pytest.fixture(scope="module")
def plan() -> Plan:
    """128 ranks: tp 8 inside nodes, dp 4 and pp 4 on eight rails."""
    return opusc.compile(RAILS)


def members(plan: Plan, phase: str) -> list[list[int]]:
    spec = next(p.spec for p in plan.phases if p.name == phase)
    return [list(group) for group in groups(grid_of(plan.model.job, spec.axes), spec.axes).tolist()]


class Rank:
    """A client as the published shim is one."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.lines: list[str] = []

    async def __aenter__(self) -> "Rank":
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.writer.close()

    def send(self, text: str) -> None:
        self.writer.write(text.encode() + b"\n")

    async def next(self, seconds: float = 5) -> str:
        line = await asyncio.wait_for(self.reader.readline(), seconds)
        return line.decode().strip()

    async def silent(self, seconds: float = 0.1) -> bool:
        try:
            await self.next(seconds)
        except TimeoutError:
            return True
        return False


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

    async def change(self, rail: int, parts: Sequence[int]) -> None:
        await super().change(rail, parts)
        if self.failure is not None:
            raise SwitchFailure(self.failure)
        self.asked.append((rail, tuple(parts)))


def serving(
    plan: Plan, work: Callable[[Server, int], Awaitable[None]], switches: Recorded | None = None, **options: Any
) -> list[str]:
    """Run a server and a script against it; what it logged."""
    log: list[str] = []

    async def both() -> None:
        server = Server(
            plan, switches or Recorded(), options.get("metrics", Uncounted()), log.append, options.get("members", {})
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
        assert scope.rail == int(plan.gpu_of_rank[group[0]]) % 8
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


def test_parts_that_share_ports_replace_each_other(plan: Plan) -> None:
    async def work(server: Server, port: int) -> None:
        dp = await registered(port, "dp_0", members(plan, "dp")[0])
        pp = await registered(port, "pp_0", members(plan, "pp")[0])
        rail = server.rails[0]

        async def ask(ranks: Sequence[Rank], text: str) -> set[str]:
            for rank in ranks:
                rank.send(text)
            for rank in ranks:
                await rank.next()
            return {plan.parts[part].name for part in rail.held}

        assert await ask(dp, "CONFIG_REQ;dp_0,5,1") == {"dp[0]"}
        assert await ask(pp[1:3], "CONFIG_REQ;pp_0,21,2000001") == {"dp[0]", "pp[1-2]"}
        assert await ask(pp[:2], "CONFIG_REQ;pp_0,11,1000001") == {"pp[0-1]", "pp[1-2]"}
        assert await ask(dp, "CONFIG_REQ;dp_0,5,2") == {"dp[0]", "pp[1-2]"}
        assert all(not other.held for other in server.rails[1:])

    serving(plan, work)


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
    assert "no list of communicators has it" in log[0]


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
            b"COMM;other,0-1-9,0\n",
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

    assert len(serving(plan, work)) == 7


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


async def load(plan: Plan, port: int, turns: int) -> int:
    """Every rank of every rail, and `turns` rounds of both phases; each rank checks the order of its answers.

    Returns the number of acknowledgements.
    """
    jobs = [("dp", group) for group in members(plan, "dp")]
    jobs += [("pp", group[at : at + 2]) for group in members(plan, "pp") for at in range(len(group) - 1)]
    seen = 0

    async def run(name: str, ranks: Sequence[int], kind: str) -> int:
        local = int(plan.gpu_of_rank[ranks[0]]) % 8
        clients = await registered(port, name, ranks, local)
        told = 0
        for turn in range(turns):
            backend = 5 if kind == "dp" else 10 * int(plan.stage_of_rank[ranks[1]]) + 1
            for client in clients:
                client.send(f"CONFIG_REQ;{name},{backend},{turn}")
            for client in clients:
                assert await client.next(120) == f"CONFIG_ACK;{name}"
                told += 1
        for client in clients:
            assert not client.reader.at_eof()
            client.writer.close()
        return told

    for count in await asyncio.gather(*(run(f"{kind}_{at}", ranks, kind) for at, (kind, ranks) in enumerate(jobs))):
        seen += count
    return seen


def test_every_request_is_answered_once_and_in_order(plan: Plan) -> None:
    switches = Recorded()

    async def work(server: Server, port: int) -> None:
        told = await load(plan, port, 3)
        assert told == 3 * (32 * 4 + 96 * 2)
        assert server.communicators == {} or await settled(server)

    async def settled(server: Server) -> bool:
        await asyncio.sleep(0.2)
        return server.communicators == {} and server.clients == set()

    assert serving(plan, work, switches) == []
    assert len(switches.asked) > 40


@pytest.mark.slow
def test_2048_clients_and_10000_changes_in_flat_memory(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 8192:
        pytest.skip(f"the system allows {hard} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    generic = "switches.generic { matrix = crossbar, radix = 320,"
    big = opusc.compile(RAILS.read_text().replace("switches.polatis_6000n_192 {", generic), params={"dp": 32})
    switches = Recorded()
    sizes: list[int] = []

    async def work(server: Server, port: int) -> None:
        dp = members(big, "dp")  # 32 groups of 32 ranks
        pp = [group[at : at + 2] for group in members(big, "pp") for at in (0, 2)]
        clients = []
        for at, group in enumerate(dp):
            clients.append((f"dp_{at}", await registered(port, f"dp_{at}", group, at % 8), 5))
        for at, group in enumerate(pp):
            later = int(big.stage_of_rank[group[1]])
            clients.append((f"pp_{at}", await registered(port, f"pp_{at}", group, 0), 10 * later + 1))
        assert len(server.clients) >= 2048
        begun = len(switches.asked)
        turn = 0
        while len(switches.asked) - begun < 10_000:
            turn += 1
            for kind in ("dp", "pp"):
                some = [c for c in clients if c[0].startswith(kind)]
                for name, ranks, backend in some:
                    for rank in ranks:
                        rank.send(f"CONFIG_REQ;{name},{backend},{turn}")
                for name, ranks, _ in some:
                    for rank in ranks:
                        assert await rank.next(60) == f"CONFIG_ACK;{name}"
            if turn in (20, 40) or turn % 100 == 0:
                sizes.append(resident())
        sizes.append(resident())

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    log: list[str] = []

    async def both() -> None:
        server = Server(big, switches, Uncounted(), log.append, {})
        port = await server.start("127.0.0.1", 0)
        await work(server, port)
        await server.stop()

    asyncio.run(both())
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert log == []
    assert sizes[-1] - sizes[0] < 16 << 20, f"memory grows: {sizes}"


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
    assert "ended: no message: 'rubbish'" in err
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
