"""Lemmas about numbering and about change: each a statement whose counterexample must not exist.

Everything is said in digit coordinates, with bounds as constraints and no division: a vector of digits stands
for the number sum(digit * stride). Sizes and strides are the plan's, so each lemma costs the same at any size.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opusc.verify.statement import Statement

__all__ = [
    "changes_are_safe",
    "listed_nodes_are_distinct",
    "listed_placement_is_one_to_one",
    "numbers_are_distinct",
    "numbers_are_in_range",
    "other_stage_other_rank",
    "placement",
    "position",
    "positions_are_distinct",
    "positions_are_in_range",
    "ranges_are_disjoint",
    "steps_are_safe",
]

Term = Any


def position(slot: Term, port: Term, fibre: Term, first: int, ports: int, per_port: int) -> Term:
    """The position of a fibre: slot by slot, port by port. For arrays and for terms."""
    return first + (slot * ports + port) * per_port + fibre


def placement(slot: Term, lane: Term, first: int, per_domain: int) -> Term:
    """The GPU at a lane of the slot-th domain of a job. For arrays and for terms."""
    return (slot + first) * per_domain + lane


# --- mixed radix ---------------------------------------------------------------------------------


def numbers_are_distinct(name: str, axes: Sequence[tuple[int, int]], about: str = "") -> Statement:
    """Distinct vectors of digits have distinct numbers. `axes` are (size, stride)."""
    import z3

    a, b = _digits("a", axes), _digits("b", axes)
    return Statement(
        name,
        (
            *_inside(a, axes),
            *_inside(b, axes),
            z3.Or([x != y for x, y in zip(a, b, strict=True)]),
            _number(a, axes) == _number(b, axes),
        ),
        about=about,
    )


def numbers_are_in_range(name: str, axes: Sequence[tuple[int, int]], count: int, about: str = "") -> Statement:
    """Every vector of digits has a number in 0..count - 1."""
    import z3

    a = _digits("a", axes)
    value = _number(a, axes)
    return Statement(name, (*_inside(a, axes), z3.Or(value < 0, value >= count)), about=about)


def other_stage_other_rank(axes: Sequence[tuple[int, int]], stage: int, about: str = "") -> Statement:
    """Ranks of different pipeline stages (the digit at index `stage`) are different ranks."""
    a, b = _digits("a", axes), _digits("b", axes)
    return Statement(
        "parts of different stages touch different ranks",
        (*_inside(a, axes), *_inside(b, axes), a[stage] != b[stage], _number(a, axes) == _number(b, axes)),
        about=about,
    )


def _digits(name: str, axes: Sequence[tuple[int, int]]) -> list[Term]:
    import z3

    return [z3.Int(f"{name}{at}") for at in range(len(axes))]


def _inside(digits: Sequence[Term], axes: Sequence[tuple[int, int]]) -> list[Term]:
    import z3

    return [z3.And(digit >= 0, digit < size) for digit, (size, _) in zip(digits, axes, strict=True)]


def _number(digits: Sequence[Term], axes: Sequence[tuple[int, int]]) -> Term:
    import z3

    return z3.Sum([digit * stride for digit, (_, stride) in zip(digits, axes, strict=True)])


# --- places and positions ------------------------------------------------------------------------


def listed_nodes_are_distinct(nodes: Sequence[int], node_count: int) -> Statement:
    """The listed nodes exist and no node is listed twice."""
    import z3

    terms = [z3.Int(f"node{k}") for k in range(len(nodes))]
    given = [term == node for term, node in zip(terms, nodes, strict=True)]
    bounds = [z3.And(term >= 0, term < node_count) for term in terms]
    return Statement("the listed nodes are different nodes", (*given, *bounds, z3.Distinct(terms)), expect="sat")


def listed_placement_is_one_to_one(per_node: int) -> Statement:
    """Where nodes are listed: different (node, GPU in it) are different GPUs of the cluster."""
    import z3

    a, b, i, j = z3.Ints("node_a node_b gpu_a gpu_b")
    return Statement(
        "different GPUs of the listed nodes are different GPUs of the cluster",
        (i >= 0, i < per_node, j >= 0, j < per_node, z3.Or(a != b, i != j), a * per_node + i == b * per_node + j),
    )


Position = Callable[[Term, Term, Term, int, int, int], Term]


def positions_are_distinct(
    slots: int, first: int, ports: int, per_port: int, about: str = "", formula: Position = position
) -> Statement:
    """Different fibres of the NIC ports on a switch end on different positions."""
    import z3

    (s, p, f), (t, q, g) = z3.Ints("slot_a port_a fibre_a"), z3.Ints("slot_b port_b fibre_b")
    return Statement(
        "different NIC ports have different positions",
        (
            *_port_bounds(s, p, f, slots, ports, per_port),
            *_port_bounds(t, q, g, slots, ports, per_port),
            z3.Or(s != t, p != q, f != g),
            formula(s, p, f, first, ports, per_port) == formula(t, q, g, first, ports, per_port),
        ),
        about=about,
    )


def positions_are_in_range(
    slots: int, first: int, ports: int, per_port: int, radix: int, about: str = "", formula: Position = position
) -> Statement:
    """Every fibre ends on a position of the switch, 1..radix."""
    import z3

    s, p, f = z3.Ints("slot port fibre")
    at = formula(s, p, f, first, ports, per_port)
    return Statement(
        "every position exists on its switch",
        (*_port_bounds(s, p, f, slots, ports, per_port), z3.Or(at < 1, at > radix)),
        about=about,
    )


def ranges_are_disjoint(ranges: Sequence[tuple[int, int]], about: str = "") -> Statement:
    """Rails that share a switch use different positions. `ranges` are (first, count)."""
    import z3

    r, s, at = z3.Ints("rail_a rail_b position")

    def on(rail: Term) -> Term:
        return z3.Or([z3.And(rail == i, at >= first, at < first + count) for i, (first, count) in enumerate(ranges)])

    return Statement("rails that share a switch use different positions", (r != s, on(r), on(s)), about=about)


def _port_bounds(s: Term, p: Term, f: Term, slots: int, ports: int, per_port: int) -> tuple[Term, ...]:
    return (s >= 0, s < slots, p >= 0, p < ports, f >= 0, f < per_port)


# --- change --------------------------------------------------------------------------------------


def changes_are_safe(*, crossbar: bool, ordered: bool = True, minimal: bool = True) -> tuple[Statement, ...]:
    """Any change between two one-to-one configurations A and B, circuit by circuit, in any order within each half.

    `gone` are circuits of A without B that are already down, `come` those of B without A that are already
    up; the order is that nothing comes up before all of A without B is down. Quantified over arbitrary
    relations, so it covers every plan, every pair of configurations and every interleaving. Seeded faults:
    `ordered=False` leaves the order out, `minimal=False` takes down circuits that stay.
    """
    import z3

    port = z3.DeclareSort("Port")
    boolean = z3.BoolSort()
    a, b, gone, come = (z3.Function(name, port, port, boolean) for name in ("A", "B", "gone", "come"))
    x, y, z = z3.Consts("x y z", port)

    def one_to_one(r: Term) -> list[Term]:
        found = [z3.ForAll([x, y, z], z3.Implies(z3.And(r(x, y), r(x, z)), y == z))]
        if crossbar:
            return [*found, z3.ForAll([x, y, z], z3.Implies(z3.And(r(x, z), r(y, z)), x == y))]
        return [*found, z3.ForAll([x, y], r(x, y) == r(y, x)), z3.ForAll([x], z3.Not(r(x, x)))]

    def state(i: Term, e: Term) -> Term:
        return z3.Or(z3.And(a(i, e), z3.Not(gone(i, e))), come(i, e))

    world = [
        *one_to_one(a),
        *one_to_one(b),
        z3.ForAll([x, y], z3.Implies(gone(x, y), z3.And(a(x, y), z3.Not(b(x, y))) if minimal else a(x, y))),
        z3.ForAll([x, y], z3.Implies(come(x, y), z3.And(b(x, y), z3.Not(a(x, y))))),
    ]
    if not crossbar:  # a circuit of an `any` matrix goes or comes as a whole
        world += [z3.ForAll([x, y], r(x, y) == r(y, x)) for r in (gone, come)]
    if ordered:
        i, e = z3.Consts("i e", port)
        all_down = z3.ForAll([i, e], z3.Implies(z3.And(a(i, e), z3.Not(b(i, e))), gone(i, e)))
        world.append(z3.ForAll([x, y], z3.Implies(come(x, y), all_down)))
    p, q, s = z3.Consts("p q s", port)
    twice = z3.And(state(p, q), state(p, s), q != s)
    if crossbar:
        twice = z3.Or(twice, z3.And(state(q, p), state(s, p), q != s))
    kept = z3.And(a(p, q), b(p, q))
    foreign = z3.And(z3.Not(a(p, q)), z3.Not(b(p, q)))
    touched = z3.Or(z3.And(kept, z3.Not(state(p, q))), z3.And(foreign, state(p, q)))
    matrix = "crossbar" if crossbar else "any"
    return (
        Statement("no state on the way between two configurations uses a port twice", (*world, twice), about=matrix),
        Statement("a change touches nothing that stays, and nothing foreign", (*world, touched), about=matrix),
    )


def steps_are_safe(
    old: Iterable[tuple[int, int, int]],
    new: Iterable[tuple[int, int, int]],
    steps: Sequence[tuple[str, tuple[int, int, int]]],
) -> tuple[Statement, ...]:
    """The same for one concrete change.

    Circuits are (switch, ingress, egress), steps ("disconnect" or "connect", circuit).
    A circuit holds from the instant of its connection to that of its disconnection.
    """
    import z3

    before, after = set(old), set(new)
    idle: list[int] = []  # steps that do not find their circuit as they need it
    lives: dict[tuple[int, int], list[tuple[int, int]]] = {}
    up = dict.fromkeys(before, 0)
    for at, (verb, circuit) in enumerate(steps, 1):
        if (verb == "connect") == (circuit in up):
            idle.append(at)
        elif verb == "connect":
            up[circuit] = at
        else:
            _end(lives, circuit, up.pop(circuit), at)
    for circuit, since in sorted(up.items()):
        _end(lives, circuit, since, len(steps) + 1)
    t, i, j, c = z3.Ints("instant connect disconnect circuit")
    twice = [
        z3.And(t >= a, t < b, t >= x, t < y)
        for spans in lives.values()
        for at, (a, b) in enumerate(spans)
        for x, y in spans[at + 1 :]
    ]
    number = {circuit: at for at, circuit in enumerate(sorted(before | after | {circuit for _, circuit in steps}))}
    ups = z3.Or([i == at for at, (verb, _) in enumerate(steps) if verb == "connect"])
    downs = z3.Or([j == at for at, (verb, _) in enumerate(steps) if verb == "disconnect"])
    named = z3.Or([c == number[circuit] for _, circuit in steps])
    barred = z3.Or([c == at for circuit, at in number.items() if (circuit in before) == (circuit in after)])
    wrong = z3.Or([c == number[circuit] for circuit in sorted(set(up) ^ after)])
    return (
        Statement("no port has two circuits at any instant of a change", (z3.Or(twice),)),
        Statement("a change disconnects before it connects", (ups, downs, i < j)),
        Statement("a change names no circuit that stays, and no foreign one", (named, barred)),
        Statement("a change takes down what is up, and brings up what is down", (z3.Or([t == at for at in idle]),)),
        Statement("a change ends with the circuits that it promises", (wrong,)),
    )


def _end(
    lives: dict[tuple[int, int], list[tuple[int, int]]], circuit: tuple[int, int, int], since: int, at: int
) -> None:
    switch, ingress, egress = circuit
    for port in (ingress, egress):
        lives.setdefault((switch, port), []).append((since, at))
