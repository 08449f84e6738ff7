"""Reading blocks: each field once, against the schema, with messages that say what would have been right."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from opusc.diagnostics import Edit, Label
from opusc.diagnostics.suggest import closest
from opusc.model.evaluate import Evaluator, Stop
from opusc.model.schema import APPLIED, ARGUMENTS, KINDS, Choice, Count, FieldSpec, Measure
from opusc.model.units import DIMENSIONS, UNITS, Quantity, describe, show
from opusc.model.values import Applied, Block, Bound, Entry, Interval, Value, kind_of
from opusc.source import Span

__all__ = ["Reader", "a_block"]


class Reader:
    """One block, read as a kind. Each getter gives None when the field is absent or wrong (and has said so)."""

    def __init__(
        self,
        evaluator: Evaluator,
        block: Block,
        kind: str,
        what: str = "",
        *,
        partial: bool = False,
        used: Span | None = None,
    ) -> None:
        """`partial` blocks may lack required fields. `used` is where another file uses this block."""
        self.ev, self.block, self.kind = evaluator, block, KINDS[kind]
        self.used = used or block.span
        self.what = what or block.name or kind
        # Fields that unknown ones were most likely meant to be: not missing as well.
        self.meant: set[str] = set()
        if kind != "topology":  # whose conditions depend on the size of a group
            evaluator.requires += block.requires
        self._check_names()
        if not partial:
            self._check_required()

    @property
    def title(self) -> str:
        return self.kind.name if self.what == self.kind.name else f"{self.kind.name} `{self.what}`"

    # --- names ---------------------------------------------------------------------------------

    def _check_names(self) -> None:
        seen: dict[tuple[str, str, str], Entry] = {}
        for entry in self.block.entries:
            spec = self.kind.field(entry.name)
            if spec is None:
                self._unknown(entry)
            elif entry.selection is not None and not spec.selected:
                self._misplaced(entry, f"`{entry.name}` takes no selection")
            elif entry.label and not spec.labelled:
                self._misplaced(entry, f"`{entry.name}` takes no label")
            if before := seen.get(entry.key):
                self.ev.sink.error(
                    "OPUS208",
                    f"`{entry.name}` is stated twice",
                    entry.span,
                    "again here",
                    secondary=[Label(before.span, "first here")],
                )
            seen[entry.key] = entry
        if self.kind.name not in ("job", "phase") and self.block.phases:
            phase, _ = self.block.phases[0]
            self.ev.sink.error("OPUS207", "phases belong to a job", phase.name.span, f"this is a {self.kind.name}")

    def _check_required(self) -> None:
        for spec in self.kind.fields:
            if spec.required and self.absent(spec.name):
                self.ev.sink.error(
                    "OPUS209",
                    f"{self.title} does not state `{spec.name}`",
                    self.used,
                    f"`{spec.name}` is missing",
                    notes=[f"`{spec.name}`: {spec.doc}"],
                )

    def _misplaced(self, entry: Entry, message: str) -> None:
        self.ev.sink.error("OPUS207", message, entry.span, f"in {self.title}")

    def _unknown(self, entry: Entry) -> None:
        names = [spec.name for spec in self.kind.fields]
        if (owner := dict(self.kind.nested).get(entry.name)) is not None:
            self._nested(entry, owner)
            return
        near = closest(entry.name, names)
        self.meant |= {near} if near else set()
        elsewhere = [k.name for k in KINDS.values() if k.field(entry.name) is not None]
        notes = [f"`{entry.name}` is a field of {', '.join(elsewhere)}"] if elsewhere and not near else []
        self.ev.sink.error(
            "OPUS207",
            f"{self.kind.name} has no field `{entry.name}`",
            entry.span,
            f"did you mean `{near}`?" if near else f"unknown in {self.title}",
            notes=notes,
            help=f"fields: {', '.join(names)}",
            fix=[Edit(entry.span, near)] if near else [],
        )

    def _nested(self, entry: Entry, owner: str) -> None:
        """`dp = 4, shard = 32`: the second belongs inside the first."""
        whole = self.entry(owner)
        others = [name for name, field in self.kind.nested if field == owner and name != entry.name]
        missing = [name for name in others if self.entry(name) is None]
        parts = {entry.name: entry.value.span.text}
        if whole is not None and missing:
            parts = {missing[0]: whole.value.span.text, **parts}
        written = f"{owner} = {{ {', '.join(f'{k} = {v}' for k, v in parts.items())} }}"
        before = entry if whole is None else whole
        first, last = sorted((before, entry), key=lambda e: e.span.start)
        adjacent = (
            whole is not None
            and missing
            and not first.value.span.source.text[first.value.span.end : last.span.start].strip(" ,\n")
        )
        self.ev.sink.error(
            "OPUS207",
            f"`{entry.name}` is part of {owner}: `{written}`",
            entry.span,
            f"not a field of {self.kind.name}",
            fix=[Edit(first.span.to(last.value.span), written)] if adjacent else [],
        )

    # --- entries -------------------------------------------------------------------------------

    def spec(self, name: str) -> FieldSpec:
        spec = self.kind.field(name)
        assert spec is not None, f"{self.kind.name}.{name} is not in the schema"
        return spec

    def entry(self, name: str) -> Entry | None:
        return self.block.get(name)

    def has(self, name: str) -> bool:
        return self.entry(name) is not None

    def absent(self, name: str) -> bool:
        """Whether nothing states the field, not even a misspelt one."""
        return name not in self.meant and not any(entry.name == name for entry in self.block.entries)

    def all(self, name: str) -> Iterator[Entry]:
        """Every entry of a labelled or selected field."""
        return (e for e in self.block.entries if e.name == name)

    def spans(self) -> dict[str, Span]:
        """Where the value of each plain field stands."""
        return {e.name: e.value.span for e in self.block.entries if not e.label and e.selection is None}

    def value(self, name: str, words: Sequence[str] = ()) -> tuple[Value, Span] | None:
        entry = self.entry(name)
        return None if entry is None else self.of(entry.value, words)

    def of(self, bound: Bound, words: Sequence[str] = ()) -> tuple[Value, Span] | None:
        try:
            return self.ev.bound(bound, words), bound.span
        except Stop:
            return None

    def wrong(self, name: str, value: Value, span: Span, wanted: str, **more: object) -> None:
        self.ev.sink.error(
            "OPUS201",
            f"`{name}` is {wanted}, not {kind_of(value)}",
            span,
            kind_of(value),
            **more,  # type: ignore[arg-type]
        )

    # --- typed getters -------------------------------------------------------------------------

    def count(self, name: str) -> int | None:
        spec, found = self.spec(name), self.value(name)
        assert isinstance(spec.type, Count)
        return None if found is None else self.as_count(name, *found, spec.type)

    def as_count(self, name: str, value: Value, span: Span, type_: Count) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(name, value, span, "a whole number")
            return None
        if not type_.least <= value <= type_.most:
            limit = f"at least {type_.least}" if value < type_.least else f"at most {type_.most:,}"
            self.ev.sink.error("OPUS204", f"`{name}` is {value:,}; it must be {limit}", span, "out of range")
            return None
        return value

    def measure(self, name: str) -> int | None:
        """A quantity in base units, as an integer."""
        spec, found = self.spec(name), self.value(name)
        assert isinstance(spec.type, Measure)
        return None if found is None else self.as_measure(name, *found, spec.type)

    def as_measure(self, name: str, value: Value, span: Span, type_: Measure) -> int | None:
        if not isinstance(value, Quantity):
            self._no_unit(name, value, span, type_)
            return None
        if describe(value.dimension) != type_.dimension:
            self.wrong(name, value, span, f"a {type_.dimension}", help=f"for example `200 {type_.unit}`")
            return None
        exact = value.value
        if type_.dimension in ("bandwidth", "compute rate"):
            exact *= 10**12  # per second, not per picosecond
        if type_.dimension in ("loss per length", "delay per length"):
            exact *= 10**6  # per kilometre, not per millimetre
        exact /= type_.per
        if exact.denominator != 1:
            self.ev.sink.error("OPUS204", f"`{name}` is no whole number of base units", span, str(value))
            return None
        if (exact < 0 and not type_.signed) or exact.numerator.bit_length() > 63:
            self.ev.sink.error(
                "OPUS204", f"`{name}` is {value}: {'negative' if exact < 0 else 'far too large'}", span, "out of range"
            )
            return None
        return exact.numerator

    def _no_unit(self, name: str, value: Value, span: Span, type_: Measure) -> None:
        if isinstance(value, bool) or not isinstance(value, int | Fraction):
            way_out = "write it without quotes" if isinstance(value, str) else f"for example `200 {type_.unit}`"
            self.wrong(name, value, span, f"a {type_.dimension}", help=way_out)
            return
        written = f"{value} {type_.unit}"
        means = _in_other_words(Fraction(value), type_)
        self.ev.sink.error(
            "OPUS202",
            f"`{name}` is a {type_.dimension}; {value} has no unit",
            span,
            "no unit",
            help=f"write `{written}`{means}",
            fix=[Edit(Span(span.source, span.end, span.end), f" {type_.unit}")],
        )

    def choice(self, name: str) -> Applied | None:
        """An enumeration word, with what was put to it."""
        spec = self.spec(name)
        assert isinstance(spec.type, Choice)
        return self.word(name, spec.type.words)

    def word(self, name: str, words: Sequence[str]) -> Applied | None:
        entry = self.entry(name)
        if entry is None:
            return None
        found = self.of(entry.value, words)
        return None if found is None else self.as_word(name, *found, words)

    def as_word(self, name: str, value: Value, span: Span, words: Sequence[str]) -> Applied | None:
        if isinstance(value, Applied) and value.word in words:
            return value if self._arguments_fit(value) else None
        if isinstance(value, str) and (near := closest(value, words)):
            self.ev.sink.error(
                "OPUS210",
                f"the words of `{name}` stand without quotes",
                span,
                f"write `{near}`",
                fix=[Edit(span, near)],
            )
            return None
        self.wrong(name, value, span, f"one of {', '.join(words)}")
        return None

    def _arguments_fit(self, value: Applied) -> bool:
        """Whether a word takes what was put to it."""
        if value.argument is not None and value.word not in APPLIED:
            self.ev.sink.error("OPUS207", f"`{value.word}` takes no value", value.argument.span, "not taken")
            return False
        if value.block is None:
            return True
        self.ev.requires += value.block.requires
        allowed = ARGUMENTS.get(value.word, ())
        takes = f"it takes {', '.join(f'`{a}`' for a in allowed)}" if allowed else "it takes none"
        unknown = [entry for entry in value.block.entries if entry.name not in allowed]
        for entry in unknown:
            near = closest(entry.name, allowed)
            self.ev.sink.error(
                "OPUS207", f"`{value.word}` has no argument `{entry.name}`", entry.span,
                f"did you mean `{near}`?" if near else takes,
            )  # fmt: skip
        return not unknown

    def text(self, name: str) -> str | None:
        found = self.value(name)
        if found is None or isinstance(found[0], str):
            return None if found is None else str(found[0])
        self.wrong(name, found[0], found[1], "a text", help='texts stand in quotes: "10.0.0.1"')
        return None

    def truth(self, name: str) -> bool | None:
        found = self.value(name)
        if found is None or isinstance(found[0], bool):
            return None if found is None else bool(found[0])
        self.wrong(name, found[0], found[1], "true or false")
        return None

    def indices(self, name: str) -> tuple[int, ...] | None:
        """A selection: one index, a list, or a range."""
        entry = self.entry(name)
        return None if entry is None else self.as_indices(name, entry.value)

    def as_indices(self, name: str, bound: Bound) -> tuple[int, ...] | None:
        found = self.of(bound)
        if found is None:
            return None
        value, span = found
        if isinstance(value, int) and not isinstance(value, bool):
            return (value,)
        try:
            items = self.ev.items(value, span)
        except Stop:
            return None
        flat: list[int] = []
        for item in items:
            for one in item if isinstance(item, Interval) else (item,):
                if isinstance(one, bool) or not isinstance(one, int):
                    self.wrong(name, one, span, "made of whole numbers")
                    return None
                flat.append(one)
        return tuple(flat)

    def counts(self, name: str, type_: Count) -> tuple[int, ...] | None:
        """A list of whole numbers."""
        values = self.indices(name)
        entry = self.entry(name)
        if values is None or entry is None:
            return None
        checked = [self.as_count(name, v, entry.value.span, type_) for v in values]
        return None if None in checked else values

    def sub(self, name: str, kind: str) -> "Reader | None":
        """A block field, as a reader of its own."""
        entry = self.entry(name)
        return None if entry is None else self.as_block(name, entry.value, kind)

    def as_block(self, name: str, bound: Bound, kind: str) -> "Reader | None":
        found = self.of(bound)
        if found is None:
            return None
        value, span = found
        if not isinstance(value, Block) or (value.kind and value.kind != kind):
            self.wrong(name, value, span, a_block(kind, name, value))
            return None
        elsewhere = value.span.source is not span.source
        return Reader(self.ev, value, kind, value.name or name, used=span if elsewhere else None)


def a_block(kind: str, name: str, value: Value) -> str:
    """What a field that holds a block needs instead of a value, for messages."""
    return "a block of fields" if kind == name and not isinstance(value, Block) else f"a {kind}"


def _in_other_words(value: Fraction, type_: Measure) -> str:
    """`200 Gbps (25 GB/s)`: bandwidths are quoted in bits and in bytes, and often confused."""
    if type_.dimension != "bandwidth":
        return ""
    other = "GB/s" if type_.unit == "Gbps" else "Gbps"
    ratio = value * UNITS[type_.unit].factor / UNITS[other].factor
    shown = show(ratio * UNITS[other].factor, DIMENSIONS["bandwidth"]) if other == "Gbps" else f"{float(ratio):g} GB/s"
    return f" ({shown})"
