"""Whose port it is: from a switch port back to node, GPU, NIC port and rank."""

from opusc.control.change import Port, Station
from opusc.plan.plan import Plan

__all__ = ["Holders"]


class Holders:
    """The NIC ports behind the ports of one switch."""

    def __init__(self, plan: Plan, station: Station) -> None:
        self._station = station
        cabling, per_node = plan.cabling, plan.model.cluster.gpus_per_node
        self._owner: dict[Port, str] = {}
        for numbers in (cabling.ingress, cabling.egress):
            gpus, ports = ((cabling.switch == station.switch.index) & (numbers >= 0)).nonzero()
            for gpu, port, number in zip(gpus.tolist(), ports.tolist(), numbers[gpus, ports].tolist(), strict=True):
                node, local = divmod(gpu, per_node)
                rank = int(plan.rank_of_gpu[gpu])
                text = f"node {node} GPU {local} port {port}" + (f", rank {rank}" if rank >= 0 else ", no rank")
                self._owner[station.port(number)] = text

    def owner(self, port: Port) -> str:
        """`node 1 GPU 0 port 1, rank 4`."""
        return self._owner.get(port, "not cabled by the program")

    def of(self, port: Port) -> str:
        """`port 18 (node 1 GPU 0 port 1, rank 4)`."""
        return f"port {port[1]} ({self.owner(port)})"

    def circuit(self, pair: tuple[str, str]) -> str:
        """Both ends of a circuit."""
        first, second = self._station.ends(pair)
        return f"{self.of(first)} to {self.of(second)}"
