"""Where circuits begin and end: from switch ports back to GPUs, NIC ports and rails."""

from dataclasses import dataclass

import numpy as np

from opusc.model.entities import Optics
from opusc.plan.plan import Int32, Plan
from opusc.plan.ranks import rail_of

__all__ = ["Ends", "ends_of"]


@dataclass(frozen=True, eq=False)
class Ends:
    """Columns parallel to `Plan.circuits`. With bidi optics the light goes both ways, and the ends are the port's."""

    sender: Int32  # GPU of the cluster
    sender_port: Int32  # NIC port
    receiver: Int32
    receiver_port: Int32
    rail: Int32  # of the sender; a circuit stays on one rail


def ends_of(plan: Plan) -> Ends:
    """Follow every circuit through the cabling to the NIC ports at its ends."""
    cabling, circuits = plan.cabling, plan.circuits
    span = 2 * max(switch.kind.radix for switch in plan.switches) + 1
    behind = np.full(len(plan.switches) * span, -1, dtype=np.int64)
    gpu, port = np.nonzero(cabling.switch >= 0)
    base = cabling.switch[gpu, port].astype(np.int64) * span
    for side in (cabling.ingress, cabling.egress):
        at = side[gpu, port]
        used = at >= 0
        behind[base[used] + at[used]] = gpu[used] * cabling.ports + port[used]
    transmits = np.zeros(len(behind), dtype=np.bool_)
    transmits[base + cabling.ingress[gpu, port]] = True
    here = circuits.switch.astype(np.int64) * span
    sender, receiver = behind[here + circuits.ingress], behind[here + circuits.egress]
    if plan.model.cluster.rail_nic.optics is Optics.DUPLEX:
        # On an `any` matrix circuits are unordered pairs: the transmitting port may stand second.
        ahead = transmits[here + circuits.ingress]
        sender, receiver = np.where(ahead, sender, receiver), np.where(ahead, receiver, sender)
    first = (sender // cabling.ports).astype(np.int32)
    return Ends(
        sender=first,
        sender_port=(sender % cabling.ports).astype(np.int32),
        receiver=(receiver // cabling.ports).astype(np.int32),
        receiver_port=(receiver % cabling.ports).astype(np.int32),
        rail=rail_of(plan.model.job, first),
    )
