"""`opusc verify-cabling`: the cabling as built, against the one that the program assumes."""

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opusc.cli import terminal
from opusc.cli.compiling import Messages, compile_one, reported
from opusc.cli.options import program_options
from opusc.cli.tables import count, labelled, plural
from opusc.cli.terminal import UsageError
from opusc.diagnostics import Diagnostics
from opusc.diagnostics.suggest import closest

if TYPE_CHECKING:
    from opusc.control.cabling.asbuilt import AsBuilt
    from opusc.control.cabling.finding import Finding
    from opusc.control.cabling.names import Names
    from opusc.plan.plan import Plan
    from opusc.source import Source

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]


DESCRIPTION = """\
Compare the cabling that a program assumes with what was observed, and name the
causes: cables exchanged, shifted, crossed, missing, unknown; whole rails,
planes, nodes or switches exchanged; each with what to do about it.

Observations are CSV files with a header. A row says at which switch port the
cable of a NIC port ends, or which NIC port sees which (LLDP) while one part of
the plan is lit. `docs/cabling.md` lists the columns."""

EPILOG = """\
examples:
  opusc verify-cabling cluster.opus --observed scan.csv
  opusc verify-cabling cluster.opus --observed rail-0.csv rail-1.csv
  opusc verify-cabling cluster.opus --observed lldp.csv --lit 'dp[0]'
  opusc verify-cabling cluster.opus --observed lldp.csv --nic ens3f1=2/1

`opusc compile cluster.opus -t cabling` writes the patch list; as an
observation it gives no difference. Exit code 1 when anything differs.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a program; - for standard input")
    parser.add_argument(
        "--observed", metavar="CSV", nargs="+", required=True, action="extend", help="what was observed, in any number"
    )
    parser.add_argument("--lit", metavar="PART", help="the part that was lit where NIC ports see NIC ports")
    parser.add_argument(
        "--nic",
        metavar="NAME=GPU/PORT",
        type=_nic,
        action="append",
        default=[],
        help="what NIC port a name means, where it does not say itself",
    )
    parser.add_argument(
        "--switch-name",
        metavar="NAME=SWITCH",
        type=_pair,
        action="append",
        default=[],
        help="what switch a name means, for example ocs-a=rails.rail[0]",
    )
    parser.add_argument(
        "--first-node",
        metavar="N",
        type=int,
        default=0,
        help="the number in the name of the first node (default: 0)",
    )
    program_options(parser)


def run(options: argparse.Namespace) -> int:
    return reported(options, _run)


def _run(options: argparse.Namespace, messages: Messages) -> int:
    outcome = compile_one(options.file, options, messages)
    if outcome.compilation is None:
        return outcome.code
    from opusc.control.cabling.asbuilt import check_cabling
    from opusc.control.cabling.finding import as_diagnostics
    from opusc.control.cabling.observed import observed

    plan, sink = outcome.compilation.plan, Diagnostics()
    sources = _sources(options.observed, sink)
    sink.checkpoint()
    names = _names(plan, options)
    found = observed(sources, names, _lit(plan, options.lit), sink)
    sink.checkpoint()
    result = check_cabling(names, found)
    if options.format == "text":
        sys.stdout.write(report(result, found.rows, terminal.width()))
    else:
        messages.add(as_diagnostics(result.findings, plan.model.fabric.at("cabling")))
    return 1 if result.findings else 0


def _nic(text: str) -> tuple[str, tuple[int, int]]:
    match = re.fullmatch(r"(.+)=([0-9]{1,6})/([0-9]{1,6})", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"`{text}` should be NAME=GPU/PORT, for example ens3f1=2/1")
    return match[1].strip(), (int(match[2]), int(match[3]))


def _pair(text: str) -> tuple[str, str]:
    name, equals, switch = text.partition("=")
    if not equals or not name.strip() or not switch.strip():
        raise argparse.ArgumentTypeError(f"`{text}` should be NAME=SWITCH, for example ocs-a=rails.rail[0]")
    return name.strip(), switch.strip()


def _sources(paths: Iterable[str], sink: Diagnostics) -> list["Source"]:
    from opusc.model.loader import decode

    found = []
    for path in paths:
        try:
            data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read `{path}`: {error.strerror or error}") from error
        source = decode(data, "<stdin>" if path == "-" else path, None, sink)
        if source is not None:
            found.append(source)
    return found


def _names(plan: "Plan", options: argparse.Namespace) -> "Names":
    from opusc.control.cabling.names import Names

    names = Names(plan)
    switches = {}
    for name, text in options.switch_name:
        found = names.switch(text)
        if found is None:
            known = [switch.name for switch in plan.switches]
            near = closest(text, known)
            hint = f"did you mean `{near}`?" if near else f"the first is `{known[0]}`"
            raise UsageError(f"`--switch-name`: the program has no switch `{text}`; {hint}")
        switches[name] = found
    return Names(plan, dict(options.nic), switches, options.first_node)


def _lit(plan: "Plan", name: str | None) -> int | None:
    if name is None:
        return None
    parts = {part.name: part.index for part in plan.parts}
    if name not in parts:
        near = closest(name, list(parts))
        hint = f"did you mean `{near}`?" if near else f"the first is `{next(iter(parts), '')}`"
        raise UsageError(f"`--lit`: the plan has no part `{name}`; {hint}")
    return parts[name]


# --- for people ----------------------------------------------------------------------------------


def report(result: "AsBuilt", rows: int, width: int) -> str:
    """The findings in the order of the walk, then a summary."""
    out = "".join(_finding(finding, width) for finding in result.findings)
    out += labelled("observed", f"{plural(rows, 'row')}, {plural(result.cables, 'cable')} in the program", width)
    seen = f"{count(result.right)} as the program says"
    if result.missing:
        seen += f", {count(result.missing)} missing or not observed"
    out += labelled("cables", seen, width)
    return out + labelled("differences", _counts(result.findings), width)


def _finding(finding: "Finding", width: int) -> str:
    head = labelled(finding.code, finding.message, width, column=10)
    body = "".join(labelled("", fact, width, column=10) for fact in finding.facts)
    return head + body + labelled("      do:", finding.action, width, column=10) + "\n"


def _counts(findings: Sequence["Finding"]) -> str:
    """`2 exchanged, 1 missing`, in the order of the causes."""
    from opusc.control.cabling.finding import Cause

    numbers = {cause: sum(finding.cause is cause for finding in findings) for cause in Cause}
    return ", ".join(f"{count(number)} {cause}" for cause, number in numbers.items() if number) or "none"
