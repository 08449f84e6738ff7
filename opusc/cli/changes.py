"""Changes of switches for people, and whose circuits may go: what `push` and `plan-change` share."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opusc.cli.tables import count, table
from opusc.cli.terminal import UsageError

if TYPE_CHECKING:
    from opusc.control.change import Change, Station
    from opusc.control.device import Held
    from opusc.plan.plan import Plan

__all__ = ["step_text", "taken_by", "taking_option"]

_SHOWN = 8  # circuits of a switch, and switches, that people read


def step_text(plan: "Plan", name: str, rows: Sequence[tuple["Station", "Change"]]) -> str:
    """What a step changes: a row for each switch, and the circuits that go and come with whose ports they are on."""
    from opusc.control.holders import Holders

    head = ("switch", "disconnect", "connect", "keep", "others")
    cells = [
        (station.name, *(count(len(pairs)) for pairs in (c.disconnect, c.connect, c.kept, c.foreign)))
        for station, c in rows
    ]
    out = f"step {name}\n\n" + table(head, cells, right=range(1, 5)) + "\n"
    for station, change in rows[:_SHOWN]:
        lines = [("-", pair) for pair in change.disconnect] + [("+", pair) for pair in change.connect]
        if not lines:
            continue
        holders = Holders(plan, station)
        cells = [
            (sign, f"{pair[0]} > {pair[1]}", *map(holders.owner, station.ends(pair))) for sign, pair in lines[:_SHOWN]
        ]
        out += table(("", station.name, "from", "to"), cells)
        out += f"   {len(lines) - _SHOWN:,} more\n\n" if len(lines) > _SHOWN else "\n"
    if len(rows) > _SHOWN:
        out += f"{len(rows) - _SHOWN:,} more switches\n\n"
    return out


def taking_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--take",
        metavar="SWITCH:IN>OUT",
        type=_circuit_of_others,
        action="append",
        default=[],
        help="a circuit of others that may go",
    )


def _circuit_of_others(text: str) -> tuple[str, tuple[str, str]]:
    """`SWITCH:IN>OUT`."""
    switch, colon, pair = text.rpartition(":")
    ends = pair.split(">")
    if not colon or len(ends) != 2 or not all((switch.strip(), *(end.strip() for end in ends))):
        raise argparse.ArgumentTypeError(f"`{text}` should be SWITCH:IN>OUT, for example rails.rail[0]:3>19")
    return switch.strip(), (ends[0].strip(), ends[1].strip())


def taken_by(stations: Sequence["Station"], given: Sequence[tuple[str, tuple[str, str]]]) -> dict[int, "Held"]:
    """The circuits that may go, by switch. Raises UsageError."""
    found: dict[int, Held] = {}
    known = {station.name: station for station in stations}
    for name, pair in given:
        if name not in known:
            raise UsageError(f"--take names no switch of these: `{name}`")
        station = known[name]
        found[station.switch.index] = found.get(station.switch.index, frozenset()) | station.canonical([pair])
    return found
