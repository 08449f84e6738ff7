"""The operations of one training iteration of a transformer: forward, backward, gradients, update.

One micro-batch, tensor parallelism with sequence parallelism (every activation is split over the tensor ranks,
gathered before a product and reduce-scattered after it), a reduction of each layer's gradients over the
data-parallel ranks, and stages that pass the activation on and the gradient back.

The operations, their order and what waits for what are those of the published simulations (symbolic tensor
graph generator, astra-sim/symbolic_tensor_graph, with the parameters of arXiv 2602.12521). So are two habits that
a reader should know: a multiply and its add count as one operation, and the attention scores (the part that grows
with the square of the sequence) count as a few passes over the activation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from opusc.schedule.operations import Collective, Compute, Operation, Receive, Send, Workload
from opusc.schedule.timing import Algorithm

__all__ = ["FORWARD_OUT", "NEXT", "PREVIOUS", "Transformer", "layer_operations", "table_operations", "workload"]

FORWARD_IN, FORWARD_OUT = "activation.receive", "activation.send"
BACKWARD_IN, BACKWARD_OUT = "gradient.receive", "gradient.send"

#: In `after`: the previous layer's output and the next layer's gradient, wherever they come from.
PREVIOUS, NEXT = "previous", "next"
OUTPUT, GRADIENT, UPDATE = "ffn.sum", "norm1.dx", "weight.update"

_Spec = tuple[str, Compute | Collective, str]  # name, work, names it waits for


@dataclass(frozen=True, slots=True)
class Transformer:
    """Sizes of a job, in elements and counts.

    `tokens` is the tokens of one micro-batch on one pipeline: sequences times sequence length. `gated`: the
    feed-forward part has three matrices (gate, up, down) rather than two. `element` is the bytes of an element;
    the published traces have one byte for all tensors. `multiply_add` is the operations of a multiply with its add.
    `context` is the tokens that a token attends to on average; 0 counts the attention scores as the published traces
    do, as a few passes over the activation.
    """

    tokens: int
    width: int
    feed_forward: int
    heads: int
    kv_heads: int
    vocabulary: int
    gated: bool
    tp: int
    dp: int
    element: int = 1
    multiply_add: int = 1
    context: int = 0

    @property
    def activation(self) -> int:
        """Elements of the activation on one rank."""
        return self.tokens * self.width // self.tp

    @property
    def kv_width(self) -> int:
        return self.width * self.kv_heads // self.heads

    @property
    def qkv_weights(self) -> int:
        return self.width * (self.width + 2 * self.kv_width) // self.tp

    @property
    def output_weights(self) -> int:
        return self.width * self.width // self.tp

    @property
    def feed_forward_weights(self) -> int:
        """Elements of one of the feed-forward matrices on one rank."""
        return self.width * self.feed_forward // self.tp

    @property
    def layer_weights(self) -> int:
        matrices = 3 if self.gated else 2
        return self.qkv_weights + self.output_weights + matrices * self.feed_forward_weights


def workload(name: str, shape: Transformer, layers: Sequence[int]) -> Workload:
    """One iteration of a model whose stage s has `layers[s]` layers (each at least 1).

    When several operations are ready for one unit the first listed runs: lower layers first, then the embedding and the
    loss, then the updates, then what passes between stages.
    """
    stages = len(layers)
    made = tuple(_stage(shape, stage, stages, layers[stage]) for stage in range(stages))
    return Workload(name, {"tp": shape.tp, "dp": shape.dp, "pp": stages}, made)


def _stage(shape: Transformer, stage: int, stages: int, layers: int) -> tuple[Operation, ...]:
    first, last = stage == 0, stage == stages - 1
    ops: list[Operation] = []
    updates: list[Operation] = []
    below = "embedding.output" if first else FORWARD_IN
    above = "head.dx" if last else BACKWARD_IN
    plain = layer_operations(shape)
    for layer in range(layers):
        before = f"{layer - 1}.{OUTPUT}" if layer else below
        behind = f"{layer + 1}.{GRADIENT}" if layer < layers - 1 else above
        outside = {PREVIOUS: before, NEXT: behind}
        for op in plain:
            after = tuple(outside.get(n) or f"{layer}.{n}" for n in op.after)
            (updates if op.name == UPDATE else ops).append(Operation(f"{layer}.{op.name}", op.work, after))
    output, gradient = f"{layers - 1}.{OUTPUT}", f"0.{GRADIENT}"
    logits = shape.tokens * shape.vocabulary // shape.tp
    if first:
        ops += table_operations(shape, "embedding", shape.activation, logits, (), gradient)
        updates += _table_update(shape, "embedding")
    if last:
        ops += table_operations(shape, "head", logits, shape.activation, (output,), "loss.gradient")
        loss = _pass(shape, 5, shape.activation)
        ops += [Operation("loss", loss, ("head.output",)), Operation("loss.gradient", loss, ("loss",))]
        updates += _table_update(shape, "head")
    ops += updates
    size = shape.activation * shape.element
    if not first:
        ops += [
            Operation(FORWARD_IN, Receive(stage - 1)),
            Operation(BACKWARD_OUT, Send(stage - 1, size, BACKWARD_IN), (gradient,)),
        ]
    if not last:
        ops += [
            Operation(FORWARD_OUT, Send(stage + 1, size, FORWARD_IN), (output,)),
            Operation(BACKWARD_IN, Receive(stage + 1)),
        ]
    return tuple(ops)


def layer_operations(shape: Transformer) -> tuple[Operation, ...]:
    """One layer, in the preferred order; `PREVIOUS` and `NEXT` stand for the layers around it."""
    specs = [*_attention(shape), *_feed_forward(shape), *_gradients(shape)]
    return tuple(Operation(name, work, tuple(after.split())) for name, work, after in specs)


def _pass(shape: Transformer, operations: int, elements: int) -> Compute:
    """So many operations on each element, whose bytes pass through memory once."""
    return Compute(operations * elements, elements * shape.element)


def _product(shape: Transformer, weights: int, result: int) -> Compute:
    """A matrix product of all tokens with `weights` elements; `result` elements are written."""
    return Compute(shape.multiply_add * shape.tokens * weights, result * shape.element)


def _scores(shape: Transformer, passes: int, products: int) -> Compute:
    """Attention itself: as many passes over the activation, or products of tokens, context and width."""
    if not shape.context:
        return _pass(shape, passes, shape.activation)
    operations = shape.multiply_add * products * shape.activation * shape.context
    return Compute(operations, shape.activation * shape.element)


def _tp(shape: Transformer, algorithm: Algorithm, elements: int) -> Collective:
    return Collective("tp", algorithm, elements * shape.element)


def _attention(s: Transformer) -> list[_Spec]:
    a, whole = s.activation, s.tokens * s.width
    kv = s.tokens * s.kv_width // s.tp
    qkv, out = s.qkv_weights, s.output_weights
    each, gather = _pass(s, 1, a), _tp(s, Algorithm.ALL_GATHER, a)
    scatter = _tp(s, Algorithm.REDUCE_SCATTER, whole)
    shared = s.kv_heads < s.heads  # several query heads share a key head: their gradients are summed
    suffix = ".partial" if shared else ""
    summed: list[_Spec] = [("dk", _pass(s, 1, kv), "dk.partial"), ("dv", _pass(s, 1, kv), "dv.partial")]
    return [
        ("norm1", _pass(s, 5, a), PREVIOUS),
        ("norm1.dy", each, "qkv.scatter norm2.dx"),
        (GRADIENT, _pass(s, 5, a), "norm1.dy"),
        ("qkv", _product(s, qkv, a + 2 * kv), "qkv.gather"),
        ("qkv.gather", gather, "norm1"),
        ("q", each, "qkv"),
        ("k", _pass(s, 1, kv), "qkv"),
        ("v", _pass(s, 1, kv), "qkv"),
        ("attention.output", _product(s, out, whole), "attention"),
        ("attention.scatter", scatter, "attention.output"),
        ("attention.gather", gather, "norm2.dx"),
        ("attention.dx", _product(s, out, a), "attention.gather"),
        ("attention.dw", _product(s, out, out), "attention attention.gather"),
        ("dkv", _pass(s, 1, 2 * kv), "dv dk"),
        ("dqkv", _pass(s, 1, a + 2 * kv), "dkv dq"),
        ("qkv.dw", _product(s, qkv, qkv), "qkv.gather_again dqkv"),
        ("qkv.gather_again", gather, "norm1"),
        ("qkv.dx", _product(s, qkv, whole), "dqkv"),
        ("qkv.scatter", scatter, "qkv.dx"),
        ("attention", _scores(s, 3, 2), "q k v"),
        ("dq", _scores(s, 6, 1), "attention.dx"),
        ("dk" + suffix, _scores(s, 6, 1), "attention.dx"),
        ("dv" + suffix, _scores(s, 6, 2), "attention.dx"),
        *(summed if shared else []),
        ("attention.sum", each, f"attention.scatter {PREVIOUS}"),
    ]


def _feed_forward(s: Transformer) -> list[_Spec]:
    a, whole = s.activation, s.tokens * s.width
    inner, weights = s.tokens * s.feed_forward // s.tp, s.feed_forward_weights
    gather, scatter = _tp(s, Algorithm.ALL_GATHER, a), _tp(s, Algorithm.REDUCE_SCATTER, whole)
    each, between, within = _pass(s, 1, a), _pass(s, 1, inner), _product(s, weights, inner)
    outward, gradient = _product(s, weights, whole), _product(s, weights, weights)
    head: list[_Spec] = [
        ("norm2", _pass(s, 5, a), "attention.sum"),
        ("norm2.dy", each, f"ffn.scatter_back {NEXT}"),
        ("norm2.dx", _pass(s, 5, a), "norm2.dy"),
        ("ffn.gather", gather, "norm2"),
    ]
    if s.gated:
        middle: list[_Spec] = [
            ("ffn.up", within, "ffn.gather"),
            ("ffn.gate", within, "ffn.gather"),
            ("ffn.product", between, "ffn.up ffn.gate"),
            ("ffn.down", outward, "ffn.product"),
            ("ffn.scatter", scatter, "ffn.down"),
            ("ffn.gather_back", gather, NEXT),
            ("ffn.down.dw", gradient, "ffn.product ffn.gather_back"),
            ("ffn.down.dx", within, "ffn.gather_back"),
            ("ffn.up.dy", between, "ffn.down.dx ffn.gate"),
            ("ffn.gate.dy", between, "ffn.down.dx ffn.up"),
            ("ffn.gather_again", gather, "norm2"),
            ("ffn.up.dw", gradient, "ffn.up.dy ffn.gather_again"),
            ("ffn.gate.dw", gradient, "ffn.gate.dy ffn.gather_again"),
            ("ffn.up.dx", outward, "ffn.up.dy"),
            ("ffn.gate.dx", outward, "ffn.gate.dy"),
            ("ffn.dx", _pass(s, 1, whole), "ffn.up.dx ffn.gate.dx"),
        ]
    else:
        middle = [
            ("ffn.up", within, "ffn.gather"),
            ("ffn.down", outward, "ffn.up"),
            ("ffn.scatter", scatter, "ffn.down"),
            ("ffn.gather_back", gather, NEXT),
            ("ffn.down.dw", gradient, "ffn.up ffn.gather_back"),
            ("ffn.up.dy", within, "ffn.gather_back"),
            ("ffn.gather_again", gather, "norm2"),
            ("ffn.up.dw", gradient, "ffn.up.dy ffn.gather_again"),
            ("ffn.dx", outward, "ffn.up.dy"),
        ]
    tail: list[_Spec] = [
        ("ffn.scatter_back", scatter, "ffn.dx"),
        (OUTPUT, each, "ffn.scatter attention.sum"),
    ]
    return head + middle + tail


def _gradients(s: Transformer) -> list[_Spec]:
    """The layer's gradients, reduced over the data-parallel ranks and applied."""
    once = _pass(s, 1, s.layer_weights)
    products = (
        "qkv.dw attention.dw ffn.up.dw ffn.gate.dw ffn.down.dw"
        if s.gated
        else ("qkv.dw attention.dw ffn.up.dw ffn.down.dw")
    )
    return [
        ("weight.reduce", Collective("dp", Algorithm.ALL_REDUCE, s.layer_weights * s.element), products),
        ("weight.gradient", once, "weight.reduce"),
        (UPDATE, once, "weight.gradient"),
    ]


