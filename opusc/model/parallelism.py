"""Degrees, dialects and rank order of a job, and the rules that they must meet."""

from opusc.diagnostics import Edit, Label
from opusc.model.entities import Cluster, Dialect, Parallelism
from opusc.model.evaluate import Stop
from opusc.model.reader import Reader
from opusc.model.schema import Count
from opusc.model.values import Block
from opusc.source import Span
from opusc.syntax import tree

__all__ = ["AXES", "order", "parallelism"]

#: Axes of the rank order, innermost first, by dialect. Megatron-LM's default is tp-cp-ep-dp-pp; TorchTitan's is fixed.
AXES = {
    None: ("tp", "cp", "dp", "pp"),
    Dialect.MEGATRON: ("tp", "cp", "ep", "dp", "pp"),
    Dialect.TORCHTITAN: ("tp", "cp", "dp.shard", "dp.replicate", "pp"),
}


def parallelism(job: Reader, dialect: Dialect | None, cluster: Cluster) -> Parallelism | None:
    reader = job.sub("parallelism", "parallelism")
    if reader is None or _loose_dp_parts(reader):
        return None
    degrees = {name: reader.count(name) for name in ("tp", "cp", "pp", "ep", "expert_tp")}
    dp = _data(reader)
    if dp is None or any(degrees[name] is None and reader.has(name) for name in degrees):
        return None
    whole, replicate, shard = dp
    made = Parallelism(
        tp=degrees["tp"] or 1,
        cp=degrees["cp"] or 1,
        dp=whole,
        pp=degrees["pp"] or 1,
        ep=degrees["ep"] or 1,
        dp_replicate=replicate,
        dp_shard=shard,
        expert_tp=degrees["expert_tp"],
        span=reader.block.span,
        spans=reader.spans(),
    )
    rules = (_dialect_stated, _experts_megatron, _experts_torchtitan, _fits_cluster)
    return made if all(rule(job, made, dialect, cluster) for rule in rules) else None


def _loose_dp_parts(reader: Reader) -> bool:
    """`{ dp = 4, shard = 32 }`: shard is a part of dp."""
    parts = [e for e in reader.block.entries if e.name in ("shard", "replicate")]
    return bool(parts)


def _data(reader: Reader) -> tuple[int, int | None, int | None] | None:
    """The whole data-parallel degree, and its parts where it is split."""
    found = reader.value("dp")
    if found is None:
        return None if reader.has("dp") else (1, None, None)
    value, span = found
    if isinstance(value, Block):
        entry = reader.entry("dp")
        assert entry is not None
        parts = reader.as_block("dp", entry.value, "dp")
        replicate, shard = (parts.count("replicate"), parts.count("shard")) if parts else (None, None)
        return None if replicate is None or shard is None else (replicate * shard, replicate, shard)
    whole = reader.as_count("dp", value, span, Count())
    return None if whole is None else (whole, None, None)


def _dialect_stated(job: Reader, p: Parallelism, dialect: Dialect | None, cluster: Cluster) -> bool:
    if dialect is not None or (p.ep == 1 and not p.split):
        return True
    what = "ep" if p.ep > 1 else "dp"
    meaning = (
        "megatron lets ep span dp (expert_tp * ep divides tp * cp * dp); torchtitan divides dp.shard * cp * tp by ep"
        if p.ep > 1
        else "megatron and torchtitan order the parts of dp and their groups differently"
    )
    job.ev.sink.error(
        "OPUS412",
        f"`{what}` means different things to different trainers: state `dialect`",
        p.at(what),
        f"ep = {p.ep}" if p.ep > 1 else "dp is split",
        notes=[meaning],
        help="write `dialect = megatron` or `dialect = torchtitan`",
    )
    return False


