"""How the NIC ports of a GPU may be used: which pairs of ports a link can join."""

from dataclasses import dataclass, replace

from opusc.model.entities import Fabric, Matrix, Optics, Peers, Side

__all__ = ["PortModel", "port_model"]


@dataclass(frozen=True, slots=True)
class PortModel:
    """The ports of one GPU on its rail.

    `independent` ports send to one neighbour and receive from another, so a link is one-way; otherwise a
    link uses its port both ways. `planes[p]` is the plane of port p: a link joins ports of one plane.
    `sides[p]` is set for bidi optics on a crossbar: a link joins side A to side B. `usable` are the ports that a
    phase may use, all when None: packed phases have ports of their own.
    """

    planes: tuple[int, ...]
    sides: tuple[Side, ...] | None
    independent: bool
    usable: tuple[int, ...] | None = None

    @property
    def count(self) -> int:
        """Ports of a GPU, usable or not: one more than the highest number of a port."""
        return len(self.planes)

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(range(self.count)) if self.usable is None else self.usable

    @property
    def free(self) -> bool:
        """Whether any port may be joined to any other."""
        return len({self.planes[p] for p in self.ports}) == 1 and self.sides is None

    def only(self, ports: tuple[int, ...]) -> "PortModel":
        """The same NIC, of which a phase may use these ports."""
        return replace(self, usable=ports)

    def cycle_slots(self) -> list[tuple[int, int]]:
        """Disjoint (out, in) ports, each of which can hold a link to a next and from a previous neighbour."""
        if self.independent:
            return [(p, p) for p in self.ports]
        slots: list[tuple[int, int]] = []
        for plane in dict.fromkeys(self.planes):
            ports = [p for p in self.ports if self.planes[p] == plane]
            if self.sides is None:
                slots += zip(ports[0::2], ports[1::2], strict=False)
            else:
                sides = self.sides
                out = [p for p in ports if sides[p] is Side.A]
                into = [p for p in ports if sides[p] is Side.B]
                slots += zip(out, into, strict=False)
        return sorted(slots)

    def match_slots(self) -> list[tuple[int, int]]:
        """Disjoint (lower end, upper end) ports, each of which can hold one link to one neighbour."""
        if self.sides is None:
            return [(p, p) for p in self.ports]
        return self.cycle_slots()


def port_model(fabric: Fabric) -> PortModel:
    nic = fabric.cluster.rail_nic
    ports = range(nic.ports)
    matrix = fabric.rails[0].switches[0].matrix
    sided = nic.optics is Optics.BIDI and matrix is Matrix.CROSSBAR
    default = tuple(Side.A if p % 2 == 0 else Side.B for p in ports)
    return PortModel(
        planes=tuple(p % fabric.planes for p in ports),
        sides=(fabric.cabling.sides or default) if sided else None,
        independent=nic.optics is Optics.DUPLEX and nic.peers is Peers.INDEPENDENT,
    )
