"""A plan for people: all of it in outline, one phase, or one rank."""

from collections.abc import Iterable, Sequence

import numpy as np

from opusc.cli.circuits import UsedCircuit, circuits_of, detours_of, group_of
from opusc.cli.summary import describe, notes, topology_text
from opusc.cli.tables import count, labelled, plural, runs, table
from opusc.cli.terminal import UsageError
from opusc.diagnostics.suggest import closest
from opusc.model.entities import Matrix, RailBy
from opusc.plan.plan import Part, Plan, PlannedPhase
from opusc.plan.ranks import grid_of

__all__ = ["chosen_parts", "overview", "phase_named", "phase_view", "rank_view"]

_LIMIT = 40  # rows that a person reads


def phase_named(plan: Plan, name: str) -> PlannedPhase:
    for phase in plan.phases:
        if phase.name == name:
            return phase
    names = [phase.name for phase in plan.phases]
    meant = closest(name, names)
    hint = f"did you mean `{meant}`?" if meant else f"it has {', '.join(names) or 'none'}"
    raise UsageError(f"the job has no phase `{name}`; {hint}")


def chosen_parts(plan: Plan, phase: str | None, stage: int | None, step: int | None) -> list[Part]:
    """Parts of a phase, stage and step, each only where given. Raises UsageError when there are none."""
    stages = plan.model.job.parallelism.pp
    if stage is not None and stage >= stages:
        raise UsageError(f"there is no stage {stage}: the job has {plural(stages, 'stage')}, from 0")
    wanted = None if phase is None else phase_named(plan, phase)
    found = []
    for part in plan.parts:
        scope = plan.phases[part.phase].scopes[part.scope]
        if wanted is not None and part.phase != wanted.index:
            continue
        if (stage is None or not scope or stage in scope) and (step is None or part.step == step):
            found.append(part)
    if not found and wanted is not None and not wanted.instances:
        raise UsageError(f"phase `{wanted.name}` stays inside the domains: it has no circuits")
    if not found:
        raise UsageError("no part has this phase, stage and step")
    return found


def overview(plan: Plan, width: int) -> str:
    out = describe(plan, width) + "\n" + notes(plan, width)
    return out + "\n" + _parts(plan, plan.parts, width) + "\n" + _switches(plan)


def phase_view(plan: Plan, phase: str | None, stage: int | None, step: int | None, width: int) -> str:
    parts = chosen_parts(plan, phase, stage, step)
    out = ""
    for index in dict.fromkeys(part.phase for part in parts):
        planned = plan.phases[index]
        out += labelled("phase", _title(plan, planned), width)
        out += labelled("topology", _topology(planned), width)
        out += labelled("groups", _groups(planned, {part.scope for part in parts if part.phase == index}), width)
        if planned.routes:
            out += labelled("relays", "traffic between domains that are no neighbours passes one that is", width)
        out += "\n"
    out += _parts(plan, parts, width)
    if len(parts) == 1:
        out += "\n" + _circuits(plan, parts[0], width)
    return out


def rank_view(plan: Plan, rank: int, phase: str | None, stage: int | None, step: int | None, width: int) -> str:
    """Where a rank is, and for each phase its group, its circuits and its relays."""
    if rank >= plan.world:
        raise UsageError(f"there is no rank {rank}: the job has {plural(plan.world, 'rank')}, from 0")
    phases = plan.phases if phase is None else (phase_named(plan, phase),)
    allowed = {part.index for part in plan.parts}
    if stage is not None or step is not None:
        allowed = {part.index for part in chosen_parts(plan, phase, stage, step)}
    out = _where(plan, rank)
    for planned in phases:
        number, members = group_of(plan, planned, rank)
        out += "\n" + labelled("phase", _title(plan, planned), width)
        out += labelled("group", f"{number}: ranks {runs(members)}", width)
        if not planned.instances:
            out += labelled("circuits", "none: the group stays inside its domain", width)
            continue
        out += labelled("topology", _topology(planned), width)
        used = [use for use in circuits_of(plan, planned, rank) if use.part in allowed]
        out += _detours(plan, planned, rank, width)
        out += "\n" + _used(plan, used) if used else labelled("circuits", "none", width)
    return out


def _where(plan: Plan, rank: int) -> str:
    fabric, cluster = plan.model.fabric, plan.model.cluster
    gpu = int(plan.gpu_of_rank[rank])
    node, local = divmod(gpu, cluster.gpus_per_node)
    per_rail = cluster.gpus_per_node if fabric.rail_by is RailBy.LOCAL_RANK else cluster.gpus_per_domain
    place = f"rank {rank} is GPU {local} of node {node}, on rail {gpu % per_rail}"
    if cluster.gpus_per_domain != cluster.gpus_per_node:
        place += f", in domain {gpu // cluster.gpus_per_domain}"
    return f"{place}, in pipeline stage {int(plan.stage_of_rank[rank])}\n"


def _title(plan: Plan, phase: PlannedPhase) -> str:
    """`dp over dp * cp`, without axes of one rank."""
    grid = grid_of(plan.model.job, phase.spec.axes)
    wide = [axis.name for axis in grid.axes if axis.name in phase.spec.axes and axis.size > 1]
    stated = [name for name in phase.spec.axes if name in wide or not wide]
    return f"{phase.name} over {' * '.join(stated)}"


