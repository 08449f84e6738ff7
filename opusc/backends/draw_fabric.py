"""The fabric view: nodes (or scale-up domains) below, rails above, and the cables between them."""

import numpy as np

from opusc.backends.canvas import DARK, GREY, Canvas, Shape, Style
from opusc.backends.folding import Fold, fold, runs
from opusc.model.entities import RailBy
from opusc.plan.plan import Plan
from opusc.plan.ranks import rail_of

__all__ = ["fabric_counts", "fabric_dot"]

_RAIL_ROW, _NODE_ROW = 250.0, 0.0
_CELL, _WIDE_CELL = 26.0, 44.0
_CHOSEN = Style("#0072B2", "solid", 2.2)
_OTHER = Style("#a3a3a3", "solid", 0.9)
_CHOSEN_MANY = Style("#0072B2", "dashed", 2.2)
_OTHER_MANY = Style("#a3a3a3", "dashed", 0.9)


def fabric_counts(plan: Plan) -> dict[str, int]:
    """What the drawing must account for, whatever it folds together."""
    return {
        "gpus": plan.model.cluster.gpu_count,
        "switches": len(plan.switches),
        "cables": int((plan.cabling.switch >= 0).sum()),
    }


def fabric_dot(plan: Plan) -> str:
    """The fabric as DOT text; legible at any size, since long rows are folded."""
    return _Fabric(plan).draw()


