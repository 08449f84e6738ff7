"""The rest of a run directory of the reconfigurable simulator, beside matrices and network: who sends what to whom.

    astra-sim/workload.json          communicators: members in ring order, numbered from 1
    astra-sim/workload.<rank>.et     Chakra trace of each rank
    astra-sim/rank_comm_groups.yaml  early requests, for the provisioned mode
    astra-sim/system.json, remote_memory.json, run.sh

Traces, requests and the script are there when the job's operations are known (`opusc simulate` demands the same).
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

from opusc.backends import chakra
from opusc.backends.astra_files import (
    MEMORY,
    Document,
    Groups,
    Requests,
    groups_text,
    json_text,
    read_groups,
    read_json,
    read_requests,
    requests_text,
    run_script,
    system,
)
from opusc.backends.astra_run import Run
from opusc.backends.astra_traces import Writer, nodes, trace
from opusc.backends.base import Unreadable
from opusc.plan.plan import Plan

__all__ = ["BINARY", "project", "read", "write"]

BINARY = "AstraSim_Analytical_Reconfigurable"

_FOLDER = "astra-sim"
_GROUPS, _SYSTEM, _MEMORY, _REQUESTS, _RUN = (
    "workload.json",
    "system.json",
    "remote_memory.json",
    "rank_comm_groups.yaml",
    "run.sh",
)


def write(plan: Plan, run: Run) -> Iterator[tuple[str, Iterable[bytes]]]:
    """The files, trace by trace."""
    yield f"{_FOLDER}/{_GROUPS}", groups_text(run.communicators.members)
    yield f"{_FOLDER}/{_SYSTEM}", [json_text(system(plan, 1))]
    yield f"{_FOLDER}/{_MEMORY}", [json_text(MEMORY)]
    if run.steps is None:
        return
    yield f"{_FOLDER}/{_REQUESTS}", requests_text(run.requests(plan.world))
    yield f"{_FOLDER}/{_RUN}", [_script(plan)]
    per_stage = plan.world // len(run.steps)
    for stage, steps in enumerate(run.steps):
        writer = Writer(steps, run.communicators)
        for rank in range(stage * per_stage, (stage + 1) * per_stage):
            yield f"{_FOLDER}/workload.{rank}.et", writer.file(rank)


def project(plan: Plan, run: Run) -> Iterator[object]:
    """What the files say, in their order."""
    yield Groups(_GROUPS, dict(enumerate(run.communicators.members, 1)))
    yield Document(_SYSTEM, {name: _plain(value) for name, value in system(plan, 1).items()})
    yield Document(_MEMORY, dict(MEMORY))
    if run.steps is None:
        return
    wanted = run.requests(plan.world)
    ranks = {rank: {what: tuple(after) for what, after in own.items()} for rank, own in wanted.items() if own}
    yield Requests(_REQUESTS, ranks)
    yield Document(_RUN, {"text": _script(plan).decode()})
    per_stage = plan.world // len(run.steps)
    known: dict[chakra.Node, str] = {}
    for rank in range(plan.world):
        found = nodes(run.steps[rank // per_stage], rank, run.communicators)
        yield trace(f"workload.{rank}.et", rank, found, known)


def read(directory: Path, world: int) -> Iterator[object]:
    """The same, from the files alone. Raises Unreadable."""
    folder = directory / _FOLDER
    yield read_groups(folder / _GROUPS)
    yield read_json(folder / _SYSTEM)
    yield read_json(folder / _MEMORY)
    if not (folder / _RUN).exists():
        return
    yield read_requests(folder / _REQUESTS)
    yield Document(_RUN, {"text": (folder / _RUN).read_text(encoding="utf-8")})
    messages: dict[bytes, chakra.Node] = {}
    known: dict[chakra.Node, str] = {}
    for rank in range(world):
        path = folder / f"workload.{rank}.et"
        try:
            data = path.read_bytes()
        except OSError as error:
            raise Unreadable(f"{path.name}: {error.strerror}") from error
        yield trace(path.name, rank, chakra.read(data, path.name, messages), known)


def _plain(value: object) -> object:
    """A whole number is written, and read, without a point."""
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def _script(plan: Plan) -> bytes:
    job = plan.model.job
    about = [
        f"{job.name} on {job.fabric.name}: {plan.world:,} ranks. Circuits change on demand; for early requests add",
        f"  --provision-config={_REQUESTS}",
    ]
    options = [
        ("workload-configuration", "workload"),
        ("comm-group-configuration", _GROUPS),
        ("system-configuration", _SYSTEM),
        ("network-configuration", "network.yml"),
        ("remote-memory-configuration", _MEMORY),
        ("circuit-schedules", "schedules.txt"),
    ]
    return run_script(about, options, plan.world, BINARY)
