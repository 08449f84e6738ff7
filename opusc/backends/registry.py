"""The targets by name. A backend's module is imported when it is used, not before.

Packages outside this repository add targets in the entry point group `opusc.backends`: the name is what `-t`
takes, the object a `Backend` or a function without arguments that makes one.
"""

import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from opusc.backends.base import Backend

__all__ = ["DEFAULT_TARGETS", "GROUPS", "UnknownTarget", "get", "names"]

#: What `compile` writes without `-t`.
DEFAULT_TARGETS = ("plan", "graphviz")

#: Names that `-t` takes for several targets: those of them whose driver some switch of the fabric has.
GROUPS = {"controllers": ("calient", "ocp-gnmi", "polatis", "sonic")}

_GROUP = "opusc.backends"

#: Name of the target, and `module:object`.
_OWN = {
    "astra-sim": "opusc.backends.astra_sim:BACKEND",
    "cabling": "opusc.backends.cabling:BACKEND",
    "calient": "opusc.backends.calient:BACKEND",
    "graphviz": "opusc.backends.graphviz:BACKEND",
    "ocp-gnmi": "opusc.backends.ocp_gnmi:BACKEND",
    "opus-controller": "opusc.backends.opus_controller:BACKEND",
    "plan": "opusc.backends.plan:BACKEND",
    "polatis": "opusc.backends.polatis:BACKEND",
    "schedule": "opusc.backends.schedule:BACKEND",
    "report": "opusc.backends.report:BACKEND",
    "simgrid": "opusc.backends.simgrid:BACKEND",
    "smt2": "opusc.backends.smt2:BACKEND",
    "sonic": "opusc.backends.sonic:BACKEND",
}


class UnknownTarget(LookupError):
    """No backend has this name: an error of the invocation."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no target `{name}`; there are {', '.join(names())}")
        self.name = name


def names() -> tuple[str, ...]:
    """Every target, sorted."""
    return tuple(sorted({*_OWN, *dict(_installed())}))


def get(name: str) -> "Backend":
    """The backend of a target. Raises UnknownTarget."""
    if name in _OWN:
        module, _, attribute = _OWN[name].partition(":")
        return cast("Backend", getattr(importlib.import_module(module), attribute))
    for found, load in _installed():
        if found == name:
            value = load()
            return cast("Backend", value() if callable(value) else value)
    raise UnknownTarget(name)


def _installed() -> Iterator[tuple[str, Callable[[], object]]]:
    """Targets of other packages. Our own names cannot be taken over."""
    from importlib.metadata import entry_points

    for entry in sorted(entry_points(group=_GROUP), key=lambda entry: (entry.name, entry.value)):
        if entry.name not in _OWN:
            yield entry.name, entry.load
