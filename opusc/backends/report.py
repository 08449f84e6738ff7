"""The target `report`: one HTML page that needs nothing else, for people.

    report.html     the fabric and what each phase joins, the time of an iteration, cost and power, what was proved

Style, script, drawings and data are all in the page; it asks the network for nothing. Where there is no time model or
no price for the job, the page says why.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from opusc.backends.base import Options, Unreadable
from opusc.backends.report_data import data_of
from opusc.backends.simulation import fixed, overhead_svg, timeline_svg
from opusc.backends.validate import one_to_one
from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan, PlannedPhase

__all__ = ["BACKEND", "Page"]

_FILE = "report.html"
_PARTS = Path(__file__).parent / "page"
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
_MS = 10**9
_FABRICS = ("photonic rails", "packet-switched rails", "packet-switched fat tree")
#: Delays that the chart shows beside the program's own (ps).
_DELAYS = (0, 10 * _MS, 50 * _MS, 100 * _MS)


@dataclass(frozen=True)
class Page:
    """The data of the page, as it is embedded."""

    title: str
    data: Any


class _Target:
    name = "report"
    summary = "one HTML page for people: the fabric, its phases, an iteration, cost, what was proved"

    def check(self, plan: Plan, options: Options, sink: Diagnostics) -> None:
        """Any plan can be shown."""

    def write(self, plan: Plan, options: Options) -> Iterator[tuple[str, Iterable[bytes]]]:
        yield _FILE, (_page(plan).encode(),)

    def project(self, plan: Plan) -> Iterator[Page]:
        yield Page(_FILE, data_of(plan))

    def read(self, directory: Path) -> Iterator[Page]:
        try:
            text = (directory / _FILE).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise Unreadable(f"{_FILE}: {error}") from error
        found = _DATA.search(text)
        if found is None:
            raise Unreadable(f"{_FILE}: it has no data")
        try:
            yield Page(_FILE, json.loads(found[1]))
        except ValueError as error:
            raise Unreadable(f"{_FILE}: {error}") from error

    def faults(self, plan: Plan, statement: object) -> Iterator[str]:
        """One-to-one, part by part."""
        assert isinstance(statement, Page)
        circuits = {name: np.array(column, dtype=np.int64) for name, column in statement.data["circuits"].items()}
        for part in sorted(set(circuits["part"].tolist())):
            rows = circuits["part"] == part
            if (what := one_to_one(*(circuits[name][rows] for name in ("ingress", "egress", "switch")))) is not None:
                yield f"part {statement.data['part_names'][part]}: {what}"

    def note(self, options: Options) -> str:
        return ""


# --- the page ------------------------------------------------------------------------------------


def _page(plan: Plan) -> str:
    job, cluster = plan.model.job, plan.model.cluster
    title = f"{job.name} on {job.fabric.name}"
    p = job.parallelism
    every = (("tp", p.tp), ("cp", p.cp), ("dp", p.dp), ("pp", p.pp), ("ep", p.ep))
    degrees = ", ".join(f"{name} {value}" for name, value in every if value > 1)
    rails = len(job.fabric.rails)
    subtitle = (
        f"{cluster.gpu_count:,} GPUs in {cluster.node_count:,} nodes of {cluster.gpus_per_node}, {rails:,} rails, "
        f"{len(plan.switches):,} optical switches; {degrees or 'one rank'}"
    )
    values = {
        "TITLE": escape(title),
        "SUBTITLE": escape(subtitle),
        "STYLE": (_PARTS / "report.css").read_text(encoding="utf-8"),
        "PHASES": _phases(plan),
        "SWITCHES": _switches(plan),
        "TIME": _time(plan),
        "COST": _cost(plan),
        "PROOF": _proof(plan),
        "DATA": _embedded(data_of(plan)),
        "SCRIPT": (_PARTS / "report.js").read_text(encoding="utf-8"),
    }
    text = (_PARTS / "report.html").read_text(encoding="utf-8")
    return re.sub(r"%([A-Z]+)%", lambda match: values[match[1]], text)


def _embedded(data: Any) -> str:
    """JSON that cannot end its element, whatever the names in it are."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = (), links: bool = False) -> str:
    """Cells are text. With `links` the first cell of each row chooses the phase of that number."""
    right = set(numbers)
    kind = [' class="n"' if at in right else "" for at in range(len(head))]
    out = ['<div class="wide"><table><thead><tr>']
    out += [f"<th{k}>{escape(name)}</th>" for k, name in zip(kind, head, strict=True)]
    out.append("</tr></thead><tbody>")
    for number, row in enumerate(rows):
        cells = [escape(cell) for cell in row]
        if links:
            cells[0] = f'<a href="#fabric" data-phase="{number}">{cells[0]}</a>'
        out.append("<tr>" + "".join(f"<td{k}>{cell}</td>" for k, cell in zip(kind, cells, strict=True)) + "</tr>")
    return "".join([*out, "</tbody></table></div>"])


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _phases(plan: Plan) -> str:
    rows = []
    for phase in plan.phases:
        parts = [part.index for part in plan.parts if part.phase == phase.index]
        circuits = sum(plan.rows(part).stop - plan.rows(part).start for part in parts)
        inside = not phase.instances
        rows.append(
            (
                phase.name,
                " * ".join(phase.spec.axes),
                "inside the domains" if inside else _topology(phase),
                str(phase.spec.traffic).replace("_", " "),
                f"{phase.group_count:,}",
                "-" if inside else f"{len(parts):,}",
                "-" if inside else f"{circuits:,}",
            )
        )
    head = ("phase", "over", "topology", "traffic", "groups", "parts", "circuits")
    out = _table(head, rows, range(4, 7), links=True)
    return out + "".join(_paragraph(f"Assumed: {text}.") for text in plan.assumptions)


