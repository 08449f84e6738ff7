"""From moves to causes: two exchanged, a shift along a front panel, a longer cycle, a cable in a free place.

Moves form chains: the cable in A's place, A in B's place, and so on. A chain that closes is a permutation of cables
that are all there; one that does not ends at a place that is free or whose own cable was not observed. Exchanges
that together are those of two rails of a node, two planes of a GPU, two nodes or two switches are told as one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

from opusc.control.cabling.finding import Cause, Finding
from opusc.control.cabling.moves import CABLE, Comparison, Jack, Move, Unit
from opusc.control.cabling.names import NicPort
from opusc.control.cabling.words import Words, listed
from opusc.model.entities import Matrix
from opusc.source import Span

__all__ = ["causes_of_moves"]

#: Switch and side: the places of a lane follow each other along a front panel.
Lane = tuple[int, int]


@dataclass(frozen=True)
class _Run:
    """Moves in order along a lane, all by the same number of places; `closed` when the last ones begin again."""

    lane: Lane
    by: int
    start: int
    stride: int  # places between two of its cables
    moves: tuple[Move, ...]
    closed: bool


def causes_of_moves(words: Words, found: Comparison) -> list[Finding]:
    cycles, paths = _chains(found.moves)
    swaps = [cycle for cycle in cycles if len(cycle) == 2]
    findings = list(_exchanges(words, swaps))
    shifts = _Shifts(words, found)
    runs: list[_Run] = []
    for closed, chains in ((True, [c for c in cycles if len(c) > 2]), (False, paths)):
        for chain in chains:
            run = shifts.run(chain, closed)
            if run is not None:
                runs.append(run)
            else:
                findings.append(_cycle(words, chain) if closed else _chain(words, chain, found))
    for merged, single in _merged(runs):
        if merged:
            findings.append(_shift(words, merged))
        elif single is not None:
            moves = list(single.moves)
            findings.append(_cycle(words, moves) if single.closed else _chain(words, moves, found))
    return findings


# --- chains --------------------------------------------------------------------------------------


def _chains(moves: dict[Unit, Move]) -> tuple[list[list[Move]], list[list[Move]]]:
    """Closed chains and open ones; each move is in the place of the next."""
    after: dict[Unit, Unit] = {}
    before: dict[Unit, Unit] = {}
    for unit, move in moves.items():
        if move.owner in moves and move.owner is not None and move.owner not in before:
            after[unit] = move.owner
            before[move.owner] = unit
    paths, seen = [], set()
    for unit in moves:
        if unit not in before:
            path = [unit]
            while path[-1] in after:
                path.append(after[path[-1]])
            seen.update(path)
            paths.append([moves[u] for u in path])
    cycles = []
    for unit in moves:
        if unit in seen:
            continue
        cycle = [unit]
        while after[cycle[-1]] != unit:
            cycle.append(after[cycle[-1]])
        seen.update(cycle)
        cycles.append([moves[u] for u in cycle])
    return cycles, paths


class _Shifts:
    """Which chains run along a front panel by the same number of places."""

    def __init__(self, words: Words, found: Comparison) -> None:
        self.words = words
        ladders: dict[Lane, set[int]] = {}
        free = (move.jack for move in found.moves.values() if move.owner is None and move.unit[1] == CABLE)
        for jack in (*map(words.wanted.first, words.wanted.home), *free):
            ladders.setdefault(self.lane(jack), set()).add(jack[1])
        self.index = {
            (lane[0], number): at for lane, numbers in ladders.items() for at, number in enumerate(sorted(numbers))
        }

    def lane(self, jack: Jack) -> Lane:
        kind = self.words.names.plan.switches[jack[0]].kind
        return jack[0], 0 if kind.matrix is Matrix.ANY else (jack[1] - 1) // kind.radix

    def run(self, chain: list[Move], closed: bool) -> _Run | None:
        homes = [self.words.home(move.unit) for move in chain]
        lanes = {self.lane(jack) for jack in (*homes, *(move.jack for move in chain))}
        if len(lanes) > 1 or any(move.unit[1] != CABLE for move in chain):
            return None
        at = [self.index[jack] for jack in homes]
        steps = [self.index[move.jack] - here for move, here in zip(chain, at, strict=True)]
        order = sorted(range(len(chain)), key=at.__getitem__)
        gaps = {at[b] - at[a] for a, b in pairwise(order)}
        ahead = tuple(chain[i] for i in order)
        if not closed:
            if len(set(steps)) > 1 or (len(chain) == 1 and abs(steps[0]) == 1):
                return None
            return _Run(lanes.pop(), steps[0], min(at), abs(steps[0]), ahead, False)
        stride = gaps.pop()
        around = len(chain) * stride
        turns = {step % around for step in steps}
        if gaps or len(turns) > 1:
            return None
        by = turns.pop()
        by = by if by <= around // 2 else by - around
        return _Run(lanes.pop(), by, min(at), stride, ahead, True) if gcd(by, around) == stride else None


def _merged(runs: Iterable[_Run]) -> Iterator[tuple[list[_Run], _Run | None]]:
    """Runs that are told as one shift, and those that are none: with strides, every place between must take part."""
    waiting = sorted(runs, key=lambda run: (run.lane, run.closed, run.by, run.start))
    while waiting:
        first = waiting[0]
        together = [
            other
            for other in waiting
            if (other.lane, other.closed, other.by, other.stride) == (first.lane, first.closed, first.by, first.stride)
            and first.start <= other.start < first.start + first.stride
        ]
        whole = len(together) == first.stride and sum(len(run.moves) for run in together) >= (2, 3)[first.stride > 1]
        if whole:
            waiting = [run for run in waiting if run not in together]
            yield together, None
        else:
            waiting.pop(0)
            yield [], first


# --- findings ------------------------------------------------------------------------------------


def _shift(words: Words, runs: list[_Run]) -> Finding:
    moves = sorted((move for run in runs for move in run.moves), key=lambda move: words.home(move.unit))
    homes = [words.home(move.unit) for move in moves]
    by, closed = runs[0].by, runs[0].closed
    way, back = ("higher", "down") if by > 0 else ("lower", "up")
    first, last = words.position(homes[0]), words.position(homes[-1])
    switch = words.switch(homes[0])
    places = f"{abs(by)} place{'s' * (abs(by) > 1)}"
    message = f"{words.rails(homes)}the cables of positions {first}..{last} are plugged in {places} {way}"
    ends = "first" if by > 0 else "last"
    facts = [f"{len(moves)} cables, {words.nic(moves[0].unit[0])} to {words.nic(moves[-1].unit[0])}, at {switch}"]
    begin = moves[0] if by > 0 else moves[-1]
    action = f"at {switch}, move each of them {places} {back}, beginning with the one in {words.place(begin.jack)}"
    if closed:
        out = sorted((m.jack for m in moves if (m.jack > words.home(m.unit)) != (by > 0)), key=lambda jack: jack[1])
        where = listed([words.place(jack) for jack in out])
        facts.append(f"those that would leave the range stand at its {'beginning' if ends == 'first' else 'end'}")
        action = f"at {switch}, take out what is in {where}; move the others {places} {back}; plug in the rest at the "
        action += "upper end" if by > 0 else "lower end"
    ports = tuple(move.unit[0] for move in moves)
    return Finding(Cause.SHIFTED, message, tuple(facts), action, ports, words.order(homes[0]), moves[0].span)


def _cycle(words: Words, chain: list[Move]) -> Finding:
    start = min(range(len(chain)), key=lambda i: words.order(words.home(chain[i].unit)))
    chain = chain[start:] + chain[:start]
    homes = [words.home(move.unit) for move in chain]
    names = [words.unit(move.unit) for move in chain]
    message = f"{words.rails(homes)}{listed(names)} are exchanged in a cycle of {len(chain)}, each in the next one's"
    message += " place"
    ways = _ways(words, chain)
    cause = Cause.CYCLE if chain[0].unit[1] == CABLE else Cause.FIBRES
    action = "take all of them out, then plug each in where it belongs: " + "; ".join(ways)
    return Finding(cause, message, (_where(words, homes),), action, _ports(chain), words.order(homes[0]), chain[0].span)


def _chain(words: Words, chain: list[Move], found: Comparison) -> Finding:
    """Cables that went on, the last to a place whose own cable is not in the observation, or that has none."""
    homes = [words.home(move.unit) for move in chain]
    last = chain[-1]
    end = "which belongs to no cable" if last.owner is None else f"the place of {words.unit(last.owner)}"
    if last.owner is not None and last.owner[0] in found.missing:
        end += ", which was not observed"
    names = [words.unit(move.unit) for move in chain]
    spot = words.spot(last.unit, last.jack)
    elsewhere = f" of {words.switch(last.jack)}" if last.jack[0] != homes[-1][0] else ""
    prefix = words.rails([homes[0]])
    if len(chain) == 1:
        message = f"{prefix}{names[0]} is in {spot}{elsewhere}, {end}"
    else:
        message = f"{prefix}{listed(names)} are each in the next one's place, the last in {spot}{elsewhere}, {end}"
    # From the first on, whose place is free: each move frees the place of the next.
    ways = _ways(words, chain)
    action = f"at {words.switch(homes[0])}, move " + "; then ".join(ways)
    cause = Cause.MOVED if chain[0].unit[1] == CABLE else Cause.FIBRES
    fact = f"it belongs in {words.spot(chain[0].unit, homes[0])} of {words.switch(homes[0])}"
    facts = (fact,) if len(chain) == 1 else (_where(words, homes),)
    return Finding(cause, message, facts, action, _ports(chain), words.order(homes[0]), chain[0].span)


def _ways(words: Words, chain: list[Move]) -> list[str]:
    """For each unit, where it is and where it belongs."""
    homes = [words.home(move.unit) for move in chain]
    return [
        f"{_full(words, move, homes)} -> {words.spot(move.unit, home)}" for move, home in zip(chain, homes, strict=True)
    ]


def _full(words: Words, move: Move, homes: list[Jack]) -> str:
    """Where a cable is, with the switch unless all are at one."""
    several = {jack[0] for jack in (*homes, move.jack)} != {homes[0][0]}
    return words.spot(move.unit, move.jack) + (f" of {words.switch(move.jack)}" if several else "")


def _where(words: Words, homes: list[Jack]) -> str:
    return f"at {listed(sorted({words.switch(jack) for jack in homes}))}"


def _ports(chain: Iterable[Move]) -> tuple[NicPort, ...]:
    return tuple(sorted({move.unit[0] for move in chain}))


# --- exchanges -----------------------------------------------------------------------------------

_Swap = tuple[NicPort, NicPort]


def _exchanges(words: Words, swaps: list[list[Move]]) -> Iterator[Finding]:
    """Pairs of cables in each other's place, told together where they have one cause."""
    spans = {}
    open_swaps: set[_Swap] = set()
    for a, b in swaps:
        if a.unit[1] != CABLE or b.unit[1] != CABLE:
            yield _fibres(words, a, b)
            continue
        pair = (min(a.unit[0], b.unit[0]), max(a.unit[0], b.unit[0]))
        open_swaps.add(pair)
        spans[pair] = a.span
    for cause, key, members in _GROUPS:
        groups: dict[tuple[int, ...], list[_Swap]] = {}
        for pair in sorted(open_swaps):
            if (which := key(words, pair)) is not None:
                groups.setdefault(which, []).append(pair)
        for which, pairs in groups.items():
            if 2 * len(pairs) == members(words, which) and (cause is not Cause.NODES or len(pairs) > 1):
                open_swaps -= set(pairs)
                yield _together(words, cause, which, pairs, spans[pairs[0]])
    for pair in sorted(open_swaps):
        yield _exchange(words, pair, spans[pair])


