"""The words of the command line.

Each command WORD is a module of this package (`module_of`) with `DESCRIPTION`, `EPILOG`, `add_arguments(parser)` and
`run(options) -> exit code`. Only the module of the command that is given is imported.
"""

import importlib
import keyword
from types import ModuleType

__all__ = ["COMMANDS", "module_of"]

#: Word -> what it does, in the order of `opusc --help`.
COMMANDS = {
    "compile": "prove programs and write the targets' files",
    "check": "report what is wrong, write nothing",
    "fmt": "the canonical layout of programs",
    "explain": "what a message means and what to do",
    "show": "the library, the language, or a program's plan",
    "simulate": "what an iteration loses to changing circuits",
    "cost": "power and price against packet-switched fabrics",
    "sweep": "a program at many values of its parameters",
    "plot": "draw the results of a sweep",
    "graph": "draw a fabric, or the circuits of a part",
    "push": "bring the switches to a phase, all of them or none",
    "serve": "the controller of a running job",
    "plan-change": "from what switches hold to what a program wants",
    "import": "what a configuration that exists really connects",
    "verify-cabling": "compare cabling as built with the program's",
    "schema": "JSON Schema of what opusc writes",
}


def module_of(word: str) -> ModuleType:
    """The module behind a command word: `verify-cabling` is verify_cabling, `import` is import_."""
    name = word.replace("-", "_") + ("_" if keyword.iskeyword(word) else "")
    return importlib.import_module(f"opusc.cli.{name}")
