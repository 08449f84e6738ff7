"""The commands over programs: what they write, where they say it, and how they end."""

import io
import json
import sys
from pathlib import Path

import jsonschema
import pytest

from opusc import output
from opusc.cli.main import main
from opusc.diagnostics import json as as_json

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart" / "quickstart.opus"
#: Warns with OPUS420.
WARNED = str(ROOT / "tests" / "errors" / "OPUS420-not-checked.opus")
RAILS = ROOT / "examples" / "photonic-rails" / "photonic-rails.opus"
WRONG = QUICKSTART.read_text().replace("rate = 200 Gbps", "rate = 200")

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with one right and one wrong program."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.opus").write_text(QUICKSTART.read_text())
    (tmp_path / "bad.opus").write_text(WRONG)
    return tmp_path


def stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def content(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in output.files_in(directory)}


# --- compile -------------------------------------------------------------------------------------


def test_compile_writes_build_by_default_and_the_same_bytes_each_time(here: Path, capsys: Capture) -> None:
    assert main(["compile", "good.opus"]) == 0
    first = content(here / "build")
    assert {"plan.json", "fabric.dot", output.MANIFEST} <= set(first)
    manifest = json.loads(first[output.MANIFEST])
    assert manifest["targets"] == ["plan", "graphviz"]
    assert "good.opus" in {source["name"] for source in manifest["sources"]}
    assert main(["compile", "good.opus"]) == 0
    assert content(here / "build") == first


def test_a_failed_compile_leaves_the_previous_output(here: Path, capsys: Capture) -> None:
    assert main(["compile", "good.opus", "-t", "plan"]) == 0
    before = content(here / "build")
    assert main(["compile", "bad.opus", "-t", "plan"]) == 1
    assert main(["compile", "good.opus", "-t", "plan", "--max-output", "1 kB"]) == 1
    assert "OPUS6" in capsys.readouterr().err
    assert content(here / "build") == before
    assert sorted(p.name for p in here.iterdir()) == ["bad.opus", "build", "good.opus"]


