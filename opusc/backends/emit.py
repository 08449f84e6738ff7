"""Writing: refusals of all targets first, then each target's files, read back as soon as they are there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from opusc.backends.base import Backend, Options
from opusc.backends.registry import GROUPS, get
from opusc.backends.validate import validate
from opusc.diagnostics import CompileError, Diagnostics
from opusc.output import inside
from opusc.plan.plan import Plan

__all__ = ["Written", "emit"]


@dataclass(frozen=True, slots=True)
class Written:
    """What one target left in the output directory."""

    target: str
    files: tuple[str, ...]
    size: int  # bytes
    compared: int  # statements read back and found equal
    note: str  # what was left out on this machine, for people; often empty


def emit(
    plan: Plan,
    targets: Sequence[str],
    directory: Path,
    options: Options,
    sink: Diagnostics,
    entering: Callable[[str], None] = lambda target: None,
) -> tuple[Written, ...]:
    """Write the targets of a proved plan into a directory and validate what was written.

    Raises UnknownTarget before anything is written, and CompileError when a target refuses the plan or what
    was written does not say what the plan says. `entering` is told each target before it is written.
    """
    backends = [get(name) for name in _expanded(plan, targets, sink)]
    for backend in backends:
        backend.check(plan, options, sink)
    sink.checkpoint()
    done = []
    for backend in backends:
        entering(backend.name)
        done.append(_emit_one(backend, plan, directory, options, sink))
    sink.checkpoint()
    return tuple(done)


def _expanded(plan: Plan, targets: Sequence[str], sink: Diagnostics) -> list[str]:
    """Each target once; a group gives way to its members for which the fabric has switches."""
    drivers = {switch.kind.driver for switch in plan.switches}
    found: list[str] = []
    for name in targets:
        members = [m for m in GROUPS.get(name, ()) if m.replace("-", "_") in drivers]
        if name in GROUPS and not members:
            fabric = plan.model.fabric
            sink.error(
                "OPUS602",
                f"`{name}` writes the switches that state their `driver`, and none of fabric `{fabric.name}` does",
                fabric.at("switch"),
                "no driver stated",
                help=f"drivers: {', '.join(m.replace('-', '_') for m in GROUPS[name])}",
            )
        elif name in GROUPS and None in drivers:
            _left_out(plan, name, sink)
        found += members if name in GROUPS else [name]
    return list(dict.fromkeys(found))


def _left_out(plan: Plan, group: str, sink: Diagnostics) -> None:
    """A fabric whose switches are written in part would run in part: say which ones are missing."""
    fabric = plan.model.fabric
    bare = [switch for switch in plan.switches if switch.kind.driver is None]
    sink.warning(
        "OPUS602",
        f"`{group}` writes nothing for {len(bare):,} of {len(plan.switches):,} switches of fabric `{fabric.name}`: "
        "they state no `driver`",
        fabric.rails[bare[0].rails[0]].span,
        f"{bare[0].name} is the first",
        help=f"drivers: {', '.join(m.replace('-', '_') for m in GROUPS[group])}",
    )


def _emit_one(backend: Backend, plan: Plan, directory: Path, options: Options, sink: Diagnostics) -> Written:
    files: list[str] = []
    size = 0
    for name, chunks in backend.write(plan, options):
        with inside(directory, name).open("wb") as file:
            for chunk in chunks:
                size += file.write(chunk)
                if size > options.max_output:
                    _stop(backend, plan, options, sink)
        files.append(name)
    compared = validate(backend, plan, directory, sink)
    return Written(backend.name, tuple(files), size, compared, backend.note(options))


def _stop(backend: Backend, plan: Plan, options: Options, sink: Diagnostics) -> NoReturn:
    """For targets that did not know their size beforehand."""
    sink.error(
        "OPUS603",
        f"target `{backend.name}` writes more than {options.max_output:,} bytes",
        plan.model.job.span,
        help="raise --max-output, or leave the target out",
    )
    raise CompileError(sink)