class _Fabric:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        model = plan.model
        self.cluster, self.fabric = model.cluster, model.fabric
        by_node = self.fabric.rail_by is RailBy.LOCAL_RANK
        self.unit = "node" if by_node else "domain"
        self.unit_size = self.cluster.gpus_per_node if by_node else self.cluster.gpus_per_domain
        self.units = fold(self.cluster.gpu_count // self.unit_size, 6, 3)
        self.rails = fold(len(self.fabric.rails), 8, 4)
        gpu = np.arange(self.cluster.gpu_count, dtype=np.int32)
        cabled = (plan.cabling.switch >= 0).sum(axis=1)
        # Cables by unit and rail: an array of shape (units, rails).
        self.cables = np.zeros((self.cluster.gpu_count // self.unit_size, len(self.fabric.rails)), np.int64)
        np.add.at(self.cables, (gpu // self.unit_size, rail_of(model.job, gpu)), cabled)
        self.canvas = Canvas("fabric")

    def draw(self) -> str:
        cell = _CELL if all(len(rail) == 1 for rail in self.rails) else _WIDE_CELL
        node_width = cell * len(self.rails) + 16
        rail_width = 124.0
        width = max(len(self.units) * (node_width + 28), len(self.rails) * (rail_width + 16))
        boxes = [
            self._rail(rail, (index + 0.5) * width / len(self.rails), rail_width)
            for index, rail in enumerate(self.rails)
        ]
        self._chassis(boxes)
        for index, unit in enumerate(self.units):
            x = (index + 0.5) * width / len(self.units)
            cells = self._unit(unit, x, node_width, cell)
            for at, (rail, top) in enumerate(zip(self.rails, cells, strict=True)):
                # Lines arrive side by side, in the order of their nodes.
                spread = ((index + 0.5) / len(self.units) - 0.5) * 0.7 * rail_width
                self._cable(unit, rail, top, boxes[at], spread, chosen=at == 0)
        self._words(width)
        return self.canvas.dot()

    def _rail(self, rail: Fold, x: float, width: float) -> Shape:
        switches = [s for s in self.plan.switches if set(s.rails) & set(rail)]
        own = [s for s in switches if s.rails[0] in rail]  # a shared chassis is counted with its first rail
        kinds = list(dict.fromkeys(s.kind.name for s in switches))
        lines = [f"rail {rail[0]}" if len(rail) == 1 else f"rails {rail[0]}..{rail[-1]}"]
        if len(switches[0].rails) > 1:
            lines.append(self._positions(rail))
        else:
            each = len(switches) // len(rail)
            if len(kinds) == 1:
                lines.append((f"{each} x " if each > 1 else "") + kinds[0])
            else:  # where each has a name of its own, that is no kind
                several = f", {len(kinds)} kinds" if len(kinds) < len(switches) else ""
                lines.append(f"{len(switches)} switches{several}")
            used = sorted({s.positions_used for s in switches})
            radix = sorted({s.kind.radix for s in switches})
            lines.append(f"{_span(used)} of {_span(radix)} positions")
        fill = "#cfe3f1" if rail[0] == 0 else "#f0f0f0"
        style = "filled,rounded" if len(rail) == 1 else "filled,rounded,dashed"
        counts = {"switches": len(own)}
        return self.canvas.box(x, _RAIL_ROW, width, 50, "\n".join(lines), fill=fill, style=style, counts=counts)

    def _positions(self, rail: Fold) -> str:
        """The positions that some rails have in a shared chassis."""
        gpu = np.arange(self.cluster.gpu_count, dtype=np.int32)
        mine = np.isin(rail_of(self.plan.model.job, gpu), np.array(rail))
        at = self.plan.cabling.ingress[mine]
        at = np.unique(at[at >= 0]).tolist()
        text = runs(at)
        return f"positions {text}" if len(text) <= 14 else f"{len(at)} positions"

    def _chassis(self, boxes: list[Shape]) -> None:
        """A shared switch is drawn as a frame around the rails that share it."""
        shared = self.plan.switches[0]
        if len(shared.rails) < 2:
            return
        left, right = boxes[0].x - 76, boxes[-1].x + 76
        label = f"one chassis: {shared.kind.name}, {shared.positions_used} of {shared.kind.radix} positions"
        middle = (left + right) / 2
        self.canvas.box(middle, _RAIL_ROW + 10, right - left, 96, fill="none", style="rounded", line=GREY)
        self.canvas.text(middle, _RAIL_ROW + 42, label, 10, "n")

    def _unit(self, unit: Fold, x: float, width: float, cell: float) -> list[Shape]:
        """A node or domain with its GPUs; returns a cell for each rail, from which its cables start."""
        name = f"{self.unit} {unit[0]}" if len(unit) == 1 else f"{self.unit}s {unit[0]}..{unit[-1]}  ({len(unit):,})"
        style = "filled,rounded" if len(unit) == 1 else "filled,rounded,dashed"
        counts = {"gpus": len(unit) * self.unit_size}
        frame_y = _NODE_ROW - 12
        self.canvas.box(x, frame_y, width, 62, fill="#fafafa", style=style, counts=counts)
        self.canvas.text(x, _NODE_ROW - 28, name, 11, "n", bold=True)
        cells = []
        for index, rail in enumerate(self.rails):
            label = str(rail[0]) if len(rail) == 1 else f"{rail[0]}..{rail[-1]}"
            at = x + (index - (len(self.rails) - 1) / 2) * cell
            fill = "#cfe3f1" if index == 0 else "white"
            cells.append(self.canvas.box(at, _NODE_ROW, cell - 3, 22, label, size=10, fill=fill, style="filled"))
        return cells

    def _cable(self, unit: Fold, rail: Fold, low: Shape, high: Shape, spread: float, chosen: bool) -> None:
        count = int(self.cables[unit.start : unit.stop, rail.start : rail.stop].sum())
        if not count:
            return
        many = len(unit) * len(rail) > 1
        style = (_CHOSEN_MANY if many else _CHOSEN) if chosen else (_OTHER_MANY if many else _OTHER)
        ends = ((low.x, low.y + low.height / 2), (high.x + spread, high.y - high.height / 2))
        self.canvas.line(low, high, style, ends=ends, counts={"cables": count})

    def _words(self, width: float) -> None:
        cluster, fabric, canvas = self.cluster, self.fabric, self.canvas
        nic = cluster.rail_nic
        rails = len(fabric.rails)
        top = _RAIL_ROW + (112 if len(self.plan.switches[0].rails) > 1 else 90)
        canvas.text(0, top, f"Fabric {fabric.name}", 20, bold=True)
        what = f"{cluster.node_count:,} nodes x {cluster.gpus_per_node} GPUs"
        if cluster.gpus_per_domain != cluster.gpus_per_node:
            what += f", scale-up domains of {cluster.gpus_per_domain}"
        what += f"; {rails} rail{'s' * (rails > 1)}, GPU k of every {self.unit} on rail k"
        canvas.text(0, top - 26, f"{what}; {int(self.cables.sum()):,} cables", 12)
        ports = "1 port" if nic.ports == 1 else f"{nic.ports} ports, all in one line"
        each = f"a GPU has {ports} ({nic.optics} optics)"
        low = _NODE_ROW - 84
        canvas.sample(0, low, _CHOSEN, "cables of rail 0")
        canvas.sample(190, low, _OTHER, "cables of the other rails")
        if any(len(f) > 1 for f in (*self.units, *self.rails)):
            canvas.sample(430, low, Style(DARK, "dashed", 1.2), "many cables in one line")
        canvas.text(0, low - 22, each + f"; the numbers in a {self.unit} are its GPUs, by rail", 10)


def _span(values: list[int]) -> str:
    """`192`, or `192..300` for sorted values that differ."""
    return f"{values[0]:,}" if values[0] == values[-1] else f"{values[0]:,}..{values[-1]:,}"