def _topology(phase: PlannedPhase) -> str:
    spec = phase.spec.topology
    return spec.name + (f" {' x '.join(map(str, spec.dims))}" if spec.dims else "")


def _switches(plan: Plan) -> str:
    shown = [
        (s.name, s.kind.name, f"{s.positions_used:,}", f"{s.kind.radix:,}", s.kind.address or "")
        for s in plan.switches[:64]
    ]
    out = _table(("switch", "kind", "positions used", "of", "address"), shown, (2, 3))
    more = len(plan.switches) - len(shown)
    return out + (_paragraph(f"{more:,} more switches.") if more else "")


def _because(what: str, sink: Diagnostics) -> str:
    """Why a part of the page is missing."""
    reasons = "".join(f"<li>{escape(d.message)}</li>" for d in sink.errors)
    return _paragraph(what) + f"<ul>{reasons}</ul>"


def _time(plan: Plan) -> str:
    from opusc.schedule.estimate import POLICIES, estimate_plan, recorded
    from opusc.schedule.job import dark
    from opusc.schedule.variants import TurnsTooSlowlyError, variant_of

    sink = Diagnostics()
    variant = variant_of(plan, sink)
    own = (dark(plan, sink) if len(plan.exclusions) else 0) if variant is not None else None
    if variant is None or own is None:
        return _because("There is no estimate of an iteration:", sink)
    stated = plan.model.job.policy
    policy = stated if stated is not None and stated in POLICIES and stated != "static" else "on_demand"
    delays = (own,) if policy == "auto" else tuple(sorted({*_DELAYS, own}))
    try:
        found = estimate_plan(variant, [policy], delays)
    except TurnsTooSlowlyError as error:
        error.explain(plan.model.job, sink)
        return _because("There is no estimate of an iteration:", sink)
    rows = [
        (
            *(f"{_ms(time)} ms" for time in (row.delay, row.iteration)),
            *(f"{fixed(ratio * 100, 3)} %" for ratio in (row.overhead, row.at_zero, row.added)),
            *(f"{number:,}" for number in (row.changes, row.visible)),
        )
        for row in found.rows
    ]
    title = f"{plan.model.job.name}: overhead over an iteration with all links present"
    out = _paragraph(
        f"An iteration takes {_ms(found.all_links.iteration)} ms with every link present. Policy {policy}; the "
        f"program's switches take {_ms(own)} ms for a change."
    )
    head = ("delay", "iteration", "overhead", "at zero delay", "from the delay", "changes", "on the critical path")
    out += _table(head, rows, range(7))
    out += f"<figure>{_inline(overhead_svg(found, title))}</figure>"
    result = recorded(variant, policy, own, found)
    title = f"{policy}, {_ms(own)} ms a change: what each stage does"
    return out + f"<figure>{_inline(timeline_svg(result, title))}</figure>"


def _ms(picoseconds: int) -> str:
    text = fixed(Fraction(picoseconds, _MS), 3)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _inline(svg: str) -> str:
    return svg[svg.index("<svg") :]


def _cost(plan: Plan) -> str:
    from opusc.schedule.cost import compare, figures

    sink = Diagnostics()
    known = figures(plan.model.fabric, sink)
    if known is None:
        return _because("There is no comparison of cost and power:", sink)
    found = compare(plan, known)
    rows: list[tuple[str, ...]] = []
    for counting, fabrics in (("ports, as published", found.published), ("whole chassis", found.whole)):
        first = fabrics[0]
        for name, one in zip(_FABRICS, fabrics, strict=True):
            if one is None:
                rows.append((counting, name, "-", "-", "-", "-", "-"))
                continue
            rows.append(
                (
                    counting,
                    name,
                    f"{one.ports:,}",
                    fixed(one.power / 1000, 0),
                    fixed(one.power / first.power, 2),
                    fixed(one.cost / 100, 0),
                    fixed(one.cost / first.cost, 2),
                )
            )
    return _table(("counted", "fabric", "ports", "W", "ratio", "USD", "ratio"), rows, range(2, 7))


def _proof(plan: Plan) -> str:
    """The obligations anew: what holds is derived from the plan, not remembered."""
    from opusc.verify import Method, first_opinion, second_opinion

    how = {
        Method.SYMBOLIC: "formula, by Z3, for all ranks at once",
        Method.COMPARED: "row by row, against the formula",
        Method.PER_SWITCH: "by Z3, for this switch",
        Method.CHECKED: "by a checker that shares no code with the others",
    }
    held = (*first_opinion(plan)[0], *second_opinion(plan)[0])
    rows = [(one.name, how[one.method], f"{one.count:,}") for one in held]
    out = _paragraph(f"{len(rows):,} statements hold; a plan of which one does not is never written.")
    required = [(r.text, "holds" if r.checked else f"needs {', '.join(r.needs)}") for r in plan.model.requirements]
    if required:
        out += _table(("required", ""), required)
    return out + f"<details><summary>All of them</summary>{_table(('statement', 'how', 'of'), rows, (2,))}</details>"


BACKEND = _Target()
