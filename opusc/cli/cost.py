"""`opusc cost`: power and price of the photonic rails, and of packet-switched fabrics of the same bandwidth."""

import argparse
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from opusc.cli import terminal
from opusc.cli.compiling import Messages, compile_one, reported
from opusc.cli.options import program_options
from opusc.cli.requiring import held
from opusc.cli.tables import count, labelled, plural, table
from opusc.diagnostics import Diagnostics

if TYPE_CHECKING:
    from opusc.plan.plan import Plan
    from opusc.schedule.cost import Comparison, Count, Figures

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]

_FABRICS = ("photonic", "packet rails", "fat tree")


DESCRIPTION = """\
Compare power and price of a proved plan's photonic rails with a packet-switched
rail fabric and a packet-switched fat tree of the same bandwidth, from the
component figures of the fabric and its switches. Says what `require cost < ...`
and other requirements on the plan measured. `docs/cost-model.md` has every
formula."""

EPILOG = """\
examples:
  opusc cost cluster.opus
  opusc cost cluster.opus -D dp=64
  opusc show components                   figures of the standard library

`published` counts switch ports, as the published study does; `whole chassis`
counts what can be bought. A requirement is held to whole chassis. Hops are
the switches between two GPUs of a rail (of the fabric, in a fat tree).
Bisection is between the halves of the cluster, each way; latency from NIC port
to NIC port, at most.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a program; - for standard input")
    program_options(parser)


def run(options: argparse.Namespace) -> int:
    return reported(options, _run)


def _run(options: argparse.Namespace, messages: Messages) -> int:
    outcome = compile_one(options.file, options, messages, deciding=False)
    if outcome.compilation is None:
        return outcome.code
    from opusc.driver import guarded
    from opusc.schedule.cost import compare, figures
    from opusc.schedule.iterations import measure
    from opusc.schedule.requirements import decide

    plan, sink = outcome.compilation.plan, Diagnostics()
    known = figures(plan.model.fabric, sink)
    if known is None:
        messages.add(list(sink))
        return 1
    with guarded("cost", outcome.compilation.source, sink):
        found = compare(plan, known)
    if options.format == "text":
        sys.stdout.write(_report(plan, known, found, terminal.width()))
    kept = decide(plan, sink, partial(measure, plan, outcome.compilation.choice))
    if options.format == "text":
        sys.stdout.write(held(kept, terminal.width()))
    messages.add(list(sink))
    return 1 if sink.has_errors else 0


def _report(plan: "Plan", known: "Figures", found: "Comparison", width: int) -> str:
    cluster, fabric = plan.model.cluster, plan.model.fabric
    assert fabric.components is not None
    what = f"{plural(cluster.gpu_count, 'GPU')} on {plural(len(fabric.rails), 'rail')}, "
    out = labelled(fabric.name[:12], f"{what}{plural(found.endpoints, 'transceiver')} at GPUs", width)
    ends = "at both ends of a link" if known.both_ends else "counted at the GPUs only"
    parts = f"{fabric.components.name}: packet switches of {known.switch_ports} ports, transceivers {ends}"
    out += labelled("components", parts, width) + "\n"
    out += _table("published", found.published)
    out += labelled("hops", _each(found.published, lambda c: c.hops), width) + "\n"
    out += _table("whole chassis", found.whole)
    out += labelled("switches", _each(found.whole, lambda c: c.switches or 0), width)
    out += labelled("hops", _each(found.whole, lambda c: c.hops), width)
    return out + _crossing(plan, width) + _latency(plan, found, width) + "\n"


def _crossing(plan: "Plan", width: int) -> str:
    """Bandwidth between the halves of the cluster, and what each phase has there."""
    from opusc.schedule.crossing import crossing

    found = crossing(plan)
    each = zip((found.photonic, found.packet_rails, found.fat_tree), _FABRICS, strict=True)
    out = labelled("bisection", ", ".join(f"{_tbps(rate)} {name}" for rate, name in each), width)
    lit = ", ".join(f"{name} {_tbps(rate)}" for name, rate in found.lit)
    return out + (labelled("", f"lit across the middle: {lit}", width) if lit else "")


def _latency(plan: "Plan", found: "Comparison", width: int) -> str:
    """From NIC port to NIC port, at most; what packet switches take where it is stated."""
    from opusc.backends.simulation import fixed
    from opusc.schedule.crossing import cable, latency

    one = cable(plan)
    if one is None:
        return labelled("latency", "not known: `fibre` states no `length` and `delay` on every rail", width)
    parts = plan.model.fabric.components
    forwarding = parts.packet_switch_latency if parts else None
    times = []
    for name, counted in zip(_FABRICS, found.whole, strict=True):
        if counted is not None:
            taken = latency(one, counted.hops, 0 if counted is found.whole[0] else forwarding or 0)
            times.append(f"{fixed(taken / 1000, 1)} ns {name}")
    note = "" if forwarding is not None else " (fibre alone: no `packet_switch_latency` is stated)"
    return labelled("latency", ", ".join(times) + note, width)


def _tbps(rate: int) -> str:
    from opusc.backends.simulation import fixed

    return f"{fixed(Fraction(rate, 10**12), 2)} Tbps"


def _each(counts: Sequence["Count | None"], number: "Callable[[Count], int]") -> str:
    """`8 photonic, 8 packet rails, 6 fat tree`."""
    return ", ".join(
        f"{count(number(found))} {name}" if found else f"{name}: more than 3 tiers"
        for name, found in zip(_FABRICS, counts, strict=True)
    )


def _table(title: str, counts: Sequence["Count | None"]) -> str:
    own = counts[0]
    assert own is not None
    rows = []
    for name, found in zip(_FABRICS, counts, strict=True):
        if found is None:
            rows.append((name, *["-"] * 5))
            continue
        power, cost = _ratio(found.power, own.power), _ratio(found.cost, own.cost)
        rows.append((name, count(found.ports), _round(found.power / 1000), power, _round(found.cost / 100), cost))
    return table((title, "ports", "W", "ratio", "USD", "ratio"), rows, right=range(1, 6))


def _round(value: Fraction) -> str:
    return f"{round(value):,}"


def _ratio(value: Fraction, own: Fraction) -> str:
    from opusc.backends.simulation import fixed

    return fixed(value / own, 2) if own else "-"
