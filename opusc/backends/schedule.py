"""Target `schedule`: what `policy = auto` decided, for whoever runs it.

    schedule.json               the parts that hold at the start, every change, and the traffic of each stage, in order

Parts are numbers into `parts`, which are those of `plan.json`; times are picoseconds since the iteration began. The
last change leads back to the start, so iterations follow each other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from opusc.backends import canonical
from opusc.backends.base import Options, Unreadable
from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan, PlannedChange, Schedule, Transfer
from opusc.verify.sequence import check_schedule

__all__ = ["BACKEND", "FILE", "SCHEMA", "Written"]

FILE = "schedule.json"
VERSION = 1
SCHEMA = f"urn:opusc:schema:schedule:{VERSION}"


@dataclass(frozen=True)
class Written:
    """A schedule with the names of the parts that it counts."""

    parts: tuple[str, ...]
    schedule: Schedule


class _Target:
    name = "schedule"
    summary = "what policy = auto decided: every change and the traffic of an iteration"

    def check(self, plan: Plan, options: Options, sink: Diagnostics) -> None:
        """Only a plan for which a schedule was chosen has one."""
        if plan.schedule is not None:
            return
        job = plan.model.job
        stated = f"`policy = {job.policy}`" if job.policy else "no policy"
        why = f"job `{job.name}` states {stated}"
        if not len(plan.exclusions):
            why = "no two parts of this plan share a port, so nothing ever changes"
        sink.error(
            "OPUS440",
            f"target `{self.name}` writes what `policy = auto` decided, and nothing was to be decided: {why}",
            job.at("policy"),
            help="state `policy = auto`, or leave the target out",
        )

    def write(self, plan: Plan, options: Options) -> Iterator[tuple[str, Iterable[bytes]]]:
        for written in self.project(plan):
            yield FILE, canonical.dump(_document(written))

    def project(self, plan: Plan) -> Iterator[Written]:
        assert plan.schedule is not None, "checked before"
        yield Written(tuple(part.name for part in plan.parts), plan.schedule)

    def read(self, directory: Path) -> Iterator[Written]:
        try:
            yield _read(canonical.load(directory / FILE))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise Unreadable(f"{FILE}: {error}") from error

    def faults(self, plan: Plan, statement: object) -> Iterator[str]:
        """What was read is proved once more on the circuits of the plan."""
        assert isinstance(statement, Written)
        _, found = check_schedule(replace(plan, schedule=statement.schedule))
        yield from (finding.text for finding in found)

    def note(self, options: Options) -> str:
        return ""


def _document(written: Written) -> canonical.Value:
    schedule = written.schedule
    stages: dict[int, list[Transfer]] = {}
    for transfer in schedule.transfers:
        stages.setdefault(transfer.stage, []).append(transfer)
    return {
        "$schema": SCHEMA,
        "format": "opusc-schedule",
        "version": VERSION,
        "delay": schedule.delay,
        "iteration": schedule.period,
        "parts": list(written.parts),
        "start": _column(sorted(schedule.start)),
        "changes": [
            {"begin": c.begin, "end": c.end, "connect": _column(sorted(c.came)), "disconnect": _column(sorted(c.went))}
            for c in schedule.changes
        ],
        "traffic": [
            {
                "stage": stage,
                "operation": [t.operation for t in own],
                "part": _column([t.part for t in own]),
                "begin": _column([t.begin for t in own]),
                "end": _column([t.end for t in own]),
            }
            for stage, own in sorted(stages.items())
        ],
    }


def _column(values: list[int]) -> canonical.Value:
    return np.array(values, dtype=np.int64)


def _read(found: canonical.Value) -> Written:
    if not isinstance(found, dict) or found.get("$schema") != SCHEMA:
        raise ValueError(f"is not a schedule of version {VERSION}")
    changes = tuple(
        PlannedChange(frozenset(c["disconnect"].tolist()), frozenset(c["connect"].tolist()), c["begin"], c["end"])
        for c in found["changes"]
    )
    transfers = [
        Transfer(one["stage"], operation, part, begin, end)
        for one in found["traffic"]
        for operation, part, begin, end in zip(
            one["operation"], one["part"].tolist(), one["begin"].tolist(), one["end"].tolist(), strict=True
        )
    ]
    start = frozenset(found["start"].tolist())
    schedule = Schedule(found["delay"], found["iteration"], start, changes, tuple(transfers))
    return Written(tuple(found["parts"]), schedule)


BACKEND = _Target()
