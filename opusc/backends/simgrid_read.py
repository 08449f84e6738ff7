"""What the files of target `simgrid` say, and the reader that finds it in them.

The reader is stricter than a comparison needs: a link has one route (one each way when light goes both ways), the
job's links are the platform's, and the changes lead from each configuration of the iteration to the next.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from opusc.backends.base import Unreadable

__all__ = ["JOB", "PLATFORM", "RUN", "Change", "Driver", "Held", "Iteration", "Rows", "Zone", "read"]

PLATFORM, JOB, RUN = "simgrid/platform.xml", "simgrid/job.json", "simgrid/run.py"

#: Columns: switch, ingress, egress, then GPU and NIC port of the sender and of the receiver. In statements the
#: switch is the number of its zone.
Rows: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Zone:
    """A switch in the platform: hosts as (GPU, port), links as Rows."""

    title: str
    hosts: Rows
    links: Rows
    rate: int  # bit/s
    latency: Fraction  # ns
    two_way: bool


@dataclass(frozen=True)
class Held:
    """A configuration of the job: the links that are up."""

    title: str
    links: Rows
    two_way: bool


@dataclass(frozen=True)
class Change:
    """From one configuration to another: links that go, links that come, and the time between (ps)."""

    title: str
    down: Rows
    up: Rows
    time: int


@dataclass(frozen=True)
class Iteration:
    """The configurations of one iteration by name, in order."""

    title: str
    names: tuple[str, ...]
    message: int  # bytes


@dataclass(frozen=True)
class Driver:
    """`run.py`, the same for every plan."""

    title: str
    text: bytes


def read(directory: Path) -> Iterator[object]:
    """The statements of a written directory: zones, configurations, changes, the iteration, the driver."""
    zones = _read_platform(directory / PLATFORM)
    yield from zones
    try:
        yield from _read_job(json.loads((directory / JOB).read_text(encoding="utf-8")), zones)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise Unreadable(f"{JOB}: {error}") from error
    yield Driver(RUN, (directory / RUN).read_bytes())


def _read_host(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"gpu(\d+)\.port(\d+)", text)
    if match is None:
        raise ValueError(f"`{text}` is no host")
    return int(match[1]), int(match[2])


def _read_link(text: str) -> tuple[str, int, int]:
    match = re.fullmatch(r"(.+)/(\d+)-(\d+)", text)
    if match is None:
        raise ValueError(f"`{text}` is no link")
    return match[1], int(match[2]), int(match[3])


def _table(rows: Sequence[Sequence[int]], width: int) -> Rows:
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)


def _read_platform(path: Path) -> list[Zone]:
    try:
        root = ElementTree.fromstring(path.read_bytes())
        return [_read_zone(zone, number) for number, zone in enumerate(root.findall("./zone/zone"))]
    except (ElementTree.ParseError, ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{PLATFORM}: {error}") from error


def _read_zone(zone: ElementTree.Element, number: int) -> Zone:
    """Links with the ends that the routes give them."""
    name = zone.attrib["id"]
    ends: dict[str, tuple[int, ...]] = {}
    back: dict[str, tuple[int, ...]] = {}
    for route in zone.findall("route"):
        [over] = route.findall("link_ctn")
        pair = (*_read_host(route.attrib["src"]), *_read_host(route.attrib["dst"]))
        way = back if over.get("direction") == "DOWN" else ends
        if over.attrib["id"] in way or route.get("symmetrical") != "NO":
            raise ValueError(f"two routes use link {over.attrib['id']}")
        way[over.attrib["id"]] = pair
    kinds = {(e.attrib["bandwidth"], e.attrib["latency"], e.get("sharing_policy")) for e in zone.findall("link")}
    if len(kinds) != 1:
        raise ValueError(f"the links of {name} are of {len(kinds)} kinds")
    [(bandwidth, latency, policy)] = kinds
    if not bandwidth.endswith("bps") or not latency.endswith("ns"):
        raise ValueError(f"{bandwidth} and {latency} are not in bps and ns")
    two_way = policy == "SPLITDUPLEX"
    if back != ({link: (*pair[2:], *pair[:2]) for link, pair in ends.items()} if two_way else {}):
        raise ValueError(f"the routes of {name} do not go both ways")
    rows = []
    for link in zone.findall("link"):
        switch, a, b = _read_link(link.attrib["id"])
        if switch != name:
            raise ValueError(f"link {link.attrib['id']} is in zone {name}")
        rows.append((number, a, b, *ends.pop(link.attrib["id"])))
    if ends:
        raise ValueError(f"no link is called {next(iter(ends))}")
    hosts = _table([_read_host(host.attrib["id"]) for host in zone.findall("host")], 2)
    return Zone(name, hosts, _table(rows, 7), int(bandwidth[:-3]), Fraction(latency[:-2]), two_way)


def _read_job(job: dict[str, Any], zones: Sequence[Zone]) -> Iterator[object]:
    """The job's statements. Raises ValueError when it names other links than the platform, or when its changes do
    not lead from each configuration of the iteration to the next."""
    numbers = {zone.title: at for at, zone in enumerate(zones)}
    rows = []
    for name, sender, receiver in job["links"]:
        switch, a, b = _read_link(name)
        rows.append((numbers[switch], a, b, *_read_host(sender), *_read_host(receiver)))
    links = _table(rows, 7)
    if not np.array_equal(links, np.concatenate([zone.links for zone in zones])):
        raise ValueError("`links` are not those of the platform")
    if {zone.two_way for zone in zones} != {job["two_way"]}:
        raise ValueError("`two_way` is not what the platform says")
    known = job["configurations"]
    for configuration in known:
        yield Held(configuration["name"], links[_indices(configuration["links"])], job["two_way"])
    moved: dict[tuple[int, int], tuple[set[int], set[int]]] = {}
    for change in job["changes"]:
        pair = change["before"], change["after"]
        moved[pair] = set(change["down"]), set(change["up"])
        title = " to ".join(known[at]["name"] for at in pair)
        yield Change(title, links[_indices(change["down"])], links[_indices(change["up"])], change["time_ps"])
    order = job["iteration"]
    for before, after in zip(order, [*order[1:], *order[:1]], strict=True):
        down, up = moved.get((before, after), (set(), set()))
        if set(known[before]["links"]) - down | up != set(known[after]["links"]):
            raise ValueError(f"the change from {known[before]['name']} does not lead to {known[after]['name']}")
    yield Iteration("iteration", tuple(known[at]["name"] for at in order), job["message_bytes"])


def _indices(found: list[int]) -> Rows:
    return np.array(found, dtype=np.int64)
