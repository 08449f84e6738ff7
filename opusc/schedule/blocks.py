"""What one pass of a micro-batch through a chunk of layers is made of.

A chunk is a row of units: the embedding, layers, the head. A pass through a unit is a row of pieces: compute, traffic
that compute waits for (experts), traffic beside compute (rings of keys and values). Operations inside a rank's domain
never wait for circuits, so they are folded into the compute of their piece: the operations of `transformer.py` are
arranged on a compute and a tensor-parallel stream, and the piece takes as long as they do. Layers without traffic of
their own between domains are arranged as one chain, exactly; layers with experts or context parallelism piece by
piece, so that a piece begins when the one before has ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from opusc.schedule.carriers import Carrier, legs_of
from opusc.schedule.operations import Collective, Compute, Operation
from opusc.schedule.policy import ALL_LINKS
from opusc.schedule.replay import replay
from opusc.schedule.timetable import COMPUTING, Tasks, arrange
from opusc.schedule.timing import Accelerator, Algorithm, Rates, compute_time
from opusc.schedule.transformer import NEXT, PREVIOUS, Transformer, layer_operations, table_operations

__all__ = ["Experts", "Piece", "Sizes", "Unit", "units"]

_LATE = ("weight.reduce", "weight.gradient", "weight.update")
_AGAIN = ("qkv.gather_again", "ffn.gather_again")
_SCORES = ("attention",)
_SCORES_BACK = ("dq", "dk", "dv", "dk.partial", "dv.partial")


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture in each layer: `count` experts over `ep` ranks, each cut over `tp` ranks; a token visits `chosen`."""

    count: int
    chosen: int
    ep: int = 1
    tp: int = 1


@dataclass(frozen=True, slots=True)
class Sizes:
    """A job as its ranks see it: the transformer for the tokens of one micro-batch on one rank, and what else splits
    them."""

    shape: Transformer
    cp: int = 1
    experts: Experts | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """`duration` (ps) of compute, after `before` has ended and while `beside` runs; what follows waits for all."""

    duration: int
    before: Collective | None = None
    beside: Collective | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """A layer or a table of embeddings: passes forward and backward, elements of weights on a rank, and how long
    its gradients and update take after they have been reduced (ps for each element kept: a pass over them)."""

    name: str
    forward: tuple[Piece, ...]
    backward: tuple[Piece, ...]
    weights: int
    expert_weights: int = 0


def units(
    sizes: Sizes, layers: Sequence[int], gpu: Accelerator, rates: Rates, *, first: bool, last: bool
) -> tuple[Unit, ...]:
    """The units of a chunk with these layers (their numbers in the model); first and last of the whole pipeline."""
    shape = sizes.shape
    table = shape.width * shape.vocabulary // shape.tp
    found = []
    if first:
        output, weights, inputs = _table(shape, "embedding", gpu)
        found.append(Unit("embedding", (Piece(output),), (Piece(weights + inputs),), table))
    plain = sizes.cp == 1 and sizes.experts is None
    forward = _chain(shape, len(layers), True, gpu, rates) if plain else ()
    backward = _chain(shape, len(layers), False, gpu, rates) if plain else ()
    there: tuple[Piece, ...]
    back: tuple[Piece, ...]
    for at, layer in enumerate(layers):
        if plain:
            there, back = (Piece(forward[at]),), (Piece(backward[at]),)
        else:
            there, back = _pieces(sizes, True, gpu, rates), _pieces(sizes, False, gpu, rates)
        dense, sparse = layer_weights(sizes)
        found.append(Unit(f"layer {layer}", there, back, dense, sparse))
    if last:
        output, weights, inputs = _table(shape, "head", gpu)
        loss = compute_time(5 * shape.activation, shape.activation * shape.element, gpu)
        found.append(Unit("head", (Piece(output + loss),), (Piece(loss + weights + inputs),), table))
    return tuple(found)


def layer_weights(sizes: Sizes) -> tuple[int, int]:
    """Elements of a layer's weights on one rank: those of all ranks, those of its experts."""
    shape, experts = sizes.shape, sizes.experts
    if experts is None:
        return shape.layer_weights, 0
    matrices = 3 if shape.gated else 2
    one = matrices * shape.width * shape.feed_forward // experts.tp
    return shape.qkv_weights + shape.output_weights, experts.count * one // experts.ep


