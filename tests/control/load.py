"""A job under load: every rank a connection, as the published shim has it, through its phases in lockstep.

The check is in the ranks: each knows which acknowledgement must come next, and gets no other.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from opusc.plan.plan import Plan
from opusc.plan.ranks import grid_of, groups

__all__ = ["Job", "Rank", "members"]


def members(plan: Plan, phase: str) -> list[list[int]]:
    """The groups of a phase, by rank."""
    spec = next(p.spec for p in plan.phases if p.name == phase)
    return [list(group) for group in groups(grid_of(plan.model.job, spec.axes), spec.axes).tolist()]


class Rank:
    """A client as the published shim is one."""

    def __init__(self, port: int) -> None:
        self.port = port

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


@dataclass
class Job:
    """All ranks of a plan with phases dp and pp. A communicator of dp is a group, one of pp a whole pipeline."""

    plan: Plan
    ranks: list[Rank] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)  # acknowledgements by communicator
    counter: int = 0

    async def connect(self, port: int) -> None:
        for _ in range(self.plan.world):
            self.ranks.append(await Rank(port).__aenter__())
        for phase in ("dp", "pp"):
            for at, group in enumerate(members(self.plan, phase)):
                listed = "-".join(map(str, group))
                for rank in group:
                    self.ranks[rank].send(f"COMM;{phase}_{at},{listed},{rank % 8}")
            for at, group in enumerate(members(self.plan, phase)):
                await self._expect(group, f"CHECKIN_ACK;{phase}_{at},0")

    async def _expect(self, ranks: Iterable[int], line: str) -> None:
        for rank in ranks:
            found = (await asyncio.wait_for(self.ranks[rank].reader.readline(), 60)).decode().strip()
            assert found == line, f"rank {rank} was told {found!r}, not {line!r}"

    def _ask(self, ranks: Iterable[int], name: str, backend: int) -> None:
        data = f"CONFIG_REQ;{name},{backend},{self.counter}\n".encode()
        for rank in ranks:
            self.ranks[rank].writer.write(data)

    async def reduce(self) -> None:
        """Every group of dp asks, and is told."""
        self.counter += 1
        asked = [(f"dp_{at}", group) for at, group in enumerate(members(self.plan, "dp"))]
        for name, group in asked:
            self._ask(group, name, 5)
        for name, group in asked:
            await self._expect(group, f"CONFIG_ACK;{name}")
            self.told[name] += len(group)

    async def hand_on(self, pairs: Sequence[int]) -> None:
        """The two ranks of these pairs (each by its later stage) of every pipeline ask, and are told."""
        self.counter += 1
        asked = [
            (f"pp_{at}", group[later - 1 : later + 1], later)
            for at, group in enumerate(members(self.plan, "pp"))
            for later in pairs
        ]
        for name, two, later in asked:
            self._ask(two, name, 10 * later + 1)
        for name, two, _ in asked:
            await self._expect(two, f"CONFIG_ACK;{name}")
            self.told[name] += 2

    async def nothing_more(self) -> None:
        """No rank has an answer that it did not ask for."""
        await asyncio.sleep(0.2)
        for rank in self.ranks:
            assert await rank.silent(0.001)

    def close(self) -> None:
        for rank in self.ranks:
            rank.writer.close()
