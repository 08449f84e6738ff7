"""What a fabric costs and draws: photonic rails against packet-switched rails and a packet-switched fat tree.

Two countings. `published` counts switch ports, with fractions of switches, as the cost model of arXiv 2602.12521
does. `whole` counts what can be bought: each optical switch of the plan, and packet switches of the stated port
count in non-blocking Clos fabrics. Power in milliwatts, money in US cents, all as Fractions: nothing is rounded.

An endpoint is a transceiver of a GPU: a packet fabric of the same bandwidth has a switch port for each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from opusc.diagnostics import Diagnostics
from opusc.model.components import Components
from opusc.model.entities import Entity, Fabric
from opusc.plan.plan import Plan, Switch
from opusc.source import Span

__all__ = [
    "Clos",
    "Comparison",
    "Count",
    "Figures",
    "Piece",
    "clos",
    "compare",
    "contributors",
    "figures",
    "published_fat_tree_ports",
    "published_rail_ports",
]


@dataclass(frozen=True, slots=True)
class Figures:
    """The component figures, each of them stated."""

    transceiver_power: int  # mW
    transceiver_price: int  # US cents
    switch_ports: int
    switch_power: int  # mW
    switch_price: int  # US cents
    both_ends: bool


@dataclass(frozen=True, slots=True)
class Count:
    """One fabric in one counting. `switches` is None where ports are counted, not switches; `hops` are the switches
    between two GPUs of a rail (of any two, in a fat tree), at most."""

    ports: int
    power: Fraction  # mW
    cost: Fraction  # US cents
    hops: int
    switches: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The three fabrics in the two countings; None where three tiers of the stated switch are not enough."""

    endpoints: int
    published: tuple[Count, Count, Count]  # photonic rails, packet rails, fat tree
    whole: tuple[Count, Count | None, Count | None]


@dataclass(frozen=True, slots=True)
class Clos:
    """A non-blocking Clos fabric: `wired` counts the switch ports that hold a cable, GPUs' cables included."""

    tiers: int
    switches: int
    wired: int

    @property
    def hops(self) -> int:
        """Switches between two endpoints, at most: up and down again."""
        return 2 * self.tiers - 1


def compare(plan: Plan, known: Figures) -> Comparison:
    """Both countings of the plan's fabric: `figures` has demanded the numbers of components and switches before.

    The whole cluster is counted, and the NIC on its rails alone.
    """
    cluster, rails = plan.model.cluster, len(plan.model.fabric.rails)
    nic = cluster.rail_nic
    endpoints = cluster.gpu_count * (nic.transceivers or nic.ports)
    per_rail = endpoints // rails
    return Comparison(
        endpoints=endpoints,
        published=(
            _photonic(plan.switches, endpoints, known, whole=False),
            _counted_ports(published_rail_ports(rails, per_rail), endpoints, known, hops=3),
            _counted_ports(published_fat_tree_ports(endpoints), endpoints, known, hops=5),
        ),
        whole=(
            _photonic(plan.switches, endpoints, known, whole=True),
            _whole_packet(clos(per_rail, known.switch_ports), rails, endpoints, known),
            _whole_packet(clos(endpoints, known.switch_ports), 1, endpoints, known),
        ),
    )


# --- photonic rails ------------------------------------------------------------------------------


def _photonic(switches: Sequence[Switch], endpoints: int, known: Figures, *, whole: bool) -> Count:
    """Optical switches by the position (published) or by the chassis, and the GPUs' transceivers: light passes an
    optical switch without one. Every circuit crosses one switch."""
    ports, power, cost = 0, Fraction(endpoints * known.transceiver_power), Fraction(endpoints * known.transceiver_price)
    for switch in switches:
        kind = switch.kind
        counted = kind.radix if whole else switch.positions_used
        ports += counted
        power += Fraction(_known(kind.power) * counted, kind.radix)
        cost += Fraction(_known(kind.price) * counted, kind.radix)
    return Count(ports, power, cost, 1, len(switches) if whole else None)


