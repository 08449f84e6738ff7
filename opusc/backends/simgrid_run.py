#!/usr/bin/python3
"""Play one iteration of a job on its circuits with SimGrid: `/usr/bin/python3 run.py`, beside its two files.

Every host sends its message of a configuration over each of its circuits, all of them wait for each other, and a
controller then turns off the links that go, waits for the reconfiguration time, and turns on the links that come.
The iteration ends where it began, with the first configuration up. Exit code 1: a message met a dark circuit.

Needs the Python module `simgrid` (Debian: python3-simgrid), and nothing else.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from simgrid import (
    Actor,
    Barrier,
    Engine,
    Host,
    Link,
    Mailbox,
    NetworkFailureException,
    this_actor,
)

__all__ = ["main"]

# What SimGrid adds by default for TCP is taken out: a message takes latency + size / bandwidth, no more.
CONFIGURATION = (
    "network/bandwidth-factor:1",
    "network/latency-factor:1",
    "network/crosstraffic:0",
    "network/TCP-gamma:0",
    "surf/precision:1e-13",
    "maxmin/precision:1e-9",
)
PS_PER_S = 10**12


class Play:
    """The run: what each host does in each configuration, and what went wrong."""

    def __init__(self, job: dict[str, Any], options: argparse.Namespace) -> None:
        self.job, self.options = job, options
        self.order: list[int] = job["iteration"] * options.iterations
        self.changes = {(c["before"], c["after"]): c for c in job["changes"]}
        self.size: int = job["message_bytes"] if options.bytes is None else options.bytes
        self.dark: list[str] = []
        self.messages = 0
        self.done = 0
        # (configuration, host): mailboxes that it sends to and hears from, one for each direction of a circuit.
        self.sends: dict[tuple[int, str], list[str]] = defaultdict(list)
        self.hears: dict[tuple[int, str], list[str]] = defaultdict(list)
        hosts: dict[str, None] = {}
        for number, configuration in enumerate(job["configurations"]):
            for at in configuration["links"]:
                link, a, b = job["links"][at]
                for sender, receiver in ((a, b), (b, a)) if job["two_way"] else ((a, b),):
                    box = f"{link} {sender}"
                    self.sends[number, sender].append(box)
                    self.hears[number, receiver].append(box)
                    hosts[sender] = hosts[receiver] = None
        self.hosts = list(hosts)
        self.barrier = Barrier(len(self.hosts) + 1)

    def host(self, name: str) -> None:
        for configuration in self.order:
            self.barrier.wait()
            heard = [(box, Mailbox.by_name(box).get_async()) for box in self.hears[configuration, name]]
            # `get_async` gives the comm and the place of its payload, which must live as long.
            under_way = [(box, comm) for box, (comm, _place) in heard]
            for box in self.sends[configuration, name]:
                under_way.append((box, Mailbox.by_name(box).put_async(box, self.size)))
                self.messages += 1
            for box, comm in under_way:
                try:
                    comm.wait()
                except NetworkFailureException:
                    what = self.job["configurations"][configuration]["name"]
                    self.dark.append(f"{what}: circuit {box.partition(' ')[0]}, sent by {box.partition(' ')[2]}")
            self.barrier.wait()

    def controller(self) -> None:
        first = self.job["configurations"][self.order[0]]["links"]
        for at in set(range(len(self.job["links"]))).difference(first):
            self.turn(at, on=False)
        for before, after in zip(self.order, [*self.order[1:], self.order[0]], strict=True):
            self.barrier.wait()
            self.barrier.wait()
            if (before, after) in self.changes:
                self.change(self.changes[before, after])

    def change(self, change: dict[str, Any]) -> None:
        for at in change["down"]:
            self.turn(at, on=False)
        delay = change["time_ps"] if self.options.reconfigure is None else self.options.reconfigure
        this_actor.sleep_for(delay / PS_PER_S)
        for at in change["up"][1 if self.done == self.options.skip_up else 0 :]:
            self.turn(at, on=True)
        self.done += 1

    def turn(self, at: int, *, on: bool) -> None:
        name = self.job["links"][at][0]
        for half in (f"{name}_UP", f"{name}_DOWN") if self.job["two_way"] else (name,):
            link = Link.by_name(half)
            if on:
                link.turn_on()
            else:
                link.turn_off()


def whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is no whole number")
    return int(text)


def some(text: str) -> int:
    if whole(text) == 0:
        raise argparse.ArgumentTypeError("at least 1")
    return int(text)


def main() -> int:
    parser = argparse.ArgumentParser(description="Play one iteration of the job on its circuits with SimGrid.")
    parser.add_argument("--reconfigure", type=whole, metavar="PS", help="time of every change, not the plan's")
    parser.add_argument("--bytes", type=some, metavar="N", help="size of every message")
    parser.add_argument("--iterations", type=some, default=1, metavar="N")
    parser.add_argument(
        "--break",
        dest="skip_up",
        type=whole,
        metavar="K",
        help="in change K of the run, from 0, leave the first link dark that should come up: the run must fail",
    )
    options = parser.parse_args()
    here = Path(__file__).resolve().parent
    engine = Engine([sys.argv[0], "--log=root.thres:critical", *(f"--cfg={item}" for item in CONFIGURATION)])
    engine.load_platform(str(here / "platform.xml"))
    play = Play(json.loads((here / "job.json").read_text(encoding="utf-8")), options)
    for name in play.hosts:
        Actor.create(name, Host.by_name(name), play.host, name)
    Actor.create("controller", Host.by_name(play.hosts[0]), play.controller)
    engine.run()
    print(f"time_ps {round(engine.clock * PS_PER_S)}")
    print(f"changes {play.done}")
    print(f"messages {play.messages}")
    for line in sorted(set(play.dark)):
        print(f"dark: {line}", file=sys.stderr)
    return 1 if play.dark else 0


if __name__ == "__main__":
    sys.exit(main())
