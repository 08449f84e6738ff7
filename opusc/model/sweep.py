"""Reading what nothing else reads, so that all mistakes of a program are said in one run.

The stages read what they need, in order: a wrong cluster ends the fabric, and a wrong fabric the job. The sweep
reads every field of every declared block by its type alone, used or not; what was said before is not said twice.
"""

from opusc.model.evaluate import Evaluator
from opusc.model.reader import Reader, a_block
from opusc.model.schema import Choice, Count, Measure, Record
from opusc.model.values import Block, Bound, Entry, Scope

__all__ = ["placed", "sweep"]


def sweep(ev: Evaluator, block: Block, kind: str, what: str = "") -> None:
    reader = Reader(ev, block, kind, what, partial=True)
    for spec in reader.kind.fields:
        for entry in reader.all(spec.name):
            match spec.type:
                case Count():
                    if found := reader.of(entry.value):
                        reader.as_count(spec.name, *found, spec.type)
                case Measure():
                    if found := reader.of(entry.value):
                        reader.as_measure(spec.name, *found, spec.type)
                case Choice(words):
                    if found := reader.of(entry.value, words):
                        reader.as_word(spec.name, *found, words)
                case Record(inner):
                    _sweep_record(reader, entry, inner)


def _sweep_record(reader: Reader, entry: Entry, kind: str) -> None:
    bound = entry.value if kind != "switch" else placed(entry.value, rail=0, plane=0, block=0)
    found = reader.of(bound)
    if found is None:
        return
    value, span = found
    if not isinstance(value, Block) or (value.kind and value.kind != kind):
        reader.wrong(entry.name, value, span, a_block(kind, entry.name, value))
    elif not value.name:  # declared blocks are swept where they are declared
        sweep(reader.ev, value, kind, entry.name)


def placed(bound: Bound, **place: int) -> Bound:
    """A switch value with `rail`, `plane` and `block` in scope of its fields, and of those that it changes."""
    base = None if bound.base is None else placed(bound.base, **place)
    return Bound(bound.expression, Scope(bound.scope, dict(place)), base)