@dataclass(frozen=True, slots=True)
class Piece:
    """A kind of part of the photonic rails in whole chassis: how many, and what all of them draw and cost."""

    what: str
    count: int
    power: int  # mW
    cost: int  # US cents


def contributors(plan: Plan, known: Figures) -> dict[Literal["cost", "power"], tuple[Piece, ...]]:
    """The parts of the photonic rails in whole chassis, by cost and by power, the largest first."""
    nic = plan.model.cluster.rail_nic
    endpoints = plan.model.cluster.gpu_count * (nic.transceivers or nic.ports)
    optical = known.transceiver_power * endpoints, known.transceiver_price * endpoints
    pieces = [Piece(_many("transceiver", endpoints), endpoints, *optical)]
    kinds: dict[tuple[str, int, int], int] = {}
    for switch in plan.switches:
        kind = switch.kind
        key = kind.name, _known(kind.power), _known(kind.price)
        kinds[key] = kinds.get(key, 0) + 1
    for (name, power, price), count in kinds.items():
        pieces.append(Piece(f"{_many('switch', count)} `{name}`", count, power * count, price * count))
    return {
        "cost": tuple(sorted(pieces, key=lambda piece: -piece.cost)),
        "power": tuple(sorted(pieces, key=lambda piece: -piece.power)),
    }


def _many(what: str, count: int) -> str:
    return what if count == 1 else f"{what}es" if what.endswith("ch") else f"{what}s"


# --- the published counting ----------------------------------------------------------------------


