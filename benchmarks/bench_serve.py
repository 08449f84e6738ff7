"""`opusc serve` under load: requests a second, beside a server that answers every line at once (the floor of asyncio).

    python benchmarks/bench_serve.py [TURNS]

Both run in this process with their clients, so that a request costs what client and server cost together. 128 ranks of
the photonic-rails example ask for both phases in turn, on emulated switches that take no time.
"""

import asyncio
import sys
import time
from pathlib import Path

import opusc
from opusc.control.serve.metrics import Uncounted
from opusc.control.serve.rails import Emulated
from opusc.control.serve.server import Server
from opusc.plan.ranks import grid_of, groups

PROGRAM = Path(__file__).parents[1] / "examples" / "photonic-rails" / "photonic-rails.opus"


async def clients(port: int, jobs: list[tuple[str, list[int], int]], turns: int, *, checkin: bool) -> float:
    """Seconds for all requests, after everybody has registered."""
    opened = []
    for name, ranks, backend in jobs:
        listed = "-".join(map(str, ranks))
        mine = [await asyncio.open_connection("127.0.0.1", port) for _ in ranks]
        for _, writer in mine:
            writer.write(f"COMM;{name},{listed},0\n".encode())
        for reader, _ in mine if checkin else ():
            await reader.readline()
        opened.append((name, mine, backend))

    async def run(name: str, mine: list, backend: int) -> None:
        for turn in range(turns):
            for _, writer in mine:
                writer.write(f"CONFIG_REQ;{name},{backend},{turn}\n".encode())
            for reader, _ in mine:
                await reader.readline()

    begin = time.perf_counter()
    await asyncio.gather(*(run(*one) for one in opened))
    spent = time.perf_counter() - begin
    for _, mine, _ in opened:
        for _, writer in mine:
            writer.close()
    return spent


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readline()
    while await reader.readline():
        writer.write(b"CONFIG_ACK;x\n")


async def measure(turns: int) -> None:
    plan = opusc.compile(PROGRAM)
    spec = {phase.name: phase.spec for phase in plan.phases}
    found = {n: groups(grid_of(plan.model.job, s.axes), s.axes).tolist() for n, s in spec.items()}
    jobs = [(f"dp_{at}", ranks, 5) for at, ranks in enumerate(found["dp"])]
    jobs += [(f"pp_{at}", ranks[1:3], 21) for at, ranks in enumerate(found["pp"])]
    count = sum(len(ranks) for _, ranks, _ in jobs) * turns
    floor = await asyncio.start_server(echo, "127.0.0.1", 0)
    least = await clients(floor.sockets[0].getsockname()[1], jobs, turns, checkin=False)
    floor.close()
    server = Server(plan, Emulated(0), Uncounted(), print, {})
    port = await server.start("127.0.0.1", 0)
    spent = await clients(port, jobs, turns, checkin=True)
    await server.stop()
    print(f"{'':24}{'requests':>10}{'s':>8}{'requests/s':>12}{'ratio':>8}")
    for name, seconds in (("answers at once", least), ("opusc serve", spent)):
        print(f"{name:24}{count:>10,}{seconds:>8.2f}{count / seconds:>12,.0f}{seconds / least:>8.2f}")


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