def _table(shape: Transformer, name: str, gpu: Accelerator) -> tuple[int, int, int]:
    """Times of the output, the gradient of the weights and that of the input."""
    logits = shape.tokens * shape.vocabulary // shape.tp
    results = (shape.activation, logits) if name == "embedding" else (logits, shape.activation)
    works = [op.work for op in table_operations(shape, name, *results, (), "")]
    output, weights, inputs = (compute_time(w.flops, w.size, gpu) for w in works if isinstance(w, Compute))
    return output, weights, inputs


# --- layers --------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _passes(shape: Transformer) -> tuple[tuple[Operation, ...], tuple[Operation, ...]]:
    """The operations of a layer's forward and of its backward pass."""
    every = {op.name: op for op in layer_operations(shape) if op.name not in _LATE}
    forward: dict[str, Operation] = {}
    backward: dict[str, Operation] = {}
    behind = {NEXT, *_AGAIN}
    grew = True
    while grew:
        grew = False
        for op in every.values():
            if op.name not in behind and behind & set(op.after):
                behind.add(op.name)
                grew = True
    for op in every.values():
        (backward if op.name in behind else forward)[op.name] = op
    # What the backward pass needs again is gathered when it begins.
    for name in _AGAIN:
        backward[name] = replace(backward[name], after=(NEXT,))
    for name, op in backward.items():
        backward[name] = replace(op, after=tuple(n for n in op.after if n in backward or n == NEXT))
    return tuple(forward.values()), tuple(backward.values())


@lru_cache(maxsize=256)
def _chain(shape: Transformer, layers: int, forward: bool, gpu: Accelerator, rates: Rates) -> tuple[int, ...]:
    """How much later each layer's pass ends than that of the layer before it in the pass."""
    operations = _passes(shape)[0 if forward else 1]
    outside, result = (PREVIOUS, "ffn.sum") if forward else (NEXT, "norm1.dx")
    named: list[Operation] = []
    for at in range(layers):
        for op in operations:
            ahead = f"{at - 1}.{result}" if at else None
            after = tuple(ahead if n == outside else f"{at}.{n}" for n in op.after)
            named.append(Operation(f"{at}.{op.name}", op.work, tuple(n for n in after if n is not None)))
    ends = _ends(named, shape.tp, gpu, rates)
    count, reached, found = len(operations), 0, []
    for at in range(layers):
        own = ends[at * count : (at + 1) * count]
        end = max(reached, own[[op.name for op in operations].index(result)] if forward else max(own))
        if forward and at == layers - 1:
            end = max(end, max(ends))
        found.append(end - reached)
        reached = end
    return tuple(found if forward else found[::-1])


def _ends(operations: Sequence[Operation], tp: int, gpu: Accelerator, rates: Rates) -> list[int]:
    """When each ends on a rank that does nothing else, one compute and one tensor-parallel stream."""
    number = {op.name: n for n, op in enumerate(operations)}
    children: list[list[int]] = [[] for _ in operations]
    for n, op in enumerate(operations):
        for name in op.after:
            children[number[name]].append(n)
    routes: list[int] = []
    times: list[tuple[int, ...]] = []
    for op in operations:
        if isinstance(op.work, Compute):
            routes.append(COMPUTING)
            times.append((compute_time(op.work.flops, op.work.size, gpu),))
        else:
            assert isinstance(op.work, Collective)
            routes.append(0)
            times.append(legs_of([Carrier(tp)], op.work.algorithm, op.work.size, gpu, rates)[1])
    waits = [len(op.after) for op in operations]
    table = arrange(Tasks([0] * len(operations), routes, times, children, waits), (), (), ((-1,),))
    run = replay(table, ALL_LINKS, 0)
    ends = [0] * len(operations)
    for row, end in zip(table.rows, run.ends, strict=True):
        ends[row[1]] = end
    return ends


@lru_cache(maxsize=256)
def _alone(shape: Transformer, names: frozenset[str], forward: bool, gpu: Accelerator, rates: Rates) -> int:
    """How long some operations of a pass take when everything else is there."""
    chosen = [op for op in _passes(shape)[0 if forward else 1] if op.name in names]
    inside = [replace(op, after=tuple(n for n in op.after if n in names)) for op in chosen]
    return max(_ends(inside, shape.tp, gpu, rates), default=0)


