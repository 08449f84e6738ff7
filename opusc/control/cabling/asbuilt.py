"""Compare a cabling as built with the program's: everything that differs, by cause."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from opusc.control.cabling.causes import causes_of_moves
from opusc.control.cabling.finding import Cause, Finding, in_order
from opusc.control.cabling.moves import Comparison, Jack, Twice, Wanted, compare
from opusc.control.cabling.names import Names, NicPort
from opusc.control.cabling.observed import Observed, Plugged, Stranger
from opusc.control.cabling.seen import infer
from opusc.control.cabling.words import Words, listed

__all__ = ["AsBuilt", "check_cabling"]


@dataclass(frozen=True, slots=True)
class AsBuilt:
    """The findings, sorted by rail and position, and how many cables there are, were found right, and were not seen."""

    findings: tuple[Finding, ...]
    cables: int
    right: int
    missing: int


def check_cabling(names: Names, observed: Observed) -> AsBuilt:
    """What of the program's cabling is built otherwise, as far as the observation says."""
    wanted = Wanted.of(names.plan)
    words = Words(names, wanted)
    inferred = infer(words, observed.seen) if observed.seen else None
    plugged: list[Plugged] = list(observed.plugged)
    findings: list[Finding] = []
    if inferred is not None:
        stated = {row.port for row in plugged}
        plugged += [row for row in inferred.plugged if row.port not in stated]
        findings += [f for f in inferred.findings if stated.isdisjoint(f.ports)]
    found = compare(wanted, plugged)
    if inferred is not None:
        explained = {port for finding in findings for port in finding.ports}
        found.missing = [port for port in found.missing if port not in explained and port not in inferred.unlit]
    findings += causes_of_moves(words, found)
    findings += [_reversed(words, port, found) for port in found.reversed]
    findings += _missing(words, found, strangers=observed.strangers)
    findings += [_twice(words, twice) for twice in found.twice]
    findings += _strangers(words, observed.strangers, found)
    return AsBuilt(in_order(findings), len(wanted.home), found.right, len(found.missing))


def _reversed(words: Words, port: NicPort, found: Comparison) -> Finding:
    home = words.wanted.first(port)
    move = found.moves.get((port, "cable"))
    jack = home if move is None else move.jack
    fibres = words.wanted.home[port]
    message = f"{words.rails([home])}{words.nic(port)} has transmit and receive crossed"
    ends = " and ".join(words.port(end) for end in fibres.values())
    facts = f"in {words.place(jack)} of {words.switch(jack)}; its transmit fibre belongs in "
    facts += f"{words.port(fibres['tx'])}, its receive fibre in {words.port(fibres['rx'])}"
    action = f"at {words.switch(jack)}, exchange the two fibres of the plug in {words.place(jack)}"
    if move is None:
        action = f"at {words.switch(jack)}, exchange the fibres in {ends}"
    return Finding(Cause.REVERSED, message, (facts,), action, (port,), words.order(home), found.reversed[port])


# --- missing -------------------------------------------------------------------------------------


def _missing(words: Words, found: Comparison, strangers: Iterable[Stranger]) -> Iterator[Finding]:
    """Cables of which nothing was observed: whole switches and whole nodes at once, others one by one."""
    missing, left = frozenset(found.missing), set(found.missing)
    for kind, which, ports in _wholes(words):
        if len(ports) > 1 and missing.issuperset(ports) and not left.isdisjoint(ports):
            ports = [port for port in ports if port in left]
            left.difference_update(ports)
            home = words.wanted.first(ports[0])
            prefix = words.rails([words.wanted.first(port) for port in ports])
            if kind == "switch":
                message = f"{prefix}nothing was observed at {which}, none of its {len(ports)} cables"
                action = f"observe {which} too: a file for it, or its rows in a file for all"
            else:
                message = f"{which} was not observed, none of its {len(ports)} cables"
                action = f"look at {which}: is it there, is it on, and is its name what the program counts by?"
            yield Finding(Cause.MISSING, message, (), action, tuple(ports), words.order(home))
    foreign = {(s.switch, words.position((s.switch, s.number))): s for s in strangers if s.switch is not None
               and s.number is not None}  # fmt: skip
    for port in sorted(left):
        home = words.wanted.first(port)
        message = f"{words.rails([home])}the cable of {words.nic(port)} is missing or was not observed"
        stranger = foreign.get((home[0], words.position(home)))
        facts = [f"it belongs in {words.place(home)} of {words.switch(home)}", *words.way(port)]
        if stranger is not None:
            facts.append(f"the cable of `{stranger.name}` is there")
        node = words.nic(port, gpu=True)
        action = f"look for it at {node}, and in {words.place(home)} of {words.switch(home)}"
        yield Finding(Cause.MISSING, message, tuple(facts), action, (port,), words.order(home))
    for port, way in found.dark:
        home = words.wanted.home[port][way]
        what = {"tx": "transmit", "rx": "receive", "both": ""}[way]
        message = f"{words.rails([home])}the {what} fibre of {words.nic(port)} is missing or was not observed"
        action = f"look for it in {words.port(home)} of {words.switch(home)}"
        yield Finding(Cause.MISSING, message, ("its other fibre is there",), action, (port,), words.order(home))


