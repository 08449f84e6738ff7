"""`opusc simulate`: what an iteration takes, and loses to changing circuits."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from opusc import output
from opusc.cli import terminal
from opusc.cli.compiling import Messages, compile_one, reported
from opusc.cli.options import delays, program_options
from opusc.cli.requiring import NOT_CHECKED, decide, waiting
from opusc.cli.tables import labelled, plural, table
from opusc.cli.terminal import UsageError
from opusc.diagnostics import Diagnostics

if TYPE_CHECKING:
    from opusc.model.entities import Job, Requirement
    from opusc.plan.plan import Plan
    from opusc.schedule.estimate import Estimate, Row
    from opusc.schedule.job import Setting

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]

_MS = 10**9
#: What a job that states no policy is held to: it asks nothing of the controller.
_DEFAULT_POLICY = "on_demand"


DESCRIPTION = """\
Simulate one training iteration of a proved plan: what it takes when every
link is there at once, as with packet switches, and what it loses when circuits
change, at each delay of a change. Checks `require overhead < ...` at the
program's own delay and policy. `docs/time-model.md` has every formula."""

EPILOG = """\
examples:
  opusc simulate cluster.opus
  opusc simulate cluster.opus --reconfigure 0,10ms,50ms,100ms -o results
  opusc simulate cluster.opus --policy on_demand,provisioned -D dp=8

columns: `at zero` is the overhead that is there at zero delay, `added` comes
with the delay; `visible` counts the changes on the critical path.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a program; - for standard input")
    parser.add_argument(
        "--reconfigure",
        dest="delays",
        metavar="DELAY[,...]",
        type=delays,
        help="delays of a change, for example 0,10ms,0.5s (default: what the switches say)",
    )
    parser.add_argument(
        "--policy",
        dest="policies",
        metavar="POLICY[,...]",
        type=_policies,
        help="on_demand, provisioned or both (default: what the job says, else both)",
    )
    parser.add_argument(
        "--counting",
        choices=["published", "arithmetic"],
        default="published",
        help="published: a multiply-add is one operation, attention a few passes, an element one byte, as in the "
        "published traces (default); arithmetic: two operations, the square of the sequence, two bytes",
    )
    parser.add_argument(
        "--bytes-per-element",
        metavar="N",
        type=_element,
        help="bytes of an element of every tensor (default: what --counting says)",
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="write a table (CSV) and drawings (SVG) there")
    program_options(parser)


def run(options: argparse.Namespace) -> int:
    return reported(options, _run)


def _run(options: argparse.Namespace, messages: Messages) -> int:
    outcome = compile_one(options.file, options, messages, omit=(NOT_CHECKED,))
    if outcome.compilation is None:
        return outcome.code
    from opusc.driver import guarded
    from opusc.model.requirements import SIMULATED
    from opusc.schedule.estimate import estimate
    from opusc.schedule.job import setting
    from opusc.schedule.policy import ON_DEMAND, PROVISIONED, Policy

    plan, sink = outcome.compilation.plan, Diagnostics()
    pending = waiting(outcome.compilation, SIMULATED, sink)
    arithmetic = options.counting == "arithmetic"
    modelled = setting(plan, sink, options.bytes_per_element or (2 if arithmetic else 1), arithmetic=arithmetic)
    own_policy, own_delay = _own(plan, options, bool(pending), sink)
    if modelled is None or sink.has_errors:
        messages.add(list(sink))
        return 1
    known: Mapping[str, Policy] = {"on_demand": ON_DEMAND, "provisioned": PROVISIONED}
    stated = plan.model.job.policy
    shown = options.policies or ([stated] if stated in known else list(known))
    delays = list(options.delays if options.delays is not None else [own_delay or 0])
    names = list(dict.fromkeys([*shown, *([own_policy] if pending else [])]))
    if pending and own_delay is not None:
        delays.append(own_delay)
    with guarded("schedule", outcome.compilation.source, sink):
        found = estimate(modelled.program, {name: known[name] for name in names}, delays)
    if options.format == "text":
        sys.stdout.write(_report(plan, modelled, found, terminal.width()))
    if pending:
        assert own_delay is not None
        _decide(pending, found.row(own_policy, own_delay), sink, options.format)
    messages.add(list(sink))
    if options.output is not None:
        _write(
            Path(options.output),
            plan,
            modelled,
            found,
            {n: known[n] for n in names},
            max(delays) if own_delay is None else own_delay,
        )
        if options.format == "text":
            files = "overhead.csv, overhead.svg, " + ", ".join(f"timeline-{name}.svg" for name in ["all_links", *names])
            sys.stdout.write(labelled("wrote", f"{options.output}/ {files}", terminal.width()))
    return 1 if sink.has_errors else 0


def _own(plan: "Plan", options: argparse.Namespace, pending: bool, sink: Diagnostics) -> tuple[str, int | None]:
    """The program's own policy and delay, demanded where something depends on them."""
    from opusc.schedule.job import dark

    job: Job = plan.model.job
    policy = job.policy or _DEFAULT_POLICY
    if policy not in ("on_demand", "provisioned") and (pending or not options.policies):
        sink.error(
            "OPUS430",
            f"the time model does not know `policy = {policy}`",
            job.at("policy"),
            help="`on_demand` and `provisioned` are simulated; --policy overrides what the program says",
        )
    wanted = pending or options.delays is None
    return policy, dark(plan, sink) if wanted else None


