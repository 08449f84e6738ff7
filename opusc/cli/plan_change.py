"""`opusc plan-change`: from what switches hold, as their exports say, to what the program wants."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opusc import output
from opusc.cli import terminal
from opusc.cli.changes import step_text, taken_by, taking_option
from opusc.cli.compiling import Messages, compile_one, reported
from opusc.cli.options import part_options, program_options
from opusc.cli.tables import labelled
from opusc.cli.terminal import UsageError
from opusc.diagnostics import Diagnostics
from opusc.source import Source

if TYPE_CHECKING:
    from opusc.backends.switch_files import SwitchTarget
    from opusc.control.change import Change, Station
    from opusc.control.device import Held
    from opusc.plan.plan import Plan

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]

DESCRIPTION = """\
Compute the smallest safe change from what the switches hold to what a phase of
a proved plan asks of them, and write it in the switches' own formats. What they
hold is read from their exports: NETCONF, RESTCONF, SCPI, gNMI, config_db.json
or Calient REST. Circuits that are not the program's are never named; where they
are in the way, the change is refused until --take names them."""

EPILOG = """\
examples:
  opusc plan-change cluster.opus --observed state/ --phase dp
  opusc plan-change cluster.opus --observed ocs.json --phase pp -o change
  opusc plan-change cluster.opus --observed state/ --phase dp \\
      --take 'rails.rail[0]:3>19'

A directory has one export for each switch, called after it as in the output of
`opusc compile -t controllers`: rails.rail-0.json, rails.rail-0.xml, ...
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a program; - for standard input")
    parser.add_argument(
        "--observed", metavar="STATE", required=True, help="a file (of the only switch), or a directory with one each"
    )
    part_options(parser)
    taking_option(parser)
    parser.add_argument("-o", "--output", metavar="DIR", help="write the change of each switch there")
    program_options(parser)


def run(options: argparse.Namespace) -> int:
    return reported(options, _run)


def _run(options: argparse.Namespace, messages: Messages) -> int:
    if options.phase is None:
        raise UsageError("say what the switches should hold: --phase NAME")
    outcome = compile_one(options.file, options, messages)
    if outcome.compilation is None:
        return outcome.code
    from opusc.cli.aims import aimed
    from opusc.control.change import change_to
    from opusc.control.proving import prove_change
    from opusc.control.push import Reading
    from opusc.control.telling import tell_readings

    plan, sink = outcome.compilation.plan, Diagnostics()
    observed = _observed(Path(options.observed), sink)
    sink.checkpoint()
    mine = _matched(plan, observed, sink)
    sink.checkpoint()
    targets = _targets(plan, list(mine), sink)
    sink.checkpoint()
    from opusc.control.goals import station_of

    stations = [station_of(plan, plan.switches[at], target) for at, target in targets.items()]
    taken = taken_by(stations, options.take)
    [step] = aimed(plan, options, stations)
    rows: list[tuple[Station, Change]] = []
    readings = []
    for station in stations:
        index = station.switch.index
        if index in step.goals:
            held = station.canonical(mine[index])
            change = change_to(station, held, step.goals[index], taken.get(index, frozenset()))
            rows.append((station, change))
            readings.append(Reading(station, step.goals[index], held, change))
    tell_readings(plan, readings, sink)
    proved = 0
    if not sink.has_errors:
        for reading in readings:
            assert reading.change is not None
            proved += prove_change(plan, reading.station, reading.held, reading.change, sink)
    if not sink.has_errors:
        if options.format == "text":
            sys.stdout.write(step_text(plan, step.name, rows))
        files = _files(rows, targets, step.name)
        text = f"{proved} properties by Z3: no port twice at any instant, disconnects first, nothing named that stays"
        lines = labelled("proved", text, terminal.width())
        if options.output is not None:
            _write(Path(options.output), plan, files)
            named = ", ".join(files) or "nothing: they hold it already"
            lines += labelled("wrote", f"{options.output}/ {named}", terminal.width())
        if options.format == "text":
            sys.stdout.write(lines)
    messages.add(list(sink))
    return 1 if sink.has_errors else 0


def _observed(path: Path, sink: Diagnostics) -> dict[str, "Held"]:
    """What each export holds, by the stem of its file; OPUS705 for one that cannot be understood."""
    from opusc.control.exports import held_in
    from opusc.model.loader import decode

    try:
        files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
        sources = [(p, decode(p.read_bytes(), str(p), None, sink)) for p in files]
    except OSError as error:
        raise UsageError(f"cannot read `{path}`: {error.strerror or error}") from error
    if not sources:
        raise UsageError(f"`{path}` has no file")
    found: dict[str, Held] = {}
    for file, source in sources:
        if source is None:
            continue
        try:
            found[file.stem] = held_in(source.text)[1]
        except ValueError as error:
            _not_understood(source, str(error), sink)
    return found


def _not_understood(source: Source, why: str, sink: Diagnostics) -> None:
    sink.error(
        "OPUS705", f"what the switch holds cannot be understood: {why}", source.line_span(1), "this export",
        help="export it as NETCONF or RESTCONF, SCPI, gNMI, config_db.json or Calient REST: `docs/control.md`",
    )  # fmt: skip


def _matched(plan: "Plan", observed: dict[str, "Held"], sink: Diagnostics) -> dict[int, "Held"]:
    """The exports by switch; OPUS706 for one that is of no switch."""
    from opusc.backends.switch_files import slug

    known = {slug(switch.name): switch.index for switch in plan.switches}
    if len(observed) == 1 and len(plan.switches) == 1:
        return {0: next(iter(observed.values()))}
    found = {}
    for stem, held in observed.items():
        if stem in known:
            found[known[stem]] = held
        else:
            sink.error(
                "OPUS706", f"no switch of the fabric is called `{stem}`", plan.model.fabric.at("switch"),
                "its switches", help=f"name exports {', '.join(list(known)[:3])}{', ...' if len(known) > 3 else ''}",
            )  # fmt: skip
    return found


def _targets(plan: "Plan", switches: Sequence[int], sink: Diagnostics) -> "dict[int, SwitchTarget]":
    from opusc.control.places import places_of

    places = places_of(plan, [plan.switches[at] for at in sorted(switches)], None, None, sink, offline=True)
    return {at: target for at, (target, _) in sorted(places.items())}


def _files(
    rows: Sequence[tuple["Station", "Change"]], targets: "dict[int, SwitchTarget]", name: str
) -> dict[str, str]:
    """The change of each switch on each wire that takes changes."""
    from opusc.backends.switch_files import slug

    found = {}
    for station, change in rows:
        if not (change.disconnect or change.connect):
            continue
        target = targets[station.switch.index]
        for wire in target.wires:
            if wire.change is not None:
                path = f"{target.name}/{slug(station.name)}/{wire.name}/change-observed-to-{slug(name)}.{wire.suffix}"
                found[path] = wire.change(station.switch, change.disconnect, change.connect)
    return found


def _write(place: Path, plan: "Plan", files: dict[str, str]) -> None:
    try:
        with output.replacing(place) as staging:
            for file, text in files.items():
                path = output.inside(staging, file)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", newline="\n")
            document = output.manifest(
                staging, targets=["plan-change"], parameters=plan.model.parameters, sources=plan.model.sources
            )
            text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
            (staging / output.MANIFEST).write_text(text, encoding="utf-8", newline="\n")
    except output.OutputError as error:
        raise UsageError(str(error)) from error
