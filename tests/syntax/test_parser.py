"""From text to tree: every form has its node, every node its exact place, and the words of the language their rules."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from opusc.diagnostics import Diagnostics
from opusc.resources import stdlib_dir
from opusc.source import Source, Span
from opusc.syntax import tree
from opusc.syntax.mistakes import KEYWORDS
from opusc.syntax.parser import parse, parse_expression

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted([*ROOT.glob("examples/*/*.opus"), *stdlib_dir().glob("*.opus")])

NONE = Span(Source("none", ""), 0, 0)


def program(text: str) -> tree.Program:
    sink = Diagnostics()
    found = parse(Source("t.opus", text), sink)
    assert not list(sink), [(d.span.place, d.message) for d in sink]
    return found


def expression(text: str) -> tree.Expression:
    sink = Diagnostics()
    found = parse_expression(Source("t.opus", text), sink)
    assert not list(sink), [d.message for d in sink]
    assert found is not None
    return found


def item(text: str) -> tree.Item:
    """The one item of a block."""
    [entry] = program(f"opus 1\ncluster c {{\n{text}\n}}\n").entries
    assert isinstance(entry, tree.Declaration)
    assert isinstance(entry.value, tree.Record)
    [found] = entry.value.items
    return found


def name(text: str) -> tree.Name:
    return tree.Name(text, span=NONE)


def number(text: str) -> tree.Number:
    return tree.Number(Fraction(text), text, span=NONE)


def binary(left: tree.Expression, operator: str, right: tree.Expression) -> tree.Binary:
    return tree.Binary(operator, left, right, span=NONE)


def nodes(node: object) -> Iterator[tree.Entry | tree.Item | tree.Expression | tree.Comment]:
    """A node and everything below it."""
    if isinstance(node, tuple):
        for part in node:
            yield from nodes(part)
    elif is_dataclass(node) and type(node).__module__ == tree.__name__:
        yield node  # type: ignore[misc]
        for field in fields(node):
            yield from nodes(getattr(node, field.name))


A, B, C = name("a"), name("b"), name("c")
ONE, TWO, THREE = number("1"), number("2"), number("3")


# --- forms ---------------------------------------------------------------------------------------

EXPRESSIONS: dict[str, tree.Expression] = {
    "a": A,
    "1_000": tree.Number(Fraction(1000), "1_000", span=NONE),
    "0.125": tree.Number(Fraction(1, 8), "0.125", span=NONE),
    "true": tree.Boolean(True, span=NONE),
    "[]": tree.List((), span=NONE),
    "[1, 2,]": tree.List((ONE, TWO), span=NONE),
    "(1)": ONE,
    "(1, 2)": tree.Tuple((ONE, TWO), span=NONE),
    "1..3": tree.Range(ONE, THREE, span=NONE),
    "1 + 2 * 3": binary(ONE, "+", binary(TWO, "*", THREE)),
    "1 - 2 - 3": binary(binary(ONE, "-", TWO), "-", THREE),
    "1 - (2 - 3)": binary(ONE, "-", binary(TWO, "-", THREE)),
    "a mod 2 div 3": binary(binary(A, "mod", TWO), "div", THREE),
    "a / b": binary(A, "/", B),
    "-a * b": binary(tree.Unary("-", A, span=NONE), "*", B),
    "--1": tree.Unary("-", tree.Unary("-", ONE, span=NONE), span=NONE),
    "not a == b": tree.Unary("not", binary(A, "==", B), span=NONE),
    "a or b and c": binary(A, "or", binary(B, "and", C)),
    "a and b or c": binary(binary(A, "and", B), "or", C),
    "a in 1..2": binary(A, "in", tree.Range(ONE, TWO, span=NONE)),
    "1 + 2 .. 3": tree.Range(binary(ONE, "+", TWO), THREE, span=NONE),
    "if a then b else c": tree.When(A, B, C, span=NONE),
    "if a then if b then 1 else 2 else 3": tree.When(A, tree.When(B, ONE, TWO, span=NONE), THREE, span=NONE),
    "a.b.c": tree.Attribute(tree.Attribute(A, B, span=NONE), C, span=NONE),
    "a[1]": tree.Index(A, ONE, span=NONE),
    "a.b[1, 2]": tree.Index(tree.Attribute(A, B, span=NONE), tree.List((ONE, TWO), span=NONE), span=NONE),
    "a()": tree.Call(A, (), span=NONE),
    "a(1, b)": tree.Call(A, (ONE, B), span=NONE),
    'a "x"': tree.Tagged(A, tree.String(("x",), span=NONE), span=NONE),
    "a { }": tree.Refine(A, tree.Record((), span=NONE), span=NONE),
    "a { b = 1 }": tree.Refine(A, tree.Record((tree.Field(B, ONE, span=NONE),), span=NONE), span=NONE),
    "[a for a in 1..2 if a]": tree.Comprehension(A, (((A,), tree.Range(ONE, TWO, span=NONE), A),), span=NONE),
    "[a for a, b in c for c in b]": tree.Comprehension(
        A, (((A, B), C, None), ((C,), B, None)), span=NONE
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text: str) -> None:
    assert expression(text) == EXPRESSIONS[text]
    [let] = program(f"opus 1\nlet x = {text}\n").entries
    assert isinstance(let, tree.Let)
    assert let.value == EXPRESSIONS[text]


def test_a_word_before_a_list_of_texts_is_a_tag() -> None:
    files = expression('csv ["a.csv", "b.csv"]')
    assert isinstance(files, tree.Tagged)
    assert isinstance(files.argument, tree.List)
    assert len(files.argument.items) == 2


ITEMS: dict[str, tree.Item] = {
    "a = 1": tree.Field(A, ONE, span=NONE),
    "a b = 1": tree.Field(A, ONE, B, span=NONE),
    "a 2 = 1": tree.Field(A, ONE, None, TWO, span=NONE),
    "a 2..3 = 1": tree.Field(A, ONE, None, tree.Range(TWO, THREE, span=NONE), span=NONE),
    "a[2] = 1": tree.Field(A, ONE, None, TWO, bracketed=True, span=NONE),
    "a[2..3] = 1": tree.Field(A, ONE, None, tree.Range(TWO, THREE, span=NONE), bracketed=True, span=NONE),
    "a[1, 3] = 2": tree.Field(A, TWO, None, tree.List((ONE, THREE), span=NONE), bracketed=True, span=NONE),
    "let a = 1": tree.Let(A, None, ONE, span=NONE),
    "let a(b, c) = 1": tree.Let(A, (B, C), ONE, span=NONE),
    "require a": tree.Require(A, None, span=NONE),
    'require a else "x"': tree.Require(A, tree.String(("x",), span=NONE), span=NONE),
    "phase a { }": tree.Phase(A, None, tree.Record((), span=NONE), span=NONE),
    "phase a over b * c { }": tree.Phase(A, (B, C), tree.Record((), span=NONE), span=NONE),
    "phase a.b over c.a { }": tree.Phase(name("a.b"), (name("c.a"),), tree.Record((), span=NONE), span=NONE),
}


@pytest.mark.parametrize("text", ITEMS)
def test_items(text: str) -> None:
    assert item(text) == ITEMS[text]


ENTRIES: dict[str, tree.Entry] = {
    "use a.b": tree.Use((A, B), None, None, span=NONE),
    "use a.b as c": tree.Use((A, B), None, C, span=NONE),
    'use "a/b.opus"': tree.Use(None, tree.String(("a/b.opus",), span=NONE), None, span=NONE),
    'use "b.opus" as c': tree.Use(None, tree.String(("b.opus",), span=NONE), C, span=NONE),
    "param a": tree.Parameter(A, None, None, None, span=NONE),
    "param a: b": tree.Parameter(A, B, None, None, span=NONE),
    "param a: b in c = 1": tree.Parameter(A, B, C, ONE, span=NONE),
    "param a in b": tree.Parameter(A, None, B, None, span=NONE),
    "fault a 1 of b": tree.Fault(A, ONE, B, span=NONE),
    "fault a 1..2": tree.Fault(A, tree.Range(ONE, TWO, span=NONE), None, span=NONE),
    "a b { }": tree.Declaration(A, B, None, tree.Record((), span=NONE), span=NONE),
    "a b = 1": tree.Declaration(A, B, None, ONE, span=NONE),
    "a b(c,) { }": tree.Declaration(A, B, (C,), tree.Record((), span=NONE), span=NONE),
    "require a": tree.Require(A, None, span=NONE),
}


@pytest.mark.parametrize("text", ENTRIES)
def test_entries(text: str) -> None:
    assert program(f"opus 1\n{text}\n").entries == (ENTRIES[text],)
    assert program(f"opus 1\n\n\n{text}").entries == (ENTRIES[text],), "the last line may lack its end"


def test_every_kind_of_node_is_tested() -> None:
    texts = [*EXPRESSIONS.values(), *ITEMS.values(), *ENTRIES.values()]
    seen = {type(node).__name__ for top in texts for node in nodes(top)}
    assert set(tree.__all__) - seen - {"Entry", "Expression", "Item"} == {"Comment", "Program", "Quantity"}


# --- lines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a = [\n1,\n2\n]",
        "a = (1 +\n 2)",
        "a = (1\n + 2)",
        "a =\n\n 1",
        "a = 1 +\n 2",
        "a = b and\n c",
        "a = if b then\n 1\n else\n 2",
        "a = { \n\n b = 1,\n c = 2,\n }",
        "a = {\n b = 1\n\n\n c = 2\n}",
        "a = b(\n1,\n2,\n)",
        "a = [b for b\n in 1..2\n if b]",
        "a = 1 # comment\n",
        "# comment\na = [ # open\n 1, # one\n]",
    ],
)
def test_newlines_that_end_nothing(text: str) -> None:
    item(text)


@pytest.mark.parametrize("separator", ["\n", ", ", ",\n", "\n\n", " # comment\n", ", # comment\n"])
def test_fields_end_with_a_comma_or_a_line(separator: str) -> None:
    record = item("r = { a = 1" + separator + "b = 2 }")
    assert isinstance(record, tree.Field)
    assert record.value == tree.Record((tree.Field(A, ONE, span=NONE), tree.Field(B, TWO, span=NONE)), span=NONE)


# --- words and units -----------------------------------------------------------------------------

INSIDE_EXPRESSIONS = {"true", "false", "if", "then", "else", "not", "and", "or", "mod", "div", "for", "in"}


@pytest.mark.parametrize("word", sorted({*KEYWORDS, "opus"} - INSIDE_EXPRESSIONS - {"let", "phase", "require"}))
def test_words_of_the_language_may_name_fields(word: str) -> None:
    found = item(f"{word} = 1")
    assert isinstance(found, tree.Field)
    assert found.name.text == word


@pytest.mark.parametrize("word", sorted({*KEYWORDS, "opus"} - INSIDE_EXPRESSIONS))
def test_words_of_the_language_may_follow_a_dot(word: str) -> None:
    assert expression(f"a.{word}") == tree.Attribute(A, name(word), span=NONE)


@pytest.mark.parametrize("word", ["android", "order", "iffy", "notes", "inner", "forest", "thence", "elsewhere",
                                  "modest", "divided", "overhead", "offset", "assert", "letter", "phases", "used",
                                  "parameter", "requires", "faulty", "truest", "opusc"])  # fmt: skip
def test_names_may_start_with_a_word_of_the_language(word: str) -> None:
    assert expression(word) == name(word)
    assert expression(f"{word} + {word}") == binary(name(word), "+", name(word))
    assert isinstance(item(f"{word} = 1"), tree.Field)


@pytest.mark.parametrize(
    "unit", ["Gbps", "GB/s", "GiB/s", "ms", "%", "s", "\u00b5s", "us", "dB", "dBm", "h", "W", "zz"]
)
@pytest.mark.parametrize("space", ["", " "])
def test_units(unit: str, space: str) -> None:
    found = expression(f"200{space}{unit}")
    assert isinstance(found, tree.Quantity)
    assert (found.value, found.text, found.unit, found.unit_span.text) == (200, "200", unit, unit)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("1 mod 2", None),
        ("1 div a", None),
        ("1 in a", None),
        ("1 and a", None),
        ("if a then 1 else 2", None),
        ("[1 for a in b]", None),
        ("6 % * 2", "%"),
        ("1 ms..2 ms", "ms"),
        ("1 s < 2 s", "s"),
        ("1 ms if", None),
    ],
)
def test_a_word_after_a_number_is_a_unit_or_a_word_of_the_language(text: str, unit: str | None) -> None:
    sink = Diagnostics()
    found = parse_expression(Source("t.opus", text), sink)
    if text.endswith("if"):
        assert found is None
        return
    assert {q.unit for q in nodes(found) if isinstance(q, tree.Quantity)} == ({unit} if unit else set())


def test_the_next_field_is_no_unit() -> None:
    sink = Diagnostics()
    parse(Source("t.opus", "opus 1\nnic n { ports = 2 s = 3 }\n"), sink)
    assert len(sink) == 1, "a comma is missing; nothing is 2 seconds"


# --- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('""', ()),
        ('"a"', ("a",)),
        ('"{a}"', (A,)),
        ('"x{a}y{1 + 2}z"', ("x", A, "y", binary(ONE, "+", TWO), "z")),
        ('"{{a}}"', ("{a}",)),
        (r'"\"\\\n\t"', ('"\\\n\t',)),
        ('"# no comment"', ("# no comment",)),
        ('"{a.b[1]}"', (tree.Index(tree.Attribute(A, B, span=NONE), ONE, span=NONE),)),
    ],
)
def test_texts(text: str, parts: tuple[object, ...]) -> None:
    found = expression(text)
    assert isinstance(found, tree.String)
    assert found.parts == parts


def test_expressions_in_a_text_stand_where_they_are_written() -> None:
    text = 'opus 1\nlet a = 1\nlet b = "x{{y}}{a + 12}z{a}"\n'
    [_, let] = program(text).entries
    assert isinstance(let, tree.Let)
    assert isinstance(let.value, tree.String)
    total, last = (part for part in let.value.parts if not isinstance(part, str))
    assert total.span.text == "a + 12"
    assert isinstance(total, tree.Binary)
    assert total.right.span.text == "12"
    assert last.span.start == text.rindex("a}")


def test_a_mistake_in_a_text_is_told_where_it_stands() -> None:
    text = 'opus 1\nlet b = "x{1 +}z"\n'
    sink = Diagnostics()
    parse(Source("t.opus", text), sink)
    [found] = sink
    assert text.index("{") < found.span.start <= text.index("}")


# --- comments ------------------------------------------------------------------------------------


def test_doc_comments_belong_to_what_follows() -> None:
    found = program(
        "opus 1\n"
        "## Of the cluster,\n"
        "## two lines.\n"
        "cluster c {\n"
        "  ## Of a.\n"
        "  a = 1  ## not of b\n"
        "  b = 2\n"
        "  ## Of the phase.\n"
        "  phase dp { }\n"
        "}\n"
        "## Stands alone.\n"
        "\n"
        "# ordinary\n"
        "let x = 1\n"
        "## Of the parameter.\n"
        "param p = 1\n"
    )
    cluster, let, parameter = found.entries
    assert isinstance(cluster, tree.Declaration)
    assert isinstance(cluster.value, tree.Record)
    assert isinstance(let, tree.Let)
    assert isinstance(parameter, tree.Parameter)
    a, b, phase = cluster.value.items
    docs = [x.doc for x in (cluster, a, b, phase, let, parameter) if not isinstance(x, tree.Require)]
    assert docs == ["Of the cluster,\ntwo lines.", "Of a.", "", "Of the phase.", "", "Of the parameter."]


def test_comments_are_kept_in_order_with_their_places() -> None:
    text = 'opus 1 # one\n# two\nlet a = "# none" # three\n## four'
    found = program(text)
    assert [c.text for c in found.comments] == ["# one", "# two", "# three", "## four"]
    assert [c.span.text for c in found.comments] == [c.text for c in found.comments]


# --- places --------------------------------------------------------------------------------------

EVERYTHING = "\n".join(
    [
        "opus 1",
        *ENTRIES,
        *(f"let x = {text}" for text in EXPRESSIONS),
        "cluster c {",
        *ITEMS,
        "}",
        "let y = ((1 + 2) * (3)).a[(1)]",
        "let z = ((a)(1) + (2 ms)) { b = (1, (2)) } + \"{(a) + (b)}\"",
    ]
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [EVERYTHING, *(p.read_text(encoding="utf-8") for p in PROGRAMS)],
    ids=["every form", *(p.stem for p in PROGRAMS)],
)
def test_the_text_of_every_node_is_the_node(text: str) -> None:
    """What stands at a node's span, parsed again by itself, is an equal node."""
    for entry in program(text).entries:
        assert again(entry) == entry, entry.span.text
        for node in nodes(entry):
            assert entry.span.start <= node.span.start < node.span.end <= entry.span.end
            if isinstance(node, tree.Field | tree.Phase):
                found = item(("## " + node.doc.replace("\n", "\n## ") + "\n" if node.doc else "") + node.span.text)
                assert found == node, node.span.text
            elif isinstance(node, tree.Name):
                assert node.span.text == node.text
            elif not isinstance(node, tree.Entry):
                assert not isinstance(node, tree.Comment)
                bare = isinstance(node, tree.List) and not node.span.text.startswith("[")  # in `rail[1, 3] = ...`
                assert expression(f"[{node.span.text}]" if bare else node.span.text) == node, node.span.text
            if isinstance(node, tree.Quantity):
                assert node.unit_span.text == node.unit


def again(entry: tree.Entry) -> tree.Entry:
    doc = "" if isinstance(entry, tree.Use | tree.Fault | tree.Require) else entry.doc
    comment = "## " + doc.replace("\n", "\n## ") + "\n" if doc else ""
    [found] = program(f"opus 1\n{comment}{entry.span.text}\n").entries
    return found


def test_the_version_has_its_place() -> None:
    found = program("# a comment first\n\nopus 1\n")
    assert found.version is not None
    assert found.version.span.text == "1"
    assert found.entries == ()
