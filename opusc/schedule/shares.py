"""The bandwidth that a phase's circuits give a rank: NIC ports that send at once, times the rate of a port.

Phases that take turns have all ports in their turn; packed phases (`pack`, `policy = static`) have a share of them; a
phase of several steps has the circuits of one step at a time. All of this is what the plan's parts hold.
"""

from dataclasses import dataclass

from opusc.model.entities import Optics
from opusc.plan.plan import Plan
from opusc.schedule.light import Ports

__all__ = ["Share", "shares"]


@dataclass(frozen=True, slots=True)
class Share:
    """What the ranks of a part have on one rail: the rank with the fewest ports that send at once, as `ranks` have.

    `bandwidth` is in bit/s of one rank and direction.
    """

    phase: str
    part: str
    rail: int
    ports: int
    bandwidth: int
    ranks: int


def shares(plan: Plan) -> tuple[Share, ...]:
    """The least bandwidth of a rank in each part and on each rail, in the order of parts and rails.

    A rank counts where a circuit begins at its NIC: those that only hear in a part have no bandwidth to give.
    """
    import numpy as np

    circuits, table, nic = plan.circuits, Ports(plan), plan.model.cluster.rail_nic
    if not len(circuits):
        return ()
    gpus, parts = [], []
    for port in (circuits.ingress, circuits.egress):
        end = table.at(circuits.switch, port)
        # On one fibre both ends send; else the one whose transmitter the port of the switch belongs to.
        sends = np.ones(len(end), dtype=bool)
        if nic.optics is Optics.DUPLEX:
            sends = plan.cabling.ingress.reshape(-1)[end] == port
        gpus.append(end[sends] // plan.cabling.ports)
        parts.append(circuits.part[sends].astype(np.int64))
    keys, counts = np.unique(np.stack([np.concatenate(parts), np.concatenate(gpus)]), axis=1, return_counts=True)
    groups = np.stack([keys[0], table.rail[keys[1]].astype(np.int64), counts])
    rows, ranks = np.unique(groups, axis=1, return_counts=True)
    first = np.flatnonzero(np.r_[True, (rows[:2, 1:] != rows[:2, :-1]).any(axis=0)])
    found = []
    for at in first.tolist():
        part, ports = plan.parts[int(rows[0, at])], int(rows[2, at])
        name = plan.phases[part.phase].name
        found.append(Share(name, part.name, int(rows[1, at]), ports, ports * nic.rate, int(ranks[at])))
    return tuple(found)
