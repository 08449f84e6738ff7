"""Fabrics: rails and their switches, and how the cabling is stated."""

from dataclasses import replace

from opusc.diagnostics import Label
from opusc.model.cabling import cabling
from opusc.model.components import Fibre
from opusc.model.entities import CablingKind, CablingSpec, Cluster, Fabric, RailBy, RailSpec, SwitchKind
from opusc.model.hardware import components, fibre, switch
from opusc.model.loader import FileLoader
from opusc.model.reader import Reader
from opusc.model.sweep import placed
from opusc.model.values import Bound, Entry

__all__ = ["fabric", "look_at_switch"]

MOST_SWITCHES = 65_536


def fabric(reader: Reader, cluster: Cluster, loader: FileLoader) -> Fabric | None:
    by, planes, blocks = reader.choice("rail_by"), reader.count("planes") or 1, reader.count("blocks") or 1
    if by is None or not _fits(reader, cluster, planes, blocks):
        return None
    rail_by = RailBy(by.word)
    rail_count = cluster.gpus_per_node if rail_by is RailBy.LOCAL_RANK else cluster.gpus_per_domain
    if rail_count * planes * blocks > MOST_SWITCHES:
        reader.ev.sink.error(
            "OPUS120",
            f"fabric `{reader.what}` has {rail_count * planes * blocks:,} switches; the limit is {MOST_SWITCHES:,}",
            reader.block.span,
            f"{rail_count:,} rails, {planes:,} planes, {blocks:,} blocks",
        )
        return None
    rails = _rails(reader, rail_count, planes, blocks)
    figures = reader.sub("components", "components")
    made = components(figures) if figures else None
    stated = cabling(reader, cluster, rail_count, loader)
    if rails is None or stated is None or not _alike(reader, rails, stated):
        return None
    return Fabric(
        name=reader.block.name,
        cluster=cluster,
        rail_by=rail_by,
        rails=rails,
        planes=planes,
        blocks=blocks,
        cabling=stated,
        components=made,
        span=reader.block.span,
        spans=reader.spans(),
    )


def _fits(reader: Reader, cluster: Cluster, planes: int, blocks: int) -> bool:
    sink, ports = reader.ev.sink, cluster.rail_nic.ports
    if planes > ports or ports % planes:
        without = (
            f"plane{'s' * (planes - ports > 1)} {ports}..{planes - 1}" if planes - ports > 1 else f"plane {planes - 1}"
        )
        verb = "has" if ports == 1 else "have"
        message = (
            f"{without} would have no fibre: each GPU has {ports} NIC port{'s' * (ports > 1)}"
            if planes > ports
            else f"{ports} NIC ports do not spread evenly over {planes} planes"
        )
        fitting = [str(p) for p in range(1, ports + 1) if ports % p == 0]
        sink.error(
            "OPUS307", message, reader.spans()["planes"], f"{planes} planes",
            secondary=[Label(cluster.rail_nic.at("ports"), f"{ports} port{'s' * (ports > 1)} {verb} room for {ports}")],
            help=f"use at most {ports}: " + " or ".join(fitting),
        )  # fmt: skip
        return False
    if cluster.node_count % blocks:
        sink.error(
            "OPUS307", f"{cluster.node_count} nodes do not spread evenly over {blocks} blocks",
            reader.spans()["blocks"], f"{blocks} blocks", secondary=[Label(cluster.at("node_count"), "nodes")],
        )  # fmt: skip
        return False
    return True


