"""What one point of a sweep is: its plan in numbers, its iteration under each policy, its power and price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opusc.diagnostics import CompileError, Diagnostics
from opusc.sweep.points import Point

if TYPE_CHECKING:
    from opusc.plan.plan import Plan
    from opusc.schedule.estimate import Row
    from opusc.schedule.variants import Variant

__all__ = ["COLUMNS", "Cell", "Record", "Task", "measure"]

Cell = int | str | None
#: One line of the results: cells by the name of their column.
Record = dict[str, Cell]

#: Columns after those of the parameters, with their type and meaning. An empty cell: not known, and a code says why.
COLUMNS: tuple[tuple[str, type, str], ...] = (
    ("status", str, "ok, or refused: then `code` and `message` say why"),
    ("code", str, "first error of the program at this point"),
    ("message", str, "its message"),
    ("gpus", int, "GPUs of the cluster"),
    ("ranks", int, "ranks of the job"),
    ("switches", int, "optical switches"),
    ("radix", int, "positions of the largest switch"),
    ("positions", int, "positions used on the switch with most"),
    ("parts", int, "parts of the plan"),
    ("circuits", int, "circuits of all parts"),
    ("time_code", str, "why there is no iteration time"),
    ("policy", str, "policy of this line"),
    ("delay_ps", int, "time of a change, ps"),
    ("all_links_ps", int, "iteration with every link present, ps"),
    ("iteration_ps", int, "iteration, ps"),
    ("overhead_ppb", int, "iteration over that with every link present, parts per billion more"),
    ("overhead_zero_ppb", int, "the part of it that is there at zero delay"),
    ("changes", int, "changes of circuits an iteration"),
    ("visible", int, "changes on the critical path"),
    ("cost_code", str, "why there is no power and price"),
    *(
        (f"{fabric}_{what}", int, f"{name}, in whole chassis: {text}")
        for fabric, name in (("photonic", "photonic rails"), ("packet_rails", "packet rails"), ("fat_tree", "fat tree"))
        for what, text in (("power_mw", "power, mW"), ("cost_cents", "price, US cents"))
    ),
)


@dataclass(frozen=True)
class Task:
    """A point of a sweep, as it is sent to whoever measures it. Paths are those of the worker."""

    path: str
    root: str
    settings: Mapping[str, str]  # values that all points share
    point: Point
    policies: tuple[str, ...]  # none: the job's own, else on_demand
    delays: tuple[int, ...]  # ps; none: the program's own


def measure(task: Task) -> list[Record]:
    """The records of a point: one for each policy and delay, or one that says why there is none."""
    from opusc.driver import compile_source, read

    try:
        source = read(Path(task.path))
        # A point that breaks a requirement on a result is measured too: the results say how far it is off.
        plan = compile_source(
            source, Path(task.root), {**task.settings, **task.point}, choosing=False, deciding=False
        ).plan
    except CompileError as error:
        first = error.diagnostics.errors[0]
        return [{"status": "refused", "code": first.code, "message": first.message}]
    base: Record = {"status": "ok", **_sizes(plan), **_cost(plan)}
    sink = Diagnostics()
    rows = _rows(plan, task.policies, task.delays, sink)
    if not rows:
        return [base | {"time_code": sink.errors[0].code if sink.errors else ""}]
    return [base | row for row in rows]


def _sizes(plan: "Plan") -> Record:
    return {
        "gpus": plan.model.cluster.gpu_count,
        "ranks": plan.world,
        "switches": len(plan.switches),
        "radix": max(switch.kind.radix for switch in plan.switches),
        "positions": max(switch.positions_used for switch in plan.switches),
        "parts": len(plan.parts),
        "circuits": len(plan.circuits),
    }


def _cost(plan: "Plan") -> Record:
    from opusc.schedule.cost import compare, figures

    sink = Diagnostics()
    known = figures(plan.model.fabric, sink)
    if known is None:
        return {"cost_code": sink.errors[0].code if sink.errors else ""}
    found: Record = {}
    for name, whole in zip(("photonic", "packet_rails", "fat_tree"), compare(plan, known).whole, strict=True):
        if whole is not None:
            found |= {f"{name}_power_mw": round(whole.power), f"{name}_cost_cents": round(whole.cost)}
    return found


def _rows(plan: "Plan", policies: Sequence[str], delays: Sequence[int], sink: Diagnostics) -> list[Record]:
    """The iteration under each policy at each delay; none where the sink says what is missing."""
    from opusc.schedule.estimate import POLICIES, estimate_plan
    from opusc.schedule.job import dark
    from opusc.schedule.variants import TurnsTooSlowlyError, variant_of

    variant = variant_of(plan, sink)
    own = None if delays or not len(plan.exclusions) else dark(plan, sink)
    if variant is None or sink.has_errors:
        return []
    stated = plan.model.job.policy
    names = list(policies) or [stated if stated is not None and stated in POLICIES else "on_demand"]
    static = _static(variant) if "static" in names else None
    if "static" in names and static is None:
        names.remove("static")
    wanted = list(delays) or [own or 0]
    try:
        found = estimate_plan(variant, names, wanted, static)
    except TurnsTooSlowlyError as error:
        error.explain(plan.model.job, sink)
        return []
    return [_record(found.row(name, delay), found.all_links.iteration) for name in names for delay in wanted]


def _static(variant: "Variant") -> "Variant | None":
    from opusc.schedule.variants import packed

    made = variant if variant.fixed else packed(variant, {}, static=True)
    return None if isinstance(made, tuple) else made


def _record(row: "Row", links: int) -> Record:
    return {
        "policy": row.policy,
        "delay_ps": row.delay,
        "all_links_ps": links,
        "iteration_ps": row.iteration,
        "overhead_ppb": round(row.overhead * 10**9),
        "overhead_zero_ppb": round(row.at_zero * 10**9),
        "changes": row.changes,
        "visible": row.visible,
    }
