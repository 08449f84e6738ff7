"""The optical link budget: what is left of the light at the receiver, in the worst path of each phase on each rail.

A circuit leads from a NIC port over its cable, through one switch, over another cable to a NIC port. Whatever a phase
relays through a GPU starts anew there, since the GPU's NIC sends it again. With levels in dBm and losses in dB

    margin = transmit_power - sensitivity - loss
    loss   = sum over both cables (length * loss per length + connectors * connector_loss
             + patch panels * patch_panel_loss) + insertion_loss + 2 * circulator_loss (bidi optics)

Everything is counted in integer billionths of a dB: millimetres times thousandths of a dB per kilometre.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opusc.diagnostics import Diagnostics
from opusc.model.components import Fibre
from opusc.model.entities import Entity, Nic, Optics, SwitchKind
from opusc.plan.plan import Plan
from opusc.source import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DB", "Loss", "Path", "Ports", "budget", "decimal", "lengths", "measured", "stated"]

#: Billionths of a dB in a dB.
DB = 10**9
_MILLI = 10**6  # billionths in a thousandth


@dataclass(frozen=True, slots=True)
class Loss:
    """One kind of loss on a path, in billionths of a dB."""

    what: str  # `2 patch panels of 0.5 dB`
    size: int


@dataclass(frozen=True, slots=True)
class Path:
    """The worst path of a phase on a rail. `margin` is in billionths of a dB, and negative where too little light
    arrives. `losses` are the largest first; `ends` are (GPU, port) of the sender and the receiver."""

    phase: str
    rail: int
    part: str
    switch: str
    ends: tuple[tuple[int, int], tuple[int, int]]
    margin: int
    losses: tuple[Loss, ...]

    @property
    def loss(self) -> int:
        return sum(loss.size for loss in self.losses)


def budget(plan: Plan, sink: Diagnostics) -> tuple[Path, ...] | None:
    """The worst path of each phase on each rail, in the order of phases and rails; () when there is no circuit.

    None when a number is missing, which the sink says (OPUS441).
    """
    import numpy as np

    if not stated(plan, sink):
        return None
    cables, table = _cables(plan), Ports(plan)
    circuits, kinds = plan.circuits, [switch.kind for switch in plan.switches]
    if not len(circuits):
        return ()
    first, last = table.at(circuits.switch, circuits.ingress), table.at(circuits.switch, circuits.egress)
    through = np.array([_milli(kind.insertion_loss) for kind in kinds], dtype=np.int64)[circuits.switch]
    loss = cables.reshape(-1)[first] + cables.reshape(-1)[last] + through
    phase = np.array([part.phase for part in plan.parts], dtype=np.int64)[circuits.part]
    rail = table.rail[first // plan.cabling.ports]
    # The worst row of each phase and rail: the first of those with the greatest loss.
    order = np.lexsort((-loss, rail, phase))
    keys = np.stack([phase[order], rail[order]])
    begins = np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
    return tuple(_path(plan, int(row), int(first[row]), int(last[row]), table) for row in order[begins])


class Ports:
    """Which NIC port (GPU * ports + port) is behind a port of a switch, and on which rail each GPU is."""

    def __init__(self, plan: Plan) -> None:
        import numpy as np

        from opusc.plan.ranks import rail_of

        cabling, model = plan.cabling, plan.model
        self.rail = rail_of(model.job, np.arange(model.cluster.gpu_count, dtype=np.int32))
        self.width = 1 + max(int(cabling.ingress.max()), int(cabling.egress.max()), 0)
        self.nic = np.full(len(plan.switches) * self.width, -1, dtype=np.int64)
        for ends in (cabling.ingress, cabling.egress):
            gpu, port = np.nonzero((ends >= 0) & (cabling.switch >= 0))
            key = cabling.switch[gpu, port].astype(np.int64) * self.width + ends[gpu, port]
            self.nic[key] = gpu * cabling.ports + port

    def at(self, switch: "NDArray[np.int32]", port: "NDArray[np.int32]") -> "NDArray[np.int64]":
        import numpy as np

        found: NDArray[np.int64] = self.nic[switch.astype(np.int64) * self.width + port]
        return found


def _cables(plan: Plan) -> "NDArray[np.int64]":
    """The loss of every cable, shape (GPUs, ports), with the circulator of its end."""
    import numpy as np

    fibres = [rail.fibre for rail in plan.model.fabric.rails]
    panels = _panels(plan)
    ends = _circulators(plan.model.cluster.rail_nic)
    each = np.array([_fixed(f) + ends for f in fibres], dtype=np.int64)
    per_mm = np.array([f.loss or 0 if f else 0 for f in fibres], dtype=np.int64)
    panel = np.array([_milli(f.patch_panel_loss) if f else 0 for f in fibres], dtype=np.int64)
    rail = Ports(plan).rail
    own = np.array([-1 if f is None or f.patch_panels is None else f.patch_panels for f in fibres])[rail][:, None]
    return (
        each[rail][:, None]
        + per_mm[rail][:, None] * lengths(plan)
        + panel[rail][:, None] * np.where(own >= 0, own, panels)
    )


def _panels(plan: Plan) -> "NDArray[np.int64]":
    """Jacks that the cabling files name on the way of each NIC port, shape (GPUs, ports)."""
    import numpy as np

    found = np.zeros((plan.model.cluster.gpu_count, plan.cabling.ports), dtype=np.int64)
    for cable in plan.model.fabric.cabling.cables:
        found[cable.node * plan.model.cluster.gpus_per_node + cable.gpu, cable.port] = len(cable.jacks)
    return found


def lengths(plan: Plan) -> "NDArray[np.int64]":
    """The length of every cable in mm, shape (GPUs, ports): the cabling file's, else that of the rail's fibre (0 where
    neither says)."""
    import numpy as np

    cluster = plan.model.cluster
    own = np.array([rail.fibre.length or 0 if rail.fibre else 0 for rail in plan.model.fabric.rails], dtype=np.int64)
    found = np.repeat(own[Ports(plan).rail][:, None], plan.cabling.ports, axis=1)
    for cable in plan.model.fabric.cabling.cables:
        if cable.length is not None:
            found[cable.node * cluster.gpus_per_node + cable.gpu, cable.port] = cable.length
    return found


def _fixed(fibre: Fibre | None) -> int:
    """The connectors of one cable, in billionths of a dB."""
    assert fibre is not None, "demanded before"
    return fibre.connectors * _milli(fibre.connector_loss)


def _circulators(nic: Nic) -> int:
    optical = nic.transceiver
    return _milli(optical.circulator_loss) if optical and nic.optics is Optics.BIDI else 0


def _milli(loss: int | None) -> int:
    return (loss or 0) * _MILLI


def _path(plan: Plan, row: int, first: int, last: int, table: Ports) -> Path:
    circuits, ports = plan.circuits, plan.cabling.ports
    part, switch = plan.parts[int(circuits.part[row])], plan.switches[int(circuits.switch[row])]
    ends = (first // ports, first % ports), (last // ports, last % ports)
    rail = int(table.rail[ends[0][0]])
    fibre, nic = plan.model.fabric.rails[rail].fibre, plan.model.cluster.rail_nic
    assert fibre is not None
    assert nic.transceiver is not None
    jacks = _panels(plan)
    panels = sum(fibre.patch_panels if fibre.patch_panels is not None else int(jacks[end]) for end in ends)
    length = sum(int(lengths(plan)[end]) for end in ends)
    losses = sorted(_losses(fibre, nic, switch.kind, panels, length), key=lambda loss: -loss.size)
    sent, heard = nic.transceiver.transmit_power, nic.transceiver.sensitivity
    assert sent is not None
    assert heard is not None
    margin = (sent - heard) * _MILLI - sum(loss.size for loss in losses)
    return Path(plan.phases[part.phase].name, rail, part.name, switch.name, ends, margin, tuple(losses))


def _losses(fibre: Fibre, nic: Nic, switch: SwitchKind, panels: int, length: int) -> Iterator[Loss]:
    """Every kind of loss on a path that crosses so many patch panels in all, over fibres of `length` mm in all."""
    yield Loss(f"switch `{switch.name}`", _milli(switch.insertion_loss))
    if fibre.connectors:
        each = _milli(fibre.connector_loss)
        yield Loss(f"{2 * fibre.connectors} connectors of {_db(each)}", 2 * fibre.connectors * each)
    if panels:
        each = _milli(fibre.patch_panel_loss)
        yield Loss(f"{panels} patch panel{'s' * (panels > 1)} of {_db(each)}", panels * each)
    if ends := _circulators(nic):
        yield Loss(f"2 circulators of {_db(ends)}", 2 * ends)
    assert fibre.loss is not None
    metres = decimal(length, 1000)
    yield Loss(f"{metres} m of fibre at {decimal(fibre.loss, 1000)} dB/km", length * fibre.loss)


def _db(size: int) -> str:
    return f"{decimal(size, DB)} dB"


def decimal(number: int, one: int) -> str:
    """A decimal fraction without trailing zeros; `one` is a power of ten."""
    whole, rest = divmod(abs(number), one)
    digits = str(rest).rjust(len(str(one)) - 1, "0").rstrip("0")
    return "-" * (number < 0) + f"{whole:,}" + (f".{digits}" if digits else "")


# --- numbers that the program must state ---------------------------------------------------------

_WRITTEN = {
    "transmit_power": "-2.9 dBm",
    "sensitivity": "-5.9 dBm",
    "circulator_loss": "0.8 dB",
    "length": "30 m",
    "loss": "0.4 dB/km",
    "connector_loss": "0.5 dB",
    "patch_panel_loss": "0.5 dB",
    "insertion_loss": "2 dB",
}


def measured(plan: Plan) -> bool:
    """Whether the cabling files say how long every cable is."""
    cables = plan.model.fabric.cabling.cables
    return bool(cables) and all(cable.length is not None for cable in cables)


def stated(plan: Plan, sink: Diagnostics) -> bool:
    """Whether the program says every number of a link budget; the sink is told what it does not."""
    fabric, nic = plan.model.fabric, plan.model.cluster.rail_nic
    wanted = ["transmit_power", "sensitivity"] + ["circulator_loss"] * (nic.optics is Optics.BIDI)
    if nic.transceiver is None:
        _missing("the `transceiver` of the NIC", nic.span, "transceiver = transceivers.dr4_400g", sink)
        complete = False
    else:
        complete = _complete(nic.transceiver, wanted, f"transceiver `{nic.transceiver.name}`", nic.span, sink)
    jacks = any(cable.jacks for cable in fabric.cabling.cables)
    lengthy = measured(plan)
    told: set[Span] = set()
    for rail in fabric.rails:
        fibre = rail.fibre
        if fibre is None:
            _missing(
                f"the `fibre` of fabric `{fabric.name}`", fabric.span, "fibre = fibres.os2 { length = 30 m }", sink
            )
            return False
        names = ["length"] * (not lengthy) + ["loss"] + ["connector_loss"] * bool(fibre.connectors)
        names += ["patch_panel_loss"] * bool(jacks if fibre.patch_panels is None else fibre.patch_panels)
        if fibre.span not in told:
            told.add(fibre.span)
            complete &= _complete(fibre, names, f"fibre `{fibre.name}` of rail {rail.index}", fibre.span, sink)
        for switch in rail.switches:
            if switch.span not in told:
                told.add(switch.span)
                complete &= _complete(switch, ["insertion_loss"], f"switch `{switch.name}`", rail.span, sink)
    return complete


def _complete(entity: Entity, names: list[str], of: str, span: Span, sink: Diagnostics) -> bool:
    missing = [name for name in names if getattr(entity, name) is None]
    if missing:
        listed = " and ".join(f"`{name}`" for name in missing)
        _missing(f"{listed} of {of}", span, ", ".join(f"{name} = {_WRITTEN[name]}" for name in missing), sink)
    return not missing


def _missing(what: str, span: Span, example: str, sink: Diagnostics) -> None:
    sink.error(
        "OPUS441",
        f"the link budget needs {what}",
        span,
        "does not say",
        help=f"state what the data sheet or the cabling says, in the form `{example}`",
    )
