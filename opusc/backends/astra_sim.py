"""Target `astra-sim`: circuit schedules and `network.yml` of the published reconfigurable simulator (opusfabric/Opus).

`schedules.txt` has a matrix for each of the 2^pp sets of stage bits, in binary counting order with stage 0 the
most significant bit (the controller's format has it least significant). Row = source rank, column =
destination, in GB/s of 2^30 bytes, 0 = no link. A stage whose bit is 1 is joined to neighbours whose bit is 1
too; every other stage has its data-parallel ring, also one whose bit is 1 while its neighbours' are 0 (the
controller leaves such a stage dark). Tensor groups have their scale-up links in every matrix.

The simulator takes stage = rank / (N / pp), so the pipeline must be outermost in rank order, and it forwards
traffic silently through other ranks where a link is missing: the plan must give every link directly.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from opusc.backends import astra_bundle, astra_matrices
from opusc.backends.astra_files import LINK_LATENCY_NS
from opusc.backends.astra_matrices import GB, State, decimal_text
from opusc.backends.astra_run import Run, run_of
from opusc.backends.base import Options, Unreadable
from opusc.backends.stagewise import StageParts, stage_parts
from opusc.diagnostics import Diagnostics, Label
from opusc.model.entities import SwitchKind
from opusc.plan.plan import Plan, Scoping
from opusc.plan.ranks import dense_grid, grid_of, groups

__all__ = ["BACKEND", "LINK_LATENCY_NS", "NETWORK", "SCHEDULES", "AstraSim", "Network"]

SCHEDULES = "astra-sim/schedules.txt"
NETWORK = "astra-sim/network.yml"

_PS_PER_NS = 1000


@dataclass(frozen=True)
class Network:
    """`network.yml`: counts, and quantities in the file's units."""

    title: str
    topology: str
    npus_count: int
    bandwidth: Fraction  # GB/s of 2^30 bytes; the simulator wants one, but takes the links from the schedules
    latency: Fraction  # ns
    reconfig_time: Fraction  # ns


@dataclass(frozen=True)
class AstraSim:
    name: str = "astra-sim"
    summary: str = "run directory of the published reconfigurable ASTRA-sim: circuits, communicators, traces"

    def check(self, plan: Plan, options: Options, sink: Diagnostics) -> None:
        parts = stage_parts(plan, self.name, sink)
        _check_numbers(plan, sink)
        _check_ranks(plan, sink)
        if parts is None or sink.has_errors:
            return
        _check_groups(plan, parts, sink)
        if sink.has_errors:
            return
        run = _run(plan)
        _say_without_traces(plan, run, sink)
        size = astra_matrices.size(astra_matrices.schedule(plan, parts)) + run.size(plan.world)
        if size > options.max_output:
            pp = parts.stages
            sink.error(
                "OPUS603",
                f"target `astra-sim` would write {1 << pp:,} matrices of {plan.world:,} x {plan.world:,}"
                f"{' and as many traces as ranks' if run.steps else ''} in {size:,} bytes, more than "
                f"{options.max_output:,}",
                plan.model.job.parallelism.at("pp"),
                notes=[f"the simulator wants all 2^{pp} sets of joined stages"],
                help="raise --max-output, or leave the target out (`-t plan` enumerates nothing)",
            )

    def write(self, plan: Plan, options: Options) -> Iterator[tuple[str, Iterable[bytes]]]:
        yield SCHEDULES, astra_matrices.write(astra_matrices.schedule(plan, _parts(plan)))
        yield NETWORK, [_network_text(_network(plan), plan)]
        yield from astra_bundle.write(plan, _run(plan))

    def project(self, plan: Plan) -> Iterator[object]:
        yield _network(plan)
        yield from astra_bundle.project(plan, _run(plan))
        yield from astra_matrices.project(astra_matrices.schedule(plan, _parts(plan)))

    def read(self, directory: Path) -> Iterator[object]:
        network = _read_network(directory / NETWORK)
        yield network
        yield from astra_bundle.read(directory, network.npus_count)
        yield from astra_matrices.read(directory / SCHEDULES, network.npus_count)

    def faults(self, plan: Plan, statement: object) -> Iterator[str]:
        """Ports are not exceeded; every stage that is joined to none has its groups connected by circuits."""
        if not isinstance(statement, State):
            return
        nic = plan.model.cluster.rail_nic
        domain = plan.gpu_of_rank // plan.model.cluster.gpus_per_domain
        optical = domain[statement.source] != domain[statement.target]
        source, target = statement.source[optical], statement.target[optical]
        for end, name in ((source, "sends to"), (target, "hears")):
            used = np.zeros(plan.world, dtype=np.int64)
            np.add.at(used, end, statement.rate[optical])
            if (used > nic.ports * nic.rate).any():
                yield f"rank {int(used.argmax())} {name} more than its {nic.ports} ports carry"
        yield from _broken_rings(plan, statement, source, target)

    def note(self, options: Options) -> str:
        return ""


