"""Jobs: what runs on the fabric, and how it is laid out over it."""

from collections import Counter
from fractions import Fraction

from opusc.diagnostics import Label
from opusc.model.entities import (
    Dialect,
    Fabric,
    Job,
    NeuralNetwork,
    Packed,
    Parallelism,
    Pipeline,
    PipelineKind,
)
from opusc.model.evaluate import Stop
from opusc.model.hardware import network
from opusc.model.loader import FileLoader
from opusc.model.measured import Trace
from opusc.model.parallelism import order, parallelism
from opusc.model.phases import phases
from opusc.model.reader import Reader
from opusc.model.schema import Count
from opusc.model.trace import trace
from opusc.model.units import RATIO, Quantity
from opusc.model.values import Applied, kind_of

__all__ = ["job"]


def job(reader: Reader, fabric: Fabric, loader: FileLoader) -> Job | None:
    cluster = fabric.cluster
    word = reader.choice("dialect")
    if word is None and reader.has("dialect"):
        return None
    dialect = Dialect(word.word) if word else None
    nodes = _nodes(reader, fabric)
    degrees = parallelism(reader, dialect, cluster)
    if degrees is None:
        return None
    ranks = order(reader, degrees, dialect, cluster)
    trained = reader.sub("model", "network")
    net = network(trained) if trained else None
    pipeline = _pipeline(reader, degrees)
    stages = _stages(reader, degrees, net, pipeline)
    made = phases(reader, degrees, dialect, pipeline, net)
    sharding, relay, policy = reader.choice("sharding"), reader.choice("relay"), reader.choice("policy")
    batch, microbatches, efficiency = reader.count("batch"), reader.count("microbatches"), _efficiency(reader)
    schedule, measured = _schedule(reader, tuple(phase.name for phase in made), loader)
    if ranks is None:
        return None
    return Job(
        name=reader.block.name,
        fabric=fabric,
        parallelism=degrees,
        dialect=dialect,
        order=ranks,
        phases=made,
        pipeline=pipeline,
        nodes=nodes,
        stages=stages,
        sharding=sharding.word if sharding else "none",
        network=net,
        batch=batch,
        microbatches=microbatches,
        efficiency=efficiency,
        policy=policy.word if policy else None,
        relay_allowed=relay is None or relay.word == "allow",
        schedule=schedule,
        trace=measured,
        pack=_pack(reader, tuple(phase.name for phase in made), cluster.rail_nic.ports),
        span=reader.block.span,
        spans=reader.spans(),
    )


def _nodes(reader: Reader, fabric: Fabric) -> tuple[int, ...] | None:
    nodes = reader.indices("nodes")
    if nodes is None:
        return None
    count, span = fabric.cluster.node_count, reader.spans()["nodes"]
    bad = next((node for node in nodes if not 0 <= node < count), None)
    if bad is not None:
        reader.ev.sink.error(
            "OPUS204", f"there is no node {bad}: `{fabric.cluster.name}` has nodes 0..{count - 1}", span, "no such one",
            notes=["ranges include both ends"],
        )  # fmt: skip
        return None
    twice = next((node for node, uses in Counter(nodes).items() if uses > 1), None)
    if twice is not None:
        reader.ev.sink.error("OPUS208", f"`nodes` names node {twice} twice", span, "a rank needs a GPU of its own")
        return None
    return nodes


def _efficiency(reader: Reader) -> Fraction | None:
    """A share of the roofline: more than nothing, at most all of it."""
    found = reader.value("efficiency")
    if found is None:
        return None
    value, span = found
    if isinstance(value, Quantity) and value.dimension == RATIO:
        value = value.value
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        reader.wrong("efficiency", value, span, "a ratio", help="for example `efficiency = 45 %`")
        return None
    if not 0 < value <= 1:
        reader.ev.sink.error(
            "OPUS204", f"`efficiency` is {Quantity(Fraction(value), RATIO)}; it must be above 0 % and at most 100 %",
            span, "out of range", notes=["it is the share of the roofline that compute reaches"],
        )  # fmt: skip
        return None
    return Fraction(value)


def _pipeline(reader: Reader, p: Parallelism) -> Pipeline:
    word = reader.choice("pipeline")
    kind = PipelineKind(word.word) if word else PipelineKind.ONE_F_ONE_B
    chunks = 1
    if word is not None and word.block is not None:
        entry = word.block.get("chunks")
        if entry is not None and (found := reader.of(entry.value)):
            chunks = reader.as_count("chunks", *found, Count()) or 1
    elif kind is PipelineKind.INTERLEAVED:
        assert word is not None
        reader.ev.sink.error(
            "OPUS209", "`interleaved` does not state `chunks`", word.span, "`chunks` is missing",
            help="virtual stages per pipeline rank: `interleaved { chunks = 2 }`",
        )  # fmt: skip
    span = word.span if word else reader.block.span
    return Pipeline(kind=kind, chunks=chunks, span=span)


