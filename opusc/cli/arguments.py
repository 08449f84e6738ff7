"""Every command and option, with the help that teaches them."""

import argparse
import re

from opusc.version import __version__

__all__ = ["TOPICS", "make_parser"]

#: What `opusc show` can list without a file.
TOPICS = ("switches", "gpus", "nics", "models", "components", "topologies", "targets", "units", "fields", "functions")

_EPILOG = """\
examples:
  opusc compile cluster.opus              prove it, write build/
  opusc compile cluster.opus -D dp=8      with another value of a param
  opusc check cluster.opus                only the messages
  opusc explain OPUS201                   what a message means
  opusc show cluster.opus --phase dp --rank 37

exit codes: 0 clean, 1 the program or its plan is wrong, 2 the invocation or
the environment is wrong
"""

_COMPILE = """\
Compile programs to proved plans and write the files of the targets.

The output directory is replaced in one step, and only when everything went
well; it holds a manifest.json with parameters and hashes. Several programs
get a directory each, named after the file, inside the output directory."""

_COMPILE_EPILOG = """\
examples:
  opusc compile cluster.opus
  opusc compile cluster.opus -o out -t plan,opus-controller
  opusc compile cluster.opus -D dp=8 -D 'delay=25 ms'
  opusc compile - < cluster.opus          a program from standard input

`opusc show targets` lists the targets.
"""

_CHECK_EPILOG = """\
examples:
  opusc check cluster.opus
  opusc check racks/*.opus --format concise
  opusc check cluster.opus --format json | jq '.diagnostics[].message'

Text goes to standard error; concise and json go to standard output.
`opusc schema diagnostics` describes the JSON.
"""

_FMT = """\
Write programs in the one canonical layout. Comments stay where they are, and
nothing is written unless the result parses to the same program."""

_FMT_EPILOG = """\
examples:
  opusc fmt cluster.opus                  print the result
  opusc fmt -i *.opus                     rewrite the files
  opusc fmt --check *.opus                name files that would change, exit 1
  opusc fmt --diff cluster.opus           show what would change, exit 1
  opusc fmt - < cluster.opus              for editors
"""

_EXPLAIN_EPILOG = """\
examples:
  opusc explain OPUS201                   also: opus201, 201
  opusc explain                           list all codes
"""

_SHOW = """\
Show what the compiler knows: a topic, or what it made of a program.

topics:
  switches, gpus, nics, models, components, topologies
                                             of the standard library
  targets                                    what `compile -t` can write
  units, functions                           of the language
  fields [KIND]                              of cluster, nic, fabric, job, ..."""

_SHOW_EPILOG = """\
examples:
  opusc show switches
  opusc show fields nic
  opusc show cluster.opus                 phases, parts and switches
  opusc show cluster.opus --phase dp      its groups and parts
  opusc show cluster.opus --phase dp --rank 37
                            which circuits rank 37 uses in phase dp
  opusc show cluster.opus --phase pp --stage 2
"""

_GRAPH_EPILOG = """\
examples:
  opusc graph cluster.opus -o fabric.svg
  opusc graph cluster.opus --phase dp --stage 0 -o ring.svg
  opusc graph cluster.opus > fabric.dot

SVG and PNG need Graphviz' `dot` program; DOT text needs nothing.
"""

_SIMULATE = """\
Simulate one training iteration of a proved plan: what it takes when every
link is there at once, as with packet switches, and what it loses when circuits
change, at each delay of a change. Checks `require overhead < ...` at the
program's own delay and policy. `docs/time-model.md` has every formula."""

_SIMULATE_EPILOG = """\
examples:
  opusc simulate cluster.opus
  opusc simulate cluster.opus --reconfigure 0,10ms,50ms,100ms -o results
  opusc simulate cluster.opus --policy on_demand,provisioned -D dp=8

columns: `at zero` is the overhead that is there at zero delay, `added` comes
with the delay; `visible` counts the changes on the critical path.
"""

_COST = """\
Compare power and price of a proved plan's photonic rails with a packet-switched
rail fabric and a packet-switched fat tree of the same bandwidth, from the
component figures of the fabric and its switches. Checks `require cost < ...`
and `require power < ...`. `docs/cost-model.md` has every formula."""

_COST_EPILOG = """\
examples:
  opusc cost cluster.opus
  opusc cost cluster.opus -D dp=64
  opusc show components                   figures of the standard library

`published` counts switch ports, as the published study does; `whole chassis`
counts what can be bought. A requirement is held to whole chassis. Hops are
the switches between two GPUs of a rail (of the fabric, in a fat tree).
"""

