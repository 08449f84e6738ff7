"""Durations from hardware figures: roofline compute, ring collectives, point-to-point sends.

All times are integer picoseconds, all rates integer bytes (or flops) per second, all sizes integer
bytes; every division rounds down once. docs/time-model.md gives each formula with
its source.
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

__all__ = ["MILLISECOND", "Accelerator", "Algorithm", "Rates", "compute_time", "ring_time", "send_time"]

_SECOND = 10**12
MILLISECOND = 10**9


class Algorithm(StrEnum):
    """Collective operations. The first three run as one-way rings wherever the topology is a ring."""

    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_REDUCE = "all_reduce"
    ALL_TO_ALL = "all_to_all"
    EXCHANGE = "exchange"  # every member's block visits every other: keys and values of ring attention


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One GPU: `peak` flops per second, `memory_rate` bytes per second, and the share of this roofline that compute
    reaches. Nobody can know that but the author of the job, so it is 1 unless stated."""

    peak: int
    memory_rate: int
    efficiency: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Rates:
    """What a byte costs on the way, one direction.

    `scale_up_rate` is bytes per second between two members of a domain, `ring_rate` over the circuits that join
    two neighbours of a data-parallel ring, `join_rate` over those that join two stages at one rank. The rest are
    times of the published simulations (arXiv 2602.12521, artifact):

    `latency`: propagation over one link, 936.25 ns (its network configurations);
    `endpoint`: work at the receiver before it passes a message on, 10 ns (its system.json);
    `recovery`: how long a link stays taken after the last byte has left, two latencies (Link.cpp of its network);
    `chunks`: pieces that a collective is cut into, one after another, 4 (`preferred-dataset-splits`);
    `reduce_passes`: passes through memory per reduced byte, 3: two operands read, one written (PacketBundle.cc).
    """

    scale_up_rate: int
    ring_rate: int
    join_rate: int
    latency: int = 936_250
    endpoint: int = 10_000
    recovery: int = 2 * 936_250
    chunks: int = 4
    reduce_passes: int = 3


def compute_time(flops: int, size: int, gpu: Accelerator) -> int:
    """Roofline: flops / min(peak, memory * flops / bytes), that is the longer of the two, over the efficiency."""
    time = max(flops * _SECOND // gpu.peak, size * _SECOND // gpu.memory_rate)
    share = gpu.efficiency
    return time if share == 1 else time * share.denominator // share.numerator


def send_time(size: int, rate: int, rates: Rates) -> int:
    """One message over one circuit."""
    return size * _SECOND // rate + rates.latency


def ring_time(algorithm: Algorithm, size: int, members: int, rate: int, gpu: Accelerator, rates: Rates) -> int:
    """A ring collective from the moment all members take part.

    `size` is each member's shard for an all-gather and the full buffer for the other two. A member
    sends message k + 1 when message k has arrived, been reduced where the step reduces, and its
    outgoing link is free again.
    """
    if members < 2:
        return 0
    pieces = rates.chunks if algorithm is Algorithm.ALL_GATHER else rates.chunks * members
    wire = size * _SECOND // (pieces * rate)
    reduce = rates.reduce_passes * size * _SECOND // (pieces * gpu.memory_rate)
    turn = rates.latency + rates.endpoint
    gather_step = wire + max(turn, rates.recovery)
    reduce_step = wire + max(turn + reduce, rates.recovery)
    per_chunk = {
        Algorithm.ALL_GATHER: gather_step,
        Algorithm.REDUCE_SCATTER: reduce_step,
        Algorithm.ALL_REDUCE: reduce_step + gather_step,
    }[algorithm]
    return rates.chunks * (members - 1) * per_chunk
