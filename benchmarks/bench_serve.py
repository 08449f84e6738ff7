"""`opusc serve` under load: 2,048 ranks on the loopback interface, 10,000 changes of rails, in two processes.

    python benchmarks/bench_serve.py [DP]

One process is the command itself, with emulated switches that take no time, so that the controller is what is measured.
The other is all ranks, each with a connection, in lockstep: every group of dp asks, then the pairs of two thirds of the
pipeline joins, and so on. Each rank checks that it gets the acknowledgement that must come next and no other. Memory is
that of the controller, which may not grow in the second half; the changes are counted by its own metrics. The
floor is a server that answers every line at once and waits for nobody, under the same ranks.
"""

import asyncio
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import opusc

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.control.load import Job

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "examples" / "photonic-rails" / "photonic-rails.opus"
CHANGES = 10_000
GROWTH = 8 << 20  # bytes


def program(dp: int) -> str:
    switch = f"switches.generic {{ matrix = crossbar, radix = {8 * dp},"
    return PROGRAM.read_text().replace("switches.polatis_6000n_192 {", switch)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def resident(process: int) -> int:
    """Bytes of memory of a process."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()


def counted(port: int, metric: str) -> int:
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
    return sum(int(float(value)) for value in re.findall(rf"^{metric}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The floor: every line is answered, and nothing is known."""
    while line := await reader.readline():
        verb, _, rest = line.decode().partition(";")
        name = rest.split(",")[0]
        writer.write(f"CHECKIN_ACK;{name},0\n".encode() if verb == "COMM" else f"CONFIG_ACK;{name}\n".encode())
    writer.close()


async def answer_at_once() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=4096)
    print(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


async def floor(job: Job, port: int, turns: int) -> float:
    """Acknowledgements a second."""
    await job.connect(port)
    begun = time.monotonic()
    for _ in range(turns):
        await job.reduce()
        await job.hand_on([1, 3])
    spent = time.monotonic() - begun
    job.close()
    return sum(job.told.values()) / spent


def started(command: list[str]) -> tuple[subprocess.Popen[str], int]:
    """A server, and the port that it says."""
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert server.stdout is not None
    said = re.search(r"127\.0\.0\.1:(\d+)", server.stdout.readline())
    assert said is not None
    return server, int(said[1])


async def load(job: Job, port: int, metrics: int, process: int) -> None:
    begun = time.monotonic()
    await job.connect(port)
    print(f"{len(job.ranks):,} ranks registered for two communicators each in {time.monotonic() - begun:.1f} s")
    begun, turns, changes, longest = time.monotonic(), 0, 0, 0.0
    memory: list[int] = []  # after each thousand changes
    while changes < CHANGES:
        turn = time.monotonic()
        await job.reduce()
        await job.hand_on([1, 3])
        longest, turns = max(longest, time.monotonic() - turn), turns + 1
        changes = counted(metrics, "opusc_change_seconds_count")
        if changes >= (len(memory) + 1) * CHANGES // 10:
            memory.append(resident(process))
    spent = time.monotonic() - begun
    await job.nothing_more()
    told = sum(job.told.values())
    assert told == counted(metrics, "opusc_acknowledgements_total") == turns * 2 * len(job.ranks)
    print(f"{changes:,} changes and {told:,} acknowledgements in {spent:.1f} s, none lost, none out of order")
    print(f"{told / spent:,.0f} acknowledgements/s; a turn of all ranks {spent / turns:.2f} s, at most {longest:.2f} s")
    print(f"memory after each {CHANGES // 10:,} changes, MiB: {', '.join(str(size >> 20) for size in memory)}")
    growth = memory[-1] - memory[len(memory) // 2]
    assert growth < GROWTH, "memory grows"
    job.close()


def main() -> None:
    if sys.argv[1:] == ["--floor"]:
        asyncio.run(answer_at_once())
        return
    dp = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "load.opus"
        path.write_text(program(dp))
        plan = opusc.compile(path, params={"dp": dp})
        server, port = started([sys.executable, __file__, "--floor"])
        print(f"{asyncio.run(floor(Job(plan), port, 10)):,.0f} acknowledgements/s of a server that answers at once")
        server.kill()
        server.wait()
        metrics = free_port()
        command = [sys.executable, "-m", "opusc", "serve", str(path), "-D", f"dp={dp}", "--listen", "127.0.0.1:0"]
        server, port = started([*command, "--delay", "0", "--metrics", f"127.0.0.1:{metrics}"])
        try:
            asyncio.run(load(Job(plan), port, metrics, server.pid))
        finally:
            server.terminate()
            server.wait(30)
        assert server.returncode == 0


if __name__ == "__main__":
    main()
