"""Target `graphviz`: the fabric, and one representative part of each phase, as DOT text and, where Graphviz'
programs are installed, SVG.

Any other part can be drawn with `part` (the `graph` command). Drawings fold what is long, so they stay legible
at any size; each carries counts that must add up to those of the plan.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from opusc.backends.base import Options
from opusc.backends.canvas import counts_in, has_graphviz, render
from opusc.backends.draw_fabric import fabric_counts, fabric_dot
from opusc.backends.draw_part import part_counts, part_dot, view
from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan

__all__ = ["BACKEND", "Drawing", "Graphviz", "fabric", "has_graphviz", "part", "render"]

_NOTE = (
    "no SVG: no Graphviz that draws it (get it with `apt install graphviz`, `brew install graphviz`, or graphviz.org); "
    "`dot -Tsvg FILE.dot` draws the DOT files later"
)
_NAMES = ("cables", "circuits", "gpus", "switches")


def fabric(plan: Plan) -> str:
    """The fabric as DOT text."""
    return fabric_dot(plan)


def part(
    plan: Plan, phase: str, stage: int | None = None, step: int | None = None, rail: int | None = None
) -> str | None:
    """The circuits of a phase on one rail as DOT text: the first stage (all joins), step and rail where not said.

    None when there is no phase of this name or it has no such circuits.
    """
    found = view(plan, phase, stage, step, rail)
    return None if found is None else part_dot(plan, found)


@dataclass(frozen=True)
class Drawing:
    """How much a drawing accounts for, whatever it folds together."""

    title: str
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Graphviz:
    name: str = "graphviz"
    summary: str = "drawings of the fabric and of a part of each phase: DOT text, and SVG where Graphviz is installed"

    def check(self, plan: Plan, options: Options, sink: Diagnostics) -> None:
        """Every plan can be drawn."""

    def write(self, plan: Plan, options: Options) -> Iterator[tuple[str, Iterable[bytes]]]:
        svg = options.svg and has_graphviz()
        drawings = [("fabric", fabric_dot(plan))]
        for phase in plan.phases:
            if (found := view(plan, phase.name)) is not None:
                drawings.append((f"phase-{phase.name}", part_dot(plan, found)))
        for name, text in drawings:
            yield f"{name}.dot", [text.encode()]
            if svg:
                yield f"{name}.svg", [render(text, "svg")]

    def project(self, plan: Plan) -> Iterator[Drawing]:
        yield _drawing("fabric.dot", fabric_counts(plan))
        for name in sorted(phase.name for phase in plan.phases):
            if (found := view(plan, name)) is not None:
                yield _drawing(f"phase-{name}.dot", part_counts(found))

    def read(self, directory: Path) -> Iterator[Drawing]:
        """Counts of the DOT files; SVG is made from them by Graphviz."""
        phases = sorted(directory.glob("phase-*.dot"), key=lambda path: path.name.removesuffix(".dot"))
        for path in (directory / "fabric.dot", *phases):
            yield _drawing(path.name, counts_in(path.read_text(encoding="utf-8"), _NAMES))

    def faults(self, plan: Plan, statement: object) -> Iterator[str]:
        return iter(())

    def note(self, options: Options) -> str:
        return _NOTE if options.svg and not has_graphviz() else ""


def _drawing(title: str, counts: Mapping[str, int]) -> Drawing:
    return Drawing(title, {name: count for name in _NAMES if (count := counts.get(name, 0))})


BACKEND = Graphviz()
