"""What the targets for switch controllers share: which sets and changes are written, and how they are read back.

A vendor has one or more *wires*: formats in which a switch takes a whole set of cross-connects, or a change. For
each switch, under `<target>/<switch>/<wire>/`:

    part-<part>.<suffix>                     the circuits of one part
    configuration-<name>.<suffix>            the whole set of a configuration of the job
    change-<from>-to-<to>.<suffix>           the change between two successive ones: disconnects, then connects

A change that leaves a switch as it is has no file. Wires that can only take whole sets have no changes. Beside the
wires, `<target>/<switch>/changes.json` states every change in numbers, with the time that it takes (`switch_times`).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from opusc.backends.base import Options, Unreadable
from opusc.backends.switch_times import FILE as TIMES
from opusc.backends.switch_times import Changes, Steps, changes_of, read_changes, text_of
from opusc.diagnostics import Diagnostics
from opusc.model.entities import Matrix
from opusc.plan.configurations import changes, configurations
from opusc.plan.plan import Int32, Plan, Switch
from opusc.plan.transitions import held
from opusc.verify.explain import explain
from opusc.verify.transitions import check_transition

__all__ = ["Names", "Pairs", "Statement", "SwitchTarget", "Wire", "numbered", "sided", "slug"]

#: Cross-connects of one switch by the names of their ports, in the order of ingress ports.
Pairs: TypeAlias = tuple[tuple[str, str], ...]

#: The name of each port of a switch that the target may use; None when only the program could say.
Names: TypeAlias = Callable[[Switch], dict[int, str] | None]


@dataclass(frozen=True)
class Wire:
    """One format of a vendor. A change of None means that the switch takes whole sets only."""

    name: str
    suffix: str
    whole: Callable[[Switch, Pairs], str]
    read_whole: Callable[[str], Pairs]
    change: Callable[[Switch, Pairs, Pairs], str] | None = None
    read_change: Callable[[str], tuple[Pairs, Pairs]] | None = None


@dataclass(frozen=True)
class Statement:
    """One file: what it disconnects, and then connects. A whole set disconnects nothing by name."""

    title: str
    disconnect: Pairs
    connect: Pairs


@dataclass(frozen=True)
class SwitchTarget:
    """A backend for the switches of one driver."""

    name: str
    summary: str
    driver: str
    wires: tuple[Wire, ...]
    names: Names
    crossbar_only: bool = False
    called: tuple[str, str] = (r"[\w.:/]+", r"[\w.:/]+")  # what the names of ingress and egress ports may be

    def check(self, plan: Plan, options: Options, sink: Diagnostics) -> None:
        mine = self._switches(plan)
        fabric = plan.model.fabric
        if not mine:
            others = sorted({s.kind.driver for s in plan.switches if s.kind.driver})
            sink.error(
                "OPUS602",
                f"target `{self.name}` writes the switches whose driver is `{self.driver}`, and fabric "
                f"`{fabric.name}` has none",
                fabric.at("switch"),
                f"drivers here: {', '.join(others)}" if others else "no driver stated",
                help=f"state `driver = {self.driver}` for those switches, or choose another target",
            )
        for switch in mine:
            if self.crossbar_only and switch.kind.matrix is not Matrix.CROSSBAR:
                sink.error(
                    "OPUS602",
                    f"target `{self.name}` joins side A to side B; `{switch.kind.name}` joins any two ports",
                    switch.kind.at("matrix"),
                    help="leave the target out: `-t plan` states every circuit",
                )
                return
            names = self.port_names(switch)
            if names is not None and (wrong := self._unspeakable(switch, names)):
                sink.error(
                    "OPUS602",
                    f"target `{self.name}` cannot call a port of {switch.name} `{wrong}`",
                    switch.kind.at("ingress_name"),
                    f"its controllers know {self._example(switch)}",
                    help="state the names as the controller has them, or leave them out",
                )
                return
            if names is None:
                sink.error(
                    "OPUS604",
                    f"target `{self.name}` needs the names of the ports of {switch.name}",
                    switch.kind.span,
                    "`ingress_name` and `egress_name` are missing",
                    help='for example `ingress_name = "1.1.{position}"` and `egress_name = "2.1.{position}"`',
                )
                return
        explain(plan, [finding for *_, change in changes(plan) for finding in check_transition(plan, change)], sink)

    def write(self, plan: Plan, options: Options) -> Iterator[tuple[str, Iterable[bytes]]]:
        steps = changes(plan)
        timed = changes_of(plan, steps)
        for switch in self._switches(plan):
            times = replace(timed[switch.index], title=f"{self._folder(switch)}/{TIMES}")
            yield times.title, (text_of(times).encode(),)
            for wire in self.wires:
                for title, disconnect, connect in self._sets(plan, steps, switch, wire):
                    if wire.change is not None and title.startswith("change-"):
                        text = wire.change(switch, disconnect, connect)
                    else:
                        text = wire.whole(switch, connect)
                    yield f"{self._folder(switch)}/{wire.name}/{title}.{wire.suffix}", (text.encode(),)

    def project(self, plan: Plan) -> Iterator[Statement | Changes]:
        found: dict[str, Statement | Changes] = {}
        steps = changes(plan)
        timed = changes_of(plan, steps)
        for switch in self._switches(plan):
            times = replace(timed[switch.index], title=f"{self._folder(switch)}/{TIMES}")
            found[times.title] = times
            for wire in self.wires:
                for title, disconnect, connect in self._sets(plan, steps, switch, wire):
                    path = f"{self._folder(switch)}/{wire.name}/{title}.{wire.suffix}"
                    found[path] = Statement(path, disconnect, connect)
        return (found[path] for path in sorted(found))

    def read(self, directory: Path) -> Iterator[Statement | Changes]:
        wires = {wire.name: wire for wire in self.wires}
        paths = (path for path in (directory / self.name).rglob("*") if path.is_file())
        for title, path in sorted((path.relative_to(directory).as_posix(), path) for path in paths):
            text = path.read_text(encoding="utf-8")
            wire = wires.get(path.parent.name)
            if wire is None and path.name != TIMES:
                raise Unreadable(f"{title}: no wire is called {path.parent.name}")
            try:
                if wire is None:
                    yield read_changes(title, text)
                elif wire.read_change is not None and path.name.startswith("change-"):
                    yield Statement(title, *wire.read_change(text))
                else:
                    yield Statement(title, (), wire.read_whole(text))
            except (ValueError, KeyError, TypeError) as error:
                raise Unreadable(f"{title}: {error}") from error

    def faults(self, plan: Plan, statement: object) -> Iterator[str]:
        """One-to-one: no port stands twice among what is disconnected, or among what is connected."""
        if isinstance(statement, Changes):
            return
        assert isinstance(statement, Statement)
        for pairs in (statement.disconnect, statement.connect):
            for side in (0, 1):
                ports = [pair[side] for pair in pairs]
                if len(set(ports)) < len(ports):
                    twice = next(port for port in ports if ports.count(port) > 1)
                    yield f"port {twice} is used twice"

    def note(self, options: Options) -> str:
        return ""

    # --- what is written -----------------------------------------------------------------------

    def _switches(self, plan: Plan) -> list[Switch]:
        return [switch for switch in plan.switches if switch.kind.driver == self.driver]

    def _folder(self, switch: Switch) -> str:
        return f"{self.name}/{slug(switch.name)}"

    def _unspeakable(self, switch: Switch, names: dict[int, str]) -> str | None:
        """A name that the formats have no room for: they would not find it back."""
        radix = switch.kind.radix
        fitting = (re.compile(self.called[0]), re.compile(self.called[1]))
        return next((name for number, name in names.items() if not fitting[number > radix].fullmatch(name)), None)

    def _example(self, switch: Switch) -> str:
        own = self.names(switch)
        return f"`{own[1]}`, `{own[2]}`, ..." if own and 2 in own else "letters, digits, dots, colons and slashes"

    def port_names(self, switch: Switch) -> dict[int, str] | None:
        kind = switch.kind
        if kind.ingress_names and kind.egress_names:
            inputs = dict(enumerate(kind.ingress_names, 1))
            return inputs | {kind.radix + at: name for at, name in enumerate(kind.egress_names, 1)}
        return self.names(switch)

    def _sets(self, plan: Plan, steps: Steps, switch: Switch, wire: Wire) -> Iterator[tuple[str, Pairs, Pairs]]:
        """(title, disconnect, connect) of every file of a switch."""
        names = self.port_names(switch)
        assert names is not None, "a plan that `check` refuses"

        def named(rows: Int32) -> Pairs:
            mine = rows[rows[:, 0] == switch.index].tolist()
            return tuple((names[a], names[b]) for _, a, b in mine)

        for part in plan.parts:
            yield f"part-{slug(part.name)}", (), named(held(plan, [part.index]))
        for configuration in configurations(plan):
            yield f"configuration-{slug(configuration.name)}", (), named(held(plan, configuration.parts))
        if wire.change is None:
            return
        for before, after, change in steps:
            disconnect, connect = named(change.disconnect), named(change.connect)
            if disconnect or connect:
                yield f"change-{slug(before.name)}-to-{slug(after.name)}", disconnect, connect


def numbered(switch: Switch) -> dict[int, str]:
    """Ports called by their numbers: 1..N, and N + 1..2N for the egress side of a crossbar."""
    last = switch.kind.radix * (2 if switch.kind.matrix is Matrix.CROSSBAR else 1)
    return {port: str(port) for port in range(1, last + 1)}


def sided(switch: Switch) -> dict[int, str]:
    """Ports called by position and side: `1A` for ingress 1, `1B` for egress 1."""
    radix = switch.kind.radix
    return {p: f"{p}A" for p in range(1, radix + 1)} | {radix + p: f"{p}B" for p in range(1, radix + 1)}


def slug(name: str) -> str:
    """A name as a part of a file name: `pp[0-1] step 1` is `pp-0-1-step-1`."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-")