def _parts(plan: Plan) -> StageParts:
    parts = stage_parts(plan, "astra-sim")
    if parts is None:
        raise ValueError("a plan that `check` refuses")
    return parts


def _run(plan: Plan) -> Run:
    return run_of(plan, astra_matrices.schedule(plan, _parts(plan)), _dark(plan.switches[0].kind))


# --- refusals ------------------------------------------------------------------------------------


def _say_without_traces(plan: Plan, run: Run, sink: Diagnostics) -> None:
    """Without operations, or with some that the simulator cannot run on these circuits, there are no traces."""
    reasons = [run.reason] if run.reason else [reason for reason, _ in run.refusals]
    if reasons:
        sink.warning(
            "OPUS607", f"target `astra-sim` writes circuits and communicators, and no traces: {reasons[0]}",
            plan.model.job.span, "what does it run?", notes=reasons[1:4],
            help="state what `opusc simulate` needs: `model`, `batch`, `microbatches` and so on",
        )  # fmt: skip


def _check_numbers(plan: Plan, sink: Diagnostics) -> None:
    cluster, fabric = plan.model.cluster, plan.model.fabric
    if cluster.scale_up is None:
        sink.error(
            "OPUS604",
            f"target `astra-sim` needs `scale_up` of cluster `{cluster.name}`",
            cluster.span,
            "has no `scale_up`",
            notes=["its matrices have the links of tensor groups inside a domain, in every configuration"],
            help="state the bandwidth of a GPU in its domain, for example `scale_up = 450 GB/s`",
        )
    said = set()
    for switch in plan.switches:
        kind, place = switch.kind, fabric.rails[switch.rails[0]].span
        missing = [name for name in ("settle", "relock") if getattr(kind, name) is None]
        if missing and place not in said:
            said.add(place)
            names = " and ".join(f"`{name}`" for name in missing)
            sink.error(
                "OPUS604",
                f"target `astra-sim` needs {names} of switch `{kind.name}`",
                place,
                f"`{kind.name}` does not say",
                notes=["network.yml has the time for which a changed link is dark: settle + relock + control"],
                help="state it, for example `switch = ... { reconfigure = { settle = 10 ms, relock = 0 ms } }`",
            )
    if not sink.has_errors and len({_dark(s.kind) for s in plan.switches}) > 1:
        times = sorted({_dark(s.kind) for s in plan.switches})
        sink.error(
            "OPUS602",
            f"target `astra-sim` cannot say fabric `{fabric.name}`: its switches take different times to reconfigure",
            fabric.at("switch"),
            notes=[f"{', '.join(decimal_text(Fraction(t, 10**9)) + ' ms' for t in times)}; network.yml has one"],
            help="override `reconfigure` with the slowest time for all rails",
        )


def _dark(kind: SwitchKind) -> int:
    """ps for which a changed link is dark. `control` counts where it is stated: the published delay has none."""
    return sum(time or 0 for time in (kind.settle, kind.relock, kind.control))


def _check_ranks(plan: Plan, sink: Diagnostics) -> None:
    job = plan.model.job
    pp = job.parallelism.pp
    expected = np.arange(plan.world) // max(plan.world // pp, 1)
    if not np.array_equal(plan.stage_of_rank, expected):
        wrong = int(np.flatnonzero(plan.stage_of_rank != expected)[0])
        sink.error(
            "OPUS605",
            "target `astra-sim` takes the pipeline as the outermost axis of the ranks",
            job.at("order"),
            f"rank {wrong} is in stage {int(plan.stage_of_rank[wrong])} here, and in {int(expected[wrong])} there",
            help="put `pp` last in `order`",
        )


