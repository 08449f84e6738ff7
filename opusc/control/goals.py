"""What to push: stations and goals from a plan."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opusc.backends.switch_files import SwitchTarget
from opusc.control.change import Goal, Station
from opusc.control.device import Held
from opusc.plan.configurations import Configuration
from opusc.plan.plan import Int32, Plan, Switch
from opusc.plan.transitions import held

__all__ = ["Step", "part_step", "station_of", "whole_step"]


@dataclass(frozen=True, slots=True)
class Step:
    """One configuration for all switches: what each should hold, by the index of the switch."""

    name: str
    goals: dict[int, Goal]


def station_of(plan: Plan, switch: Switch, target: SwitchTarget) -> Station:
    """A switch with the names of its ports. The program's own ports are those of NIC ports of ranks, and of relays."""
    names = target.port_names(switch)
    assert names is not None, "a switch that `places` refuses"
    cabling, circuits = plan.cabling, plan.circuits
    owned: set[int] = set()
    of_ranks = plan.rank_of_gpu >= 0
    here = (cabling.switch == switch.index) & of_ranks[:, None]
    rows = circuits.switch == switch.index
    for numbers in (cabling.ingress[here], cabling.egress[here], circuits.ingress[rows], circuits.egress[rows]):
        owned.update(numbers.tolist())
    return Station(switch, names, frozenset(owned - {-1}))


def whole_step(plan: Plan, configuration: Configuration, stations: Sequence[Station]) -> Step:
    """A whole configuration: every other circuit of the program goes."""
    rows = held(plan, configuration.parts)
    return Step(configuration.name, {s.switch.index: Goal(_named(rows, s)) for s in stations})


def part_step(plan: Plan, name: str, parts: Iterable[int], stations: Sequence[Station]) -> Step:
    """Some parts of the plan: what they exclude goes, and what can hold beside them stays."""
    chosen = set(parts)
    excluded = set().union(*(plan.excluded_with[part] for part in chosen)) - chosen
    others = [part.index for part in plan.parts if part.index not in excluded | chosen]
    wanted_rows, gone_rows = held(plan, chosen), [held(plan, [part]) for part in sorted(excluded)]
    staying_rows = [held(plan, [part]) for part in others]
    goals = {}
    for station in stations:
        wanted = _named(wanted_rows, station)
        gone = frozenset().union(*(_named(rows, station) for rows in gone_rows))
        staying = frozenset().union(*(_named(rows, station) for rows in staying_rows))
        if wanted or gone:
            goals[station.switch.index] = Goal(wanted, gone - staying - wanted)
    return Step(name, goals)


def _named(rows: Int32, station: Station) -> Held:
    names = station.names
    return frozenset((names[a], names[b]) for _, a, b in rows[rows[:, 0] == station.switch.index].tolist())