# --- pieces: context parallelism and experts -----------------------------------------------------


@lru_cache(maxsize=64)
def _pieces(sizes: Sizes, forward: bool, gpu: Accelerator, rates: Rates) -> tuple[Piece, ...]:
    """The pieces of one layer with context parallelism, experts, or both."""
    shape = sizes.shape
    operations = _passes(shape)[0 if forward else 1]
    scores = frozenset(_SCORES if forward else _SCORES_BACK)
    inner = frozenset(op.name for op in operations if op.name.startswith("ffn."))
    if sizes.experts is not None:
        # The attention's own sum stays; the feed-forward part is replaced by experts.
        rest = [op.name for op in operations if op.name not in inner | scores]
    else:
        rest = [op.name for op in operations if op.name not in scores]
    order = [op.name for op in operations]
    before = _before_scores(forward, order, scores)
    first = _alone(shape, frozenset(rest) & before, forward, gpu, rates)
    last = _alone(shape, frozenset(rest) - before, forward, gpu, rates)
    attention = _attention(sizes, scores, forward, gpu, rates)
    feed = _experts(sizes, forward, gpu, rates)
    if forward:
        return _joined([Piece(first), *attention, Piece(last), *feed])
    return _joined([*feed, Piece(first), *attention, Piece(last)])


def _before_scores(forward: bool, order: Sequence[str], scores: frozenset[str]) -> frozenset[str]:
    if forward:
        return frozenset(n for n in order if n in ("norm1", "qkv.gather", "qkv", "q", "k", "v"))
    tail = ("dkv", "dqkv", "qkv.gather_again", "qkv.dw", "qkv.dx", "qkv.scatter", "norm1.dy", "norm1.dx")
    return frozenset(n for n in order if n not in tail and n not in scores)


def _attention(sizes: Sizes, scores: frozenset[str], forward: bool, gpu: Accelerator, rates: Rates) -> list[Piece]:
    """Ring attention: every rank's keys and values pass all others, backward with their gradients, while the block
    before is computed: cp - 1 blocks beside the ring, the last one after it."""
    shape, cp = sizes.shape, sizes.cp
    whole = _alone(shape, scores, forward, gpu, rates)
    if cp == 1:
        return [Piece(whole)]
    block = 2 * shape.tokens * shape.kv_width // shape.tp * shape.element
    ring = Collective("cp", Algorithm.EXCHANGE, block if forward else 2 * block)
    return [Piece(whole * (cp - 1) // cp, beside=ring), Piece(whole // cp)]


def _experts(sizes: Sizes, forward: bool, gpu: Accelerator, rates: Rates) -> list[Piece]:
    """Dispatch, the experts' products, combine. Tokens spread evenly over the experts."""
    s, experts = sizes.shape, sizes.experts
    if experts is None:
        return []
    visits = s.tokens * experts.chosen // s.tp  # of tokens that this rank sends, and that it receives
    matrices = 3 if s.gated else 2
    products = s.multiply_add * visits * matrices * s.width * s.feed_forward * (1 if forward else 2)
    results = visits * (s.width + (matrices - 1) * s.feed_forward) * s.element * (1 if forward else 2)
    router = compute_time(s.multiply_add * s.activation * experts.count, s.activation * s.element, gpu)
    work = compute_time(products, results, gpu)
    if experts.tp > 1:
        inside = [Carrier(experts.tp)]
        size = visits * s.width * s.element
        work += sum(legs_of(inside, Algorithm.ALL_GATHER, size, gpu, rates)[1])
        work += sum(legs_of(inside, Algorithm.REDUCE_SCATTER, size * experts.tp, gpu, rates)[1])
    if experts.ep == 1:
        return [Piece(router + work)]
    exchange = Collective("ep", Algorithm.ALL_TO_ALL, visits * s.width * s.element)
    return [Piece(router), Piece(work, before=exchange), Piece(0, before=exchange)]


def _joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Compute after compute is one piece, unless traffic stands between."""
    found: list[Piece] = []
    for piece in pieces:
        if found and piece.before is None and piece.beside is None and found[-1].beside is None:
            found[-1] = replace(found[-1], duration=found[-1].duration + piece.duration)
        else:
            found.append(piece)
    return tuple(found)
