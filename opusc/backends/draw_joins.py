"""Joins as columns of pipeline stages, one row a pipeline."""

import numpy as np

from opusc.backends.canvas import Canvas, Shape
from opusc.backends.captions import FIRST_FILL, FOLD_FILL, FOLD_STYLE, INSIDE, legend, line_style, title
from opusc.backends.folding import Fold, fold
from opusc.backends.part_links import View
from opusc.plan.plan import Directions, Plan

__all__ = ["Columns"]


class Columns:
    """Stages from left to right, pipelines from top to bottom; a ring shows its first stage again at the end."""

    def __init__(self, plan: Plan, found: View) -> None:
        self.plan, self.found = plan, found
        self.canvas = Canvas("part")
        self.row_of = {group.number: index for index, group in enumerate(found.groups)}
        self.rows = fold(len(found.groups), 8, 5, 2)
        last = max(max(pair) for group in found.groups for pair in group.stage_pairs)
        first = min(min(pair) for group in found.groups for pair in group.stage_pairs)
        self.first = first
        self.wraps = any(a > b for group in found.groups for a, b in group.stage_pairs)
        self.columns = fold(last - first + 1 + self.wraps, 10, 5, 3)

    def draw(self) -> str:
        cell, gap = (112.0, 62.0), (46.0, 18.0)
        boxes: dict[tuple[int, int], Shape] = {}
        for column, stages in enumerate(self.columns):
            x = column * (cell[0] + gap[0]) + 116
            self.canvas.text(x, 40, self._heading(stages), 12, "n", bold=True)
            for row in range(len(self.rows)):
                boxes[column, row] = self._cell(column, row, x, -row * (cell[1] + gap[1]) / 1.35)
        for row, groups in enumerate(self.rows):
            name = f"pipeline {self.found.groups[groups[0]].number}"
            if len(groups) > 1:
                name = f"{len(groups):,} more\npipelines"
            self.canvas.text(0, boxes[0, row].y, name, 10)
        inside = self._lines(boxes)
        title(self.canvas, self.plan, self.found, 140)
        low = min(box.y for box in boxes.values()) - 54
        if relayed := self._relayed():
            self.canvas.text(0, low, relayed, 10)
            low -= 22
        legend(self.canvas, self.plan, self.found, low, inside=inside)
        return self.canvas.dot()

    def _relayed(self) -> str:
        """How much of the traffic first hops to another rail, with an example."""
        relays = self.plan.relays
        rows = np.flatnonzero(np.isin(relays.part, [part.index for part in self.found.parts]))
        if not len(rows):
            return ""
        rank, peer, via = (int(c[rows[0]]) for c in (relays.rank, relays.peer, relays.via))
        text = f"{len(rows):,} links are relayed inside a domain to another rail: "
        return text + f"rank {rank} reaches rank {peer} through GPU {via}"

    def _stage(self, column: int) -> int:
        """The stage of an unfolded column; the column behind the last is the first stage again."""
        stage = self.first + self.columns[column][0]
        return self.first if self.wraps and column == len(self.columns) - 1 else stage

    def _heading(self, stages: Fold) -> str:
        if len(stages) > 1:
            return f"stages {self.first + stages[0]}..{self.first + stages[-1]}"
        again = self.wraps and stages == self.columns[-1]
        return f"stage {self.first} again" if again else f"stage {self.first + stages[0]}"

    def _cell(self, column: int, row: int, x: float, y: float) -> Shape:
        stages, groups = self.columns[column], self.rows[row]
        if len(stages) > 1 or len(groups) > 1:
            hidden = self._hidden(column, row)
            label = f"{len(groups) * len(stages):,} ranks"
            counts = {"circuits": hidden}
            return self.canvas.box(x, y, 92, 34, label, size=10, fill=FOLD_FILL, style=FOLD_STYLE, counts=counts)
        group = self.found.groups[groups[0]]
        stage = self._stage(column)
        label = f"{self.found.unit} {group.units[stage]}\nrank {group.ranks[stage]}"
        fill = FIRST_FILL if stage == self.first else "white"
        return self.canvas.box(x, y, 92, 34, label, size=10, fill=fill)

    def _ends(self, pair: tuple[int, int]) -> tuple[int, int]:
        """Columns of the two stages of a join."""
        a, b = (stage - self.first for stage in pair)
        if self.wraps and pair[0] > pair[1]:
            b = self.columns[-1][-1]
        found = [next(i for i, c in enumerate(self.columns) if at in c) for at in (a, b)]
        return found[0], found[1]

    def _row(self, number: int) -> int:
        at = self.row_of[number]
        return next(i for i, groups in enumerate(self.rows) if at in groups)

    def _hidden(self, column: int, row: int) -> int:
        """Circuits between stages that one folded column stands for."""
        members = self.rows[row]
        total = 0
        for group in self.found.groups[members.start : members.stop]:
            for a, b, _, circuits in group.lines:
                total += circuits if self._ends((a, b)) == (column, column) else 0
        return total

    def _lines(self, boxes: dict[tuple[int, int], Shape]) -> bool:
        """The links between columns; returns whether some neighbours have none, being in one domain."""
        drawn: dict[tuple[int, int, int, int], int] = {}
        for group in self.found.groups:
            row = self._row(group.number)
            for a, b, kind, circuits in group.lines:
                one, other = self._ends((a, b))
                if one != other:
                    key = (row, one, other, kind)
                    drawn[key] = drawn.get(key, 0) + circuits
        for (row, a, b, kind), circuits in drawn.items():
            self._line(boxes[a, row], boxes[b, row], kind, self._beside(drawn, (row, a, b, kind)), b - a, circuits)
        inside = False
        linked = {(row, a, b) for row, a, b, _ in drawn}
        if len(self.found.parts) > 1:
            for row in range(len(self.rows)):
                for column in range(len(self.columns) - 1 - self.wraps):
                    if (row, column, column + 1) not in linked and self._same_domain(column, row):
                        self.canvas.line(boxes[column, row], boxes[column + 1, row], INSIDE)
                        inside = True
        return inside

    def _beside(self, drawn: dict[tuple[int, int, int, int], int], key: tuple[int, int, int, int]) -> float:
        """How far above the middle a line starts, when several join the same two boxes."""
        together = [k for k in drawn if k[:3] == key[:3]]
        return ((len(together) - 1) / 2 - together.index(key)) * 12

    def _line(self, a: Shape, b: Shape, kind: int, offset: float, distance: int, circuits: int) -> None:
        link = self.found.kinds[kind]
        arrow = link.directions is not Directions.BOTH
        ahead = 1 if distance > 0 else -1
        ends = ((a.x + ahead * a.width / 2, a.y + offset), (b.x - ahead * b.width / 2, b.y + offset))
        bend = 0 if abs(distance) == 1 else 26 * abs(distance)
        backward = link.directions is Directions.BACKWARD
        self.canvas.line(
            a, b, line_style(kind), ends=ends, bend=bend, arrow=arrow, backward=backward, counts={"circuits": circuits}
        )

    def _same_domain(self, column: int, row: int) -> bool:
        if any(len(fold) > 1 for fold in (self.columns[column], self.columns[column + 1], self.rows[row])):
            return False
        group = self.found.groups[self.rows[row][0]]
        a, b = self._stage(column), self._stage(column + 1)
        return group.domains[a] == group.domains[b]