def _exchange(words: Words, pair: _Swap, span: Span) -> Finding:
    a, b = sorted(pair, key=lambda port: words.order(words.wanted.first(port)))
    here, there = words.wanted.first(a), words.wanted.first(b)
    apart = words.names.rail_of(a) != words.names.rail_of(b)
    message = f"{words.rails([here, there])}{words.nic(a, gpu=apart)} and {words.nic(b, gpu=apart)} are exchanged"
    if here[0] == there[0]:
        facts = f"at {words.switch(here)}, {words.place(here)} and {words.place(there)}"
        action = f"at {words.switch(here)}, exchange the cables in {words.place(here)} and {words.place(there)}"
    else:
        facts = f"at {words.place(here)} of {words.switch(here)} and {words.place(there)} of {words.switch(there)}"
        action = f"exchange the cable in {words.place(here)} of {words.switch(here)} with that in "
        action += f"{words.place(there)} of {words.switch(there)}"
    if words.names.node_of(a) == words.names.node_of(b):
        action = f"at {_node(words, a)}, exchange the cables in {_at_node(words, a)} and {_at_node(words, b)}"
    return Finding(
        Cause.EXCHANGED, message, (facts, *words.way(a), *words.way(b)), action, (a, b), words.order(here), span
    )


def _fibres(words: Words, a: Move, b: Move) -> Finding:
    homes = [words.home(a.unit), words.home(b.unit)]
    if homes[1] < homes[0]:
        a, b, homes = b, a, homes[::-1]
    message = f"{words.rails(homes)}{words.unit(a.unit)} and {words.unit(b.unit)} are exchanged"
    ends = [f"{words.port(home)} of {words.switch(home)}" for home in homes]
    action = f"exchange the fibres in {ends[0]} and {ends[1]}"
    return Finding(Cause.FIBRES, message, (f"at {ends[0]} and {ends[1]}",), action, _ports((a, b)),
                   words.order(homes[0]), a.span)  # fmt: skip


