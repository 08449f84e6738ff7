"""Random expressions have the values that Python's fractions give; random programs are answered with messages."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opusc import check
from opusc.model.schema import KINDS, TOPOLOGIES
from opusc.model.units import UNITS, describe
from tests.model.programs import codes, requiring

# The evaluator raises the recursion limit, which Hypothesis notices.
pytestmark = pytest.mark.filterwarnings("ignore:The recursion limit")

#: An expression as text, with its value.
Term = tuple[str, Fraction]

whole = st.integers(0, 50).map(lambda n: (str(n), Fraction(n)))
decimal = st.integers(0, 999).map(lambda n: (f"{n // 10}.{n % 10}", Fraction(n, 10)))


def joined(terms: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    return st.one_of(
        st.tuples(terms, st.sampled_from("+-*/"), terms).map(arithmetic),
        st.tuples(terms, st.sampled_from(["mod", "div"]), terms).map(divided),
        terms.map(lambda t: (f"(-{t[0]})", -t[1])),
        st.tuples(terms, st.sampled_from(["<", "<=", "==", "!="]), terms, terms, terms).map(chosen),
        st.tuples(terms, terms).map(lambda p: (f"sum([{p[0][0]}, {p[1][0]}])", p[0][1] + p[1][1])),
        st.tuples(terms, terms).map(lambda p: (f"max({p[0][0]}, {p[1][0]})", max(p[0][1], p[1][1]))),
        terms.map(lambda t: (f"floor({t[0]})", Fraction(t[1] // 1))),
        terms.map(lambda t: (f"[{t[0]}, 1][0]", t[1])),
    )


def arithmetic(parts: tuple[Term, str, Term]) -> Term:
    (a, x), operator, (b, y) = parts
    if operator == "/" and y == 0:
        operator = "+"
    value = {"+": x + y, "-": x - y, "*": x * y, "/": x / (y or 1)}[operator]
    return f"({a} {operator} {b})", value


def divided(parts: tuple[Term, str, Term]) -> Term:
    (a, x), operator, (b, y) = parts
    if x.denominator != 1 or y.denominator != 1 or y == 0:
        return f"({a} - {b})", x - y
    return f"({a} {operator} {b})", Fraction(x // y) if operator == "div" else x % y


def chosen(parts: tuple[Term, str, Term, Term, Term]) -> Term:
    (a, x), operator, (b, y), (c, yes), (d, no) = parts
    holds = {"<": x < y, "<=": x <= y, "==": x == y, "!=": x != y}[operator]
    return f"(if {a} {operator} {b} then {c} else {d})", yes if holds else no


numbers = st.recursive(st.one_of(whole, decimal), joined, max_leaves=12)


@settings(max_examples=150, deadline=None)
@given(numbers)
def test_arithmetic_is_that_of_fractions(term: Term) -> None:
    text, value = term
    exact = f"({value.numerator} / {value.denominator})"
    assert codes(requiring(f"{text} == {exact}")) == []
    assert codes(requiring(f"{text} != {exact}")) == ["OPUS421"]


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(UNITS)), st.sampled_from(sorted(UNITS)), numbers, st.integers(1, 1000))
def test_quantities_are_numbers_times_their_units(a: str, b: str, term: Term, count: int) -> None:
    """`x a` as so many `b`, where both are of one dimension."""
    text, value = term
    first, second = UNITS[a], UNITS[b]
    if first.dimension != second.dimension:
        assert codes(requiring(f"{count} {a} == {count} {b}")) == ["OPUS203"]
        return
    if describe(first.dimension) == "level":
        return  # levels are not multiplied
    ratio = first.factor / second.factor
    same = f"{text} * {count} {a} == {text} * {count} * ({ratio.numerator} / {ratio.denominator}) * 1 {b}"
    assert codes(requiring(same)) == []
    if value:
        assert codes(requiring(same.replace("==", "!="))) == ["OPUS421"]


# --- programs ------------------------------------------------------------------------------------

atoms = st.sampled_from(
    ["0", "1", "2", "3", "8", "-1", "1 / 2", "2.5", "1_000_000", "99999999999999999999", "true", '""', '"10.0.0.{1}"',
     '"{rail}"', "200 Gbps", "3 ms", "2 dB", "-1 dBm", "6 %", "ring", "duplex", "bidi", "any", "crossbar", "none",
     "megatron", "torchtitan", "interleaved", "dp", "pp", "dp.shard", "switches", "switches.generic", "c", "rails",
     "j", "0..3", "1..8", "0..99_999", "[]", "[0, 1]", "[(0, 1)]", "[[1], 2]", "{}", "nothing", "x", "f", "f(1)",
     "models.llama3_8b", "sum([])", "1 / 0", "[i for i in members]", "switches.polatis_6000_32x32"]
)  # fmt: skip
field_names = st.sampled_from(sorted({field.name for kind in KINDS.values() for field in kind.fields} | {"foo"}))


def wrapped(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    record = st.lists(st.tuples(field_names, values), max_size=4).map(
        lambda items: "{ " + ", ".join(f"{name} = {value}" for name, value in items) + " }"
    )
    word = st.sampled_from([*TOPOLOGIES, "share", "explicit", "interleaved", "switches.generic", "rails", "x"])
    return st.one_of(
        record,
        st.tuples(word, record).map(lambda pair: f"{pair[0]} {pair[1]}"),
        st.lists(values, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.tuples(values, st.sampled_from(["+", "*", "==", "and", "in", "mod"]), values).map(
            lambda t: f"({t[0]}) {t[1]} ({t[2]})"
        ),
        values.map(lambda v: f"if {v} then 1 else 2"),
    )


values = st.recursive(atoms, wrapped, max_leaves=6)
BLOCKS = {
    "cluster": ["node_count = 4", "gpus_per_node = 2", "nic = { ports = 2, rate = 200 Gbps, optics = duplex }"],
    "fabric": ["cluster = c", "rail_by = local_rank", "switch = switches.polatis_6000_32x32"],
    "job": ["fabric = rails", "parallelism = { tp = 2, dp = 2, pp = 2 }"],
}
NAMES = {"cluster": "c", "fabric": "rails", "job": "j"}


@st.composite
def programs(draw: st.DrawFn) -> str:
    lines = ["opus 1", "use std.switches", "use std.models", f"let x = {draw(values)}", f"let f(a) = {draw(values)}"]
    for kind, fields in BLOCKS.items():
        own = [field.name for field in KINDS[kind].fields]
        kept = [line for line in fields if draw(st.integers(0, 9))]
        added = draw(st.lists(st.tuples(st.sampled_from(own), values), max_size=2))
        kept += [f"{name} = {value}" for name, value in added]
        if kind == "job" and draw(st.booleans()):
            phase = draw(st.sampled_from(["dp", "pp over dp", "new over dp * pp", "cp over cp"]))
            kept.append(f"phase {phase} {{ topology = {draw(values)}, hold = {draw(values)} }}")
        lines.append(f"{kind} {NAMES[kind]} {{\n" + "\n".join(kept) + "\n}")
    if draw(st.booleans()):
        lines.append(f"require {draw(values)} else {draw(values)}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures of opusc itself pass through, with their traces."""
    monkeypatch.setenv("OPUSC_DEBUG", "1")


@pytest.mark.usefixtures("raising")
def test_random_programs_are_answered_with_messages() -> None:
    counts = {"right": 0, "wrong": 0}

    @settings(max_examples=150, deadline=None)
    @given(programs())
    def run(text: str) -> None:
        found = check(text)
        assert not [d for d in found if d.code.startswith(("OPUS5", "OPUS9"))], text
        counts["wrong" if found.errors else "right"] += 1

    run()
    assert counts["wrong"], "the programs are too tame"
