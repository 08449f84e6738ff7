"""The formulas of a plan, as statements: each proved once, for all ranks and every size of cluster alike.

Together with the comparison of every row (`rows`, `places`, `layout`) they make the proof: positions are a
one-to-one function of NIC ports, NIC ports belong to GPUs, GPUs are a one-to-one function of ranks, and in each
step every link is a one-to-one function of vertices on ports that no other link uses. Statements that say the same
of the same sizes are made once.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from opusc.model.entities import Matrix, Optics, Peers, Traffic
from opusc.plan.neighbours import Digit, Neighbour, Rotation, Round, Table
from opusc.plan.plan import Directions, Link, Plan, PlannedPhase, Scoping, Shape
from opusc.plan.ports import PortModel, port_model
from opusc.plan.ranks import Grid, dense_grid, grid_of
from opusc.verify import lemmas, link_lemmas
from opusc.verify.finding import FORMULA, Finding
from opusc.verify.layout import Piece, Placing
from opusc.verify.packing import packing_statements
from opusc.verify.statement import Statement

__all__ = ["phase_findings", "statements"]


#: What makes statements the same, and how to make them.
_Lazy = tuple[object, Callable[[], tuple[Statement, ...]]]


def statements(plan: Plan, placing: Placing, pieces: Sequence[Piece]) -> list[Statement]:
    """Every statement that the plan's formulas need, without doubles."""
    seen: set[object] = set()
    made: dict[tuple[int, ...], Statement] = {}
    for key, make in _all(plan, placing, pieces):
        if key not in seen:
            seen.add(key)
            for statement in make():
                # Z3 shares equal terms, so that equal assertions have equal numbers.
                made.setdefault(tuple(term.get_id() for term in statement.assertions), statement)
    return list(made.values())


def _all(plan: Plan, placing: Placing, pieces: Sequence[Piece]) -> Iterator[_Lazy]:
    yield from _numbering(plan, placing)
    yield from _positions(pieces)
    for phase in plan.phases:
        for shape in dict.fromkeys(i.shape for i in phase.instances):
            yield from _links(plan, phase, shape)
    yield "packing", partial(packing_statements, plan)
    for matrix in sorted({switch.kind.matrix for switch in plan.switches}):
        yield ("change", matrix), partial(lemmas.changes_are_safe, crossbar=matrix is Matrix.CROSSBAR)


# --- ranks, GPUs, positions ----------------------------------------------------------------------


def _axes(grid: Grid) -> tuple[tuple[int, int], ...]:
    return tuple((axis.size, axis.stride) for axis in grid.axes if axis.size > 1)


def _numbering(plan: Plan, placing: Placing) -> Iterator[_Lazy]:
    job = plan.model.job
    for grid in (dense_grid(job), *(grid_of(job, p.spec.axes) for p in plan.phases)):
        yield ("grid", _axes(grid)), partial(_grid, grid, plan.world)
    yield "placement", partial(_placement, plan, placing)


def _grid(grid: Grid, world: int) -> tuple[Statement, ...]:
    axes = _axes(grid)
    about = " x ".join(f"{axis.name} {axis.size}" for axis in grid.axes if axis.size > 1)
    if not axes:
        return ()
    found = [
        lemmas.numbers_are_distinct("different coordinates are different ranks", axes, about),
        lemmas.numbers_are_in_range("every coordinate is a rank of the job", axes, world, about),
    ]
    stage = next((at for at, a in enumerate(a for a in grid.axes if a.size > 1) if a.name == "pp"), None)
    if stage is not None:
        found.append(lemmas.other_stage_other_rank(axes, stage, about))
    return tuple(found)


def _placement(plan: Plan, placing: Placing) -> tuple[Statement, ...]:
    cluster = plan.model.cluster
    if placing.nodes is not None:
        return (
            lemmas.listed_nodes_are_distinct(placing.nodes, cluster.node_count),
            lemmas.listed_placement_is_one_to_one(cluster.gpus_per_node),
        )
    about = f"{placing.slots} domains of {placing.per_domain}, {placing.use} used"
    ranks = ((placing.use, 1), (placing.slots, placing.use))
    gpus = ((placing.use, 1), (placing.slots, placing.per_domain))
    free = cluster.gpu_count - placing.first * placing.per_domain
    return (
        lemmas.numbers_are_distinct("different lanes of domains are different ranks", ranks, about),
        lemmas.numbers_are_distinct("different lanes of domains are different GPUs", gpus, about),
        lemmas.numbers_are_in_range("every lane of a domain is a GPU of the cluster", gpus, free, about),
    )


