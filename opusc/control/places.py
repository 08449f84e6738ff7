"""Where a switch answers and what it speaks there: from its driver, its address, and what the command line says.

An address is `HOST`, `HOST:PORT`, `[IPv6]:PORT`, or one of these after a scheme: `https://` (as without one),
`http://` (plain text: RESTCONF, REST and gNMI without TLS), `redis://` and `rediss://` (CONFIG_DB, the second over
TLS). Ports by default: NETCONF 830 (RFC 6242), gNMI 9339 (IANA), Polatis RESTCONF 8008 and SCPI 5025 and Redis 6379
as their servers have them, REST 443.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opusc.backends.registry import get
from opusc.backends.switch_files import SwitchTarget
from opusc.diagnostics import Diagnostics
from opusc.model.entities import Matrix
from opusc.plan.plan import Plan, Switch

__all__ = ["TRANSPORTS", "Place", "place_of", "places_of"]


@dataclass(frozen=True, slots=True)
class Transport:
    name: str
    driver: str
    port: int
    plain: tuple[str, ...] = ()  # schemes without TLS, of a transport that has it
    secure: tuple[str, ...] = ()


#: By name; the first of a driver is its default.
TRANSPORTS = {
    t.name: t
    for t in (
        Transport("netconf", "polatis", 830),
        Transport("restconf", "polatis", 8008, ("http",), ("https",)),
        Transport("scpi", "polatis", 5025),
        Transport("gnmi", "ocp_gnmi", 9339, ("http",), ("https",)),
        Transport("sonic", "sonic", 6379, ("redis",), ("rediss",)),
        Transport("rest", "calient", 443, ("http",), ("https",)),
    )
}


@dataclass(frozen=True, slots=True)
class Place:
    """`tls` is None where the transport has none of its own (SSH and SCPI)."""

    transport: str
    host: str
    port: int
    tls: bool | None = None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


_ADDRESS = re.compile(r"(?:([a-z]+)://)?(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+)(?::(\d{1,5}))?/?")


def place_of(address: str, transport: Transport, port: int | None = None) -> Place | None:
    """Where a switch answers; None when the address cannot be understood. `port` overrides the address' own."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return None
    scheme, host, own = match[1], match[2].strip("[]"), int(match[3]) if match[3] else None
    if scheme is not None and scheme not in transport.plain + transport.secure:
        return None
    number = port or own or transport.port
    if not 0 < number < 65536:
        return None
    # CONFIG_DB listens without TLS unless it is set up; everything else that has TLS has it unless told otherwise.
    tls = None if not transport.secure else scheme in transport.secure if scheme else transport.name != "sonic"
    return Place(transport.name, host, number, tls)


def places_of(
    plan: Plan, switches: Sequence[Switch], over: str | None, port: int | None, sink: Diagnostics, *, offline: bool
) -> dict[int, tuple[SwitchTarget, Place | None]]:
    """The target and the place of each switch, by its index. What is missing or impossible goes to the sink; a place
    may be missing only when nothing is asked there (`offline`)."""
    found: dict[int, tuple[SwitchTarget, Place | None]] = {}
    for switch in switches:
        transport = _transport(switch, over, sink)
        if transport is None:
            continue
        target = get(transport.driver.replace("_", "-"))
        assert isinstance(target, SwitchTarget)
        if not _speakable(switch, target, sink):
            continue
        kind = switch.kind
        place = place_of(kind.address, transport, port) if kind.address else None
        if place is None and kind.address:
            sink.error(
                "OPUS700",
                f"the address of {switch.name} cannot be understood: `{kind.address}`",
                kind.at("address"),
                f"no place that {transport.name} could reach",
                help='write a host or a host and a port, for example `address = "10.0.0.20:5025"`',
            )
        elif place is None and not offline:
            sink.error(
                "OPUS700",
                f"{switch.name} has no address",
                plan.model.fabric.at("switch"),
                "no `address` here",
                help='for example `address = "10.0.0.{20 + rail}"`; with --offline nothing is asked, and the '
                "switches are taken as empty",
            )
        else:
            found[switch.index] = (target, place)
    if not sink.has_errors:
        _one_each(plan, found, sink)
    return found


def _transport(switch: Switch, over: str | None, sink: Diagnostics) -> Transport | None:
    driver = switch.kind.driver
    if over is None:
        default = next((t for t in TRANSPORTS.values() if t.driver == driver), None)
        if default is None:
            sink.error(
                "OPUS700",
                f"the program does not say what {switch.name} speaks",
                switch.kind.span,
                "no `driver` here",
                help="state it, for example `driver = polatis`, or say so with --over",
            )
        return default
    transport = TRANSPORTS[over]
    if driver is not None and driver != transport.driver:
        own = [t.name for t in TRANSPORTS.values() if t.driver == driver]
        sink.error(
            "OPUS700",
            f"{switch.name} does not speak {over}: its driver is `{driver}`",
            switch.kind.at("driver"),
            f"speaks {' or '.join(own)}",
            help="leave out --over, or push its switches by name with --switch",
        )
        return None
    return transport


def _speakable(switch: Switch, target: SwitchTarget, sink: Diagnostics) -> bool:
    """Whether the format can name the ports of a switch: what `check` of the target says, for one switch."""
    if target.crossbar_only and switch.kind.matrix is not Matrix.CROSSBAR:
        sink.error(
            "OPUS602",
            f"{target.name} joins side A to side B; {switch.name} joins any two ports",
            switch.kind.at("matrix"),
        )
        return False
    if target.port_names(switch) is None:
        sink.error(
            "OPUS604",
            f"{target.name} needs the names of the ports of {switch.name}",
            switch.kind.span,
            "`ingress_name` and `egress_name` are missing",
            help='for example `ingress_name = "1.1.{position}"` and `egress_name = "2.1.{position}"`',
        )
        return False
    return True


def _one_each(plan: Plan, found: dict[int, tuple[SwitchTarget, Place | None]], sink: Diagnostics) -> None:
    """Two switches at one place would undo each other's circuits."""
    at: dict[tuple[str, int], int] = {}
    for index, (_, place) in sorted(found.items()):
        if place is None:
            continue
        first = at.setdefault((place.host, place.port), index)
        if first != index:
            sink.error(
                "OPUS701",
                f"{plan.switches[first].name} and {plan.switches[index].name} have one address: {place}",
                plan.switches[index].kind.at("address"),
                "the same for both",
                help="let it follow the rail, for example `address = \"10.0.0.{20 + rail}\"`; when one chassis serves "
                "several rails, say so in the cabling with `share`",
            )
            return
