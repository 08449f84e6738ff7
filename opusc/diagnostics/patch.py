"""Edits applied to text, and the lines that they change."""

from collections.abc import Iterable, Iterator

from opusc.diagnostics.model import Edit
from opusc.source import Source

__all__ = ["apply", "changed_lines"]


def apply(source: Source, edits: Iterable[Edit]) -> str:
    """The text of `source` after the edits that are in it. Edits that overlap an earlier one are left out."""
    out: list[str] = []
    at = 0
    for edit in _in_order(source, edits):
        if edit.span.start < at:
            continue
        out += [source.text[at : edit.span.start], edit.replacement]
        at = edit.span.end
    return "".join(out) + source.text[at:]


def changed_lines(edits: Iterable[Edit]) -> Iterator[tuple[int, str, str]]:
    """(line number, `-` or `+`, text), source by source; added lines carry the number they will have."""
    edits = tuple(edits)
    for source in dict.fromkeys(edit.span.source for edit in edits):
        shift = 0
        for group in _by_lines(_in_order(source, edits)):
            first = source.position(group[0].span.start)[0]
            last = source.position(max(edit.span.end for edit in group))[0]
            start = source.line_starts[first - 1]
            end = source.line_starts[last - 1] + len(source.line_text(last))
            before = source.text[start:end]
            inside = [
                Edit(Source("", before).span(e.span.start - start, e.span.end - start), e.replacement) for e in group
            ]
            after = _apply_all(before, inside)
            old, new = before.split("\n"), after.split("\n")
            head = 0
            while head < min(len(old), len(new)) and old[head] == new[head]:
                head += 1
            tail = 0
            while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
                tail += 1
            for at in range(head, len(old) - tail):
                yield first + at, "-", old[at]
            for at in range(head, len(new) - tail):
                yield first + shift + at, "+", new[at]
            shift += len(new) - len(old)


def _in_order(source: Source, edits: Iterable[Edit]) -> list[Edit]:
    return sorted((edit for edit in edits if edit.span.source is source), key=lambda e: (e.span.start, e.span.end))


def _by_lines(edits: Iterable[Edit]) -> list[list[Edit]]:
    """Edits that touch a common line stand together."""
    groups: list[list[Edit]] = []
    last = 0
    for edit in edits:
        if groups and edit.span.line <= last:
            groups[-1].append(edit)
        else:
            groups.append([edit])
        last = max(last, edit.span.source.position(edit.span.end)[0])
    return groups


def _apply_all(text: str, edits: list[Edit]) -> str:
    for edit in reversed(edits):
        text = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
    return text
