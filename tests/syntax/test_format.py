"""`opusc fmt` from outside: any text, any bytes, standard input; comments are neither lost nor doubled."""

import io
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opusc.cli.main import main
from opusc.diagnostics import Diagnostics
from opusc.source import Source
from opusc.syntax.formatter import format_source

TOKENS = [
    "opus 1\n", "let a = ", "cluster c {", "phase p over dp * cp {", "require ", "fault cube 5 of v4",
    "{", "}", "[", "]", "(", ")", ",", "=", "..", "+", "not ", "if ", " then ", " else ", " for i in ", "a", "1", "6 %",
    "200Gbps", '"t{1}"', '"', "{{", "\\", "# note", "## doc", "\n", "\n\n", " ", "\t", "\x00", "é", ".", "in ",
    "param d: count in ", "use std.x",
]  # fmt: skip


def formatted(text: str) -> str:
    sink = Diagnostics()
    result = format_source(Source("t.opus", text), sink)
    assert not list(sink), [d.message for d in sink]
    return result


def standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=25).map("".join))
def test_any_text_is_formatted_or_left_alone_with_an_error(text: str) -> None:
    for whole in (text, f"opus 1\n{text}"):
        sink = Diagnostics()
        result = format_source(Source("t", whole), sink)
        if sink.has_errors:
            assert result == whole
        else:
            assert result.endswith("\n")
            assert not result.endswith("\n\n")
            assert formatted(result) == result


COMMENTED = {
    "after the version": "opus 1  # one\n",
    "in a block": "opus 1\ncluster c {  # one\n  # two\n  a = 1  # three\n  # four\n}  # five\n",
    "between elements of a list": "opus 1\nlet a = [\n  { b = 1 }, # one\n  # two\n  { b = 2 },\n]\n",
    "in a condition": 'opus 1\nrequire a < # one\n  b else "# no comment"\n',
    "in the domain of a parameter": "opus 1\nparam a: count in [1, # one\n  2] = 2\n",
    "in what is refined": "opus 1\nlet a = f(1, # one\n  2) {\n  b = 1\n}\n",
    "in a fault": "opus 1\nfault cube [1, # one\n  2] of v4\n",
}


@pytest.mark.parametrize("text", COMMENTED.values(), ids=COMMENTED.keys())
def test_a_comment_keeps_its_place(text: str) -> None:
    assert formatted(text) == text


@pytest.mark.parametrize(
    "data", [b"opus 1\r\nlet  a=1 # b\r\n", b"opus 1\nlet  a=1 # b", b"\xef\xbb\xbfopus 1\nlet a =1 # b\n"]
)
def test_standard_input_with_any_line_ends_is_printed_in_one_form(
    data: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    standard_input(monkeypatch, data)
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr().out == "opus 1\nlet a = 1  # b\n"


@pytest.mark.parametrize("data", [b"", b"# only a comment\n", b"opus 1\nlet a = \n", b"\xff\xfe\n"])
def test_standard_input_that_is_no_program_prints_nothing_but_messages(
    data: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    standard_input(monkeypatch, data)
    assert main(["fmt", "-"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "error[OPUS" in shown.err


def test_check_says_which_program_would_change(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    standard_input(monkeypatch, b"opus 1\nlet a = 1\n")
    assert main(["fmt", "--check", "-"]) == 0
    standard_input(monkeypatch, b"opus 1\nlet a=1\n")
    assert main(["fmt", "--check", "-"]) == 1
    assert "would change" in capsys.readouterr().out
