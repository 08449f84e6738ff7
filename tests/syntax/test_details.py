"""Details of reading: what stays bounded, what a line end means, and single mistakes with their corrections."""

import time
from pathlib import Path

import pytest

from opusc.diagnostics import Diagnostic, Diagnostics
from opusc.source import Source
from opusc.syntax import parser, tree
from opusc.syntax.formatter import format_source
from opusc.syntax.parser import parse, parse_expression


def read(text: str) -> tuple[tree.Program, list[Diagnostic]]:
    sink = Diagnostics()
    return parse(Source("t.opus", text), sink), list(sink)


def value(text: str) -> tree.Expression:
    program, found = read(f"opus 1\nlet x = {text}\n")
    assert not found, [d.message for d in found]
    [let] = program.entries
    assert isinstance(let, tree.Let)
    return let.value


# --- bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["(" * 5000 + "1" + ")" * 5000, "-" * 200 + "1", "x" * (4 * 1024 * 1024 + 1)])
def test_a_value_for_a_parameter_is_refused_like_a_file(text: str) -> None:
    sink = Diagnostics()
    assert parse_expression(Source("-D x", text), sink) is None
    assert [d.code for d in sink] == ["OPUS009"]


def seconds(text: str) -> float:
    started = time.process_time()
    read(text)
    return time.process_time() - started


@pytest.mark.parametrize(
    "repeat",
    [
        lambda n: "".join(f'let a{i} = "x{{1}} and text that fills the line"\n' for i in range(n)),
        lambda n: "let a = [\n" + "1,\n" * n + "2 = 3]\n",
        lambda n: "# a line of a long comment\n" * n + "let a = 1\n",
    ],
    ids=["expressions in texts", "a mistake in a long list", "comments"],
)
def test_time_grows_with_the_text(repeat) -> None:  # type: ignore[no-untyped-def]
    seconds("opus 1\n")
    small = min(seconds("opus 1\n" + repeat(500)) for _ in range(2))
    large = seconds("opus 1\n" + repeat(4000))
    assert large < 8 * 3 * small + 0.05, "eight times the text takes about eight times as long, not sixty-four"


