"""What the time model does not know (OPUS430), what cannot be carried out at all (OPUS432), each with its place.

An estimate that leaves something out without a word would be worse than none.
"""

from collections.abc import Iterator

from opusc.diagnostics import Diagnostics
from opusc.model.entities import Job, PipelineKind, Traffic
from opusc.plan.plan import Plan, PlannedPhase, Scoping
from opusc.source import Span

__all__ = ["published", "refuse"]

_MOST_LAYERS = 20_000  # a million operations: seconds for each simulation

#: Phases whose traffic follows from the network, and those among them that reduce or exchange along their topology.
_ALONG = ("dp", "dp.shard", "dp.replicate", "cp", "edp")
_KNOWN = (*_ALONG, "pp", "ep", "embedding")


def refuse(plan: Plan, sink: Diagnostics) -> None:
    """Errors for all that stands in the way of an estimate but missing numbers."""
    for what, span, help in _unknown(plan):
        sink.error("OPUS430", f"the time model does not know {what}", span, help=help)
    for what, span, why in _impossible(plan.model.job):
        sink.error("OPUS432", what, span, notes=[why])


# --- what is not known ---------------------------------------------------------------------------


_PROVED = "the circuits are proved all the same: `opusc compile` needs no time model"


def _unknown(plan: Plan) -> Iterator[tuple[str, Span, str]]:
    """What the program has and the model does not know, in words, with its place and a way out."""
    job = plan.model.job
    net = job.network
    if job.pipeline.kind is PipelineKind.DUALPIPE:
        way_out = "it knows `pipeline = one_f_one_b`, `gpipe` and `interleaved { chunks = ... }`"
        yield "`pipeline = dualpipe`: two copies of the model fed from both ends", job.at("pipeline"), way_out
    if net is not None and net.layers > _MOST_LAYERS:
        yield f"{net.layers:,} layers, at most {_MOST_LAYERS:,}", job.at("model"), _PROVED
    for phase in plan.phases:
        for what, help in _unknown_phase(phase):
            yield what, phase.spec.span, help
    yield from _unjoined(plan)


def _unknown_phase(phase: PlannedPhase) -> Iterator[tuple[str, str]]:
    name, word = phase.name, phase.spec.topology.name
    if not phase.instances:
        return  # inside domains
    if name in ("tp", "expert_tp"):
        yield f"`{name}` over circuits: it computes with tensor parallelism inside a scale-up domain", _PROVED
    elif name not in _KNOWN:
        yield f"what phase `{name}` carries: it knows {', '.join(f'`{n}`' for n in _KNOWN)}", _PROVED
    elif (phase.scoping is Scoping.JOIN) != (name in ("pp", "embedding")):
        yield f"phase `{name}` over these axes", _PROVED
    elif name in _ALONG and phase.spec.traffic is Traffic.REDUCTION:
        small = all(i.shape.n == 2 for i in phase.instances)
        if word not in ("ring", "mesh", "rotor") and not (small and word in ("chain", "pairs")):
            yield f"reductions of phase `{name}` over a {word}", "it knows `topology = ring`, `mesh` and `rotor`"
    elif name in _ALONG:
        yield f"phase `{name}` as {phase.spec.traffic} traffic", "leave `traffic` out: this phase reduces"


def _unjoined(plan: Plan) -> Iterator[tuple[str, Span, str]]:
    """Neighbouring stages in different domains without circuits of phase `pp` between them."""
    job = plan.model.job
    pp = job.parallelism.pp
    phase = next((phase for phase in plan.phases if phase.name == "pp"), None)
    if pp == 1 or phase is None or phase.scoping is not Scoping.JOIN:
        return
    joined = {frozenset(scope) for scope in phase.scopes}
    domain = plan.gpu_of_rank // plan.model.cluster.gpus_per_domain
    places = [set(domain[plan.stage_of_rank == stage].tolist()) for stage in range(pp)]
    ring = job.pipeline.kind is PipelineKind.INTERLEAVED and job.pipeline.chunks > 1
    for a in range(pp if ring and pp > 2 else pp - 1):
        b = (a + 1) % pp
        if frozenset((a, b)) not in joined and not places[a] & places[b]:
            yield (
                f"how stages {a} and {b} reach each other: phase `pp` joins them nowhere",
                phase.spec.span,
                "a pipeline needs `topology = ring` or `chain`, or edges between neighbours",
            )
            return


# --- what is impossible --------------------------------------------------------------------------


def _impossible(job: Job) -> Iterator[tuple[str, Span, str]]:
    p, net = job.parallelism, job.network
    count = job.microbatches
    if job.batch is not None and job.batch % p.dp:
        yield (
            f"a batch of {job.batch} does not divide over `dp = {p.dp}`",
            job.at("batch"),
            "every pipeline takes the same number of sequences",
        )
    elif job.batch is not None and count is not None and job.batch % (p.dp * count):
        yield (
            f"a batch of {job.batch} does not divide over dp = {p.dp} and {count} micro-batches",
            job.at("microbatches"),
            f"a pipeline has {job.batch // p.dp} sequences",
        )
    looped = job.pipeline.kind is PipelineKind.INTERLEAVED and job.pipeline.chunks > 1
    if looped and count is not None and count % p.pp:
        yield (
            f"{count} micro-batches cannot be interleaved over {p.pp} stages",
            job.at("microbatches"),
            "interleaving takes groups of as many micro-batches as there are stages (arXiv 2104.04473)",
        )
    if net is not None and net.experts and net.experts % p.ep:
        yield (
            f"{net.experts} experts do not divide over `ep = {p.ep}`",
            p.at("ep"),
            "every rank of an expert group holds the same number of experts",
        )
    if p.ep > 1 and net is not None and not net.experts:
        yield (
            f"`ep = {p.ep}` has no experts to spread: network `{net.name}` states none",
            job.at("model"),
            "dispatch and combine carry the tokens of experts",
        )


# --- the published form --------------------------------------------------------------------------


def published(plan: Plan) -> bool:
    """Whether the published simulations could have run the job: GPipe with one micro-batch, data parallelism on rings
    and pipelines on chains of single ranks that take turns on the ports, and nothing else."""
    job = plan.model.job
    p, net = job.parallelism, job.network
    plain = (
        job.pipeline.kind is PipelineKind.GPIPE
        and job.microbatches == 1
        and p.cp == p.ep == 1 < p.dp
        and not p.split
        and job.sharding == "none"
        and not job.schedule
        and job.trace is None
        and net is not None
        and not net.experts
        and not net.tied_embeddings
        and 0 not in (job.stages or ())
    )
    return plain and all(_plain(plan, phase) for phase in plan.phases) and _ring_against_chain(plan)


def _plain(plan: Plan, phase: PlannedPhase) -> bool:
    p = plan.model.job.parallelism
    expected = {"dp": ("ring", p.dp), "pp": ("chain", p.pp)}.get(phase.name)
    return (
        expected is not None
        and phase.spec.topology.name == expected[0]
        and phase.step_count <= 1
        and phase.spec.hold is None
        and sum(len(i.group) for i in phase.instances) == phase.group_count
        and all(i.shape.n == expected[1] and not bool((i.exits != i.entries).any()) for i in phase.instances)
    )


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
