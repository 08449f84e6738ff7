"""Places and cables in words, as someone in front of a switch reads them."""

from collections.abc import Sequence

from opusc.control.cabling.moves import CABLE, Jack, Unit, Wanted
from opusc.control.cabling.names import Names, NicPort
from opusc.model.entities import Matrix, Optics

__all__ = ["Words", "listed"]

_MOST = 8  # cables that a finding lists one by one
_FIBRE = {"tx": "transmit fibre", "rx": "receive fibre", "both": "fibre"}


class Words:
    """The vocabulary of one plan."""

    def __init__(self, names: Names, wanted: Wanted) -> None:
        self.names, self.wanted = names, wanted
        cluster = names.plan.model.cluster
        self._jacks = {(c.node * cluster.gpus_per_node + c.gpu, c.port): c.jacks
                       for c in names.plan.model.fabric.cabling.cables if c.jacks}  # fmt: skip
        self.duplex = names.plan.model.cluster.rail_nic.optics is Optics.DUPLEX

    def switch(self, jack: Jack) -> str:
        return self.names.plan.switches[jack[0]].name

    def position(self, jack: Jack) -> int:
        return self.names.position(*jack)

    def place(self, jack: Jack) -> str:
        """`position 11 (11/43)`: with the labels of its ports where they say more than the number."""
        position = self.position(jack)
        labels = self._labels(jack)
        return f"position {position}" + ("" if labels == [str(position)] else f" ({'/'.join(labels)})")

    def _labels(self, jack: Jack) -> list[str]:
        switch, number = jack
        kind = self.names.plan.switches[switch].kind
        numbers = [number]
        if self.duplex and kind.matrix is Matrix.CROSSBAR:
            numbers = [self.position(jack), kind.radix + self.position(jack)]
        elif self.duplex and (owner := self.wanted.owner.get(jack)):
            numbers = [n for _, n in self.wanted.home[owner[0]].values()]
        return [self.names.label(switch, n) for n in numbers]

    def port(self, jack: Jack) -> str:
        """One port of a switch by its label."""
        return f"port {self.names.label(*jack)}"

    def spot(self, unit: Unit, jack: Jack) -> str:
        """Where a unit is: a place for a cable, a port for a fibre."""
        return self.place(jack) if unit[1] == CABLE else self.port(jack)

    def home(self, unit: Unit) -> Jack:
        port, way = unit
        return self.wanted.first(port) if way == CABLE else self.wanted.home[port][way]

    def nic(self, port: NicPort, *, gpu: bool = False) -> str:
        return self.names.nic_port(port, gpu=gpu)

    def unit(self, unit: Unit) -> str:
        port, way = unit
        return self.nic(port) if way == CABLE else f"the {_FIBRE[way]} of {self.nic(port)}"

    def way(self, port: NicPort) -> tuple[str, ...]:
        """The patch panels that the cable of a NIC port passes, as a fact; none when it goes straight."""
        jacks = self._jacks.get(port)
        return (f"{self.nic(port)} goes through {listed(jacks)}",) if jacks else ()

    def rail(self, jack: Jack, port: NicPort | None = None) -> int:
        """The rail of a switch port: whose place it is decides where one chassis holds several rails."""
        rails = self.names.plan.switches[jack[0]].rails
        owner = self.wanted.owner.get(jack)
        if len(rails) == 1:
            return rails[0]
        if owner is not None:
            return self.names.rail_of(owner[0])
        return self.names.rail_of(port) if port is not None else rails[0]

    def rails(self, jacks: Sequence[Jack]) -> str:
        """`rail 2: `, `rails 2 and 3: `."""
        found = sorted({self.rail(jack) for jack in jacks})
        return f"rail{'s' * (len(found) > 1)} {listed([str(rail) for rail in found])}: "

    def order(self, jack: Jack, port: NicPort | None = None) -> tuple[int, int, int]:
        return self.rail(jack, port), jack[0], self.position(jack)


def listed(items: Sequence[str], most: int = _MOST) -> str:
    """`a`, `a and b`, `a, b and c`, `a, b and 7 more`."""
    shown = list(items) if len(items) <= most else [*items[: most - 1], f"{len(items) - most + 1:,} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
