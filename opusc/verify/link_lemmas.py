"""Lemmas about links: neighbour functions, the ports they use, and the graph they add up to.

The expression in `Neighbour.image` that draws the plan's circuits is evaluated here on Z3 terms. Rotations are
proved for every distance at once and tournament rounds for every number at once, so a phase of a thousand
steps costs no more than one of two. A digit d comes with its half: d == 2 * half + odd.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from opusc.plan.neighbours import Advance, Neighbour, Rotation, Round, Table
from opusc.plan.plan import Directions, Link
from opusc.verify.statement import Statement

__all__ = [
    "General",
    "distances_meet_every_pair",
    "general",
    "is_drawn",
    "kind_of",
    "neighbour_lemmas",
    "ports_are_used_once",
    "rounds_meet_every_pair",
    "succession_lemmas",
]

Term = Any


@dataclass(frozen=True)
class _AnyRound(Round):
    """A round of any number: `half` is constrained to be half of it modulo the number of rounds."""

    half: Any = None

    @property
    def alone(self) -> Term:
        return self.half


@dataclass(frozen=True)
class General:
    """A neighbour function whose parameter is free, with what is known of the parameter."""

    neighbour: Neighbour
    known: tuple[Term, ...]


def general(neighbour: Neighbour) -> General:
    """The family that a neighbour function belongs to: any distance, any round; others stand for themselves."""
    import z3

    digit = neighbour.digit
    if isinstance(neighbour, Rotation):
        by = z3.Int("distance")
        return General(type(neighbour)(digit, by), (by > 0, by < digit.size))
    if isinstance(neighbour, Round) and type(neighbour) is Round:
        rounds = digit.size - 1 + digit.size % 2
        number, half = z3.Ints("round half_of_round")
        return General(
            _AnyRound(digit, number, half),
            (
                *(number >= 0, number < rounds, half >= 0, half < rounds),
                z3.Or(2 * half == number, 2 * half == number + rounds),
            ),
        )
    return General(neighbour, ())


def kind_of(neighbour: Neighbour) -> tuple[object, ...]:
    """What makes two neighbour functions one lemma: the family and the size, not the stride."""
    size = neighbour.digit.size
    if isinstance(neighbour, Advance):
        return ("advance", size, neighbour.wrap, neighbour.edges)
    if isinstance(neighbour, Table):
        return ("table", neighbour.to)
    return (type(neighbour).__name__.lower(), size)


def _name(neighbour: Neighbour) -> str:
    match neighbour:
        case Rotation():
            return f"rotation of {neighbour.digit.size}"
        case Round():
            return f"tournament of {neighbour.digit.size}"
        case Advance():
            edges = "" if neighbour.edges == "all" else f", {neighbour.edges} links"
            return f"{'ring' if neighbour.wrap else 'line'} of {neighbour.digit.size}{edges}"
    return f"listed links of {neighbour.digit.size}"


def _digit(name: str, size: int) -> tuple[Term, Term, list[Term]]:
    """A digit below `size`, its remainder by 2, and what is known of both."""
    import z3

    d, half, odd = z3.Int(name), z3.Int(f"{name}_half"), z3.Int(f"{name}_odd")
    return d, odd, [d >= 0, d < size, d == 2 * half + odd, odd >= 0, odd <= 1, half >= 0]


def _apply(neighbour: Neighbour, d: Term, odd: Term) -> tuple[Term, Term]:
    import z3

    return neighbour.image(d, odd, z3.If)


def neighbour_lemmas(neighbour: Neighbour) -> tuple[Statement, ...]:
    """The function stays in range, never leads to itself, and leads to no vertex twice."""
    import z3

    form = general(neighbour)
    size = neighbour.digit.size
    (a, a_odd, known_a), (b, b_odd, known_b) = _digit("a", size), _digit("b", size)
    (from_a, to_a), (from_b, to_b) = _apply(form.neighbour, a, a_odd), _apply(form.neighbour, b, b_odd)
    about = _name(neighbour)
    return (
        Statement(
            "a link leads to another vertex that exists",
            (*form.known, *known_a, from_a, z3.Or(to_a < 0, to_a >= size, to_a == a)),
            about=about,
        ),
        Statement(
            "no two links lead to one vertex",
            (*form.known, *known_a, *known_b, from_a, from_b, a != b, to_a == to_b),
            about=about,
        ),
    )


# --- ports ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Use:
    """One end of one link: at the vertices that it leaves (`lower`) or at those it enters."""

    link: int
    lower: bool
    port: int
    fibre: str  # "port", or "transmitter" and "receiver" where they are free of each other


def _uses(links: Sequence[Link], independent: bool) -> list[_Use]:
    found = []
    for at, link in enumerate(links):
        if not independent:
            found += [_Use(at, True, link.out_port, "port"), _Use(at, False, link.in_port, "port")]
            continue
        if link.directions is not Directions.BACKWARD:
            found += [_Use(at, True, link.out_port, "transmitter"), _Use(at, False, link.in_port, "receiver")]
        if link.directions is not Directions.FORWARD:
            found += [_Use(at, True, link.out_port, "receiver"), _Use(at, False, link.in_port, "transmitter")]
    return found


def ports_are_used_once(
    links: Sequence[Link], n: int, independent: bool
) -> list[tuple[tuple[object, ...], Callable[[], tuple[Statement, ...]]]]:
    """For links held at once: at no vertex do two of their ends use one port.

    Each statement as a key, by which doubles are known, and a function that makes it.

    Links of tables are left out: their circuits are proved switch by switch.
    """
    uses = _uses(links, independent)
    found: list[tuple[tuple[object, ...], Callable[[], tuple[Statement, ...]]]] = []
    for at, one in enumerate(uses):
        for other in uses[at + 1 :]:
            f, g = links[one.link].neighbour, links[other.link].neighbour
            if (one.port, one.fibre) != (other.port, other.fibre) or isinstance(f, Table) or isinstance(g, Table):
                continue
            same = one.link == other.link
            if same:
                key: tuple[object, ...] = (kind_of(f), one.lower, other.lower)
            else:
                key = (f, one.lower, g, other.lower)
            found.append((key, partial(_apart, f, one.lower, g, other.lower, n, same)))
    return found


def _apart(f: Neighbour, f_lower: bool, g: Neighbour, g_lower: bool, n: int, same: bool) -> tuple[Statement, ...]:
    """No vertex is at this end of f and at that end of g."""
    form = general(f) if same else General(f, ())
    second = form.neighbour if same else g
    if f.digit == g.digit:
        (vertex, _, known), (at_f, at_g) = _digit("vertex", f.digit.size), ("a", "b")
        conditions = [*_at_digit(form.neighbour, f_lower, vertex, at_f), *_at_digit(second, g_lower, vertex, at_g)]
    else:
        import z3

        vertex = z3.Int("vertex")
        known = [vertex >= 0, vertex < n]
        conditions = [*_at_vertex(f, f_lower, vertex, "a", n), *_at_vertex(g, g_lower, vertex, "b", n)]
    about = _name(f) if same else f"{_name(f)}, {_name(g)}"
    return (Statement("no port of a vertex has two links", (*form.known, *known, *conditions), about=about),)


def _at_digit(f: Neighbour, lower: bool, vertex: Term, name: str) -> list[Term]:
    d, odd, known = _digit(name, f.digit.size)
    defined, to = _apply(f, d, odd)
    return [*known, defined, (d if lower else to) == vertex]


def _at_vertex(f: Neighbour, lower: bool, vertex: Term, name: str, n: int) -> list[Term]:
    """The same for links on different digits: a vertex is high * (stride * size) + digit * stride + low."""
    import z3

    d, odd, known = _digit(name, f.digit.size)
    high, low = z3.Int(f"{name}_high"), z3.Int(f"{name}_low")
    stride, size = f.digit.stride, f.digit.size
    defined, to = _apply(f, d, odd)
    bounds = [low >= 0, low < stride, high >= 0, high < n // (stride * size)]
    return [*known, *bounds, defined, high * (stride * size) + (d if lower else to) * stride + low == vertex]


# --- what links add up to ------------------------------------------------------------------------


def is_drawn(links: Sequence[Link], x: Term, x_odd: Term, y: Term, y_odd: Term) -> Term:
    """Whether some link carries light from digit x to digit y."""
    import z3

    found = []
    for link in links:
        if link.directions is not Directions.BACKWARD:
            defined, to = _apply(link.neighbour, x, x_odd)
            found.append(z3.And(defined, to == y))
        if link.directions is not Directions.FORWARD:
            defined, to = _apply(link.neighbour, y, y_odd)
            found.append(z3.And(defined, to == x))
    return z3.Or(found)


def succession_lemmas(links: Sequence[Link], n: int, *, ring: bool, one_way: bool) -> tuple[Statement, ...]:
    """Links draw the ring 0, 1, ..., n - 1, 0 or the chain 0, 1, ..., n - 1, and nothing else.

    The place of a vertex is the ranking function: every vertex but the last leads to the next higher, the
    last back to 0, so a ring is one cycle and not two, and a chain is connected.
    """
    import z3

    a, a_odd, known_a = _digit("a", n)
    b, b_odd, known_b = _digit("b", n)
    onward = b == a + 1
    onward = z3.Or(onward, z3.And(a == n - 1, b == 0)) if ring else onward
    back = a == b + 1
    back = z3.Or(back, z3.And(b == n - 1, a == 0)) if ring else back
    drawn = is_drawn(links, a, a_odd, b, b_odd)
    wanted = onward if one_way else z3.Or(onward, back)
    what = "ring is one cycle through all domains" if ring else "chain reaches from the first domain to the last"
    about = f"{'ring' if ring else 'chain'} of {n}"
    return (
        Statement(f"each {what}", (*known_a, *known_b, wanted, z3.Not(drawn)), about=about),
        Statement(
            "no link but those of the topology is drawn", (*known_a, *known_b, drawn, z3.Not(wanted)), about=about
        ),
    )


def distances_meet_every_pair(neighbour: Rotation, *, half: bool, wrong: int = 0) -> Statement:
    """For any two digits, the rotation by their distance joins them (`half`: the shorter way, from either end).

    With every distance in use, every pair meets. `wrong` is the seeded fault: an error in the distance.
    """
    import z3

    size = neighbour.digit.size
    a, a_odd, known_a = _digit("a", size)
    b, b_odd, known_b = _digit("b", size)
    far = z3.If(b > a, b - a, b - a + size) + wrong
    other = size - far
    by = z3.If(far <= size // 2, far, other) if half else far
    rotation = type(neighbour)(neighbour.digit, by)
    (from_a, to_a), (from_b, to_b) = _apply(rotation, a, a_odd), _apply(rotation, b, b_odd)
    met = z3.And(from_a, to_a == b)
    if half:
        met = z3.Or(met, z3.And(from_b, to_b == a))
    most = size // 2 if half else size - 1
    return Statement(
        "every pair meets in the rotation by its distance",
        (*known_a, *known_b, a != b, z3.Not(z3.And(by >= 1, by <= most, met))),
        about=_name(neighbour),
    )


def rounds_meet_every_pair(neighbour: Round, *, wrong: int = 0) -> Statement:
    """For any two digits there is a round in which the lower one draws a link to the higher.

    That round is the sum of the two (modulo the number of rounds), or twice the lower where the higher is the
    last of an even number. `wrong` is the seeded fault: an error in the round.
    """
    import z3

    size = neighbour.digit.size
    rounds = size - 1 + size % 2
    a, a_odd, known_a = _digit("a", size)
    b, _, known_b = _digit("b", size)
    form = general(Round(neighbour.digit, 0))
    number = form.neighbour.number  # type: ignore[union-attr]
    total = z3.If(b == size - 1, 2 * a, a + b) if size % 2 == 0 else a + b
    total = total + wrong
    meets = z3.Or(number == total, number == total - rounds)
    defined, to = _apply(form.neighbour, a, a_odd)
    return Statement(
        "every pair meets in the round of its sum",
        (*form.known, *known_a, *known_b, a < b, meets, z3.Not(z3.And(defined, to == b))),
        about=_name(neighbour),
    )
