"""What an estimate needs and the program does not say (OPUS431), each with its place."""

from opusc.diagnostics import Diagnostics
from opusc.model.entities import Job, NeuralNetwork
from opusc.plan.plan import Plan
from opusc.source import Span

__all__ = ["LEAST", "dark", "known", "numbers"]

LEAST = 8  # bit/s: a byte a second


def dark(plan: Plan, sink: Diagnostics) -> int | None:
    """Picoseconds for which a changed circuit is dark: settle, relock, and control where it is stated, of the slowest
    switch, since a change waits for all its rails. None when a switch does not say, which the sink reports."""
    rails = plan.model.fabric.rails
    said: set[Span] = set()
    for switch in plan.switches:
        kind, place = switch.kind, rails[switch.rails[0]].span
        missing = [name for name in ("settle", "relock") if getattr(kind, name) is None]
        if missing and place not in said:
            said.add(place)
            _demand(
                sink,
                " and ".join(f"`{name}`" for name in missing) + f" of switch `{kind.name}`",
                place,
                "a change takes settle + relock + control",
                "state it, for example `switch = ... { reconfigure = { settle = 10 ms, relock = 0 ms } }`, "
                "or give delays with --reconfigure",
            )
    if said:
        return None
    kinds = [switch.kind for switch in plan.switches]
    return max(sum(time or 0 for time in (kind.settle, kind.relock, kind.control)) for kind in kinds)


def numbers(job: Job, sink: Diagnostics) -> NeuralNetwork | None:
    """The network, when it and everything else has the numbers that are needed."""
    cluster, net = job.fabric.cluster, job.network
    if net is None:
        _demand(
            sink, f"`model` of job `{job.name}`", job.span, "the operations follow from it",
            "name what the job trains, for example `model = models.llama3_8b`",
        )  # fmt: skip
    else:
        wanted = ["width", "feed_forward", "heads", "vocabulary", "sequence", "gated"]
        for name in wanted + (["experts_per_token"] if net.experts else []):
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
            "state it, for example `microbatches = 8`",
        )  # fmt: skip
    if cluster.gpu is None:
        _demand(
            sink, f"`gpu` of cluster `{cluster.name}`", cluster.span, "compute takes operations / peak",
            "name it, for example `gpu = gpus.h200`",
        )  # fmt: skip
    else:
        for name, example in (("peak", "989 TFLOPS"), ("memory_bandwidth", "4800 GB/s")):
            if (getattr(cluster.gpu, name) or 0) < LEAST:
                _demand(
                    sink, f"`{name}` of GPU `{cluster.gpu.name}`", cluster.at("gpu"), "compute is a roofline of both",
                    f"state it, for example `gpu = ... {{ {name} = {example} }}`",
                )  # fmt: skip
    if (cluster.scale_up or 0) < LEAST and cluster.use > 1:
        _demand(
            sink, f"`scale_up` of cluster `{cluster.name}`", cluster.span, "traffic inside a domain runs over it",
            "state the bandwidth of a GPU in its domain, for example `scale_up = 450 GB/s`",
        )  # fmt: skip
    if cluster.rail_nic.rate < LEAST:
        _demand(
            sink, f"a `rate` of at least {LEAST} bps of the NIC", cluster.rail_nic.span, "rings and joins run over it",
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
    "experts_per_token": "2",
}


def _demand(sink: Diagnostics, what: str, span: Span, why: str, help: str) -> None:
    sink.error("OPUS431", f"the time model needs {what}", span, "does not say", notes=[why], help=help)


def known(value: int | None) -> int:
    assert value is not None, "demanded before"
    return value
