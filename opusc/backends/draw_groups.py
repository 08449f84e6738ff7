"""Groups as circles of domains in rank order, with the links of one step as lines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from opusc.backends.canvas import Canvas, Shape
from opusc.backends.captions import FIRST_FILL, FOLD_FILL, FOLD_STYLE, legend, line_style, title
from opusc.backends.folding import Fold, fold
from opusc.backends.part_links import Lines, View
from opusc.plan.plan import Directions, Plan

__all__ = ["Circles"]


@dataclass(frozen=True)
class _Ring:
    """How the vertices of a group are laid out."""

    places: list[Fold]
    radius: float
    boxes: bool

    chords: bool  # some lines cross the inside

    @classmethod
    def of(cls, group: Lines) -> "_Ring":
        places = fold(group.n, 64, 36, 12)
        chords = group.n == 2 or any((b - a) % group.n not in (1, group.n - 1) for a, b, *_ in group.lines)
        if len(places) <= (8 if chords else 16):
            return cls(places, max(96.0, len(places) * (130 if chords else 100) / (2 * math.pi)), True, chords)
        return cls(places, max(180.0 if chords else 130.0, len(places) * 25 / (2 * math.pi)), False, chords)

    @property
    def labelled(self) -> bool:
        """Whether there is room for the switch ports beside every line."""
        return self.boxes and len(self.places) <= 8 and (len(self.places) == 2 or not self.chords)

    def at(self, index: int) -> tuple[float, float]:
        """Unit vector to a place, clockwise from the top."""
        turn = 2 * math.pi * index / len(self.places)
        return math.sin(turn), math.cos(turn)


class Circles:
    """A few groups beside each other, each a circle of its domains in rank order."""

    def __init__(self, plan: Plan, found: View) -> None:
        self.plan, self.found = plan, found
        self.canvas = Canvas("part")

    def draw(self) -> str:
        groups = self.found.groups
        largest = max(group.n for group in groups)
        shown = groups[: 4 if largest <= 8 else 3 if largest <= 64 else 1]
        rings = [_Ring.of(group) for group in shown]
        reach = max(ring.radius for ring in rings) + 60
        for index, (group, ring) in enumerate(zip(shown, rings, strict=True)):
            centre = (reach + index * (2 * reach + 10), 0.0)
            self._group(group, ring, centre, labelled=len(groups) == 1)
        title(self.canvas, self.plan, self.found, reach + 72)
        hidden = groups[len(shown) :]
        low = -reach - (38 if any(ring.chords for ring in rings) else 10)
        if hidden:
            rest = sum(group.circuits for group in hidden)
            text = (
                f"and {len(hidden):,} more group{'s' * (len(hidden) > 1)} like {'these' if len(shown) > 1 else 'this'}"
            )
            label = f"{text}: {rest:,} circuits"
            width = 20 + 6 * len(label)
            counts = {"circuits": rest}
            self.canvas.box(width / 2, low, width, 24, label, fill=FOLD_FILL, style=FOLD_STYLE, counts=counts)
            low -= 34
        if len(groups) == 1 and rings[0].labelled:
            self.canvas.text(0, low, "numbers beside a line: the switch ports of its circuits, ingress to egress", 10)
            low -= 22
        legend(self.canvas, self.plan, self.found, low)
        return self.canvas.dot()

    def _group(self, group: Lines, ring: _Ring, centre: tuple[float, float], labelled: bool) -> None:
        place_of = {v: index for index, place in enumerate(ring.places) for v in place}
        shapes = [self._vertex(group, ring, index, centre, place_of) for index in range(len(ring.places))]
        what, who = f"{group.n:,} {self.found.unit}s", f"ranks {_brief(group.ranks)}"
        if ring.chords:
            self.canvas.text(centre[0], -ring.radius - 44, f"{what}, {who}", 11, "n")
        else:
            self.canvas.text(*centre, f"{what}\n{who}", 11, "n")
        drawn: dict[tuple[int, int, int], int] = {}
        for a, b, kind, circuits in group.lines:
            at = (place_of[a], place_of[b], kind)
            if at[0] != at[1]:
                drawn[at] = drawn.get(at, 0) + circuits
        bends = _bends(list(drawn), 60 if group.n == 2 else 28)
        few = labelled and ring.labelled
        for (a, b, kind), circuits in drawn.items():
            link = self.found.kinds[kind]
            style, arrow = line_style(kind), link.directions is not Directions.BOTH
            middle = self.canvas.line(
                shapes[a],
                shapes[b],
                style,
                bend=bends[a, b, kind],
                arrow=arrow,
                backward=link.directions is Directions.BACKWARD,
                counts={"circuits": circuits},
            )
            if few and (ports := group.ports.get((a, b, kind))):
                self._ports(centre, middle, ports)

    def _ports(self, centre: tuple[float, float], middle: tuple[float, float], ports: Sequence[str]) -> None:
        """Which switch ports a line joins, outside the circle."""
        dx, dy = middle[0] - centre[0], middle[1] - centre[1]
        length = math.hypot(dx, dy)
        if length < 1:
            return
        reach = 34 + 20 * abs(dx) / length
        self.canvas.text(middle[0] + dx / length * reach, middle[1] + dy / length * reach, "\n".join(ports), 9, "n")

    def _vertex(
        self,
        group: Lines,
        ring: _Ring,
        index: int,
        centre: tuple[float, float],
        place_of: dict[int, int],
    ) -> Shape:
        place = ring.places[index]
        dx, dy = ring.at(index)
        x, y = centre[0] + dx * ring.radius, centre[1] + dy * ring.radius
        if len(place) > 1:
            # Links among folded vertices are drawn nowhere: the fold carries their circuits.
            own = sum(c for a, b, _, c in group.lines if place_of[a] == index == place_of[b])
            label = f"{len(place):,}\nmore"
            return self.canvas.box(
                x, y, 44, 30, label, size=9, fill=FOLD_FILL, style=FOLD_STYLE, counts={"circuits": own}
            )
        first = place[0]
        if ring.boxes:
            label = f"{self.found.unit} {group.units[first]}\nrank {group.ranks[first]}"
            return self.canvas.box(x, y, 72, 34, label, size=10, fill=FIRST_FILL if first == 0 else "white")
        outside = ring.radius + 19
        self.canvas.text(centre[0] + dx * outside, centre[1] + dy * outside, str(group.units[first]), 9, "n")
        return self.canvas.disc(x, y, 12, "#0072B2" if first == 0 else "white")


def _bends(lines: list[tuple[int, int, int]], apart: float) -> dict[tuple[int, int, int], float]:
    """Lines between the same two places lie side by side."""
    pairs: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for line in lines:
        pairs.setdefault((min(line[:2]), max(line[:2])), []).append(line)
    found = {}
    for (low, _), together in pairs.items():
        for index, line in enumerate(together):
            bend = (index - (len(together) - 1) / 2) * apart
            found[line] = bend if line[0] == low else -bend
    return found


def _brief(ranks: Sequence[int]) -> str:
    shown = list(ranks)
    return ", ".join(map(str, shown)) if len(shown) <= 4 else f"{shown[0]}, {shown[1]}, ..., {shown[-1]}"
