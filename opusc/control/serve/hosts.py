"""Who a connection is: the address of its node and its local rank name a GPU, and so a rank of the job.

The published shim says of a communicator only how many ranks it has, under a name that is new in every run. As for the
published controller, a list of the nodes' addresses tells the rest.
"""

import socket
from collections.abc import Iterable

from opusc.plan.plan import Plan

__all__ = ["Hosts", "HostsError"]


class HostsError(ValueError):
    """A list of hosts, or a client of none of them: a sentence."""


class Hosts:
    """Nodes by address. `lines` has a node each, in the order of the plan: one or more addresses or names."""

    def __init__(self, plan: Plan, lines: Iterable[str]) -> None:
        self._plan = plan
        self._node_of: dict[str, int] = {}
        node = 0
        for line in lines:
            names = line.partition("#")[0].split()
            if not names:
                continue
            for address in {address for name in names for address in _addresses(name)}:
                if self._node_of.setdefault(address, node) != node:
                    raise HostsError(f"node {self._node_of[address]} and node {node} have the same address, {address}")
            node += 1
        expected = plan.model.cluster.node_count
        if node != expected:
            raise HostsError(f"it lists {node:,} of the {expected:,} nodes of the cluster")

    def rank(self, address: str, local_rank: int) -> int:
        """The rank of a client. Raises HostsError."""
        node = self._node_of.get(address.removeprefix("::ffff:"))
        if node is None:
            raise HostsError(f"{address} is no address of a node")
        size = self._plan.model.cluster.gpus_per_node
        if local_rank >= size:
            raise HostsError(f"there is no local rank {local_rank}: a node has {size} GPUs")
        rank = int(self._plan.rank_of_gpu[node * size + local_rank])
        if rank < 0:
            raise HostsError(f"the job has no rank on GPU {local_rank} of node {node}")
        return rank


def _addresses(name: str) -> set[str]:
    try:
        return {str(info[4][0]) for info in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)}
    except OSError as error:
        raise HostsError(f"`{name}` has no address: {error.strerror or error}") from error
