"""From a job's operations to Chakra traces: who computes what, talks to whom over which communicator, in which order.

The operations are those that `opusc simulate` times (docs/time-model.md). One list stands for all ranks of a stage;
ranks differ only in their communicators and in the rank at the other end of a send. An operation that takes no time
is left out and what waits for it waits for what it waits for: the simulator does not wake what waits for such a node.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opusc.backends import chakra
from opusc.backends.chakra import Kind, Node, Value
from opusc.plan.plan import Int32
from opusc.schedule.job import Setting
from opusc.schedule.operations import Busy, Collective, Compute, Operation, Receive, Send
from opusc.schedule.policy import ON_DEMAND
from opusc.schedule.simulation import simulate
from opusc.schedule.timing import Accelerator

__all__ = [
    "Communicators",
    "Step",
    "Steps",
    "Trace",
    "Writer",
    "communicators_of",
    "finished",
    "kept",
    "nodes",
    "provisioning",
    "steps_of",
    "trace",
]

_SECOND = 10**12
_GPU: tuple[str, Value] = ("is_cpu_op", False)


@dataclass(frozen=True, eq=False)
class Communicators:
    """`members[i]` are the ranks of communicator i + 1 in ring order; `of[axis][r]` the communicator of rank r."""

    members: tuple[tuple[int, ...], ...]
    of: Mapping[str, Int32]


@dataclass(frozen=True, slots=True)
class Step:
    """A node of all ranks of a stage. `axis`: its communicator is that of the rank on this axis, or empty. `away`: what
    to add to the rank for the other end of a send or receive."""

    number: int
    name: str
    kind: Kind
    after: tuple[int, ...]
    fixed: tuple[tuple[str, Value], ...]
    axis: str = ""
    away: int = 0


#: The steps of each stage.
Steps = tuple[tuple[Step, ...], ...]


@dataclass(frozen=True)
class Trace:
    """One file as text, a line for each node: what written and projected traces are compared by."""

    title: str
    rank: int
    nodes: tuple[str, ...]


# --- from operations -----------------------------------------------------------------------------


def kept(operations: Sequence[Operation], keep: Callable[[Operation], bool]) -> list[Operation]:
    """The operations that are kept; what waits for another one waits for what that one waits for."""
    table = {op.name: op for op in operations}
    known: dict[str, tuple[str, ...]] = {}

    def before(name: str) -> tuple[str, ...]:
        """The kept operations that stand for `name` in an `after`."""
        waiting = [name]
        while waiting:
            at = waiting[-1]
            op = table[at]
            missing = [] if keep(op) else [n for n in op.after if n not in known]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            known[at] = (at,) if keep(op) else tuple(dict.fromkeys(n for a in op.after for n in known[a]))
        return known[name]

    found = []
    for op in operations:
        if keep(op):
            after = tuple(dict.fromkeys(n for a in op.after for n in (known.get(a) or before(a))))
            found.append(Operation(op.name, op.work, after))
    return found


def steps_of(
    stages: Sequence[Sequence[Operation]], setting: Setting, away: Callable[[int, int], int], first: int = 0
) -> Steps:
    """Nodes from operations. `away(a, b)` is what to add to a rank of stage a for its peer in stage b. Numbers follow
    the order of the operations, which says what starts first; messages are told apart by the receive that they
    complete."""
    numbers = [{op.name: at for at, op in enumerate(ops, first)} for ops in stages]
    sizes = {
        (op.work.to, op.work.lands): op.work.size for ops in stages for op in ops if isinstance(op.work, Send)
    }
    found: list[tuple[Step, ...]] = []
    for stage, ops in enumerate(stages):
        table = numbers[stage]
        made = []
        for op in ops:
            number, after = table[op.name], tuple(table[name] for name in op.after)
            match op.work:
                case Collective(axis=axis, algorithm=algorithm, size=size):
                    fixed = (_GPU, ("comm_type", chakra.COMM_TYPES[algorithm.value]), ("comm_size", size))
                    made.append(Step(number, op.name, Kind.COLLECTIVE, after, fixed, axis))
                case Send(to=to, size=size, lands=lands):
                    fixed = (_GPU, ("comm_size", size), ("comm_tag", numbers[to][lands]))
                    made.append(Step(number, op.name, Kind.SEND, after, fixed, "", away(stage, to)))
                case Receive(source=source):
                    fixed = (_GPU, ("comm_size", sizes[stage, op.name]), ("comm_tag", number))
                    made.append(Step(number, op.name, Kind.RECEIVE, after, fixed, "", away(stage, source)))
                case Compute() | Busy() as work:
                    made.append(Step(number, op.name, Kind.COMPUTE, after, (_GPU, *_roofline(work, setting.gpu))))
        found.append(tuple(made))
    return tuple(found)


def _roofline(work: Compute | Busy, gpu: Accelerator) -> tuple[tuple[str, Value], ...]:
    """The simulator takes flops / min(peak, memory * flops / bytes). A time is stated as the flops that the peak does
    in it, on one byte. Without flops only bytes count, and one flop keeps the quotient from being 0 / 0."""
    if isinstance(work, Compute) and gpu.efficiency == 1:
        return ("num_ops", max(work.flops, 1)), ("tensor_size", work.size or 1)
    if isinstance(work, Busy):
        time = work.duration * gpu.peak
    else:
        longer = max(work.flops * gpu.memory_rate, work.size * gpu.peak) * _SECOND * gpu.efficiency.denominator
        time = longer // (gpu.memory_rate * gpu.efficiency.numerator)
    return ("num_ops", max(time // _SECOND, 1)), ("tensor_size", 1)


# --- ranks ---------------------------------------------------------------------------------------


def _attributes(step: Step, rank: int, communicators: Communicators) -> tuple[tuple[str, Value], ...]:
    """Those that differ from rank to rank."""
    if step.axis:
        return (("pg_name", str(int(communicators.of[step.axis][rank]))),)
    if step.kind is Kind.SEND:
        return ("comm_src", rank), ("comm_dst", rank + step.away)
    if step.kind is Kind.RECEIVE:
        return ("comm_src", rank + step.away), ("comm_dst", rank)
    return ()


def nodes(steps: Sequence[Step], rank: int, communicators: Communicators) -> Iterator[Node]:
    """The nodes of one rank."""
    for step in steps:
        own = _attributes(step, rank, communicators)
        yield Node(step.number, step.name, step.kind, step.after, step.fixed + own)


class Writer:
    """Files of the ranks of one stage. What is the same for all of them is encoded once."""

    def __init__(self, steps: Sequence[Step], communicators: Communicators) -> None:
        self.communicators = communicators
        self.pieces: list[bytes | tuple[Step, bytes]] = []
        run = [chakra.metadata()]
        for step in steps:
            head = chakra.head(step.number, step.name, step.kind, step.after)
            head += b"".join(chakra.attribute(name, value) for name, value in step.fixed)
            if step.kind is Kind.COMPUTE:
                run.append(chakra.frame(head))
            else:
                self.pieces += [b"".join(run), (step, head)]
                run = []
        self.pieces.append(b"".join(run))
        self.known: dict[tuple[int, int], bytes] = {}  # node and communicator

    def file(self, rank: int) -> Iterator[bytes]:
        """The trace of one rank."""
        own = {axis: int(column[rank]) for axis, column in self.communicators.of.items()}
        out: list[bytes] = []
        for piece in self.pieces:
            if isinstance(piece, bytes):
                out.append(piece)
                continue
            step, head = piece
            key = (step.number, own[step.axis]) if step.axis else None
            made = self.known.get(key) if key else None
            if made is None:
                own_part = _attributes(step, rank, self.communicators)
                made = chakra.frame(head + b"".join(chakra.attribute(name, value) for name, value in own_part))
                if key:
                    self.known[key] = made
            out.append(made)
        yield b"".join(out)


def trace(title: str, rank: int, found: Iterator[Node], known: dict[Node, str]) -> Trace:
    """A file as lines; `known` keeps those of nodes that ranks share."""
    lines = []
    for node in found:
        line = known.get(node)
        if line is None:
            said = " ".join(f"{name}={value}" for name, value in sorted(node.attributes, key=lambda pair: pair[0]))
            after = ",".join(map(str, node.after))
            line = known[node] = f"{node.number} {node.kind.name} `{node.name}` after {after or '-'}: {said}"
        lines.append(line)
    return Trace(title, rank, tuple(lines))


# --- provisioning --------------------------------------------------------------------------------

_INSIDE, _RING = -2, -1


def finished(setting: Setting, steps: Steps, inside: frozenset[str], dark: int) -> list[list[tuple[int, int]]]:
    """For each stage its communication in the order in which it ends, on demand: (kind, offset of the peer).

    Kinds are -2 inside a tensor group and -1 over the ring, as the simulator's log has them.
    """
    result = simulate(setting.program, ON_DEMAND, dark, record=True)
    ends: list[dict[str, tuple[int, int]]] = [{} for _ in steps]
    sends = [{op.name: op.work for op in ops if isinstance(op.work, Send)} for ops in setting.workload.stages]
    for stage, lane in enumerate(result.timelines):
        for interval in lane:
            if interval.what:
                at = (interval.end, interval.start)
                ends[stage][interval.what] = max(at, ends[stage].get(interval.what, at))
    for stage, messages in enumerate(sends):
        for name, work in messages.items():
            if name in ends[stage]:
                ends[work.to][work.lands] = ends[stage][name]
    found = []
    for stage, own in enumerate(steps):
        traffic = [step for step in own if step.kind is not Kind.COMPUTE]
        traffic.sort(key=lambda step: (*ends[stage].get(step.name, (0, 0)), step.number))
        found.append([(_kind(step, inside), step.away) for step in traffic])
    return found


def _kind(step: Step, inside: frozenset[str]) -> int:
    if step.kind is Kind.COLLECTIVE:
        return _INSIDE if step.axis in inside else _RING
    return 0


def provisioning(order: Sequence[tuple[int, int]], rank: int) -> dict[int, list[int]]:
    """When a rank asks early, by what it asks for: -1 is its ring, any other number the peer of a send or receive.

    The simulator counts communication as it ends, from -1. After the last of a run of equal traffic it asks for what
    comes next. The rule is that of the published tool, which takes the first request at number 0 and does not see the
    very first communication.
    """
    changes: dict[int, int] = {}
    last_group, last = None, 0
    for number, (kind, away) in enumerate(order, -1):
        if kind == _INSIDE or number == -1:
            continue
        group = _RING if kind == _RING else rank + away
        if group != last_group:
            changes[last] = group
            last_group = group
        last = number
    found: dict[int, list[int]] = {}
    for number, group in changes.items():
        found.setdefault(group, []).append(number)
    return {group: found[group] for group in sorted(found)}


def communicators_of(lists: Sequence[tuple[str, np.ndarray]], world: int) -> Communicators:
    """Numbers from 1 for the groups of each axis, whose rows are the members in ring order."""
    members: list[tuple[int, ...]] = []
    of: dict[str, Int32] = {}
    for axis, rows in lists:
        column = np.zeros(world, dtype=np.int32)
        column[rows] = np.arange(len(members) + 1, len(members) + 1 + len(rows), dtype=np.int32)[:, None]
        members += map(tuple, rows.tolist())
        of[axis] = column
    return Communicators(tuple(members), of)
