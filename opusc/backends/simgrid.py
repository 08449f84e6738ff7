"""Target `simgrid`: a platform and a driver with which SimGrid plays one iteration of the job on its circuits.

`platform.xml` has a zone for each optical switch, a host for each NIC port that some circuit reaches, and a link for
each circuit: a NIC port is a host because two GPUs may be joined by several circuits, and SimGrid has one route
from a host to another. `job.json` has the configurations of an iteration, the changes between them and the time
that each takes; `run.py` plays them, and fails when a message meets a dark circuit.

Formats: SimGrid 3.32, platform version 4.1. Only circuits are played: traffic inside scale-up domains is not.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from opusc.backends.astra_matrices import decimal_text
from opusc.backends.astra_sim import LINK_LATENCY_NS
from opusc.backends.base import Options
from opusc.backends.ends import ends_of
from opusc.backends.simgrid_read import JOB, PLATFORM, RUN, Change, Driver, Held, Iteration, Rows, Zone, read
from opusc.diagnostics import Diagnostics
from opusc.model.entities import Optics, SwitchKind
from opusc.plan.configurations import Configuration, changes, walk
from opusc.plan.plan import Plan
from opusc.plan.transitions import held

__all__ = ["BACKEND", "MESSAGE_BYTES", "SimGrid"]

#: What every circuit carries in each direction in every configuration. Any size shows a dark circuit; this one
#: takes milliseconds at the rates of today's NICs. `run.py --bytes` takes another.
MESSAGE_BYTES = 64 << 20

_DRIVER = Path(__file__).with_name("simgrid_run.py")


@dataclass(frozen=True)
class SimGrid:
    name: str = "simgrid"
    summary: str = "platform, job and driver with which SimGrid plays an iteration and meets no dark circuit"

    def check(self, plan: Plan, options: Options, sink: Diagnostics) -> None:
        order = walk(plan)
        if not any(len(held(plan, c.parts)) for c in order):
            sink.error(
                "OPUS601",
                f"target `simgrid` has nothing to play: no phase of job `{plan.model.job.name}` uses a circuit",
                plan.model.job.span,
                notes=["traffic inside a scale-up domain does not pass the switches"],
            )
            return
        touched = sorted({s for _, _, _, turned in _changes(plan) for s in turned})
        for kind in dict.fromkeys(plan.switches[s].kind for s in touched):
            _check_times(plan, kind, sink)

    def write(self, plan: Plan, options: Options) -> Iterator[tuple[str, Iterable[bytes]]]:
        yield PLATFORM, _platform(plan)
        yield JOB, _job(plan)
        yield RUN, [_DRIVER.read_bytes()]

    def project(self, plan: Plan) -> Iterator[object]:
        links = _links(plan)
        used, zone = np.unique(links[:, 0], return_inverse=True)
        zoned = np.column_stack([zone, links[:, 1:]])
        two_way = _two_way(plan)
        rate = plan.model.cluster.rail_nic.rate
        for number, at in enumerate(used.tolist()):
            rows = zoned[zone == number]
            yield Zone(plan.switches[at].name, _hosts(rows), rows, rate, LINK_LATENCY_NS, two_way)
        for configuration in _configurations(plan):
            yield Held(configuration.name, zoned[_numbers(links, held(plan, configuration.parts))], two_way)
        for before, after, (down, up), turned in _changes(plan):
            moves = zoned[_numbers(links, down)], zoned[_numbers(links, up)]
            yield Change(f"{before.name} to {after.name}", *moves, _slowest(plan, turned))
        yield Iteration("iteration", tuple(c.name for c in walk(plan)), MESSAGE_BYTES)
        yield Driver(RUN, _DRIVER.read_bytes())

    def read(self, directory: Path) -> Iterator[object]:
        return read(directory)

    def faults(self, plan: Plan, statement: object) -> Iterator[str]:
        """No port sends, or hears, over two links that are up; nothing goes and comes in one change."""
        if isinstance(statement, Held):
            sides = [statement.links[:, 3:5], statement.links[:, 5:7]]
            for side in [np.concatenate(sides)] if statement.two_way else sides:
                ports, uses = np.unique(side, axis=0, return_counts=True)
                for gpu, port in ports[uses > 1].tolist()[:1]:
                    yield f"port {port} of GPU {gpu} has two circuits at once"
        if isinstance(statement, Change):
            both = set(map(tuple, statement.down.tolist())) & set(map(tuple, statement.up.tolist()))
            if both:
                yield f"{len(both)} circuits go and come in one change"

    def note(self, options: Options) -> str:
        return ""


def _check_times(plan: Plan, kind: SwitchKind, sink: Diagnostics) -> None:
    missing = [name for name in ("settle", "relock") if getattr(kind, name) is None]
    if missing:
        names = " and ".join(f"`{name}`" for name in missing)
        sink.error(
            "OPUS604",
            f"target `simgrid` needs {names} of switch `{kind.name}`",
            plan.model.fabric.at("switch"),
            f"`{kind.name}` does not say",
            notes=["links that come up stay dark for settle + relock + control"],
            help="state it, for example `switch = ... { reconfigure = { settle = 10 ms, relock = 0 ms } }`",
        )


# --- from the plan -------------------------------------------------------------------------------


def _two_way(plan: Plan) -> bool:
    return plan.model.cluster.rail_nic.optics is Optics.BIDI


def _links(plan: Plan) -> Rows:
    """Every circuit once, however many parts have it, sorted by switch, ingress and egress."""
    c, ends = plan.circuits, ends_of(plan)
    columns = (c.switch, c.ingress, c.egress, ends.sender, ends.sender_port, ends.receiver, ends.receiver_port)
    return np.unique(np.stack(columns, axis=1).astype(np.int64), axis=0)


def _key(rows: NDArray[Any]) -> Rows:
    wide = rows.astype(np.int64)
    key: Rows = (wide[:, 0] << 40) | (wide[:, 1] << 20) | wide[:, 2]
    return key


def _numbers(links: Rows, rows: NDArray[Any]) -> Rows:
    """Positions, in `links`, of circuits given as (switch, ingress, egress); ascending."""
    found: Rows = np.sort(np.searchsorted(_key(links), _key(rows)))
    return found


def _by_switch(links: Rows) -> Iterator[tuple[int, Rows]]:
    for at in np.unique(links[:, 0]).tolist():
        yield at, links[links[:, 0] == at]


def _hosts(rows: Rows) -> Rows:
    return np.unique(np.concatenate([rows[:, 3:5], rows[:, 5:7]]), axis=0)


def _configurations(plan: Plan) -> tuple[Configuration, ...]:
    return tuple({c.name: c for c in walk(plan)}.values())


_Moves = tuple[NDArray[Any], NDArray[Any]]


def _changes(plan: Plan) -> Iterator[tuple[Configuration, Configuration, _Moves, list[int]]]:
    """The changes of an iteration that move a circuit, each once, with the switches that they turn."""
    for before, after, change in changes(plan):
        turned = np.unique(np.concatenate([change.disconnect[:, 0], change.connect[:, 0]])).tolist()
        if turned:
            yield before, after, (change.disconnect, change.connect), turned


def _slowest(plan: Plan, turned: Sequence[int]) -> int:
    """ps until the last of these switches is done. `control` counts where it is stated."""
    kinds = [plan.switches[at].kind for at in turned]
    return max(sum(time or 0 for time in (kind.settle, kind.relock, kind.control)) for kind in kinds)


# --- writing -------------------------------------------------------------------------------------


def _host(gpu: int, port: int) -> str:
    return f"gpu{gpu}.port{port}"


def _link(switch: str, ingress: int, egress: int) -> str:
    return f"{switch}/{ingress}-{egress}"


def _platform(plan: Plan) -> Iterator[bytes]:
    rate, latency = plan.model.cluster.rail_nic.rate, decimal_text(LINK_LATENCY_NS)
    two_way = _two_way(plan)
    shared = ' sharing_policy="SPLITDUPLEX"' if two_way else ""
    yield b'<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    yield b'<platform version="4.1">\n<zone id="circuits" routing="Full">\n'
    for at, rows in _by_switch(_links(plan)):
        name = plan.switches[at].name
        yield f'<zone id={quoteattr(name)} routing="Full">\n'.encode()
        for gpu, port in _hosts(rows).tolist():
            yield f'<host id="{_host(gpu, port)}" speed="1Gf"/>\n'.encode()
        for _, a, b, *_ends in rows.tolist():
            named = quoteattr(_link(name, a, b))
            yield f'<link id={named} bandwidth="{rate}bps" latency="{latency}ns"{shared}/>\n'.encode()
        for _, a, b, gpu, port, peer, heard in rows.tolist():
            pair = (_host(gpu, port), _host(peer, heard))
            for direction in ("UP", "DOWN") if two_way else ("",):
                source, target = pair if direction != "DOWN" else pair[::-1]
                half = f' direction="{direction}"' if direction else ""
                yield (
                    f'<route src="{source}" dst="{target}" symmetrical="NO">'
                    f"<link_ctn id={quoteattr(_link(name, a, b))}{half}/></route>\n"
                ).encode()
        yield b"</zone>\n"
    yield b"</zone>\n</platform>\n"


def _job(plan: Plan) -> Iterator[bytes]:
    links = _links(plan)
    known = _configurations(plan)
    number = {c.name: at for at, c in enumerate(known)}
    head = {"message_bytes": MESSAGE_BYTES, "two_way": _two_way(plan)}
    yield (json.dumps(head)[:-1] + ',\n"iteration": ' + json.dumps([number[c.name] for c in walk(plan)])).encode()
    rows: list[object] = []
    for at, a, b, gpu, port, peer, heard in links.tolist():
        rows.append([_link(plan.switches[at].name, a, b), _host(gpu, port), _host(peer, heard)])
    yield from _lines("links", rows)
    held_by = ({"name": c.name, "links": _numbers(links, held(plan, c.parts)).tolist()} for c in known)
    yield from _lines("configurations", held_by)
    turns = (
        {
            "before": number[before.name],
            "after": number[after.name],
            "time_ps": _slowest(plan, turned),
            "down": _numbers(links, down).tolist(),
            "up": _numbers(links, up).tolist(),
        }
        for before, after, (down, up), turned in _changes(plan)
    )
    yield from _lines("changes", turns)
    yield b"\n}\n"


def _lines(name: str, items: Iterable[object]) -> Iterator[bytes]:
    """A list of the document, an item a line."""
    yield f',\n"{name}": ['.encode()
    for at, item in enumerate(items):
        yield ((",\n" if at else "\n") + json.dumps(item)).encode()
    yield b"\n]"


BACKEND = SimGrid()
