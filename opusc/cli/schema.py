"""`opusc schema`: the JSON Schema of what opusc writes."""

import argparse
import sys
from pathlib import Path

from opusc.cli.tables import table
from opusc.cli.terminal import UsageError
from opusc.diagnostics.suggest import closest

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run", "schemas"]

_SUFFIX = ".schema.json"


def schemas() -> dict[str, Path]:
    """Name -> file, sorted: those of the targets, and that of the messages."""
    from opusc import backends
    from opusc.diagnostics.json import schema_file

    found = [schema_file(), *(Path(str(backends.__file__)).parent / "schemas").glob(f"*{_SUFFIX}")]
    return {path.name.removesuffix(_SUFFIX): path for path in sorted(found, key=lambda path: path.name)}


DESCRIPTION = "JSON Schema of what opusc writes."

EPILOG = """\
examples:
  opusc schema                            list the schemas
  opusc schema plan                       JSON Schema of plan.json
  opusc schema diagnostics                JSON Schema of `--format json`
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="plan, diagnostics, or another that is listed")


def run(options: argparse.Namespace) -> int:
    known = schemas()
    if options.name is None:
        import json

        rows = [(name, json.loads(path.read_text(encoding="utf-8"))["title"]) for name, path in known.items()]
        sys.stdout.write(table(("schema", "of"), rows))
        return 0
    if options.name not in known:
        meant = closest(options.name, known)
        hint = f"did you mean `{meant}`?" if meant else f"there are {', '.join(known)}"
        raise UsageError(f"there is no schema `{options.name}`; {hint}")
    sys.stdout.write(known[options.name].read_text(encoding="utf-8"))
    return 0
