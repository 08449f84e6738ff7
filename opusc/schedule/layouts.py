"""Which phases may get NIC ports of their own, and how many: the ways of laying a job on its ports that `auto` tries.

Ports are split in whole ports. The planner's own split comes first; the others move ports from one packed phase to
another. Splits that give every phase what another split gives it are tried once.
"""

from collections.abc import Iterator
from itertools import combinations, product

from opusc.model.entities import Optics, Peers, Traffic
from opusc.schedule.variants import Pack, Variant, packed

__all__ = ["Refused", "layouts", "sharing"]

#: What could not be packed, and why.
Refused = tuple[str, tuple[str, ...]]

_MOST_PHASES = 4  # above which only pairs and all of them are tried
_MOST_VARIANTS = 12


def layouts(base: Variant) -> tuple[list[Variant], list[Refused]]:
    """The base, then every other way; and what could not be packed. Only the base where the program packs."""
    found, refused = [base], list[Refused]()
    if base.packs or base.fixed:
        return found, refused
    known = {_key(base)}

    def add(variant: Variant | tuple[str, ...]) -> None:
        if isinstance(variant, Variant) and (key := _key(variant)) not in known and len(found) < _MOST_VARIANTS:
            known.add(key)
            found.append(variant)

    rings = _rings(base)
    if rings:
        add(packed(base, {}, one_way=rings))
    for names, static in _sets(base):
        made = packed(base, dict.fromkeys(names), static=static)
        if not isinstance(made, Variant):
            refused.append(("all phases" if static else ", ".join(names), made))
            continue
        for wanted in ({}, *_splits(base, made, names)):
            pack = wanted or dict.fromkeys(names)
            add(packed(base, pack, static=static) if wanted else made)
            if rings:
                add(packed(base, pack, static=static, one_way=rings))
    return found, refused


def _rings(base: Variant) -> tuple[str, ...]:
    """Reductions over rings that could run one way on every port, where a port need not hear whom it sends to."""
    nic = base.plan.model.cluster.rail_nic
    if nic.optics is not Optics.DUPLEX or nic.peers is not Peers.INDEPENDENT or nic.ports < 2:
        return ()
    return tuple(
        p.name
        for p in base.plan.phases
        if p.instances
        and p.spec.topology.name == "ring"
        and p.spec.traffic is Traffic.REDUCTION
        and not p.spec.topology.one_way
    )


def sharing(base: Variant) -> list[tuple[str, ...]]:
    """Phases that share ports: pairs, and single ones whose own steps take turns."""
    phases, parts = base.plan.phases, base.plan.parts
    pairs = {tuple(sorted({parts[a].phase, parts[b].phase})) for a, b in base.plan.exclusions.tolist()}
    return [tuple(phases[at].name for at in pair) for pair in sorted(pairs)]


def _sets(base: Variant) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Phases to pack together, each sharing ports with another of them; then all, so that nothing changes at all."""
    pairs = [frozenset(pair) for pair in sharing(base) if len(pair) == 2]
    names = [phase.name for phase in base.plan.phases if any(phase.name in pair for pair in pairs)]
    sizes = range(2, len(names) + 1) if len(names) <= _MOST_PHASES else (2, len(names))
    for size in sizes:
        for chosen in combinations(names, size):
            if all(any({name, other} in pairs for other in chosen) for name in chosen):
                yield chosen, False
    yield (), True


def _splits(base: Variant, made: Variant, names: tuple[str, ...]) -> Iterator[Pack]:
    """The same phases with the ports split in other ways, all ports given away."""
    phases = [p for p in made.plan.phases if p.name in (names or made.packs)]
    total = base.plan.model.cluster.rail_nic.ports
    if not 2 <= len(phases) <= 3 or total > 16:
        return
    for counts in product(range(1, total), repeat=len(phases)):
        if sum(counts) == total:
            yield {phase.name: count for phase, count in zip(phases, counts, strict=True)}


def _key(variant: Variant) -> object:
    """What makes a difference: the steps and copies of each phase, and what takes turns."""
    phases = tuple(
        (
            p.spec.topology.one_way and len(p.ports) > 1,
            p.step_count,
            min((i.shape.copies for i in p.instances), default=0),
        )
        for p in variant.plan.phases
    )
    return phases, tuple(sharing(variant))
