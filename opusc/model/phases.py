"""Phases: the defaults that follow from the degrees, and what the author changes or adds."""

from collections.abc import Sequence
from dataclasses import replace

from opusc.diagnostics import Edit
from opusc.diagnostics.suggest import closest
from opusc.model.blocks import block_of
from opusc.model.edges import Edge
from opusc.model.entities import (
    Dialect,
    NeuralNetwork,
    Parallelism,
    PhaseSpec,
    Pipeline,
    PipelineKind,
    TopologySpec,
    Traffic,
)
from opusc.model.reader import Reader
from opusc.model.topologies import topology
from opusc.model.values import Scope
from opusc.source import Span
from opusc.syntax import tree

__all__ = ["axes_of", "phases"]


def axes_of(p: Parallelism, dialect: Dialect | None) -> dict[str, int]:
    """The axes that a phase may run over, with their sizes."""
    axes = {"tp": p.tp, "cp": p.cp, "dp": p.dp, "pp": p.pp}
    if p.split:
        axes.update({"dp.shard": p.dp_shard or 1, "dp.replicate": p.dp_replicate or 1})
    if dialect is Dialect.MEGATRON and p.ep > 1:
        expert_tp = p.expert_tp or p.tp
        axes.update({"expert_tp": expert_tp, "ep": p.ep, "edp": p.tp * p.cp * p.dp // (expert_tp * p.ep)})
    elif dialect is Dialect.TORCHTITAN and p.ep > 1:
        axes.update({"ep": p.ep, "edp": (p.dp_shard or p.dp) * p.cp * p.tp // p.ep})
    return axes


def _defaults(
    p: Parallelism, dialect: Dialect | None, pipeline: Pipeline, network: NeuralNetwork | None, span: Span
) -> list[PhaseSpec]:
    """The phases of DESIGN section 3, for axes of a degree above 1."""
    axes = axes_of(p, dialect)
    found: list[PhaseSpec] = []

    def add(name: str, over: tuple[str, ...], word: str, traffic: Traffic = Traffic.REDUCTION) -> None:
        size = 1
        for axis in over:
            size *= axes.get(axis, 1)
        if size > 1:
            found.append(
                PhaseSpec(name=name, axes=over, topology=TopologySpec(name=word, span=span), traffic=traffic, span=span)
            )

    if p.split:
        add("dp.shard", ("dp.shard", "cp"), "ring")
        add("dp.replicate", ("dp.replicate",), "ring")
    else:
        add("dp", ("dp", "cp"), "ring")
    add("cp", ("cp",), "ring")
    ring = pipeline.kind is PipelineKind.INTERLEAVED and pipeline.chunks > 1
    add("pp", ("pp",), "ring" if ring else "chain", Traffic.POINT_TO_POINT)
    add("ep", ("ep",), "rotor", Traffic.ALL_TO_ALL)
    add("edp", ("edp",), "ring")
    # With two stages, first and last are neighbours, and the pipeline's own join carries the embedding.
    if network is not None and network.tied_embeddings and p.pp > 2:
        ends = TopologySpec(name="pairs", edges=lambda n: (Edge(0, n - 1, span),), span=span)
        found.append(
            PhaseSpec(name="embedding", axes=("pp",), topology=ends, traffic=Traffic.POINT_TO_POINT, span=span)
        )
    return found


def phases(
    job: Reader, p: Parallelism, dialect: Dialect | None, pipeline: Pipeline, network: NeuralNetwork | None
) -> tuple[PhaseSpec, ...]:
    found = {spec.name: spec for spec in _defaults(p, dialect, pipeline, network, p.span)}
    stated: set[str] = set()
    axes = axes_of(p, dialect)
    for node, scope in job.block.phases:
        if node.name.text in stated:
            job.ev.sink.error("OPUS208", f"phase `{node.name.text}` is stated twice", node.name.span, "again here")
            continue
        stated.add(node.name.text)
        made = _stated(job, node, scope, found.get(node.name.text), axes)
        if made is not None:
            found[made.name] = made
    return tuple(found.values())


def _stated(
    job: Reader, node: tree.Phase, scope: Scope, default: PhaseSpec | None, axes: dict[str, int]
) -> PhaseSpec | None:
    name = node.name.text
    if node.axes is None and default is None:
        if name in axes or name == "embedding":
            _no_such_traffic(job, node, axes)
        else:
            _no_axis(job, name, node.name.span, axes, f"write `phase {name} over ...`")
        return None
    over = default.axes if node.axes is None and default is not None else _axes(job, node.axes or (), axes)
    if over is None:
        return None
    reader = Reader(job.ev, block_of(node.body, scope, "phase", name), "phase", name)
    entry = reader.entry("topology")
    spec = topology(reader, entry.value) if entry else default.topology if default else None
    if spec is None and entry is None:
        job.ev.sink.error(
            "OPUS209", f"phase `{name}` does not state `topology`", node.name.span, "`topology` is missing"
        )
    if spec is None:
        return None
    word = reader.choice("traffic")
    traffic = Traffic(word.word) if word else default.traffic if default else _traffic(over, spec)
    made = PhaseSpec(
        name=name, axes=over, topology=spec, traffic=traffic, hold=reader.measure("hold"), stated=True,
        span=node.name.span, spans=reader.spans(),
    )  # fmt: skip
    return made if default is None else replace(default, **{f: getattr(made, f) for f in _CHANGED})


_CHANGED = ("axes", "topology", "traffic", "hold", "stated", "span", "spans")


def _traffic(over: tuple[str, ...], spec: TopologySpec) -> Traffic:
    """A phase of the author's own: explicit neighbours talk to each other only, experts to all."""
    if over == ("ep",):
        return Traffic.ALL_TO_ALL
    if over == ("pp",) or spec.name in ("pairs", "edges"):
        return Traffic.POINT_TO_POINT
    return Traffic.REDUCTION


def _axes(job: Reader, names: Sequence[tree.Name], axes: dict[str, int]) -> tuple[str, ...] | None:
    found: list[str] = []
    for name in names:
        if name.text not in axes:
            _no_axis(job, name.text, name.span, axes, "")
            return None
        if name.text in found:
            job.ev.sink.error("OPUS418", f"`{name.text}` is named twice", name.span, "again here")
            return None
        split = name.text == "dp" and "dp.shard" in axes
        found += ["dp.shard", "dp.replicate"] if split else [name.text]
    repeated = next((axis for axis in found if found.count(axis) > 1), None)
    if repeated is not None:
        job.ev.sink.error("OPUS418", f"`{repeated}` is named twice", names[-1].span, "dp is made of its parts")
        return None
    if all(axes[axis] == 1 for axis in found):
        job.ev.sink.error(
            "OPUS418", "a phase needs an axis of a degree above 1", names[0].span,
            ", ".join(f"{axis} = 1" for axis in found), help="nothing is to be connected: leave the phase out",
        )  # fmt: skip
        return None
    experts = {"ep", "edp", "expert_tp"}
    mixed = experts & set(found) and set(found) - experts - {"pp", "dp.replicate"}
    if mixed:
        job.ev.sink.error(
            "OPUS418", "a phase runs over axes of the dense layers or of the experts, not both", names[0].span,
            " * ".join(found),
            notes=["experts regroup the ranks of a stage: ep and edp are no factors beside tp, cp and dp"],
        )  # fmt: skip
        return None
    return tuple(found)


def _no_axis(job: Reader, name: str, span: Span, axes: dict[str, int], write: str) -> None:
    known = [axis for axis, size in axes.items() if size > 1]
    near = closest(name, axes)
    job.ev.sink.error(
        "OPUS418",
        f"`{name}` is no axis of this job ({', '.join(known)})",
        span,
        f"did you mean `{near}`?" if near else "no such axis",
        help=(
            f"write `phase {name} over {'dp' if 'dp' in known or not known else known[-1]}`"
            if write
            else f"axes: {', '.join(axes)}"
        ),
        fix=[Edit(span, near)] if near and not write else [],
    )


def _no_such_traffic(job: Reader, node: tree.Phase, axes: dict[str, int]) -> None:
    name = node.name.text
    if name == "dp" and "dp.shard" in axes:
        job.ev.sink.error(
            "OPUS418", "this job splits dp: its phases are `dp.shard` and `dp.replicate`", node.name.span,
            "which of them?", help="or write `phase NAME over dp` for a phase of your own over both",
        )  # fmt: skip
        return
    what = (
        f"{name} = {axes[name]}" if name in axes else "the model does not tie its embeddings over more than two stages"
    )
    job.ev.sink.error(
        "OPUS418", f"this job has no phase `{name}`: {what}", node.name.span, "nothing to connect",
        help="leave the phase out" + (", or `over` the axes it should run on" if name in axes else ""),
    )  # fmt: skip