# --- requirements --------------------------------------------------------------------------------


def _decide(pending: Sequence["Requirement"], row: "Row", sink: Diagnostics, form: str) -> None:
    """Say which requirements held; those that did not become errors with the measured values."""
    from opusc.backends.simulation import fixed

    values = {
        "overhead": row.overhead,
        "iteration_time": Fraction(row.iteration),
        "reconfigurations": Fraction(row.changes),
    }
    parts = f"{fixed(row.at_zero * 100, 3)} % at zero delay, {fixed(row.added * 100, 3)} % from the delay"
    words = {
        "overhead": f"overhead = {fixed(row.overhead * 100, 3)} % ({parts})",
        "iteration_time": f"iteration_time = {fixed(Fraction(row.iteration, _MS), 3)} ms",
        "reconfigurations": f"reconfigurations = {row.changes}",
    }
    where = f"{row.policy}, {_time(row.delay)} a change"
    decide(pending, values, words, where, sink, form)


# --- what is shown and written -------------------------------------------------------------------


def _report(plan: "Plan", modelled: "Setting", found: "Estimate", width: int) -> str:
    from opusc.backends.simulation import fixed

    job, shape, rates = plan.model.job, modelled.shape, modelled.rates
    layers = plural(job.network.layers if job.network else 0, "layer")
    taken = f"{modelled.batches} micro-batches of " if modelled.batches > 1 else ""
    where = f"each of {plural(shape.dp, 'pipeline')}" if job.parallelism.cp == 1 else "a rank"
    what = f"{layers}, {taken}{shape.tokens:,} tokens on {where}"
    out = labelled(job.name[:12], f"{what}; tp {shape.tp}, dp {shape.dp}, pp {job.parallelism.pp}", width)
    links = f"{_rate(rates.scale_up_rate)} inside a domain, {_rate(rates.ring_rate)} to each neighbour of a ring, "
    out += labelled("rates", links + f"{_rate(rates.join_rate)} between stages", width)
    size = plural(shape.element, "byte")
    if shape.context:
        counted = f"{size} an element, a multiply-add as two operations, attention with the square of the sequence"
    else:
        counted = f"{size} an element, a multiply-add as one operation, attention scores as a few passes"
        counted += " (as in the published traces: docs/time-model.md)"
    out += labelled("counted", counted, width)
    if (share := modelled.gpu.efficiency) != 1:
        out += labelled("compute", f"at {fixed(share * 100, 1)} % of the roofline, as the job states", width)
    if modelled.iterations > 1:
        out += labelled("trace", f"{modelled.iterations} iterations, simulated as one", width)
    out += labelled("all links", f"{fixed(Fraction(found.all_links.iteration, _MS), 3)} ms an iteration", width) + "\n"
    head = ("policy", "delay", "iteration", "overhead", "at zero", "added", "changes", "visible")
    rows = [
        (
            row.policy,
            _time(row.delay),
            f"{fixed(Fraction(row.iteration, _MS), 3)} ms",
            *(f"{fixed(ratio * 100, 3)} %" for ratio in (row.overhead, row.at_zero, row.added)),
            str(row.changes),
            str(row.visible),
        )
        for row in found.rows
    ]
    return out + table(head, rows, right=range(1, 8)) + "\n"


def _rate(rate: int) -> str:
    from opusc.backends.simulation import fixed

    return f"{fixed(Fraction(rate, 10**9), 1)} GB/s"


def _time(picoseconds: int) -> str:
    from opusc.backends.simulation import fixed

    text = fixed(Fraction(picoseconds, _MS), 9).rstrip("0").rstrip(".")
    return f"{text} ms"


def _write(
    place: Path,
    plan: "Plan",
    modelled: "Setting",
    found: "Estimate",
    policies: Mapping[str, object],
    delay: int,
) -> None:
    from opusc.backends.simulation import overhead_csv, overhead_svg, timeline_svg
    from opusc.schedule.policy import ALL_LINKS, Policy
    from opusc.schedule.simulation import simulate

    name = plan.model.job.name
    files = {
        "overhead.csv": overhead_csv(found),
        "overhead.svg": overhead_svg(found, f"{name}: overhead over an iteration with all links present"),
    }
    for policy_name, policy in {"all_links": ALL_LINKS, **policies}.items():
        assert isinstance(policy, Policy)
        title = f"{name}: {policy_name}" + ("" if policy is ALL_LINKS else f", {_time(delay)} a change")
        result = simulate(modelled.program, policy, delay, record=True)
        files[f"timeline-{policy_name}.svg"] = timeline_svg(result, title)
    try:
        with output.replacing(place) as staging:
            for file, text in files.items():
                output.inside(staging, file).write_text(text, encoding="utf-8", newline="\n")
            document = output.manifest(
                staging, targets=["simulate"], parameters=plan.model.parameters, sources=plan.model.sources
            )
            text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
            (staging / output.MANIFEST).write_text(text, encoding="utf-8", newline="\n")
    except output.OutputError as error:
        raise UsageError(str(error)) from error


def _policies(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in ("on_demand", "provisioned"):
            raise argparse.ArgumentTypeError(f"`{name}` should be on_demand or provisioned")
    return list(dict.fromkeys(names))


def _element(text: str) -> int:
    if text not in ("1", "2", "4", "8"):
        raise argparse.ArgumentTypeError(f"`{text}` should be 1, 2, 4 or 8")
    return int(text)
