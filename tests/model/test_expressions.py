"""Expressions: exact values, dimensions, and what is said when operands do not go together."""

import pytest

from tests.model.programs import codes, model_of, requiring, right

TRUE = [
    "0.1 + 0.2 == 0.3",
    "1 / 3 * 3 == 1",
    "-7 mod 4 == 1 and -7 div 4 == -2",
    "floor(7 / 2) == 3 and ceil(7 / 2) == 4",
    "200 Gbps == 25 GB/s and 200Gbps * 1 s == 25 GB and 25 GB / 1 s == 200 Gbps",
    "1 GiB/s == 8 * power(2, 30) * 1 bps",
    "50 % * 200 Gbps == 100 Gbps and 200 Gbps / 100 Gbps == 2",
    "3 dBm - 1 dB == 2 dBm and 3 dBm - 1 dBm == 2 dB and 2 dB + 1 dB == 3 dB and 1 dB + 3 dBm == 4 dBm",
    "3 MW > 3 mW and 1 min == 60 s and 10 us == 10 \u00b5s",
    "2 kUSD == 2000 USD and 1 PFLOPS == 1000 TFLOPS",
    "[1] * 2 + [2] == [1, 1, 2] and 0..2 == [0, 1, 2] and 5..1 == []",
    "[i * j for i in 1..2 for j in 1..3 if i != j] == [2, 3, 2, 6]",
    "[a + b for a, b in [(1, 2), (3, 4)]] == [3, 7]",
    "(if 1 < 2 then 3 else 1 / 0) == 3",
    "false and 1 / 0 == 0 or true",
    "7 in 0..9 and not (10 in 0..9) and 3 in [1, 2, 3]",
    "sum(1..4) == 10 and product([2, 3]) == 6 and sum([1 Gbps, 2 Gbps]) == 3 Gbps",
    "min(3, 1, 2) == 1 and max([1 ms, 2 ms]) == 2 ms and abs(-3) == 3",
    "digits(11, [2, 3, 4]) == [1, 2, 1] and number([1, 2, 1], [2, 3, 4]) == 11",
    "log2(1024) == 10 and zip([1, 2], [3, 4]) == [(1, 3), (2, 4)] and reverse(1..3) == [3, 2, 1]",
    'len("abc") == 3 and "{1 + 1} of {true}" == "2 of true"',
    "len(0..10000000000000000000000) == 10000000000000000000001",
    "(0..10000000000000000000000)[5] == 5",
]


@pytest.mark.parametrize("condition", TRUE)
def test_is_true(condition: str) -> None:
    assert codes(requiring(condition)) == []


@pytest.mark.parametrize("condition", TRUE)
def test_its_negation_is_refused(condition: str) -> None:
    """So that a condition that is never evaluated cannot pass."""
    assert codes(requiring(f"not ({condition})")) == ["OPUS421"]


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("200 Gbps + 1 s > 0 s", "OPUS203"),
        ("3 dBm + 3 dBm > 0 dBm", "OPUS203"),
        ("2 * 3 dBm > 0 dBm", "OPUS203"),
        ("6 % < 1", "OPUS203"),
        ("3 ms == 3", "OPUS203"),
        ("1 / 0 == 0", "OPUS203"),
        ("1 mod 0 == 0", "OPUS203"),
        ("1.5 div 1 == 1", "OPUS203"),
        ("[1][1] == 1", "OPUS204"),
        ("log2(3) == 1", "OPUS205"),
        ("len(3) == 1", "OPUS205"),
        ("nothing == 1", "OPUS101"),
        ("3 furlongs > 0 s", "OPUS202"),
        ("1", "OPUS201"),
        ("switches.generic == switches.generic", "OPUS203"),
    ],
)
def test_is_refused(condition: str, code: str) -> None:
    assert codes(requiring(condition)) == [code]


def test_an_error_inside_a_loop_names_the_iteration() -> None:
    _, sink = model_of(requiring("len([1 / (i - 3) for i in 0..5 for j in [7]]) == 0"))
    (diagnostic,) = sink
    assert diagnostic.notes == ("for j = 7", "for i = 3")


@pytest.mark.parametrize(
    ("written", "meant", "sure"),
    [
        ("gbps", "Gbps", True),
        ("Gb/s", "Gbps", True),
        ("Gbit/s", "Gbps", True),
        ("GBps", "GB/s", True),
        ("sec", "s", True),
        ("Gib/s", None, False),  # eight times as much as bytes would be: no guess
        ("gb", "GB", False),  # or Gb
        ("mw", "mW", False),  # or MW
        ("uss", "us", False),
    ],
)
def test_a_unit_is_repaired_only_where_it_has_one_reading(written: str, meant: str | None, sure: bool) -> None:
    _, sink = model_of(requiring(f"3 {written} == 1"))
    (diagnostic,) = sink
    assert diagnostic.code == "OPUS202"
    assert (meant is None) == ("no unit" in diagnostic.label)
    if meant:
        assert f"`{meant}`" in diagnostic.label
    assert [e.replacement for e in diagnostic.fix] == ([meant] if sure else [])


def test_declarations_may_stand_in_any_order() -> None:
    right(requiring("a == 3", "param a: count = b\nparam b: count = c1\nlet c1 = 3\n"))
    right(requiring("a0 == 2000", "".join(f"let a{i} = a{i + 1} + 1\n" for i in range(100)) + "let a100 = 1900\n"))


def test_a_module_that_is_not_used_is_offered() -> None:
    _, sink = model_of(requiring("models.llama3_8b.layers == 32"))
    (diagnostic,) = sink
    assert diagnostic.code == "OPUS101"
    assert diagnostic.help == "add `use std.models`"
    fixed = requiring("models.llama3_8b.layers == 32").replace("opus 1\n", "opus 1\n\nuse std.models\n", 1)
    (edit,) = diagnostic.fix
    text = diagnostic.span.source.text
    assert text[: edit.span.start] + edit.replacement + text[edit.span.end :] == fixed
    right(fixed)


def test_a_module_with_another_name_here_is_not_used_twice() -> None:
    _, sink = model_of(requiring("models.llama3_8b.layers == 32", "use std.models as networks\n"))
    (diagnostic,) = sink
    assert (diagnostic.code, diagnostic.label) == ("OPUS101", "it is called `networks` here")
    (edit,) = diagnostic.fix
    text = diagnostic.span.source.text
    right(text[: edit.span.start] + edit.replacement + text[edit.span.end :])
