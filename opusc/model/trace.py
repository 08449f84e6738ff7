"""Measured schedules: `schedule = trace "pattern.txt" { compute = [12 ms, 14 ms] }`.

The files are those that the published controller writes (opusfabric/Opus): for each rank a header, then a line for each
run of equal traffic.

    Node: host3, Rank: 0, Tid: 41
    PP start_backend: 1 start_idx: 0 end_backend: 1 end_idx: 1 len: 2
    DP start_backend: 5 start_idx: 0 end_backend: 5 end_idx: 16 len: 17

Several files, or one that holds them all, may be named. `len` counts collectives. Lines are read, not believed: whether
they are what the job does is for the time model to say.
"""

import re

from opusc.model.evaluate import Stop
from opusc.model.loader import FileLoader
from opusc.model.measured import Trace, TraceRun
from opusc.model.reader import Reader
from opusc.model.schema import Measure
from opusc.model.values import Applied
from opusc.source import Source, Span

__all__ = ["trace"]

_HEADER = re.compile(r"Node:\s*\S+,\s*Rank:\s*(\d{1,9}),\s*Tid:\s*\d+")
_RUN = re.compile(
    r"(?P<phase>[A-Za-z_][\w.]*)\s+start_backend:\s*(?P<backend>\d{1,9})\s+start_idx:\s*(?P<first>\d{1,9})\s+"
    r"end_backend:\s*(?P<last_backend>\d{1,9})\s+end_idx:\s*(?P<last>\d{1,9})\s+len:\s*(?P<length>\d{1,9})"
)
_TIME = Measure("time", "ms")


def trace(reader: Reader, word: Applied, loader: FileLoader) -> Trace | None:
    """The runs of all files; None when the sink says why not."""
    sources = _files(reader, word, loader)
    before = len(reader.ev.sink)
    compute = _compute(reader, word)
    runs: list[TraceRun] = []
    for source in sources:
        found = _read(reader, source)
        if found is None:
            return None
        runs += found
    if not runs or len(reader.ev.sink) > before:
        return None
    return Trace(runs=tuple(runs), compute=compute, span=word.span)


def _files(reader: Reader, word: Applied, loader: FileLoader) -> list[Source]:
    sink = reader.ev.sink
    if word.argument is None:
        sink.error("OPUS209", "`trace` does not name a file", word.span, 'write `trace "pattern.txt"`')
        return []
    found = reader.of(word.argument)
    if found is None:
        return []
    value, span = found
    try:
        paths = [value] if isinstance(value, str) else reader.ev.items(value, span)
    except Stop:
        return []
    sources = []
    for path in paths:
        if not isinstance(path, str):
            reader.wrong("trace", path, span, "a file name or a list of them")
            return []
        source = loader.file(path, span.source, span, sink)
        if source is None:
            return []
        sources.append(source)
    return sources


def _compute(reader: Reader, word: Applied) -> tuple[int, ...] | None:
    """The stated compute time of each stage, in picoseconds."""
    entry = word.block.get("compute") if word.block else None
    if entry is None:
        return None
    try:
        items = reader.ev.items(reader.ev.bound(entry.value), entry.value.span)
    except Stop:
        return None
    times = [reader.as_measure("compute", item, entry.value.span, _TIME) for item in items]
    if any(time is None for time in times):
        return None
    if 0 in times or not times:
        reader.ev.sink.error(
            "OPUS435",
            f"`compute` of stage {times.index(0)} is 0" if times else "`compute` is empty",
            entry.value.span,
            "no time at all",
            notes=["a stage computes for some time in an iteration"],
            help="leave `compute` out: the time model works it out",
        )
        return None
    return tuple(time for time in times if time is not None)


def _read(reader: Reader, source: Source) -> list[TraceRun] | None:
    found: list[TraceRun] = []
    rank: int | None = None
    for number, text in enumerate(source.text.splitlines(), 1):
        line = text.strip()
        if not line:
            continue
        here = source.line_span(number)
        if header := _HEADER.fullmatch(line):
            rank = int(header[1])
            continue
        if rank is None:
            _bad(reader, here, "traffic stands before the first `Node: ..., Rank: ..., Tid: ...`")
            return None
        run = _RUN.fullmatch(line)
        if run is None:
            _bad(reader, here, "this is no run of traffic")
            return None
        backend, length = int(run["backend"]), int(run["length"])
        if length < 1:
            _bad(reader, here, "a run has at least one collective")
            return None
        if int(run["last_backend"]) == backend and int(run["last"]) - int(run["first"]) + 1 != length:
            _bad(reader, here, "`len` is not the number of collectives from start to end")
            return None
        found.append(
            TraceRun(
                rank=rank,
                phase=run["phase"].lower(),
                backend=backend,
                first=int(run["first"]),
                length=length,
                span=here,
            )
        )
    if not found:
        _bad(reader, source.span(0, 0), "this trace holds no traffic")
        return None
    return found


def _bad(reader: Reader, span: Span, what: str) -> None:
    reader.ev.sink.error(
        "OPUS433", f"`{span.source.name}`: {what}", span, "this line",
        notes=["a run is `PP start_backend: 1 start_idx: 0 end_backend: 1 end_idx: 1 len: 2`"],
    )  # fmt: skip