def _wholes(words: Words) -> Iterator[tuple[str, str, list[NicPort]]]:
    """All cables of each switch, then of each node."""
    switches: dict[str, list[NicPort]] = {}
    nodes: dict[str, list[NicPort]] = {}
    for port in words.wanted.home:
        switches.setdefault(words.switch(words.wanted.first(port)), []).append(port)
        nodes.setdefault(f"node {words.names.node_of(port)}", []).append(port)
    yield from (("switch", name, ports) for name, ports in switches.items())
    yield from (("node", name, ports) for name, ports in nodes.items())


# --- what the observation says too much ----------------------------------------------------------


def _twice(words: Words, twice: Twice) -> Finding:
    jacks = _by_place(words, twice.jacks)
    first = jacks[0]
    places = [words.place(jack) + (f" of {words.switch(jack)}" if len({j[0] for j in jacks}) > 1 else "")
              for jack in jacks]  # fmt: skip
    if len(twice.ports) == 1:
        port = twice.ports[0]
        home = words.wanted.first(port)
        if len(twice.jacks) == 1:
            message = f"{words.rails([home])}both fibres of {words.nic(port)} were observed at one port"
        elif len(places) == 1:
            message = f"{words.rails([home])}{words.nic(port)} was observed both straight and crossed, in {places[0]}"
        else:
            message = f"{words.rails([home])}{words.nic(port)} was observed twice: in {listed(places)}"
        facts = (f"it belongs in {words.place(home)} of {words.switch(home)}",)
        action = f"look where the cable of {words.nic(port, gpu=True)} ends, and correct the observation"
        return Finding(Cause.TWICE, message, facts, action, twice.ports, words.order(home), twice.span)
    names = listed([words.nic(port) for port in twice.ports])
    message = f"{words.rails([first])}{listed(places)} was observed with two cables: {names}"
    owner = words.wanted.owner.get(first)
    facts = (f"it is the place of {words.nic(owner[0])}" if owner else "it is nobody's place",)
    action = f"look which cable is in {words.place(first)} of {words.switch(first)}, and where the other one is"
    return Finding(Cause.TWICE, message, facts, action, twice.ports, words.order(first), twice.span)


def _by_place(words: Words, jacks: Iterable[Jack]) -> list[Jack]:
    """One switch port for each place, in order."""
    found: dict[tuple[int, int], Jack] = {}
    for jack in sorted(jacks):
        found.setdefault((jack[0], words.position(jack)), jack)
    return list(found.values())


def _strangers(words: Words, strangers: Iterable[Stranger], found: Comparison) -> Iterator[Finding]:
    seen: set[tuple[str, int | None, int | None]] = set()
    for stranger in strangers:
        position = None
        if stranger.switch is not None and stranger.number is not None:
            position = words.position((stranger.switch, stranger.number))
        key = stranger.name, stranger.switch, position
        if key in seen:
            continue
        seen.add(key)
        if stranger.switch is None or stranger.number is None:
            yield Finding(
                Cause.UNKNOWN, f"`{stranger.name}` is no NIC port that the program cables", (),
                "correct the observation, or the number of nodes and ports in the program", (), (-1, -1, -1),
                stranger.span,
            )  # fmt: skip
            continue
        jack = stranger.switch, stranger.number
        owner = words.wanted.owner.get(jack)
        facts = f"it is the place of {words.nic(owner[0])}" if owner else "it is nobody's place"
        message = f"{words.rails([jack])}{words.place(jack)} holds a cable that the program does not have: "
        message += f"`{stranger.name}`"
        action = f"at {words.switch(jack)}, unplug it, or let the program have it"
        yield Finding(Cause.UNKNOWN, message, (facts,), action, (), words.order(jack), stranger.span)
