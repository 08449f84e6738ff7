"""Topologies: from a word and a number of vertices to links on ports, in as few steps as the ports allow.

`shape` is a pure function of (topology, n, ports, traffic). What a port can hold depends on the optics:

- paired ports: a port is one neighbour. A cycle takes two ports of each vertex, a matching one.
- independent ports: a port sends to one neighbour and hears another. A one-way cycle takes one port.

When ports are short a topology has several steps; when they are plenty it is repeated, for more bandwidth.
"""

from collections import Counter
from collections.abc import Sequence
from math import prod

from opusc.diagnostics import Diagnostics
from opusc.model.entities import PhaseSpec, Traffic
from opusc.plan.colouring import colour_directed, colour_undirected, degree_directed, degree_undirected
from opusc.plan.neighbours import Advance, Digit, Neighbour, Rotation, Round, Table
from opusc.plan.plan import Directions, Link, Shape
from opusc.plan.ports import PortModel

__all__ = ["shape", "spread"]

Slot = tuple[int, int]
Edge = tuple[int, int]


def _sides(ports: PortModel) -> str:
    """`of each GPU, port 0 is on side A of plane 0, port 1 on side B of plane 1`."""
    several = len(set(ports.planes)) > 1
    sides = ports.sides or ()
    ends = [
        f"port {port} {'is ' if at == 0 else ''}on side {sides[port]}"
        + (f" of plane {ports.planes[port]}" if several else "")
        for at, port in enumerate(ports.ports if sides else ())
    ]
    return "of each GPU, " + ", ".join(ends[:8]) + (", ..." if len(ends) > 8 else "")


def shape(phase: PhaseSpec, n: int, ports: PortModel, sink: Diagnostics) -> Shape | None:
    """How a phase's topology among n >= 2 vertices uses the ports; None after a diagnostic."""
    topology = phase.topology
    if not ports.match_slots():
        sink.error(
            "OPUS401",
            "no two NIC ports can be joined: bidi optics on a crossbar need a port on side A and one on side B of "
            "a switch",
            phase.at("topology"),
            f"phase `{phase.name}` needs a link",
            notes=[_sides(ports)],
            help="cable each GPU to both sides of each switch, or use `matrix = any`"
            + (", or fewer planes" if len(set(ports.planes)) > 1 else ""),
        )
        return None
    if topology.one_way and (not ports.independent or phase.traffic is Traffic.POINT_TO_POINT):
        _refuse_one_way(phase, ports, sink)
        return None
    if topology.edges is not None:
        edges = [(edge.tail, edge.head) for edge in topology.edges(n)]
        return _explicit(phase, n, edges, ports, sink)
    match topology.name:
        case "ring":
            return _ring(n, ports, both_ways=phase.traffic is Traffic.POINT_TO_POINT, one_way=topology.one_way)
        case "chain":
            return _chain(n, ports)
        case "pairs":
            return _explicit(phase, n, [(v, v + 1) for v in range(0, n - 1, 2)], ports, sink)
        case "rotor" | "mesh":
            return _all_neighbours([n], n, ports)
        case "hypercube":
            return _hypercube(phase, n, ports, sink)
        case "flattened_butterfly":
            return _flattened_butterfly(phase, n, ports, sink)
    raise AssertionError(f"the model let an unknown topology through: {topology.name}")


# --- ring and chain ------------------------------------------------------------------------------


def _refuse_one_way(phase: PhaseSpec, ports: PortModel, sink: Diagnostics) -> None:
    paired = not ports.independent
    why = "a port hears whom it sends to" if paired else "messages between neighbours go both ways"
    sink.error(
        "OPUS401",
        f"no one-way ring for phase `{phase.name}`: {why}",
        phase.topology.at("one_way"),
        "one way",
        help="leave `one_way` out" + ("; or `peers = independent`, where the NIC can" if paired else ""),
    )


def _ring(n: int, ports: PortModel, *, both_ways: bool, one_way: bool = False) -> Shape:
    whole = Digit(1, n)
    cycles, matches = ports.cycle_slots(), ports.match_slots()
    if ports.independent:
        turn = Rotation(whole, 1)
        if n == 2:
            link = (Round(whole, 0), Directions.BOTH) if both_ways else (turn, Directions.FORWARD)
            return _repeated(n, [link], matches)
        if both_ways or (len(matches) > 1 and not one_way):
            return _repeated(n, [(turn, Directions.FORWARD), (turn, Directions.BACKWARD)], matches)
        return _repeated(n, [(turn, Directions.FORWARD)], matches)
    if cycles:
        return _repeated(n, [(Rotation(whole, 1), Directions.BOTH)], cycles)
    if n == 2:
        return _repeated(n, [(Round(whole, 0), Directions.BOTH)], matches)
    edges = ["even", "odd", "closing"] if n % 2 else ["even", "odd"]
    colours: list[tuple[Neighbour, Directions]] = []
    for kind in edges:
        # In an odd ring the last vertex is even, but its link back to 0 stands alone.
        colours.append((Advance(whole, wrap=n % 2 == 0, edges=kind), Directions.BOTH))
    return _repeated(n, colours, matches)