@pytest.mark.parametrize("trouble", ["nonsense", "empty", "folder", "no place"])
def test_the_grammar_does_without_its_cache(trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    parser._lark.cache_clear()
    assert value("1") == value("(1)")
    [cached] = (home / "opusc").iterdir()
    if trouble == "folder":
        cached.unlink()
        cached.mkdir()
    elif trouble == "no place":
        monkeypatch.setenv("XDG_CACHE_HOME", str(cached))
    else:
        cached.write_text("" if trouble == "empty" else "nonsense")
    parser._lark.cache_clear()
    try:
        assert value("1") == value("(1)")
    finally:
        parser._lark.cache_clear()


# --- lines and words -----------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [" ", "\n", "\n\n   ", "  # why\n  ", "\n# one\n\n# two\n"])
def test_an_item_goes_on_before_then_and_else(gap: str) -> None:
    plain, found = read('opus 1\nlet a = if x then 1 else 2\nrequire a else "no"\nlet b = 1\n')
    assert not found
    text = f'opus 1\nlet a = if x{gap}then 1{gap}else 2\nrequire a{gap}else "no"\nlet b = 1\n'
    program, found = read(text)
    assert not found
    assert program == plain or program.comments
    assert program.entries == plain.entries


def test_a_unit_stands_on_the_line_of_its_number() -> None:
    assert isinstance(value("[200  Gbps]"), tree.List)
    _, [found] = read("opus 1\nlet x = [200\nGbps]\n")
    assert "expected `,` between `200` and `Gbps`" in found.message


@pytest.mark.parametrize("word", ["let", "phase", "require"])
def test_words_that_begin_items_may_name_fields_too(word: str) -> None:
    record = value(f"{{ a = 1, {word} = 2\n{word} = 3 }}")
    assert isinstance(record, tree.Record)
    assert [i.name.text for i in record.items if isinstance(i, tree.Field)] == ["a", word, word]


def test_a_word_before_one_text_in_a_list_is_a_tag_and_before_one_number_an_index() -> None:
    tagged = value('csv ["a.csv"]')
    assert isinstance(tagged, tree.Tagged)
    assert isinstance(tagged.argument, tree.List)
    assert isinstance(value("rail[3]"), tree.Index)
    text = 'opus 1\nlet a = csv ["a.csv"]\n'
    assert format_source(Source("t", text), Diagnostics()) == text


def test_braces_of_a_block_inside_a_text() -> None:
    found = value('"a{x { b = 1 }}c"')
    assert isinstance(found, tree.String)
    first, inner, last = found.parts
    assert (first, last) == ("a", "c")
    assert isinstance(inner, tree.Refine)
    assert inner.span.text == "x { b = 1 }"


def test_a_long_requirement_is_broken_before_its_message() -> None:
    long = " and ".join(["some_name < 100"] * 6)
    one, two = f'require {long} else "a message"', f'require {long}\n  else "a message"  # why'
    for text in (f"opus 1\n{one}  # why\n", f"opus 1\n{two}\n"):
        assert format_source(Source("t", text), Diagnostics()) == f"opus 1\n{two}\n"


# --- single mistakes -----------------------------------------------------------------------------

CORRECTED = {
    "let x = a % 3": ("let x = a mod 3", "OPUS007"),
    "let x = 7 % 3": ("let x = 7 mod 3", "OPUS007"),
    "let x = a%(3)": ("let x = a mod (3)", "OPUS007"),
    "job j { x: { a = 1 } }": ("job j { x = { a = 1 } }", "OPUS007"),
    "let x = 'abc'": ('let x = "abc"', "OPUS007"),
    "let x = \u201cabc\u201d": ('let x = "abc"', "OPUS007"),
    "let x =\u00a01": ("let x = 1", "OPUS001"),
    "let x = 1; let y = 2": ("let x = 1\n let y = 2", "OPUS007"),
    "let x = 1 let y = 2": ("let x = 1\n let y = 2", "OPUS001"),
    "let x = [1 2]": ("let x = [1, 2]", "OPUS001"),
    "let x = [a\nb]": ("let x = [a,\nb]", "OPUS001"),
    "job j\n{\n  x = 1\n}": ("job j {\n  x = 1\n}", "OPUS001"),
    "let x = { a: 1 }": ("let x = { a = 1 }", "OPUS007"),
    "let x = { a = 2 rail[0] = 3 }": ("let x = { a = 2, rail[0] = 3 }", "OPUS001"),
    "let x = { a = 2 rail 0 = 3 }": ("let x = { a = 2, rail 0 = 3 }", "OPUS001"),
    "let x = { a = 2 nic b = 3 }": ("let x = { a = 2, nic b = 3 }", "OPUS001"),
    "let x = { a = 2 s = 3 }": ("let x = { a = 2, s = 3 }", "OPUS001"),
}


@pytest.mark.parametrize("wrong", CORRECTED)
def test_a_correction_gives_the_right_program(wrong: str) -> None:
    right, code = CORRECTED[wrong]
    text = f"opus 1\n{wrong}\n"
    _, [found] = read(text)
    assert found.code == code
    for edit in sorted(found.fix, key=lambda e: -e.span.start):
        text = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
    assert text == f"opus 1\n{right}\n"
    assert read(text)[1] == []


@pytest.mark.parametrize(
    "wrong",
    [
        "dp: count = 4",
        "param dp count = 4",
        "param dp: count count = 4",
        "pod a = b c {\n}",
        "job j { x = a.b c { d = 1 } }",
        "let x = [i for for i in 1..2]",
        "let x = [i for i 1..2]",
        "let x = [i for i in in 1..2]",
    ],
)
def test_no_correction_is_offered_that_would_not_do(wrong: str) -> None:
    _, [found] = read(f"opus 1\n{wrong}\n")
    assert not found.fix


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("opus\nlet a = 1\n", "OPUS002", "must be `opus 1`"),
        ("opus 1;\nlet a = 1\n", "OPUS007", "no `;` is needed"),
        ("opus 1\nlet a: count = 1\n", "OPUS001", "a `let` states no type"),
        ("opus 1\n/* two\n lines */\nlet a = 1\n", "OPUS007", "comments start with `#`"),
        ("opus 1\nlet a = [\n1,\n2 = 3,\n4]\nlet b = 1\n", "OPUS001", "expected `,` or `]`"),
        ("opus 1\nlet a = (1 + 2\nlet b = 2\n", "OPUS004", "`(` is never closed"),
        ("opus 1\ncluster a {\n  b = { c = 1\n}\n", "OPUS004", "`{` is never closed"),
        ("opus 1\nlet a = \x00\n", "OPUS001", "U+0000"),
        ('opus 1\nlet a = "{x + }"\n', "OPUS001", "expected an operand after `+`"),
    ],
)
def test_one_mistake_has_one_message(text: str, code: str, says: str) -> None:
    _, found = read(text)
    assert [d.code for d in found] == [code], [d.message for d in found]
    assert says in f"{found[0].message} {found[0].label}"


def test_every_mistake_of_one_line_is_told() -> None:
    _, found = read("opus 1\njob a { b = 1; c = 2; d == 3 }\n")
    assert [d.code for d in found] == ["OPUS007"] * 3
