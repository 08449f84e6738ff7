"""What the page of a report knows of a plan: plain values, columns where there are many."""

from typing import Any

import numpy as np

from opusc.backends.ends import ends_of
from opusc.model.entities import Matrix, Optics
from opusc.plan.plan import Plan

__all__ = ["CIRCUITS", "data_of"]

#: Circuits that a page holds: five megabytes are fifteen times as many bytes each. Further rails are left out.
CIRCUITS = 60_000


def data_of(plan: Plan) -> dict[str, Any]:
    """The fabric, the ranks, the parts, and the circuits of as many rails as a page can hold."""
    cluster = plan.model.cluster
    two_way = cluster.rail_nic.optics is Optics.BIDI or plan.switches[0].kind.matrix is Matrix.ANY
    return {
        "nodes": cluster.node_count,
        "per_node": cluster.gpus_per_node,
        "ports": cluster.rail_nic.ports,
        "stages": plan.model.job.parallelism.pp,
        "rail_count": len(plan.model.fabric.rails),
        "one_way": not two_way,
        "rank_of_gpu": plan.rank_of_gpu.tolist(),
        "stage_of_rank": plan.stage_of_rank.tolist(),
        "switch_names": [switch.name for switch in plan.switches],
        "part_names": [part.name for part in plan.parts],
        "phases": [
            {
                "index": phase.index,
                "name": phase.name,
                "parts": [
                    {"index": part.index, "name": part.name} for part in plan.parts if part.phase == phase.index
                ],
            }
            for phase in plan.phases
        ],
        "circuits": _circuits(plan),
    }


def _circuits(plan: Plan) -> dict[str, list[int]]:
    c, ends = plan.circuits, ends_of(plan)
    rails = _rails(ends.rail)
    rows = np.flatnonzero(np.isin(ends.rail, rails))
    ports = plan.model.cluster.rail_nic.ports
    columns = {
        "part": c.part,
        "switch": c.switch,
        "ingress": c.ingress,
        "egress": c.egress,
        "rail": ends.rail,
        "from": ends.sender.astype(np.int64) * ports + ends.sender_port,
        "to": ends.receiver.astype(np.int64) * ports + ends.receiver_port,
    }
    return {"rails": rails} | {name: column[rows].tolist() for name, column in columns.items()}


def _rails(of_circuits: np.ndarray) -> list[int]:
    """The first rails, as long as their circuits fit; one at least."""
    counted = np.bincount(of_circuits) if len(of_circuits) else np.zeros(0, np.int64)
    found: list[int] = []
    total = 0
    for rail in np.flatnonzero(counted).tolist():
        total += int(counted[rail])
        if found and total > CIRCUITS:
            break
        found.append(rail)
    return found
