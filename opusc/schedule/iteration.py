"""The operations of one iteration of a job in general: micro-batches, pipelines, sharding, experts.

Every stage works through its blocks in the order of its pipeline (`pipelines.py`). A block is made of units, a unit
of pieces (`blocks.py`); compute between two pieces of traffic is one operation. Gradients add up over the
micro-batches and are reduced after the last one, unit by unit, while the backward pass goes on below. Where data
parallelism shards the parameters, a unit's are gathered before each of its passes, the next unit's while this one
computes; where it shards the gradients, they are reduced after every micro-batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from opusc.schedule.blocks import Piece, Unit
from opusc.schedule.operations import Busy, Collective, Operation, Receive, Send, Workload
from opusc.schedule.pipelines import Block
from opusc.schedule.timing import Accelerator, Algorithm, compute_time

__all__ = ["Layout", "Reduction", "iteration"]


@dataclass(frozen=True, slots=True)
class Reduction:
    """Where the gradients of some weights meet: among `members` over phase `over`, which sharding cuts them by, then
    over `replicas` of that over phase `copies`. An empty name where there is only one."""

    over: str
    members: int
    copies: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """What an iteration is made of, beside the units.

    `orders[s]` are the blocks of stage s; `chunks[s][c]` its units; `activation` the bytes that pass between stages.
    `dense` and `sparse` say where gradients of weights and of experts' weights are reduced. `tied` is the phase that
    joins the first and the last stage when they share a table, else "". `element` is the bytes of an element.
    """

    name: str
    degrees: dict[str, int]
    orders: tuple[tuple[Block, ...], ...]
    chunks: tuple[tuple[tuple[Unit, ...], ...], ...]
    activation: int
    sharding: str
    dense: Reduction
    sparse: Reduction
    element: int
    tied: str = ""

    @property
    def stages(self) -> int:
        return len(self.orders)


def iteration(layout: Layout, gpu: Accelerator) -> Workload:
    """The operations of every stage. Of several that are ready the first listed runs: what passes between stages,
    what compute waits for, reductions; blocks, updates."""
    stages = tuple(_Stage(layout, stage, gpu).operations() for stage in range(layout.stages))
    return Workload(layout.name, layout.degrees, stages)


@dataclass(frozen=True, slots=True)
class _Pass:
    """A pass of a block through one unit: the first or the last of the block?"""

    block: Block
    unit: Unit
    first: bool
    last: bool

    @property
    def title(self) -> str:
        return f"{_title(self.block)} {self.unit.name}"


class _Stage:
    """Collects the operations of one stage, block after block.

    `open` is compute (ps) that is no operation yet, of the units `opened`; `waits` is what it waits for; `tail` the
    last operation of the blocks so far, `ends[b]` that of block b.
    """

    def __init__(self, layout: Layout, stage: int, gpu: Accelerator) -> None:
        self.layout, self.stage, self.gpu = layout, stage, gpu
        self.order, self.chunks = layout.orders[stage], layout.chunks[stage]
        self.sharded = layout.sharding == "full"
        self.final = max(block.batch for block in self.order)
        self.between: list[Operation] = []  # sends and receives
        self.needed: list[Operation] = []  # traffic that compute waits for
        self.blocks: list[Operation] = []
        self.reductions: list[Operation] = []
        self.updates: list[Operation] = []
        self.tail, self.ends = "", dict[Block, str]()
        self.open, self.opened, self.waits = 0, list[_Pass](), list[str]()
        self.names: dict[str, int] = {}
        self.reduced: dict[str, list[str]] = {}

    def operations(self) -> tuple[Operation, ...]:
        started = ""  # the operation after which the pass before this one could begin
        before: Block | None = None
        for block in self.order:
            kept = not block.forward and before == Block(True, block.batch, block.chunk)
            for made in self._passes(block):
                gathered: list[str] = []
                if self.sharded and made.unit.weights and not (kept and made.first):
                    self._flush()
                    gathered = self._gathers(made, (started,) if started else ())
                started = self.tail
                self.waits += gathered
                if made.first:
                    self.waits += self._receive(block)
                self._unit(made)
                if made.last:
                    self._end(block)
            before = block
        return (*self.between, *self.needed, *self.reductions, *self.blocks, *self.updates)

    # --- blocks

    def _passes(self, block: Block) -> Iterator[_Pass]:
        units = self.chunks[block.chunk] or (_NOTHING,)
        order = units if block.forward else units[::-1]
        for at, unit in enumerate(order):
            yield _Pass(block, unit, at == 0, at + 1 == len(order))

    def _unit(self, made: _Pass) -> None:
        """Compute and traffic of one pass; then what its gradients set off."""
        for piece in made.unit.forward if made.block.forward else made.unit.backward:
            traffic = piece.before or piece.beside
            if traffic is not None:
                start = self._flush()
                name = self._fresh(f"{made.title} {traffic.axis}")
                self.needed.append(Operation(name, traffic, (start,) if start else ()))
                if piece.beside is not None:
                    self.opened.append(made)
                    self.open += piece.duration
                    self._flush()
                self.waits.append(name)
            if piece.beside is None:
                self.opened.append(made)
                self.open += piece.duration
        if not made.block.forward and made.unit.weights:
            self._gradients(made)

    def _flush(self, *, always: bool = False) -> str:
        """Make one operation of the compute collected; gives the last operation of the blocks."""
        if self.open or self.waits or always:
            after = tuple(dict.fromkeys(([self.tail] if self.tail else []) + self.waits))
            self.tail = self._fresh(self._opened())
            self.blocks.append(Operation(self.tail, Busy(self.open), after))
            self.open, self.waits = 0, []
        self.opened = []
        return self.tail

    def _opened(self) -> str:
        """`forward 3`, `backward 3 layer 5`, `backward 3 layer 7 to layer 4`."""
        if not self.opened:
            return "wait"
        first, last = self.opened[0], self.opened[-1]
        if first.first and last.last:
            return _title(first.block)
        return first.title if first.unit is last.unit else f"{first.title} to {last.unit.name}"

    def _fresh(self, name: str) -> str:
        count = self.names[name] = self.names.get(name, 0) + 1
        return name if count == 1 else f"{name} ({count})"

    # --- between stages

    def _receive(self, block: Block) -> tuple[str, ...]:
        """What a block waits for: the activation from before, or the gradient from behind."""
        source = self._place(block) + (-1 if block.forward else 1)
        if not 0 <= source < self._depth():
            return ()
        if source % self.layout.stages != self.stage:
            name = _passed(block, self._place(block))
            self.between.append(Operation(name, Receive(source % self.layout.stages)))
            return (name,)
        return (self.ends[Block(block.forward, block.batch, source // self.layout.stages)],)

    def _end(self, block: Block) -> None:
        self.ends[block] = end = self._flush(always=not self.chunks[block.chunk])
        target = self._place(block) + (1 if block.forward else -1)
        to = target % self.layout.stages
        if 0 <= target < self._depth() and to != self.stage:
            lands = _passed(block, target)
            self.between.append(Operation(f"send {lands}", Send(to, self.layout.activation, lands), (end,)))

    def _place(self, block: Block) -> int:
        """The virtual stage: where in the whole pipeline this chunk is."""
        return block.chunk * self.layout.stages + self.stage

    def _depth(self) -> int:
        return self.layout.stages * len(self.chunks)

    # --- data parallelism

    def _gathers(self, made: _Pass, after: tuple[str, ...]) -> list[str]:
        found = []
        for kind, where, weights in self._kinds(made.unit):
            if where.over and weights:
                size = weights * self.layout.element // where.members
                name = f"{made.title} gather{kind}"
                self.needed.append(Operation(name, Collective(where.over, Algorithm.ALL_GATHER, size), after))
                found.append(name)
        return found

    def _kinds(self, unit: Unit) -> tuple[tuple[str, Reduction, int], ...]:
        dense, sparse = self.layout.dense, self.layout.sparse
        if dense == sparse:
            return (("", dense, unit.weights + unit.expert_weights),)
        return (("", dense, unit.weights), (" experts", sparse, unit.expert_weights))

    def _gradients(self, made: _Pass) -> None:
        """The gradients of a unit are there: reduce them where they have to be by now."""
        last = made.block.batch == self.final
        every = self.layout.sharding in ("gradients", "full")
        if not last and not every:
            return
        start = self._flush()
        for kind, where, weights in self._kinds(made.unit):
            key = f"{made.unit.name}{kind}"
            if not weights:
                continue
            after: tuple[str, ...] = (start,)
            size = weights * self.layout.element
            if where.over:
                whole = self.layout.sharding == "none" and not where.copies
                algorithm = Algorithm.ALL_REDUCE if whole else Algorithm.REDUCE_SCATTER
                name = f"{made.title} reduce{kind}"
                self.reductions.append(Operation(name, Collective(where.over, algorithm, size), after))
                after = (name,)
                self.reduced.setdefault(key, []).append(name)
            if last:
                self._update(key, where, weights, tuple(self.reduced.get(key, after)))

    def _update(self, key: str, where: Reduction, weights: int, after: tuple[str, ...]) -> None:
        """After the last reduction: the replicas meet, the optimizer steps, the parameters come back."""
        layout = self.layout
        kept = weights // where.members if layout.sharding != "none" or where.copies else weights
        if where.copies:
            name = f"{key} replicas"
            work = Collective(where.copies, Algorithm.ALL_REDUCE, kept * layout.element)
            self.reductions.append(Operation(name, work, after))
            after = (name,)
        if layout.tied and key in ("embedding", "head") and layout.stages > 1:
            after = self._tie(key, kept * layout.element, after)
        if kept < weights and layout.sharding == "none":  # the gradients come back, and everyone steps
            after = self._back(key, where, kept, after)
            kept = weights
        time = 2 * compute_time(kept, kept * layout.element, self.gpu)
        self.updates.append(Operation(f"{key} update", Busy(time), after))
        if where.over and layout.sharding in ("optimizer", "gradients"):
            self._back(key, where, kept, (f"{key} update",))

    def _back(self, key: str, where: Reduction, kept: int, after: tuple[str, ...]) -> tuple[str, ...]:
        name = f"{key} gather"
        work = Collective(where.over, Algorithm.ALL_GATHER, kept * self.layout.element)
        self.reductions.append(Operation(name, work, after))
        return (name,)

    def _tie(self, key: str, size: int, after: tuple[str, ...]) -> tuple[str, ...]:
        """First and last stage exchange the gradients of the table that they share, and add them."""
        other = self.layout.stages - 1 if self.stage == 0 else 0
        self.between.append(Operation(f"{key} tied", Receive(other, self.layout.tied)))
        lands = f"{'head' if key == 'embedding' else 'embedding'} tied"
        self.between.append(Operation(f"{key} tie", Send(other, size, lands, self.layout.tied), after))
        return (*after, f"{key} tied")


_NOTHING = Unit("nothing", (Piece(0),), (Piece(0),), 0)


def _title(block: Block) -> str:
    number = f"{block.batch}" + (f" chunk {block.chunk}" if block.chunk else "")
    return f"{'forward' if block.forward else 'backward'} {number}"


def _passed(block: Block, place: int) -> str:
    return f"{'activation' if block.forward else 'gradient'} {block.batch} into {place}"
