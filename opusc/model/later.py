"""What this version parses and formats but does not compile: mistakes in it are still told, and it is refused once.

Faults name a thing by its path (`rails.rail[3]`); several jobs share out the nodes of a cluster.
"""

from typing import NamedTuple

from opusc.diagnostics import Diagnostics, Edit, Label
from opusc.diagnostics.suggest import closest
from opusc.model.evaluate import Evaluator, Stop
from opusc.model.hardware import cluster
from opusc.model.reader import Reader
from opusc.model.schema import KINDS
from opusc.model.values import Block, Scope
from opusc.source import Span
from opusc.syntax import tree

__all__ = ["Later", "check_later", "refuse", "waits"]

#: The lists that a path may go through, by the kind of block they belong to.
_LISTS = {"fabric": ("rail",), "cluster": ("node", "gpu")}


class Later(NamedTuple):
    what: str
    span: Span
    entirely: bool = False  # nothing of the program can be checked, for its modules do not exist yet either


def waits(program: tree.Program) -> Later | None:
    """What the program needs that comes later, and where; None when this version compiles it."""
    declared = [entry for entry in program.entries if isinstance(entry, tree.Declaration)]
    pods = [entry for entry in declared if entry.kind.text in KINDS and KINDS[entry.kind.text].later]
    faults = [entry for entry in program.entries if isinstance(entry, tree.Fault)]
    jobs = [entry for entry in declared if entry.kind.text == "job"]
    if pods:
        return Later(f"`{pods[0].kind.text}`: TPU pods and slices are", pods[0].span, entirely=True)
    if faults:
        return Later("`fault`: failures and spares are", faults[0].span)
    if len(jobs) > 1:
        return Later(f"job `{jobs[1].name.text}`: several jobs on one fabric are", jobs[1].name.span)
    return None


def refuse(later: Later, sink: Diagnostics) -> None:
    sink.error(
        "OPUS110",
        f"{later.what} planned for a later version of opusc",
        later.span,
        "not in this version",
        help="this version compiles one job on one rail fabric; `opusc fmt` formats the program all the same",
    )


def check_later(ev: Evaluator, program: tree.Program, scope: Scope, blocks: list[Block]) -> None:
    """Mistakes in faults and in the nodes of several jobs."""
    for entry in program.entries:
        if isinstance(entry, tree.Fault) and entry.of is not None:
            _check_path(ev, entry.of, scope, blocks)
    _check_nodes(ev, [block for block in blocks if block.kind == "job"])


# --- several jobs --------------------------------------------------------------------------------


def _check_nodes(ev: Evaluator, jobs: list[Block]) -> None:
    """No node is in two jobs."""
    taken: dict[tuple[str, int], tuple[str, Span]] = {}
    for block in jobs:
        reader = Reader(ev, block, "job", partial=True)
        nodes, fabric = reader.indices("nodes"), reader.entry("fabric")
        if nodes is None or fabric is None:
            continue
        on = fabric.value.span.text
        span = reader.spans()["nodes"]
        clash = next((node for node in nodes if (on, node) in taken), None)
        if clash is not None:
            other, before = taken[on, clash]
            first = next(node for (fab, node), (job, _) in taken.items() if fab == on and job == other)
            count = clash - first
            ev.sink.error(
                "OPUS208",
                f"node {clash} is in both jobs, `{other}` and `{block.name}`",
                span,
                f"node {clash} again",
                secondary=[Label(before, f"node {clash}")],
                help=f"ranges include both ends: {count} nodes are `{first}..{clash - 1}`" if count > 0 else "",
            )
        taken.update({(on, node): (block.name, span) for node in nodes})


# --- faults --------------------------------------------------------------------------------------


def _check_path(ev: Evaluator, node: tree.Expression, scope: Scope, blocks: list[Block]) -> None:
    """`rails.rail[3]`, `pool.node[12].gpu`: the first name is declared, the lists exist, the indices are in range."""
    steps: list[tuple[tree.Name, tree.Expression | None]] = []
    index: tree.Expression | None = None
    while not isinstance(node, tree.Name):
        match node:
            case tree.Index():
                index = node.index
                node = node.value
            case tree.Attribute():
                steps.append((node.name, index))
                node = node.value
                index = None
            case _:
                ev.sink.error("OPUS201", "a path is needed here, such as `rails.rail[3]`", node.span, "no path")
                return
    by_name = {block.name: block for block in blocks}
    owner = by_name.get(node.text)
    if owner is None:
        _which_owner(ev, node, blocks)
        return
    for name, at in reversed(steps):
        known = _LISTS.get(owner.kind, ())
        if name.text not in known:
            near = closest(name.text, known)
            ev.sink.error(
                "OPUS101",
                f"{owner.kind} `{owner.name}` has no `{name.text}`",
                name.span,
                f"the list is `{near}`" if near else "no such list",
                help=f"lists: {', '.join(known)}" if known and not near else "",
                fix=[Edit(name.span, near)] if near else [],
            )
            return
        if at is not None:
            _check_index(ev, name, at, scope, owner)


def _which_owner(ev: Evaluator, name: tree.Name, blocks: list[Block]) -> None:
    kind = next((kind for kind, lists in _LISTS.items() if name.text in lists), None)
    owners = [block.name for block in blocks if block.kind == kind]
    if kind is None or not owners:
        names = [block.name for block in blocks]
        near = closest(name.text, names)
        label = f"did you mean `{near}`?" if near else "not declared"
        ev.sink.error("OPUS101", f"unknown name `{name.text}`", name.span, label)
        return
    full = [f"{owner}.{name.text}" for owner in owners]
    ev.sink.error(
        "OPUS101",
        f"which {kind}? `{name.text}` is a list of a {kind}",
        name.span,
        f"write `{full[0]}`" if len(full) == 1 else "not said",
        help=f"one of: {', '.join(full)}" if len(full) > 1 else "",
        fix=[Edit(name.span, full[0])] if len(full) == 1 else [],
    )


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def _check_index(ev: Evaluator, name: tree.Name, at: tree.Expression, scope: Scope, owner: Block) -> None:
    count = _count(ev, name.text, owner)
    try:
        value = ev.evaluate(at, scope)
    except Stop:
        return
    if count is None or not isinstance(value, int) or 0 <= value < count:
        return
    last = value == count
    which = _ORDINALS[count - 1] if count <= len(_ORDINALS) else "last"
    ev.sink.error(
        "OPUS204",
        f"there is no {name.text} {value}: {name.text}s are 0..{count - 1}",
        at.span,
        f"the {which} is `{name.text}[{count - 1}]`" if last else "out of range",
        fix=[Edit(at.span, str(count - 1))] if last and isinstance(at, tree.Number) else [],
    )


def _count(ev: Evaluator, name: str, owner: Block) -> int | None:
    """How many there are; None when the hardware is wrong itself, which is told where it is declared."""
    reader = Reader(ev, owner, owner.kind, partial=True)
    inner = reader.sub("cluster", "cluster") if owner.kind == "fabric" else reader
    by = reader.choice("rail_by") if owner.kind == "fabric" else None
    hardware = cluster(inner) if inner else None
    if hardware is None:
        return None
    if name == "node":
        return hardware.node_count
    return hardware.gpus_per_domain if by and by.word == "domain_rank" else hardware.gpus_per_node