def table_operations(
    shape: Transformer, name: str, output: int, input_gradient: int, forward: tuple[str, ...], backward: str
) -> list[Operation]:
    """The embedding or the head: three products of tokens x width x vocabulary, the last two backward."""
    weights = shape.width * shape.vocabulary
    table = shape.multiply_add * shape.activation * shape.vocabulary
    looked_up = name == "embedding" and shape.context > 0  # a row each; the published traces have a product here too
    operations = 0 if looked_up else table

    def product(result: int) -> Compute:
        return Compute(operations, result * shape.element)

    return [
        Operation(f"{name}.output", product(output), forward),
        Operation(f"{name}.dw", product(weights), (backward,)),
        Operation(f"{name}.dx", product(input_gradient), (backward,)),
    ]


def _table_update(shape: Transformer, name: str) -> list[Operation]:
    """Accumulated over the micro-batches, reduced over both axes, applied."""
    weights = shape.width * shape.vocabulary
    once, reduced = _pass(shape, 1, weights), weights * shape.element
    steps: tuple[tuple[str, Compute | Collective], ...] = (
        ("dw", Compute(0, 0)),
        ("accumulate", once),
        ("dp_reduce", Collective("dp", Algorithm.ALL_REDUCE, reduced)),
        ("tp_reduce", Collective("tp", Algorithm.ALL_REDUCE, reduced)),
        ("update", once),
    )
    return [Operation(f"{name}.{step}", work, (f"{name}.{before}",)) for (before, _), (step, work) in pairwise(steps)]
