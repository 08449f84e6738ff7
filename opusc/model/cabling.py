"""Cabling as stated: in order, shared chassis, inline rows, or CSV files."""

from opusc.diagnostics import Label
from opusc.model.blocks import element_span
from opusc.model.cabling_csv import cables_from_csv
from opusc.model.entities import Cable, CablingKind, CablingSpec, Cluster, Side
from opusc.model.evaluate import Stop
from opusc.model.loader import FileLoader
from opusc.model.reader import Reader
from opusc.model.values import Applied, Entry
from opusc.source import Span

__all__ = ["cabling"]


def cabling(reader: Reader, cluster: Cluster, rail_count: int, loader: FileLoader) -> CablingSpec | None:
    if not reader.has("cabling"):
        return CablingSpec(kind=CablingKind.IN_ORDER, span=reader.block.span)
    word = reader.choice("cabling")
    if word is None:
        return None
    if word.word == "share":
        return _share(reader, word, rail_count)
    rows = _explicit(reader, word) if word.word == "explicit" else cables_from_csv(reader, word, loader)
    if rows is None:
        return None
    for row in rows:
        if row.receive == row.position:
            reader.ev.sink.error(
                "OPUS303", f"transmit and receive of one port are both at position {row.position}", row.at("position"),
                "twice", help="a duplex port on an `any` matrix takes two positions",
            )  # fmt: skip
    return CablingSpec(kind=CablingKind.LISTED, cables=rows, span=word.span, sides=_sides(rows, cluster))


def _sides(rows: tuple[Cable, ...], cluster: Cluster) -> tuple[Side, ...]:
    """The side of each NIC port, where the rows agree on it; empty where they do not say."""
    sides: dict[int, Side] = {}
    for row in rows:
        if row.side is not None:
            sides.setdefault(row.port, row.side)
    ports = range(cluster.rail_nic.ports)
    return tuple(sides[p] for p in ports) if all(p in sides for p in ports) else ()


def _share(reader: Reader, word: Applied, rail_count: int) -> CablingSpec | None:
    sink = reader.ev.sink
    entries = word.block.entries if word.block else ()
    ranges: dict[int, tuple[int, ...]] = {}
    spans = {"share": word.span}
    taken: dict[int, tuple[int, Span]] = {}
    for entry in entries:
        rails = _share_rails(reader, entry, rail_count)
        positions = reader.as_indices("rail", entry.value) if rails else None
        if rails is None or positions is None:
            return None
        share = len(positions) // len(rails)
        for number, rail in enumerate(rails):
            mine = positions[number * share : (number + 1) * share]
            if rail in ranges:
                sink.error("OPUS208", f"rail {rail} is stated twice", entry.span, "again here")
                return None
            for position in mine:
                if position in taken:
                    other, span = taken[position]
                    sink.error(
                        "OPUS303",
                        f"position {position} is given to rail {other} "
                        + (f"and to rail {rail}" if other != rail else "twice"),
                        entry.value.span, f"rail {rail}", secondary=[Label(span, f"rail {other}")],
                    )  # fmt: skip
                    return None
                taken[position] = rail, entry.value.span
            ranges[rail] = mine
            spans[f"rail {rail}"] = entry.value.span
    missing = [rail for rail in range(rail_count) if rail not in ranges]
    if missing:
        listed = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
        sink.error(
            "OPUS209", f"`share` gives no positions to rail{'s' * (len(missing) > 1)} {listed}", word.span,
            f"rails are 0..{rail_count - 1}",
        )  # fmt: skip
        return None
    return CablingSpec(kind=CablingKind.SHARE, share=tuple(sorted(ranges.items())), span=word.span, spans=spans)


def _share_rails(reader: Reader, entry: Entry, rail_count: int) -> tuple[int, ...] | None:
    if entry.name != "rail" or entry.selection is None:
        reader.ev.sink.error(
            "OPUS207",
            f"`share` has no field `{entry.name}`",
            entry.span,
            help="write `rail 0 = 1..8`, a line for each rail",
        )
        return None
    rails = reader.as_indices("rail", entry.selection)
    bad = next((rail for rail in rails or () if not 0 <= rail < rail_count), None)
    if bad is not None:
        reader.ev.sink.error(
            "OPUS204", f"there is no rail {bad}: rails are 0..{rail_count - 1}", entry.selection.span, "no such rail"
        )
        return None
    return rails


def _explicit(reader: Reader, word: Applied) -> tuple[Cable, ...] | None:
    """`explicit { of = [(node, gpu, port, position), ...] }`, with the side, A or B, as a fifth text."""
    ev = reader.ev
    entry = word.block.get("of") if word.block else None
    if entry is None:
        ev.sink.error("OPUS209", "`explicit` does not state `of`", word.span, "`of` is missing")
        return None
    found = reader.of(entry.value)
    if found is None:
        return None
    value, span = found
    try:
        items = ev.items(value, span)
    except Stop:
        return None
    rows: list[Cable] = []
    for at, item in enumerate(items):
        place = element_span(entry.value.expression, at)
        numbers = item[:4] if isinstance(item, tuple) else ()
        rest = item[4:] if isinstance(item, tuple) else ()
        if len(numbers) < 4 or not all(type(n) is int for n in numbers) or not _rest_fits(rest):
            ev.sink.error(
                "OPUS212", f"element {at} of `of` is no cable", place, "not (node, gpu, port, position)",
                help='a fifth element is the side, "A" or "B", or the position of the receiver on an `any` matrix',
            )  # fmt: skip
            return None
        node, gpu, port, position = numbers
        side = Side(rest[0]) if rest and isinstance(rest[0], str) else None
        receive = rest[0] if rest and isinstance(rest[0], int) else None
        rows.append(Cable(node=node, gpu=gpu, port=port, position=position, side=side, receive=receive, span=place))
    return tuple(rows)


def _rest_fits(rest: tuple[object, ...]) -> bool:
    return not rest or (len(rest) == 1 and (rest[0] in ("A", "B") or type(rest[0]) is int))