def _positions(pieces: Sequence[Piece]) -> Iterator[_Lazy]:
    by_switch: dict[tuple[int, object], list[Piece]] = {}
    for piece in pieces:
        by_switch.setdefault((piece.switch, piece.side), []).append(piece)
        if not piece.regular:
            continue
        form = (len(piece.gpus), piece.first, len(piece.ports), piece.per_port)
        yield ("positions", form, piece.kind.radix), partial(_piece, form, piece.kind.radix, piece.kind.name)
    for mine in by_switch.values():
        ranges = tuple((piece.first, piece.count) for piece in mine if piece.regular)
        if len(ranges) > 1:
            yield ("ranges", ranges), partial(_ranges, ranges)


def _piece(form: tuple[int, int, int, int], radix: int, name: str) -> tuple[Statement, ...]:
    about = f"{form[0]} GPUs x {form[2]} ports on {name}"
    return (
        lemmas.positions_are_distinct(*form, about=about),
        lemmas.positions_are_in_range(*form, radix, about=about),
    )


def _ranges(ranges: tuple[tuple[int, int], ...]) -> tuple[Statement, ...]:
    return (lemmas.ranges_are_disjoint(ranges, about=f"{len(ranges)} rails"),)


# --- links ---------------------------------------------------------------------------------------


def _links(plan: Plan, phase: PlannedPhase, shape: Shape) -> Iterator[_Lazy]:
    nic = plan.model.cluster.rail_nic
    independent = nic.optics is Optics.DUPLEX and nic.peers is Peers.INDEPENDENT
    named = [link for step in shape.steps for link in step if not isinstance(link.neighbour, Table)]
    for neighbour in dict.fromkeys(link.neighbour for link in named):
        yield ("neighbour", link_lemmas.kind_of(neighbour)), partial(link_lemmas.neighbour_lemmas, neighbour)
        stride, size = neighbour.digit.stride, neighbour.digit.size
        if stride > 1 or size < shape.n:
            yield ("digit", stride, size, shape.n), partial(_digit, stride, size, shape.n)
    for step in shape.steps:
        for key, make in link_lemmas.ports_are_used_once(step, shape.n, independent):
            yield ("ports", key), make
    yield from _topology(phase, shape, named, port_model(plan.model.fabric))


