"""What fabrics are made of beside switches and NICs: what parts cost and draw, and what light loses in them.

None: not stated; whoever needs the number demands it.
"""

from dataclasses import dataclass

from opusc.model.entities import Entity

__all__ = ["Components", "Fibre", "Transceiver"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Transceiver(Entity):
    """The optics of a port: levels in thousandths of a dBm, of one lane."""

    name: str
    transmit_power: int | None = None
    sensitivity: int | None = None
    circulator_loss: int | None = None  # thousandths of a dB, one pass


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Fibre(Entity):
    """One cable from a NIC port to its switch. Losses in thousandths of a dB."""

    name: str
    length: int | None = None  # mm
    loss: int | None = None  # per km
    connectors: int = 2  # mated pairs outside patch panels
    connector_loss: int | None = None  # of a mated pair
    patch_panels: int | None = None  # None: as many as the cabling has jacks
    patch_panel_loss: int | None = None
    delay: int | None = None  # ps per km


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Components(Entity):
    """What packet-switched fabrics of the same bandwidth are made of; the switch itself holds no transceivers."""

    name: str
    transceiver_power: int | None = None  # mW
    transceiver_price: int | None = None  # US cents
    packet_switch_ports: int | None = None
    packet_switch_power: int | None = None  # mW
    packet_switch_price: int | None = None  # US cents
    packet_switch_latency: int | None = None  # ps, from a port to another
    both_ends: bool | None = None  # whether transceivers in packet switches are counted too
