"""What a person wants to know of a plan at a glance: its size, its switches, its phases."""

from collections import Counter
from collections.abc import Iterator

from opusc.cli.tables import count, labelled, plural, runs, table
from opusc.model.entities import RailBy
from opusc.plan.plan import Plan, PlannedPhase, Switch

__all__ = [
    "change_times",
    "describe",
    "milliseconds",
    "notes",
    "phase_rows",
    "phase_table",
    "switch_lines",
    "topology_text",
]


def describe(plan: Plan, width: int) -> str:
    """Nodes, GPUs, rails, switches and phases of a plan, in a screenful."""
    job, fabric, cluster = plan.model.job, plan.model.fabric, plan.model.cluster
    out = f"{job.name} on {fabric.name}: {_gpus(plan)}\n\n"
    if cluster.gpus_per_domain != cluster.gpus_per_node:
        used = f", {cluster.use} of them used" if cluster.use != cluster.gpus_per_domain else ""
        text = f"{count(cluster.domain_count)} of {plural(cluster.gpus_per_domain, 'GPU')}{used}"
        out += labelled("domains", text, width)
    rule = "local rank" if fabric.rail_by is RailBy.LOCAL_RANK else "domain rank"
    out += labelled("rails", f"{count(len(fabric.rails))}, by {rule}", width)
    for at, line in enumerate(switch_lines(plan)):
        out += labelled("switches" if at == 0 else "", line, width)
    out += labelled("changes", change_times(plan), width)
    return out + "\n" + phase_table(plan)


def _gpus(plan: Plan) -> str:
    cluster = plan.model.cluster
    nodes = f"{plural(cluster.node_count, 'node')} of {count(cluster.gpus_per_node)}"
    text = f"{plural(cluster.gpu_count, 'GPU')} in {nodes}"
    return text if plan.world == cluster.gpu_count else f"{count(plan.world)} of {text}"


def switch_lines(plan: Plan) -> Iterator[str]:
    """Switches of one kind that are equally full share a line; so do those that each have a name of their own."""
    named = Counter(switch.kind.name for switch in plan.switches)
    alike: dict[tuple[str, int, int], list[Switch]] = {}
    for switch in plan.switches:
        name = switch.kind.name if named[switch.kind.name] > 1 else ""
        alike.setdefault((name, switch.kind.radix, switch.positions_used), []).append(switch)
    for (name, radix, used), switches in alike.items():
        names = name or " to ".join(dict.fromkeys((switches[0].kind.name, switches[-1].kind.name)))
        what = f"x {names}" if name or len(switches) == 1 else f"({names})"
        text = f"{count(len(switches))} {what}, {count(used)} of {count(radix)} positions used"
        if len(alike) > 1:
            rails = sorted({rail for switch in switches for rail in switch.rails})
            text += f" (rail{'s' * (len(rails) > 1)} {runs(rails)})"
        yield text


def change_times(plan: Plan) -> str:
    """What a change takes on the switches: settle + relock + control, or which of them the program does not state."""
    from opusc.plan.transitions import dark_time, not_stated

    alike: dict[tuple[int | None, tuple[str, ...]], set[int]] = {}
    for switch in plan.switches:
        key = dark_time(switch.kind), not_stated(switch.kind)
        alike.setdefault(key, set()).update(switch.rails)
    texts = []
    for (time, unknown), rails in alike.items():
        text = f"take {milliseconds(time)} each" if time is not None else f"time not stated ({' and '.join(unknown)})"
        where = f" (rail{'s' * (len(rails) > 1)} {runs(sorted(rails))})" if len(alike) > 1 else ""
        texts.append(text + where)
    return "; ".join(texts)


def milliseconds(picoseconds: int) -> str:
    """`25 ms`, `0.5 ms`, exactly."""
    whole, rest = divmod(picoseconds, 10**9)
    return f"{whole:,}" + (f".{rest:09}".rstrip("0") if rest else "") + " ms"


def phase_table(plan: Plan) -> str:
    header = ("phase", "topology", "parts", "steps", "circuits")
    return table(header, phase_rows(plan), right=(2, 3, 4))


def phase_rows(plan: Plan) -> Iterator[tuple[str, ...]]:
    rows_of = [0] * len(plan.phases)
    parts_of = [0] * len(plan.phases)
    for part in plan.parts:
        rows = plan.rows(part.index)
        rows_of[part.phase] += rows.stop - rows.start
        parts_of[part.phase] += 1
    for phase in plan.phases:
        if not phase.instances:
            yield (phase.name, "inside the domains", "-", "-", "-")
        else:
            numbers = (parts_of[phase.index], phase.step_count, rows_of[phase.index])
            yield (phase.name, topology_text(phase), *map(count, numbers))


def topology_text(phase: PlannedPhase) -> str:
    """`ring`, `flattened_butterfly 2 x 4`, `ring, 2 copies`."""
    topology = phase.spec.topology
    text = topology.name
    if topology.dims:
        text += " " + " x ".join(map(str, topology.dims))
    if topology.one_way:
        text += ", one way"
    copies = {instances.shape.copies for instances in phase.instances}
    if max(copies, default=1) > 1:
        text += f", {runs(sorted(copies))} copies"
    return text


def notes(plan: Plan, width: int) -> str:
    """Assumptions, relays, and requirements that were not checked."""
    out = ""
    for at, assumption in enumerate(plan.assumptions):
        out += labelled("assumed" if at == 0 else "", assumption, width)
    if len(plan.relays):
        out += labelled("relays", f"{plural(len(plan.relays), 'hop')} inside domains to another rail", width)
    unchecked = [r for r in plan.model.requirements if not r.checked]
    for at, requirement in enumerate(unchecked):
        reason = f" (needs {', '.join(requirement.needs)})" if requirement.needs else ""
        out += labelled("not checked" if at == 0 else "", f"require {requirement.text}{reason}", width)
    return out
