"""Bisection bandwidth and propagation latency of the three fabrics that `opusc cost` compares.

The cut is between the first half of the scale-up domains and the others, in the order of the nodes, so that traffic
inside a domain, and its change of rail, does not cross it. Bandwidth is in bit/s each way, latency in picoseconds.

A non-blocking fabric of packet switches carries what the smaller half can send, whatever the destinations (full
bisection bandwidth of a fat tree: Al-Fares et al., SIGCOMM 2008). An optical switch carries as much, for one pairing
of ports at a time: `photonic` is what the circuits could carry if all of them led across, `lit` what those of each
phase do.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from opusc.model.entities import Matrix, Optics
from opusc.plan.plan import Plan
from opusc.schedule.light import Ports, lengths, measured

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Crossing", "cable", "crossing", "latency"]

_MM_PER_KM = 10**6


@dataclass(frozen=True, slots=True)
class Crossing:
    """Bandwidth across the middle, in bit/s each way. `lit` has each phase with circuits: its least step."""

    photonic: int
    packet_rails: int
    fat_tree: int
    lit: tuple[tuple[str, int], ...]


def crossing(plan: Plan) -> Crossing:
    """What the three fabrics carry between the halves of the cluster.

    - photonic: sum over optical switches of the ports that can be joined across, times the rate of a port;
    - packet rails: rails x floor(GPUs of a rail / 2) x ports x rate; rails are not joined;
    - fat tree: floor(GPUs / 2) x ports x rate.
    """
    import numpy as np

    model = plan.model
    nic, rails, gpus = model.cluster.rail_nic, len(model.fabric.rails), model.cluster.gpu_count
    domain = np.arange(gpus) // model.cluster.gpus_per_domain
    left = domain < model.cluster.domain_count // 2
    return Crossing(
        photonic=_joinable(plan, left) * nic.rate,
        packet_rails=rails * (gpus // rails // 2) * nic.ports * nic.rate,
        fat_tree=gpus // 2 * nic.ports * nic.rate,
        lit=tuple(_lit(plan, left)),
    )


def _joinable(plan: Plan, left: "NDArray[np.bool_]") -> int:
    """Light paths from the first half to the second that all switches can hold at once."""
    import numpy as np

    cabling, total = plan.cabling, 0
    side = np.repeat(left[:, None], cabling.ports, axis=1)
    bidi, any_port = _kinds(plan)
    for switch in range(len(plan.switches)):
        here = cabling.switch == switch
        into, out = here & (cabling.ingress >= 0), here & (cabling.egress >= 0)
        there = min(int((into & side).sum()), int((out & ~side).sum()))
        # With one fibre both ways on a crossbar, a port of side B in the first half sends to side A in the second too.
        back = min(int((into & ~side).sum()), int((out & side).sum())) if bidi and not any_port else 0
        total += there + back
    return total


def _kinds(plan: Plan) -> tuple[bool, bool]:
    """Whether a fibre leads both ways, and whether any two ports of a switch can be joined."""
    return plan.model.cluster.rail_nic.optics is Optics.BIDI, plan.switches[0].kind.matrix is Matrix.ANY


def _lit(plan: Plan, left: "NDArray[np.bool_]") -> "list[tuple[str, int]]":
    """For each phase with circuits, what they send from the first half to the second, in the step with least."""
    import numpy as np

    circuits, table = plan.circuits, Ports(plan)
    if not len(circuits):
        return []
    ends = [table.at(circuits.switch, port) for port in (circuits.ingress, circuits.egress)]
    halves = [left[end // plan.cabling.ports] for end in ends]
    crosses = halves[0] != halves[1]
    if not _kinds(plan)[0]:
        # One way each: the sender is the end whose transmitter is on its port of the switch.
        sends = plan.cabling.ingress.reshape(-1)[ends[0]] == circuits.ingress
        crosses &= np.where(sends, halves[0], halves[1])
    found = []
    for phase in plan.phases:
        if not phase.instances:
            continue
        steps = [0] * max(phase.step_count, 1)
        for part in plan.parts:
            if part.phase == phase.index:
                steps[part.step] += int(crosses[plan.rows(part.index)].sum())
        found.append((phase.name, min(steps) * plan.model.cluster.rail_nic.rate))
    return found


def cable(plan: Plan) -> Fraction | None:
    """What light takes through the longest cable, in ps; None where a rail states no fibre, `length` or `delay`."""
    known = measured(plan)
    longest = lengths(plan).max(axis=1)
    rail_of = Ports(plan).rail
    found = [Fraction(0)]
    for rail in plan.model.fabric.rails:
        fibre = rail.fibre
        if fibre is None or fibre.delay is None or (fibre.length is None and not known):
            return None
        found.append(Fraction(int(longest[rail_of == rail.index].max()) * fibre.delay, _MM_PER_KM))
    return max(found)


def latency(one_cable: Fraction, hops: int, forwarding: int) -> Fraction:
    """From NIC port to NIC port over so many switches, in ps: a cable more than switches, and what each of them takes.

    Every cable is taken to be as long as the longest from a NIC to its switch. An optical switch forwards nothing:
    light passes it, and its own path is inside the cables' length.
    """
    return (hops + 1) * one_cable + hops * forwarding