def _digit(stride: int, size: int, n: int) -> tuple[Statement, ...]:
    axes = ((stride, 1), (size, stride), (n // (stride * size), stride * size))
    name = "a link changes one digit of a domain's place, and keeps different places different"
    about = f"digit of {size} in {n}"
    return (
        lemmas.numbers_are_distinct(name, axes, about=about),
        lemmas.numbers_are_in_range("a link stays among the domains of its group", axes, n, about=about),
    )


def _topology(phase: PlannedPhase, shape: Shape, named: Sequence[Link], ports: PortModel) -> Iterator[_Lazy]:
    topology = phase.spec.topology
    listed = not named and phase.scoping is Scoping.JOIN  # links between stages, stated one by one: see `places`
    if topology.edges is not None or listed:
        return
    if topology.name in ("ring", "chain"):
        distinct = {(link.neighbour, link.directions): link for link in named}
        ring = topology.name == "ring"
        one_way = ring and _one_way(phase, ports)
        links = list(distinct.values())
        make = partial(link_lemmas.succession_lemmas, links, shape.n, ring=ring, one_way=one_way)
        yield ("succession", tuple(distinct), shape.n, ring, one_way), make
        return
    for digit, mine in _by_digit(named).items():
        if isinstance(mine[0], Rotation) and digit.size > 1:
            half = ports.sides is not None
            yield ("distances", digit.size, half), partial(_distances, mine[0], half)
        elif isinstance(mine[0], Round):
            yield ("rounds", digit.size), partial(_rounds, mine[0])


def _distances(rotation: Rotation, half: bool) -> tuple[Statement, ...]:
    return (link_lemmas.distances_meet_every_pair(rotation, half=half),)


def _rounds(number: Round) -> tuple[Statement, ...]:
    return (link_lemmas.rounds_meet_every_pair(number),)


def _one_way(phase: PlannedPhase, ports: PortModel) -> bool:
    """One independent port holds a ring in one direction, which is all that a reduction needs; and more where the
    program says so."""
    alone = len(phase.ports) == 1 or phase.spec.topology.one_way
    return ports.independent and alone and phase.spec.traffic is not Traffic.POINT_TO_POINT


def _by_digit(named: Sequence[Link]) -> dict[Digit, list[Neighbour]]:
    found: dict[Digit, list[Neighbour]] = {}
    for link in named:
        found.setdefault(link.neighbour.digit, []).append(link.neighbour)
    return found


# --- what is compared, not proved: parameters and lists ------------------------------------------


def phase_findings(plan: Plan, phase: PlannedPhase) -> list[Finding]:
    """The parameters of a phase's links: distances and rounds complete and in range, digits those of the topology."""
    ports = port_model(plan.model.fabric)
    texts: list[str] = []
    for shape in dict.fromkeys(i.shape for i in phase.instances):
        links = [link for step in shape.steps for link in step]
        texts += _wrong_ports(links, ports)
        texts += [t for f in dict.fromkeys(link.neighbour for link in links) if (t := _wrong_parameter(f))]
        if phase.spec.topology.edges is not None or phase.spec.topology.name == "pairs":
            if phase.scoping is not Scoping.JOIN:
                texts += _wrong_edges(phase, shape, ports)
        elif phase.spec.topology.name not in ("ring", "chain") and phase.scoping is not Scoping.JOIN:
            texts += _wrong_digits(phase, shape, ports)
    return [Finding(FORMULA, f"phase `{phase.name}`: {text}", phase=phase.index) for text in dict.fromkeys(texts)]


def _wrong_ports(links: Sequence[Link], ports: PortModel) -> list[str]:
    for link in links:
        out, into = link.out_port, link.in_port
        if not (0 <= out < ports.count and 0 <= into < ports.count):
            return [f"a link uses NIC port {max(out, into)}, and a GPU has {ports.count}"]
        if ports.planes[out] != ports.planes[into]:
            return [f"a link joins NIC ports {out} and {into}, which are on different planes"]
        if ports.sides is not None and ports.sides[out] is ports.sides[into]:
            return [f"a link joins NIC ports {out} and {into}, which are on one side of the switch"]
        if not ports.independent and link.directions is not Directions.BOTH:
            return [f"a link uses NIC port {out} one way, and ports look both ways"]
    return []


def _wrong_parameter(f: Neighbour) -> str | None:
    size = f.digit.size
    if isinstance(f, Rotation) and not 0 < f.by < size:
        return f"a rotation by {f.by} among {size} domains leads back to itself or nowhere"
    if isinstance(f, Round):
        rounds = size - 1 + size % 2
        half = f.number // 2 if f.number % 2 == 0 else (f.number + rounds) // 2
        if not 0 <= f.number < rounds or f.alone != half:
            return f"round {f.number} is none of the {rounds} of a tournament of {size}"
    return None


def _wrong_digits(phase: PlannedPhase, shape: Shape, ports: PortModel) -> list[str]:
    """All distances or rounds of every digit are there, as often as the topology has copies."""
    n = shape.n
    dims = {"hypercube": (2,) * (n.bit_length() - 1), "flattened_butterfly": phase.spec.topology.dims or (n,)}
    expected, stride = [], 1
    for size in dims.get(phase.spec.topology.name, (n,)):
        if size > 1:
            expected.append(Digit(stride, size))
        stride *= size
    uses = _by_digit([link for step in shape.steps for link in step])
    if stride != n or sorted(uses, key=lambda d: d.stride) != expected:
        return [f"its links are on other digits than the dimensions of its topology, for {n} domains"]
    for digit, mine in uses.items():
        size = digit.size
        if ports.independent or ports.sides is not None:
            wanted = [Rotation(digit, by) for by in range(1, size // 2 + 1 if ports.sides is not None else size)]
            have = sorted(f.by for f in mine if isinstance(f, Rotation))
            need = sorted(f.by for f in wanted * shape.copies)
        else:
            have = sorted(f.number for f in mine if isinstance(f, Round))
            need = sorted(list(range(size - 1 + size % 2)) * shape.copies)
        if have != need or len(have) != len(mine):
            return [f"some domains never meet: its links are {have} of {need}, for {size} domains"]
    return []


def _wrong_edges(phase: PlannedPhase, shape: Shape, ports: PortModel) -> list[str]:
    """The listed links are exactly the edges that the program states."""
    topology = phase.spec.topology
    if topology.edges is not None:
        stated = sorted((edge.tail, edge.head) for edge in topology.edges(shape.n))
    else:
        stated = [(v, v + 1) for v in range(0, shape.n - 1, 2)]
    both = not ports.independent or topology.name == "pairs"
    drawn = []
    for link in (link for step in shape.steps for link in step):
        if not isinstance(link.neighbour, Table) or (link.directions is Directions.BOTH) != both:
            return ["a link is not one of the edges that the program states"]
        drawn += [(v, w) for v, w in enumerate(link.neighbour.to) if w >= 0]
    if sorted(drawn) != stated:
        odd = sorted(set(stated) ^ set(drawn)) or drawn
        return [f"the edge {odd[0]} is not drawn as the program states it, among {shape.n} domains"]
    return []
