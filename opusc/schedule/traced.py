"""From a measured trace to operations: the order of traffic as measured, times given or fitted.

A trace (`opusc/model/trace.py`) says in which order each rank ran collectives of which phase, and how many; not how
long they took or what lay between. So:

- The compute of a stage is stated in the program, or is what the time model gives; it is spread evenly over the gaps
  between the runs of traffic.
- A collective of a phase takes the mean time of those that the model has for that phase and stage.
- Pipeline traffic is the sends and receives of the job's pipeline, in their order, as far as they go to the pair of
  stages that the line names.
- Nothing overlaps: a rank runs its lines one after another.

A trace may hold several iterations; they are played as one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opusc.diagnostics import Diagnostics, Label
from opusc.model.measured import Trace, TraceRun
from opusc.plan.plan import Plan
from opusc.schedule.operations import (
    COMPUTE,
    Busy,
    Collective,
    Operation,
    Program,
    Receive,
    Send,
    Timed,
    Workload,
)
from opusc.source import Span

__all__ = ["Traced", "traced"]


@dataclass(frozen=True, slots=True)
class Traced:
    """The operations, how many iterations they are, and the line that each operation comes from."""

    workload: Workload
    iterations: int
    lines: Mapping[tuple[int, str], Span]


def traced(plan: Plan, trace: Trace, model: Workload, program: Program, sink: Diagnostics) -> Traced | None:
    """`model` and `program` are what the time model makes of the job; None when the trace is not of this job."""
    before = len(sink)
    stages = len(model.stages)
    runs = _by_stage(plan, trace, sink)
    if trace.compute is not None and len(trace.compute) != stages:
        sink.error(
            "OPUS435",
            f"`compute` has {len(trace.compute)} times for {stages} stages",
            plan.model.job.at("schedule"),
            "one time for each stage",
        )
    if len(sink) > before or runs is None:
        return None
    counts = [_counts(stage, model.stages[stage], runs[stage], sink) for stage in range(stages)]
    if len(sink) > before:
        return None
    iterations = {count for found in counts for count in found.values()}
    if len(iterations) != 1:
        last = runs[next(s for s, found in enumerate(counts) if set(found.values()) != {max(iterations)})][-1]
        sink.error(
            "OPUS434",
            f"the trace ends in different iterations: {', '.join(map(str, sorted(iterations)))} of them in one",
            last.span,
            "the last line of this stage",
            notes=["iterations are counted by the pipeline traffic, which the job's micro-batches determine"],
        )
        return None
    [repeats] = iterations
    lines: dict[tuple[int, str], Span] = {}
    made = []
    for stage in range(stages):
        times = [
            d for k, d in zip(program.stages[stage].kinds, program.stages[stage].durations, strict=True) if k == COMPUTE
        ]
        compute = sum(times) if trace.compute is None else trace.compute[stage]
        operations = _stage(stage, model, program, runs[stage], compute, repeats, lines, sink)
        made.append(tuple(operations))
    if len(sink) > before:
        return None
    return Traced(Workload(model.name, model.degrees, tuple(made)), repeats, lines)


# --- which lines are whose -----------------------------------------------------------------------


def _by_stage(plan: Plan, trace: Trace, sink: Diagnostics) -> list[tuple[TraceRun, ...]] | None:
    """The runs of one rank of each stage; all ranks of a stage must agree."""
    by_rank: dict[int, list[TraceRun]] = {}
    for run in trace.runs:
        by_rank.setdefault(run.rank, []).append(run)
    found: dict[int, tuple[TraceRun, ...]] = {}
    for rank, runs in by_rank.items():
        if rank >= plan.world:
            sink.error(
                "OPUS434", f"the trace has rank {rank}, the job has {plan.world}", runs[0].span, "no such rank",
                notes=[f"ranks are 0..{plan.world - 1}"],
            )  # fmt: skip
            return None
        stage = int(plan.stage_of_rank[rank])
        first = found.setdefault(stage, tuple(runs))
        for mine, theirs in zip(runs, first, strict=False):
            if (mine.phase, mine.backend // 10, mine.length) != (theirs.phase, theirs.backend // 10, theirs.length):
                _disagree(mine, theirs, stage, sink)
                return None
        if len(runs) != len(first):
            _disagree(runs[-1], first[-1], stage, sink)
            return None
    missing = next((s for s in range(plan.model.job.parallelism.pp) if s not in found), None)
    if missing is not None:
        sink.error(
            "OPUS434", f"the trace has no rank of stage {missing}", trace.span, "named here",
            notes=["it needs at least one rank of every stage"],
        )  # fmt: skip
        return None
    return [found[stage] for stage in range(len(found))]


def _disagree(mine: TraceRun, theirs: TraceRun, stage: int, sink: Diagnostics) -> None:
    sink.error(
        "OPUS434",
        f"ranks {theirs.rank} and {mine.rank} of stage {stage} ran different traffic",
        mine.span,
        f"rank {mine.rank}: {mine.phase.upper()}, {mine.length}",
        secondary=[Label(theirs.span, f"rank {theirs.rank}: {theirs.phase.upper()}, {theirs.length}")],
        notes=["one rank stands for all of its stage"],
    )


# --- iterations ----------------------------------------------------------------------------------


def _counts(stage: int, model: Sequence[Operation], runs: Sequence[TraceRun], sink: Diagnostics) -> dict[str, int]:
    """How many iterations each pair of stages and each phase without pairs says there are."""
    expected = Counter(_peer(op) for op in model if isinstance(op.work, Send | Receive) and op.work.phase == "pp")
    phases = {op.work.axis for op in model if isinstance(op.work, Collective)}
    found: Counter[int] = Counter()
    last: dict[int, TraceRun] = {}
    for run in runs:
        if run.phase != "pp":
            if run.phase not in phases:
                _foreign(stage, run, phases, sink)
                return {}
            continue
        peer = _pair(stage, run, expected, sink)
        if peer is None:
            return {}
        found[peer] += run.length
        last[peer] = run
    for peer, count in expected.items():
        if not found[peer] or found[peer] % count:
            sink.error(
                "OPUS434",
                f"stage {stage} exchanged {found[peer]} messages with stage {peer}, an iteration has {count}",
                last[peer].span if peer in last else runs[-1].span,
                "the last of them" if peer in last else "the last line of this stage",
                notes=["each micro-batch passes once there and once back through each chunk"],
                help="state the job's `microbatches` and `pipeline` as they were when the trace was taken",
            )
            return {}
    unseen = sorted(phases - {run.phase for run in runs})
    if unseen:
        sink.error(
            "OPUS434", f"the trace shows no traffic of phase `{unseen[0]}` in stage {stage}", runs[-1].span,
            "the last line of this stage", notes=["the job, as it is described, has such traffic in every iteration"],
        )  # fmt: skip
        return {}
    return {f"pp {peer}": found[peer] // count for peer, count in expected.items()} or {"": 1}


def _foreign(stage: int, run: TraceRun, phases: set[str], sink: Diagnostics) -> None:
    known = ", ".join(f"`{name}`" for name in sorted(phases | {"pp"}))
    sink.error(
        "OPUS434",
        f"stage {stage} has no traffic of a phase `{run.phase}` between its circuits",
        run.span,
        "this line",
        notes=[f"the job has traffic of {known}"],
    )


def _peer(operation: Operation) -> int:
    work = operation.work
    return work.to if isinstance(work, Send) else work.source if isinstance(work, Receive) else -1


def _pair(stage: int, run: TraceRun, expected: Mapping[int, int], sink: Diagnostics) -> int | None:
    """The stage at the other end: pair g is stages g - 1 and g; a number up to 10 means the only neighbour."""
    if run.backend > 10:
        high = run.backend // 10
        peer = high - 1 if stage == high else high if stage == high - 1 else -1
    else:
        peer = next(iter(expected), -1) if len(expected) == 1 else -1
    if peer in expected:
        return peer
    sink.error(
        "OPUS434",
        f"stage {stage} is at no end of communicator {run.backend}",
        run.span,
        "this line",
        notes=["a communicator above 10 is ten times the higher of its two stages (opusfabric/Opus)"],
    )
    return None


# --- operations ----------------------------------------------------------------------------------


def _messages(model: Sequence[Operation], repeats: int) -> dict[int, Iterator[Operation]]:
    """The sends and receives of the pipeline by the other stage, iteration after iteration. What a stage passes on it
    has received before."""
    received = {op.name for op in model if isinstance(op.work, Receive)}
    queues: dict[int, list[Operation]] = defaultdict(list)
    for repeat in range(repeats):
        for op in model:
            work = op.work
            if isinstance(work, Send) and work.phase == "pp":
                after = tuple(f"{repeat}: {name}" for name in _sources(work.lands) if name in received)
                lands = f"{repeat}: {work.lands}"
                queues[work.to].append(Operation(f"{repeat}: {op.name}", Send(work.to, work.size, lands), after[:1]))
            elif isinstance(work, Receive) and work.phase == "pp":
                queues[work.source].append(Operation(f"{repeat}: {op.name}", work))
    return {peer: iter(queue) for peer, queue in queues.items()}


def _sources(lands: str) -> Iterator[str]:
    """What a stage needs before it can send what lands as this (names of iteration.py): the same of its own place, or,
    where the pipeline turns around, the activation."""
    kind, batch, _, place = lands.split()
    own = int(place) + (-1 if kind == "activation" else 1)
    yield f"{kind} {batch} into {own}"
    if kind == "gradient":
        yield f"activation {batch} into {own}"


def _stage(
    stage: int,
    model: Workload,
    program: Program,
    runs: Sequence[TraceRun],
    compute: int,
    repeats: int,
    lines: dict[tuple[int, str], Span],
    sink: Diagnostics,
) -> Iterator[Operation]:
    messages = _messages(model.stages[stage], repeats)
    expected = dict.fromkeys(messages, 1)
    means = _means(stage, model, program, runs, repeats)
    gaps, before = len(runs) + 1, ""

    def after() -> tuple[str, ...]:
        return (before,) if before else ()

    def gap(number: int) -> Operation:
        share = compute * repeats * (number + 1) // gaps - compute * repeats * number // gaps
        return Operation(f"compute {number}", Busy(share), after())

    for number, run in enumerate(runs):
        operation = gap(number)
        yield operation
        before = operation.name
        for turn in range(run.length):
            if run.phase == "pp":
                peer = _pair(stage, run, expected, sink)
                assert peer is not None, "checked when messages were counted"
                message = next(messages[peer])
                name, work, needs = message.name, message.work, message.after
            else:
                name, work, needs = f"{run.phase} {number}.{turn}", Timed(run.phase, means[run.phase]), ()
            lines[stage, name] = run.span
            if isinstance(work, Receive):
                # Whoever follows waits for both, since a receive waits for nobody but its sender.
                yield Operation(name, work)
                yield Operation(f"{name} taken", Timed("", 0), (name, *after()))
                before = f"{name} taken"
                lines[stage, before] = run.span
            else:
                yield Operation(name, work, (*after(), *needs))
                before = name
    yield gap(len(runs))


def _means(stage: int, model: Workload, program: Program, runs: Sequence[TraceRun], repeats: int) -> dict[str, int]:
    """What a collective of each phase takes: the model's time for all of an iteration over the number traced."""
    whole: Counter[str] = Counter()
    for op, duration in zip(model.stages[stage], program.stages[stage].durations, strict=True):
        if isinstance(op.work, Collective):
            whole[op.work.axis] += duration
    traced = Counter({run.phase: 0 for run in runs})
    for run in runs:
        traced[run.phase] += run.length
    return {phase: whole[phase] * repeats // count for phase, count in traced.items() if phase != "pp"}
