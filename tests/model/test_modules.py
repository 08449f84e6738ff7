"""Used files, parameters and the confinement to the project root."""

import os
from pathlib import Path

import pytest

from opusc.diagnostics import Diagnostics
from opusc.model.build import build_model
from opusc.model.entities import Model, Optics
from opusc.model.loader import Loader
from opusc.source import Source
from opusc.syntax.parser import parse
from tests.model.programs import CLUSTER, FABRIC, HEAD, JOB, PROGRAM, codes, model_of, requiring, right


def using(line: str) -> str:
    return PROGRAM.replace("use std.switches\n", f"use std.switches\n{line}\n")


def from_disk(root: Path, text: str) -> tuple[Model | None, Diagnostics]:
    sink = Diagnostics()
    main = root / "main.opus"
    main.write_text(text)
    return build_model(parse(Source(str(main), text), sink), Loader(root), {}, sink), sink


def test_files_use_files_relative_to_themselves(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.opus").write_text('opus 1\nuse "../b.opus"\nlet tp = b.two\n')
    (tmp_path / "b.opus").write_text("opus 1\nlet two = 2\n")
    model, sink = from_disk(tmp_path, using('use "parts/a.opus"').replace("tp = 2", "tp = a.tp"))
    assert model is not None, list(sink)
    assert model.job.parallelism.tp == 2
    names = [Path(s.name).name for s in model.sources]
    assert names == ["main.opus", "std.switches", "a.opus", "b.opus"]
    assert not any(".." in s.name for s in model.sources)


@pytest.mark.parametrize("path", ["../outside.opus", "/etc/passwd", "link.opus", "folder/passwd"])
def test_nothing_outside_the_root_is_read(path: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside.opus").write_text("opus 1\nlet x = 1\n")
    os.symlink(tmp_path / "outside.opus", root / "link.opus")
    os.symlink("/etc", root / "folder")
    model, sink = from_disk(root, using(f'use "{path}" as m'))
    assert model is None
    assert [d.code for d in sink] == ["OPUS105"]


@pytest.mark.parametrize("path", ["missing.opus", "folder", "pipe", "bytes.opus", "nul\0.opus"])
def test_what_cannot_be_read_is_one_message(path: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes.opus").write_bytes(b"opus 1\nlet x = \xff\n")
    model, sink = from_disk(tmp_path, using(f'use "{path}" as m'))
    assert model is None
    assert [d.code for d in sink] == ["OPUS104"]


def test_files_in_a_circle_are_refused_with_the_circle() -> None:
    files = {"a.opus": 'opus 1\nuse "b.opus"\n', "b.opus": 'opus 1\nuse "a.opus"\n'}
    _, sink = model_of(using('use "a.opus"'), files=files)
    (diagnostic,) = sink
    assert diagnostic.code == "OPUS103"
    assert "a.opus -> b.opus -> a.opus" in diagnostic.message
    assert diagnostic.span.source.name == "b.opus"


def test_a_wrong_name_in_a_used_file_is_told_there() -> None:
    _, sink = model_of(using('use "a.opus"'), files={"a.opus": "opus 1\nlet x = 1 + nothing\n"})
    assert [(d.code, d.span.place) for d in sink] == [("OPUS101", "a.opus:2:13")]


def test_names_of_modules_count_as_declared() -> None:
    assert codes(using("let switches = 3")) == ["OPUS102"]
    assert codes(using("use std.gpus as g\nuse std.models as g")) == ["OPUS102"]


def test_a_misspelt_module_and_member() -> None:
    assert codes(PROGRAM.replace("std.switches", "std.switchs")) == ["OPUS104"]
    _, sink = model_of(PROGRAM.replace("polatis_6000_32x32", "polatis_6000_32x33"))
    (diagnostic,) = sink
    assert (diagnostic.code, diagnostic.label) == ("OPUS101", "did you mean `polatis_6000_32x32`?")


def test_functions_and_blocks_of_a_used_file() -> None:
    library = (
        "opus 1\nuse std.switches\nlet twice(x) = 2 * x\n"
        "switch big = switches.polatis_6000_32x32 { radix = twice(32) }\n"
    )
    text = (
        using('use "lib.opus" as l')
        .replace("switches.polatis_6000_32x32", "l.big")
        .replace("tp = 2", "tp = l.twice(1)")
    )
    model = right(text, files={"lib.opus": library})
    assert model.fabric.rails[0].switches[0].radix == 64
    assert model.fabric.rails[0].switches[0].name == "big"


# --- parameters ----------------------------------------------------------------------------------

PARAMETERS = (
    HEAD
    + "param n: count in [1, 2, 4] = 2\nparam delay: time = 10 ms\nparam o: optics = duplex\n"
    + CLUSTER.replace("optics = duplex", "optics = o")
    + FABRIC.replace("32x32", "32x32 { reconfigure = { settle = delay } }")
    + JOB.replace("tp = 2", "tp = n")
)


def test_parameters_are_set_by_expressions() -> None:
    model = right(PARAMETERS, {"n": "1 + 1", "delay": "2.5 ms * 10", "o": "bidi"})
    assert model.fabric.rails[0].switches[0].settle == 25 * 10**9
    assert model.cluster.rail_nic.optics is Optics.BIDI
    assert model.parameters == {"delay": "25 ms", "n": "2", "o": "bidi"}


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("n", "3", "OPUS204"),
        ("n", "10 ms", "OPUS201"),
        ("n", "0", "OPUS204"),
        ("n", "2.5", "OPUS201"),
        ("n", "true", "OPUS201"),
        ("delay", "10", "OPUS202"),
        ("delay", "10 mss", "OPUS202"),
        ("o", "both", "OPUS101"),
        ("m", "1", "OPUS108"),
    ],
)
def test_wrong_values_of_parameters_are_told_where_they_were_given(name: str, value: str, code: str) -> None:
    _, sink = model_of(PARAMETERS, {name: value})
    (diagnostic,) = sink
    assert diagnostic.code == code
    assert diagnostic.span.source.name == f"-D {name}"


def test_a_parameter_without_a_value() -> None:
    text = PROGRAM.replace("cluster c", "param n: count\ncluster c").replace("tp = 2", "tp = n")
    assert codes(text) == ["OPUS107"]
    right(text, {"n": "2"})


@pytest.mark.parametrize(
    ("parameter", "value", "code"),
    [
        ("a in [1 ms, 2 ms] = 1 ms", "2000 us", None),
        ("a in [1 ms, 2 ms] = 1 ms", "3 ms", "OPUS204"),
        ("a in [1 ms, 2 ms] = 1 ms", "2", "OPUS204"),
        ("a in [1 / 3] = 1 / 3", "0.333333", "OPUS204"),
        ("a in [1 s / 3] = 1 s / 3", "0.333333 s", "OPUS204"),
        ("a in 1..4 = 2", "2.5", "OPUS204"),
        ("a in [1..4, 8] = 2", "8", None),
        ("a in [1..4, 8] = 2", "4", None),
        ("a in [1..4, 8] = 2", "5", "OPUS204"),
        ("a: topology in [ring, chain] = ring", "chain", None),
        ("a: topology in [ring, chain] = ring", "rotor", "OPUS204"),
        ("a in 3 = 3", "3", "OPUS201"),
        ("a: time in 0 ms..1 s = 5 ms", "1 s", None),
        ("a: time in 0 ms..1 s = 5 ms", "1001 ms", "OPUS204"),
        ("a: time in 1 ms..1 s = 5 ms", "999 us", "OPUS204"),
        ("a: time in 0 GB..1 GB = 5 ms", "5 ms", "OPUS203"),
        ("a: number in 1..2 = 1.5", "1.75", None),
        ("a: number in 1..2 = 1.5", "2.01", "OPUS204"),
    ],
)
def test_the_domain_of_a_parameter_is_exact(parameter: str, value: str, code: str | None) -> None:
    assert codes(requiring("true", f"param {parameter}\n"), {"a": value}) == ([code] if code else [])