def published_fat_tree_ports(endpoints: int) -> int:
    """Switch ports of a three-tier fat tree of switches with k ports, k^3 / 4 = endpoints, k rounded.

    `k * (k^2 + floor(k^2 / 4))`: k^2 edge and aggregation switches, k^2 / 4 core switches (artifact of arXiv
    2602.12521).
    """
    k = _nearest_root(4 * endpoints, 3)
    return k * (k**2 + k**2 // 4)


def published_rail_ports(rails: int, per_rail: int) -> int:
    """Switch ports of a rail fabric of switches with k ports, k^2 / 4 = endpoints of a rail, k rounded.

    Each rail has `2 * floor(per_rail / floor(k / 2))` switches in two tiers, and `floor(endpoints / k)` spines join
    the rails (artifact of arXiv 2602.12521, where servers stand for the endpoints of a rail).
    """
    k = _nearest_root(4 * per_rail, 2)
    leaves = 2 * (per_rail // (k // 2))
    spines = rails * per_rail // k
    return k * (leaves * rails + spines)


def _nearest_root(number: int, degree: Literal[2, 3]) -> int:
    """The square or cube root of `number`, rounded to the nearest integer; a half never meets a whole power."""
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
    return low + bool((2 * low + 1) ** degree < 2**degree * number)


def _counted_ports(ports: int, endpoints: int, known: Figures, *, hops: int) -> Count:
    transceivers = endpoints + ports * known.both_ends
    share = Fraction(ports, known.switch_ports)
    return Count(
        ports,
        known.switch_power * share + known.transceiver_power * transceivers,
        known.switch_price * share + known.transceiver_price * transceivers,
        hops,
    )


# --- whole packet switches -----------------------------------------------------------------------


def clos(endpoints: int, ports: int) -> Clos | None:
    """The smallest rearrangeably non-blocking Clos fabric of whole switches with so many ports; None beyond 3 tiers.

    With r ports and h = floor(r / 2):

    - 1 tier, while N <= r: one switch.
    - 2 tiers, while L = ceil(N / h) <= r: L leaves, each with d = ceil(N / L) endpoints and d uplinks. The d middle
      stages of L ports each are put together, floor(r / L) to a spine: ceil(d / floor(r / L)) spines.
    - 3 tiers, while P = ceil(N / h^2) <= r: P pods, each with e = ceil(ceil(N / P) / h) edge switches of
      d = ceil(ceil(N / P) / e) endpoints and d uplinks; a pod's d middle stages of e ports down and e up are put
      together, floor(r / 2e) to a switch; d * e core stages of P ports each, floor(r / P) to a switch.

    Full fabrics are the usual ones: 3 r / 2 switches for r^2 / 2 endpoints, 5 r^2 / 4 for r^3 / 4.
    """
    half = ports // 2
    if endpoints <= ports:
        return Clos(1, 1, endpoints)
    leaves = _up(endpoints, half)
    if leaves <= ports:
        down = _up(endpoints, leaves)
        return Clos(2, leaves + _up(down, ports // leaves), endpoints + 2 * leaves * down)
    pods = _up(endpoints, half * half)
    if pods <= ports:
        edges = _up(_up(endpoints, pods), half)
        down = _up(_up(endpoints, pods), edges)
        middle = _up(down, ports // (2 * edges))
        core = _up(down * edges, ports // pods)
        return Clos(3, pods * (edges + middle) + core, endpoints + 4 * pods * edges * down)
    return None


def _up(number: int, by: int) -> int:
    return -(-number // by)


def _whole_packet(made: Clos | None, times: int, endpoints: int, known: Figures) -> Count | None:
    """`times` Clos fabrics. Transceivers at both ends are bought for ports that hold a cable, not for empty ones."""
    if made is None:
        return None
    switches = made.switches * times
    transceivers = endpoints + made.wired * times * known.both_ends
    return Count(
        switches * known.switch_ports,
        Fraction(known.switch_power * switches + known.transceiver_power * transceivers),
        Fraction(known.switch_price * switches + known.transceiver_price * transceivers),
        made.hops,
        switches,
    )


# --- numbers that the program must state ---------------------------------------------------------


def figures(fabric: Fabric, sink: Diagnostics) -> Figures | None:
    """The component figures; None when one is missing, of the components or of a switch, and the sink says which."""
    # Switches written in one place differ at most in their addresses: each place is told once.
    places = {(rail.span, switch.name): switch for rail in fabric.rails for switch in rail.switches}
    stated = [
        _stated(switch, ("power", "price"), f"switch `{name}`", span, sink) for (span, name), switch in places.items()
    ]
    parts = fabric.components
    if parts is None:
        sink.error(
            "OPUS431",
            f"the cost model needs the `components` of fabric `{fabric.name}`",
            fabric.span,
            "does not say",
            notes=["they say what transceivers and packet switches draw and cost"],
            help="for example `components = components.h200_study`, with `use std.components`",
        )
        return None
    complete = _stated(parts, _PARTS, f"components `{parts.name}`", fabric.at("components"), sink)
    if not complete or not all(stated):
        return None
    return Figures(
        _known(parts.transceiver_power),
        _known(parts.transceiver_price),
        _known(parts.packet_switch_ports),
        _known(parts.packet_switch_power),
        _known(parts.packet_switch_price),
        bool(parts.both_ends),
    )


#: Attributes of the entity, each with an example of how the field is written.
_WRITTEN = {
    "transceiver_power": "transceiver_power = 10 W",
    "transceiver_price": "transceiver_price = 879 USD",
    "packet_switch_ports": "packet_switch_ports = 64",
    "packet_switch_power": "packet_switch_power = 2524 W",
    "packet_switch_price": "packet_switch_price = 37299 USD",
    "both_ends": "transceivers = both_ends",
    "power": "power = 75 W",
    "price": "price = 192 * 520 USD",
}
_PARTS = tuple(name for name in _WRITTEN if name in Components.__dataclass_fields__)


def _stated(entity: Entity, names: Sequence[str], of: str, span: Span, sink: Diagnostics) -> bool:
    missing = [_WRITTEN[name] for name in names if getattr(entity, name) is None]
    if missing:
        fields = [f"`{written.split(' = ')[0]}`" for written in missing]
        listed = " and ".join(filter(None, (", ".join(fields[:-1]), fields[-1])))
        examples = ", ".join(f"`{written}`" for written in missing)
        sink.error(
            "OPUS431",
            f"the cost model needs {listed} of {of}",
            span,
            "does not say",
            help=f"state what the data sheet says, in the form {examples}",
        )
    return not missing


def _known(value: int | None) -> int:
    assert value is not None, "demanded before"
    return value
