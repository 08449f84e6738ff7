"""Target `plan`: the whole plan as canonical JSON, columnar, with a schema.

`load` gives the document of a `plan.json`; `read_circuits` puts its circuits back into the columns of
`opusc.plan.plan.Circuits`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opusc.backends import canonical
from opusc.backends.base import Options, Unreadable
from opusc.backends.plan_document import SCHEMA, VERSION, document, transition_counts
from opusc.backends.validate import one_to_one
from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Circuits, Int32, Plan

__all__ = ["BACKEND", "FILE", "PartRows", "PlanBackend", "Table", "load", "read_circuits"]

FILE = "plan.json"


@dataclass(frozen=True, eq=False)
class Table:
    """A section of the document: columns and plain values by name."""

    title: str
    values: Mapping[str, object]


@dataclass(frozen=True, eq=False)
class PartRows:
    """The circuits of a part."""

    title: str
    phase: str
    stages: tuple[int, ...]
    step: int
    switch: Int32
    ingress: Int32
    egress: Int32


def load(path: Path) -> Mapping[str, canonical.Value]:
    """The document of a file that this backend wrote; columns are arrays. Raises Unreadable."""
    try:
        found = canonical.load(path)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{path.name}: {error}") from error
    if not isinstance(found, dict) or found.get("$schema") != SCHEMA:
        raise Unreadable(f"{path.name} is not a plan of version {VERSION}")
    return found


def read_circuits(found: Mapping[str, canonical.Value]) -> Circuits:
    """The columns of all circuits of a document, in the plan's order."""
    blocks = found["circuits"]
    lengths = np.array([len(block["ingress"]) for block in blocks], dtype=np.int64)
    part = np.repeat(np.array([block["part"] for block in blocks], dtype=np.int32), lengths)
    switch = np.repeat(np.array([block["switch"] for block in blocks], dtype=np.int32), lengths)
    ingress, egress = (_joined([block[name] for block in blocks]) for name in ("ingress", "egress"))
    start = np.searchsorted(part, np.arange(len(found["parts"]) + 1)).astype(np.int64)
    return Circuits(part, switch, ingress, egress, start)


def _joined(columns: list[np.ndarray]) -> Int32:
    return np.concatenate([np.zeros(0, np.int32), *columns]).astype(np.int32)


@dataclass(frozen=True)
class PlanBackend:
    name: str = "plan"
    summary: str = "the whole plan as canonical JSON with a schema: parts, circuits per switch, exclusions, transitions"

    def check(self, plan: Plan, options: Options, sink: Diagnostics) -> None:
        """Every plan can be said; only its size may be too much."""
        least = 4 * len(plan.circuits)  # two numbers and their commas
        if least > options.max_output:
            sink.error(
                "OPUS603",
                f"plan.json would hold {len(plan.circuits):,} circuits, more than {options.max_output:,} bytes",
                plan.model.job.span,
                help="raise --max-output",
            )

    def write(self, plan: Plan, options: Options) -> Iterator[tuple[str, Iterable[bytes]]]:
        yield FILE, canonical.dump(document(plan))

    def project(self, plan: Plan) -> Iterator[object]:
        """Straight from the plan's arrays, not from the document that is written."""
        cabling, relays = plan.cabling, plan.relays
        yield Table("ranks", {"gpu": plan.gpu_of_rank, "stage": plan.stage_of_rank})
        yield Table("switches", {s.name: (s.kind.radix, str(s.kind.matrix), s.rails) for s in plan.switches})
        yield Table("cabling", {"switch": cabling.switch, "ingress": cabling.ingress, "egress": cabling.egress})
        yield Table("phases", {p.name: (p.spec.axes, str(p.scoping), p.scopes, p.step_count) for p in plan.phases})
        yield Table("exclusions", {"pairs": plan.exclusions})
        yield Table("transitions", transition_counts(plan))
        yield Table("relays", {name: getattr(relays, name) for name in ("part", "rank", "peer", "via")})
        for part in plan.parts:
            phase, rows, c = plan.phases[part.phase], plan.rows(part.index), plan.circuits
            scope = phase.scopes[part.scope]
            yield PartRows(part.name, phase.name, scope, part.step, c.switch[rows], c.ingress[rows], c.egress[rows])

    def read(self, directory: Path) -> Iterator[object]:
        found = load(directory / FILE)
        try:
            yield from _statements(found)
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise Unreadable(f"{FILE}: {type(error).__name__}: {error}") from error

    def faults(self, plan: Plan, statement: object) -> Iterator[str]:
        """Each part is one-to-one and inside its switches."""
        if not isinstance(statement, PartRows):
            return
        s = statement
        if (twice := one_to_one(s.ingress, s.egress, s.switch)) is not None:
            yield twice
        ports = np.array([2 * switch.kind.radix for switch in plan.switches])
        if len(s.switch) and (min(s.ingress.min(), s.egress.min()) < 1 or (s.egress > ports[s.switch]).any()):
            yield "a port is outside its switch"

    def note(self, options: Options) -> str:
        return ""


def _statements(found: Mapping[str, canonical.Value]) -> Iterator[object]:
    ranks, relays, ports = found["ranks"], found["relays"], found["cabling"]["ports"]
    yield Table("ranks", {"gpu": ranks["gpu"], "stage": ranks["stage"]})
    yield Table("switches", {s["name"]: (s["radix"], s["matrix"], _whole(s["rails"])) for s in found["switches"]})
    yield Table("cabling", {n: np.stack([port[n] for port in ports], axis=1) for n in ("switch", "ingress", "egress")})
    yield Table(
        "phases",
        {
            p["name"]: (tuple(p["axes"]), p["scoping"], tuple(map(_whole, p["scopes"])), p["step_count"])
            for p in found["phases"]
        },
    )
    exclusions = found["exclusions"]
    yield Table("exclusions", {"pairs": np.stack([exclusions["a"], exclusions["b"]], axis=1)})
    yield Table("transitions", found["transitions"])
    yield Table("relays", {name: relays[name] for name in ("part", "rank", "peer", "via")})
    circuits = read_circuits(found)
    for index, part in enumerate(found["parts"]):
        rows = slice(int(circuits.start[index]), int(circuits.start[index + 1]))
        phase = found["phases"][part["phase"]]["name"]
        switch, ingress, egress = circuits.switch[rows], circuits.ingress[rows], circuits.egress[rows]
        yield PartRows(part["name"], phase, _whole(part["stages"]), part["step"], switch, ingress, egress)


def _whole(column: np.ndarray) -> tuple[int, ...]:
    return tuple(column.tolist())


BACKEND = PlanBackend()
