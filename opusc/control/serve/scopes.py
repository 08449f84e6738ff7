"""Which parts of a plan a communicator asks for.

The members of a communicator are a group of one phase: then its collectives need the phase's part of the stage that
they are in. Two ranks of neighbouring stages, or a whole pipeline with the number of a pair, need the join of the two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from opusc.plan.plan import Plan, Scoping
from opusc.plan.ranks import grid_of, groups, rail_of

__all__ = ["Scope", "ScopeError", "Scopes"]


class ScopeError(ValueError):
    """No part of the plan is what a communicator asks for: a sentence."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a communicator is to the plan: `inside` one scale-up domain, or on rails, in a phase and some stages."""

    inside: bool
    rails: tuple[int, ...] = ()
    phase: int = -1
    stages: tuple[int, ...] = ()


class Scopes:
    """The groups of a plan by their members."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._cached = lru_cache(maxsize=4096)(self._parts)  # bounded: a stranger may try many
        self._phase_of: dict[frozenset[int], int] = {}
        self._joins = [phase.index for phase in plan.phases if phase.scoping is Scoping.JOIN and phase.instances]
        for phase in plan.phases:
            if phase.instances:
                for members in groups(grid_of(plan.model.job, phase.spec.axes), phase.spec.axes).tolist():
                    self._phase_of.setdefault(frozenset(members), phase.index)

    def of(self, members: Sequence[int]) -> Scope:
        """The scope of a communicator. Raises ScopeError."""
        plan = self.plan
        wrong = next((rank for rank in members if not 0 <= rank < plan.world), None)
        if wrong is not None:
            raise ScopeError(f"there is no rank {wrong}: the job has {plan.world:,}")
        if len(set(members)) != len(members):
            raise ScopeError("a rank is listed twice")
        gpus = plan.gpu_of_rank[list(members)]
        if len({int(gpu) // plan.model.cluster.gpus_per_domain for gpu in gpus}) == 1:
            return Scope(inside=True)
        rails = tuple(sorted(set(rail_of(plan.model.job, gpus).tolist())))
        stages = tuple(sorted({int(plan.stage_of_rank[rank]) for rank in members}))
        phase = self._phase_of.get(frozenset(members))
        if phase is None:
            neighbours = len(members) == 2 and len(stages) == 2
            if not neighbours or not self._joins:
                raise ScopeError(f"ranks {', '.join(map(str, members[:8]))} are no group of any phase")
            phase = self._joins[0]
        return Scope(False, rails, phase, stages)

    def parts(self, scope: Scope, pair: int | None) -> tuple[int, ...]:
        """The parts that a request of a communicator needs lit. Raises ScopeError."""
        return self._cached(scope, pair)

    def _parts(self, scope: Scope, pair: int | None) -> tuple[int, ...]:
        plan = self.plan
        phase = plan.phases[scope.phase]
        wanted = scope.stages
        if phase.scoping is Scoping.JOIN:
            if pair is not None:
                wanted = (pair - 1, pair)
            elif len(scope.stages) != 2:
                raise ScopeError("a pipeline asks for a pair: a backend id of ten times its later stage")
        scopes = {at for at, stages in enumerate(phase.scopes) if not stages or set(stages) == set(wanted)}
        found = [part.index for part in plan.parts if part.phase == phase.index and part.scope in scopes]
        if not found:
            raise ScopeError(f"phase `{phase.name}` has no circuits between stages {', '.join(map(str, wanted))}")
        if not plan.compatible(found):
            raise ScopeError(f"phase `{phase.name}` takes turns of {phase.step_count}; the protocol names no step")
        return tuple(found)