def _experts_megatron(job: Reader, p: Parallelism, dialect: Dialect | None, cluster: Cluster) -> bool:
    if dialect is not Dialect.MEGATRON or p.ep == 1:
        return True
    sink = job.ev.sink
    if p.expert_tp is None:
        sink.error(
            "OPUS413", "`expert_tp` must be stated when ep > 1", p.at("ep"), f"ep = {p.ep}",
            notes=["Megatron-LM takes tp when it is left out; most published jobs use 1, and the groups differ"],
            help=f"write `expert_tp = 1`, or `expert_tp = {p.tp}` for Megatron-LM's default",
        )  # fmt: skip
        return False
    experts, ranks = p.expert_tp * p.ep, p.tp * p.cp * p.dp
    if ranks % experts:
        others = p.tp * p.cp
        fits = -(-experts // others) * others // others if experts % others == 0 else None
        hint = ""
        whole = p.dp * experts // others if (p.dp * experts) % others == 0 else 0
        if experts > ranks and whole and others * whole * p.pp <= cluster.domain_count * cluster.use:
            hint = f"here dp is the full degree, experts included: did you mean dp = {whole}?"
        elif fits:
            hint = f"dp must be a multiple of {fits}"
        sink.error(
            "OPUS414",
            f"expert_tp * ep = {experts:,} does not divide tp * cp * dp = {ranks:,}",
            p.at("ep"),
            f"{p.expert_tp} * {p.ep} = {experts:,}",
            secondary=[Label(p.at("dp"), f"{p.tp} * {p.cp} * {p.dp} = {ranks:,} ranks in a stage")],
            notes=["megatron spreads the experts of a layer over the ranks of one pipeline stage"],
            help=hint,
        )
        return False
    return True


def _experts_torchtitan(job: Reader, p: Parallelism, dialect: Dialect | None, cluster: Cluster) -> bool:
    if dialect is not Dialect.TORCHTITAN:
        return True
    sink = job.ev.sink
    if p.expert_tp is not None:
        sink.error(
            "OPUS413", "torchtitan has no `expert_tp`", p.at("expert_tp"), "a degree of megatron",
            help="leave it out, or state `dialect = megatron`",
        )  # fmt: skip
        return False
    shard = p.dp_shard if p.dp_shard is not None else p.dp
    ranks = shard * p.cp * p.tp
    if ranks % p.ep:
        sink.error(
            "OPUS414",
            f"ep = {p.ep:,} does not divide dp.shard * cp * tp = {ranks:,}",
            p.at("ep"),
            f"ep = {p.ep:,}",
            secondary=[Label(p.at("dp"), f"{shard} * {p.cp} * {p.tp} = {ranks:,}")],
            notes=["torchtitan takes the expert ranks out of dp.shard * cp * tp"],
            help=f"divisors of {ranks:,} near it: " + ", ".join(map(str, _divisors_near(ranks, p.ep))),
        )
        return False
    return True


def _divisors_near(number: int, wanted: int) -> list[int]:
    divisors = [d for d in range(1, min(number, 100_000) + 1) if number % d == 0]
    below = [d for d in divisors if d < wanted][-1:]
    above = [d for d in divisors if d > wanted][:1]
    return below + above


def _fits_cluster(job: Reader, p: Parallelism, dialect: Dialect | None, cluster: Cluster) -> bool:
    nodes = job.indices("nodes") if job.has("nodes") else None
    if job.has("nodes") and nodes is None:
        return False
    usable = _usable(cluster, nodes)
    if p.world <= usable:
        return True
    per = p.tp * p.cp * p.pp
    factors = " * ".join(f"{n} {d}" for n, d in (("tp", p.tp), ("cp", p.cp), ("dp", p.dp), ("pp", p.pp)) if d > 1)
    fits = usable // per
    notes = [f"{factors or '1'} = {p.world:,} GPUs"]
    if nodes is not None:
        notes.append(f"`nodes` selects {len(nodes):,} nodes of {cluster.gpus_per_node} GPUs")
    if cluster.use < cluster.gpus_per_domain:
        notes.append(f"a job uses {cluster.use} of the {cluster.gpus_per_domain} GPUs of a domain")
    exactly = "exactly" if fits * per == usable else "at most"
    job.ev.sink.error(
        "OPUS415",
        f"job `{job.what}` needs {p.world:,} GPUs; the cluster has {usable:,} ({p.world - usable:,} short)",
        p.span,
        f"{p.world:,} ranks",
        secondary=[
            Label(cluster.at("node_count" if "node_count" in cluster.spans else "domain_count"), f"{usable:,} GPUs")
        ],
        notes=notes,
        help=f"dp = {fits} would fit exactly"
        if fits and exactly == "exactly"
        else f"dp = {fits} is the most that fits"
        if fits
        else "",
    )
    return False


def _usable(cluster: Cluster, nodes: tuple[int, ...] | None) -> int:
    if nodes is None:
        return cluster.domain_count * cluster.use
    per_node, per_domain = cluster.gpus_per_node, cluster.gpus_per_domain
    return sum(
        1 for node in nodes for gpu in range(node * per_node, (node + 1) * per_node) if gpu % per_domain < cluster.use
    )


# --- order ---------------------------------------------------------------------------------------


def order(job: Reader, p: Parallelism, dialect: Dialect | None, cluster: Cluster) -> tuple[str, ...] | None:
    default = AXES[dialect]
    entry = job.entry("order")
    if entry is None:
        return default
    words = _order_words(p)
    try:
        value = job.ev.bound(entry.value, words)
        if isinstance(value, str) and all(axis in words for axis in value.split("-")):
            listed = f"[{value.replace('-', ', ')}]"
            job.ev.sink.error(
                "OPUS210", "`order` is a list of words", entry.value.span, f"write `{listed}`",
                fix=[Edit(entry.value.span, listed)],
            )  # fmt: skip
            return None
        items = job.ev.items(value, entry.value.span)
    except Stop:
        return None
    stated: list[str] = []
    for item in items:
        word = job.as_word("order", item, entry.value.span, words)
        if word is None:
            return None
        if word.word in stated:
            job.ev.sink.error("OPUS416", f"`order` names {word.word} twice", word.span, "again here")
            return None
        stated.append(word.word)
    if not _complete(job, p, tuple(stated), default, entry.value.expression):
        return None
    if dialect is Dialect.TORCHTITAN:
        if tuple(s for s in stated if s != "ep") not in (default, ("tp", "cp", "dp", "pp")):
            job.ev.sink.error(
                "OPUS416", "the order of torchtitan is fixed: tp, cp, dp.shard, dp.replicate, pp", entry.value.span,
                "another order", help="leave `order` out, or state `dialect = megatron`",
            )  # fmt: skip
            return None
        return default
    joined = _join_dp(job, tuple(stated), entry.value.span)
    if joined is None:
        return None
    whole = (*joined, *(axis for axis in default if axis not in joined))
    _warn_inside_out(job, p, joined, whole, cluster, entry.value.span)
    return whole if _pipelines_coincide(job, p, dialect, whole, entry.value.span) else None


def _order_words(p: Parallelism) -> tuple[str, ...]:
    return (*AXES[Dialect.MEGATRON], *(("dp.shard", "dp.replicate") if p.split else ()))


def _join_dp(job: Reader, stated: tuple[str, ...], span: Span) -> tuple[str, ...] | None:
    """Megatron has one place for dp, whose shards are neighbours: `dp.shard, dp.replicate` is another word for it."""
    parts = [axis for axis in stated if axis.startswith("dp")]
    if not any("." in axis for axis in parts):
        return stated
    at = stated.index(parts[0])
    if parts != ["dp.shard", "dp.replicate"] or stated[at : at + 2] != ("dp.shard", "dp.replicate"):
        job.ev.sink.error(
            "OPUS416", "megatron splits dp in one place: dp.shard, then dp.replicate", span, "another order",
            help="write `dp`, or `dp.shard, dp.replicate` side by side",
        )  # fmt: skip
        return None
    return (*stated[:at], "dp", *stated[at + 2 :])


def _complete(
    job: Reader, p: Parallelism, stated: tuple[str, ...], default: tuple[str, ...], node: tree.Expression
) -> bool:
    """Whether every axis of a degree above 1 is named. One that is not belongs before the next of the default order."""
    degrees = {"tp": p.tp, "cp": p.cp, "dp": p.dp, "pp": p.pp, "ep": p.ep}
    for axis in dict.fromkeys(a.split(".")[0] for a in default):
        named = any(s.split(".")[0] == axis for s in stated)
        if not named and degrees[axis] > 1:
            later = default[default.index(axis) + 1 :] if axis in default else ()
            at = next((i for i, s in enumerate(stated) if s.split(".")[0] in later), len(stated))
            whole = f"[{', '.join((*stated[:at], axis, *stated[at:]))}]"
            job.ev.sink.error(
                "OPUS416",
                f"`order` leaves out {axis} (degree {degrees[axis]})",
                node.span,
                f"{axis} is missing",
                help=f"innermost first, for example `{whole}`",
                fix=[Edit(node.span, whole)] if isinstance(node, tree.List) else [],
            )
            return False
    return True


def _warn_inside_out(
    job: Reader, p: Parallelism, written: tuple[str, ...], stated: tuple[str, ...], cluster: Cluster, span: Span
) -> None:
    """The innermost axis shares a node; tp elsewhere is most often an order written outermost first."""
    degrees = {"tp": p.tp, "cp": p.cp, "dp": p.dp, "pp": p.pp, "ep": 1}
    inner = 1
    for axis in stated:
        if axis == "tp":
            break
        inner *= degrees.get(axis, 1)
    if p.tp == 1 or inner == 1:
        return
    nodes = min(-(-inner * p.tp // cluster.gpus_per_node), p.tp)
    if nodes > 1:
        first = next(axis for axis in stated if degrees.get(axis, 1) > 1)
        job.ev.sink.warning(
            "OPUS417",
            f"`order` is innermost first: this puts {first} inside a node and spreads tp over {nodes} nodes",
            span,
            f"{first} innermost",
            help=f"did you mean `[{', '.join(reversed(written))}]`?",
        )


def _pipelines_coincide(
    job: Reader, p: Parallelism, dialect: Dialect | None, stated: tuple[str, ...], span: Span
) -> bool:
    """Dense and expert grid must have the same pipelines: pp outermost, or strides that agree."""
    if dialect is not Dialect.MEGATRON or p.ep == 1 or p.pp == 1:
        return True
    expert_tp = p.expert_tp or p.tp
    dense = {"tp": p.tp, "cp": p.cp, "ep": 1, "dp": p.dp, "pp": p.pp}
    expert = {
        "tp": expert_tp, "cp": 1, "ep": p.ep, "dp": p.tp * p.cp * p.dp // (expert_tp * p.ep), "pp": p.pp
    }  # fmt: skip
    inside = stated[: stated.index("pp")]
    a, b = 1, 1
    for axis in inside:
        a, b = a * dense.get(axis, 1), b * expert.get(axis, 1)
    if a == b:
        return True
    job.ev.sink.error(
        "OPUS416",
        "with this `order` the dense and the expert layers of a stage would be on different ranks",
        span,
        f"pp has stride {a} for dense layers and {b} for experts",
        help=f"put pp last: `[{', '.join([s for s in stated if s != 'pp'] + ['pp'])}]`",
    )
    return False
