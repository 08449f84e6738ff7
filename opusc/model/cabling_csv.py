"""Cabling from CSV files, straight to the switch or through patch panels.

One file has a row for each NIC port: columns `node`, `gpu`, `port` and `position`, with `side` or `receive` where the
optics ask for it, and `length` in metres where it is known. Several files are joined end to end: the first leads from
NIC ports to `far`, the next ones from `near` to `far`, the last from `near` to `position`. `columns = { node =
"Host", ... }` says how the columns are called. A node is its number, or letters and then its number (`node12`).
"""

import csv
import re
from io import StringIO

from opusc.diagnostics import Label
from opusc.diagnostics.suggest import closest
from opusc.model.entities import Cable, Side
from opusc.model.evaluate import Stop
from opusc.model.loader import FileLoader
from opusc.model.reader import Reader
from opusc.model.values import Applied, Block
from opusc.source import Source, Span

__all__ = ["cables_from_csv"]

_FIRST = ("node", "gpu", "port")
_LAST = ("position", "side", "receive")
_MOST_WRONG = 10  # rows of one file that are complained about
Row = dict[str, str]


def cables_from_csv(reader: Reader, word: Applied, loader: FileLoader) -> tuple[Cable, ...] | None:
    names = _columns(reader, word)
    files = _files(reader, word, loader)
    if names is None or not files:
        return None
    tables = []
    for at, source in enumerate(files):
        start = _FIRST if at == 0 else ("near",)
        wanted = (*start, "far" if at < len(files) - 1 else "position")
        table = _read(reader, source, wanted, names)
        if table is None:
            return None
        tables.append(table)
    return _joined(reader, tables)


def _columns(reader: Reader, word: Applied) -> dict[str, str] | None:
    """Our name of each column -> the file's."""
    names = {name: name for name in (*_FIRST, *_LAST, "near", "far", "length")}
    for entry in word.block.entries if word.block else ():
        found = reader.of(entry.value)
        if found is None:
            return None
        columns, span = found
        if not isinstance(columns, Block):
            reader.wrong("columns", columns, span, "a record", help='for example `columns = { node = "Host" }`')
            return None
        for column in columns.entries:
            text = reader.of(column.value)
            if column.name not in names:
                reader.ev.sink.error(
                    "OPUS207", f"`columns` has no field `{column.name}`", column.span,
                    help=f"columns: {', '.join(names)}",
                )  # fmt: skip
                return None
            if text is None or not isinstance(text[0], str):
                if text is not None:
                    reader.wrong(column.name, *text, "a text, the name in the file")
                return None
            names[column.name] = text[0].strip()
    return names


def _files(reader: Reader, word: Applied, loader: FileLoader) -> list[Source]:
    ev = reader.ev
    if word.argument is None:
        ev.sink.error("OPUS209", "`csv` does not name a file", word.span, 'write `csv "cabling.csv"`')
        return []
    found = reader.of(word.argument)
    if found is None:
        return []
    value, span = found
    try:
        paths = [value] if isinstance(value, str) else ev.items(value, span)
    except Stop:
        return []
    sources = []
    for path in paths:
        if not isinstance(path, str):
            reader.wrong("csv", path, span, "a file name or a list of them")
            return []
        source = loader.file(path, span.source, span, ev.sink)
        if source is None:
            return []
        sources.append(source)
    return sources


def _read(
    reader: Reader, source: Source, wanted: tuple[str, ...], names: dict[str, str]
) -> list[tuple[Row, Span]] | None:
    """The rows of a file by our column names, each with its line."""
    sink = reader.ev.sink
    rows = csv.reader(StringIO(source.text))  # which ends lines at \n only, as sources do
    try:
        header = next(rows, None)
        if header is None:
            sink.error("OPUS309", f"`{source.name}` is empty", source.span(0, 0), "no header")
            return None
        header = [cell.strip() for cell in header]
        for name in wanted:
            if names[name] not in header:
                near = closest(names[name], header)
                sink.error(
                    "OPUS309", f"`{source.name}` has no column `{names[name]}`", source.line_span(1),
                    f"did you mean `{near}`?" if near else "the header",
                    help="cells are separated by commas" if ";" in source.line_text(1) else
                    f'if it is called otherwise, say so: `columns = {{ {name} = "..." }}`',
                )  # fmt: skip
                return None
        at = {ours: header.index(theirs) for ours, theirs in names.items() if theirs in header}
        twice = next((names[ours] for ours in at if header.count(names[ours]) > 1), None)
        if twice is not None:
            sink.error("OPUS309", f"`{source.name}` has two columns `{twice}`", source.line_span(1), "the header")
            return None
        found = []
        line = rows.line_num
        for cells in rows:
            # A row whose cells hold line ends is named by its first line.
            here, line = source.line_span(line + 1), rows.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                sink.error("OPUS309", f"{len(cells)} cells under {len(header)} columns", here, "this row")
                return None
            row = {ours: cells[i].strip() for ours, i in at.items()}
            empty = next((names[ours] for ours in wanted if not row[ours]), None)
            if empty is not None:
                sink.error("OPUS309", f"nothing stands under `{empty}`", here, "this row")
                return None
            found.append((row, here))
        if not found:
            sink.error("OPUS309", f"`{source.name}` has no rows", source.line_span(1), "only a header")
            return None
    except csv.Error as error:
        sink.error("OPUS309", f"`{source.name}` is no CSV: {error}", source.line_span(max(rows.line_num, 1)))
        return None
    return found


