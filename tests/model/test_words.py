"""Words of fields: what may be put to them, and what is said where they are out of place."""

import pytest

from tests.model.programs import CLUSTER, FABRIC, HEAD, JOB, PROGRAM, codes, model_of, right


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("duplex", "duplex { a = 1 }"),
        ("local_rank", 'local_rank "x"'),
        ("pp = 2 }", "pp = 2 }\n  pipeline = gpipe { chunks = 2 }"),
        ("pp = 2 }", "pp = 2 }\n  pipeline = interleaved { chunk = 2 }"),
        ("pp = 2 }", "pp = 2 }\n  phase dp { topology = ring { dims = [2] } }"),
        ("pp = 2 }", "pp = 2 }\n  phase dp { topology = pairs { of = [(0, 1)], to = 3 } }"),
        ("pp = 2 }", "pp = 2 }\n  phase dp { topology = ring(3) }"),
        ("32x32 }", '32x32, cabling = share "x" }'),
        ("32x32 }", "32x32, cabling = explicit { of = [], also = 3 } }"),
        ("32x32 }", '32x32, cabling = csv "a.csv" { column = { node = "x" } } }'),
    ],
)
def test_a_word_takes_only_its_own_arguments(old: str, new: str) -> None:
    assert set(codes(PROGRAM.replace(old, new))) == {"OPUS207"}


def test_a_word_may_be_changed_like_a_block() -> None:
    phase = "pp = 2 }\n  phase dp { topology = (pairs { of = [(0, 5)] }) { of = [(0, 1)] } }"
    (dp, _) = right(PROGRAM.replace("pp = 2 }", phase)).job.phases
    assert dp.topology.edges is not None
    assert [(edge.tail, edge.head) for edge in dp.topology.edges(2)] == [(0, 1)]


def test_a_word_is_chosen_by_an_expression_or_a_parameter() -> None:
    text = PROGRAM.replace("optics = duplex", "optics = if fast then bidi else duplex")
    text = text.replace("cluster c", "param fast: truth = false\nparam shape: topology = ring\ncluster c")
    text = text.replace("pp = 2 }", "pp = 2 }\n  phase dp { topology = shape }")
    model = right(text, {"fast": "true", "shape": "rotor"})
    assert model.cluster.rail_nic.optics == "bidi"
    assert model.job.phases[0].topology.name == "rotor"


def test_a_word_outside_its_field_is_explained() -> None:
    _, sink = model_of(HEAD + "let shape = ring\n" + CLUSTER + FABRIC + JOB)
    (diagnostic,) = sink
    assert diagnostic.code == "OPUS101"
    assert "`topology`" in diagnostic.label
    assert "param NAME: topology = ring" in diagnostic.help


@pytest.mark.parametrize("name", ["rail", "plane", "block", "position", "size", "members"])
def test_a_variable_outside_its_place_is_explained(name: str) -> None:
    _, sink = model_of(HEAD + f"let x = {name}\n" + CLUSTER + FABRIC + JOB)
    (diagnostic,) = sink
    assert diagnostic.code == "OPUS101"
    assert diagnostic.label.startswith("known in the ")


def test_a_function_cannot_have_two_parameters_of_one_name() -> None:
    assert codes(HEAD + "let f(x, x) = x\nlet a = f(1, 2)\n" + CLUSTER + FABRIC + JOB) == ["OPUS102"]


@pytest.mark.parametrize(
    ("declared", "code"),
    [
        ("topology t(a, a) { edges = [] }", "OPUS102"),
        ("topology ring { edges = [] }", "OPUS102"),
        ("switch s(a) { matrix = any, radix = 4 }", "OPUS207"),
    ],
)
def test_the_head_of_a_declaration(declared: str, code: str) -> None:
    assert codes(HEAD + declared + "\n" + CLUSTER + FABRIC + JOB) == [code]


def test_a_wrong_job_is_one_mistake() -> None:
    assert codes(HEAD + CLUSTER + FABRIC + "job j = switches.generic\n") == ["OPUS201"]
    assert codes(HEAD + CLUSTER + FABRIC + "job j = nothing\n") == ["OPUS101"]
    assert codes(HEAD + CLUSTER + FABRIC) == ["OPUS109"]
