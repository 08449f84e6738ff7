"""Target `opus-controller`: `config.yaml` of the published Opus controller (opusfabric/Opus, MIT licence).

    cross-connects:
      '<name>':
        ingress: [p, p, ...]
        egress: [q, q, ...]

The order of the entries is the format. For topology T of rail r with R rails the controller's rail worker takes
entry number 3 + (T - 1) * R + r of the mapping, in Python, where a negative number counts from the end. So a
file has three leading entries, R entries for each topology 1 .. 2^pp - 1, and max(0, R - 3) trailing ones;
topology 0 of rail r is number 3 - R + r: in front for the last three rails, at the end for the others. Entries
that no rail asks for are `unused-<number>` and empty.

Bit i of a topology is stage i, stage 0 the least significant: 1 joins the stage to neighbours whose bit is 1
too, 0 gives it its data-parallel ring. A stage whose bit is 1 while its neighbours' are 0 holds nothing, as the
controller's own comment has it ("dangling"); the simulator's format differs there (`astra_sim.py`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opusc.backends.base import Options, Unreadable
from opusc.backends.columns import column_text
from opusc.backends.ends import ends_of
from opusc.backends.stagewise import StageParts, stage_parts
from opusc.backends.validate import one_to_one
from opusc.diagnostics import Diagnostics
from opusc.model.entities import Matrix, Optics
from opusc.plan.plan import Int32, Plan

__all__ = ["BACKEND", "FILE", "Entry", "OpusController", "size_of"]

FILE = "opus-controller/config.yaml"

_LEADING = 3
_MOST_STAGES = 31  # the controller keeps a topology number in a C int
_HEAD = b"cross-connects:\n"


@dataclass(frozen=True, eq=False)
class Entry:
    """One entry of the mapping, by its number from 0."""

    title: str
    ingress: Int32
    egress: Int32


@dataclass(frozen=True)
class _Lists:
    """Text of the ports of one part on one rail."""

    ingress: bytes
    egress: bytes
    count: int


@dataclass(frozen=True)
class OpusController:
    name: str = "opus-controller"
    summary: str = "cross-connects YAML of the published Opus controller, in the order that it indexes"

    def check(self, plan: Plan, options: Options, sink: Diagnostics) -> None:
        _check_fabric(plan, sink)
        parts = stage_parts(plan, self.name, sink)
        if parts is None:
            return
        rails = len(plan.model.fabric.rails)
        count = _entry_count(parts.stages, rails)
        job = plan.model.job
        if parts.stages > _MOST_STAGES:
            sink.error(
                "OPUS603",
                f"target `{self.name}` has topologies for at most {_MOST_STAGES} pipeline stages; "
                f"the job has {parts.stages}",
                job.parallelism.at("pp"),
                notes=["the controller keeps one bit a stage in a C int"],
                help="leave the target out (`-t plan` enumerates nothing)",
            )
            return
        size = size_of(plan, parts)
        if size > options.max_output:
            sink.error(
                "OPUS603",
                f"{FILE} would hold {count:,} entries in {size:,} bytes, more than {options.max_output:,}",
                job.parallelism.at("pp"),
                notes=[f"2^{parts.stages} topologies, one for each set of joined stages; number of rails: {rails}"],
                help="raise --max-output, or leave the target out (`-t plan` enumerates nothing)",
            )

    def write(self, plan: Plan, options: Options) -> Iterator[tuple[str, Iterable[bytes]]]:
        yield FILE, _text(plan)

    def project(self, plan: Plan) -> Iterator[Entry]:
        """Every entry by its number: what the worker whose rule selects it must find."""
        parts = _parts(plan)
        rails = len(plan.model.fabric.rails)
        rail = ends_of(plan).rail
        count = _entry_count(parts.stages, rails)
        # Topology 0, by the worker's own rule.
        at_rest = {range(count)[_LEADING - rails + r]: r for r in range(rails)}
        for number in range(count):
            if number in at_rest:
                topology, r = 0, at_rest[number]
            elif number < _LEADING:
                yield Entry(f"entry {number}", np.zeros(0, np.int32), np.zeros(0, np.int32))
                continue
            else:
                topology, r = (number - _LEADING) // rails + 1, (number - _LEADING) % rails
            held = [plan.rows(p) for p in _held(parts, topology)]
            rows = np.concatenate([np.zeros(0, np.int64), *(np.arange(s.start, s.stop) for s in held)])
            rows = rows[rail[rows] == r]
            yield _entry(number, plan.circuits.ingress[rows], plan.circuits.egress[rows])

    def read(self, directory: Path) -> Iterator[Entry]:
        with (directory / FILE).open("rb") as file:
            if file.readline() != _HEAD:
                raise Unreadable(f"{FILE}: line 1 is not `cross-connects:`")
            number, names = 0, set()
            while first := file.readline():
                name = first.strip()
                if not (first.startswith(b"  '") and name.endswith(b"':")) or name in names:
                    raise Unreadable(f"{FILE}: line {3 * number + 2} is no name of a new entry")
                names.add(name)
                ingress = _ports(file.readline(), b"    ingress: [", 3 * number + 3)
                egress = _ports(file.readline(), b"    egress: [", 3 * number + 4)
                if len(ingress) != len(egress):
                    raise Unreadable(f"{FILE}: line {3 * number + 4} has another length than the line before")
                yield _entry(number, ingress, egress)
                number += 1

    def faults(self, plan: Plan, statement: object) -> Iterator[str]:
        """One-to-one, and every ingress a position of some switch."""
        assert isinstance(statement, Entry)
        if (twice := one_to_one(statement.ingress, statement.egress)) is not None:
            yield twice
        radix = max(switch.kind.radix for switch in plan.switches)
        if len(statement.ingress) and (statement.ingress.min() < 1 or statement.ingress.max() > radix):
            yield f"an ingress is not in 1..{radix}"

    def note(self, options: Options) -> str:
        return ""


def _check_fabric(plan: Plan, sink: Diagnostics) -> None:
    fabric, nic = plan.model.fabric, plan.model.cluster.rail_nic
    refusals = []
    if plan.switches[0].kind.matrix is not Matrix.CROSSBAR:
        refusals.append((fabric.at("switch"), "an `any` matrix has no ingress and egress side"))
    if nic.optics is not Optics.DUPLEX:
        refusals.append((nic.at("optics"), "bidi optics have no transmit and receive fibre of their own"))
    for what, count in (("planes", fabric.planes), ("blocks", fabric.blocks)):
        if count > 1:
            reason = f"a rail is {count} switches ({what}), and an entry does not say which one it is for"
            refusals.append((fabric.at(what), reason))
    for span, reason in refusals:
        sink.error(
            "OPUS602",
            f"target `opus-controller` cannot say fabric `{fabric.name}`: {reason}",
            span,
            notes=["its controller drives one crossbar a rail: position k sends into ingress k and hears egress N + k"],
            help="leave the target out (`-t plan` states every fabric)",
        )


def _parts(plan: Plan) -> StageParts:
    parts = stage_parts(plan, "opus-controller")
    if parts is None:
        raise ValueError("a plan that `check` refuses")
    return parts


def _entry_count(stages: int, rails: int) -> int:
    return _LEADING + ((1 << stages) - 1) * rails + max(0, rails - _LEADING)


def _held(parts: StageParts, topology: int) -> list[int]:
    """The parts of a topology, stage by stage."""
    bits = tuple(topology >> s & 1 for s in range(parts.stages))
    held = [ring for s, ring in enumerate(parts.ring) if ring is not None and not bits[s]]
    return held + [parts.join[pair] for pair in parts.joined(bits)]


def _entry(number: int, ingress: np.ndarray, egress: np.ndarray) -> Entry:
    """Circuits sorted, since their order inside an entry means nothing."""
    order = np.lexsort((egress, ingress))
    return Entry(f"entry {number}", ingress[order].astype(np.int32), egress[order].astype(np.int32))


# --- writing -------------------------------------------------------------------------------------


def _text(plan: Plan) -> Iterator[bytes]:
    parts = _parts(plan)
    rails = len(plan.model.fabric.rails)
    lists = _lists(plan)
    yield _HEAD
    # The last three rails, or fewer: their topology 0 stands in front.
    for number in range(_LEADING):
        rail = number - _LEADING + rails
        if rail >= 0:
            yield _entry_text(f"0-{rail}", [lists[p][rail] for p in _held(parts, 0)])
        else:
            yield _entry_text(f"unused-{number}", [])
    for topology in range(1, 1 << parts.stages):
        held = _held(parts, topology)
        for rail in range(rails):
            yield _entry_text(f"{topology}-{rail}", [lists[p][rail] for p in held])
    for rail in range(rails - _LEADING):
        yield _entry_text(f"0-{rail}", [lists[p][rail] for p in _held(parts, 0)])


def _entry_text(name: str, lists: list[_Lists]) -> bytes:
    ingress = b", ".join(part.ingress for part in lists if part.count)
    egress = b", ".join(part.egress for part in lists if part.count)
    return b"  '%s':\n    ingress: [%s]\n    egress: [%s]\n" % (name.encode(), ingress, egress)


def _lists(plan: Plan) -> list[list[_Lists]]:
    """The text of every part on every rail."""
    rail, c = ends_of(plan).rail, plan.circuits
    found = []
    for part in plan.parts:
        rows = np.arange(*plan.rows(part.index).indices(len(c)))
        by_rail = []
        for r in range(len(plan.model.fabric.rails)):
            mine = rows[rail[rows] == r]
            texts = (b"".join(column_text(c.ingress[mine])), b"".join(column_text(c.egress[mine])))
            ingress, egress = (text.replace(b",", b", ") for text in texts)
            by_rail.append(_Lists(ingress, egress, len(mine)))
        found.append(by_rail)
    return found


def size_of(plan: Plan, parts: StageParts) -> int:
    """The exact size of the file in bytes, without enumerating topologies."""
    stages, rails = parts.stages, len(plan.model.fabric.rails)
    lists = _lists(plan)
    empty = len(_entry_text("", []))
    named = sum(_digits_below(1 << stages) + ((1 << stages) - 1) * (1 + len(str(r))) for r in range(rails))
    named += sum(len(f"0-{r}") for r in range(rails))
    spare = sum(len(f"unused-{number}") for number in range(max(0, _LEADING - rails)))
    size = len(_HEAD) + _entry_count(stages, rails) * empty + named + spare
    # A ring is held by half of all topologies, a join by a quarter.
    times = {p: 1 << (stages - 1) for p in parts.ring if p is not None}
    times.update(dict.fromkeys(parts.join.values(), 1 << max(stages - 2, 0)))
    for part, count in times.items():
        for text in lists[part]:
            if text.count:
                size += count * (len(text.ingress) + len(text.egress) + 4)  # and a separator in each list
    # The first part of an entry has no separator in front of it.
    for rail in range(rails):
        size -= 4 * ((1 << stages) - _empty_states(parts, {p for p in times if lists[p][rail].count}))
    return size


def _digits_below(bound: int) -> int:
    """Digits of all the numbers 1 .. bound - 1 together."""
    return sum(bound - 10**k for k in range(len(str(bound))) if 10**k < bound)


def _empty_states(parts: StageParts, present: set[int]) -> int:
    """How many topologies hold none of the parts `present`: strings of bits, counted stage by stage."""

    def allowed(stage: int, bit: int) -> bool:
        return bit == 1 or parts.ring[stage] not in present

    def joins(a: int, b: int) -> bool:
        return parts.join.get((a, b)) in present

    total = 0
    last = parts.stages - 1
    for first in (0, 1):
        ways = [0, 0]
        ways[first] = int(allowed(0, first))
        for stage in range(1, parts.stages):
            zero = sum(ways) if allowed(stage, 0) else 0
            one = ways[0] + (0 if joins(stage - 1, stage) else ways[1])
            ways = [zero, one]
        total += ways[0] + (0 if last > 0 and first == 1 and joins(last, 0) else ways[1])
    return total


# --- reading -------------------------------------------------------------------------------------


def _ports(line: bytes, head: bytes, number: int) -> Int32:
    body = line[len(head) : -2]
    items = body.split(b", ") if body else []
    if not (line.startswith(head) and line.endswith(b"]\n") and all(item.isdigit() for item in items)):
        raise Unreadable(f"{FILE}: line {number} is not `{head.decode().strip()}...]`")
    return np.array(items, dtype=np.int32) if items else np.zeros(0, np.int32)


BACKEND = OpusController()