def _joined(reader: Reader, tables: list[list[tuple[Row, Span]]]) -> tuple[Cable, ...] | None:
    """Follow each NIC port through the panels to its position."""
    onward: list[dict[str, tuple[Row, Span]]] = []
    for table in tables[1:]:
        jacks: dict[str, tuple[Row, Span]] = {}
        for row, span in table:
            if row["near"] in jacks:
                _two_cables(reader, row["near"], span, jacks[row["near"]][1])
                return None
            jacks[row["near"]] = row, span
        onward.append(jacks)
    for table in tables[:-1]:
        behind: dict[str, Span] = {}
        for row, span in table:
            if row["far"] in behind:
                _two_cables(reader, row["far"], span, behind[row["far"]])
                return None
            behind[row["far"]] = span
    ends = _followed(reader, tables[0], onward)
    if ends is None:
        return None
    cables, wrong = [], 0
    for row, span, last, way in ends:
        cable = _cable(reader, row, span, last, way)
        wrong += cable is None
        if wrong == _MOST_WRONG:
            return None
        if cable is not None:
            cables.append(cable)
    return None if wrong else tuple(cables)


def _two_cables(reader: Reader, jack: str, span: Span, before: Span) -> None:
    reader.ev.sink.error("OPUS303", f"jack `{jack}` has two cables", span, "second", secondary=[Label(before, "first")])


def _followed(
    reader: Reader, first: list[tuple[Row, Span]], onward: list[dict[str, tuple[Row, Span]]]
) -> list[tuple[Row, Span, Span, tuple[str, ...]]] | None:
    """All cells on the way of each cable, with the rows of its first and last end and the jacks between them."""
    found: list[tuple[Row, Span, Span, tuple[str, ...]]] = [(row, span, span, ()) for row, span in first]
    for jacks in onward:
        loose = [(row["far"], span) for row, span, *_ in found if row["far"] not in jacks]
        if loose:
            jack, span = loose[0]
            others = len(loose) - 1
            reader.ev.sink.error(
                "OPUS309", f"the cable at jack `{jack}` goes nowhere", span, "it starts here",
                notes=[f"{others:,} more of {len(found):,} cables end{'s' * (others == 1)} so"] if others else [],
                help="the next file has no row whose near end is this jack",
            )  # fmt: skip
            return None
        found = [(_onward(row, jacks[row["far"]][0]), span, jacks[row["far"]][1], (*way, row["far"]))
                 for row, span, _, way in found]  # fmt: skip
    return found


def _onward(row: Row, piece: Row) -> Row:
    """The cells of a cable that goes on at a jack. Lengths are those of all pieces, with `+` between them."""
    return row | piece | {"length": f"{row.get('length', '')}+{piece.get('length', '')}"}


def _length(reader: Reader, row: Row, span: Span) -> tuple[bool, int | None]:
    """Whether the lengths of a cable's pieces can be read, and their sum in mm; None where no file has them."""
    pieces = [piece.strip() for piece in row.get("length", "").split("+")]
    if not any(pieces):
        return True, None
    total = 0
    for piece in pieces:
        match = re.fullmatch(r"([0-9]{1,6})(?:\.([0-9]{1,3}))?\s*m?", piece)
        if match is None:
            what = f"`{_brief(piece)}` is no length" if piece else "a piece of this cable has no length"
            reader.ev.sink.error("OPUS309", what, span, "metres, to the millimetre: `2.5`, `30 m`")
            return False, None
        total += int(match[1]) * 1000 + int((match[2] or "0").ljust(3, "0"))
    return True, total


def _cable(reader: Reader, row: Row, span: Span, last: Span, jacks: tuple[str, ...]) -> Cable | None:
    numbers: dict[str, int] = {}
    for name in (*_FIRST, "position", "receive"):
        text = row.get(name, "")
        if name == "receive" and not text:
            continue
        match = re.fullmatch(r"[A-Za-z_.-]*?0*([0-9]{1,9})" if name == "node" else r"([0-9]{1,9})", text)
        if match is None:
            reader.ev.sink.error(
                "OPUS309", f"`{_brief(text)}` is no {name}", last if name in _LAST else span,
                "a whole number" + (", or letters and then one: `node12`" if name == "node" else ""),
            )  # fmt: skip
            return None
        numbers[name] = int(match[1])
    side = row.get("side", "")
    if side and side not in ("A", "B"):
        reader.ev.sink.error("OPUS309", f"`{side}` is no side", last, "A or B")
        return None
    known, length = _length(reader, row, span)
    if not known:
        return None
    return Cable(
        length=length,
        node=numbers["node"],
        gpu=numbers["gpu"],
        port=numbers["port"],
        position=numbers["position"],
        side=Side(side) if side else None,
        receive=numbers.get("receive"),
        jacks=jacks,
        span=span,
        spans={"position": last},
    )


def _brief(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
