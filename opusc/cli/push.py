"""`opusc push`: bring the switches to a configuration, all of them or none."""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from opusc.cli import terminal
from opusc.cli.aims import aimed
from opusc.cli.changes import step_text, taken_by, taking_option
from opusc.cli.compiling import Messages, compile_one, reported
from opusc.cli.options import index, part_options, program_options
from opusc.cli.reaching import reached, reaching_options
from opusc.cli.tables import labelled, plural
from opusc.cli.terminal import UsageError
from opusc.diagnostics import Diagnostics

if TYPE_CHECKING:
    from opusc.control.change import Change, Station
    from opusc.control.goals import Step
    from opusc.control.push import Pusher, Record, StepResult
    from opusc.plan.plan import Plan

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]

#: Shows text to people.
Say = Callable[[str], int]

DESCRIPTION = """\
Bring the optical switches to a phase of a proved plan, or through its whole
schedule. Without --apply nothing is changed: the switches are read, and what
would change is shown. With it, all switches take a step or none does: what they
hold is read back, and where one refuses, differs or stays away, every switch
that was touched goes back to what it held before."""

EPILOG = """\
examples:
  opusc push cluster.opus --phase dp                  what would change
  opusc push cluster.opus --phase dp --apply
  opusc push cluster.opus --phase pp --stage 1 --apply
  opusc push cluster.opus --schedule --times 3 --apply

Credentials come from OPUSC_USER, OPUSC_PASSWORD, OPUSC_SSH_KEY, ~/.netrc or the
SSH agent, never from the program. Host keys and certificates are verified.
Exit code 1 when a switch could not be brought there; `docs/control.md`.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a program; - for standard input")
    part_options(parser)
    parser.add_argument("--schedule", action="store_true", help="every configuration of an iteration, in order")
    parser.add_argument(
        "--times", metavar="N", type=index, default=1, help="run the schedule so often; 0: until Ctrl-C (default: 1)"
    )
    parser.add_argument("--dry-run", action="store_true", help="change nothing and show what would change (default)")
    parser.add_argument("--apply", action="store_true", help="change the switches")
    parser.add_argument("--offline", action="store_true", help="ask no switch: take them as empty, and show the change")
    taking_option(parser)
    reaching_options(parser)
    parser.add_argument("--log", metavar="FILE", help="append what is done, a JSON line each")
    program_options(parser)


def run(options: argparse.Namespace) -> int:
    return reported(options, _run)


def _run(options: argparse.Namespace, messages: Messages) -> int:
    _check(options)
    outcome = compile_one(options.file, options, messages)
    if outcome.compilation is None:
        return outcome.code
    plan, sink = outcome.compilation.plan, Diagnostics()
    stations, sessions, patience = reached(plan, options, sink, offline=options.offline)
    if sink.has_errors:
        messages.add(list(sink))
        return 1
    steps = _steps(plan, options, stations)
    from opusc.control.push import Pusher

    with _log(options.log) as record:
        taken = taken_by(stations, options.take)
        pusher = Pusher(stations, sessions, patience, taken, record)
        try:
            say = sys.stdout.write if options.format == "text" else _hush
            if options.apply:
                good = _apply(plan, pusher, _turns(steps, options.times), say, sink)
            else:
                good = _show(plan, pusher, steps, say, sink)
        finally:
            pusher.close()
    messages.add(list(sink))
    return 0 if good and not sink.has_errors else 1


def _hush(text: str) -> int:
    return 0  # the messages are for a program


def _check(options: argparse.Namespace) -> None:
    if options.schedule == (options.phase is not None):
        raise UsageError("say what to push: --phase NAME, or --schedule")
    if options.schedule and (options.stage is not None or options.step is not None):
        raise UsageError("--stage and --step belong to --phase")
    if options.dry_run and options.apply:
        raise UsageError("--dry-run changes nothing, so that nothing can be applied")
    if options.offline and options.apply:
        raise UsageError("--offline asks no switch, so that nothing can be applied")


def _steps(plan: "Plan", options: argparse.Namespace, stations: Sequence["Station"]) -> list["Step"]:
    """What to do, one configuration after another."""
    from opusc.control.goals import whole_step
    from opusc.plan.configurations import walk

    if options.schedule:
        steps = [whole_step(plan, configuration, stations) for configuration in walk(plan)]
    else:
        steps = aimed(plan, options, stations)
    found = [step for step in steps if step.goals]
    if not found:
        raise UsageError("nothing to do: no switch of these has circuits of this phase")
    return found


# --- showing -------------------------------------------------------------------------------------


def _show(plan: "Plan", pusher: "Pusher", steps: Sequence["Step"], say: Say, sink: Diagnostics) -> bool:
    """What would change, step by step; later steps from what the earlier ones would leave."""
    from opusc.control.change import change_to
    from opusc.control.telling import tell_readings

    readings = pusher.read(steps[0])
    tell_readings(plan, readings, sink)
    held = {reading.station.switch.index: reading.held for reading in readings}
    for step in steps if any(reading.trouble is None for reading in readings) else ():
        rows: list[tuple[Station, Change]] = []
        for reading in readings:
            station = reading.station
            if reading.trouble is None and station.switch.index in step.goals:
                here = held[station.switch.index]
                may_go = pusher.taken.get(station.switch.index, frozenset())
                change = change_to(station, here, step.goals[station.switch.index], may_go)
                rows.append((station, change))
                held[station.switch.index] = (here - set(change.disconnect)) | set(change.connect)
        say(step_text(plan, step.name, rows))
    if not sink.has_errors:
        say("nothing was changed: --apply does it\n")
    return not sink.has_errors


# --- applying ------------------------------------------------------------------------------------


def _apply(plan: "Plan", pusher: "Pusher", steps: Iterator["Step"], say: Say, sink: Diagnostics) -> bool:
    """Step after step, until one fails or the orders are done. Ctrl-C ends it after the step that is under way."""
    from opusc.control.telling import tell_outcomes, tell_readings

    done = 0
    with _finishing() as interrupted:
        for step in steps:
            if interrupted:
                text = f"after {plural(done, 'step')}; every switch holds the last"
                say(labelled("interrupted", text, terminal.width()))
                return False
            begun = time.monotonic()
            readings = pusher.read(step)
            tell_readings(plan, readings, sink)
            result = pusher.apply(step, readings)
            tell_outcomes(plan, step.name, [o for o in result.outcomes if o.reading.ready], sink)
            spent = round((time.monotonic() - begun) * 1000)
            say(_done_text(result, spent))
            sys.stdout.flush()
            if not result.good:
                return False
            done += 1
    return True


def _turns(steps: Sequence["Step"], times: int) -> Iterator["Step"]:
    turn = 0
    while times == 0 or turn < times:
        yield from steps
        turn += 1


def _done_text(result: "StepResult", spent: int) -> str:
    from opusc.control.push import Fate

    fates = {fate: [o for o in result.outcomes if o.fate is fate] for fate in Fate}
    said = [f"{plural(len(found), 'switch')} {fate}" for fate, found in fates.items() if found]
    text = f"{', '.join(said)}; {spent:,} ms, read back" if result.good else ", ".join(said)
    out = labelled(result.step.name[:12], text, terminal.width())
    for outcome in result.outcomes:
        reading = outcome.reading
        if reading.vanished:
            lost = "all its circuits" if reading.emptied else plural(reading.vanished, "circuit")
            out += labelled("", f"{outcome.station.name} had lost {lost} since the last step", terminal.width())
        for note in outcome.notes:
            out += labelled("", f"{outcome.station.name} {note}", terminal.width())
    return out


@contextmanager
def _finishing() -> Iterator[list[int]]:
    """A list that is no longer empty once Ctrl-C was pressed; a second one ends the program where it stands."""
    seen: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def handler(number: int, frame: object) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(number)

    signal.signal(signal.SIGINT, handler)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _log(path: str | None) -> Iterator["Record"]:
    """A function that appends a line for everything that is done."""
    if path is None:
        yield lambda switch, event, facts: None
        return
    try:
        file: TextIO = open(path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {error.strerror or error}") from error
    with file:

        def record(switch: str, event: str, facts: Mapping[str, object]) -> None:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            file.write(json.dumps({"time": stamp, "switch": switch, "event": event, **facts}, default=list) + "\n")
            file.flush()

        yield record