def _together(words: Words, cause: Cause, which: tuple[int, ...], pairs: list[_Swap], span: Span) -> Finding:
    a, b = pairs[0]
    homes = [words.wanted.first(a), words.wanted.first(b)]
    cables = f"{2 * len(pairs)} cables"
    if cause is Cause.SWITCHES:
        names = sorted((words.switch(jack) for jack in homes), key=str)
        message = f"{words.rails(homes)}{names[0]} and {names[1]} are exchanged, all their {cables}"
        facts, action = "each cable is in the right position of the wrong switch", (
            "exchange the addresses of the two switches, or their labels, or all their cables"
        )  # fmt: skip
    elif cause is Cause.NODES:
        message = f"nodes {which[0]} and {which[1]} are exchanged, with all their {cables}"
        facts = "every cable of each is in the place of the other's"
        action = f"exchange the names of the hosts {which[0]} and {which[1]}, or all their cables"
    elif cause is Cause.RAILS:
        rails = sorted(words.names.rail_of(port) for port in (a, b))
        message = f"node {which[0]}: rails {rails[0]} and {rails[1]} are exchanged"
        facts = f"{cables}, at {listed(sorted({words.switch(jack) for jack in homes}))}"
        action = f"at node {which[0]}, exchange the cables of GPU {which[1]} and GPU {which[2]}, port by port"
    else:
        rail = words.names.rail_of(a)
        node = words.names.nic_port(a, gpu=True).rpartition(" port")[0]
        message = f"rail {rail}: {node} has planes {which[1]} and {which[2]} exchanged"
        facts = f"{cables}, at {listed(sorted({words.switch(jack) for jack in homes}))}"
        swaps = listed([f"{p[1]} and {q[1]}" for p, q in pairs])
        action = f"at {node}, exchange the cables in port{'s' * (len(pairs) > 1)} {swaps}"
    ports = tuple(sorted(port for pair in pairs for port in pair))
    order = min(words.order(words.wanted.first(port)) for port in ports)
    return Finding(cause, message, (facts,), action, ports, order, span)


