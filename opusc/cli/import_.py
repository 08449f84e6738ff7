"""`opusc import`: what a configuration that exists really connects."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opusc.cli import terminal
from opusc.cli.compiling import Messages, reported
from opusc.cli.tables import labelled, plural, table
from opusc.cli.terminal import UsageError
from opusc.diagnostics import Diagnostics
from opusc.source import Source

if TYPE_CHECKING:
    from opusc.importers.lint import Shape

__all__ = ["DESCRIPTION", "EPILOG", "add_arguments", "run"]

_FORMATS = ("opus-controller", "polatis", "sonic")
_SHOWN = 6  # groups of nodes that people read

DESCRIPTION = """\
Read a controller's or a switch's configuration and say what it really connects,
set by set: rings, pairs and chains of nodes on each rail, ports joined to
themselves, circuits that lead one way, ports used twice or cabled by nobody,
and NIC ports that stay dark. The cabling says whose port a switch port is."""

EPILOG = """\
examples:
  opusc import opus-controller config.yaml --cabling cabling.csv
  opusc import polatis running.xml --cabling cabling.csv
  opusc import sonic config_db.json --cabling cabling.csv --radix 32

The cabling has columns node, gpu, port and position, a row for each NIC port of
the switch. Exit code 1 when a port is used twice or something cannot be read.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("form", metavar="FORMAT", choices=_FORMATS, help=", ".join(_FORMATS))
    parser.add_argument("file", metavar="CONFIG", help="the configuration; - for standard input")
    parser.add_argument("--cabling", metavar="CSV", required=True, help="NIC ports by position of the switch")
    parser.add_argument(
        "--radix", metavar="N", type=_radix, help="positions of the N x N switch (default: found from the egress ports)"
    )
    parser.add_argument(
        "--format",
        choices=("text", "concise", "json"),
        default="text",
        help="form of the messages (default: text)",
    )


def run(options: argparse.Namespace) -> int:
    return reported(options, _run)


def _run(options: argparse.Namespace, messages: Messages) -> int:
    from opusc.importers.cables import Cables, cables, radix_of
    from opusc.importers.configurations import configurations
    from opusc.importers.lint import lint

    sink = Diagnostics()
    config, cabling = (_source(name, sink) for name in (options.file, options.cabling))
    if config is None or cabling is None:
        sink.checkpoint()
        return 1
    at = cables(cabling, sink)
    if at is None:
        messages.add(list(sink))
        return 1
    _needs_yaml(options.form)
    found = configurations(config, options.form, options.radix or max(at), sink)
    radix = options.radix or radix_of(found, at)
    if radix is None:
        sink.error(
            "OPUS770", "the egress ports of the configuration fit no switch size with this cabling",
            config.line_span(1), help="state the size: --radix 32 for a switch of 32 x 32",
        )  # fmt: skip
    shapes = [lint(one, Cables(radix, at), sink) for one in found] if radix is not None else []
    messages.add(list(sink), cut=sink.cut)
    if options.format == "text" and radix is not None:
        sys.stdout.write(_report(shapes, radix, len(at), terminal.width()))
    return 1 if sink.has_errors else 0


def _needs_yaml(form: str) -> None:
    if form == "opus-controller":
        try:
            import yaml  # noqa: F401
        except ImportError as error:
            raise UsageError("reading YAML needs PyYAML: pip install 'opusc[import]'") from error


def _source(name: str, sink: Diagnostics) -> Source | None:
    from opusc.model.loader import decode

    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read `{name}`: {error.strerror or error}") from error
    return decode(data, "<stdin>" if name == "-" else name, None, sink)


def _report(shapes: Sequence["Shape"], radix: int, ports: int, width: int) -> str:
    out = labelled("switch", f"{radix} x {radix}, {plural(ports, 'NIC port')} cabled", width) + "\n"
    head = ("set", "circuits", "rings", "pairs", "chains", "other", "loops", "dark ports")
    rows = [
        (
            shape.name,
            *(str(n) for n in (shape.circuits, *map(len, (shape.rings, shape.pairs, shape.chains, shape.other)))),
            str(shape.loops),
            str(shape.dangling),
        )
        for shape in shapes
    ]
    out += table(head, rows, right=range(1, 8)) + "\n"
    for shape in shapes:
        for kind, groups in (
            ("ring", shape.rings), ("pair", shape.pairs), ("chain", shape.chains), ("other", shape.other),
        ):  # fmt: skip
            for group in groups[:_SHOWN]:
                out += labelled(f"{shape.name} {kind}"[:12], group, width)
            if len(groups) > _SHOWN:
                out += labelled("", f"{plural(len(groups) - _SHOWN, f'more {kind}')}", width)
    return out


def _radix(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 65_536:
        raise argparse.ArgumentTypeError(f"`{text}` should be a number of positions")
    return int(text)
