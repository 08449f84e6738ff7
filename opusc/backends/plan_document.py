"""The plan as one JSON document: what `plan.json` holds, section by section. Its schema is `plan.schema.json`."""

import hashlib
from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from opusc.backends.canonical import Value
from opusc.model.entities import CablingKind, Entity, Nic
from opusc.plan.neighbours import Advance, Neighbour, Rotation, Round
from opusc.plan.plan import Instances, Link, Plan, PlannedPhase, Shape, Switch
from opusc.plan.ranks import grid_of, groups
from opusc.plan.transitions import dark_time
from opusc.version import __version__

__all__ = ["SCHEMA", "VERSION", "document", "transition_counts"]

VERSION = 1
SCHEMA = f"urn:opusc:schema:plan:{VERSION}"

_UNITS = {
    "bandwidth": "bit/s, one direction",
    "gpu": "number in the cluster, node by node, from 0",
    "port": "switch port from 1; on a crossbar of radix N position k is ingress k and egress N + k",
    "rank": "from 0",
    "time": "ps",
}

_RULES = {
    CablingKind.IN_ORDER: "node by node, GPU by GPU, port by port, from position 1; a blocked position gives way to "
    "the next free one after all others",
    CablingKind.SHARE: "as in order, each rail in its own positions of one chassis",
    CablingKind.LISTED: "as stated cable by cable",
}


def document(plan: Plan) -> Mapping[str, Value]:
    """Everything the plan says. Columns stay arrays; no configuration is enumerated."""
    return {
        "$schema": SCHEMA,
        "format": "opusc-plan",
        "version": VERSION,
        "opusc": __version__,
        "units": _UNITS,
        "job": _job(plan),
        "cluster": _cluster(plan),
        "fabric": _fabric(plan),
        "switches": [_switch(switch) for switch in plan.switches],
        "cabling": _cabling(plan),
        "ranks": {"gpu": plan.gpu_of_rank, "stage": plan.stage_of_rank},
        "phases": [_phase(plan, phase) for phase in plan.phases],
        "parts": _parts(plan),
        "circuits": _circuits(plan),
        "exclusions": {"a": plan.exclusions[:, 0], "b": plan.exclusions[:, 1]},
        "transitions": transition_counts(plan),
        "relays": {name: getattr(plan.relays, name) for name in ("part", "rank", "peer", "via")},
        "requirements": [
            {"text": r.text, "checked": r.checked, "needs": list(r.needs), "place": _place(r)}
            for r in plan.model.requirements
        ],
        "assumptions": list(plan.assumptions),
        "provenance": _provenance(plan),
    }


def _place(entity: Entity) -> str:
    """`file:line`."""
    return f"{entity.span.source.name}:{entity.span.line}"


def _job(plan: Plan) -> Mapping[str, Value]:
    job, p = plan.model.job, plan.model.job.parallelism
    return {
        "name": job.name,
        "dialect": None if job.dialect is None else str(job.dialect),
        "order": list(job.order),
        "parallelism": {
            "tp": p.tp,
            "cp": p.cp,
            "dp": p.dp,
            "pp": p.pp,
            "ep": p.ep,
            "dp_replicate": p.dp_replicate,
            "dp_shard": p.dp_shard,
            "expert_tp": p.expert_tp,
        },
        "pipeline": {"kind": str(job.pipeline.kind), "chunks": job.pipeline.chunks},
        "relay_allowed": job.relay_allowed,
        "schedule": list(job.schedule),
        "world": plan.world,
    }


def _cluster(plan: Plan) -> Mapping[str, Value]:
    cluster = plan.model.cluster
    return {
        "name": cluster.name,
        "node_count": cluster.node_count,
        "gpus_per_node": cluster.gpus_per_node,
        "gpus_per_domain": cluster.gpus_per_domain,
        "use": cluster.use,
        "gpu": None if cluster.gpu is None else cluster.gpu.name,
        "scale_up": cluster.scale_up,
        "nics": [_nic(nic) for nic in cluster.nics],
    }


def _nic(nic: Nic) -> Mapping[str, Value]:
    return {
        "role": nic.role,
        "ports": nic.ports,
        "rate": nic.rate,
        "optics": str(nic.optics),
        "peers": str(nic.peers),
        "per_node": nic.per_node,
        "on_rail": nic.on_rail,
    }


def _fabric(plan: Plan) -> Mapping[str, Value]:
    fabric = plan.model.fabric
    return {
        "name": fabric.name,
        "rail_by": str(fabric.rail_by),
        "rail_count": len(fabric.rails),
        "planes": fabric.planes,
        "blocks": fabric.blocks,
    }


def _switch(switch: Switch) -> Mapping[str, Value]:
    kind = switch.kind
    return {
        "name": switch.name,
        "kind": kind.name,
        "matrix": str(kind.matrix),
        "radix": kind.radix,
        "rails": list(switch.rails),
        "plane": switch.plane,
        "block": switch.block,
        "positions_used": switch.positions_used,
        "blocked": list(kind.blocked),
        "settle": kind.settle,
        "relock": kind.relock,
        "control": kind.control,
        "dark": dark_time(kind),
        "driver": kind.driver,
        "address": kind.address,
    }


def _cabling(plan: Plan) -> Mapping[str, Value]:
    cabling, kind = plan.cabling, plan.model.fabric.cabling.kind
    return {
        "kind": str(kind),
        "rule": _RULES[kind],
        "regular": cabling.regular,
        "ports": [
            {name: np.ascontiguousarray(getattr(cabling, name)[:, p]) for name in ("switch", "ingress", "egress")}
            for p in range(cabling.ports)
        ],
    }


