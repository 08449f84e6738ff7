"""One mistake, one message: several in one file are all told, and nothing else is."""

import itertools
import time
from dataclasses import dataclass

import pytest

from opusc.diagnostics import Diagnostic, Diagnostics
from opusc.source import Source
from opusc.syntax import tree
from opusc.syntax.parser import parse

GOOD = """\
opus 1

use std.switches

param dp: count = 4

cluster c {
  node_count    = dp
  gpus_per_node = 1
  nic           = { ports = 2, rate = 200 Gbps, optics = duplex }
}

let few = if dp > 2 then [1, 2] else [3]

fabric rails {
  cluster = c
  rail_by = local_rank
  switch  = switches.generic { matrix = crossbar, radix = 16 }
}

job j {
  fabric      = rails
  parallelism = { dp = dp }
  phase dp { topology = pairs { of = [(i, i + 1) for i in [0, 2]] } }
  require dp > 1 and dp < 9 else "dp"
}
"""


@dataclass(frozen=True)
class Mistake:
    name: str
    old: str
    new: str
    code: str
    says: str
    fixed: bool = False  # the fix gives back the good program's tree


MISTAKES = [
    Mistake("colon", "node_count    = dp", "node_count    : dp", "OPUS007", "a field is stated with `=`", True),
    Mistake("no comma", "ports = 2, rate", "ports = 2 rate", "OPUS001", "between `ports` and `rate`", True),
    Mistake("no value", "rail_by = local_rank", "rail_by =", "OPUS001", "expected a value after `=`"),
    Mistake("semicolon", "gpus_per_node = 1", "gpus_per_node = 1;", "OPUS007", "no `;` is needed", True),
    Mistake("double equals", "{ dp = dp }", "{ dp == dp }", "OPUS007", "a field is stated with `=`", True),
    Mistake("no else", "then [1, 2] else [3]", "then [1, 2]", "OPUS001", "expected `else`"),
    Mistake("no then", "if dp > 2 then [1, 2]", "if dp > 2 [1, 2]", "OPUS001", "expected"),
    Mistake("ampersands", "dp > 1 and dp < 9", "dp > 1 && dp < 9", "OPUS007", "write `and`", True),
    Mistake("mathematical sign", "dp > 1 and", "dp \u2265 1 and", "OPUS007", "write `>=`"),
    Mistake("equals in a condition", "dp < 9", "dp = 9", "OPUS007", "a comparison is `==`"),
    Mistake("open text", 'else "dp"', 'else "dp', "OPUS005", "no closing quote"),
    Mistake(
        "open list", "[(i, i + 1) for i in [0, 2]]", "[(i, i + 1) for i in [0, 2]", "OPUS004", "`[` is never closed"
    ),
    Mistake("trailing operator", "(i, i + 1)", "(i, i + )", "OPUS001", "expected an operand after `+`"),
    Mistake("stray bracket", "cluster = c", "cluster = c)", "OPUS004", "`)` closes nothing"),
    Mistake("keyword", "param dp:", "param then:", "OPUS001", "cannot be a name"),
    Mistake("odd number", "radix = 16", "radix = 0x10", "OPUS001", "`0x10` is no number"),
    Mistake("unknown character", "cluster = c", "cluster = c ?", "OPUS001", "`?` means nothing"),
    Mistake("quotes", 'else "dp"', "else \u201cdp\u201d", "OPUS007", '`"`'),
    Mistake("import", "use std.switches", "import std.switches", "OPUS007", "write `use`", True),
    Mistake("import of a file", "use std.switches", 'include "racks.opus"', "OPUS007", "write `use`"),
    Mistake("two in one use", "use std.switches", "use std.switches, std.gpus", "OPUS007", "names one module"),
    Mistake("quoted name", "job j {", 'job "j" {', "OPUS007", "names stand without quotes", True),
    Mistake("quoted phase", "phase dp {", 'phase "dp" {', "OPUS007", "names stand without quotes", True),
    Mistake("quoted words", "job j {", 'job "the job" {', "OPUS007", "not a name"),
    Mistake("named argument", "pairs { of = [(i, i + 1) for i in [0, 2]] }", "torus(dims = [2, 2])", "OPUS007",
            "braces: `torus { dims = ... }`"),
    Mistake("slashes", "gpus_per_node = 1", "gpus_per_node = 1 // one", "OPUS007", "comments start with `#`"),
]


