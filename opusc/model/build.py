"""From syntax tree to model: every name resolved, every quantity exact, every rule checked."""

from collections.abc import Mapping

from opusc.diagnostics import Diagnostics
from opusc.model.entities import Job, Model, Requirement
from opusc.model.evaluate import Evaluator, Stop
from opusc.model.fabric import fabric, look_at_switch
from opusc.model.hardware import cluster
from opusc.model.job import job
from opusc.model.later import check_later, refuse, waits
from opusc.model.loader import FileLoader
from opusc.model.modules import Modules
from opusc.model.reader import Reader
from opusc.model.requirements import requirement
from opusc.model.schema import KINDS
from opusc.model.sweep import sweep
from opusc.model.values import Block, Scope
from opusc.syntax import tree

__all__ = ["build_model"]


def build_model(
    program: tree.Program, loader: FileLoader, parameters: Mapping[str, str], sink: Diagnostics
) -> Model | None:
    """The model of a program, or None with errors in the sink.

    `parameters` are values for `param`s, as texts in the language. `loader` reads used files and cabling.
    """
    later = waits(program)
    if later is not None and later.entirely:
        refuse(later, sink)
        return None
    ev = Evaluator(sink)
    modules = Modules(loader, ev, parameters)
    try:
        scope = modules.scope_of(program, main=True)
        blocks = _declared(program, modules, scope)
        if later is not None:
            check_later(ev, program, scope, blocks)
            if not sink.has_errors:
                refuse(later, sink)
            return None
        made = _job(ev, blocks, modules, program, sink)
        for block in blocks:
            if block.kind in KINDS:
                sweep(ev, block, block.kind)
        requirements = _requirements(ev, modules)
    except Stop:
        return None
    if made is None or sink.has_errors:
        return None
    return Model(
        job=made,
        requirements=requirements,
        parameters=dict(sorted(modules.parameters.items())),
        sources=tuple(modules.sources[name] for name in modules.sources),
    )


def _declared(program: tree.Program, modules: Modules, scope: Scope) -> list[Block]:
    """The blocks that the main file declares, in order."""
    found = []
    for entry in program.entries:
        if isinstance(entry, tree.Declaration):
            block = modules.force_declaration(entry.name.text, scope)
            if block is not None:
                found.append(block)
    return found


def _job(ev: Evaluator, blocks: list[Block], loader: Modules, program: tree.Program, sink: Diagnostics) -> Job | None:
    found = next((block for block in blocks if block.kind == "job"), None)
    if found is None and any(isinstance(e, tree.Declaration) and e.kind.text == "job" for e in program.entries):
        return None  # its declaration went wrong, which is said
    if found is None:
        sink.error(
            "OPUS109", "the program has no job", program.source.span(0, 0), "nothing to compile",
            help="declare a `job` with its `fabric` and `parallelism`",
        )  # fmt: skip
        return None
    reader = Reader(ev, found, "job")
    fabrics = reader.sub("fabric", "fabric")
    clusters = fabrics.sub("cluster", "cluster") if fabrics else None
    hardware = cluster(clusters) if clusters else None
    if fabrics and not hardware:
        look_at_switch(fabrics)
    network = fabric(fabrics, hardware, loader) if fabrics and hardware else None
    return job(reader, network, loader) if network else None


def _requirements(ev: Evaluator, modules: Modules) -> tuple[Requirement, ...]:
    """The `require`s of all files, and of all blocks that were read, each said once."""
    files = {name: number for number, name in enumerate(modules.sources)}
    nodes = [*modules.requires, *ev.requires]
    nodes.sort(key=lambda pair: (files.get(pair[0].span.source.name, len(files)), pair[0].span.start))
    found: dict[int, Requirement | None] = {}
    for node, where in nodes:
        # The switch of a fabric is read once for each place; the first place where it fails is enough.
        if found.get(id(node), True) is not None:
            found[id(node)] = requirement(ev, node, where)
    return tuple(r for r in found.values() if r is not None)