def _check_groups(plan: Plan, parts: StageParts, sink: Diagnostics) -> None:
    """The simulator knows ranks only: every member of a group needs its own links, in the order of ranks."""
    pp = parts.stages
    for phase in plan.phases:
        axes = phase.spec.axes
        size = int(groups(grid_of(plan.model.job, axes), axes).shape[1])
        if size == 1 or set(axes) <= {"tp"}:
            continue
        reason = ""
        if not phase.instances:
            reason = "its groups lie inside scale-up domains, and only tensor groups have scale-up links there"
        elif phase.scoping is Scoping.STAGE and {i.shape.n for i in phase.instances} != {size}:
            n = min(i.shape.n for i in phase.instances)
            reason = f"its groups of {size} ranks share {n} domains, so some neighbours in the ring have no circuit"
        elif phase.scoping is Scoping.JOIN and (
            len(plan.relays) or any((s, s + 1) not in parts.join for s in range(pp - 1))
        ):
            reason = "stages share domains, so some of their links are inside a domain or need a relay"
        if reason:
            sink.error(
                "OPUS605",
                f"target `astra-sim` cannot say phase `{phase.name}`: {reason}",
                phase.spec.span,
                secondary=[Label(plan.model.job.parallelism.span, f"{plan.world:,} ranks")],
                notes=[f"a scale-up domain holds {plan.model.cluster.use} GPUs of the job"],
                help="choose tp so that a tensor group fills its domain",
            )


def _broken_rings(plan: Plan, state: State, source: np.ndarray, target: np.ndarray) -> Iterator[str]:
    """Stages without a link to another stage whose data-parallel groups the circuits do not connect."""
    stage = plan.stage_of_rank
    joined = set(stage[source][stage[source] != stage[target]].tolist())
    label = np.arange(plan.world)
    while True:
        before = label.copy()
        np.minimum.at(label, source, label[target])
        np.minimum.at(label, target, label[source])
        label = label[label]
        if np.array_equal(before, label):
            break
    members = groups(dense_grid(plan.model.job), ("dp",))
    for number in np.flatnonzero(np.ptp(label[members], axis=1) > 0).tolist():
        if (where := int(stage[members[number, 0]])) not in joined:
            yield f"stage {where} is joined to none, and ranks {members[number].tolist()[:4]}... are not connected"
            return


# --- network.yml ---------------------------------------------------------------------------------


def _network(plan: Plan) -> Network:
    return Network(
        title="network.yml",
        topology="FullyConnected",
        npus_count=plan.world,
        bandwidth=Fraction(plan.model.cluster.rail_nic.rate, GB),
        latency=LINK_LATENCY_NS,
        reconfig_time=Fraction(_dark(plan.switches[0].kind), _PS_PER_NS),
    )


def _network_text(network: Network, plan: Plan) -> bytes:
    kind = plan.switches[0].kind
    said = [
        f"{name} {decimal_text(Fraction(value, 10**9))} ms"
        for name in ("settle", "relock", "control")
        if (value := getattr(kind, name)) is not None
    ]
    rows = (
        ("topology", network.topology, "links come from schedules.txt"),
        ("npus_count", str(network.npus_count), "ranks"),
        ("bandwidth", decimal_text(network.bandwidth), "GB/s of 2^30 bytes, one NIC port"),
        ("latency", decimal_text(network.latency), "ns, as in the published runs"),
        ("reconfig_time", decimal_text(network.reconfig_time), f"ns: {' + '.join(said)}"),
    )
    return "".join(f"{key}: [ {value} ]  # {remark}\n" for key, value, remark in rows).encode()


def _read_network(path: Path) -> Network:
    found: dict[str, str] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        key, colon, rest = line.partition(": [ ")
        value, bracket, _ = rest.partition(" ]")
        if not colon or not bracket or key in found:
            raise Unreadable(f"network.yml: `{line[:40]}` is not `key: [ value ]`")
        found[key] = value
    try:
        quantities = {name: Fraction(found.pop(name)) for name in ("bandwidth", "latency", "reconfig_time")}
        network = Network("network.yml", found.pop("topology"), int(found.pop("npus_count")), **quantities)
    except (KeyError, ValueError) as error:
        raise Unreadable(f"network.yml: {error}") from error
    if found:
        raise Unreadable(f"network.yml: unknown key {next(iter(found))}")
    return network


BACKEND = AstraSim()
