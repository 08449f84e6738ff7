"""Which cable is where, from which NIC port sees which while a part is lit.

A part's circuits lead from place to place: every place sends to at most one other and receives from at most one, in
each part. What NIC ports see is the same picture with cables in places of their own. NIC ports that are connected by
what they see are laid over the places as a whole: the place of one gives the places of all the others. Of the ways to
lay them, the one that leaves most cables at home is taken; where several leave as many, and no other observation
excludes them, the finding says so instead of guessing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from opusc.backends.ends import ends_of
from opusc.control.cabling.finding import Cause, Finding
from opusc.control.cabling.names import NicPort
from opusc.control.cabling.observed import Plugged, Seen
from opusc.control.cabling.words import Words, listed
from opusc.model.entities import Optics
from opusc.plan.plan import Plan
from opusc.source import Span

__all__ = ["Inferred", "infer"]

#: NIC port -> the NIC port whose place it is in.
Laid = dict[NicPort, NicPort]
#: (part, sender) -> receiver.
Ways = dict[tuple[int, NicPort], NicPort]

_MOST_TRIES = 4000  # steps of the search among explanations of one tangle


@dataclass
class Inferred:
    """Cables at their places, what could not be told, and the ports that no observed part lights."""

    plugged: list[Plugged] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unlit: set[NicPort] = field(default_factory=set)


@dataclass(frozen=True)
class _Graph:
    """Who sends to whom: by circuits among places, or by what was seen among NIC ports."""

    ahead: Ways
    back: Ways

    @classmethod
    def of(cls, edges: Iterable[tuple[int, NicPort, NicPort]]) -> "_Graph":
        kept = list(edges)
        return cls({(p, a): b for p, a, b in kept}, {(p, b): a for p, a, b in kept})

    def around(self, port: NicPort, parts: Sequence[int]) -> Iterator[tuple[int, bool, NicPort]]:
        for part in parts:
            if (other := self.ahead.get((part, port))) is not None:
                yield part, True, other
            if (other := self.back.get((part, port))) is not None:
                yield part, False, other


def infer(words: Words, seen: Sequence[Seen]) -> Inferred:
    found = Inferred()
    plan = words.names.plan
    parts = sorted({row.part for row in seen})
    places = _Graph.of(_circuits(plan, parts))
    rows = _consistent(words, seen, found)
    sight = _Graph.of((row.part, row.sender, row.port) for row in rows)
    spans = {port: row.span for row in rows for port in (row.sender, row.port)}
    lit = {port for _, port in (*places.ahead, *places.back)}
    found.unlit = set(words.wanted.home) - lit
    components = list(_components(spans, sight, parts))
    laid, tangled = _lay(components, sight, places, parts)
    for port, place in laid.items():
        for way, (switch, number) in words.wanted.home[place].items():
            found.plugged.append(Plugged(port, way, switch, number, spans[port]))
    found.findings += [_uncertain(words, tangle, parts, spans) for tangle in tangled]
    doubtful = {port for finding in found.findings for port in finding.ports}
    found.findings += _no_light(words, lit - set(spans) - doubtful, places, parts)
    return found


def _circuits(plan: Plan, parts: Sequence[int]) -> Iterator[tuple[int, NicPort, NicPort]]:
    ends = ends_of(plan)
    both = plan.model.cluster.rail_nic.optics is Optics.BIDI
    columns = (ends.sender, ends.sender_port, ends.receiver, ends.receiver_port)
    for part in parts:
        rows = plan.rows(part)
        for a, p, b, q in zip(*(column[rows].tolist() for column in columns), strict=True):
            yield part, (a, p), (b, q)
            if both:
                yield part, (b, q), (a, p)


def _consistent(words: Words, seen: Sequence[Seen], found: Inferred) -> list[Seen]:
    """Rows of NIC ports that see one sender in each part, and of senders that one receiver sees."""
    first: dict[tuple[int, str, NicPort], Seen] = {}
    bad: dict[NicPort, tuple[Seen, Seen]] = {}
    for row in seen:
        for role, port, other in (("sees", row.port, row.sender), ("is seen by", row.sender, row.port)):
            before = first.setdefault((row.part, role, port), row)
            if (before.sender if role == "sees" else before.port) != other:
                bad.setdefault(port, (before, row))
    for port, (a, b) in bad.items():
        others = {a.sender, b.sender} if a.port == port else {a.port, b.port}
        verb = "sees" if a.port == port else "is seen by"
        home = words.wanted.first(port)
        name = words.names.plan.parts[a.part].name
        message = f"{words.rails([home])}{words.nic(port)} {verb} two NIC ports while {name} is lit: "
        message += listed([words.nic(other) for other in sorted(others)])
        action = "observe again: the circuits may have changed in between"
        found.findings.append(Finding(Cause.TWICE, message, (), action, (port,), words.order(home), b.span))
    return [row for row in seen if row.port not in bad and row.sender not in bad]


def _components(ports: Iterable[NicPort], graph: _Graph, parts: Sequence[int]) -> Iterator[list[NicPort]]:
    inside = set(ports)
    done: set[NicPort] = set()
    for port in sorted(inside):
        if port in done:
            continue
        component, waiting = [], [port]
        done.add(port)
        while waiting:
            here = waiting.pop()
            component.append(here)
            for _, _, other in graph.around(here, parts):
                if other in inside and other not in done:
                    done.add(other)
                    waiting.append(other)
        yield component


# --- laying what is seen over the places ---------------------------------------------------------


def _lay(
    components: list[list[NicPort]], sight: _Graph, places: _Graph, parts: Sequence[int]
) -> tuple[Laid, list[list[list[Laid]]]]:
    """A place for each NIC port that can be told, and for each tangle the ways to lay each of its components."""
    laid: Laid = {}
    taken: set[NicPort] = set()
    waiting: list[list[Laid]] = []
    for component in components:
        ways = _ways(component, sight, places, parts)
        best = max((_at_home(way) for way in ways), default=0)
        ways = [way for way in ways if _at_home(way) == best]
        if len(ways) == 1 and 2 * best > len(component):
            laid |= ways[0]
            taken.update(ways[0].values())
        else:
            waiting.append(ways or [{port: port for port in component}] * 2)
    # What is told excludes ways of others, which may then be told too.
    while True:
        waiting = [[way for way in ways if taken.isdisjoint(way.values())] for ways in waiting]
        told = [ways[0] for ways in waiting if len(ways) == 1]
        waiting = [ways for ways in waiting if len(ways) > 1]
        if not told:
            break
        for way in told:
            if taken.isdisjoint(way.values()):
                laid |= way
                taken.update(way.values())
    tangled = []
    for tangle in _tangles(waiting):
        solutions = _solutions(tangle)
        if len(solutions) == 1:
            laid |= {port: place for way in solutions[0] for port, place in way.items()}
        else:
            tangled.append(solutions or tangle[:1])
    return laid, tangled


def _ways(component: list[NicPort], sight: _Graph, places: _Graph, parts: Sequence[int]) -> list[Laid]:
    """Every way to lay a component that leaves one of its cables at home."""
    found: list[Laid] = []
    home: set[NicPort] = set()
    for port in component:
        if port in home:
            continue
        way = _laid_from(port, sight, places, parts)
        if way is not None:
            found.append(way)
            home.update(p for p, place in way.items() if p == place)
            if 2 * _at_home(way) > len(component):
                return [way]
    return found


def _laid_from(start: NicPort, sight: _Graph, places: _Graph, parts: Sequence[int]) -> Laid | None:
    """The places of a component when `start` is at home; None when what is seen does not fit the circuits."""
    way: Laid = {start: start}
    taken = {start}
    waiting = [start]
    while waiting:
        here = waiting.pop()
        for part, forward, other in sight.around(here, parts):
            place = (places.ahead if forward else places.back).get((part, way[here]))
            if place is None or way.get(other, place) != place:
                return None
            if other not in way:
                if place in taken:
                    return None
                way[other] = place
                taken.add(place)
                waiting.append(other)
    return way


def _at_home(way: Mapping[NicPort, NicPort]) -> int:
    return sum(port == place for port, place in way.items())


def _tangles(waiting: list[list[Laid]]) -> list[list[list[Laid]]]:
    """Components whose possible places overlap belong together."""
    tangles: list[tuple[set[NicPort], list[list[Laid]]]] = []
    for ways in waiting:
        claims = {place for way in ways for place in way.values()} | set(ways[0])
        joined = [tangle for tangle in tangles if not claims.isdisjoint(tangle[0])]
        tangles = [tangle for tangle in tangles if claims.isdisjoint(tangle[0])]
        tangles.append((claims.union(*(t[0] for t in joined)), [way for t in joined for way in t[1]] + [ways]))
    return [ways for _, ways in tangles]


def _solutions(tangle: list[list[Laid]]) -> list[list[Laid]]:
    """The ways to lay all components of a tangle in different places that leave most cables at home."""
    found: list[tuple[int, list[Laid]]] = []
    tries = 0

    def search(at: int, taken: set[NicPort], chosen: list[Laid]) -> None:
        nonlocal tries
        tries += 1
        if tries > _MOST_TRIES:
            return
        if at == len(tangle):
            found.append((sum(map(_at_home, chosen)), list(chosen)))
            return
        for way in tangle[at]:
            if taken.isdisjoint(way.values()):
                search(at + 1, taken | set(way.values()), [*chosen, way])

    search(0, set(), [])
    best = max((home for home, _ in found), default=0)
    return [chosen for home, chosen in found if home == best] if tries <= _MOST_TRIES else []


# --- what cannot be told -------------------------------------------------------------------------


def _uncertain(
    words: Words, solutions: list[list[Laid]], parts: Sequence[int], spans: Mapping[NicPort, Span]
) -> Finding:
    """Several ways to explain what was seen."""
    explanations = []
    ports: set[NicPort] = set()
    for solution in solutions:
        moved = sorted(port for way in solution for port, place in way.items() if port != place)
        ports.update(port for way in solution for port in way)
        if moved and moved not in explanations:
            explanations.append(moved)
    first = min(ports, key=lambda port: words.order(words.wanted.first(port)))
    home = words.wanted.first(first)
    explanations.sort(key=lambda moved: words.order(words.wanted.first(moved[0])))
    lists = [listed([words.nic(port) for port in moved], most=4) for moved in explanations[:3]]
    if len(explanations) > 1:
        message = f"{words.rails([home])}exchanged are either " + ", or ".join(lists)
        spots = [
            listed([words.place(words.wanted.first(port)) for port in moved], most=4) for moved in explanations[:3]
        ]
        facts: tuple[str, ...] = (
            f"what the NIC ports see fits {'both' if len(explanations) == 2 else 'each'}; their places at "
            f"{words.switch(home)}: {', or '.join(spots)}",
        )
    else:
        names = listed([words.nic(port) for port in sorted(ports)], most=4)
        message = f"{words.rails([home])}{names} see NIC ports that no exchange of cables explains"
        facts = ("were the circuits of this part lit?",)
    plan = words.names.plan
    others = _other_parts(plan, ports, parts)
    action = "look at the plugs"
    if others:
        action = f"light another part too ({listed(others, most=3)}), observe again with all rows, or look at the plugs"
    span = spans.get(first) or next(iter(spans.values()))
    return Finding(Cause.UNCERTAIN, message, facts, action, tuple(sorted(ports)), words.order(home), span)


def _other_parts(plan: Plan, ports: set[NicPort], parts: Sequence[int]) -> list[str]:
    """Names of parts that were not observed and use one of the ports."""
    ends = ends_of(plan)
    found = []
    for part in plan.parts:
        rows = plan.rows(part.index)
        used = zip(ends.sender[rows].tolist(), ends.sender_port[rows].tolist(), strict=True)
        if part.index not in parts and not ports.isdisjoint(used):
            found.append(part.name)
    return found


def _no_light(words: Words, dark: set[NicPort], places: _Graph, parts: Sequence[int]) -> Iterator[Finding]:
    """Lit ports that see nobody and are seen by nobody, where their neighbours are all as dark: it may be any."""
    for component in _components(dark, places, parts):
        around = {other for port in component for _, _, other in places.around(port, parts)}
        if len(component) < 2 or not around <= set(component):
            continue  # a neighbour has light from elsewhere: the cable of this one is what is missing
        ports = tuple(sorted(component))
        home = words.wanted.first(ports[0])
        names = listed([words.nic(port) for port in ports], most=4)
        message = f"{words.rails([home])}there is no light between {names}"
        facts = ("a cable is missing or dark, or its transmit and receive are crossed",)
        spots = listed([f"{words.place(words.wanted.first(port))}" for port in ports], most=4)
        action = f"look at {spots} of {words.switch(home)}, and at the other ends"
        yield Finding(Cause.MISSING, message, facts, action, ports, words.order(home))
