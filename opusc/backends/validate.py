"""Translation validation: what was written must say what the plan says.

The statements that a backend's reader finds in the files are compared, one by one, with those that it projects
from the plan, and the properties that survive the projection are checked on what was read. Neither side needs
to be in memory as a whole.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np

from opusc.backends.base import Backend, Unreadable
from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan

__all__ = ["difference", "one_to_one", "validate"]

_MISSING = object()


def validate(backend: Backend, plan: Plan, directory: Path, sink: Diagnostics) -> int:
    """Read back what a backend wrote into `directory`; OPUS903 for the first thing that is wrong.

    Returns the number of statements that were compared.
    """
    count = 0
    try:
        for wanted, found in zip_longest(backend.project(plan), backend.read(directory), fillvalue=_MISSING):
            if (what := _compare(backend, plan, wanted, found)) is not None:
                _report(backend, plan, what, sink)
                return count
            count += 1
    except Unreadable as error:
        _report(backend, plan, str(error), sink)
    return count


def _compare(backend: Backend, plan: Plan, wanted: object, found: object) -> str | None:
    if found is _MISSING:
        return f"{_title(wanted)} is missing"
    if wanted is _MISSING:
        return f"{_title(found)} is too much"
    if (what := difference(wanted, found)) is not None:
        return f"{_title(wanted)}: {what}"
    return next((f"{_title(found)}: {fault}" for fault in backend.faults(plan, found)), None)


def _title(statement: object) -> str:
    """What a statement is about: its `title`, or the name of its type."""
    return str(getattr(statement, "title", type(statement).__name__))


def _report(backend: Backend, plan: Plan, what: str, sink: Diagnostics) -> None:
    sink.error(
        "OPUS903",
        f"what was written for target `{backend.name}` is not what the plan says: {what}",
        plan.model.job.span,
        notes=["this is a defect of opusc or of the disk, not of your program; nothing of this run was kept"],
        help="please report it with the program and the target",
    )


def difference(wanted: object, found: object) -> str | None:
    """Where two values differ first, in words; None when they are equal, arrays and dtypes' values included."""
    for path, a, b in _differences(wanted, found, ""):
        return f"{path or 'value'} is {_brief(b)}, the plan says {_brief(a)}"
    return None


def _differences(a: object, b: object, path: str) -> Iterator[tuple[str, object, object]]:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        yield from _array_difference(np.asarray(a), np.asarray(b), path)
    elif type(a) is not type(b):
        yield path, a, b
    elif is_dataclass(a) and is_dataclass(b):
        for field in fields(a):
            inside = f"{path}.{field.name}" if path else field.name
            yield from _differences(getattr(a, field.name), getattr(b, field.name), inside)
    elif isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted({*a, *b}, key=str):
            yield from _differences(a.get(key, "absent"), b.get(key, "absent"), f"{path}[{key}]")
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        if len(a) != len(b):
            yield f"the length of {path}", len(a), len(b)
        for index, (one, other) in enumerate(zip(a, b, strict=False)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif a != b:
        yield path, a, b


def _array_difference(a: np.ndarray, b: np.ndarray, path: str) -> Iterator[tuple[str, object, object]]:
    if a.shape != b.shape:
        yield f"the shape of {path}", a.shape, b.shape
        return
    for at in np.argwhere(a != b)[:1].tolist():
        yield f"{path}[{', '.join(map(str, at))}]", a[tuple(at)].item(), b[tuple(at)].item()


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def one_to_one(ingress: np.ndarray, egress: np.ndarray, switch: np.ndarray | None = None) -> str | None:
    """The first port that two circuits use, in words. With `switch`, ports of different switches differ."""
    for name, ports in (("ingress", ingress), ("egress", egress)):
        key = ports.astype(np.int64) + (0 if switch is None else switch.astype(np.int64) << 32)
        ordered = np.sort(key)
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if len(twice):
            return f"{name} {int(twice[0]) & 0xFFFFFFFF} is used twice"
    return None