def _rails(reader: Reader, count: int, planes: int, blocks: int) -> tuple[RailSpec, ...] | None:
    common = reader.entry("switch")
    own = _overrides(reader, count)
    special = _changed(own, "switch", common.value if common else None)
    fibres = _fibres(reader, count, own)
    made: dict[tuple[int, tuple[int, ...]], SwitchKind | None] = {}
    rails = []
    for index in range(count):
        bound = special.get(index) or (common.value if common else None)
        if bound is None:
            reader.ev.sink.error(
                "OPUS209", f"rail {index} of fabric `{reader.what}` has no switch", reader.block.span,
                "`switch` is missing", help="state `switch` for all rails, or `rail[...] = { switch = ... }` for each",
            )  # fmt: skip
            return None
        switches = []
        for place in range(planes * blocks):
            # Most switches are the same in all places: they are read once.
            where = {"rail": index, "plane": place // blocks, "block": place % blocks}
            key = tuple(where[name] for name in where if _mentions(bound, name))
            if (id(bound), key) not in made:
                inner = reader.as_block("switch", placed(bound, **where), "switch")
                made[id(bound), key] = switch(inner) if inner else None
            one = made[id(bound), key]
            if one is None:
                return None
            switches.append(one)
        rails.append(RailSpec(index=index, switches=tuple(switches), fibre=fibres[index], span=bound.span))
    return tuple(rails)


def look_at_switch(reader: Reader) -> None:
    """Tell what is wrong with the common switch of a fabric that cannot be read since its cluster is wrong."""
    entry = reader.entry("switch")
    inner = reader.as_block("switch", placed(entry.value, rail=0, plane=0, block=0), "switch") if entry else None
    if inner is not None:
        switch(inner)


def _mentions(bound: Bound, name: str) -> bool:
    """Whether an expression, or what it changes, names `name`; a text search that errs on the safe side."""
    return name in bound.span.text or (bound.base is not None and _mentions(bound.base, name))


def _fibres(reader: Reader, count: int, own: dict[int, Reader]) -> list[Fibre | None]:
    """The cables of each rail; those of rails that are written in one place are read once."""
    common = reader.entry("fibre")
    special = _changed(own, "fibre", common.value if common else None)
    made: dict[int, Fibre | None] = {}
    found: list[Fibre | None] = []
    for index in range(count):
        bound = special.get(index) or (common.value if common else None)
        if bound is not None and id(bound) not in made:
            inner = reader.as_block("fibre", bound, "fibre")
            made[id(bound)] = fibre(inner) if inner else None
        found.append(made[id(bound)] if bound is not None else None)
    return found


def _changed(own: dict[int, Reader], field: str, common: Bound | None) -> dict[int, Bound]:
    """A field of each rail that states one of its own: a record changes the fabric's, anything else replaces it."""
    found: dict[int, Bound] = {}
    changed: dict[int, Bound] = {}
    for index, inner in own.items():
        stated = inner.entry(field)
        if stated is not None:
            found[index] = changed.setdefault(id(inner), replace(stated.value, base=common))
    return found


def _overrides(reader: Reader, count: int) -> dict[int, Reader]:
    """What `rail[...] = { ... }` says, of each rail that has one."""
    found: dict[int, Reader] = {}
    where: dict[int, Entry] = {}
    for entry in reader.all("rail"):
        if entry.selection is None:
            if not entry.label:  # which is an error of its own
                reader.ev.sink.error(
                    "OPUS207",
                    "`rail` needs a selection",
                    entry.span,
                    "which rails?",
                    help="for example `rail[0..3] = { ... }`",
                )
            continue
        inner = reader.as_block("rail", entry.value, "rail")
        for index in reader.as_indices("rail", entry.selection) or ():
            if not 0 <= index < count:
                reader.ev.sink.error(
                    "OPUS204",
                    f"there is no rail {index}: rails are 0..{count - 1}",
                    entry.selection.span,
                    "no such rail",
                )
                break
            if index in where:
                reader.ev.sink.error(
                    "OPUS208", f"rail {index} is stated twice", entry.span, "again here",
                    secondary=[Label(where[index].span, "first here")],
                )  # fmt: skip
                break
            where[index] = entry
            if inner is not None:
                found[index] = inner
    return found


def _alike(reader: Reader, rails: tuple[RailSpec, ...], stated: CablingSpec) -> bool:
    """All switches of a fabric have one kind of matrix; those that share a chassis are one."""
    switches = [s for rail in rails for s in rail.switches]
    other = next((s for s in switches if s.matrix is not switches[0].matrix), None)
    if other is not None:
        reader.ev.sink.error(
            "OPUS308", "switches of one fabric must have one kind of matrix",
            other.at("matrix"), f"`{other.name}` is {other.matrix}",
            secondary=[Label(switches[0].at("matrix"), f"`{switches[0].name}` is {switches[0].matrix}")],
        )  # fmt: skip
        return False
    return stated.kind is not CablingKind.SHARE or _one_chassis(reader, rails, stated)


def _one_chassis(reader: Reader, rails: tuple[RailSpec, ...], stated: CablingSpec) -> bool:
    """With `share`, the rails of a plane are positions of one switch: they cannot differ, nor be split into blocks."""
    blocks = reader.entry("blocks")
    if blocks is not None and reader.count("blocks") != 1:
        reader.ev.sink.error(
            "OPUS308", "rails that share a chassis have no blocks: each block is a switch of its own",
            blocks.value.span, f"{blocks.value.span.text} blocks", secondary=[Label(stated.span, "one chassis")],
        )  # fmt: skip
        return False
    other = next((rail for rail in rails if rail.switches != rails[0].switches), None)
    if other is not None:
        reader.ev.sink.error(
            "OPUS308", f"rails that share a chassis have one switch, and that of rail {other.index} differs",
            other.span, f"rail {other.index}", secondary=[Label(stated.span, "one chassis")],
        )  # fmt: skip
        return False
    chassis = rails[0].switches[0]
    for rail, positions in stated.share:
        bad = next((position for position in positions if not 1 <= position <= chassis.radix), None)
        if bad is not None:
            reader.ev.sink.error(
                "OPUS204", f"there is no position {bad}: `{chassis.name}` has positions 1..{chassis.radix:,}",
                stated.at(f"rail {rail}"), f"rail {rail}", notes=["ranges include both ends"],
            )  # fmt: skip
            return False
    return True