def _stages(reader: Reader, p: Parallelism, net: NeuralNetwork | None, pipeline: Pipeline) -> tuple[int, ...] | None:
    """Layers of each stage. Where they do not divide, the author spreads them: trainers drop the rest silently."""
    sink = reader.ev.sink
    stated = reader.counts("stages", Count(0)) if reader.has("stages") else None
    if stated is not None:
        wrong_length = len(stated) != p.pp
        wrong_sum = net is not None and sum(stated) != net.layers
        if wrong_length or wrong_sum:
            parts = [f"{len(stated)} stages for pp = {p.pp}"] if wrong_length else []
            parts += [f"{sum(stated)} layers of {net.layers}"] if net is not None and wrong_sum else []
            sink.error(
                "OPUS419", "`stages`: " + ", and ".join(parts), reader.spans()["stages"],
                "one number for each stage" if wrong_length else "the layers of all stages",
                secondary=[Label(p.at("pp"), f"pp = {p.pp}")],
                help=f"for example `{_even(net.layers, p.pp)}`" if net is not None else "",
            )  # fmt: skip
        return stated
    places = p.pp * pipeline.chunks
    if net is not None and not reader.has("stages") and net.layers % places:
        over = f"{p.pp} stages" + (f" x {pipeline.chunks} chunks" if pipeline.chunks > 1 else "")
        sink.error(
            "OPUS419",
            f"{net.layers} layers do not divide over {over}",
            reader.spans()["model"],
            f"{net.layers} layers",
            secondary=[Label(p.at("pp"), f"pp = {p.pp}")],
            notes=["some trainers drop the rest without a word"],
            help=f"state the layers of each stage, for example `stages = {_even(net.layers, p.pp)}`",
        )
    return None


def _even(layers: int, stages: int) -> str:
    """The fullest stages first, the rest last, in the language: `[4] * 15 + [1]`."""
    full = -(-layers // stages)
    count, rest = divmod(layers, full)
    if count + (rest > 0) == stages and rest:
        return f"[{full}] * {count} + [{rest}]"
    more = layers - (full - 1) * stages
    return f"[{full}] * {more} + [{full - 1}] * {stages - more}" if more < stages else f"[{full}] * {stages}"


def _schedule(reader: Reader, names: tuple[str, ...], loader: FileLoader) -> tuple[tuple[str, ...], Trace | None]:
    """The order of phases as stated, or as measured."""
    entry = reader.entry("schedule")
    if entry is None:
        return (), None
    try:
        value = reader.ev.bound(entry.value, (*names, "trace"))
        if isinstance(value, Applied) and value.word == "trace":
            known = reader.as_word("schedule", value, entry.value.span, ("trace",))
            return (), trace(reader, known, loader) if known else None
        items = reader.ev.items(value, entry.value.span)
    except Stop:
        return (), None
    found = []
    for item in items:
        if not (isinstance(item, Applied) and item.word in names):
            shown = item.word if isinstance(item, Applied) else "this"
            reader.ev.sink.error(
                "OPUS418",
                f"`schedule` names phases; {shown} is none",
                entry.value.span,
                help=f"phases: {', '.join(names)}",
            )
            return (), None
        found.append(item.word)
    return tuple(found), None


def _pack(reader: Reader, names: tuple[str, ...], most: int) -> tuple[Packed, ...]:
    """`[dp, pp]`, `[dp { ports = 2 }, pp]`."""
    entry = reader.entry("pack")
    if entry is None:
        return ()
    sink, span = reader.ev.sink, entry.value.span
    try:
        items = reader.ev.items(reader.ev.bound(entry.value, names), span)
    except Stop:
        return ()
    found: dict[str, Packed] = {}
    for item in items:
        if not (isinstance(item, Applied) and item.word in names):
            shown = item.word if isinstance(item, Applied) else kind_of(item)
            sink.error("OPUS418", f"`pack` names phases; {shown} is none", span, help=f"phases: {', '.join(names)}")
            return ()
        if item.word in found:
            sink.error("OPUS208", f"`pack` names phase `{item.word}` twice", span, "a phase has its ports once")
            return ()
        ports = None
        for given in item.block.entries if item.block is not None else ():
            if given.name != "ports":
                sink.error("OPUS207", f"`{item.word}` has no argument `{given.name}`", given.span, "it takes `ports`")
            elif value := reader.of(given.value):
                ports = reader.as_count("ports", *value, Count(1, most))
        found[item.word] = Packed(phase=item.word, ports=ports, span=item.span)
    return tuple(found.values())
