"""Circuit schedules of the published reconfigurable simulator: one N x N matrix of rates for each set of stage bits.

Rows are mostly zeros, so a row is cut from a template of zeros around its few numbers, and the rows of a stage
are kept for all configurations in which the stage has the same neighbours.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from opusc.backends.base import Unreadable
from opusc.backends.ends import ends_of
from opusc.backends.stagewise import StageParts
from opusc.model.entities import Optics
from opusc.plan.plan import Int32, Plan
from opusc.plan.ranks import dense_grid, groups

__all__ = ["GB", "Edges", "Schedule", "State", "decimal_text", "project", "read", "schedule", "size", "write"]

#: The simulator's "GB/s" in bit/s: 2^30 bytes per second (published artifact, network library).
GB = 8 << 30

_KEPT = 64 << 20  # bytes of rows kept for reuse
_ROWS = 64  # rows of a chunk


@dataclass(frozen=True, eq=False)
class Edges:
    """Directed links between ranks, sorted by source and target, no pair twice."""

    source: Int32
    target: Int32
    rate: np.ndarray  # bit/s, int64


@dataclass(frozen=True)
class Schedule:
    """What the matrices are made of: scale-up links in all, rings by stage, joins by pair of stages (lower first)."""

    ranks: int
    stages: int
    scale_up: Edges
    ring: tuple[Edges, ...]
    join: Mapping[tuple[int, int], Edges]

    def bits(self, number: int) -> tuple[int, ...]:
        """The bit of each stage; stage 0 is the most significant one of a configuration's number."""
        return tuple(number >> (self.stages - 1 - s) & 1 for s in range(self.stages))

    def neighbours(self, stage: int, bits: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """The joins that a stage has in a configuration."""
        if not bits[stage]:
            return ()
        return tuple(pair for pair in self.join if stage in pair and bits[pair[0]] and bits[pair[1]])


@dataclass(frozen=True, eq=False)
class State:
    """One configuration: who has a direct link to whom."""

    title: str
    number: int
    source: Int32
    target: Int32
    rate: np.ndarray  # bit/s, int64


def schedule(plan: Plan, parts: StageParts) -> Schedule:
    """The links between ranks, from circuits (times the port's rate) and tensor groups (at the scale-up rate)."""
    ends, world = ends_of(plan), plan.world
    sender, receiver = plan.rank_of_gpu[ends.sender], plan.rank_of_gpu[ends.receiver]
    nic, cluster = plan.model.cluster.rail_nic, plan.model.cluster

    def edges(chosen: Iterable[int]) -> Edges:
        rows = np.concatenate([np.zeros(0, np.int64), *(np.r_[plan.rows(p)] for p in chosen)])
        a, b = sender[rows].astype(np.int64), receiver[rows].astype(np.int64)
        if nic.optics is Optics.BIDI:
            a, b = np.r_[a, b], np.r_[b, a]
        pair, count = np.unique(a * world + b, return_counts=True)
        return Edges((pair // world).astype(np.int32), (pair % world).astype(np.int32), count * np.int64(nic.rate))

    joins: dict[tuple[int, int], list[int]] = {}
    for (a, b), part in parts.join.items():
        joins.setdefault((min(a, b), max(a, b)), []).append(part)
    return Schedule(
        ranks=world,
        stages=parts.stages,
        scale_up=_scale_up(plan, cluster.scale_up or 0),
        ring=tuple(edges([] if part is None else [part]) for part in parts.ring),
        join={pair: edges(found) for pair, found in sorted(joins.items())},
    )


def _scale_up(plan: Plan, rate: int) -> Edges:
    """All pairs of ranks in one tensor group."""
    members = groups(dense_grid(plan.model.job), ("tp",))
    size = members.shape[1]
    one, other = np.nonzero(~np.eye(size, dtype=np.bool_))
    source, target = members[:, one].ravel(), members[:, other].ravel()
    order = np.lexsort((target, source))
    return Edges(source[order], target[order], np.full(len(source), rate, dtype=np.int64))


def decimal_text(value: Fraction) -> str:
    """The exact decimal text of a number whose denominator has no prime factors but 2 and 5."""
    places, rest = 0, value.denominator
    while rest != 1:
        if rest % 2 and rest % 5:
            raise ValueError(f"{value} has no finite decimal text")
        places += 1
        rest = (value * 10**places).denominator
    digits = str(int(value * 10**places)).rjust(places + 1, "0")
    return digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}"


# --- writing -------------------------------------------------------------------------------------


def size(found: Schedule) -> int:
    """The exact number of bytes that `write` will give."""
    n, stages = found.ranks, found.stages
    states: int = 1 << stages
    total: int = states * (len("BW \nEND\n") + 2 * n * n)
    total += 1 + sum(states - 10**k for k in range(len(str(states))) if 10**k < states)  # digits of 0 .. states - 1
    total += states * _extra(found.scale_up)
    for stage, edges in enumerate(found.ring):
        # Held where the stage has no neighbour: its bit is 0, or it is 1 and those of its neighbours are 0.
        reach = sum(stage in pair for pair in found.join)
        total += ((states >> 1) + (states >> 1 >> reach)) * _extra(edges)
    for edges in found.join.values():
        total += (states >> 2) * _extra(edges)
    return total


def _extra(edges: Edges) -> int:
    """Bytes of the numbers beyond the zero that each stands in place of."""
    rates, count = np.unique(edges.rate, return_counts=True)
    texts = [len(decimal_text(Fraction(rate, GB))) - 1 for rate in rates.tolist()]
    return sum(t * c for t, c in zip(texts, count.tolist(), strict=True))


def write(found: Schedule) -> Iterator[bytes]:
    """All configurations in binary counting order."""
    rows = _Rows(found)
    for number in range(1 << found.stages):
        bits = found.bits(number)
        yield b"BW %d\n" % number
        for stage in range(found.stages):
            yield from rows.of(stage, found.neighbours(stage, bits))
        yield b"END\n"


class _Rows:
    """The rows of a stage with given neighbours, as chunks of text."""

    def __init__(self, found: Schedule) -> None:
        self.found = found
        self.zeros = b"0 " * found.ranks
        self.last = self.zeros[:-1] + b"\n"
        self.kept: dict[tuple[int, tuple[tuple[int, int], ...]], list[bytes]] = {}
        self.room = _KEPT

    def of(self, stage: int, joins: tuple[tuple[int, int], ...]) -> Iterable[bytes]:
        key = (stage, joins)
        if key in self.kept:
            return self.kept[key]
        chunks = self._make(stage, joins)
        size = 2 * self.found.ranks**2 // self.found.stages
        if size > self.room:
            return chunks
        self.room -= size
        self.kept[key] = list(chunks)
        return self.kept[key]

    def _make(self, stage: int, joins: tuple[tuple[int, int], ...]) -> Iterator[bytes]:
        found = self.found
        held = [found.scale_up, *(found.join[pair] for pair in joins)]
        if not joins:
            held.append(found.ring[stage])
        per_stage = found.ranks // found.stages
        begin, end = stage * per_stage, (stage + 1) * per_stage
        source, target, rate = _together(held, begin, end)
        values, which = np.unique(rate, return_inverse=True)
        texts = [decimal_text(Fraction(value, GB)).encode() for value in values.tolist()]
        bounds = np.searchsorted(source, np.arange(begin, end + 1)).tolist()
        columns, words = target.tolist(), [texts[index] for index in which.ravel().tolist()]
        pieces: list[bytes] = []
        for row in range(per_stage):
            self._row(columns[bounds[row] : bounds[row + 1]], words[bounds[row] : bounds[row + 1]], pieces)
            if row % _ROWS == _ROWS - 1:
                yield b"".join(pieces)
                pieces.clear()
        yield b"".join(pieces)

    def _row(self, columns: list[int], words: list[bytes], pieces: list[bytes]) -> None:
        """Zeros up to each number, the number, zeros to the end of the line."""
        at = 0
        for column, word in zip(columns, words, strict=True):
            pieces.append(self.zeros[2 * at : 2 * column])
            pieces.append(word)
            at = column + 1
            if at < self.found.ranks:
                pieces.append(b" ")
        pieces.append(self.last[2 * at :] if at < self.found.ranks else b"\n")


def _together(held: list[Edges], begin: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The links that leave the ranks begin .. end - 1, sorted by source and target."""
    parts = []
    for edges in held:
        rows = slice(*np.searchsorted(edges.source, (begin, end)).tolist())
        parts.append((edges.source[rows], edges.target[rows], edges.rate[rows]))
    source, target, rate = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((target, source))
    return source[order], target[order], rate[order]


# --- projection and reading ----------------------------------------------------------------------


def project(found: Schedule) -> Iterator[State]:
    """The links of every configuration, from the stage bits alone."""
    for number in range(1 << found.stages):
        bits = found.bits(number)
        held = [found.scale_up]
        joined = [pair for pair in found.join if bits[pair[0]] and bits[pair[1]]]
        held += [found.join[pair] for pair in joined]
        held += [ring for stage, ring in enumerate(found.ring) if not any(stage in pair for pair in joined)]
        yield State(f"BW {number}", number, *_together(held, 0, found.ranks))


def read(path: Path, ranks: int) -> Iterator[State]:
    """Which rank has a link to which, in each configuration of a file. Raises Unreadable."""
    known: dict[bytes, tuple[list[int], list[int]]] = {}
    room = _KEPT
    rates: dict[bytes, int] = {}
    number = row = 0
    source: list[int] = []
    target: list[int] = []
    rate: list[int] = []
    with path.open("rb") as file:
        while line := file.readline():
            if row == 0 and line == b"BW %d\n" % number:
                row = 1
                source, target, rate = [], [], []
            elif 1 <= row <= ranks:
                found = known.get(line)
                if found is None:
                    found = _read_row(line, ranks, rates, f"{path.name}: BW {number}, row {row - 1}")
                    if (room := room - len(line)) > 0:
                        known[line] = found
                source += [row - 1] * len(found[0])
                target += found[0]
                rate += found[1]
                row += 1
            elif row == ranks + 1 and line == b"END\n":
                columns = np.array(source, np.int32), np.array(target, np.int32), np.array(rate, np.int64)
                yield State(f"BW {number}", number, *columns)
                number, row = number + 1, 0
            else:
                raise Unreadable(f"{path.name}: unexpected line in or before BW {number}: {line[:40]!r}")
    if row:
        raise Unreadable(f"{path.name}: BW {number} has no END")


def _read_row(line: bytes, ranks: int, rates: dict[bytes, int], where: str) -> tuple[list[int], list[int]]:
    """The columns that are not 0, and their rates in bit/s."""
    words = line[:-1].split(b" ")
    if len(words) != ranks or not line.endswith(b"\n"):
        raise Unreadable(f"{where} has {len(words)} numbers, not {ranks}")
    columns, found = [], []
    for column, word in enumerate(words):
        if word != b"0":
            if word not in rates:
                try:
                    exact = Fraction(word.decode("ascii")) * GB
                except ValueError as error:
                    raise Unreadable(f"{where}: {word[:20]!r} is no number") from error
                if exact.denominator != 1 or exact <= 0:
                    raise Unreadable(f"{where}: {word[:20]!r} is no whole number of bits per second")
                rates[word] = int(exact)
            columns.append(column)
            found.append(rates[word])
    return columns, found
