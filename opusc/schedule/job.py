"""From a proved plan to what the simulation needs: operations, rates, the circuits that carry them.

A job of the published form (see `published`) is simulated with the published operations and controller. Every other
job is laid out block by block (`iteration.py`) over the parts of its plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod

from opusc.diagnostics import Diagnostics
from opusc.model.entities import Dialect, Job, NeuralNetwork, PipelineKind
from opusc.model.measured import Trace
from opusc.model.phases import axes_of
from opusc.plan.plan import Plan
from opusc.schedule.blocks import Experts, Sizes, Unit, units
from opusc.schedule.carriers import Network, network
from opusc.schedule.demands import LEAST, dark, known, numbers
from opusc.schedule.explicit import ordered
from opusc.schedule.iteration import Layout, Reduction, iteration
from opusc.schedule.lowering import lower_onto
from opusc.schedule.operations import Program, Workload, WorkloadError, lower
from opusc.schedule.pipelines import Block, gpipe, interleaved, one_f_one_b
from opusc.schedule.refusals import published, refuse
from opusc.schedule.timing import Accelerator, Rates
from opusc.schedule.traced import traced
from opusc.schedule.transformer import Transformer, workload
from opusc.source import Span

__all__ = ["Setting", "dark", "setting"]


@dataclass(frozen=True)
class Setting:
    """What to simulate. `program` has the durations in picoseconds.

    `network` are the circuits of the plan; None for a job of the published form, whose circuits are rings and joins.
    `batches` is the micro-batches of a pipeline; `shape.tokens` the tokens of one of them on one rank. A trace may
    hold several `iterations`, which are simulated as one.
    """

    shape: Transformer
    workload: Workload
    gpu: Accelerator
    rates: Rates
    network: Network | None = None
    batches: int = 1
    iterations: int = 1

    @cached_property
    def program(self) -> Program:
        return self.lower(self.workload)

    def lower(self, workload: Workload) -> Program:
        """Another workload of this job, with durations on the same circuits."""
        if self.network is None:
            return lower(workload, self.gpu, self.rates)
        return lower_onto(workload, self.gpu, self.rates, self.network)


def setting(plan: Plan, sink: Diagnostics, element: int = 1, *, arithmetic: bool = False) -> Setting | None:
    """The operations and rates of the plan's job; None when the sink says why not.

    `element` is the bytes of an element of every tensor: 1 as the published traces count. With `arithmetic` a multiply
    and its add are two operations, as the peak of a GPU counts them, attention grows with the square of the sequence,
    and looking up an embedding is no product; without, all three are as in the published traces.
    """
    before = len(sink)
    refuse(plan, sink)
    if len(sink) > before:
        return None
    job = plan.model.job
    net = numbers(job, sink)
    if len(sink) > before or net is None:
        return None
    as_published = published(plan)
    shape = _shape(job, net, element, arithmetic)
    gpu, rates = _hardware(plan)
    if as_published:
        layers = job.stages or (net.layers // job.parallelism.pp,) * job.parallelism.pp
        return Setting(shape, workload(job.name, shape, layers), gpu, rates)
    circuits = network(plan, _group_sizes(job))
    layout = _layout(job, net, shape, circuits, gpu, rates)
    made = Setting(shape, iteration(layout, gpu), gpu, rates, circuits, known(job.microbatches))
    return _in_stated_order(plan, made, sink)


def _in_stated_order(plan: Plan, made: Setting, sink: Diagnostics) -> Setting | None:
    """The setting with its operations in the order that the job states or has measured."""
    job = plan.model.job
    lines: Mapping[tuple[int, str], Span] = {}
    if isinstance(job.trace, Trace):
        found = traced(plan, job.trace, made.workload, made.program, sink)
        if found is None:
            return None
        made, lines = replace(made, workload=found.workload, iterations=found.iterations), found.lines
    elif job.schedule:
        made = replace(made, workload=ordered(made.workload, job.schedule))
    else:
        return made
    try:
        _ = made.program
    except WorkloadError as error:
        sink.error(
            "OPUS436",
            f"the schedule waits for itself: stage {error.stage} never comes to `{error.operation}`",
            lines.get((error.stage, error.operation), job.at("schedule")),
            "this line" if lines else "this order",
            notes=["every stage does its part in order, and some wait for each other in a circle"],
            help="give the phases that depend on each other several turns, or leave `schedule` out"
            if not lines
            else "are these the lines of one job, and its `pipeline` and `microbatches` those of the trace?",
        )
        return None
    return made


def _shape(job: Job, net: NeuralNetwork, element: int, arithmetic: bool) -> Transformer:
    p = job.parallelism
    sequences = known(job.batch) // (p.dp * known(job.microbatches))
    return Transformer(
        tokens=sequences * known(net.sequence) // p.cp,
        width=known(net.width),
        feed_forward=known(net.feed_forward),
        heads=known(net.heads),
        kv_heads=net.kv_heads or known(net.heads),
        vocabulary=known(net.vocabulary),
        gated=bool(net.gated),
        tp=p.tp,
        dp=p.dp,
        element=element,
        multiply_add=2 if arithmetic else 1,
        context=known(net.sequence) // 2 if arithmetic else 0,  # causal: half of the tokens on average
    )


def _hardware(plan: Plan) -> tuple[Accelerator, Rates]:
    cluster = plan.model.cluster
    assert cluster.gpu is not None
    share = plan.model.job.efficiency or Fraction(1)
    gpu = Accelerator(known(cluster.gpu.peak), known(cluster.gpu.memory_bandwidth) // 8, share)
    port = cluster.rail_nic.rate
    scale_up = max(cluster.scale_up or 0, LEAST)  # demanded where traffic stays inside a domain
    rings = next((phase.name for phase in plan.phases if phase.name.startswith("dp")), "dp")
    return gpu, Rates(scale_up // 8, port * _copies(plan, rings) // 8, port * _copies(plan, "pp") // 8)


def _copies(plan: Plan, name: str) -> int:
    """Circuits side by side between two neighbours of a phase: spare ports repeat its topology."""
    return min((i.shape.copies for phase in plan.phases if phase.name == name for i in phase.instances), default=1)


# --- jobs in general -----------------------------------------------------------------------------


def _group_sizes(job: Job) -> dict[str, int]:
    """Members of a group of each phase."""
    axes = axes_of(job.parallelism, job.dialect)
    return {phase.name: prod(axes.get(axis, 1) for axis in phase.axes) for phase in job.phases}


def _layout(
    job: Job, net: NeuralNetwork, shape: Transformer, circuits: Network, gpu: Accelerator, rates: Rates
) -> Layout:
    p = job.parallelism
    sizes = Sizes(shape, p.cp, _mixture(job, net))
    groups = {name: size for name, size in _group_sizes(job).items() if (name, 0) in circuits.carriers}
    dense = Reduction("", 1)
    for name in ("dp", "dp.shard"):
        if name in groups:
            dense = Reduction(name, groups[name])
    copies = "dp.replicate" if "dp.replicate" in groups else ""
    if copies:
        dense = Reduction(dense.over, dense.members, copies)
    sparse = dense
    if p.ep > 1:
        of_experts = copies if job.dialect is Dialect.TORCHTITAN else ""  # megatron's edp spans the replicas
        sparse = Reduction("edp" if "edp" in groups else "", groups.get("edp", 1), of_experts)
    return Layout(
        name=job.name,
        degrees={"tp": p.tp, "dp": p.dp, "pp": p.pp},
        orders=tuple(_order(job, stage) for stage in range(p.pp)),
        chunks=_chunks(job, net, sizes, gpu, rates),
        activation=shape.activation * shape.element,
        sharding=job.sharding,
        dense=dense,
        sparse=sparse,
        element=shape.element,
        tied=("embedding" if p.pp > 2 else "pp") if net.tied_embeddings else "",
    )


def _mixture(job: Job, net: NeuralNetwork) -> Experts | None:
    if not net.experts:
        return None
    p = job.parallelism
    inside = p.tp if p.ep == 1 else (p.expert_tp or p.tp) if job.dialect is Dialect.MEGATRON else 1
    return Experts(net.experts, known(net.experts_per_token), p.ep, inside)


def _order(job: Job, stage: int) -> tuple[Block, ...]:
    pp, batches, pipeline = job.parallelism.pp, known(job.microbatches), job.pipeline
    match pipeline.kind:
        case PipelineKind.GPIPE:
            return gpipe(batches)
        case PipelineKind.INTERLEAVED if pipeline.chunks > 1:
            return interleaved(stage, pp, batches, pipeline.chunks)
        case _:
            return one_f_one_b(stage, pp, batches)


def _chunks(
    job: Job, net: NeuralNetwork, sizes: Sizes, gpu: Accelerator, rates: Rates
) -> tuple[tuple[tuple[Unit, ...], ...], ...]:
    """The units of each chunk of each stage. The layers of a stage are spread evenly over its chunks."""
    pp, count = job.parallelism.pp, job.pipeline.chunks
    layers = job.stages or (net.layers // pp,) * pp
    found: list[list[tuple[Unit, ...]]] = [[] for _ in range(pp)]
    number = 0
    for place in range(pp * count):
        chunk, stage = divmod(place, pp)
        size = layers[stage] // count + (chunk < layers[stage] % count)
        own = range(number, number + size)
        number += size
        ends = {"first": place == 0, "last": place == pp * count - 1}
        found[stage].append(units(sizes, own, gpu, rates, **ends))
    return tuple(map(tuple, found))
