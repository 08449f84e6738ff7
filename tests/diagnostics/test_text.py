"""The text renderer: what a person sees, to the byte."""

from opusc.diagnostics import Diagnostics, Edit, Label
from opusc.diagnostics.text import render, summary
from opusc.source import Source, Span

PROGRAM = Source("bench.opus", "opus 1\n\ncluster bench {\n  nic = { ports = 2 rate = 200 }\n}\n")


def at(source: Source, text: str) -> Span:
    start = source.text.index(text)
    return source.span(start, start + len(text))


def rendered(sink: Diagnostics, width: int = 80) -> str:
    return render(sink, width=width)


def test_everything_a_message_can_have() -> None:
    other = Source("racks.opus", "opus 1\nlet rate = 1\n")
    sink = Diagnostics()
    sink.error(
        "OPUS001",
        "`rate` is a bandwidth; 200 has no unit",
        at(PROGRAM, "200"),
        "a number without a unit",
        secondary=[Label(at(PROGRAM, "ports"), "`ports` is fine"), Label(at(other, "rate"), "not this one")],
        notes=["200 Gbps is 25 GB/s"],
        help="write `200 Gbps`",
        fix=[Edit(at(PROGRAM, "200"), "200 Gbps")],
    )
    assert rendered(sink) == (
        "error[OPUS001]: `rate` is a bandwidth; 200 has no unit\n"
        " --> bench.opus:4:28\n"
        "  |\n"
        "4 |   nic = { ports = 2 rate = 200 }\n"
        "  |           -----            ^^^ a number without a unit\n"
        "  |           |\n"
        "  |           `ports` is fine\n"
        "  |\n"
        " ::: racks.opus:2:5\n"
        "  |\n"
        "2 | let rate = 1\n"
        "  |     ---- not this one\n"
        "  |\n"
        "  = note: 200 Gbps is 25 GB/s\n"
        "  = help: write `200 Gbps`\n"
        "  = fix:\n"
        "4 -   nic = { ports = 2 rate = 200 }\n"
        "4 +   nic = { ports = 2 rate = 200 Gbps }\n"
        "\n"
    )


def test_tabs_and_wide_characters_count_as_the_terminal_counts_them() -> None:
    source = Source("x.opus", "\t漢字 e\u0301 = bad\n")
    sink = Diagnostics()
    sink.error("OPUS001", "m", at(source, "bad"), "here")
    line, marks = rendered(sink).splitlines()[3:5]
    assert line == "1 |     漢字 e\u0301 = bad"
    # 4 for the tab, 4 for two wide characters, 1 + 1 + 0 for the blank and the accented letter, then ` = `.
    assert marks == "  | " + " " * 13 + "^^^ here"


def test_control_characters_never_reach_the_terminal() -> None:
    source = Source("x\x1b[2J.opus", 'let a = "\x1b[31m\u202e"\n')
    sink = Diagnostics()
    sink.error("OPUS001", "bad \x1b]0;title\x07 text", at(source, "let"), "lab\x1bel", notes=["no\x9bte"])
    shown = rendered(sink)
    assert not [c for c in shown if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e")]


def test_long_lines_are_cropped_around_the_place() -> None:
    source = Source("x.opus", "let a = [" + "1, " * 200 + "oops" + ", 2" * 200 + "]\n")
    sink = Diagnostics()
    sink.error("OPUS001", "m", at(source, "oops"), "this one", fix=[Edit(at(source, "oops"), "3")])
    for width in (60, 80, 200):
        lines = rendered(sink, width).splitlines()
        assert max(map(len, lines)) <= width
        shown, marks = lines[3:5]
        place = marks.index("^^^^")
        assert shown[place : place + 4] == "oops"
        assert shown.startswith("1 | ...")
        assert shown.endswith("...")


def test_notes_and_help_wrap_to_the_width() -> None:
    sink = Diagnostics()
    words = "rail 3 needs 1,024 positions, `polatis_6000n_192` has 192: " * 3
    sink.error("OPUS001", words, at(PROGRAM, "nic"), words, notes=[words], help=words)
    for width in (60, 80, 120):
        assert max(len(line) for line in rendered(sink, width).splitlines()) <= width


def test_a_label_at_the_far_right_stays_readable() -> None:
    source = Source("x.opus", " " * 70 + "bad\n")
    sink = Diagnostics()
    sink.error("OPUS001", "m", at(source, "bad"), "a text that cannot stand to the right of it")
    lines = rendered(sink).splitlines()
    assert max(map(len, lines)) <= 80
    assert "a text that cannot" in rendered(sink)


def test_the_end_of_the_text_can_be_pointed_at() -> None:
    for text in ("", "opus 1", "opus 1\n"):
        source = Source("x.opus", text)
        sink = Diagnostics()
        sink.error("OPUS001", "the program ends here", source.span(len(text), len(text)), "more is missing")
        assert ("more is missing" in rendered(sink)) == (text != "")
        assert f"x.opus:{1 + text.count(chr(10))}:" in rendered(sink)


def test_a_span_of_several_lines_is_marked_on_its_first() -> None:
    sink = Diagnostics()
    sink.error("OPUS001", "m", at(PROGRAM, "bench {\n  nic = {"), "starts here")
    assert rendered(sink).splitlines()[3:5] == ["3 | cluster bench {", "  |         ^^^^^^^ starts here"]


def test_a_fix_that_inserts_and_removes_lines() -> None:
    source = Source("x.opus", "opus 1\na\nb\nc\n")
    sink = Diagnostics()
    edits = [Edit(at(source, "a\n"), "a\nnew\n"), Edit(at(source, "c\n"), "")]
    sink.error("OPUS001", "m", at(source, "a"), fix=edits)
    shown = rendered(sink).split("= fix:\n")[1].splitlines()
    assert shown == ["3 + new", "4 - c", ""]


def test_colour_is_only_paint() -> None:
    import re

    sink = Diagnostics()
    sink.error("OPUS001", "m", at(PROGRAM, "200"), "here", notes=["n"], help="h", fix=[Edit(at(PROGRAM, "200"), "3")])
    sink.warning("OPUS001", "w", at(PROGRAM, "nic"))
    painted = render(sink, colour=True)
    assert "\x1b[1;31m" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render(sink)


def test_summary() -> None:
    sink = Diagnostics()
    assert summary(sink) == ""
    sink.error("OPUS001", "a", PROGRAM.span(0, 1))
    assert summary(sink) == "1 error"
    sink.error("OPUS001", "b", PROGRAM.span(0, 1))
    sink.warning("OPUS001", "c", PROGRAM.span(0, 1))
    assert summary(sink) == "2 errors, 1 warning"
