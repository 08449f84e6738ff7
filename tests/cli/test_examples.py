"""Every example compiles to a proved plan, or is refused with one precise message; all are formatted."""

import json
import re
from pathlib import Path

import pytest

from opusc.cli.main import main
from opusc.output import MANIFEST

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/*.opus"))
REFUSED = [path for path in EXAMPLES if re.search(r"^# refused: ", path.read_text(), re.MULTILINE)]
COMPILED = [path for path in EXAMPLES if path not in REFUSED]


def test_the_scenarios_are_all_here() -> None:
    assert {path.stem for path in REFUSED} == {"shared-and-broken", "tpu-v4"}
    assert {path.stem for path in COMPILED} == {
        "explicit-circuits",
        "flattened-butterfly",
        "link-budget",
        "mixture-of-experts",
        "nvl72",
        "one-port",
        "photonic-rails",
        "quickstart",
        "two-vendors",
    }
    assert all(path.parent.name == path.stem for path in EXAMPLES)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_is_in_canonical_form(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "--diff", str(path)]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("path", COMPILED, ids=lambda p: p.stem)
def test_an_example_compiles_and_says_so(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(path), "-o", str(tmp_path / "build"), "-t", "plan"]) == 0
    streams = capsys.readouterr()
    for word in ("rails", "switches", "phase", "assumed", "proved", "wrote"):
        assert re.search(rf"^{word}\b", streams.out, re.MULTILINE), word
    manifest = json.loads((tmp_path / "build" / MANIFEST).read_text())
    assert [entry["path"] for entry in manifest["files"]] == ["plan.json"]
    # A requirement on a result is decided, and said to be.
    assert re.search(r"^held\b", streams.out, re.MULTILINE) or "require" not in path.read_text()
    assert "not checked" not in streams.out


@pytest.mark.parametrize("path", REFUSED, ids=lambda p: p.stem)
def test_an_example_that_needs_more_is_refused_with_one_message(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(path), "-o", str(tmp_path / "build"), "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["summary"] == {"errors": 1, "warnings": 0}, document
    assert not (tmp_path / "build").exists()
