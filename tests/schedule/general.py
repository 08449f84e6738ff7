"""Small jobs, laid out by hand, for the checks of the general time model."""

from opusc.schedule import Accelerator, Rates
from opusc.schedule.blocks import Piece, Unit
from opusc.schedule.carriers import Carrier, Join, Network
from opusc.schedule.circuits import Part
from opusc.schedule.iteration import Layout, Reduction, iteration
from opusc.schedule.lowering import lower_onto
from opusc.schedule.operations import Program
from opusc.schedule.pipelines import Block, gpipe, interleaved, one_f_one_b

GPU = Accelerator(10**15, 10**12)
#: No latency, no reduction work, one chunk: times are bytes over rates. A byte takes 1 us on a circuit.
PLAIN = Rates(10**9, 10**6, 10**6, latency=0, endpoint=0, recovery=0, chunks=1, reduce_passes=0)
MICROSECOND = 10**6


def order(pipeline: str, stage: int, stages: int, batches: int, chunks: int = 1) -> tuple[Block, ...]:
    if pipeline == "gpipe":
        return gpipe(batches)
    if pipeline == "interleaved":
        return interleaved(stage, stages, batches, chunks)
    return one_f_one_b(stage, stages, batches)


def circuits(stages: int, dp: int, *, exclusive: bool = True, ring: bool = False) -> Network:
    """A ring for each stage and joins between neighbours, which take turns on the ports when `exclusive`."""
    ends = [(s, s + 1) for s in range(stages - 1)] + ([(0, stages - 1)] if ring and stages > 2 else [])
    parts = [Part("dp", (s,)) for s in range(stages)] + [Part("pp", pair) for pair in ends]
    clash = [
        tuple(n for n, other in enumerate(parts) if other.phase != part.phase and set(other.stages) & set(part.stages))
        for part in parts
    ]
    return Network(
        parts=tuple(parts),
        conflicts=tuple(clash) if exclusive else ((),) * len(parts),
        carriers={("dp", s): (Carrier(1, dp, PLAIN.ring_rate, (s,)),) for s in range(stages)},
        joins={("pp", *pair): Join((stages + n,), PLAIN.join_rate, False) for n, pair in enumerate(ends)},
    )


def layout(
    stages: int,
    batches: int,
    *,
    pipeline: str = "one_f_one_b",
    chunks: int = 1,
    layers: int = 1,
    forward: int = 10 * MICROSECOND,
    backward: int = 20 * MICROSECOND,
    weights: int = 0,
    activation: int = 0,
    dp: int = 1,
    sharding: str = "none",
    tied: str = "",
) -> Layout:
    """Every chunk has so many layers, each with these times and weights."""

    def units(stage: int, chunk: int) -> tuple[Unit, ...]:
        first = (chunk * stages + stage) * layers
        return tuple(Unit(f"layer {first + n}", (Piece(forward),), (Piece(backward),), weights) for n in range(layers))

    reduction = Reduction("dp" if dp > 1 else "", dp)
    return Layout(
        name="small",
        degrees={"dp": dp},
        orders=tuple(order(pipeline, s, stages, batches, chunks) for s in range(stages)),
        chunks=tuple(tuple(units(s, c) for c in range(chunks)) for s in range(stages)),
        activation=activation,
        sharding=sharding,
        dense=reduction,
        sparse=reduction,
        element=1,
        tied=tied,
    )


def program(made: Layout, network: Network) -> Program:
    return lower_onto(iteration(made, GPU), GPU, PLAIN, network)
