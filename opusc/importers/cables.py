"""Whose port it is: positions of one switch by NIC port, from a CSV file with `node`, `gpu`, `port` and `position`."""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO

from opusc.diagnostics import Diagnostics
from opusc.importers.configurations import Configuration
from opusc.source import Source

__all__ = ["Cables", "NicPort", "cables", "radix_of"]


@dataclass(frozen=True, slots=True, order=True)
class NicPort:
    """Port of a GPU of a node. The GPU's number in its node is its rail."""

    node: int
    gpu: int
    port: int

    def __str__(self) -> str:
        return f"node {self.node} GPU {self.gpu} port {self.port}"


@dataclass(frozen=True)
class Cables:
    """A crossbar of N x N with duplex optics: position k transmits into ingress k and receives from egress N + k."""

    radix: int
    at: dict[int, NicPort]  # by position

    def ingress(self, number: int) -> NicPort | None:
        return self.at.get(number)

    def egress(self, number: int) -> NicPort | None:
        return self.at.get(number - self.radix)


def cables(source: Source, sink: Diagnostics) -> dict[int, NicPort] | None:
    """NIC ports by position; None when the sink says what is wrong (OPUS770)."""
    reader = csv.DictReader(StringIO(source.text))
    names = {name.strip().lower(): name for name in reader.fieldnames or () if name}
    missing = [name for name in ("node", "gpu", "port", "position") if name not in names]
    if missing:
        sink.error(
            "OPUS770", f"the cabling has no column {', '.join(f'`{name}`' for name in missing)}", source.line_span(1),
            "its header", help="columns: node, gpu, port, position; a row for each NIC port",
        )  # fmt: skip
        return None
    found: dict[int, NicPort] = {}
    seen: set[NicPort] = set()
    for row in reader:
        cells = [(row.get(names[name]) or "").strip() for name in ("node", "gpu", "port", "position")]
        forms = (r"[A-Za-z_.-]*?0*(\d{1,6})", *[r"(\d{1,6})"] * 3)
        numbers = [re.fullmatch(form, cell) for form, cell in zip(forms, cells, strict=True)]
        span = source.line_span(reader.line_num)
        if not all(numbers):
            sink.error("OPUS770", f"a cable is not four numbers: {', '.join(cells)}", span)
            return None
        node, gpu, port, position = (int(match[1]) for match in numbers if match)
        nic = NicPort(node, gpu, port)
        if position in found or nic in seen:
            sink.error("OPUS770", f"position {position} or {nic} has two cables", span)
            return None
        found[position] = nic
        seen.add(nic)
    if not found:
        sink.error("OPUS770", "the cabling has no cable", source.line_span(1))
        return None
    return found


def radix_of(sets: Iterable[Configuration], positions: Iterable[int]) -> int | None:
    """The size of the switch: the smallest with which every egress is a cabled position, beyond every ingress."""
    circuits = [circuit for one in sets for circuit in one.circuits]
    known = set(positions)
    if not circuits:
        return max(known)
    least = max(max(circuit.ingress for circuit in circuits), max(known))
    egress = {circuit.egress for circuit in circuits}
    lowest = min(egress)
    sizes = sorted({lowest - position for position in known if lowest - position >= least})
    return next((size for size in sizes if all(number - size in known for number in egress)), None)