def _chain(n: int, ports: PortModel) -> Shape:
    whole = Digit(1, n)
    cycles, matches = ports.cycle_slots(), ports.match_slots()
    if n == 2:
        return _repeated(n, [(Round(whole, 0), Directions.BOTH)], matches)
    onward = Advance(whole, wrap=False)
    if ports.independent:
        return _repeated(n, [(onward, Directions.FORWARD), (onward, Directions.BACKWARD)], matches)
    if cycles:
        return _repeated(n, [(onward, Directions.BOTH)], cycles)
    parities = [Advance(whole, wrap=False, edges=kind) for kind in ("even", "odd")]
    return _repeated(n, [(parity, Directions.BOTH) for parity in parities], matches)


# --- all-to-all neighbours, by dimension ---------------------------------------------------------


def _hypercube(phase: PhaseSpec, n: int, ports: PortModel, sink: Diagnostics) -> Shape | None:
    bits = n.bit_length() - 1
    if 1 << bits != n:
        sink.error(
            "OPUS402",
            f"a hypercube needs a power of two, and phase `{phase.name}` joins {n} domains",
            phase.at("topology"),
            f"{n} is not a power of two",
            notes=[f"the nearest powers of two are {1 << bits} and {2 << bits}"],
            help="use `rotor`, which takes any number, or `flattened_butterfly { dims = [...] }`",
        )
        return None
    return _all_neighbours([2] * bits, n, ports)


def _flattened_butterfly(phase: PhaseSpec, n: int, ports: PortModel, sink: Diagnostics) -> Shape | None:
    dims = phase.topology.dims or (n,)
    if prod(dims) != n:
        product = " * ".join(map(str, dims))
        sink.error(
            "OPUS403",
            f"the dimensions of `flattened_butterfly` give {product} = {prod(dims)}, "
            f"and phase `{phase.name}` joins {n} domains",
            phase.topology.at("dims"),
            f"product must be {n}",
            help=_factor_hint(n, len(dims)),
        )
        return None
    return _all_neighbours(list(dims), n, ports)


def _factor_hint(n: int, count: int) -> str:
    """A split of n into `count` factors that are as equal as possible, as advice."""
    factors, rest = [], n
    for left in range(count, 0, -1):
        root = round(rest ** (1 / left))
        fitting = [f for f in range(1, rest + 1) if rest % f == 0] if rest <= 4096 else [rest]
        factors.append(min(fitting, key=lambda f: abs(f - root)) if left > 1 else rest)
        rest //= factors[-1]
    return f"for example `dims = [{', '.join(map(str, sorted(factors)))}]`"