def messages(text: str) -> tuple[tree.Program, list[Diagnostic]]:
    sink = Diagnostics()
    return parse(Source("t.opus", text), sink), list(sink)


def words(diagnostic: Diagnostic) -> str:
    return " ".join([diagnostic.message, diagnostic.label, diagnostic.help])


def test_the_good_program_has_no_message() -> None:
    assert messages(GOOD)[1] == []


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name)
def test_each_mistake_alone(mistake: Mistake) -> None:
    assert GOOD.count(mistake.old) == 1
    text = GOOD.replace(mistake.old, mistake.new)
    _, found = messages(text)
    assert [d.code for d in found] == [mistake.code], [words(d) for d in found]
    assert mistake.says in words(found[0]), words(found[0])
    line = GOOD[: GOOD.index(mistake.old)].count("\n") + 1
    assert abs(found[0].span.line - line) <= 1
    if mistake.fixed:
        for edit in sorted(found[0].fix, key=lambda e: -e.span.start):
            text = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
        assert messages(text)[0] == messages(GOOD)[0]


def together() -> list[object]:
    """Sets of four mistakes on different lines."""
    sets = []
    for number, four in enumerate(itertools.combinations(MISTAKES, 4)):
        lines = {GOOD[: GOOD.index(m.old)].count("\n") for m in four}
        if len(lines) == 4 and number % 7 == 0 and not any(m.name == "keyword" for m in four):
            sets.append(pytest.param(four, id=", ".join(m.name for m in four)))
    return sets


@pytest.mark.parametrize("four", together())
def test_four_mistakes_give_four_messages(four: tuple[Mistake, ...]) -> None:
    text = GOOD
    for mistake in four:
        text = text.replace(mistake.old, mistake.new)
    _, found = messages(text)
    assert sorted(d.code for d in found) == sorted(m.code for m in four), [words(d) for d in found]
    for mistake in four:
        assert any(mistake.says in words(d) for d in found)


def test_what_is_right_around_a_mistake_is_kept() -> None:
    program, _ = messages(GOOD.replace("rail_by = local_rank", "rail_by ="))
    assert [e.name.text for e in program.entries if isinstance(e, tree.Declaration)] == ["c", "rails", "j"]
    [fabric] = [e for e in program.entries if isinstance(e, tree.Declaration) and e.name.text == "rails"]
    assert isinstance(fabric.value, tree.Record)
    assert [i.name.text for i in fabric.value.items if isinstance(i, tree.Field)] == ["cluster", "switch"]


def test_an_unclosed_block_does_not_swallow_the_next_declaration() -> None:
    text = GOOD.replace("optics = duplex }\n}\n", "optics = duplex }\n")
    program, found = messages(text)
    assert [d.code for d in found] == ["OPUS004"]
    assert found[0].span.line == 7
    assert [e.name.text for e in program.entries if isinstance(e, tree.Declaration)] == ["c", "rails", "j"]


def test_a_missing_version_line_is_inserted_by_the_fix() -> None:
    text = GOOD.removeprefix("opus 1\n\n")
    program, found = messages(text)
    assert [d.code for d in found] == ["OPUS002"]
    [edit] = found[0].fix
    assert messages(text[: edit.span.start] + edit.replacement + text[edit.span.end :])[1] == []
    assert len(program.entries) == 6


def test_a_newer_version_is_refused() -> None:
    assert [d.code for d in messages(GOOD.replace("opus 1", "opus 2"))[1]] == ["OPUS003"]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "-" * 5000 + "1",
        "not " * 3000 + "true",
        "+".join(["1"] * 5000),
        "if true then 1 else " * 3000 + "1",
        "{ x = " * 3000 + "1" + " }" * 3000,
        "a" + ".b" * 5000,
        "f" + "(1)" * 5000,
        "[" * 90 + "1" + "]" * 90,
    ],
    ids=["parentheses", "minus", "not", "sum", "if", "records", "dots", "calls", "within the limit"],
)
def test_deep_nesting_is_refused(text: str) -> None:
    codes = [d.code for d in messages(f"opus 1\nlet a = {text}\n")[1]]
    assert codes == ([] if text.startswith("[") else ["OPUS009"])


