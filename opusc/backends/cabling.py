"""The target `cabling`: patch lists for the people who plug the cables in.

    cabling/cabling.csv         every cable, node by node: the walk along the racks
    cabling/<switch>.md         the cables of one switch, position by position: the walk along its front panel

Both ends of a cable are named as they are labelled. `cabling.csv` can be given back to the language
(`cabling = csv "cabling.csv"`) and to `opusc verify-cabling`, which finds no difference then.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np

from opusc.backends.base import Options, Unreadable
from opusc.backends.port_labels import port_labels
from opusc.backends.switch_files import slug
from opusc.diagnostics import Diagnostics
from opusc.model.entities import Matrix, Optics
from opusc.plan.plan import Plan, Switch
from opusc.plan.ranks import rail_of

__all__ = ["BACKEND", "PatchList"]

Rows = tuple[tuple[str, ...], ...]

_CHUNK = 4096  # rows
_DONE = "done"


@dataclass(frozen=True)
class PatchList:
    """One file: its columns, and a row for each cable in the order of the walk."""

    title: str
    columns: tuple[str, ...]
    rows: Rows


@dataclass(frozen=True, slots=True)
class _Patch:
    """One cable. `ingress` and `egress` are port numbers of the switch, -1 where the optics have no such end."""

    gpu: int
    port: int
    rail: int
    switch: Switch
    ingress: int
    egress: int
    jacks: tuple[str, ...]  # on the way, through patch panels
    length: int | None = None  # mm, where the program states it of this cable

    @property
    def position(self) -> int:
        first = self.ingress if self.ingress >= 0 else self.egress
        return (first - 1) % self.switch.kind.radix + 1


class _Target:
    name = "cabling"
    summary = "patch lists for technicians: every cable, by node (CSV) and by switch"

    def check(self, plan: Plan, options: Options, sink: Diagnostics) -> None:
        """Any plan has a patch list."""

    def write(self, plan: Plan, options: Options) -> Iterator[tuple[str, Iterable[bytes]]]:
        whole, *sheets = self.project(plan)
        yield whole.title, _csv_text(whole)
        for switch, sheet in zip(_by_title(plan), sheets, strict=True):
            yield sheet.title, _sheet_text(plan, switch, sheet)

    def project(self, plan: Plan) -> Iterator[PatchList]:
        patches = list(_patches(plan))
        jacks = max((len(patch.jacks) for patch in patches), default=0)
        form = _Form(plan, jacks, lengths=any(patch.length is not None for patch in patches))
        yield PatchList(f"{self.name}/cabling.csv", form.csv_columns, tuple(map(form.csv_row, patches)))
        mine: dict[int, list[_Patch]] = {switch.index: [] for switch in plan.switches}
        for patch in patches:
            mine[patch.switch.index].append(patch)
        for switch in _by_title(plan):
            along = sorted(mine[switch.index], key=lambda patch: (patch.position, patch.egress))
            yield PatchList(_sheet_title(switch), form.sheet_columns, tuple(map(form.sheet_row, along)))

    def read(self, directory: Path) -> Iterator[PatchList]:
        folder = directory / self.name
        yield _read_csv(folder / "cabling.csv", f"{self.name}/cabling.csv")
        for path in sorted(folder.glob("*.md")):
            yield _read_sheet(path, f"{self.name}/{path.name}")

    def faults(self, plan: Plan, statement: object) -> Iterator[str]:
        """No end stands twice: neither a NIC port, nor a port of a switch."""
        assert isinstance(statement, PatchList)
        at = {name: index for index, name in enumerate(statement.columns)}
        for ends in (("node", "gpu", "port"), ("switch", "transmit to"), ("switch", "receive from"), ("switch", "to")):
            columns = [at[name] for name in ends if name in at]
            if not columns or columns == [at.get("switch")]:
                continue
            seen: set[tuple[str, ...]] = set()
            for row in statement.rows:
                end = tuple(row[column] for column in columns)
                if end in seen:
                    yield f"{ends[-1]} {' '.join(end)} is cabled twice"
                    return
                seen.add(end)

    def note(self, options: Options) -> str:
        return ""


class _Form:
    """Which columns the optics and the matrix ask for, and the cells of a cable in them."""

    def __init__(self, plan: Plan, jacks: int, *, lengths: bool = False) -> None:
        self._length = ("length",) * lengths
        kind = plan.switches[0].kind
        self.per_node = plan.model.cluster.gpus_per_node
        self.duplex = plan.model.cluster.rail_nic.optics is Optics.DUPLEX
        self.sided = not self.duplex and kind.matrix is Matrix.CROSSBAR
        self.two_positions = self.duplex and kind.matrix is Matrix.ANY
        self.labels = {switch.index: port_labels(switch) for switch in plan.switches}
        self.jacks = jacks
        ends = ("transmit to", "receive from") if self.duplex else ("to",)
        panels = tuple(f"jack {number}" for number in range(1, jacks + 1))
        more = ("side",) * self.sided + ("receive",) * self.two_positions
        self.csv_columns = ("rail", "node", "gpu", "port", *panels, "switch", "position", *more, *ends, *self._length)
        self.shared = len(plan.switches[0].rails) > 1
        rail = ("rail",) * self.shared
        self.sheet_columns = (_DONE, "position", *ends, *reversed(panels), *rail, "node", "gpu", "port")

    def _ends(self, patch: _Patch) -> tuple[str, ...]:
        labels = self.labels[patch.switch.index]
        if self.duplex:
            return labels[patch.ingress], labels[patch.egress]
        return (labels[patch.ingress if patch.ingress >= 0 else patch.egress],)

    def _panels(self, patch: _Patch) -> tuple[str, ...]:
        return patch.jacks + ("",) * (self.jacks - len(patch.jacks))

    def csv_row(self, patch: _Patch) -> tuple[str, ...]:
        node, gpu = divmod(patch.gpu, self.per_node)
        more = ("A" if patch.egress < 0 else "B",) * self.sided + (str(patch.egress),) * self.two_positions
        nic = (str(patch.rail), str(node), str(gpu), str(patch.port))
        length = ("" if patch.length is None else f"{patch.length // 1000}.{patch.length % 1000:03}",)
        ends = (*self._ends(patch), *length[: len(self._length)])
        return (*nic, *self._panels(patch), patch.switch.name, str(patch.position), *more, *ends)

    def sheet_row(self, patch: _Patch) -> tuple[str, ...]:
        node, gpu = divmod(patch.gpu, self.per_node)
        nic = (*(str(patch.rail),) * self.shared, str(node), str(gpu), str(patch.port))
        return ("[ ]", str(patch.position), *self._ends(patch), *reversed(self._panels(patch)), *nic)


def _patches(plan: Plan) -> Iterator[_Patch]:
    """Every cable, node by node, GPU by GPU, port by port."""
    cabling = plan.cabling
    gpus, ports = np.nonzero(cabling.switch >= 0)
    rails = rail_of(plan.model.job, gpus.astype(np.int32)).tolist()
    per_node = plan.model.cluster.gpus_per_node
    stated = {(c.node * per_node + c.gpu, c.port): c for c in plan.model.fabric.cabling.cables}
    ends = (array[gpus, ports].tolist() for array in (cabling.switch, cabling.ingress, cabling.egress))
    for gpu, port, rail, switch, ingress, egress in zip(gpus.tolist(), ports.tolist(), rails, *ends, strict=True):
        cable = stated.get((gpu, port))
        way, length = (cable.jacks, cable.length) if cable else ((), None)
        yield _Patch(gpu, port, rail, plan.switches[switch], ingress, egress, way, length)


def _by_title(plan: Plan) -> list[Switch]:
    """The switches in the order of their files."""
    return sorted(plan.switches, key=_sheet_title)


def _sheet_title(switch: Switch) -> str:
    return f"cabling/{slug(switch.name)}.md"


# --- CSV -----------------------------------------------------------------------------------------


def _csv_text(table: PatchList) -> Iterator[bytes]:
    for start in range(0, max(len(table.rows), 1), _CHUNK):
        out = StringIO()
        writer = csv.writer(out, lineterminator="\n")
        if start == 0:
            writer.writerow(table.columns)
        writer.writerows(table.rows[start : start + _CHUNK])
        yield out.getvalue().encode()


def _read_csv(path: Path, title: str) -> PatchList:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            columns, *rows = (tuple(row) for row in csv.reader(file, strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise Unreadable(f"{title}: {error}") from error
    return PatchList(title, columns, tuple(rows))


# --- sheets --------------------------------------------------------------------------------------


def _sheet_text(plan: Plan, switch: Switch, table: PatchList) -> Iterator[bytes]:
    kind = switch.kind
    duplex = "transmit to" in table.columns
    cables = f"{len(table.rows):,} cable{'s' * (len(table.rows) != 1)}"
    out = [f"# {switch.name}: {cables}\n"]
    where = f" at {kind.address}" if kind.address else ""
    out.append(f"`{kind.name}`{where}, {kind.radix:,} positions. In the order of its front panel.")
    if duplex:
        out.append("Transmit and receive are those of the NIC: its transmit fibre goes to `transmit to`.")
    if kind.blocked:
        out.append(f"Leave free (blocked): {', '.join(map(str, kind.blocked))}.")
    yield ("\n".join(out) + "\n\n").encode()
    cells = [tuple(map(_escaped, row)) for row in (table.columns, *table.rows)]
    widths = [max(3, *(len(row[at]) for row in cells)) for at in range(len(table.columns))]

    def line(row: Iterable[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |\n"

    yield (line(cells[0]) + "|" + "|".join("-" * (width + 2) for width in widths) + "|\n").encode()
    for start in range(1, len(cells), _CHUNK):
        yield "".join(map(line, cells[start : start + _CHUNK])).encode()


def _escaped(cell: str) -> str:
    return re.sub(r"([\\|])", r"\\\1", cell)


def _read_sheet(path: Path, title: str) -> PatchList:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise Unreadable(f"{title}: {error}") from error
    rows = [_cells(line) for line in lines if line.startswith("|")]
    if len(rows) < 2 or any(set(cell) != {"-"} for cell in rows[1]):
        raise Unreadable(f"{title}: no table")
    if any(len(row) != len(rows[0]) for row in rows):
        raise Unreadable(f"{title}: rows of different lengths")
    return PatchList(title, rows[0], tuple(rows[2:]))


def _cells(line: str) -> tuple[str, ...]:
    found = re.findall(r"((?:[^\\|]|\\.)*)\|", line.strip()[1:])
    return tuple(re.sub(r"\\(.)", r"\1", cell.strip()) for cell in found)


BACKEND = _Target()
