"""From a proved plan to what the simulation needs: operations, rates, the delay of a change.

Refuses what the time model does not know (OPUS430) and demands the numbers it needs (OPUS431), each with the
place in the program: an estimate that leaves something out without a word would be worse than none.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from opusc.diagnostics import Diagnostics
from opusc.model.entities import Job, NeuralNetwork, PipelineKind
from opusc.plan.plan import Plan, PlannedPhase
from opusc.schedule.operations import Program, Workload, lower
from opusc.schedule.timing import Accelerator, Rates
from opusc.schedule.transformer import Transformer, workload
from opusc.source import Span

__all__ = ["Setting", "dark", "setting"]

_MOST_LAYERS = 20_000  # a million operations: seconds for each simulation
_LEAST = 8  # bit/s: a byte a second


@dataclass(frozen=True)
class Setting:
    """What to simulate. `program` has the durations in picoseconds."""

    shape: Transformer
    workload: Workload
    gpu: Accelerator
    rates: Rates

    @property
    def program(self) -> Program:
        return lower(self.workload, self.gpu, self.rates)


def setting(plan: Plan, sink: Diagnostics, element: int = 1) -> Setting | None:
    """The operations and rates of the plan's job; None when the sink says why not.

    `element` is the bytes of an element of every tensor: 1 as the published traces count.
    """
    before = len(sink)
    job = plan.model.job
    for what, span in _unknown(plan):
        sink.error(
            "OPUS430",
            f"the time model does not know {what}",
            span,
            notes=["it simulates a transformer with tp, dp and pp, one micro-batch, a ring and a chain"],
            help="the circuits are proved all the same: `opusc compile` needs no time model",
        )
    if len(sink) > before:
        return None
    numbers = _numbers(job, sink)
    if len(sink) > before or numbers is None:
        return None
    p, net = job.parallelism, numbers
    shape = Transformer(
        tokens=_known(job.batch) // p.dp * _known(net.sequence),
        width=_known(net.width),
        feed_forward=_known(net.feed_forward),
        heads=_known(net.heads),
        kv_heads=net.kv_heads or _known(net.heads),
        vocabulary=_known(net.vocabulary),
        gated=bool(net.gated),
        tp=p.tp,
        dp=p.dp,
        element=element,
    )
    cluster = job.fabric.cluster
    assert cluster.gpu is not None
    gpu = Accelerator(_known(cluster.gpu.peak), _known(cluster.gpu.memory_bandwidth) // 8)
    port = cluster.rail_nic.rate
    scale_up = max(cluster.scale_up or 0, _LEAST)  # used by tp only, which demands it
    rates = Rates(scale_up // 8, port * _copies(plan, "dp") // 8, port * _copies(plan, "pp") // 8)
    layers = job.stages or (net.layers // p.pp,) * p.pp
    return Setting(shape, workload(job.name, shape, layers), gpu, rates)


def dark(plan: Plan, sink: Diagnostics) -> int | None:
    """Picoseconds for which a changed circuit is dark: settle, relock, and control where it is stated, of the slowest
    switch, since a change waits for all its rails. None when a switch does not say, which the sink reports."""
    kinds = list(dict.fromkeys(switch.kind for switch in plan.switches))
    fabric = plan.model.fabric
    for kind in kinds:
        missing = [name for name in ("settle", "relock") if getattr(kind, name) is None]
        if missing:
            _demand(
                sink,
                " and ".join(f"`{name}`" for name in missing) + f" of switch `{kind.name}`",
                fabric.at("switch"),
                "a change takes settle + relock + control",
                "state it, for example `switch = ... { reconfigure = { settle = 10 ms, relock = 0 ms } }`, "
                "or give delays with --reconfigure",
            )
            return None
    return max(sum(time or 0 for time in (kind.settle, kind.relock, kind.control)) for kind in kinds)


# --- what is refused -----------------------------------------------------------------------------


def _unknown(plan: Plan) -> Iterator[tuple[str, Span]]:
    """What the program has and the model does not know, in words, with its place."""
    job = plan.model.job
    p, net = job.parallelism, job.network
    if job.pipeline.kind is not PipelineKind.GPIPE:
        # With one micro-batch 1F1B would run alike; the author shall say which one is meant.
        yield f"`pipeline = {job.pipeline.kind}` yet, only `gpipe`", job.at("pipeline")
    if job.microbatches is not None and job.microbatches != 1:
        yield f"{job.microbatches} micro-batches, only one", job.at("microbatches")
    for axis in ("cp", "ep"):
        if getattr(p, axis) > 1:
            yield f"`{axis} = {getattr(p, axis)}`", p.at(axis)
    if p.dp == 1:
        yield "a job without data parallelism: its circuits never change", p.at("dp")
    if p.split:
        yield "`dp` in two parts", p.at("dp")
    if job.sharding != "none":
        yield f"`sharding = {job.sharding}`", job.at("sharding")
    if job.schedule:
        yield "a stated `schedule`", job.at("schedule")
    if net is not None and net.experts:
        yield "layers with experts", net.at("experts")
    if net is not None and net.tied_embeddings:
        yield "tied embeddings", net.at("tied_embeddings")
    if job.stages is not None and 0 in job.stages:
        yield "a stage without layers", job.at("stages")
    if net is not None and net.layers > _MOST_LAYERS:
        yield f"{net.layers:,} layers, at most {_MOST_LAYERS:,}", job.at("model")
    if job.batch is not None and job.batch % p.dp:
        yield f"a batch of {job.batch} that does not divide over `dp = {p.dp}`", job.at("batch")
    strange = [found for phase in plan.phases for found in _unknown_phase(plan, phase)]
    yield from strange
    if not strange and not _ring_against_chain(plan):
        yield "these circuits: here the rings of a stage and the joins that touch it do not take turns", job.span


def _unknown_phase(plan: Plan, phase: PlannedPhase) -> Iterator[tuple[str, Span]]:
    p = plan.model.job.parallelism
    if phase.name in ("cp", "ep", "edp", "embedding", "dp.shard", "dp.replicate") and not phase.spec.stated:
        return  # a default of something that is refused above
    span = phase.spec.span
    expected = {"dp": ("ring", p.dp), "pp": ("chain", p.pp)}.get(phase.name)
    if expected is None or phase.spec.topology.name != expected[0]:
        yield f"phase `{phase.name}` as a {phase.spec.topology.name}", span
    elif phase.step_count > 1:
        yield f"phase `{phase.name}` in {phase.step_count} steps (the NICs have too few ports to hold it at once)", span
    elif sum(len(i.group) for i in phase.instances) != phase.group_count or any(
        i.shape.n != expected[1] for i in phase.instances
    ):
        yield f"phase `{phase.name}` with several ranks of a group in one domain", span
    elif any(bool((i.exits != i.entries).any()) for i in phase.instances):
        yield f"phase `{phase.name}` with relays", span
    elif phase.spec.hold is not None:
        yield f"`hold` of phase `{phase.name}`", phase.spec.at("hold")


def _ring_against_chain(plan: Plan) -> bool:
    """Whether exactly the ring of a stage and the joins that touch it exclude each other."""
    scopes = [(plan.phases[part.phase].name, plan.phases[part.phase].scopes[part.scope]) for part in plan.parts]
    found = {(min(a, b), max(a, b)) for a, b in plan.exclusions.tolist()}
    wanted = {
        (min(a, b), max(a, b))
        for a, (ring, at) in enumerate(scopes)
        for b, (join, ends) in enumerate(scopes)
        if ring == "dp" and join == "pp" and set(at) & set(ends)
    }
    return found == wanted


# --- what is demanded ----------------------------------------------------------------------------


def _numbers(job: Job, sink: Diagnostics) -> NeuralNetwork | None:
    """The network, when it and everything else has the numbers that are needed."""
    cluster, net = job.fabric.cluster, job.network
    if net is None:
        _demand(
            sink, f"`model` of job `{job.name}`", job.span, "the operations follow from it",
            "name what the job trains, for example `model = models.llama3_8b`",
        )  # fmt: skip
    else:
        for name in ("width", "feed_forward", "heads", "vocabulary", "sequence", "gated"):
            if getattr(net, name) is None:
                _demand(
                    sink, f"`{name}` of network `{net.name}`", job.at("model"), "the operations follow from it",
                    f"state it, for example `model = ... {{ {name} = {_EXAMPLE[name]} }}`",
                )  # fmt: skip
    if job.batch is None:
        _demand(
            sink, f"`batch` of job `{job.name}`", job.span, "the tokens of an iteration are batch x sequence",
            "state the sequences of a global batch, for example `batch = 256`",
        )  # fmt: skip
    if job.microbatches is None:
        _demand(
            sink, f"`microbatches` of job `{job.name}`", job.span, "a pipeline's idle time depends on it",
            "state it: `microbatches = 1`",
        )  # fmt: skip
    if cluster.gpu is None:
        _demand(
            sink, f"`gpu` of cluster `{cluster.name}`", cluster.span, "compute takes operations / peak",
            "name it, for example `gpu = gpus.h200`",
        )  # fmt: skip
    else:
        for name, example in (("peak", "989 TFLOPS"), ("memory_bandwidth", "4800 GB/s")):
            if (getattr(cluster.gpu, name) or 0) < _LEAST:
                _demand(
                    sink, f"`{name}` of GPU `{cluster.gpu.name}`", cluster.at("gpu"), "compute is a roofline of both",
                    f"state it, for example `gpu = ... {{ {name} = {example} }}`",
                )  # fmt: skip
    if (cluster.scale_up or 0) < _LEAST and job.parallelism.tp > 1:
        _demand(
            sink, f"`scale_up` of cluster `{cluster.name}`", cluster.span, "tensor parallelism runs over it",
            "state the bandwidth of a GPU in its domain, for example `scale_up = 450 GB/s`",
        )  # fmt: skip
    if cluster.rail_nic.rate < _LEAST:
        _demand(
            sink, f"a `rate` of at least {_LEAST} bps of the NIC", cluster.rail_nic.span, "rings and joins run over it",
            "state the rate of one port and direction, for example `rate = 400 Gbps`",
        )  # fmt: skip
    return net


_EXAMPLE = {
    "width": "8192",
    "feed_forward": "28672",
    "heads": "64",
    "vocabulary": "32000",
    "sequence": "4096",
    "gated": "true",
}


def _demand(sink: Diagnostics, what: str, span: Span, why: str, help: str) -> None:
    sink.error("OPUS431", f"the time model needs {what}", span, "does not say", notes=[why], help=help)


def _known(value: int | None) -> int:
    assert value is not None, "demanded before"
    return value


def _copies(plan: Plan, name: str) -> int:
    """Circuits side by side between two neighbours of a phase: spare ports repeat its topology."""
    return min((i.shape.copies for phase in plan.phases if phase.name == name for i in phase.instances), default=1)
