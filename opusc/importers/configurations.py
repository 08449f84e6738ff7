"""Configurations of one switch, as controllers and switches have them: named sets of circuits with their places.

- `opus-controller`: the YAML of the published controller, `cross-connects` with `ingress` and `egress` lists;
- `polatis`: NETCONF, RESTCONF or SCPI, one set;
- `sonic`: `config_db.json`, one set; `7A` is ingress 7, `7B` egress N + 7 on a switch of N x N.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opusc.control.exports import held_in
from opusc.diagnostics import Diagnostics
from opusc.source import Source, Span

__all__ = ["FORMATS", "Circuit", "Configuration", "configurations"]

FORMATS = ("opus-controller", "polatis", "sonic")


@dataclass(frozen=True, slots=True)
class Circuit:
    """From an ingress to an egress port of the switch, both by number, and the places that say so."""

    ingress: int
    egress: int
    ingress_span: Span
    egress_span: Span


@dataclass(frozen=True, slots=True)
class Configuration:
    name: str
    span: Span
    circuits: tuple[Circuit, ...]


def configurations(source: Source, form: str, radix: int, sink: Diagnostics) -> list[Configuration]:
    """The configurations of a file; what cannot be read is an error in the sink (OPUS770)."""
    if form == "opus-controller":
        return list(_controller(source, sink))
    return list(_single(source, form, radix, sink))


def _wrong(sink: Diagnostics, span: Span, text: str, label: str = "", help_: str = "") -> None:
    sink.error("OPUS770", text, span, label, help=help_)


# --- one set -------------------------------------------------------------------------------------


def _single(source: Source, form: str, radix: int, sink: Diagnostics) -> Iterator[Configuration]:
    try:
        found, pairs = held_in(source.text)
    except ValueError as error:
        _wrong(sink, source.line_span(1), f"the configuration cannot be read: {error}")
        return
    if (form == "sonic") != (found == "CONFIG_DB"):
        _wrong(sink, source.line_span(1), f"this is {found}, not a configuration of {form}")
        return
    circuits = []
    for a, b in sorted(pairs, key=lambda pair: (len(pair[0]), pair)):
        ends = (_number(a, radix, ingress=True), _number(b, radix, ingress=False))
        spans = (_place(source, a), _place(source, b))
        bad = next((at for at, end in enumerate(ends) if end is None), None)
        if bad is not None:
            _wrong(sink, spans[bad], f"`{(a, b)[bad]}` is no port of the switch", "a number, or 7A and 7B on SONiC")
            continue
        circuits.append(Circuit(ends[0] or 0, ends[1] or 0, *spans))
    yield Configuration("running", source.line_span(1), tuple(circuits))


def _number(name: str, radix: int, *, ingress: bool) -> int | None:
    match = re.fullmatch(r"(\d{1,6})([AB]?)", name)
    if match is None or (match[2] and match[2] != ("A" if ingress else "B")):
        return None
    return int(match[1]) + (radix if match[2] == "B" else 0)


def _place(source: Source, name: str) -> Span:
    """Where a port is first named; the whole first line where it is not found."""
    match = re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", source.text)
    return source.line_span(1) if match is None else source.span(*match.span())


# --- the controller's YAML -----------------------------------------------------------------------


def _controller(source: Source, sink: Diagnostics) -> Iterator[Configuration]:
    import yaml

    try:
        root = yaml.compose(source.text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        span = source.line_span(1) if mark is None else source.span(mark.index, mark.index)
        _wrong(sink, span, f"the configuration is no YAML: {getattr(error, 'problem', None) or error}")
        return
    sets = _field(root, "cross-connects")
    if not isinstance(sets, yaml.MappingNode):
        _wrong(
            sink, source.line_span(1), "the configuration has no mapping `cross-connects`",
            help_="the published controller reads `cross-connects: {'0': {ingress: [...], egress: [...]}, ...}`",
        )  # fmt: skip
        return
    for key, value in sets.value:
        span = source.span(key.start_mark.index, key.end_mark.index)
        sides = [_ports(source, _field(value, side), side, span, sink) for side in ("ingress", "egress")]
        if sides[0] is None or sides[1] is None:
            continue
        if len(sides[0]) != len(sides[1]):
            _wrong(
                sink, span, f"`{key.value}` lists {len(sides[0])} ingress and {len(sides[1])} egress ports",
                "entry i of one goes to entry i of the other",
            )  # fmt: skip
            continue
        circuits = [Circuit(a, b, x, y) for (a, x), (b, y) in zip(*sides, strict=True)]
        yield Configuration(str(key.value), span, tuple(circuits))


def _field(node: Any, name: str) -> Any:
    import yaml

    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for key, value in node.value if key.value == name), None)


def _ports(source: Source, node: Any, side: str, entry: Span, sink: Diagnostics) -> list[tuple[int, Span]] | None:
    import yaml

    if not isinstance(node, yaml.SequenceNode):
        _wrong(sink, entry, f"an entry has no list `{side}`")
        return None
    found = []
    for item in node.value:
        span = source.span(item.start_mark.index, item.end_mark.index)
        if not isinstance(item, yaml.ScalarNode) or not re.fullmatch(r"\d{1,6}", str(item.value)):
            _wrong(sink, span, f"`{span.text[:40]}` is no port number")
            return None
        found.append((int(item.value), span))
    return found
