"""Findings: what a check has against a plan, before it is put into the author's words."""

from dataclasses import dataclass

from opusc.plan.plan import Plan

__all__ = [
    "CLASH",
    "EXCLUSION",
    "FORMULA",
    "PORT",
    "REALISATION",
    "TRANSITION",
    "UNDECIDED",
    "Finding",
    "gpu_name",
    "rank_text",
]

CLASH = "OPUS501"  # one switch port, two circuits
PORT = "OPUS502"  # a port that does not exist, is on the wrong side, blocked, or cabled otherwise
REALISATION = "OPUS503"  # circuits, relays or routes that are not what the phase asks for
EXCLUSION = "OPUS504"  # parts that share a port are not declared exclusive, or the reverse
FORMULA = "OPUS505"  # a formula that the plan is made from is refuted
TRANSITION = "OPUS506"  # a change of configuration that is out of order or touches too much
UNDECIDED = "OPUS507"  # the solver gave no answer


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. `text` stands alone; `circuits` are rows of the plan, the culprits first."""

    code: str
    text: str
    part: int = -1
    phase: int = -1
    circuits: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def gpu_name(plan: Plan, gpu: int) -> str:
    per_node = plan.model.cluster.gpus_per_node
    return f"GPU {gpu % per_node} of node {gpu // per_node}"


def rank_text(plan: Plan, gpu: int) -> str:
    """`rank 5`, or the GPU's place where the job has no rank on it."""
    ranks = plan.rank_of_gpu
    if 0 <= gpu < len(ranks) and ranks[gpu] >= 0:
        return f"rank {ranks[gpu]}"
    return gpu_name(plan, gpu)
