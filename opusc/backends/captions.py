"""What the drawings of a phase have in common: title, legend, colours."""

from opusc.backends.canvas import GREY, STYLES, Canvas, Style
from opusc.backends.part_links import View
from opusc.model.entities import Optics
from opusc.plan.plan import Directions, Plan, Scoping
from opusc.plan.ranks import grid_of

__all__ = ["FIRST_FILL", "FOLD_FILL", "FOLD_STYLE", "INSIDE", "legend", "line_style", "title"]

INSIDE = Style(GREY, "dotted", 1.4)
FIRST_FILL, FOLD_FILL, FOLD_STYLE = "#cfe3f1", "#f0f0f0", "filled,rounded,dashed"


def title(canvas: Canvas, plan: Plan, found: View, top: float) -> None:
    """Phase, topology, stages, step, rail and counts, downwards from `top`."""
    phase, spec = found.phase, found.phase.spec
    dims = " " + " x ".join(map(str, spec.topology.dims)) if spec.topology.dims else ""
    sizes = {axis.name: axis.size for axis in grid_of(plan.model.job, spec.axes).axes}
    axes = [axis for axis in spec.axes if sizes.get(axis, 1) > 1]
    canvas.text(0, top, f"Phase {phase.name}: {spec.topology.name}{dims} over {' and '.join(axes)}", 20, bold=True)
    pp = plan.model.job.parallelism.pp
    where = []
    if phase.scoping is Scoping.STAGE:
        where.append(f"stage {found.stages[0]} of 0..{pp - 1}" if pp > 1 else "the only stage")
    elif phase.scoping is Scoping.JOIN:
        low, high = (f(s for p in found.parts for s in phase.scopes[p.scope]) for f in (min, max))
        where.append("all stages" if (low, high) == (0, pp - 1) else f"stages {low}..{high} of 0..{pp - 1}")
    else:
        where.append("the whole job")
    where.append(f"step {found.parts[0].step} of 0..{phase.step_count - 1}" if phase.step_count > 1 else "one step")
    rails = len(plan.model.fabric.rails)
    where.append(f"rail {found.rail} of 0..{rails - 1}" if rails > 1 else "the only rail")
    canvas.text(0, top - 27, ", ".join(where), 13)
    names = ", ".join(part.name for part in found.parts[:6]) + (", ..." if len(found.parts) > 6 else "")
    here = f"{found.circuits:,} circuits on this rail" if found.circuits != 1 else "1 circuit on this rail"
    word = "part" if len(found.parts) == 1 else "parts"
    canvas.text(0, top - 48, f"{word} {names}: {here}, {found.everywhere:,} on all rails", 11)


def legend(canvas: Canvas, plan: Plan, found: View, y: float, *, inside: bool = False) -> None:
    """What each kind of line is: the ports that it uses and the circuits that it stands for."""
    bidi = plan.model.cluster.rail_nic.optics is Optics.BIDI
    for index, link in enumerate(found.kinds):
        way = "both ways" if link.directions is Directions.BOTH else "one way"
        count = 2 if link.directions is Directions.BOTH and not bidi else 1
        text = f"NIC port {link.out_port} to NIC port {link.in_port}, {way}: {count} circuit{'s' * (count > 1)}"
        if len({other.copy for other in found.kinds}) > 1:
            text += f" (copy {link.copy})"
        canvas.sample(0, y, line_style(index), text, link.directions is not Directions.BOTH)
        y -= 20
    if inside:
        canvas.sample(0, y, INSIDE, "inside a scale-up domain: no circuit")


def line_style(index: int) -> Style:
    """The style of a kind of line."""
    return STYLES[index % len(STYLES)]