def _groups(phase: PlannedPhase, scopes: set[int]) -> str:
    """How many groups have links in these scopes, of how many, and how often the topology is there for them."""
    groups, copies = set[int](), 0
    for instances in phase.instances:
        mine = instances.group[np.isin(instances.scope, list(scopes)).any(axis=1)]
        groups.update(mine.tolist())
        copies += len(mine)
    of = f" of {count(phase.group_count)}" if len(groups) < phase.group_count else ""
    return f"{count(len(groups))}{of}, with {plural(copies, 'copy')} of the topology over rails"


def _topology(phase: PlannedPhase) -> str:
    sizes = sorted({instances.shape.n for instances in phase.instances})
    text = f"{topology_text(phase)} among {runs(sizes)} domains"
    return text + (f", in {phase.step_count} steps" if phase.step_count > 1 else "")


def _used(plan: Plan, uses: Sequence[UsedCircuit]) -> str:
    """A row a neighbour, ports as GPU.port; the two circuits of a two-way link share it."""
    cluster = plan.model.cluster
    links: dict[tuple[int, ...], dict[str, UsedCircuit]] = {}
    for use in uses:
        key = (use.part, use.gpu, use.port, use.peer_gpu, use.peer_port)
        links.setdefault(key, {})[use.way] = use
    rows = []
    for ways in links.values():
        use = ways.get("to") or next(iter(ways.values()))
        node, local = divmod(use.peer_gpu, cluster.gpus_per_node)
        peer = f"rank {use.peer}" if use.peer >= 0 else "no rank"
        positions = _positions(plan, use.switch, use.ingress, use.egress)
        rows.append(
            (
                plan.parts[use.part].name,
                f"{use.gpu % cluster.gpus_per_node}.{use.port}",
                use.way if len(ways) == 1 else "both",
                f"{peer} (node {node}, port {local}.{use.peer_port})",
                plan.switches[use.switch].name,
                positions if len(ways) == 1 else positions.replace("->", "<->"),
            )
        )
    return table(("part", "port", "way", "peer", "switch", "positions"), rows)


def _positions(plan: Plan, switch: int, ingress: int, egress: int) -> str:
    """`9 -> 18` on a crossbar, as a technician counts; `9 - 18` where either end may send."""
    kind = plan.switches[switch].kind
    if kind.matrix is Matrix.CROSSBAR:
        return f"{ingress} -> {egress - kind.radix}"
    return f"{ingress} - {egress}"


def _detours(plan: Plan, phase: PlannedPhase, rank: int, width: int) -> str:
    out = ""
    reached: dict[int, list[int]] = {}
    for reach in detours_of(plan, phase, rank):
        reached.setdefault(reach.via, []).append(reach.target)
    for via, targets in reached.items():
        out += labelled("relay", f"rank {via} passes on what is for {_ranks(targets)}", width)
    gpu = int(plan.gpu_of_rank[rank])
    r = plan.relays
    for at in np.flatnonzero((r.rank == rank) | (r.via == gpu)).tolist():
        part = plan.parts[int(r.part[at])]
        if part.phase != phase.index:
            continue
        if int(r.rank[at]) == rank:
            via = int(plan.rank_of_gpu[int(r.via[at])])
            text = f"{part.name}: to and from rank {int(r.peer[at])} through rank {via}, inside the domain"
        else:
            text = f"{part.name}: passes on between ranks {int(r.rank[at])} and {int(r.peer[at])}"
        out += labelled("relay", text, width)
    return out


def _ranks(numbers: Iterable[int]) -> str:
    listed = sorted(numbers)
    return f"rank{'s' if len(listed) > 1 else ''} {runs(listed)}"


def _parts(plan: Plan, parts: Sequence[Part], width: int) -> str:
    """A row a part, naming as many of the parts that exclude it as the width has room for."""
    text = ""
    for most in (4, 3, 2, 1):
        rows = []
        for part in parts[:_LIMIT]:
            at = plan.rows(part.index)
            others = sorted(plan.excluded_with[part.index])
            names = ", ".join(plan.parts[other].name for other in others[:most])
            more = f" and {len(others) - most} more" if len(others) > most else ""
            rows.append((part.name, count(at.stop - at.start), f"{names}{more}" or "-"))
        text = table(("part", "circuits", "cannot hold with"), rows, right=(1,))
        if max(map(len, text.splitlines())) <= width:
            break
    return text + _more(len(parts))


def _switches(plan: Plan) -> str:
    rows = []
    for switch in plan.switches[:_LIMIT]:
        used = f"{count(switch.positions_used)} of {count(switch.kind.radix)}"
        rows.append((switch.name, switch.kind.name, used, switch.kind.address or "-"))
    return table(("switch", "kind", "positions", "address"), rows) + _more(len(plan.switches))


def _circuits(plan: Plan, part: Part, width: int) -> str:
    """Switch by switch, what is connected."""
    c = plan.circuits
    at = plan.rows(part.index)
    by_switch: dict[int, list[str]] = {}
    for row in range(at.start, min(at.stop, at.start + 64 * _LIMIT)):
        switch = int(c.switch[row])
        by_switch.setdefault(switch, []).append(_positions(plan, switch, int(c.ingress[row]), int(c.egress[row])))
    column = max(len(plan.switches[switch].name) for switch in by_switch) + 2
    listed = list(by_switch.items())
    out = labelled("switch", "positions", width, column=column)
    for switch, pairs in listed[:_LIMIT]:
        text = ", ".join(pair.replace(" ", "\xa0") for pair in pairs)
        out += labelled(plan.switches[switch].name, text, width, column=column).replace("\xa0", " ")
    return out + _more(len(listed))


def _more(total: int) -> str:
    return f"... and {count(total - _LIMIT)} more\n" if total > _LIMIT else ""
