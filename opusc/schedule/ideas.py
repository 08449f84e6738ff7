"""Reorderings of an iteration that lose less to changing circuits. None changes what is computed or sent.

A reordering only lets a gradient reduction start later, or takes several reductions of one stage together. So every
operation still waits for all that it waited for; `audit.reordering` checks that of the result and knows nothing of
how it was made.

- *Hand back*: a stage passes its gradient to the stage before it ahead of its reductions, not after them. The stage
  before can go on, and the joins are needed in one run: 6 changes an iteration in place of 10 in the published jobs.
- *Hold*: the first reductions of stage 0 wait for a later layer. Its change from joins to rings is hidden behind the
  computation of as many layers as are held.
- *Batch*: the reductions of neighbouring layers are one. Fewer turns on the ring, later starts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from opusc.schedule.operations import Collective, Operation, Send, Workload
from opusc.schedule.timing import Algorithm

__all__ = ["AS_WRITTEN", "Ready", "Reordering", "reductions", "reordered"]

#: For each stage, its reductions in the order in which their gradients are there.
Ready = Sequence[Sequence[str]]

_INSIDE = ("tp", "expert_tp", "cp", "ep")
_REDUCING = (Algorithm.ALL_REDUCE, Algorithm.REDUCE_SCATTER)


@dataclass(frozen=True, slots=True)
class Reordering:
    """A reordering: whether gradients are handed back first, how many reductions stage 0 holds back, and how many
    reductions are taken together."""

    hand_back: bool = False
    hold: int = 0
    batch: int = 1

    def __str__(self) -> str:
        found = ["hand back first"] if self.hand_back else []
        found += [f"hold {self.hold}"] if self.hold else []
        found += [f"batch {self.batch}"] if self.batch > 1 else []
        return ", ".join(found) or "as written"


AS_WRITTEN = Reordering()


def reordered(workload: Workload, ready: Ready, order: Reordering) -> Workload:
    """The workload in another order."""
    if order.batch > 1:
        workload, ready = _batched(workload, ready, order.batch)
    if order.hand_back:
        workload = _handing_back(workload, ready)
    if order.hold:
        workload = _holding(workload, ready, order.hold)
    return workload


def reductions(operations: Sequence[Operation]) -> tuple[str, ...]:
    """The reductions over circuits that nothing sent between stages waits for: those that may come later."""
    sent = _ancestors(operations, [op.name for op in operations if isinstance(op.work, Send)])
    return tuple(op.name for op in operations if _reduces(op) and op.name not in sent)


def _reduces(operation: Operation) -> bool:
    work = operation.work
    return isinstance(work, Collective) and work.algorithm in _REDUCING and work.axis not in _INSIDE


def _ancestors(operations: Sequence[Operation], names: Iterable[str]) -> set[str]:
    """These operations and all that they wait for."""
    waits = {op.name: op.after for op in operations}
    found: set[str] = set()
    open_ = list(names)
    while open_:
        name = open_.pop()
        if name not in found:
            found.add(name)
            open_ += waits[name]
    return found


def _with_stage(workload: Workload, stage: int, operations: Sequence[Operation]) -> Workload:
    stages = (*workload.stages[:stage], tuple(operations), *workload.stages[stage + 1 :])
    return replace(workload, stages=stages)


def _gated(workload: Workload, stage: int, gates: Mapping[str, tuple[str, ...]]) -> Workload:
    """Let operations of a stage wait for others of it as well."""
    made = [
        replace(op, after=tuple(dict.fromkeys((*op.after, *gates[op.name])))) if op.name in gates else op
        for op in workload.stages[stage]
    ]
    return _with_stage(workload, stage, made)


def _handing_back(workload: Workload, ready: Ready) -> Workload:
    """Reductions of a stage wait until its gradients have left for the stage before it."""
    for stage, operations in enumerate(workload.stages):
        back = [op.name for op in operations if isinstance(op.work, Send) and op.work.to < stage]
        free = set(reductions(operations))
        gates = {name: tuple(back[-1:]) for name in ready[stage] if name in free}
        if back and gates:
            workload = _gated(workload, stage, gates)
    return workload


def _holding(workload: Workload, ready: Ready, count: int) -> Workload:
    """The first `count` reductions of stage 0 wait for the gradients of the next one."""
    names = list(ready[0])
    if count >= len(names):
        return workload
    operations = workload.stages[0]
    gate = next(op.after for op in operations if op.name == names[count])
    before = _ancestors(operations, gate)
    gates = {name: gate for name in names[:count] if name not in before}
    return _gated(workload, 0, gates)


def _batched(workload: Workload, ready: Ready, count: int) -> tuple[Workload, Ready]:
    """`count` reductions that become ready one after another are one, which carries the bytes of all and waits for the
    gradients of all. Only equal kinds go together, and none that another of them waits for."""
    left: list[list[str]] = []
    for stage, operations in enumerate(workload.stages):
        of = {op.name: op for op in operations}
        leader: dict[str, str] = {}
        depth = _depths(operations)
        for group in _groups([name for name in ready[stage] if name in of], of, depth, count):
            leader.update(dict.fromkeys(group, group[-1]))
        sizes: dict[str, int] = {}
        after: dict[str, list[str]] = {}
        for name, last in leader.items():
            work = of[name].work
            assert isinstance(work, Collective)
            sizes[last] = sizes.get(last, 0) + work.size
            after.setdefault(last, []).extend(of[name].after)
        made = []
        for op in operations:
            if leader.get(op.name, op.name) != op.name:
                continue
            waits = after.get(op.name, list(op.after))
            op = replace(op, after=tuple(dict.fromkeys(leader.get(name, name) for name in waits)))
            if op.name in sizes and isinstance(op.work, Collective):
                op = replace(op, work=replace(op.work, size=sizes[op.name]))
            made.append(op)
        workload = _with_stage(workload, stage, made)
        left.append([name for name in ready[stage] if leader.get(name, name) == name])
    return workload, left


def _groups(names: Sequence[str], of: Mapping[str, Operation], depth: Mapping[str, int], count: int) -> list[list[str]]:
    found: list[list[str]] = []
    for name in names:
        work = of[name].work
        assert isinstance(work, Collective)
        last = found[-1] if found else []
        if last and len(last) < count and _kind(of[last[-1]]) == _kind(of[name]) and _apart(last, name, of, depth):
            last.append(name)
        else:
            found.append([name])
    return [group for group in found if len(group) > 1]


def _kind(operation: Operation) -> tuple[object, ...]:
    work = operation.work
    assert isinstance(work, Collective)
    # The tables of embedding and head are reduced over the other axis next: they stay on their own.
    return work.axis, work.algorithm, work.size


def _depths(operations: Sequence[Operation]) -> dict[str, int]:
    """The length of the longest chain that each operation waits for: whatever it waits for is less deep."""
    left = {op.name: len(op.after) for op in operations}
    followers: dict[str, list[str]] = {}
    for op in operations:
        for name in op.after:
            followers.setdefault(name, []).append(op.name)
    depth = {name: 0 for name, count in left.items() if not count}
    open_ = list(depth)
    while open_:
        name = open_.pop()
        for follower in followers.get(name, ()):
            depth[follower] = max(depth.get(follower, 0), depth[name] + 1)
            left[follower] -= 1
            if not left[follower]:
                open_.append(follower)
    return depth


def _apart(group: Sequence[str], name: str, of: Mapping[str, Operation], depth: Mapping[str, int]) -> bool:
    """Whether the reduction waits for none of the group, so that they can be one."""
    shallowest = min(depth[other] for other in group)
    found: set[str] = set()
    open_ = [name]
    while open_:
        for other in of[open_.pop()].after:
            if other in group:
                return False
            if depth[other] > shallowest and other not in found:
                found.add(other)
                open_.append(other)
    return True
