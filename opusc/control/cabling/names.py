"""How nodes, NIC ports, switches and switch ports are called: by the program, and in observations."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from opusc.backends.port_labels import port_labels
from opusc.backends.switch_files import slug
from opusc.model.entities import Matrix, RailBy
from opusc.plan.plan import Plan, Switch

__all__ = ["Names", "NicPort"]

#: GPU of the cluster and port of its NIC.
NicPort = tuple[int, int]

_NODE = re.compile(r"[A-Za-z_.-]*?0*([0-9]{1,9})")
_TWO_NUMBERS = re.compile(r"[A-Za-z_-]*([0-9]{1,6})(?:p|/|:|\.|[ _-]?port[ _-]?)([0-9]{1,6})")
_DEVICE = re.compile(r"mlx[0-9]+_([0-9]{1,6})(?:/1)?")
_ONE_NUMBER = re.compile(r"[A-Za-z_-]*([0-9]{1,6})")


@dataclass(frozen=True)
class Names:
    """Names in a plan. `nics` and `switches` are what the user said of names that no rule covers; observed hosts
    are counted from `first_node`."""

    plan: Plan
    nics: Mapping[str, NicPort] = field(default_factory=dict)  # name -> (GPU in its node, port)
    switches: Mapping[str, int] = field(default_factory=dict)
    first_node: int = 0

    # --- as people read them -------------------------------------------------------------------

    def nic_port(self, port: NicPort, *, gpu: bool = False) -> str:
        """`node 5 port 0`, with the GPU where the rail does not tell it or it is asked for."""
        node, local = divmod(port[0], self._per_node)
        which = f" GPU {local}" if gpu or self._several else ""
        return f"node {node}{which} port {port[1]}"

    def node_of(self, port: NicPort) -> int:
        return port[0] // self._per_node

    def local_of(self, port: NicPort) -> int:
        return port[0] % self._per_node

    def rail_of(self, port: NicPort) -> int:
        by_node = self.plan.model.fabric.rail_by is RailBy.LOCAL_RANK
        return port[0] % (self._per_node if by_node else self.plan.model.cluster.gpus_per_domain)

    def label(self, switch: int, number: int) -> str:
        """What stands beside a port of a switch."""
        return self._labels[switch].get(number, str(number))

    def position(self, switch: int, number: int) -> int:
        return (number - 1) % self.plan.switches[switch].kind.radix + 1

    # --- as observations write them ------------------------------------------------------------

    def node(self, text: str) -> int | None:
        """The number of a host: `12`, `node12`, `dgx-012.rack3.example`."""
        match = _NODE.fullmatch(text) or _NODE.fullmatch(text.partition(".")[0])
        return None if match is None else int(match[1]) - self.first_node

    def nic(self, text: str) -> NicPort | None:
        """GPU in its node and port of a NIC port's name: `gpu3p1`, `nic3/1`, `mlx5_6` (the seventh port of a node)."""
        if text in self.nics:
            return self.nics[text]
        match = _DEVICE.fullmatch(text)
        if match is None and (two := _TWO_NUMBERS.fullmatch(text)):
            return int(two[1]), int(two[2])
        match = match or _ONE_NUMBER.fullmatch(text)
        return None if match is None else divmod(int(match[1]), self.plan.cabling.ports)

    def switch(self, text: str) -> int | None:
        """A switch by its name, the name of its files, its address, or a number where there is one for each rail."""
        if text in self.switches:
            return self.switches[text]
        if text in self._switch_names:
            return self._switch_names[text]
        match = re.fullmatch(r"(?:[A-Za-z_.-]*?)0*([0-9]{1,6})", text)
        if match is None or len(self.plan.switches) != len(self.plan.model.fabric.rails):
            return None
        return int(match[1]) if int(match[1]) < len(self.plan.switches) else None

    def switch_port(self, switch: int, text: str) -> int | None:
        """The number of a switch port, by its label or as a number."""
        known = self._numbers[switch]
        if text in known:
            return known[text]
        last = _last_port(self.plan.switches[switch])
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= last else None

    # --- tables --------------------------------------------------------------------------------

    @property
    def _per_node(self) -> int:
        return self.plan.model.cluster.gpus_per_node

    @property
    def _several(self) -> bool:
        """Whether a node has several GPUs on one rail."""
        cluster = self.plan.model.cluster
        return self.plan.model.fabric.rail_by is RailBy.DOMAIN_RANK and cluster.gpus_per_domain < cluster.gpus_per_node

    @cached_property
    def _labels(self) -> list[dict[int, str]]:
        return [port_labels(switch) for switch in self.plan.switches]

    @cached_property
    def _numbers(self) -> list[dict[str, int]]:
        return [{label: number for number, label in labels.items()} for labels in self._labels]

    @cached_property
    def _switch_names(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for switch in self.plan.switches:
            short = switch.name.partition(".")[2]
            for name in (switch.name, slug(switch.name), short, slug(short), switch.kind.address or ""):
                if name:
                    found.setdefault(name, switch.index)
        return found


def _last_port(switch: Switch) -> int:
    return switch.kind.radix * (2 if switch.kind.matrix is Matrix.CROSSBAR else 1)
