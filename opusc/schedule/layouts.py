"""Which phases may get NIC ports of their own, and how many: the ways of laying a job on its ports that `auto` tries.

Ports are split in whole ports. The planner's own split comes first; the others move ports from one packed phase to
another. Splits that give every phase what another split gives it are tried once.
"""

from collections.abc import Iterator
from itertools import combinations, product

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
    for names, static in _sets(base):
        made = packed(base, dict.fromkeys(names), static=static)
        if not isinstance(made, Variant):
            refused.append(("all phases" if static else ", ".join(names), made))
            continue
        for variant in (made, *_splits(base, made, names, static)):
            if (key := _key(variant)) not in known and len(found) < _MOST_VARIANTS:
                known.add(key)
                found.append(variant)
    return found, refused


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


def _splits(base: Variant, made: Variant, names: tuple[str, ...], static: bool) -> Iterator[Variant]:
    """The same phases with the ports split in other ways, all ports given away."""
    phases = [p for p in made.plan.phases if p.name in (names or made.packs)]
    total = base.plan.model.cluster.rail_nic.ports
    if not 2 <= len(phases) <= 3 or total > 16:
        return
    for counts in product(range(1, total), repeat=len(phases)):
        if sum(counts) == total:
            wanted: Pack = {phase.name: count for phase, count in zip(phases, counts, strict=True)}
            other = packed(base, wanted, static=static)
            if isinstance(other, Variant):
                yield other


def _key(variant: Variant) -> object:
    """What makes a difference: the steps and copies of each phase, and what takes turns."""
    phases = tuple((p.step_count, min((i.shape.copies for i in p.instances), default=0)) for p in variant.plan.phases)
    return phases, tuple(sharing(variant))