def test_a_backend_that_breaks_is_reported_and_nothing_is_written(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opusc.backends.plan import PlanBackend

    def broken(self: PlanBackend, *arguments: object) -> None:
        raise ZeroDivisionError("seeded")

    monkeypatch.setattr(PlanBackend, "write", broken)
    assert main(["compile", "good.opus", "-t", "plan"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "error[OPUS901]: internal compiler error in stage `write`: ZeroDivisionError: seeded" in said
    assert not (here / "build").exists()


def test_a_directory_of_others_is_refused_with_2(here: Path, capsys: Capture) -> None:
    (here / "build").mkdir()
    (here / "build" / "notes.txt").write_text("mine")
    assert main(["compile", "good.opus", "-t", "plan"]) == 2
    assert "was not written by opusc" in capsys.readouterr().err
    assert content(here / "build") == {"notes.txt": b"mine"}


def test_several_programs_get_a_directory_each(here: Path, capsys: Capture) -> None:
    assert main(["compile", "good.opus", "bad.opus", "missing.opus", "-t", "plan", "-o", "out"]) == 2
    streams = capsys.readouterr()
    assert streams.out.startswith("good.opus\n\nllama_8b on rails")
    assert "error[OPUS202]" in streams.err
    assert "cannot read `missing.opus`" in streams.err
    assert [p.name for p in (here / "out").iterdir()] == ["good"]
    (here / "sub").mkdir()
    assert main(["compile", "good.opus", "sub/good.opus"]) == 2
    assert "would both be written" in capsys.readouterr().err


def test_params_reach_the_program_and_the_manifest(here: Path, capsys: Capture) -> None:
    assert main(["compile", str(RAILS), "-t", "plan", "-D", "dp=8", "-D", "delay=25 ms"]) == 0
    assert "256 GPUs in 32 nodes of 8" in capsys.readouterr().out
    manifest = json.loads((here / "build" / output.MANIFEST).read_text())
    assert manifest["parameters"] == {"delay": "25 ms", "dp": "8"}
    assert main(["compile", str(RAILS), "-D", "dq=8"]) == 1
    assert "dq" in capsys.readouterr().err


@pytest.mark.parametrize("width", [60, 80])
def test_the_summary_fits_the_terminal(
    here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["compile", str(RAILS), "-o", "out"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= width
    assert main(["compile", WARNED, "-o", "out"]) == 0
    streams = capsys.readouterr()
    assert max(map(len, streams.out.splitlines())) <= width
    messages = [line for line in streams.err.splitlines() if "-->" not in line]  # a path is not broken
    assert max(map(len, messages)) <= width


# --- check and the forms of messages -------------------------------------------------------------


def test_check_writes_nothing(here: Path, capsys: Capture) -> None:
    assert main(["check", "good.opus"]) == 0
    assert capsys.readouterr().out.startswith("good.opus: 8 GPUs, 3 parts, 32 circuits, proved in ")
    assert sorted(p.name for p in here.iterdir()) == ["bad.opus", "good.opus"]


def test_text_goes_to_stderr_and_the_forms_for_programs_to_stdout(here: Path, capsys: Capture) -> None:
    assert main(["check", "bad.opus"]) == 1
    text = capsys.readouterr()
    assert text.out == ""
    assert "error[OPUS202]" in text.err
    assert text.err.endswith("\n\n1 error\n")
    assert main(["check", "bad.opus", "good.opus", "--format", "concise"]) == 1
    concise = capsys.readouterr()
    assert concise.err == ""
    assert concise.out == "bad.opus:9:39: error[OPUS202] `rate` is a bandwidth; 200 has no unit\n"
    assert main(["check", "bad.opus", "bad.opus", "good.opus", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads(as_json.schema_file().read_text()))
    assert document["summary"] == {"errors": 2, "warnings": 0}


def test_a_target_option_without_a_target_is_no_order(here: Path, capsys: Capture) -> None:
    assert main(["compile", "good.opus", "-t", ","]) == 2
    assert capsys.readouterr().err.startswith("opusc: `-t` names no target; there are astra-sim, ")
    assert not (here / "build").exists()


def test_more_mistakes_than_are_told_are_announced(here: Path, capsys: Capture) -> None:
    (here / "syntax.opus").write_text("opus 1\n" + "let = 1\n" * 60)
    (here / "names.opus").write_text("opus 1\n" + "".join(f"let a{i} = b{i}\n" for i in range(300)))
    for program, count in (("syntax.opus", 25), ("names.opus", 200)):
        assert main(["check", program]) == 1
        assert capsys.readouterr().err.endswith(f"\n{count} errors; there are more: repair these first\n")


def test_commands_with_an_output_of_their_own_keep_messages_apart(here: Path, capsys: Capture) -> None:
    for form in ("text", "concise", "json"):
        for command in (["show", WARNED], ["graph", WARNED]):
            assert main([*command, "--format", form]) == 0
            streams = capsys.readouterr()
            assert "OPUS420" in streams.err
            assert "OPUS420" not in streams.out


def test_the_fix_of_a_message_makes_the_program_right(here: Path, capsys: Capture) -> None:
    assert main(["check", "bad.opus", "--format", "json"]) == 1
    [found] = json.loads(capsys.readouterr().out)["diagnostics"]
    text = (here / "bad.opus").read_text()
    for edit in reversed(found["fix"]["edits"]):
        start, end = edit["span"]["start"]["offset"], edit["span"]["end"]["offset"]
        text = text[:start] + edit["replacement"] + text[end:]
    (here / "bad.opus").write_text(text)
    assert main(["check", "bad.opus"]) == 0


def test_standard_input(here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, QUICKSTART.read_bytes())
    assert main(["check", "-"]) == 0
    assert capsys.readouterr().out.startswith("-: 8 GPUs")
    stdin(monkeypatch, b"\xef\xbb\xbf" + WRONG.replace("\n", "\r\n").encode())
    assert main(["check", "-", "--format", "concise"]) == 1
    assert capsys.readouterr().out.startswith("<stdin>:9:39: error[OPUS202]")
    stdin(monkeypatch, b"opus 1\n\xff\xfe")
    assert main(["check", "-", "--format", "concise"]) == 1
    assert capsys.readouterr().out == "<stdin>:1:1: error[OPUS104] `<stdin>` is not UTF-8 (byte 7)\n"
    stdin(monkeypatch, b"# " + b"x" * (17 << 20))
    assert main(["check", "-", "--format", "concise"]) == 1
    assert "OPUS009" in capsys.readouterr().out


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_is_for_terminals_that_want_it(
    here: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["check", "bad.opus"]) == 1
    assert ("\x1b[1;31m" in terminal.getvalue()) is coloured


def test_no_colour_without_a_terminal(here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main(["check", "bad.opus"]) == 1
    assert "\x1b" not in capsys.readouterr().err


# --- fmt -----------------------------------------------------------------------------------------

UGLY = QUICKSTART.read_text().replace("  node_count    = 4", "    node_count=4")


def test_fmt_prints_rewrites_compares(here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    ugly = here / "ugly.opus"
    ugly.write_text(UGLY)
    ugly.chmod(0o640)
    assert main(["fmt", "ugly.opus"]) == 0
    assert capsys.readouterr().out == QUICKSTART.read_text()
    assert main(["fmt", "--check", "ugly.opus", "good.opus"]) == 1
    assert capsys.readouterr().out == "ugly.opus would change\n"
    assert main(["fmt", "--diff", "ugly.opus", "good.opus"]) == 1
    diff = capsys.readouterr().out
    assert "-    node_count=4\n" in diff
    assert "+  node_count    = 4\n" in diff
    stdin(monkeypatch, UGLY.encode())
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr().out == QUICKSTART.read_text()
    assert ugly.read_text() == UGLY
    assert main(["fmt", "-i", "ugly.opus", "good.opus"]) == 0
    assert ugly.read_text() == QUICKSTART.read_text()
    assert ugly.stat().st_mode & 0o777 == 0o640
    assert main(["fmt", "--check", "ugly.opus"]) == 0


def test_fmt_leaves_a_program_that_does_not_parse_alone(here: Path, capsys: Capture) -> None:
    (here / "broken.opus").write_text("opus 1\ncluster {")
    (here / "ugly.opus").write_text(UGLY)
    assert main(["fmt", "-i", "broken.opus", "missing.opus", "ugly.opus"]) == 2
    streams = capsys.readouterr()
    assert "error[OPUS0" in streams.err
    assert "cannot read `missing.opus`" in streams.err
    assert (here / "broken.opus").read_text() == "opus 1\ncluster {"
    assert (here / "ugly.opus").read_text() == QUICKSTART.read_text(), "the others are still done"


# --- graph, schema, show -------------------------------------------------------------------------


def test_graph_draws_the_fabric_or_a_part(here: Path, capsys: Capture) -> None:
    assert main(["graph", "good.opus"]) == 0
    fabric = capsys.readouterr().out
    assert main(["graph", "good.opus", "--phase", "dp", "--stage", "1"]) == 0
    part = capsys.readouterr().out
    assert "graph" in fabric.split("{")[0]
    assert fabric != part
    assert main(["graph", "good.opus", "-o", "fabric.dot"]) == 0
    assert (here / "fabric.dot").read_text() == fabric


def test_graph_needs_graphviz_for_pictures_only(here: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    from opusc.backends import graphviz

    if graphviz.has_graphviz():
        assert main(["graph", "good.opus", "-o", "fabric.svg"]) == 0
        assert "<svg" in (here / "fabric.svg").read_text()
        assert main(["graph", "good.opus", "-o", "fabric.png"]) == 0
        assert (here / "fabric.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(graphviz, "has_graphviz", lambda: False)
    assert main(["graph", "good.opus", "-o", "other.svg"]) == 2
    assert "apt install graphviz" in capsys.readouterr().err
    assert main(["graph", "good.opus", "-o", "other.dot"]) == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-o", "fabric.pdf"], "should end in .dot, .svg or .png"),
        (["--stage", "0"], "add --phase"),
        (["--phase", "db"], "did you mean `dp`?"),
        (["--phase", "dp", "--stage", "2"], "there is no stage 2"),
        (["-o", "no/such/folder/x.dot"], "cannot write `no/such/folder/x.dot`"),
    ],
)
def test_graph_says_what_is_wrong(here: Path, capsys: Capture, arguments: list[str], says: str) -> None:
    assert main(["graph", "good.opus", *arguments]) == 2
    streams = capsys.readouterr()
    assert says in streams.err
    assert streams.out == ""


def test_schemas_are_listed_printed_and_valid(capsys: Capture) -> None:
    assert main(["schema"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert {"plan", "diagnostics"} <= set(names)
    for name in names:
        assert main(["schema", name]) == 0
        jsonschema.Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))


def test_show_answers_about_a_file(here: Path, capsys: Capture) -> None:
    assert main(["show", str(RAILS), "--phase", "dp", "--rank", "37"]) == 0
    out = capsys.readouterr().out
    assert "rank 37 is GPU 5 of node 4, on rail 5, in pipeline stage 1" in out
    assert "rails.rail[5]  9 <-> 12" in out
    assert main(["show", "bad.opus"]) == 1
    assert main(["show", str(RAILS), "--phase", "dp", "--rank", "128"]) == 2
    assert "the job has 128 ranks" in capsys.readouterr().err
