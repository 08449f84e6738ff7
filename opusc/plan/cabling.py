"""Cabling: which switch, and which of its ports, each NIC port ends on.

Positions of a switch, counted from 1, by matrix and optics (DESIGN, section 2):

- crossbar, duplex: transmit of position k is ingress k, receive is egress N + k; N ports fit;
- crossbar, bidi: a port is on side A (ingress k) or side B (egress N + k); N ports of each side fit;
- any, bidi: a port is position k; N ports fit;
- any, duplex: transmit and receive take a position each; N / 2 ports fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opusc.diagnostics import Diagnostics, Label
from opusc.model.entities import Cable, CablingKind, Fabric, Job, Matrix, Optics, Side, SwitchKind
from opusc.plan.plan import Cabling, Int32, Switch
from opusc.plan.ports import PortModel, port_model
from opusc.plan.ranks import rail_of

__all__ = ["cable", "ports_of_position"]


def ports_of_position(kind: SwitchKind, position: int, side: Side | None = None) -> tuple[int, ...]:
    """The switch ports behind a position: ingress and egress of a crossbar, or the one port of `any`."""
    if kind.matrix is Matrix.ANY:
        return (position,)
    both = (position, kind.radix + position)
    return both if side is None else both[:1] if side is Side.A else both[1:]


@dataclass(frozen=True)
class _Layout:
    """What all switches of a fabric have in common."""

    fabric: Fabric
    ports: PortModel
    rail: Int32  # of each GPU
    block: Int32  # of each GPU

    @property
    def shared(self) -> bool:
        return self.fabric.cabling.kind is CablingKind.SHARE

    def switch_index(self, rail: int, plane: int, block: int) -> int:
        if self.shared:
            return plane
        return (rail * self.fabric.planes + plane) * self.fabric.blocks + block


def cable(job: Job, sink: Diagnostics) -> tuple[tuple[Switch, ...], Cabling]:
    """The switches of the fabric and where every NIC port of its cluster ends.

    Says in the sink when a switch has too few positions, or when a stated cable is impossible.
    """
    fabric, cluster = job.fabric, job.fabric.cluster
    gpu = np.arange(cluster.gpu_count, dtype=np.int32)
    node = gpu // cluster.gpus_per_node
    layout = _Layout(
        fabric,
        port_model(fabric),
        rail_of(job, gpu),
        node // max(cluster.node_count // fabric.blocks, 1),
    )
    size = (cluster.gpu_count, layout.ports.count)
    cabling = Cabling(
        switch=np.full(size, -1, np.int32),
        ingress=np.full(size, -1, np.int32),
        egress=np.full(size, -1, np.int32),
        regular=fabric.cabling.kind is not CablingKind.LISTED,
    )
    if fabric.cabling.kind is CablingKind.LISTED:
        _cable_as_listed(layout, cabling, sink)
    else:
        _cable_in_order(layout, cabling, sink)
    return _switches(layout, cabling), cabling


def _switches(layout: _Layout, cabling: Cabling) -> tuple[Switch, ...]:
    fabric = layout.fabric
    used = _positions_used(layout, cabling)
    switches: list[Switch] = []
    rails = [tuple(rail.index for rail in fabric.rails)] if layout.shared else [(r.index,) for r in fabric.rails]
    for group in rails:
        for plane in range(fabric.planes):
            for block in range(1 if layout.shared else fabric.blocks):
                index = len(switches)
                name = fabric.name if layout.shared else f"{fabric.name}.rail[{group[0]}]"
                name += f".plane[{plane}]" if fabric.planes > 1 else ""
                name += f".block[{block}]" if fabric.blocks > 1 and not layout.shared else ""
                kind = fabric.rails[group[0]].switches[plane * fabric.blocks + block]
                switches.append(Switch(index, name, kind, group, plane, block, used.get(index, 0)))
    return tuple(switches)


def _positions_used(layout: _Layout, cabling: Cabling) -> dict[int, int]:
    """Positions taken on each switch; on a bidi crossbar the fuller side counts."""
    two_positions = layout.fabric.cluster.rail_nic.optics is Optics.DUPLEX and _matrix(layout) is Matrix.ANY
    used: dict[int, int] = {}
    for ends in (cabling.ingress, cabling.egress):
        for switch, count in enumerate(np.bincount(cabling.switch[(ends >= 0) & (cabling.switch >= 0)]).tolist()):
            used[switch] = used.get(switch, 0) + count if two_positions else max(used.get(switch, 0), count)
    return used


def _matrix(layout: _Layout) -> Matrix:
    return layout.fabric.rails[0].switches[0].matrix


# --- in order ------------------------------------------------------------------------------------


def _cable_in_order(layout: _Layout, cabling: Cabling, sink: Diagnostics) -> None:
    fabric = layout.fabric
    short: list[tuple[int, int, int, SwitchKind, int]] = []  # rail, needed, room, kind, blocked
    ranges = dict(fabric.cabling.share)
    for rail in fabric.rails:
        for plane in range(fabric.planes):
            for block in range(fabric.blocks):
                kind = rail.switches[plane * fabric.blocks + block]
                gpus = np.flatnonzero((layout.rail == rail.index) & (layout.block == block))
                allowed = ranges.get(rail.index, ()) if layout.shared else range(1, kind.radix + 1)
                index = layout.switch_index(rail.index, plane, block)
                short += _fill(layout, cabling, gpus.astype(np.int32), rail.index, plane, index, kind, allowed)
    _report_short(layout, short, sink)


def _fill(
    layout: _Layout,
    cabling: Cabling,
    gpus: Int32,
    rail: int,
    plane: int,
    index: int,
    kind: SwitchKind,
    allowed: Sequence[int],
) -> list[tuple[int, int, int, SwitchKind, int]]:
    """Give the ports of one rail and plane their positions; returns what is too much, if anything."""
    mine = [p for p in range(layout.ports.count) if layout.ports.planes[p] == plane]
    duplex = layout.fabric.cluster.rail_nic.optics is Optics.DUPLEX
    per_port = 2 if duplex and kind.matrix is Matrix.ANY else 1
    sides = [None] if layout.ports.sides is None else [Side.A, Side.B]
    for side in sides:
        ports = [p for p in mine if side is None or (layout.ports.sides or ())[p] is side]
        needed = len(gpus) * len(ports) * per_port
        positions = _avoid_blocked(allowed, needed, kind)
        if len(positions) < needed:
            blocked = sum(1 for position in allowed if position in kind.blocked)
            return [(rail, needed, len(allowed), kind, blocked)]
        # Shape (GPUs, ports, positions a port takes): node by node, port by port.
        table = np.array(positions, dtype=np.int32).reshape(len(gpus), len(ports), per_port)
        at = np.ix_(gpus, np.array(ports, dtype=np.int32))
        cabling.switch[at] = index
        if side is not Side.B:
            cabling.ingress[at] = table[:, :, 0]
        if side is not Side.A:
            first_egress = 0 if kind.matrix is Matrix.ANY else kind.radix
            cabling.egress[at] = table[:, :, -1] + first_egress
    return []


def _avoid_blocked(allowed: Sequence[int], needed: int, kind: SwitchKind) -> list[int]:
    """The first `needed` positions; each blocked one gives way to the next free one after them.

    So that one dark mirror moves one fibre, not all that follow it.
    """
    blocked = set(kind.blocked)
    inside = [p for p in allowed[: needed + len(blocked)] if p <= kind.radix]
    chosen = list(inside[:needed])
    if not blocked:
        return chosen
    spare = (p for p in inside[needed:] if p not in blocked)
    kept = [p if p not in blocked else next(spare, None) for p in chosen]
    return [p for p in kept if p is not None]


def _report_short(layout: _Layout, short: list[tuple[int, int, int, SwitchKind, int]], sink: Diagnostics) -> None:
    if not short:
        return
    fabric, cluster = layout.fabric, layout.fabric.cluster
    rail, needed, room, kind, blocked = short[0]
    ports = cluster.rail_nic.ports
    others = sorted({r for r, *_ in short})
    where = f"rail {rail} needs" if len(others) == 1 else f"rails {others[0]}..{others[-1]} each need"
    if len(others) not in (1, others[-1] - others[0] + 1):
        where = f"rails {', '.join(map(str, others))} each need"
    per_node = len(np.flatnonzero((layout.rail == rail) & (np.arange(len(layout.rail)) < cluster.gpus_per_node)))
    notes = [
        f"{cluster.node_count // fabric.blocks:,} nodes x {max(per_node, 1)} GPU{'s' * (per_node > 1)} on the rail "
        f"x {ports // fabric.planes} NIC port{'s' * (ports // fabric.planes > 1)}"
        + (" x 2 positions (transmit and receive)" if _needs_two(layout) else "")
        + f" = {needed:,} positions"
    ]
    if blocked:
        notes.append(f"{blocked} of the {room:,} are blocked")
    if layout.shared:
        label = f"{room:,} positions given"
        sink.error(
            "OPUS301",
            f"{where} {needed:,} positions, and the shared switch gives {'each ' * (len(others) > 1)}{room:,}",
            fabric.cabling.at("share"),
            label,
            notes=notes,
            help="widen the range, or give each rail a switch of its own (leave out `cabling`)",
        )
        return
    sink.error(
        "OPUS301",
        f"{where} {needed:,} positions, and `{kind.name}` has {room:,}",
        fabric.at("switch"),
        f"radix {kind.radix:,}",
        secondary=[Label(cluster.at("node_count"), f"{cluster.node_count:,} nodes")],
        notes=notes,
        help=_way_out(layout, needed, room - blocked),
    )


def _needs_two(layout: _Layout) -> bool:
    return layout.fabric.cluster.rail_nic.optics is Optics.DUPLEX and _matrix(layout) is Matrix.ANY


def _way_out(layout: _Layout, needed: int, room: int) -> str:
    """What would fit: fewer nodes, planes as far as the NIC has ports, blocks, or a larger switch."""
    fabric, cluster = layout.fabric, layout.fabric.cluster
    per_node = max(needed * fabric.blocks // cluster.node_count, 1)
    ways = [f"at most {room * fabric.blocks // per_node:,} nodes fit"]
    ports = cluster.rail_nic.ports
    if ports > fabric.planes:
        each = -(-needed * fabric.planes // ports)
        fits = "" if each <= room else f", which are still more than {room:,}"
        ways.append(f"with {ports} ports a NIC at most {ports} planes, of {each:,} positions each{fits}")
    blocks = next((b for b in range(2, cluster.node_count + 1) if -(-cluster.node_count // b) * per_node <= room), 0)
    if blocks and cluster.node_count % blocks == 0:
        ways.append(f"`blocks = {blocks}` if no group has to cross them")
    ways.append(f"a switch of radix {needed:,} or more")
    return "; ".join(ways)


# --- as listed -----------------------------------------------------------------------------------


def _cable_as_listed(layout: _Layout, cabling: Cabling, sink: Diagnostics) -> None:
    fabric = layout.fabric
    at_port: dict[tuple[int, int], Cable] = {}
    at_position: dict[tuple[int, int], Cable] = {}
    for row in fabric.cabling.cables:
        gpu = row.node * fabric.cluster.gpus_per_node + row.gpu
        if not _exists(layout, row, sink):
            continue
        rail, plane = int(layout.rail[gpu]), layout.ports.planes[row.port]
        block = int(layout.block[gpu])
        kind = fabric.rails[rail].switches[plane * fabric.blocks + block]
        index = layout.switch_index(rail, plane, block)
        if before := at_port.get((gpu, row.port)):
            _twice(row, before, f"port {row.port} of GPU {row.gpu} of node {row.node} has two cables", sink)
            continue
        at_port[gpu, row.port] = row
        side = row.side if layout.ports.sides is not None else None
        if layout.ports.sides is not None and side is None:
            side = layout.ports.sides[row.port]
        ends = [p for p in (row.position, row.receive) if p is not None]
        ports = [port for p in ends for port in ports_of_position(kind, p, side)]
        if not all(_usable(p, kind, row, fabric.rails[rail].index, sink) for p in ends):
            continue
        clash = next((at_position[index, port] for port in ports if (index, port) in at_position), None)
        if clash is not None:
            where = f"position {row.position} of rail {rail}"
            _twice(row, clash, f"{where} has two cables", sink)
            continue
        at_position.update({(index, port): row for port in ports})
        cabling.switch[gpu, row.port] = index
        if side is not Side.B:
            cabling.ingress[gpu, row.port] = ports[0]
        if side is not Side.A:
            cabling.egress[gpu, row.port] = ports[-1]


def _exists(layout: _Layout, row: Cable, sink: Diagnostics) -> bool:
    cluster = layout.fabric.cluster
    for what, value, count in (
        ("node", row.node, cluster.node_count),
        ("GPU", row.gpu, cluster.gpus_per_node),
        ("port", row.port, layout.ports.count),
    ):
        if not 0 <= value < count:
            sink.error(
                "OPUS302",
                f"the cabling names {what} {value}; `{cluster.name}` has {count}, 0..{count - 1}",
                row.at("port" if what == "port" else what.lower()),
                "no such " + what,
            )
            return False
    needs_receive = _needs_two(layout)
    if needs_receive != (row.receive is not None):
        sink.error(
            "OPUS302",
            "a duplex port on an `any` matrix takes two positions: state `receive` too"
            if needs_receive
            else "`receive` is for duplex optics on an `any` matrix only",
            row.span,
        )
        return False
    if row.side is not None and layout.ports.sides is None:
        sink.error(
            "OPUS302",
            f"the cabling puts a port on side {row.side.value}; here a port has no side",
            row.span,
            "a side is stated",
            notes=["a fibre ends on one side of a switch with `bidi` optics on a `crossbar` matrix only"],
            help="leave the side out",
        )
        return False
    return True


def _usable(position: int, kind: SwitchKind, row: Cable, rail: int, sink: Diagnostics) -> bool:
    if not 1 <= position <= kind.radix:
        sink.error(
            "OPUS302",
            f"the cabling names position {position} of rail {rail}; `{kind.name}` has positions 1..{kind.radix}",
            row.at("position"),
            "no such position",
        )
        return False
    if position in kind.blocked:
        sink.error(
            "OPUS302",
            f"the cabling uses position {position} of rail {rail}, which is blocked",
            row.at("position"),
            "blocked",
            secondary=[Label(kind.at("blocked"), "blocked here")],
        )
        return False
    return True


def _twice(row: Cable, before: Cable, message: str, sink: Diagnostics) -> None:
    sink.error("OPUS303", message, row.span, "second", secondary=[Label(before.span, "first")])
