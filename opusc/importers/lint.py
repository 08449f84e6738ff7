"""What a configuration really connects, and what its author may not have meant."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opusc.diagnostics import Diagnostics, Label
from opusc.importers.cables import Cables, NicPort
from opusc.importers.configurations import Circuit, Configuration

__all__ = ["Shape", "lint"]

_TOLD = 8  # places of one kind in one configuration


@dataclass(frozen=True)
class Shape:
    """A configuration in words. `rings`, `pairs`: domains that are joined so, rail by rail; `other` what is neither.
    `loops`: ports that are joined to themselves."""

    name: str
    circuits: int
    rings: tuple[str, ...]
    pairs: tuple[str, ...]
    chains: tuple[str, ...]
    other: tuple[str, ...]
    loops: int
    dangling: int


def lint(configuration: Configuration, cables: Cables, sink: Diagnostics) -> Shape:
    """Tell what is wrong (OPUS771 to OPUS774), and say what is connected."""
    _twice(configuration, sink)
    joined: list[tuple[Circuit, NicPort, NicPort]] = []
    unknown: list[Circuit] = []
    for circuit in configuration.circuits:
        a, b = cables.ingress(circuit.ingress), cables.egress(circuit.egress)
        if a is None or b is None:
            unknown.append(circuit)
        else:
            joined.append((circuit, a, b))
    _tell_unknown(configuration, unknown, cables, sink)
    loops = [(circuit, a) for circuit, a, b in joined if a == b]
    _tell_loops(configuration, loops, sink)
    there = {(a, b) for _, a, b in joined}
    one_way = [(circuit, a, b) for circuit, a, b in joined if a != b and (b, a) not in there]
    _tell_one_way(configuration, one_way, sink)
    used = {end for _, a, b in joined for end in (a, b)}
    dangling = len(set(cables.at.values()) - used)
    kinds = _kinds([(a, b) for _, a, b in joined if a != b])
    return Shape(configuration.name, len(configuration.circuits), *kinds, loops=len(loops), dangling=dangling)


def _twice(configuration: Configuration, sink: Diagnostics) -> None:
    for side in ("ingress", "egress"):
        first: dict[int, Circuit] = {}
        for circuit in configuration.circuits:
            number = getattr(circuit, side)
            before = first.setdefault(number, circuit)
            if before is not circuit:
                sink.error(
                    "OPUS771", f"`{configuration.name}` uses {side} {number} twice", getattr(circuit, f"{side}_span"),
                    "again here", secondary=[Label(getattr(before, f"{side}_span"), "first here")],
                    help="a switch joins an ingress to one egress: the second replaces the first, or is refused",
                )  # fmt: skip


def _tell_unknown(configuration: Configuration, circuits: Sequence[Circuit], cables: Cables, sink: Diagnostics) -> None:
    loose = []
    for circuit in circuits:
        if cables.ingress(circuit.ingress) is None:
            loose.append((circuit.ingress, circuit.ingress_span))
        if cables.egress(circuit.egress) is None:
            loose.append((circuit.egress, circuit.egress_span))
    if loose:
        numbers = ", ".join(str(number) for number, _ in loose[:_TOLD]) + (", ..." if len(loose) > _TOLD else "")
        ports = f"port {numbers}" if len(loose) == 1 else f"{len(loose)} ports ({numbers})"
        sink.warning(
            "OPUS774", f"`{configuration.name}` uses {ports} on which no NIC port is cabled", loose[0][1], "nobody's",
            help="a circuit to a port without a cable carries nothing",
        )  # fmt: skip


def _tell_loops(configuration: Configuration, loops: Sequence[tuple[Circuit, NicPort]], sink: Diagnostics) -> None:
    if not loops:
        return
    circuit, nic = loops[0]
    what = f"{nic} to itself" if len(loops) == 1 else f"{len(loops)} ports to themselves"
    sink.warning(
        "OPUS772", f"`{configuration.name}` joins {what}", circuit.ingress_span,
        f"ingress {circuit.ingress} to egress {circuit.egress}",
        notes=_listed([f"{port}: {one.ingress} to {one.egress}" for one, port in loops]),
        help="a loopback reaches nobody; leave the port out, or join it to a port of another node",
    )  # fmt: skip


def _tell_one_way(
    configuration: Configuration, circuits: Sequence[tuple[Circuit, NicPort, NicPort]], sink: Diagnostics
) -> None:
    if not circuits:
        return
    circuit, a, b = circuits[0]
    what = f"leads from {a} to {b}" if len(circuits) == 1 else f"has {len(circuits)} circuits that lead one way"
    sink.warning(
        "OPUS773", f"`{configuration.name}` {what}, and not back by the same ports", circuit.ingress_span,
        f"ingress {circuit.ingress} to egress {circuit.egress}",
        notes=_listed([f"{one.ingress} to {one.egress}: {x} to {y}" for one, x, y in circuits]),
        help="a NIC that expects one neighbour for each port needs both ways",
    )  # fmt: skip


def _listed(texts: Sequence[str]) -> list[str]:
    return [*texts[:_TOLD], *([f"{len(texts) - _TOLD:,} more"] if len(texts) > _TOLD else [])]


def _kinds(
    links: Iterable[tuple[NicPort, NicPort]],
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Rings, pairs, chains and what is neither, in words; nodes are vertices, rails apart."""
    import networkx as nx

    rings: list[str] = []
    pairs: list[str] = []
    chains: list[str] = []
    other: list[str] = []
    by_rail: dict[tuple[int, int], nx.Graph[int]] = {}
    for a, b in links:
        by_rail.setdefault((a.gpu, b.gpu), nx.Graph()).add_edge(a.node, b.node)
    for (rail, far), graph in sorted(by_rail.items()):
        where = f"rail {rail}" if rail == far else f"rails {rail} and {far}"
        for part in nx.connected_components(graph):
            here = graph.subgraph(part)
            degrees = Counter(degree for _, degree in here.degree())
            nodes = ", ".join(map(str, sorted(part)))
            if len(part) == 2:
                pairs.append(f"{where}: {nodes}")
            elif set(degrees) == {2}:
                rings.append(f"{where}: {nodes}")
            elif set(degrees) == {1, 2} and degrees[1] == 2:
                chains.append(f"{where}: {nodes}")
            else:
                other.append(f"{where}: {nodes}")
    return tuple(rings), tuple(pairs), tuple(chains), tuple(other)
