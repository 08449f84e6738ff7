"""Blocks and fields: what is unknown, missing or stated twice; refinement; all mistakes in one run."""

import re

import pytest

from tests.model.programs import CLUSTER, FABRIC, HEAD, JOB, PROGRAM, codes, model_of, right


def messages(text: str) -> list[str]:
    return [d.message for d in model_of(text)[1]]


def test_independent_mistakes_are_all_told_in_one_run() -> None:
    text = (
        PROGRAM.replace("node_count = 4", "node_cuont = 4")
        .replace("200 Gbps", "200")
        .replace("polatis_6000_32x32", "polatis_6000_32x33")
        .replace("pp = 2 }", "pp = 2 }\n  batch       = 3 ms")
    )
    found = list(model_of(text)[1])
    assert [(d.code, d.span.text) for d in found] == [
        ("OPUS207", "node_cuont"),
        ("OPUS202", "200"),
        ("OPUS101", "polatis_6000_32x33"),
        ("OPUS201", "3 ms"),
    ]
    assert [e.replacement for d in found for e in d.fix] == ["node_count", " Gbps", "polatis_6000_32x32"]


def test_a_misspelt_field_or_kind_is_one_mistake_not_two() -> None:
    assert codes(PROGRAM.replace("parallelism", "paralelism")) == ["OPUS207"]
    assert codes(PROGRAM.replace("cluster c", "clutser c")) == ["OPUS106"]
    assert codes(PROGRAM.replace("gpus_per_node", "gpus_per_nod")) == ["OPUS207"]
    assert codes(PROGRAM.replace("optics", "optcis")) == ["OPUS207"]


def test_a_value_of_an_unknown_kind_is_one_mistake_and_keeps_its_name() -> None:
    text = PROGRAM.replace("cluster c", "params n = 2\nvar k = n\ncluster c").replace(
        "node_count = 4", "node_count = 2 * k"
    )
    _, sink = model_of(text)
    assert [(d.code, d.label) for d in sink] == [("OPUS106", "did you mean `param`?"), ("OPUS106", "unknown kind")]
    assert [e.replacement for d in sink for e in d.fix] == ["param"]


def test_a_field_that_has_its_default_cannot_be_read_and_the_message_says_so() -> None:
    (found,) = model_of(PROGRAM + "\nrequire c.domain_count > 1\n")[1]
    assert (found.code, found.label) == ("OPUS101", "a field that is not stated there")
    assert "defaults cannot be read" in found.help


def test_a_variable_out_of_its_place_is_told_its_place_and_the_nearest_name() -> None:
    (found,) = model_of(re.sub(r"(fabric += rail)s", r"\1", PROGRAM))[1]
    assert (found.code, found.span.text) == ("OPUS101", "rail")
    assert found.label == "known in the `switch` of a fabric only"
    assert found.help.endswith("did you mean `rails`?")


@pytest.mark.parametrize(
    ("before", "after", "label", "says"),
    [
        ("gpus_per_node = 2", "gpus_per_node = node_count", "a field, not a name", "`c.node_count`"),
        ("pp = 2 }", "pp = 2 }\n  model = llama3_405b", "`std.models` has it", "`models.llama3_405b`"),
        ("pp = 2 }", "pp = 2 }\n  phase dp { topology = torus }", "`std.topologies` has it", "`topologies.torus`"),
        ("gpus_per_node = 2", "gpus_per_node = nothing_like_it", "not defined here", ""),
    ],
)
def test_where_an_unknown_name_is_found(before: str, after: str, label: str, says: str) -> None:
    assert before in PROGRAM
    (found,) = model_of(PROGRAM.replace(before, after))[1]
    assert (found.code, found.label) == ("OPUS101", label)
    assert says in found.help


def test_a_quantity_in_quotes_is_told_to_lose_them() -> None:
    (found,) = model_of(PROGRAM.replace("200 Gbps", '"200 Gbps"'))[1]
    assert (found.code, found.help) == ("OPUS201", "write it without quotes")


def test_a_missing_field_is_told_where_the_block_is_used() -> None:
    _, sink = model_of(PROGRAM.replace("polatis_6000_32x32", "generic"))
    assert [(d.code, d.span.text) for d in sink] == [("OPUS209", "switches.generic")] * 2


def test_what_is_stated_twice_names_both_places() -> None:
    _, sink = model_of(PROGRAM.replace("gpus_per_node = 2", "gpus_per_node = 2, gpus_per_node = 4"))
    (diagnostic,) = sink
    assert diagnostic.code == "OPUS208"
    assert diagnostic.secondary[0].span.start < diagnostic.span.start