_SCHEMA_EPILOG = """\
examples:
  opusc schema                            list the schemas
  opusc schema plan                       JSON Schema of plan.json
  opusc schema diagnostics                JSON Schema of `--format json`
"""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="opusc",
        description="Compile AI clusters with optical rails to proved circuits.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action="version", version=f"opusc {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _compile(_command(commands, "compile", "prove programs and write the targets' files", _COMPILE, _COMPILE_EPILOG))
    _check(_command(commands, "check", "report what is wrong, write nothing", "", _CHECK_EPILOG))
    _fmt(_command(commands, "fmt", "the canonical layout of programs", _FMT, _FMT_EPILOG))
    _explain(_command(commands, "explain", "what a message means and what to do", "", _EXPLAIN_EPILOG))
    _show(_command(commands, "show", "the library, the language, or a program's plan", _SHOW, _SHOW_EPILOG))
    _simulate(
        _command(commands, "simulate", "what an iteration loses to changing circuits", _SIMULATE, _SIMULATE_EPILOG)
    )
    _cost(_command(commands, "cost", "power and price against packet-switched fabrics", _COST, _COST_EPILOG))
    _graph(_command(commands, "graph", "draw a fabric, or the circuits of a part", "", _GRAPH_EPILOG))
    _schema(_command(commands, "schema", "JSON Schema of what opusc writes", "", _SCHEMA_EPILOG))
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    description: str,
    epilog: str,
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=description or summary[0].upper() + summary[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _program_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-D",
        dest="params",
        metavar="NAME=VALUE",
        type=_definition,
        action="append",
        default=[],
        help="give a param its value, for example -D dp=8",
    )
    parser.add_argument("--root", metavar="DIR", help="folder that `use` may read below (default: the program's own)")
    parser.add_argument(
        "--format",
        choices=("text", "concise", "json"),
        default="text",
        help="form of the messages (default: text)",
    )


def _part_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--phase", metavar="NAME", help="only this phase, for example dp")
    parser.add_argument("--stage", metavar="N", type=_index, help="only this pipeline stage")
    parser.add_argument("--step", metavar="N", type=_index, help="only this step")


def _compile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="a program; - for standard input")
    parser.add_argument("-o", "--output", metavar="DIR", default="build", help="output directory (default: build)")
    parser.add_argument(
        "-t",
        "--target",
        dest="targets",
        metavar="TARGET[,...]",
        action="append",
        help="what to write (default: plan,graphviz)",
    )
    parser.add_argument(
        "--max-output",
        metavar="SIZE",
        type=_size,
        default=2 << 30,
        help="refuse to write more than this for one target (default: 2 GiB)",
    )
    _program_options(parser)


def _check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="a program; - for standard input")
    _program_options(parser)


def _fmt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="a program; - for standard input")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("-i", "--in-place", action="store_true", help="rewrite the files")
    how.add_argument("--check", action="store_true", help="name the files that would change")
    how.add_argument("--diff", action="store_true", help="show what would change")


def _explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", metavar="CODE", nargs="?", help="a code such as OPUS201")


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="TOPIC|FILE", help="a topic, or a program; - for standard input")
    parser.add_argument("kind", metavar="KIND", nargs="?", help="with `fields`: one kind of declaration")
    _part_options(parser)
    parser.add_argument("--rank", metavar="N", type=_index, help="the groups, peers and circuits of this rank")
    _program_options(parser)


def _simulate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a program; - for standard input")
    parser.add_argument(
        "--reconfigure",
        dest="delays",
        metavar="DELAY[,...]",
        type=_delays,
        help="delays of a change, for example 0,10ms,0.5s (default: what the switches say)",
    )
    parser.add_argument(
        "--policy",
        dest="policies",
        metavar="POLICY[,...]",
        type=_policies,
        help="on_demand, provisioned or both (default: what the job says, else both)",
    )
    parser.add_argument(
        "--bytes-per-element",
        metavar="N",
        type=_element,
        default=1,
        help="bytes of an element of every tensor (default: 1, as the published traces count)",
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="write a table (CSV) and drawings (SVG) there")
    _program_options(parser)


def _cost(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a program; - for standard input")
    _program_options(parser)


def _graph(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a program; - for standard input")
    _part_options(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="a .dot, .svg or .png file (default: DOT to stdout)")
    _program_options(parser)


def _schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="plan, diagnostics, or another that is listed")


def _definition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier() or not value.strip():
        raise argparse.ArgumentTypeError(f"`{text}` should be NAME=VALUE, for example dp=8")
    return name.strip(), value.strip()


def _index(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"`{text}` should be a number from 0")
    return int(text)


_PICOSECONDS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}


def _delays(text: str) -> list[int]:
    """Picoseconds of each delay of a list."""
    found = []
    for item in text.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:\.(\d{1,12}))?\s*([a-z]*)", item.strip(), re.ASCII)
        unit = _PICOSECONDS.get(match[3]) if match else None
        zero = match is not None and not match[3] and not int(match[1]) and not int(match[2] or 0)
        if match is None or (unit is None and not zero):
            raise argparse.ArgumentTypeError(f"`{item.strip()}` should be a time such as 10ms or 0.5s")
        decimals = match[2] or ""
        found.append(int(match[1] + decimals) * (unit or 1) // 10 ** len(decimals))
    return found


def _policies(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in ("on_demand", "provisioned"):
            raise argparse.ArgumentTypeError(f"`{name}` should be on_demand or provisioned")
    return list(dict.fromkeys(names))


def _element(text: str) -> int:
    if text not in ("1", "2", "4", "8"):
        raise argparse.ArgumentTypeError(f"`{text}` should be 1, 2, 4 or 8")
    return int(text)


_SIZES = {"": 1, "B": 1}
_SIZES |= {f"{prefix}B": 1000**power for power, prefix in enumerate("kMGT", 1)}
_SIZES |= {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", 1)}


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d{1,15})\s*([A-Za-z]*)", text.strip(), re.ASCII)
    if match is None or match[2] not in _SIZES:
        raise argparse.ArgumentTypeError(f"`{text}` should be a size such as 500 MB or 2 GiB")
    return int(match[1]) * _SIZES[match[2]]
