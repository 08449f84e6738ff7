"""opusc: a language and compiler for AI clusters whose rails are optical circuit switches.

    import opusc

    plan = opusc.compile("cluster.opus", params={"dp": 8})
    plan.circuits.ingress     # numpy arrays, one row a circuit
    plan.part("dp", stages=(2,))

`compile` gives a proved plan or raises `CompileError`, whose `diagnostics` hold every message.
`check` never raises for a wrong program; it returns the messages.
"""

from opusc.version import __version__

TYPE_CHECKING = False  # importing `typing` for it would double the start-up time
if TYPE_CHECKING:
    from opusc.diagnostics import CompileError, Diagnostic, Diagnostics
    from opusc.driver import Compilation, check, compile
    from opusc.plan.plan import Plan

__all__ = ["Compilation", "CompileError", "Diagnostic", "Diagnostics", "Plan", "__version__", "check", "compile"]

#: Where each public name lives. Loaded on first use: `opusc --version` must not pay for numpy.
_HOMES = {
    "Compilation": "opusc.driver",
    "CompileError": "opusc.diagnostics",
    "Diagnostic": "opusc.diagnostics",
    "Diagnostics": "opusc.diagnostics",
    "Plan": "opusc.plan.plan",
    "check": "opusc.driver",
    "compile": "opusc.driver",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'opusc' has no attribute '{name}'")
    import importlib

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