def test_a_file_that_is_too_large_is_refused() -> None:
    assert [d.code for d in messages("opus 1\n" + "# x\n" * 1_100_000)[1]] == ["OPUS009"]


def test_a_number_that_is_too_long_is_refused() -> None:
    assert [d.code for d in messages(f"opus 1\nlet a = {'9' * 5000}\n")[1]] == ["OPUS009"]


BRACKETS = {
    "block without its brace": ("cluster c {", "cluster c", "expected `{` after `c`", 6),
    "phase without its brace": ("phase dp {", "phase dp", "closes the block around it too early", 6),
    "value without its brace": ("{ matrix = crossbar", "matrix = crossbar", "closes the block around it too early", 6),
    "brace too many on a line": ("optics = duplex }", "optics = duplex } }", "closes the block around it too early", 6),
    "two braces": ("fabric rails {", "fabric rails { {", "`{` is never closed", 6),
    "parenthesis lost": ("[(i, i + 1)", "[i, i + 1)", "`)` closes nothing", 6),
    "list lost": ("of = [(i,", "of = (i,", "`]` closes nothing", 6),
    "brace lost at the end of a line": ("optics = duplex }", "optics = duplex", "`{` is never closed", 6),
    "block without its end": ("radix = 16 }\n}", "radix = 16 }", "`{` is never closed", 6),
    "too many at the end": ("radix = 16 }\n}", "radix = 16 }\n}\n}", "`}` closes nothing", 6),
    "head with a stray sign": ("fabric rails {", "fabric ? {", "`?` means nothing", 5),
    "head without a kind": ("fabric rails {", "rails {", "a block has a kind and a name", 5),
    "field outside": ("let few", "node_count = 4\nlet few", "a field, and stands in no block", 6),
    "nothing after `of`": ("let few", "fault node 1 of\nlet few", "expected a value after `of`", 6),
    "no value before a block": ("local_rank\n  switch  =", "local_rank\n  planes  =\n  switch  =", "after `=`", 6),
    "two values": ("node_count    = dp", "node_count    = dp dp", "nothing joins `dp` and `dp`", 6),
}  # fmt: skip


@pytest.mark.parametrize("name", BRACKETS)
def test_a_bracket_too_many_or_too_few_is_told_once(name: str) -> None:
    old, new, says, entries = BRACKETS[name]
    assert GOOD.count(old) == 1
    program, found = messages(GOOD.replace(old, new))
    assert len(found) == 1, [words(d) for d in found]
    assert says in words(found[0])
    assert abs(found[0].span.line - GOOD[: GOOD.index(old)].count("\n") - 1) <= 4
    assert len(program.entries) == entries


def test_errors_inside_a_block_with_a_broken_head_are_told_too() -> None:
    text = GOOD.replace("fabric rails {", "fabric ? {").replace("rail_by = local_rank", "rail_by : local_rank")
    program, found = messages(text)
    assert [d.code for d in found] == ["OPUS001", "OPUS007"]
    assert "a" not in [e.name.text for e in program.entries if isinstance(e, tree.Declaration)]


@pytest.mark.parametrize(
    "text",
    [
        ")" * 30_000,
        "(" * 90 + ")" * 15_000 + "\n",
        "let a = [\n" + "(1, 2,\n" * 10_000,
        "cluster c {\n" + "  a = { b = 1 } }\n" * 4_000,
        "cluster c\n" + "  phase p\n    b = 1\n  }\n" * 4_000,
        "x = \n" * 15_000,
        "?" * 50_000,
        '"{' * 10_000,
        'let a = "' + "{x} {" * 10_000,
        "let a = [" + "1 " * 30_000,
        "rails {\n" * 10_000,
        "}\n" * 30_000,
        ("(" * 90 + "]" * 90) * 2_000,
    ],
    ids=lambda text: text[:12].replace("\n", " "),
)
def test_long_texts_full_of_mistakes_take_bounded_time(text: str) -> None:
    started = time.perf_counter()
    assert messages("opus 1\n" + text)[1]
    assert time.perf_counter() - started < 10
