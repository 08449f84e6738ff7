"""The formatter: canonical, idempotent, and never another program; comments stay where they are."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opusc.diagnostics import Diagnostics
from opusc.resources import stdlib_dir
from opusc.source import Source
from opusc.syntax import formatter
from opusc.syntax.formatter import format_source
from opusc.syntax.parser import parse

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted([*ROOT.glob("examples/*/*.opus"), *stdlib_dir().glob("*.opus")])


def formatted(text: str) -> str:
    sink = Diagnostics()
    result = format_source(Source("t.opus", text), sink)
    assert not list(sink), [d.message for d in sink]
    return result


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_programs_of_this_repository_are_formatted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert formatted(text) == text


CASES = {
    "spaces and alignment": (
        "opus 1\nlet   a=1\nlet bcd   =2\n",
        "opus 1\nlet a   = 1\nlet bcd = 2\n",
    ),
    "blank lines": ("opus 1\n\n\n\nlet a = 1\n\n\nlet b = 2\n\n", "opus 1\n\nlet a = 1\n\nlet b = 2\n"),
    "blank line after a brace": ("opus 1\ncluster c {\n\n  a = 1\n\n}\n", "opus 1\ncluster c {\n  a = 1\n}\n"),
    "one line stays": ("opus 1\nnic n { a=1,b = 2, }\n", "opus 1\nnic n { a = 1, b = 2 }\n"),
    "several lines stay": ("opus 1\nnic n { a = 1\nb = 2 }\n", "opus 1\nnic n {\n  a = 1\n  b = 2\n}\n"),
    "units": ("opus 1\nlet a = [200Gbps, 6%, 1.5dB]\n", "opus 1\nlet a = [200 Gbps, 6 %, 1.5 dB]\n"),
    "precedence": (
        "opus 1\nlet a = ((1 + 2)) * (3) - (4 - (5)) - (6 - 7)\n",
        "opus 1\nlet a = (1 + 2) * 3 - (4 - 5) - (6 - 7)\n",
    ),
    "comments": (
        "opus 1\n# own\nlet a = 1   # one\nlet bc = 22 # two\n## doc\n"
        "cluster c { # open\n# inside\n x = 1\n} # closed\n# end\n",
        "opus 1\n# own\nlet a  = 1   # one\nlet bc = 22  # two\n## doc\n"
        "cluster c {  # open\n  # inside\n  x = 1\n}  # closed\n# end\n",
    ),
    "comment in a list keeps the lines": (
        "opus 1\nlet a = [\n  1, # one\n  2,\n]\n",
        "opus 1\nlet a = [\n  1, # one\n  2,\n]\n",
    ),
    "list over lines": ("opus 1\nlet a = [1, 2,\n 3]\n", "opus 1\nlet a = [\n  1, 2,\n  3,\n]\n"),
    "comprehension over lines": (
        "opus 1\nlet a = [i for i in 0..3\n if i > 1]\n",
        "opus 1\nlet a = [\n  i\n  for i in 0..3\n  if i > 1\n]\n",
    ),
    "comment after an equals sign": ("opus 1\nlet a = # why\n 5\n", "opus 1\nlet a = # why\n 5\n"),
    "comment in parentheses": ("opus 1\nlet a = (5 # c\n)\n", "opus 1\nlet a = (5 # c\n)\n"),
    "comment after a list in parentheses": ("opus 1\nlet a = ([1\n]) # c\n", "opus 1\nlet a = [\n  1,\n]  # c\n"),
    "list as an index": ("opus 1\nlet a = b.c[[1]]\n", "opus 1\nlet a = b.c[[1]]\n"),
    "empty block": ("opus 1\nswitch s {\n}\n", "opus 1\nswitch s {\n}\n"),
    "phase and refinement": (
        "opus 1\njob j {\n phase x over dp*cp {topology=a {b=1}}\n}\n",
        "opus 1\njob j {\n  phase x over dp * cp { topology = a { b = 1 } }\n}\n",
    ),
    "windows line ends": ("opus 1\r\nlet a=1\r\n", "opus 1\nlet a = 1\n"),
    "no final line end": ("opus 1\nlet a = 1", "opus 1\nlet a = 1\n"),
    "only comments": ("# a\n\n\n# b\nopus 1\n", "# a\n\n# b\nopus 1\n"),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES.keys())
def test_layout(before: str, after: str) -> None:
    assert formatted(before.replace("\r\n", "\n")) == after
    assert formatted(after) == after


def test_a_long_line_is_broken() -> None:
    fields = ", ".join(f"field_{i} = {i}" for i in range(12))
    text = formatted(f"opus 1\nnic n {{ {fields} }}\n")
    assert max(map(len, text.splitlines())) <= 120
    assert text.splitlines()[2].strip() == "field_0  = 0"


def test_a_wrong_program_is_left_alone() -> None:
    sink = Diagnostics()
    text = "opus 1\nlet a = \n"
    assert format_source(Source("t", text), sink) == text
    assert sink.has_errors


def test_output_that_means_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatter, "format_program", lambda program: "opus 1\nlet a = 2\n")
    sink = Diagnostics()
    assert format_source(Source("t", "opus 1\nlet a = 1\n"), sink) == "opus 1\nlet a = 1\n"
    assert [d.code for d in sink] == ["OPUS008"]


def test_output_that_lost_a_comment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatter, "format_program", lambda program: "opus 1\nlet a = 1\n")
    sink = Diagnostics()
    format_source(Source("t", "opus 1\nlet a = 1  # why\n"), sink)
    assert [d.code for d in sink] == ["OPUS008"]


# --- random programs -------------------------------------------------------------------------------

names = st.sampled_from(["a", "dp", "ring", "rail", "x1"])
gaps = st.sampled_from([" ", "  ", ""])


def _expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, inner)
    operators = st.sampled_from(["+", "-", "*", "/", " mod ", " div ", "==", "<", " and ", " or ", " in "])
    return st.one_of(
        st.tuples(inner, operators, inner).map(lambda t: f"({t[0]}){t[1]}({t[2]})"),
        st.lists(inner, min_size=1, max_size=3).map(lambda xs: f"[{', '.join(xs)}]"),
        st.lists(inner, min_size=1, max_size=3).map(lambda xs: "[\n" + ",\n".join(xs) + "\n]"),
        pairs.map(lambda t: f"({t[0]}, {t[1]})"),
        pairs.map(lambda t: f"[({t[0]}) for i in ({t[1]})]"),
        pairs.map(lambda t: f"if ({t[0]}) then ({t[1]}) else ({t[0]})"),
        pairs.map(lambda t: f"f({t[0]}, {t[1]})"),
        inner.map(lambda x: f"not ({x})"),
        inner.map(lambda x: f"-({x})"),
        st.tuples(names, inner).map(lambda t: f"m.{t[0]} {{ {t[0]} = {t[1]} }}"),
        st.tuples(names, inner).map(lambda t: f"{{\n{t[0]} = {t[1]} # note\n}}"),
        st.tuples(inner, inner).map(lambda t: f"({t[0]})..({t[1]})"),
    )


atoms = st.sampled_from(["1", "0.50", "200Gbps", "6 %", '"t{1 + 2}x"', "true", "name", "a.b", "x[0]", 'csv "f"'])
expressions = st.recursive(atoms, _expressions, max_leaves=8)
entries = st.one_of(
    st.tuples(names, gaps, expressions).map(lambda t: f"let {t[0]}{t[1]}={t[1]}{t[2]}"),
    st.tuples(names, expressions).map(lambda t: f"param {t[0]}: count in {t[1]} = 3  # why"),
    st.tuples(names, names, expressions).map(lambda t: f"## doc\ncluster {t[0]} {{\n\n  {t[1]} = {t[2]}\n  # end\n}}"),
    expressions.map(lambda x: f'require {x} else "no"'),
    st.just("# alone"),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(entries, max_size=5))
def test_random_programs_keep_their_tree_and_settle_at_once(found: list[str]) -> None:
    text = "opus 1\n" + "\n".join(found) + "\n"
    sink = Diagnostics()
    program = parse(Source("t", text), sink)
    if sink.has_errors:
        return
    once = formatted(text)
    assert parse(Source("t", once), Diagnostics()) == program
    assert formatted(once) == once
