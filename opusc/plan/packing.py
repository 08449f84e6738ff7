"""Packing: which NIC ports each packed phase has to itself, so that packed phases hold at once.

A packed phase that holds at once on all ports must hold at once on its own; on independent ports a chain
may instead hold one direction at a time, which a pipeline uses at different times. Under `policy = static` nothing
may change, so every phase must hold at once whatever it does with all ports.

Ports are interchangeable within a class (plane, side), so a set of ports is chosen as counts of classes: the
smallest that does, in the order of the phases; ports that are left are given in turn to phases that gain by them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from opusc.diagnostics import Diagnostics
from opusc.model.entities import Job, PhaseSpec, Side
from opusc.plan.ports import PortModel

__all__ = ["Held", "assign", "packed_phases"]

Ports = tuple[int, ...]

_ANY = 2**31


@dataclass(frozen=True, slots=True)
class Held:
    """How a phase lies on some ports: in how many steps, in how many copies; no steps: it needs no circuits."""

    steps: int
    copies: int


#: How a phase lies on the ports that it may use; None where it cannot.
Probe = Callable[[PhaseSpec, PortModel], Held | None]


def packed_phases(job: Job) -> dict[str, int | None]:
    """The phases that share out the ports, with the number of ports where it is stated: those of `pack`; under
    `policy = static` all others as well."""
    found: dict[str, int | None] = {packed.phase: packed.ports for packed in job.pack}
    if job.policy == "static":
        found.update({phase.name: None for phase in job.phases if phase.name not in found})
    return found


def assign(job: Job, model: PortModel, probe: Probe, sink: Diagnostics) -> dict[str, Ports] | None:
    """The ports of each packed phase; None after a diagnostic with the figures."""
    wanted = packed_phases(job)
    specs = [spec for spec in job.phases if spec.name in wanted]
    alone = {spec.name: probe(spec, model) for spec in specs}
    if None in alone.values():
        return {}  # the phase cannot be drawn at all, which planning it says
    specs = [spec for spec in specs if (held := alone[spec.name]) and held.steps]
    static = job.policy == "static"
    for turning in (False,) if static else (False, True):
        need = _Need(model, probe, {s.name: _most(s, model, alone[s.name], static, turning) for s in specs})
        found = _first(need, specs, wanted, model.ports, {})
        if found is not None:
            return _spread(need, specs, wanted, found)
    _refuse(job, need, sink)  # what they need at the least
    return None


def _most(spec: PhaseSpec, model: PortModel, alone: Held | None, static: bool, turning: bool) -> int:
    """In how many steps a phase may lie on ports of its own."""
    assert alone is not None
    if static:
        return 1
    if alone.steps > 1:
        return _ANY  # it takes turns with itself anyway
    return 2 if turning and model.independent and spec.topology.name == "chain" else 1


class _Need:
    """What phases need, asked once for each set of port classes."""

    def __init__(self, model: PortModel, probe: Probe, most: dict[str, int]) -> None:
        self.model, self.probe, self.most = model, probe, most
        self.known: dict[tuple[str, object], Held | None] = {}

    def held(self, spec: PhaseSpec, ports: Ports) -> Held | None:
        key = (spec.name, tuple(sorted(map(self._class, ports), key=str)))
        if key not in self.known:
            self.known[key] = self.probe(spec, self.model.only(ports)) if ports else None
        return self.known[key]

    def enough(self, spec: PhaseSpec, ports: Ports) -> bool:
        held = self.held(spec, ports)
        return held is not None and held.steps <= self.most[spec.name]

    def choices(self, free: Ports) -> Iterator[Ports]:
        """Subsets of free ports, the smallest first, one for each count of port classes."""
        classes: dict[tuple[int, Side | None], list[int]] = {}
        for port in free:
            classes.setdefault(self._class(port), []).append(port)
        counts = product(*(range(len(members) + 1) for members in classes.values()))
        for chosen in sorted(counts, key=lambda c: (sum(c), [-n for n in c])):
            picked = [p for members, n in zip(classes.values(), chosen, strict=True) for p in members[:n]]
            yield tuple(sorted(picked))

    def _class(self, port: int) -> tuple[int, Side | None]:
        sides = self.model.sides
        return self.model.planes[port], None if sides is None else sides[port]


def _first(
    need: _Need, specs: Sequence[PhaseSpec], wanted: dict[str, int | None], free: Ports, taken: dict[str, Ports]
) -> dict[str, Ports] | None:
    """The first assignment that does, phase by phase, the smallest sets first."""
    if not specs:
        return taken
    spec, count = specs[0], wanted[specs[0].name]
    for ports in need.choices(free):
        if (count is None or len(ports) == count) and need.enough(spec, ports):
            rest = tuple(p for p in free if p not in ports)
            if found := _first(need, specs[1:], wanted, rest, {**taken, spec.name: ports}):
                return found
    return None


def _spread(
    need: _Need, specs: Sequence[PhaseSpec], wanted: dict[str, int | None], found: dict[str, Ports]
) -> dict[str, Ports]:
    """Give what is left, in turn, to phases that gain by it: fewer steps, or more copies in as many."""
    free = tuple(p for p in need.model.ports if not any(p in ports for ports in found.values()))
    gained = True
    while free and gained:
        gained = False
        for spec in specs:
            own = found[spec.name]
            if wanted[spec.name] is None and (more := _gain(need, spec, own, free)):
                found = {**found, spec.name: tuple(sorted((*own, *more)))}
                free = tuple(p for p in free if p not in more)
                gained = True
    return found


def _gain(need: _Need, spec: PhaseSpec, own: Ports, free: Ports) -> Ports:
    now = need.held(spec, own)
    assert now is not None
    for more in need.choices(free):
        then = need.held(spec, tuple(sorted((*own, *more)))) if more else None
        if then and (then.steps < now.steps or (then.steps == now.steps and then.copies > now.copies)):
            return more
    return ()


def _refuse(job: Job, need: _Need, sink: Diagnostics) -> None:
    """How many ports each phase needs, and how many there are."""
    wanted, ports = packed_phases(job), need.model.ports
    notes, total = [], 0
    for spec in (s for s in job.phases if s.name in need.most):
        least = next((ports for ports in need.choices(ports) if need.enough(spec, ports)), None)
        stated = wanted[spec.name]
        if least is None:
            steps = held.steps if (held := need.held(spec, ports)) else 0
            notes.append(
                f"phase `{spec.name}` ({spec.topology.name}) takes {steps} steps even on all {len(ports)} ports"
            )
            continue
        total += max(len(least), stated or 0)
        given = f", and is given {stated}" if stated is not None else ""
        notes.append(
            f"phase `{spec.name}` ({spec.topology.name}) needs {len(least)} port{'s' * (len(least) != 1)}{given}"
        )
    each = "each sends to one neighbour and hears another" if need.model.independent else "each faces one neighbour"
    notes.append(f"a GPU has {len(ports)} port{'s' * (len(ports) != 1)} on its rail, and {each}")
    if total > len(ports):
        notes.append(f"that is {total} of {len(ports)}")
    static = job.policy == "static" and not job.pack
    what = "`policy = static` holds every phase at once, and" if static else "the packed phases do not fit:"
    sink.error(
        "OPUS437",
        f"{what} the ports do not suffice",
        job.at("policy" if static else "pack"),
        ", ".join(f"`{spec.name}`" for spec in job.phases if spec.name in need.most),
        notes=notes,
        help="let them take turns ("
        + ("`policy = provisioned`" if static else "leave out `pack`")
        + "), or share out a NIC of more and slower ports"
        + ("" if need.model.independent else "; with `peers = independent` one port holds a ring one way"),
    )
