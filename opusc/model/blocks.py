"""Blocks: records as written, with the scopes of their fields, and what refinement makes of them."""

from opusc.model.values import Block, Bound, Entry, Function, Scope, Thunk, Value
from opusc.source import Span
from opusc.syntax import tree

__all__ = ["block_of", "define", "element_span", "refined"]


def block_of(record: tree.Record, scope: Scope, kind: str = "", name: str = "") -> Block:
    """A record as a block; its `let`s are in scope of all its fields."""
    lets = tuple(item for item in record.items if isinstance(item, tree.Let))
    inner = Scope(scope) if lets else scope
    for item in lets:
        inner.names[item.name.text] = define(item, inner)
    entries = tuple(
        Entry(
            item.name.text,
            Bound(item.value, inner),
            item.name.span,
            item.label.text if item.label else "",
            Bound(item.selection, inner) if item.selection else None,
        )
        for item in record.items
        if isinstance(item, tree.Field)
    )
    phases = tuple((item, inner) for item in record.items if isinstance(item, tree.Phase))
    requires = tuple((item, inner) for item in record.items if isinstance(item, tree.Require))
    return Block(record.span, entries, phases, requires, kind, name, lets=lets)


def define(item: tree.Let, scope: Scope) -> Thunk | Value:
    if item.parameters is not None:
        return Function(item.name.text, tuple(p.text for p in item.parameters), item.value, scope)
    return Thunk(Bound(item.value, scope), "let", item.name.span)


def refined(base: Block, changes: tree.Record, scope: Scope) -> Block:
    """`base` with the fields of `changes`: records merge, everything else replaces."""
    new = block_of(changes, scope)
    entries = {entry.key: entry for entry in base.entries}
    for entry in new.entries:
        before = entries.get(entry.key)
        value = entry.value
        if before is not None and isinstance(value.expression, tree.Record):
            value = Bound(value.expression, value.scope, before.value)
        entries[entry.key] = Entry(entry.name, value, entry.span, entry.label, entry.selection)
    return Block(
        span=changes.span if not base.kind else base.span,
        entries=tuple(entries.values()),
        phases=base.phases + new.phases,
        requires=base.requires + new.requires,
        kind=base.kind,
        name=base.name,
        parameters=base.parameters,
        lets=base.lets,
    )


def element_span(node: tree.Expression, at: int) -> Span:
    """The place of one element: itself in a list, the loop body in a comprehension."""
    if isinstance(node, tree.List) and at < len(node.items):
        return node.items[at].span
    return node.element.span if isinstance(node, tree.Comprehension) else node.span
