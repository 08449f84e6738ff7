"""Plans for the tests of the backends, golden files, and faults put into written files."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opusc.backends.astra_matrices import GB
from opusc.backends.base import Backend, Options
from opusc.backends.validate import validate
from opusc.diagnostics import Diagnostics
from opusc.model.entities import CablingKind, CablingSpec, Dialect, Matrix, Optics, Peers, RailBy, Traffic
from opusc.output import inside
from opusc.plan.plan import Plan
from tests.support import HERE, make_plan, phase

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("OPUSC_UPDATE_GOLDEN") == "1"

#: Both rails of the published bench in one 32 x 32 chassis.
BENCH = CablingSpec(kind=CablingKind.SHARE, share=((0, tuple(range(1, 9))), (1, tuple(range(25, 33)))), span=HERE)
QUICKSTART: dict[str, Any] = {"nodes": 4, "gpus": 2, "tp": 2, "dp": 2, "pp": 2, "radix": 32, "cabling": BENCH}
RAILS: dict[str, Any] = {"nodes": 16, "gpus": 8, "tp": 8, "dp": 4, "pp": 4, "radix": 192, "rate": 50 * GB}

#: Everything the planner can make, small.
PLANS: dict[str, dict[str, Any]] = {
    "quickstart": QUICKSTART,
    "rails": RAILS,
    "one stage": {"nodes": 3, "gpus": 2, "tp": 2, "dp": 3},
    "one port": {"nodes": 8, "gpus": 4, "tp": 4, "dp": 2, "pp": 4, "ports": 1},
    "collapsed": {"nodes": 4, "gpus": 8, "tp": 2, "dp": 8, "pp": 2},
    "relays": {"nodes": 4, "gpus": 4, "dp": 2, "pp": 8, "order": ("tp", "cp", "ep", "pp", "dp")},
    "context": {"nodes": 16, "gpus": 2, "tp": 2, "cp": 2, "dp": 4, "pp": 2},
    "bidi": {"nodes": 6, "gpus": 1, "dp": 3, "pp": 2, "optics": Optics.BIDI},
    "any bidi": {"nodes": 6, "gpus": 1, "dp": 3, "pp": 2, "optics": Optics.BIDI, "matrix": Matrix.ANY},
    "any duplex": {"nodes": 6, "gpus": 1, "dp": 3, "pp": 2, "matrix": Matrix.ANY},
    "independent": {"nodes": 6, "gpus": 1, "dp": 3, "pp": 2, "peers": Peers.INDEPENDENT},
    "racks": {
        "nodes": 12,
        "gpus": 4,
        "domain": 12,
        "tp": 12,
        "dp": 4,
        "ports": 1,
        "peers": Peers.INDEPENDENT,
        "rail_by": RailBy.DOMAIN_RANK,
    },
    "rotor": {
        "nodes": 7,
        "gpus": 1,
        "dp": 7,
        "ports": 2,
        "peers": Peers.INDEPENDENT,
        "phases": (phase("all", ("dp",), "rotor", Traffic.ALL_TO_ALL),),
    },
    "butterfly": {
        "nodes": 8,
        "gpus": 2,
        "tp": 2,
        "dp": 8,
        "ep": 8,
        "expert_tp": 2,
        "ports": 4,
        "planes": 4,
        "dialect": Dialect.MEGATRON,
        "phases": (phase("ep", ("ep",), "flattened_butterfly", Traffic.ALL_TO_ALL, dims=(2, 4)),),
    },
    "interleaved": {
        "nodes": 8,
        "gpus": 1,
        "dp": 2,
        "pp": 4,
        "phases": (phase("dp", ("dp",), "ring"), phase("pp", ("pp",), "ring", Traffic.POINT_TO_POINT)),
    },
}


def timed(plan: Plan, *, settle: int = 10**10, scale_up: int | None = 450 * GB) -> Plan:
    """The plan with the numbers that the simulator needs."""
    model = plan.model
    cluster = dataclasses.replace(model.cluster, scale_up=scale_up)
    fabric = dataclasses.replace(model.fabric, cluster=cluster)
    job = dataclasses.replace(model.job, fabric=fabric)
    switches = tuple(
        dataclasses.replace(s, kind=dataclasses.replace(s.kind, settle=settle, relock=0)) for s in plan.switches
    )
    return dataclasses.replace(plan, model=dataclasses.replace(model, job=job), switches=switches)


def plan_of(name: str) -> Plan:
    return make_plan(**PLANS[name])


def refusals(backend: Backend, plan: Plan, **options: Any) -> list[tuple[str, str]]:
    sink = Diagnostics()
    backend.check(plan, Options(**options), sink)
    return [(d.code, d.message) for d in sink]


def write(backend: Backend, plan: Plan, directory: Path, **options: Any) -> list[str]:
    """Write the files; returns their names."""
    names = []
    for name, chunks in backend.write(plan, Options(**options)):
        inside(directory, name).write_bytes(b"".join(chunks))
        names.append(name)
    return names


def read_back(backend: Backend, plan: Plan, directory: Path) -> list[str]:
    """What validation has to say about the files in a directory."""
    sink = Diagnostics()
    validate(backend, plan, directory, sink)
    assert all(d.code == "OPUS903" for d in sink)
    return [d.message for d in sink]


def objection(backend: Backend, plan: Plan, directory: Path, name: str, fault: Callable[[str], str]) -> str:
    """What validation says once a fault is in a written file; fails when it says nothing, or the fault does nothing."""
    write(backend, plan, directory, svg=False)
    assert read_back(backend, plan, directory) == []
    path = directory / name
    before = path.read_text()
    path.write_text(fault(before))
    assert path.read_text() != before, "the fault changed nothing"
    [message] = read_back(backend, plan, directory)
    return message


def same_as_golden(name: str, found: bytes) -> None:
    """Compare with a golden file; OPUSC_UPDATE_GOLDEN=1 writes it instead."""
    path = GOLDEN / name
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(found)
    assert found.decode() == path.read_text(encoding="utf-8"), f"{name} changed; OPUSC_UPDATE_GOLDEN=1 accepts it"
