"""`opusc simulate`: what an iteration takes, and loses to changing circuits."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from opusc import output
from opusc.cli import choosing, terminal
from opusc.cli.compiling import Messages, compile_one, reported
from opusc.cli.options import delays, policies, program_options
from opusc.cli.requiring import NOT_CHECKED, decide, waiting
from opusc.cli.tables import labelled, plural, table
from opusc.cli.terminal import UsageError
from opusc.diagnostics import Diagnostics

if TYPE_CHECKING:
    from opusc.model.entities import Requirement
    from opusc.plan.plan import Plan
    from opusc.schedule.estimate import Estimate, Row
    from opusc.schedule.job import Setting
    from opusc.schedule.variants import Variant
    from opusc.verify.report import Obligation

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]

_MS = 10**9


DESCRIPTION = """\
Simulate one training iteration of a proved plan: what it takes when every
link is there at once, as with packet switches, and what it loses when circuits
change, at each delay of a change. Checks `require overhead < ...` at the
program's own delay and policy. `docs/time-model.md` has every formula."""

EPILOG = """\
examples:
  opusc simulate cluster.opus
  opusc simulate cluster.opus --reconfigure 0,10ms,50ms,100ms -o results
  opusc simulate cluster.opus --policy provisioned,auto -D dp=8

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
        type=policies,
        help="on_demand, provisioned, static (everything packed), auto (the best of all, with reasons), or several "
        "(default: what the job says, else the first two)",
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
    outcome = compile_one(options.file, options, messages, omit=(NOT_CHECKED,), choosing=False)
    if outcome.compilation is None:
        return outcome.code
    from opusc.driver import guarded
    from opusc.model.requirements import SIMULATED
    from opusc.schedule.estimate import POLICIES
    from opusc.schedule.iterations import DEFAULT_POLICY
    from opusc.schedule.variants import variant_of

    plan, sink = outcome.compilation.plan, Diagnostics()
    pending = waiting(outcome.compilation, SIMULATED, sink)
    variant = variant_of(plan, sink, partial(_setting, options))
    stated, delay = plan.model.job.policy, _own_delay(plan, sink) if pending or options.delays is None else None
    shown = options.policies or ([stated] if stated in POLICIES else ["on_demand", "provisioned"])
    own = stated or DEFAULT_POLICY
    names = list(dict.fromkeys([*shown, *([own] if pending else [])]))
    static = _static(variant, sink) if variant is not None and "static" in names else None
    if variant is None or sink.has_errors:
        messages.add(list(sink))
        return 1
    delays = list(options.delays if options.delays is not None else [delay or 0])
    if pending and delay is not None:
        delays.append(delay)
    with guarded("schedule", outcome.compilation.source, sink):
        made = _results(variant, names, delays, static, sink)
    if made is None:
        messages.add(list(sink))
        return 1
    found = made.estimate
    if options.format == "text":
        sys.stdout.write(_report(plan, variant.setting, found, terminal.width()))
        for at in sorted({*delays} & found.choices.keys()):
            sys.stdout.write(choosing.shown(found.choices[at], made.proved[at], terminal.width()))
    if pending:
        assert delay is not None
        _decide(pending, found.row(own, delay), sink, options.format)
    messages.add(list(sink))
    if options.output is not None:
        files = _files(made, names, max(delays) if delay is None else delay)
        _write(Path(options.output), plan, files)
        if options.format == "text":
            sys.stdout.write(labelled("wrote", f"{options.output}/ {', '.join(files)}", terminal.width()))
    return 1 if sink.has_errors else 0


def _setting(options: argparse.Namespace, plan: "Plan", sink: Diagnostics) -> "Setting | None":
    from opusc.schedule.job import setting

    arithmetic = options.counting == "arithmetic"
    return setting(plan, sink, options.bytes_per_element or (2 if arithmetic else 1), arithmetic=arithmetic)


def _own_delay(plan: "Plan", sink: Diagnostics) -> int | None:
    """What a change takes as the program says it, demanded where anything changes."""
    from opusc.schedule.job import dark

    return dark(plan, sink) if len(plan.exclusions) else 0


def _static(variant: "Variant", sink: Diagnostics) -> "Variant | None":
    """The same job with everything packed, so that nothing changes."""
    from opusc.schedule.variants import packed

    if variant.fixed:
        return variant
    made = packed(variant, {}, static=True)
    if not isinstance(made, tuple):
        return made
    sink.error(
        "OPUS437",
        "`policy = static` holds every phase at once, and the ports do not suffice",
        variant.plan.model.job.span,
        notes=list(made),
        help="a NIC of more and slower ports holds both; `--policy auto` says what else helps",
    )
    return None


@dataclass(frozen=True)
class _Results:
    """Rows, what `auto` chose, and what was proved of that, by delay."""

    variant: "Variant"
    static: "Variant | None"
    estimate: "Estimate"
    proved: Mapping[int, Sequence["Obligation"]]


def _results(
    variant: "Variant", names: Sequence[str], delays: Sequence[int], static: "Variant | None", sink: Diagnostics
) -> _Results | None:
    from opusc.schedule.estimate import estimate_plan
    from opusc.schedule.variants import TurnsTooSlowlyError

    try:
        found = estimate_plan(variant, names, delays, static)
    except TurnsTooSlowlyError as error:
        error.explain(variant.plan.model.job, sink)
        return None
    proved = {at: choosing.prove(choice, variant.plan, sink) for at, choice in found.choices.items()}
    return _Results(variant, static, found, proved)


# --- requirements --------------------------------------------------------------------------------


def _decide(pending: Sequence["Requirement"], row: "Row", sink: Diagnostics, form: str) -> None:
    """Say which requirements held; those that did not become errors with the measured values."""
    from opusc.schedule.iterations import words_of

    found = words_of(row)
    values = {name: result.value for name, result in found.items()}
    words = {name: result.words for name, result in found.items()}
    decide(pending, values, words, found["overhead"].most[0], sink, form)


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


def _files(made: _Results, names: Sequence[str], delay: int) -> dict[str, str]:
    from opusc.backends.choices import choices_csv, choices_json
    from opusc.backends.simulation import overhead_csv, overhead_svg, timeline_svg
    from opusc.schedule.estimate import recorded

    name, found = made.variant.plan.model.job.name, made.estimate
    title = f"{name}: overhead over an iteration with all links present"
    files = {"overhead.csv": overhead_csv(found), "overhead.svg": overhead_svg(found, title)}
    if found.choices:
        files |= {"auto.csv": choices_csv(found.choices), "auto.json": choices_json(found.choices, made.proved)}
    for policy in ("all_links", *names):
        result = recorded(made.variant, policy, delay, found, made.static)
        title = f"{name}: {policy}" + ("" if policy == "all_links" else f", {_time(delay)} a change")
        files[f"timeline-{policy}.svg"] = timeline_svg(result, title)
    return files


def _write(place: Path, plan: "Plan", files: Mapping[str, str]) -> None:
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


def _element(text: str) -> int:
    if text not in ("1", "2", "4", "8"):
        raise argparse.ArgumentTypeError(f"`{text}` should be 1, 2, 4 or 8")
    return int(text)
