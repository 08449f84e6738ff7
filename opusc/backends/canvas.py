"""Drawings with positions of our own, as DOT text, and SVG or PNG of them where Graphviz is installed.

Units are points, y upwards. Nodes and edges carry counts in attributes that Graphviz ignores (`circuits`,
`cables`, ...), so that a drawing can be checked against the plan whatever it folds together.
"""

import functools
import html
import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["DARK", "GREY", "STYLES", "Canvas", "Shape", "Style", "counts_in", "has_graphviz", "render"]

_FONT = "Helvetica,Arial,sans-serif"

DARK = "#1a1a1a"
GREY = "#8c8c8c"


@dataclass(frozen=True, slots=True)
class Style:
    """A kind of line that stays apart from the others in black and white, and for colour-blind eyes."""

    colour: str
    pattern: str
    width: float


#: Okabe and Ito's colours (Color Universal Design, 2008), each with a pattern of its own.
STYLES = (
    Style("#0072B2", "solid", 1.8),
    Style("#D55E00", "dashed", 1.8),
    Style("#000000", "dotted", 2.4),
    Style("#009E73", "solid", 3.4),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A node on the canvas, for lines to end at its border."""

    name: str
    x: float
    y: float
    width: float
    height: float
    round: bool

    def border(self, x: float, y: float) -> tuple[float, float]:
        """Where a line from the centre towards (x, y) leaves the shape."""
        dx, dy = x - self.x, y - self.y
        length = math.hypot(dx, dy) or 1.0
        if self.round:
            reach = self.width / 2 / length
        else:
            reach = min(
                self.width / 2 / abs(dx) if dx else math.inf,
                self.height / 2 / abs(dy) if dy else math.inf,
            )
        return self.x + dx * reach, self.y + dy * reach


class Canvas:
    def __init__(self, name: str) -> None:
        from graphviz import Digraph

        self._graph = Digraph(name)
        self._count = 0
        self._graph.attr("node", fontname=_FONT, fixedsize="true", margin="0", color=DARK, fontcolor=DARK)
        self._graph.attr("edge", fontname=_FONT, fontcolor=DARK, arrowsize="0.7")

    def text(self, x: float, y: float, lines: str, size: float = 11, align: str = "l", bold: bool = False) -> None:
        """Text at (x, y): its left end (`l`), its middle (`n`) or its right end (`r`), middle of its height."""
        rows = lines.split("\n")
        width, height = max(map(len, rows)) * size * (0.62 if bold else 0.56) + 4, len(rows) * size * 1.25
        centre = {"l": x + width / 2, "n": x, "r": x - width / 2}[align]
        look = {"shape": "none", "fontsize": f"{size:g}"}
        if bold:
            marked = "<BR/>".join(html.escape(_printable(row)) for row in rows)
            marked = f"<B>{marked}</B>"
            if align != "n":
                # Only a table keeps text at the left or right end of its place.
                side = {"l": "LEFT", "r": "RIGHT"}[align]
                cell = f'<TR><TD ALIGN="{side}" BALIGN="{side}">{marked}</TD></TR>'
                marked = f'<TABLE BORDER="0" CELLPADDING="0" CELLSPACING="0" WIDTH="{width:.0f}">{cell}</TABLE>'
            self._node(centre, y, width, height, f"<{marked}>", look)
        else:
            label = "".join(_escape(row) + {"l": "\\l", "n": "\\n", "r": "\\r"}[align] for row in rows)
            self._node(centre, y, width, height, _plain(label), look)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        label: str = "",
        *,
        size: float = 10,
        fill: str = "white",
        line: str = DARK,
        style: str = "filled,rounded",
        top: bool = False,
        counts: Mapping[str, int] | None = None,
    ) -> Shape:
        """A rectangle around (x, y). `top` puts the label at its upper edge."""
        look = {"shape": "box", "style": style, "fillcolor": fill, "color": line, "fontsize": f"{size:g}"}
        if top:
            look["labelloc"] = "t"
        return self._node(x, y, width, height, _label(label), look, counts)

    def disc(self, x: float, y: float, diameter: float, fill: str, counts: Mapping[str, int] | None = None) -> Shape:
        look = {"shape": "circle", "style": "filled", "fillcolor": fill, "fontsize": "8"}
        return self._node(x, y, diameter, diameter, "", look, counts)

    def line(
        self,
        a: Shape,
        b: Shape,
        style: Style,
        *,
        bend: float = 0,
        ends: tuple[tuple[float, float], tuple[float, float]] | None = None,
        arrow: bool = False,
        backward: bool = False,
        counts: Mapping[str, int] | None = None,
    ) -> tuple[float, float]:
        """A line between two shapes, `bend` points to the left of straight in its middle; returns that middle.

        `ends` fixes where it starts and stops; otherwise it goes from border to border. An arrow points to `b`, or
        `backward` to `a`.
        """
        if backward:
            a, b, bend, ends = b, a, -bend, ends and (ends[1], ends[0])
        (ax, ay), (bx, by) = ends or ((a.x, a.y), (b.x, b.y))
        length = math.hypot(bx - ax, by - ay) or 1.0
        # A cubic's middle is 3/4 of the way to its two control points.
        nx, ny = -(by - ay) / length * bend * 4 / 3, (bx - ax) / length * bend * 4 / 3
        first = (ax + (bx - ax) / 3 + nx, ay + (by - ay) / 3 + ny)
        second = (ax + (bx - ax) * 2 / 3 + nx, ay + (by - ay) * 2 / 3 + ny)
        start, tip = ((ax, ay), (bx, by)) if ends else (a.border(*first), b.border(*second))
        look = {"color": style.colour, "style": style.pattern, "penwidth": f"{style.width:g}", "dir": "none"}
        stop, arrowhead = tip, ""
        if arrow:
            # The curve stops where the arrowhead begins.
            back = math.hypot(tip[0] - second[0], tip[1] - second[1]) or 1.0
            stop = tip[0] - (tip[0] - second[0]) / back * 7, tip[1] - (tip[1] - second[1]) / back * 7
            arrowhead = f"e,{tip[0]:.1f},{tip[1]:.1f} "
            look["dir"] = "forward"
        points = arrowhead + " ".join(f"{x:.1f},{y:.1f}" for x, y in (start, first, second, stop))
        self._graph.edge(a.name, b.name, pos=points, **look, **_counts(counts))
        middle = [(start[i] + stop[i] + 3 * first[i] + 3 * second[i]) / 8 for i in (0, 1)]
        return middle[0], middle[1]

    def sample(self, x: float, y: float, style: Style, text: str, arrow: bool = False) -> None:
        """A line of the legend."""
        a, b = (self._node(at, y, 1, 1, "", {"shape": "none"}) for at in (x, x + 36))
        self.line(a, b, style, ends=((x, y), (x + 36, y)), arrow=arrow)
        self.text(x + 44, y, text, 10)

    def dot(self) -> str:
        """The drawing as DOT text. `layout = nop2` keeps every position, whichever Graphviz program draws it."""
        self._graph.attr(layout="nop2", bgcolor="white", outputorder="nodesfirst", pad="0.35")
        text: str = self._graph.source
        return text if text.endswith("\n") else text + "\n"

    def _node(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        label: str,
        look: Mapping[str, str],
        counts: Mapping[str, int] | None = None,
    ) -> Shape:
        name = f"n{self._count}"
        self._count += 1
        size = {"width": f"{width / 72:.4f}", "height": f"{height / 72:.4f}"}
        self._graph.node(name, label, pos=f"{x:.1f},{y:.1f}", **size, **look, **_counts(counts))
        return Shape(name, x, y, width, height, look["shape"] == "circle")


def _counts(counts: Mapping[str, int] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (counts or {}).items()}


def _printable(text: str) -> str:
    return "".join(c for c in text if c.isprintable())


def _escape(text: str) -> str:
    """Text with nothing in it that Graphviz' labels would interpret."""
    return _printable(text).replace("\\", "\\\\")


def _plain(label: str) -> str:
    """A label that is not taken as HTML, whatever it begins with."""
    from graphviz import nohtml

    plain: str = nohtml(label)
    return plain


def _label(text: str) -> str:
    return _plain("\\n".join(map(_escape, text.split("\n"))))


def counts_in(dot: str, names: tuple[str, ...]) -> dict[str, int]:
    """The sums of count attributes over all nodes and edges of a DOT text that a `Canvas` wrote."""
    # Labels must not imitate attributes: take out those with markup, then all that is quoted.
    bare = re.sub(r"label=<.*</(?:TABLE|B)>>", "", dot)
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', bare)
    return {name: sum(map(int, re.findall(rf"[\s\[]{name}=(\d+)", bare))) for name in names}


def has_graphviz() -> bool:
    """Whether Graphviz' `dot` program is installed and keeps given positions."""
    path = shutil.which("dot")
    return path is not None and _draws(path)


@functools.cache
def _draws(path: str) -> bool:
    """Some installations have `dot` without the plug-ins for given positions, or for SVG."""
    from graphviz import CalledProcessError

    try:
        return b"<svg" in render('graph { layout=nop2; a [pos="0,0"] }', "svg")
    except (CalledProcessError, OSError):
        return False


def render(dot: str, form: str) -> bytes:
    """The drawing as `svg` or `png`. Raises `graphviz.ExecutableNotFound` without Graphviz' programs."""
    from graphviz import Source

    source: Any = Source(dot)
    drawn: bytes = source.pipe(format=form, engine="dot", quiet=True)
    return drawn