def _phase(plan: Plan, phase: PlannedPhase) -> Mapping[str, Value]:
    spec = phase.spec
    ranks = groups(grid_of(plan.model.job, spec.axes), spec.axes)
    return {
        "name": phase.name,
        "axes": list(spec.axes),
        "topology": spec.topology.name,
        "dims": None if spec.topology.dims is None else list(spec.topology.dims),
        "traffic": str(spec.traffic),
        "hold": spec.hold,
        "stated": spec.stated,
        "place": _place(spec),
        "scoping": str(phase.scoping),
        "scopes": [list(stages) for stages in phase.scopes],
        "step_count": phase.step_count,
        "groups": {"size": int(ranks.shape[1]), "ranks": ranks.ravel()},
        "instances": [_instances(instances) for instances in phase.instances],
        "routes": [{"n": r.n, "source": r.source, "target": r.target, "via": r.via} for r in phase.routes],
    }


def _instances(instances: Instances) -> Mapping[str, Value]:
    return {
        **_shape(instances.shape),
        "group": instances.group,
        "exits": instances.exits.ravel(),
        "entries": instances.entries.ravel(),
        "scope": instances.scope.ravel(),
    }


def _shape(shape: Shape) -> Mapping[str, Value]:
    return {
        "n": shape.n,
        "copies": shape.copies,
        "fewest_steps": shape.fewest_steps,
        "steps": [[_link(link) for link in links] for links in shape.steps],
    }


def _link(link: Link) -> Mapping[str, Value]:
    return {
        "neighbour": _neighbour(link.neighbour),
        "out_port": link.out_port,
        "in_port": link.in_port,
        "directions": str(link.directions),
        "copy": link.copy,
    }


def _neighbour(neighbour: Neighbour) -> Mapping[str, Value]:
    digit = {"stride": neighbour.digit.stride, "size": neighbour.digit.size}
    match neighbour:
        case Rotation():
            return {"kind": "rotation", **digit, "by": neighbour.by}
        case Advance():
            return {"kind": "advance", **digit, "wrap": neighbour.wrap, "edges": neighbour.edges}
        case Round():
            return {"kind": "round", **digit, "number": neighbour.number}
        case _:
            return {"kind": "table", **digit, "to": np.array(neighbour.to, dtype=np.int32)}


def _parts(plan: Plan) -> list[Value]:
    counts = np.diff(plan.circuits.start).tolist()
    return [
        {
            "name": part.name,
            "phase": part.phase,
            "step": part.step,
            "stages": list(plan.phases[part.phase].scopes[part.scope]),
            "circuits": counts[part.index],
        }
        for part in plan.parts
    ]


def _circuits(plan: Plan) -> list[Value]:
    """One entry for each part and switch: what a controller of that switch loads for the part."""
    c = plan.circuits
    changes = np.flatnonzero((np.diff(c.part) != 0) | (np.diff(c.switch) != 0)) + 1
    bounds = [0, *changes.tolist(), len(c)]
    return [
        {
            "part": int(c.part[begin]),
            "switch": int(c.switch[begin]),
            "ingress": c.ingress[begin:end],
            "egress": c.egress[begin:end],
        }
        for begin, end in pairwise(bounds)
        if end > begin
    ]


def transition_counts(plan: Plan) -> Mapping[str, Value]:
    """Columns: for each ordered pair of parts that exclude each other, the circuits to take down, to set and to keep.

    The circuits themselves follow from the two parts: those of `before` that `after` has not, and the reverse.
    """
    size = np.diff(plan.circuits.start)
    pairs = plan.exclusions.astype(np.int64)
    kept = _shared(plan, pairs)
    before, after = np.r_[pairs[:, 0], pairs[:, 1]], np.r_[pairs[:, 1], pairs[:, 0]]
    both = np.r_[kept, kept]
    order = np.lexsort((after, before))
    columns = {
        "before": before,
        "after": after,
        "disconnect": size[before] - both,
        "connect": size[after] - both,
        "kept": both,
    }
    return {name: column[order] for name, column in columns.items()}


def _shared(plan: Plan, pairs: np.ndarray) -> np.ndarray:
    """How many circuits the two parts of each pair have in common."""
    c = plan.circuits
    key = (c.switch.astype(np.int64) << 40) | (c.ingress.astype(np.int64) << 20) | c.egress
    order = np.lexsort((c.part, key))
    key, part = key[order], c.part[order].astype(np.int64)
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, np.int64)
    length = np.diff(np.r_[first, len(key)])
    count = len(plan.parts)
    wanted = pairs[:, 0] * count + pairs[:, 1]
    kept = np.zeros(len(pairs), dtype=np.int64)
    for size in np.unique(length[length > 1]).tolist():
        rows = part[first[length == size][:, None] + np.arange(size)[None, :]]
        for i in range(size):
            for j in range(i + 1, size):
                found, times = np.unique(rows[:, i] * count + rows[:, j], return_counts=True)
                at = np.searchsorted(wanted, found)
                known = (at < len(wanted)) & (wanted[np.minimum(at, len(wanted) - 1)] == found)
                kept[at[known]] += times[known]
    return kept


def _provenance(plan: Plan) -> Mapping[str, Value]:
    model = plan.model
    return {
        "parameters": dict(model.parameters),
        "sources": [
            {"name": s.name, "sha256": hashlib.sha256(s.text.encode("utf-8", "surrogatepass")).hexdigest()}
            for s in sorted(model.sources, key=lambda source: source.name)
        ],
        "places": {"job": _place(model.job), "fabric": _place(model.fabric), "cluster": _place(model.cluster)},
    }
