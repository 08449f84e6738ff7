"""What was observed of a cabling: CSV files with a header, in the words of whoever wrote them.

Two kinds of rows:

- *a NIC port at a switch port*: where a cable ends. From scans of labels, from the patch list, or from what switches
  see of their neighbours (`RemoteDevice`, `RemotePortID`).
- *a NIC port that sees a NIC port*: what a host sees of its neighbours (LLDP) through a switch whose circuits are
  those of one part.

Columns are known by their names, many of which mean the same (`COLUMNS`).
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO

from opusc.control.cabling.names import Names, NicPort
from opusc.diagnostics import Diagnostics
from opusc.diagnostics.suggest import closest
from opusc.model.entities import Matrix, Optics, Side
from opusc.plan.cabling import ports_of_position
from opusc.source import Source, Span

__all__ = ["COLUMNS", "Observed", "Plugged", "Seen", "Stranger", "Way", "observed"]

#: Our name of a column -> names that mean it, as lower-case letters and digits only.
COLUMNS = {
    "node": ("node", "host", "hostname", "server", "localnode", "localhost", "localdevice", "localsystem"),
    "gpu": ("gpu", "localrank", "gpuindex", "localgpu"),
    "port": ("port", "nicport", "portindex"),
    "nic": ("nic", "interface", "iface", "ifname", "localinterface", "netdev", "hca", "localport", "localportid"),
    "switch": ("switch", "ocs", "switchname", "ocsname"),
    "rail": ("rail",),
    "plane": ("plane",),
    "block": ("block",),
    "position": ("position", "pos", "switchposition"),
    "to": ("to", "transmitto", "switchport", "ocsport", "frontpanel", "ingress", "txport", "transmitport", "switchtx"),
    "from": ("receivefrom", "egress", "rxport", "receiveport", "switchrx"),
    "receive": ("receive",),
    "side": ("side",),
    "fibre": ("fibre", "fiber", "strand", "direction"),
    "peer": ("remotedevice", "remotenode", "remotehost", "neighbor", "neighbour", "neighborname", "neighbourname",
             "remotesystemname", "remotesystem", "sysname", "peer", "peernode", "peerhost"),
    "peer gpu": ("peergpu", "remotegpu", "neighborgpu", "neighbourgpu"),
    "peer port": ("remoteport", "remoteportid", "neighborport", "neighbourport", "neighborinterface",
                  "neighbourinterface", "remoteinterface", "peerport", "peernic", "peerinterface", "portid"),
    "part": ("part", "lit", "litpart"),
}  # fmt: skip

_MOST_WRONG = 10  # rows of one file that are complained about
_WAYS = {"tx": "tx", "transmit": "tx", "t": "tx", "rx": "rx", "receive": "rx", "r": "rx"}

#: Which light of a NIC port: its transmitter's, its receiver's, or, on one fibre, both.
Way = str  # "tx", "rx", "both"


@dataclass(frozen=True, slots=True)
class Plugged:
    """A fibre of a NIC port ends at port `number` of a switch. A `way` of "" was not observed."""

    port: NicPort
    way: Way
    switch: int
    number: int
    span: Span


@dataclass(frozen=True, slots=True)
class Seen:
    """While a part was lit, a NIC port received from another."""

    part: int
    port: NicPort
    sender: NicPort
    span: Span


@dataclass(frozen=True, slots=True)
class Stranger:
    """A cable of a NIC port that the program does not have; its place where that was said."""

    name: str
    switch: int | None
    number: int | None
    span: Span


@dataclass
class Observed:
    plugged: list[Plugged] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    strangers: list[Stranger] = field(default_factory=list)
    rows: int = 0


class _Wrong(Exception):
    """One row cannot be understood: message, label, help."""


def observed(sources: Sequence[Source], names: Names, lit: int | None, sink: Diagnostics) -> Observed:
    """The rows of all files. What cannot be understood is said in the sink (OPUS725), with the row.

    `lit` is the part that was lit where rows do not name one.
    """
    found = Observed()
    for source in sources:
        table = _Table(source, names, lit, found, sink)
        table.read()
    return found


class _Table:
    """One file."""

    def __init__(self, source: Source, names: Names, lit: int | None, found: Observed, sink: Diagnostics) -> None:
        self.source, self.names, self.lit, self.found, self.sink = source, names, lit, found, sink
        self.plan = names.plan
        self.duplex = self.plan.model.cluster.rail_nic.optics is Optics.DUPLEX
        self.at: dict[str, int] = {}
        self.parts = {part.name: part.index for part in self.plan.parts}

    def read(self) -> None:
        wrong = 0
        try:
            for cells, span in self._rows():
                self.found.rows += 1
                row = {ours: cells[i].strip() for ours, i in self.at.items() if i < len(cells)}
                try:
                    self._row(row, span)
                except _Wrong as error:
                    message, label, help = error.args
                    self.sink.error("OPUS725", message, span, label, help=help)
                    wrong += 1
                    if wrong == _MOST_WRONG:
                        return
        except csv.Error as error:
            self.sink.error("OPUS725", f"`{self.source.name}` is no CSV: {error}", self.source.line_span(1))

    def _rows(self) -> Iterator[tuple[list[str], Span]]:
        first = self.source.line_text(1)
        comma = max(",;\t", key=first.count)
        rows = csv.reader(StringIO(self.source.text), delimiter=comma)
        header = next(rows, [])
        if not self._header(header):
            return
        line, count = rows.line_num, 0
        for cells in rows:
            here, line = self.source.line_span(line + 1), rows.line_num
            if any(cell.strip() for cell in cells):
                count += 1
                yield cells, here
        if not count:
            self.sink.error("OPUS725", f"`{self.source.name}` has no rows", self.source.line_span(1), "only a header")

    def _header(self, header: list[str]) -> bool:
        known = {synonym: ours for ours, synonyms in COLUMNS.items() for synonym in synonyms}
        for index, cell in enumerate(header):
            ours = known.get(re.sub(r"[^a-z0-9]", "", cell.lower()))
            if ours is not None and ours in self.at:
                self._complain(f"columns `{header[self.at[ours]]}` and `{cell}` both mean `{ours}`", "the header")
                return False
            if ours is not None:
                self.at[ours] = index
        if "node" not in self.at and "peer" in self.at:
            # A switch's own view: its neighbour is the host, its own port is ours.
            renamed = {"peer": "node", "peer gpu": "gpu", "peer port": "nic", "nic": "to"}
            if "nic" in self.at and "to" in self.at:
                renamed.pop("nic")
                self.at.pop("nic")
            self.at = {renamed.get(ours, ours): index for ours, index in self.at.items()}
        missing = self._missing()
        if missing:
            near = next((c for c in header if closest(c.lower(), [s for n in missing for s in COLUMNS[n]])), "")
            self._complain(
                f"`{self.source.name}` has no column for the {missing[0]}",
                f"is it `{near}`?" if near else "the header",
                f"it may be called {', '.join(f'`{s}`' for s in COLUMNS[missing[0]][:5])}",
            )
        return not missing

    def _missing(self) -> list[str]:
        has = self.at.keys()
        if "node" not in has:
            return ["node"]
        if "nic" not in has and not {"gpu", "port"} <= has:
            return ["port"] if "gpu" in has else ["gpu"] if "port" in has else ["nic"]
        if "peer" in has:
            return [] if "peer port" in has else ["peer port"]
        return [] if {"position", "to", "from"} & has else ["position"]

    def _complain(self, message: str, label: str, help: str = "") -> None:
        self.sink.error("OPUS725", message, self.source.line_span(1), label, help=help)

    # --- rows ----------------------------------------------------------------------------------

    def _row(self, row: dict[str, str], span: Span) -> None:
        port = self._nic_port(row.get("node", ""), row.get("gpu", ""), row.get("port", ""), row.get("nic", ""))
        if "peer" in self.at:
            if not row.get("peer"):
                return  # nothing was seen there
            sender = self._nic_port(row["peer"], row.get("peer gpu", ""), row.get("peer port", ""), "")
            part = self._part(row.get("part", ""))
            for end in (port, sender):
                if isinstance(end, str):
                    self.found.strangers.append(Stranger(end, None, None, span))
            if not isinstance(port, str) and not isinstance(sender, str):
                self.found.seen.append(Seen(part, port, sender, span))
            return
        if not any(row.get(name) for name in ("position", "to", "from")):
            return  # listed, but nothing is plugged in
        switch = self._switch(row, port)
        for way, number in self._ends(row, switch, port):
            if isinstance(port, str):
                self.found.strangers.append(Stranger(port, switch, number, span))
                return
            self.found.plugged.append(Plugged(port, way, switch, number, span))

    def _nic_port(self, host: str, gpu: str, port: str, nic: str) -> NicPort | str:
        """GPU and port, or how a NIC port is called that the program does not have."""
        node = self.names.node(host)
        if port and not port.isdigit():
            nic, port = port, ""
        if gpu.isdigit() and port:
            local = int(gpu[:9]), int(port[:9])
        elif nic:
            known = self.names.nic(nic)
            if known is None:
                raise _Wrong(
                    f"`{nic}` is no name of a NIC port that opusc knows", f"port of `{host}`",
                    f"say which it is: `--nic {nic}=GPU/PORT`",
                )  # fmt: skip
            local = known
        elif gpu.isdigit() and self.plan.cabling.ports == 1:
            local = int(gpu[:9]), 0
        else:
            raise _Wrong("the row does not say which NIC port it is about", "this row", "it needs `gpu` and `port`")
        cluster = self.plan.model.cluster
        called = f"{host or '?'} {nic}" if nic else f"{host or '?'} GPU {local[0]} port {local[1]}"
        if node is None or not 0 <= node < cluster.node_count:
            return called
        if not local[0] < cluster.gpus_per_node or not local[1] < self.plan.cabling.ports:
            return called
        found = node * cluster.gpus_per_node + local[0], local[1]
        return found if self.plan.cabling.switch[found] >= 0 else called

    def _part(self, name: str) -> int:
        if name:
            if name not in self.parts:
                near = closest(name, list(self.parts))
                raise _Wrong(
                    f"the plan has no part `{name}`", f"did you mean `{near}`?" if near else "this row",
                    "`opusc show parts FILE` lists them" if not near else "",
                )  # fmt: skip
            return self.parts[name]
        if self.lit is None:
            raise _Wrong(
                "which part was lit is not said", "a NIC port that sees a NIC port",
                "give it with `--lit PART`, or in a column `part`",
            )  # fmt: skip
        return self.lit

    def _switch(self, row: dict[str, str], port: NicPort | str) -> int:
        text = row.get("switch", "")
        if text:
            found = self.names.switch(text)
            if found is None:
                raise _Wrong(
                    f"no switch of the program is called `{text}`", "this row",
                    f"say which it is: `--switch-name {text}={self.plan.switches[0].name}`",
                )  # fmt: skip
            return found
        wanted = {name: int(row[name]) for name in ("rail", "plane", "block") if row.get(name, "").isdigit()}
        if wanted:
            fitting = [
                switch.index
                for switch in self.plan.switches
                if wanted.get("rail", switch.rails[0]) in switch.rails
                and wanted.get("plane", switch.plane) == switch.plane
                and wanted.get("block", switch.block) == switch.block
            ]
            if len(fitting) == 1:
                return fitting[0]
        stem = re.sub(r".*[/\\]|\.csv$", "", self.source.name)
        named = self.names.switch(stem) if not wanted else None
        if named is not None:
            return named
        if len(self.plan.switches) == 1:
            return 0
        if isinstance(port, str):
            raise _Wrong("the row does not say which switch it is about", "this row", "it needs a column `switch`")
        return int(self.plan.cabling.switch[port])

    def _ends(self, row: dict[str, str], switch: int, port: NicPort | str) -> list[tuple[Way, int]]:
        """Each fibre that the row is about, and the number of its switch port."""
        ends: list[tuple[Way, int]] = []
        for column, way in (("to", "tx"), ("from", "rx")):
            if text := row.get(column, ""):
                number = self.names.switch_port(switch, text)
                if number is None:
                    name = self.plan.switches[switch].name
                    raise _Wrong(f"{name} has no port `{text}`", "this row", f"its ports are {self._range(switch)}")
                ends.append((self._way(row, switch, number, way), number))
        return ends or self._by_position(row, switch, port)

    def _way(self, row: dict[str, str], switch: int, number: int, column: str) -> Way:
        """Of a port named by its label: what the row says of the fibre, else what its column or its side means."""
        if not self.duplex:
            return "both"
        stated = _WAYS.get(row.get("fibre", "").lower())
        if stated is not None:
            return stated
        if column == "rx" or row.get("from"):
            return column
        kind = self.plan.switches[switch].kind
        return "tx" if kind.matrix is Matrix.ANY or number <= kind.radix else "rx"

    def _by_position(self, row: dict[str, str], switch: int, port: NicPort | str) -> list[tuple[Way, int]]:
        kind = self.plan.switches[switch].kind
        numbers = {}
        for name in ("position", "receive"):
            text = row.get(name, "")
            if text and not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= kind.radix):
                what = f"{self.plan.switches[switch].name} has positions 1..{kind.radix:,}"
                raise _Wrong(f"`{text}` is no position of a switch", what, "a label goes into a column `switch port`")
            if text:
                numbers[name] = int(text)
        if kind.matrix is Matrix.ANY:
            if not self.duplex:
                return [("both", numbers["position"])]
            return [("tx", numbers["position"])] + [("rx", numbers["receive"])] * ("receive" in numbers)
        if self.duplex:
            ingress, egress = ports_of_position(kind, numbers["position"])
            return [("tx", ingress), ("rx", egress)]
        side = row.get("side", "").upper()
        if side in ("A", "B"):
            return [("both", ports_of_position(kind, numbers["position"], Side(side))[0])]
        on_a = isinstance(port, str) or self.plan.cabling.ingress[port] >= 0
        return [("both", ports_of_position(kind, numbers["position"], Side.A if on_a else Side.B)[0])]

    def _range(self, switch: int) -> str:
        labels = sorted({1, self.plan.switches[switch].kind.radix})
        return "..".join(f"`{self.names.label(switch, number)}`" for number in labels)
