"""The output directory: replaced in one step or not at all, never one that opusc did not write."""

import json
import os
from pathlib import Path

import pytest

from opusc import output
from opusc.output import MANIFEST, OutputError, files_in, inside, manifest, replacing
from opusc.source import Source

SOURCE = Source("a.opus", "opus 1\n")


def write(target: Path, **files: str) -> None:
    with replacing(target) as staging:
        for name, text in files.items():
            inside(staging, f"sub/{name}").write_text(text)
        document = manifest(staging, targets=["plan"], parameters={"b": "2", "a": "1"}, sources=[SOURCE])
        (staging / MANIFEST).write_text(json.dumps(document))


def fail_half_way(target: Path, error: type[BaseException]) -> None:
    with replacing(target) as staging:
        (staging / "half").write_text("x")
        raise error


def link_inside(target: Path) -> None:
    with replacing(target) as staging:
        (staging / MANIFEST).write_text("{}")
        (staging / "evil").symlink_to("/etc")


def leftovers(parent: Path, *known: str) -> list[str]:
    return sorted(set(os.listdir(parent)) - set(known))


def test_a_second_run_replaces_the_first_entirely(tmp_path: Path) -> None:
    write(tmp_path / "build", old="1", both="1")
    write(tmp_path / "build", new="2", both="2")
    assert files_in(tmp_path / "build") == [MANIFEST, "sub/both", "sub/new"]
    assert (tmp_path / "build/sub/both").read_text() == "2"
    assert leftovers(tmp_path, "build") == []


def test_where_the_system_cannot_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_exchange", lambda a, b: False)
    test_a_second_run_replaces_the_first_entirely(tmp_path)
    # And when the new directory cannot be moved into place, the old one comes back.
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if self.name.endswith(".tmp"):
            raise OSError(5, "broken disk")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OutputError, match="broken disk"):
        write(tmp_path / "build", newest="3")
    assert files_in(tmp_path / "build") == [MANIFEST, "sub/both", "sub/new"]
    assert leftovers(tmp_path, "build") == []


def test_a_failed_run_leaves_everything_as_it_was(tmp_path: Path) -> None:
    write(tmp_path / "build", old="1")
    before = {name: (tmp_path / "build" / name).read_bytes() for name in files_in(tmp_path / "build")}
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            fail_half_way(tmp_path / "build", error)
    after = {name: (tmp_path / "build" / name).read_bytes() for name in files_in(tmp_path / "build")}
    assert after == before
    assert leftovers(tmp_path, "build") == []


def test_a_directory_of_others_is_not_replaced(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    write(theirs, fine="an empty directory is free to take")
    (theirs / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"notes\.txt.*opusc did not write"):
        write(theirs, more="1")
    assert (theirs / "notes.txt").read_text() == "mine"
    (theirs / MANIFEST).unlink()
    with pytest.raises(OutputError, match="not written by opusc"):
        write(theirs, more="1")
    for text in ("", "[]", "{}", '{"opusc": 1, "files": []}', '{"opusc": "0.1.0", "files": [3]}', "[" * 100_000):
        (theirs / MANIFEST).write_text(text)
        with pytest.raises(OutputError, match="not written by opusc"):
            write(theirs, more="1")
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(OutputError, match="not a directory"):
        write(file, more="1")
    assert file.read_text() == "x"


def test_the_working_directory_is_not_pulled_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "build", old="1")
    monkeypatch.chdir(tmp_path / "build" / "sub")
    for target in (Path(".."), tmp_path / "build"):
        with pytest.raises(OutputError, match="that you are in"):
            write(target, new="1")


def test_a_link_to_a_directory_stays_a_link(tmp_path: Path) -> None:
    write(tmp_path / "real", old="1")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", new="2")
    assert (tmp_path / "link").is_symlink()
    assert files_in(tmp_path / "real") == [MANIFEST, "sub/new"]


@pytest.mark.parametrize(
    "name", ["", "/etc/x", "../x", "a/../../x", "a//b", "./a", "a\\..\\b", "c:x", "a\0b", "a\nb", "..", "."]
)
def test_no_file_name_leaves_the_directory(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match="cannot be the name"):
        inside(tmp_path, name)
    assert os.listdir(tmp_path) == []


def test_a_link_in_the_output_is_a_defect(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="link"):
        link_inside(tmp_path / "build")
    assert os.listdir(tmp_path) == []


def test_the_manifest_says_what_and_from_what_and_nothing_of_when(tmp_path: Path) -> None:
    write(tmp_path / "one", x="text")
    write(tmp_path / "two", x="text")
    first = (tmp_path / "one" / MANIFEST).read_bytes()
    assert first == (tmp_path / "two" / MANIFEST).read_bytes()
    document = json.loads(first)
    assert document["files"] == [
        {
            "path": "sub/x",
            "size": 4,
            "sha256": "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1",
        }
    ]
    assert list(document["parameters"]) == ["a", "b"]
    assert document["sources"][0]["name"] == "a.opus"


def test_permissions_are_those_of_any_new_directory(tmp_path: Path) -> None:
    write(tmp_path / "build", x="1")
    plain = tmp_path / "plain"
    plain.mkdir()
    assert (tmp_path / "build").stat().st_mode == plain.stat().st_mode
