"""Topologies of phases: words of the language, and topologies written in it."""

from opusc.diagnostics import Label
from opusc.model.blocks import define, element_span
from opusc.model.edges import Edge, EdgeRule
from opusc.model.entities import TopologySpec
from opusc.model.evaluate import Evaluator, Stop
from opusc.model.reader import Reader
from opusc.model.schema import TOPOLOGIES, Count
from opusc.model.values import Applied, Block, Bound, Interval, Scope, Thunk, Value
from opusc.source import Span

__all__ = ["topology"]

Edges = tuple[Edge, ...]


def topology(reader: Reader, bound: Bound) -> TopologySpec | None:
    """The value of a `topology` field."""
    found = reader.of(bound, TOPOLOGIES)
    if found is None:
        return None
    value, span = found
    if isinstance(value, Block) and value.kind == "topology":
        return _written(reader.ev, value, span)
    word = reader.as_word("topology", value, span, TOPOLOGIES)
    return None if word is None else _named(reader.ev, word)


def _named(ev: Evaluator, word: Applied) -> TopologySpec | None:
    given = {} if word.block is None else {entry.name: entry for entry in word.block.entries}
    missing = {"flattened_butterfly": "dims", "edges": "of"}.get(word.word)
    if missing is not None and missing not in given:
        ev.sink.error("OPUS209", f"`{word.word}` does not state `{missing}`", word.span, f"`{missing}` is missing")
        return None
    spans = {name: entry.value.span for name, entry in given.items()}
    dims = None
    if "dims" in given:
        assert word.block is not None
        dims = Reader(ev, word.block, "flattened_butterfly").counts("dims", Count())
        if dims is None:
            return None
    one_way = False
    if "one_way" in given and word.block is not None:
        stated = Reader(ev, word.block, "ring").truth("one_way")
        if stated is None:
            return None
        one_way = stated
    edges = _edge_rule(ev, word.word, given["of"].value) if "of" in given else None
    return TopologySpec(name=word.word, dims=dims, one_way=one_way, edges=edges, span=word.span, spans=spans)


def _edge_rule(ev: Evaluator, name: str, bound: Bound) -> EdgeRule:
    """A function from the number of vertices to the edges, evaluated once for each number."""
    made: dict[int, Edges] = {}

    def edges(n: int) -> Edges:
        if n not in made:
            made[n] = _edges(ev, name, bound, n)
        return made[n]

    return edges


def _edges(ev: Evaluator, name: str, bound: Bound, n: int) -> Edges:
    """The edges of a list, each with its place. Wrong ones are left out and reported, one for each place: the body
    of a loop is wrong once, however often it runs."""
    scope = Scope(bound.scope)
    scope.names.update({"size": n, "members": Interval(0, n - 1)})
    try:
        values = list(ev.elements(bound.expression, scope))
    except Stop:
        return ()
    found: list[Edge] = []
    first: dict[tuple[int, int], int] = {}
    wrong: set[Span] = set()
    for at, (value, turn) in enumerate(values):
        made = f", for {turn}" if turn else ""
        span = element_span(bound.expression, at)
        if span in wrong:
            continue
        wrong.add(span)  # until the end of this turn says that it is right
        if not (isinstance(value, tuple) and len(value) == 2 and all(type(v) is int for v in value)):
            ev.sink.error("OPUS212", f"element {at} of `{name}` is no pair of vertices", span, f"not (a, b){made}")
            continue
        a, b = value
        if not (0 <= a < n and 0 <= b < n):
            ev.sink.error(
                "OPUS212", f"`{name}` names vertex {a if not 0 <= a < n else b}; a group has {n}: 0..{n - 1}",
                span, f"element {at} is ({a}, {b}){made}",
                notes=["vertices are the scale-up domains of a group, in rank order"],
            )  # fmt: skip
            continue
        if a == b:
            ev.sink.error("OPUS212", f"`{name}` joins vertex {a} to itself", span, f"element {at} is ({a}, {a}){made}")
            continue
        if (a, b) in first or ((b, a) in first and name != "edges"):
            before = first.get((a, b), first.get((b, a), 0))
            ev.sink.error(
                "OPUS212", f"`{name}` names the edge ({a}, {b}) twice", span, f"element {at}",
                secondary=[Label(element_span(bound.expression, before), f"element {before}")]
                if element_span(bound.expression, before) != span else [],
            )  # fmt: skip
            continue
        wrong.discard(span)
        first[a, b] = at
        found.append(Edge(a, b, span, turn))
    return tuple(found)


def _written(ev: Evaluator, block: Block, span: Span) -> TopologySpec | None:
    """A topology written in the language, with its parameters set by the refinement."""
    entry = block.get("edges")
    if entry is None:
        ev.sink.error("OPUS209", f"topology `{block.name}` does not state `edges`", block.span, "`edges` is missing")
        return None
    values: dict[str, Thunk | Value] = {}
    dims = None
    for name in block.parameters or ():
        given = block.get(name)
        if given is None:
            ev.sink.error(
                "OPUS209", f"topology `{block.name}` needs `{name}`", span, f"write `{block.name} {{ {name} = ... }}`"
            )
            return None
        try:
            value = ev.bound(given.value)
        except Stop:
            return None
        values[name] = value
        if name == "dims" and isinstance(value, tuple) and all(type(v) is int for v in value):
            dims = tuple(v for v in value if isinstance(v, int))
    unknown = [e for e in block.entries if e.name != "edges" and e.name not in (block.parameters or ())]
    for extra in unknown:
        ev.sink.error("OPUS207", f"topology `{block.name}` has no parameter `{extra.name}`", extra.span, "unknown")
    if unknown:
        return None
    # A block with `let`s has them in a scope of its own; here they are evaluated anew for every size.
    outer = entry.value.scope.parent if block.lets else entry.value.scope
    made: dict[int, Edges] = {}

    def edges(n: int) -> Edges:
        if n not in made:
            made[n] = checked(n)
        return made[n]

    def checked(n: int) -> Edges:
        inner = Scope(Scope(outer, {**values, "size": n, "members": Interval(0, n - 1)}))
        inner.names.update({item.name.text: define(item, inner) for item in block.lets})
        for requirement, _ in block.requires:
            try:
                if not ev.truth(requirement.condition, inner):
                    ev.sink.error(
                        "OPUS213", f"topology `{block.name}` does not fit a group of {n} domains", span,
                        f"`{requirement.condition.span.text}` does not hold",
                        secondary=[Label(requirement.span, "required here")],
                    )  # fmt: skip
                    return ()
            except Stop:
                return ()
        return _edges(ev, block.name, Bound(entry.value.expression, inner), n)

    return TopologySpec(name=block.name, dims=dims, edges=edges, span=span)
