"""The independent checker: does the plan do what the model asks, whatever made it?

Shares no code with the planner or the proofs: it reads the model and the plan's tables, and nothing else.
What each phase should connect is derived by plain arithmetic on ranks (`structure_model`); circuits are
followed through the cabling, which is derived once more (`structure_ports`); and what they connect is compared
with what the phase asks for (`structure_phases`). One pass over arrays; no solver.
"""

import time
from collections.abc import Callable

from opusc.model.entities import CablingKind
from opusc.plan.plan import Plan
from opusc.verify.finding import PORT, REALISATION, Finding, gpu_name
from opusc.verify.report import Method, Obligation
from opusc.verify.structure_model import Graph, World, world_of
from opusc.verify.structure_packing import check_packing
from opusc.verify.structure_phases import Relay, check_phase, check_relays, check_routes
from opusc.verify.structure_ports import (
    Ends,
    check_cabling,
    check_exclusions,
    check_rows,
    check_sharing,
    check_two_way,
    follow,
)

__all__ = ["check"]


def check(plan: Plan) -> tuple[tuple[Obligation, ...], list[Finding]]:
    """Every property of a plan: those that hold, and what is against the others."""
    world = world_of(plan.model.job)
    held: list[Obligation] = []
    found: list[Finding] = []

    def property_(name: str, count: int, work: Callable[[], list[Finding]]) -> bool:
        begin = time.perf_counter()
        against = work()
        found.extend(against)
        if not against:
            held.append(Obligation(name, Method.CHECKED, count, (time.perf_counter() - begin) * 1000))
        return not against

    rows = len(plan.circuits)
    in_order = property_("circuits name ports that exist, in order", rows, lambda: check_rows(plan))
    placed = property_("every rank is on its GPU, in its stage", plan.world, lambda: _check_places(plan, world))
    property_("phases and switches are those of the program", len(plan.switches), lambda: _check_tables(plan))
    property_("every cable is where the program puts it", plan.cabling.switch.size, lambda: check_cabling(plan, world))
    if not placed or (not in_order and _unreadable(plan)):
        return tuple(held), found
    property_("no part uses a switch port twice", rows, lambda: check_sharing(plan))
    property_("parts that share a port exclude each other", len(plan.exclusions), lambda: check_exclusions(plan))
    ends, loose = follow(plan)
    property_("every circuit joins a transmitter and a receiver", rows, lambda: loose)
    property_("packed phases use no NIC port both", rows, lambda: check_packing(plan, ends))
    if not world.independent:
        property_("every port hears whom it sends to", rows, lambda: check_two_way(plan, ends))
    relays: list[Relay] = []
    for phase in plan.phases:
        graphs: dict[int, Graph] = {}
        property_(
            f"phase `{phase.name}` connects what it should, and nothing else",
            sum(part.phase == phase.index for part in plan.parts),
            lambda phase=phase, graphs=graphs: _phase(plan, world, phase, ends, relays, graphs),  # type: ignore[misc]
        )
        property_(
            f"traffic of phase `{phase.name}` has a way",
            len(graphs),
            lambda phase=phase, graphs=graphs: check_routes(phase, graphs),  # type: ignore[misc]
        )
    property_("relays are named where they are needed", len(relays), lambda: check_relays(plan, relays))
    return tuple(held), found


def _phase(
    plan: Plan, world: World, phase: object, ends: Ends, relays: list[Relay], graphs: dict[int, Graph]
) -> list[Finding]:
    against, hops, mine = check_phase(plan, world, phase, ends)  # type: ignore[arg-type]
    relays += hops
    graphs |= mine
    return against


def _unreadable(plan: Plan) -> bool:
    """Whether the circuit table cannot be followed at all."""
    c = plan.circuits
    same = len({len(c.part), len(c.switch), len(c.ingress), len(c.egress)}) == 1
    cut = len(c.start) == len(plan.parts) + 1 and c.start[0] == 0 and c.start[-1] == len(c.part)
    known = same and (not len(c) or (c.part.min() >= 0 and c.part.max() < len(plan.parts)))
    return not (same and cut and known)


def _check_tables(plan: Plan) -> list[Finding]:
    """The plan has the phases of the job, in order, and the switches of the fabric, each of its kind."""
    if [phase.spec for phase in plan.phases] != list(plan.model.job.phases):
        return [Finding(REALISATION, "the phases of the plan are not those of the job")]
    fabric = plan.model.fabric
    shared = fabric.cabling.kind is CablingKind.SHARE
    kinds = [kind for rail in (fabric.rails[:1] if shared else fabric.rails) for kind in rail.switches]
    if shared:
        kinds = kinds[:: fabric.blocks]
    if [switch.kind for switch in plan.switches] != kinds or any(s.index != at for at, s in enumerate(plan.switches)):
        return [Finding(PORT, "the switches of the plan are not those of the fabric")]
    return []


def _check_places(plan: Plan, world: World) -> list[Finding]:
    for what, mine, derived in (
        ("GPU", plan.gpu_of_rank, world.gpu),
        ("pipeline stage", plan.stage_of_rank, world.stage),
    ):
        if mine.shape != derived.shape:
            return [Finding(REALISATION, f"{len(mine)} ranks have a {what}, and the job has {len(derived)}")]
        wrong = (mine != derived).nonzero()[0]
        if len(wrong):
            rank = int(wrong[0])
            right = gpu_name(plan, int(derived[rank])) if what == "GPU" else f"stage {derived[rank]}"
            return [Finding(REALISATION, f"rank {rank} has the wrong {what}: it should be {right}")]
    return []
