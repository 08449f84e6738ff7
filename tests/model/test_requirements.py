"""A `require` counts wherever it stands, is said once, and shows the values behind it."""

import pytest

from tests.model.programs import CLUSTER, FABRIC, HEAD, JOB, PROGRAM, codes, model_of, requiring, right

FALSE = "require 1 == 2"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("node_count = 4", f"node_count = 4, {FALSE}"),
        ("optics = duplex", f"optics = duplex, {FALSE}"),
        ("switches.polatis_6000_32x32 }", f"switches.polatis_6000_32x32 {{ {FALSE} }} }}"),
        ("rail_by", f"{FALSE}\n rail_by"),
        ("dp = 2", f"dp = 2, {FALSE}"),
        ("pp = 2 }", f"pp = 2 }}\n  phase dp {{ {FALSE} }}"),
        ("pp = 2 }", f"pp = 2 }}\n  phase dp {{ topology = pairs {{ of = [(0, 1)]\n {FALSE} }} }}"),
        ("job j", f"{FALSE}\njob j"),
        ("job j", f"gpu unused {{ {FALSE} }}\njob j"),
    ],
)
def test_it_may_stand_in_any_block(old: str, new: str) -> None:
    assert codes(PROGRAM.replace(old, new)) == ["OPUS421"]
    right(PROGRAM.replace(old, new.replace("==", "!=")))


def test_those_of_used_files_and_of_refined_blocks_count() -> None:
    files = {"parts.opus": f"opus 1\nlet limit = 2\nswitch own {{ matrix = crossbar, radix = 8, {FALSE} }}\n"}
    use = 'use "parts.opus"\n'
    switch = FABRIC.replace("switches.polatis_6000_32x32", "parts.own { radix = 16 }")
    assert codes(HEAD + use + CLUSTER + switch + JOB, files=files) == ["OPUS421"]
    top = {"parts.opus": "opus 1\nlet limit = 2\nrequire limit > 2\n"}
    _, sink = model_of(HEAD + use + CLUSTER + FABRIC + JOB, files=top)
    assert [(d.code, d.span.place, d.notes) for d in sink] == [("OPUS421", "parts.opus:3:9", ("limit = 2",))]


def test_one_in_a_switch_sees_the_rail_and_fails_once() -> None:
    fabric = FABRIC.replace("switches.polatis_6000_32x32", "switches.polatis_6000_32x32 { require rail < 1 }")
    _, sink = model_of(HEAD + CLUSTER + fabric + JOB)
    assert [(d.code, d.notes) for d in sink] == [("OPUS421", ("rail = 1",))]
    right(HEAD + CLUSTER + fabric.replace("< 1", "< 2") + JOB)


def test_it_sees_the_lets_of_its_block_but_not_its_fields() -> None:
    right(PROGRAM.replace("dp = 2", "dp = 2, let half = 1, require half == 1"))
    assert codes(PROGRAM.replace("dp = 2", "dp = 2, require dp == 2")) == ["OPUS101"]


def test_a_failing_one_shows_names_and_fields_and_the_authors_words() -> None:
    _, sink = model_of(requiring('c.node_count == limit + 1 else "max {limit}"', "let limit = 5\nlet f(x) = x\n"))
    (diagnostic,) = sink
    assert diagnostic.notes == ("c.node_count = 4", "limit = 5")
    assert diagnostic.message.endswith(": max 5")
    _, sink = model_of(requiring("len([i for i in 0..3 if f(i) > 1]) == 0", "let f(x) = x\n"))
    assert [d.notes for d in sink] == [()]


def test_the_words_must_be_a_text_even_when_it_holds() -> None:
    assert codes(requiring("1 == 1 else 3")) == ["OPUS201"]
    assert codes(requiring("1 == 1 else missing")) == ["OPUS101"]


def test_results_of_the_time_model_wait() -> None:
    model, sink = model_of(requiring("not (overhead > 6 %) and power < 3 kW"))
    assert not list(sink)
    assert model is not None
    (kept,) = model.requirements
    assert (kept.checked, kept.needs) == (False, ("overhead", "power"))


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("overhead < 6", "OPUS202"),
        ("power < 3", "OPUS202"),
        ("overhead < 3 s", "OPUS203"),
        ("reconfigurations < 3 s", "OPUS203"),
        ("overhead", "OPUS203"),
        ("overheads < 3 %", "OPUS101"),
        ("margin < 3", "OPUS202"),
        ("margin(dp) > 3 dBm", "OPUS203"),
        ("bandwidth(dp.shard) > 3 GB", "OPUS203"),
        ("bandwidth(1 + 2) > 3 Gbps", "OPUS203"),
        ("bandwidth(dp, pp) > 3 Gbps", "OPUS203"),
        ("not (margin() > 3 dB)", "OPUS203"),
        ("cost(dp) > 3 USD", "OPUS101"),
    ],
)
def test_their_limits_have_units(condition: str, code: str) -> None:
    assert codes(requiring(condition)) == [code]


def test_a_name_of_the_author_is_no_result() -> None:
    right(requiring("overhead == 3 and power(2, 3) == 8 and (own { power = 3 W }).power == 3 W",
                    "let overhead = 3\nlet own = { power = 1 W }\n"))  # fmt: skip


def test_requirements_that_hold_are_in_the_model_once_and_in_order() -> None:
    model = right(PROGRAM.replace("dp = 2", "dp = 2, require 2 > 1") + "require 1 == 1\n")
    assert [(r.text, r.checked) for r in model.requirements] == [("2 > 1", True), ("1 == 1", True)]
