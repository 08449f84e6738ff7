"""From fibres at switch ports to moves: which cable is in whose place.

The unit is the cable of a NIC port. Where the two fibres of a duplex cable went different ways, each is a unit.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from opusc.control.cabling.names import NicPort
from opusc.control.cabling.observed import Plugged, Way
from opusc.model.entities import Matrix, Optics
from opusc.plan.plan import Plan
from opusc.source import Span

__all__ = ["Comparison", "Jack", "Move", "Twice", "Unit", "Wanted", "compare"]

#: A port of a switch: index and number.
Jack = tuple[int, int]

#: A cable ("cable"), or one of its fibres ("tx", "rx").
Unit = tuple[NicPort, str]

CABLE = "cable"


@dataclass(frozen=True)
class Wanted:
    """The cabling of the program: where each fibre belongs, and whose place each switch port is."""

    plan: Plan
    home: dict[NicPort, dict[Way, Jack]]
    owner: dict[Jack, tuple[NicPort, Way]]

    @classmethod
    def of(cls, plan: Plan) -> "Wanted":
        cabling = plan.cabling
        duplex = plan.model.cluster.rail_nic.optics is Optics.DUPLEX
        home: dict[NicPort, dict[Way, Jack]] = {}
        gpus, ports = (cabling.switch >= 0).nonzero()
        ends = (array[gpus, ports].tolist() for array in (cabling.switch, cabling.ingress, cabling.egress))
        for gpu, port, switch, ingress, egress in zip(gpus.tolist(), ports.tolist(), *ends, strict=True):
            if duplex:
                home[gpu, port] = {"tx": (switch, ingress), "rx": (switch, egress)}
            else:
                home[gpu, port] = {"both": (switch, ingress if ingress >= 0 else egress)}
        owner = {jack: (port, way) for port, fibres in home.items() for way, jack in fibres.items()}
        return cls(plan, home, owner)

    def first(self, port: NicPort) -> Jack:
        """The switch port by which the place of a NIC port is named."""
        return next(iter(self.home[port].values()))


@dataclass(frozen=True, slots=True)
class Move:
    """A unit is at `jack`, the place of `owner` (None: nobody's)."""

    unit: Unit
    jack: Jack
    owner: Unit | None
    span: Span


@dataclass(frozen=True, slots=True)
class Twice:
    """NIC ports and switch ports of which the observation says two things."""

    ports: tuple[NicPort, ...]
    jacks: tuple[Jack, ...]
    span: Span


@dataclass
class Comparison:
    moves: dict[Unit, Move] = field(default_factory=dict)
    reversed: dict[NicPort, Span] = field(default_factory=dict)
    missing: list[NicPort] = field(default_factory=list)
    dark: list[tuple[NicPort, Way]] = field(default_factory=list)  # one fibre of a cable that is there
    twice: list[Twice] = field(default_factory=list)
    right: int = 0


_Fibres = dict[Way, tuple[Jack, Span]]


def compare(wanted: Wanted, plugged: Iterable[Plugged]) -> Comparison:
    """Where every cable of the program was observed, as far as the observation does not contradict itself."""
    found = Comparison()
    fibres = _consistent(plugged, found)
    doubtful = {port for twice in found.twice for port in twice.ports}
    ways = {way for there in fibres.values() for way in there}
    for port, home in wanted.home.items():
        there = fibres.get(port)
        if port in doubtful:
            continue
        if not there:
            found.missing.append(port)
            continue
        found.dark += [(port, way) for way in home if way in ways and way not in there]
        _classify(wanted, port, there, found)
    return found


def _consistent(plugged: Iterable[Plugged], found: Comparison) -> dict[NicPort, _Fibres]:
    """Each fibre's switch port; fibres at two ports, and ports with two fibres, go to `found.twice`."""
    fibres: dict[NicPort, _Fibres] = {}
    places: dict[NicPort, dict[Jack, Span]] = {}
    several: dict[NicPort, Span] = {}
    inside: dict[Jack, tuple[NicPort, Way]] = {}
    clashes: dict[tuple[NicPort, NicPort], tuple[list[Jack], Span]] = {}
    for row in plugged:
        jack = row.switch, row.number
        mine = fibres.setdefault(row.port, {})
        places.setdefault(row.port, {}).setdefault(jack, row.span)
        if row.way in mine and mine[row.way][0] != jack:
            several.setdefault(row.port, row.span)
            continue
        mine.setdefault(row.way, (jack, row.span))
        other, _ = inside.setdefault(jack, (row.port, row.way))
        if other != row.port or inside[jack][1] != row.way:
            pair = (min(other, row.port), max(other, row.port))
            clashes.setdefault(pair, ([], row.span))[0].append(jack)
    found.twice += [Twice((port,), tuple(places[port]), span) for port, span in several.items()]
    for (a, b), (jacks, span) in clashes.items():
        if a not in several and b not in several:
            found.twice.append(Twice((a,) if a == b else (a, b), tuple(jacks), span))
    return fibres


def _classify(wanted: Wanted, port: NicPort, there: _Fibres, found: Comparison) -> None:
    span = next(iter(there.values()))[1]
    jacks = {way: jack for way, (jack, _) in there.items()}
    place = _place(wanted, jacks)
    if place is None:
        for way, (jack, where) in there.items():
            if wanted.home[port].get(way) != jack:
                owner = wanted.owner.get(jack)
                found.moves[port, way] = Move((port, way), jack, owner, where)
        return
    owner_port, crossed = place
    if crossed:
        found.reversed[port] = span
    if owner_port == port:
        found.right += not crossed
        return
    jack = jacks[next(iter(jacks))] if not crossed else jacks[list(jacks)[-1]]
    if owner_port is not None:
        jack = wanted.first(owner_port)
    found.moves[port, CABLE] = Move((port, CABLE), jack, None if owner_port is None else (owner_port, CABLE), span)


def _place(wanted: Wanted, jacks: dict[Way, Jack]) -> tuple[NicPort | None, bool] | None:
    """Whose place the fibres of a cable are in (None: nobody's), and whether crossed; None if in no one place."""
    owners = {way: wanted.owner.get(jack) for way, jack in jacks.items()}
    for crossed in (False, True):
        mates = {"tx": "rx", "rx": "tx"} if crossed else {}
        ports = {None if o is None or o[1] != mates.get(way, way) else o[0] for way, o in owners.items()}
        if None not in ports and len(ports) == 1:
            return ports.pop(), crossed
    if any(owner is not None for owner in owners.values()):
        return None
    return _free(wanted.plan, jacks)


def _free(plan: Plan, jacks: dict[Way, Jack]) -> tuple[None, bool] | None:
    """A place that belongs to nobody: on a crossbar, ingress and egress of one position."""
    switch, _ = next(iter(jacks.values()))
    kind = plan.switches[switch].kind
    if "both" in jacks or kind.matrix is Matrix.ANY:
        return None, False
    crossed = {(number <= kind.radix) != (way == "tx") for way, (_, number) in jacks.items()}
    positions = {(s, (number - 1) % kind.radix) for s, number in jacks.values()}
    return (None, crossed.pop()) if len(crossed) == len(positions) == 1 else None