def test_refinement_merges_records_and_replaces_everything_else() -> None:
    base = "switch a { matrix = crossbar, radix = 32, blocked = [1], reconfigure = { settle = 1 ms, relock = 2 ms } }\n"
    fabric = FABRIC.replace("switches.polatis_6000_32x32", "a { blocked = [2, 3], reconfigure = { relock = 5 ms } }")
    switch = right(HEAD + base + CLUSTER + fabric + JOB).fabric.rails[0].switches[0]
    assert (switch.settle, switch.relock) == (10**9, 5 * 10**9)
    assert switch.blocked == (2, 3)
    assert (switch.radix, switch.name) == (32, "a")


def test_refinement_with_an_unknown_field_is_refused() -> None:
    text = PROGRAM.replace("switches.polatis_6000_32x32", "switches.polatis_6000_32x32 { radx = 5 }")
    assert codes(text) == ["OPUS207"]


def test_a_rail_changes_the_switch_of_its_fabric() -> None:
    rail = ' rail[1] = { switch = { blocked = [3], address = "10.0.0.{20 + rail}" } } }'
    rails = right(PROGRAM.replace("32x32 }", "32x32\n" + rail)).fabric.rails
    assert [r.switches[0].radix for r in rails] == [32, 32]
    assert [r.switches[0].blocked for r in rails] == [(), (3,)]
    assert [r.switches[0].address for r in rails] == [None, "10.0.0.21"]


def test_a_rail_replaces_the_switch_of_its_fabric() -> None:
    rail = " rail[1] = { switch = switches.generic { matrix = crossbar, radix = 64 } } }"
    rails = right(PROGRAM.replace("32x32 }", "32x32\n" + rail)).fabric.rails
    assert [r.switches[0].radix for r in rails] == [32, 64]


def test_rail_plane_and_block_are_bound_in_a_switch_of_a_fabric_only() -> None:
    place = 'switches.polatis_6000_32x32 { address = "{rail}.{plane}.{block}" }'
    fabric = FABRIC.replace("switches.polatis_6000_32x32", place).replace(
        "switch =", "planes = 2, blocks = 2, switch ="
    )
    rails = right(HEAD + CLUSTER + fabric + JOB).fabric.rails
    assert [s.address for r in rails for s in r.switches] == [
        f"{rail}.{plane}.{block}" for rail in range(2) for plane in range(2) for block in range(2)
    ]
    assert codes(HEAD + f"let s = {place}\n" + CLUSTER + FABRIC + JOB) == []  # fields of `s` are not read
    assert codes(HEAD + f"let s = {place}\n" + CLUSTER + FABRIC.replace("switches.polatis_6000_32x32", "s") + JOB) == [
        "OPUS101"
    ]


def test_a_word_is_found_by_the_type_of_its_field_first() -> None:
    model = right(
        HEAD + "let duplex = 7\nlet ring = 8\nlet tp = 2\n" + CLUSTER + FABRIC
        + JOB.replace("tp = 2", "tp = tp").replace("\n}", "\n  phase dp { topology = ring }\n}")
    )  # fmt: skip
    assert model.job.parallelism.tp == 2
    assert model.job.phases[0].topology.name == "ring"


def test_sizes_beyond_any_plan_are_refused_at_once() -> None:
    for change in (
        ("node_count = 4", "node_count = 2_000_000_000"),
        ("gpus_per_node = 2", "gpus_per_node = 1_000_000"),
        ("ports = 2", "ports = 2_000_000_000"),
        ("pp = 2", "pp = 1_000_000"),
    ):
        found = codes(PROGRAM.replace(*change))
        assert found
        assert set(found) <= {"OPUS120", "OPUS204"}


def test_a_program_refused_for_later_things_still_hears_of_its_mistakes() -> None:
    fault = "fault position 17 of rails.rail[1]\n"
    assert codes(PROGRAM + fault) == ["OPUS110"]
    assert codes(PROGRAM + fault.replace("rail[1]", "rail[7]")) == ["OPUS204"]
    assert codes(PROGRAM + JOB.replace("job j", "job k")) == ["OPUS110"]


def test_a_wrong_cluster_does_not_hide_what_is_wrong_with_the_switch() -> None:
    text = """\
opus 1

use std.switches

cluster c {
  node_count    = 6
  gpus_per_node = 1
  nic           = { ports = 2, rate = 200 Gbps }
}

fabric f {
  cluster = c
  rail_by = local_rank
  switch  = switches.generic { radix = 32 }
}

job j {
  fabric = f
}
"""
    _, sink = model_of(text)
    said = [d.message for d in sink]
    assert said == [
        "a NIC on the rails states its `optics`",
        "switch `generic` does not state `matrix`",
        "job `j` does not state `parallelism`",
    ]