def _node(words: Words, port: NicPort) -> str:
    return f"node {words.names.node_of(port)}"


def _at_node(words: Words, port: NicPort) -> str:
    return f"GPU {words.names.local_of(port)} port {port[1]}"


def _switches(words: Words, pair: _Swap) -> tuple[int, ...] | None:
    a, b = (words.wanted.first(port) for port in pair)
    return (min(a[0], b[0]), max(a[0], b[0])) if a[0] != b[0] and a[1] == b[1] else None


def _nodes(words: Words, pair: _Swap) -> tuple[int, ...] | None:
    names, (a, b) = words.names, pair
    alike = names.local_of(a) == names.local_of(b) and a[1] == b[1]
    return (names.node_of(a), names.node_of(b)) if alike else None


def _rails(words: Words, pair: _Swap) -> tuple[int, ...] | None:
    names, (a, b) = words.names, pair
    alike = names.node_of(a) == names.node_of(b) and a[1] == b[1]
    return (names.node_of(a), names.local_of(a), names.local_of(b)) if alike else None


def _planes(words: Words, pair: _Swap) -> tuple[int, ...] | None:
    a, b = pair
    planes = words.names.plan.model.fabric.planes
    differ = a[0] == b[0] and a[1] % planes != b[1] % planes and a[1] // planes == b[1] // planes
    return (a[0], *sorted((a[1] % planes, b[1] % planes))) if differ else None


def _count(match: Callable[[Words, tuple[int, ...], NicPort], bool]) -> Callable[[Words, tuple[int, ...]], int]:
    return lambda words, which: sum(match(words, which, port) for port in words.wanted.home)


#: Cause, what the exchanges of one cause have in common, and how many cables it must move.
_GROUPS = (
    (Cause.SWITCHES, _switches, _count(lambda w, which, port: w.wanted.first(port)[0] in which)),
    (Cause.NODES, _nodes, _count(lambda w, which, port: w.names.node_of(port) in which)),
    (
        Cause.RAILS,
        _rails,
        _count(lambda w, which, p: w.names.node_of(p) == which[0] and w.names.local_of(p) in which[1:]),
    ),
    (
        Cause.PLANES,
        _planes,
        _count(lambda w, which, p: p[0] == which[0] and p[1] % w.names.plan.model.fabric.planes in which[1:]),
    ),
)