def _all_neighbours(dims: list[int], n: int, ports: PortModel) -> Shape:
    """In each dimension every vertex meets all others of its line: one dimension is a rotor or a mesh."""
    groups: list[list[tuple[Neighbour, Directions]]] = []
    stride = 1
    for size in dims:
        if size > 1:
            groups.append(_line(Digit(stride, size), ports))
        stride *= size
    slots = ports.match_slots()
    total = sum(map(len, groups))
    if total <= len(slots):
        return _repeated(n, [link for group in groups for link in group], slots)
    steps: list[list[tuple[Neighbour, Directions]]] = [[]]
    for group in groups:
        if len(steps[-1]) + len(group) > len(slots) and steps[-1]:
            steps.append([])
        for link in group:
            if len(steps[-1]) == len(slots):
                steps.append([])
            steps[-1].append(link)
    links = tuple(
        tuple(Link(f, *slot, directions) for (f, directions), slot in zip(step, slots, strict=False)) for step in steps
    )
    return Shape(n, links, copies=1, fewest_steps=-(-total // len(slots)), named=True)


def _line(digit: Digit, ports: PortModel) -> list[tuple[Neighbour, Directions]]:
    """All neighbours on one digit: rotations where a port is one-way or sided, else rounds of a tournament."""
    size = digit.size
    if ports.independent:
        return [(Rotation(digit, by), Directions.FORWARD) for by in range(1, size)]
    if ports.sides is not None:
        return [(Rotation(digit, by), Directions.BOTH) for by in range(1, size // 2 + 1)]
    return [(Round(digit, number), Directions.BOTH) for number in range(size - 1 + size % 2)]


def _repeated(n: int, links: Sequence[tuple[Neighbour, Directions]], slots: Sequence[Slot]) -> Shape:
    """Links that take a slot each: all at once and repeated if they fit, else a few at a time."""
    copies = len(slots) // len(links)
    if copies:
        step = tuple(
            Link(f, *slots[copy * len(links) + at], directions, copy)
            for copy in range(copies)
            for at, (f, directions) in enumerate(links)
        )
        return Shape(n, (step,), copies=copies, fewest_steps=1, named=True)
    steps = tuple(
        tuple(
            Link(f, *slot, directions)
            for (f, directions), slot in zip(links[first : first + len(slots)], slots, strict=False)
        )
        for first in range(0, len(links), len(slots))
    )
    return Shape(n, steps, copies=1, fewest_steps=len(steps), named=True)


# --- explicit graphs -----------------------------------------------------------------------------


def _explicit(phase: PhaseSpec, n: int, edges: list[Edge], ports: PortModel, sink: Diagnostics) -> Shape | None:
    """Pairs, edges, and topologies written in the language: never repeated, however many ports there are."""
    if phase.topology.name == "pairs" and not _is_matching(phase, edges, n, sink):
        return None
    # A pair is a two-way link also where a port could look two ways.
    both_ways = not ports.independent or phase.topology.name == "pairs"
    return spread(n, edges, ports, Directions.BOTH if both_ways else Directions.FORWARD)


def spread(n: int, edges: list[Edge], ports: PortModel, directions: Directions | None = None) -> Shape:
    """An explicit graph over the ports, in as few steps as its degrees allow, or one more.

    Links are two-way, on independent ports one-way, unless `directions` says otherwise.
    """
    slots = ports.match_slots()
    if ports.independent or ports.sides is not None:
        degree, colours = degree_directed(edges), colour_directed(edges)
    else:
        degree = degree_undirected(edges)
        if ports.free and degree <= len(ports.ports):
            return Shape(n, (_numbered(n, edges, ports.ports),), copies=1, fewest_steps=1, named=False)
        colours = colour_undirected(edges)
    if directions is None:
        directions = Directions.FORWARD if ports.independent else Directions.BOTH
    capacity = len(slots)
    step_count = max(colours, default=0) // capacity + 1
    steps = tuple(
        tuple(
            Link(_table(n, edges, colours, colour), *slots[colour % capacity], directions)
            for colour in range(step * capacity, (step + 1) * capacity)
            if colour in colours
        )
        for step in range(step_count)
    )
    return Shape(n, steps, copies=1, fewest_steps=-(-degree // capacity), named=False)


def _is_matching(phase: PhaseSpec, edges: list[Edge], n: int, sink: Diagnostics) -> bool:
    uses = Counter(v for edge in edges for v in edge)
    twice = [v for v, count in uses.items() if count > 1]
    if twice:
        sink.error(
            "OPUS404",
            f"`pairs` of phase `{phase.name}` names domain {twice[0]} in {uses[twice[0]]} pairs",
            phase.at("topology"),
            "a domain has one partner",
            help="use `edges { of = [...] }` for a graph with more neighbours",
        )
        return False
    if phase.topology.edges is None and n % 2:
        sink.error(
            "OPUS404",
            f"`pairs` of phase `{phase.name}` leaves one of {n} domains alone",
            phase.at("topology"),
            "an odd number cannot be paired",
            help="name the pairs: `pairs { of = [(0, 1), ...] }`",
        )
        return False
    return True


def _numbered(n: int, edges: list[Edge], ports: tuple[int, ...]) -> tuple[Link, ...]:
    """Each vertex takes its ports in the order of its edges: any port reaches any other, so one step holds all."""
    used = [0] * n
    by_ports: dict[Slot, list[int]] = {}
    for a, b in edges:
        table = by_ports.setdefault((ports[used[a]], ports[used[b]]), [-1] * n)
        table[a] = b
        used[a] += 1
        used[b] += 1
    return tuple(Link(Table(tuple(table)), *slot, Directions.BOTH) for slot, table in sorted(by_ports.items()))


def _table(n: int, edges: list[Edge], colours: list[int], wanted: int) -> Table:
    to = [-1] * n
    for (a, b), colour in zip(edges, colours, strict=True):
        if colour == wanted:
            to[a] = b
    return Table(tuple(to))
