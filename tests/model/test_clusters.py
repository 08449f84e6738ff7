"""Clusters and fabrics: nodes, domains, NICs, rails, planes, blocks, shared chassis."""

import pytest

from opusc.model.entities import Cluster
from tests.model.programs import CLUSTER, FABRIC, HEAD, JOB, codes, model_of, right

NIC = "nic = { ports = 2, rate = 200 Gbps, optics = duplex }"
TINY = "job j { fabric = rails, parallelism = { dp = 2 } }\n"


def built(fields: str) -> str:
    return HEAD + f"cluster c {{ {fields}, {NIC} }}\n" + FABRIC.replace("local_rank", "domain_rank") + TINY


@pytest.mark.parametrize(
    ("fields", "sizes"),
    [
        ("node_count = 4, gpus_per_node = 8", (4, 8, 8, 8)),
        ("node_count = 4, gpus_per_node = 8, domain = { gpus = 2 }", (4, 8, 2, 2)),
        ("node_count = 4, gpus_per_node = 8, domain = { gpus = 4, use = 3 }", (4, 8, 4, 3)),
        ("node_count = 4, gpus_per_node = 2, domain = { node_count = 2 }", (4, 2, 4, 4)),
        ("domain_count = 3, domain = { node_count = 2, gpus_per_node = 4, use = 7 }", (6, 4, 8, 7)),
        ("domain_count = 6, gpus_per_node = 8, domain = { gpus = 4 }", (3, 8, 4, 4)),
        ("domain_count = 2, node_count = 4, gpus_per_node = 2, domain = { node_count = 2 }", (4, 2, 4, 4)),
        ("node_count = 4, gpus_per_node = 2, domain = { gpus_per_node = 2 }", (4, 2, 2, 2)),
    ],
)
def test_domains_are_parts_of_nodes_or_several(fields: str, sizes: tuple[int, int, int, int]) -> None:
    c: Cluster = right(built(fields)).cluster
    assert (c.node_count, c.gpus_per_node, c.gpus_per_domain, c.use) == sizes
    assert c.domain_count * c.gpus_per_domain == c.gpu_count


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("node_count = 4, gpus_per_node = 8, domain = { gpus = 3 }", "OPUS306"),
        ("node_count = 4, gpus_per_node = 8, domain = { gpus = 16 }", "OPUS306"),
        ("node_count = 4, gpus_per_node = 8, domain = { gpus = 4, node_count = 2 }", "OPUS306"),
        ("node_count = 5, gpus_per_node = 2, domain = { node_count = 2 }", "OPUS306"),
        ("node_count = 4, domain_count = 3, gpus_per_node = 2", "OPUS306"),
        ("domain_count = 2, gpus_per_node = 2, domain = { gpus_per_node = 4 }", "OPUS306"),
        ("domain_count = 3, gpus_per_node = 4, domain = { gpus = 2 }", "OPUS306"),
        ("node_count = 3, gpus_per_node = 4, domain = { use = 5 }", "OPUS204"),
        ("gpus_per_node = 4", "OPUS209"),
        ("node_count = 4", "OPUS209"),
        ("node_count = 0, gpus_per_node = 2", "OPUS204"),
        ("node_count = 4, gpus_per_node = 2, domain = 3", "OPUS201"),
    ],
)
def test_sizes_that_contradict(fields: str, code: str) -> None:
    assert codes(built(fields)) == [code]


@pytest.mark.parametrize(
    ("nics", "expected"),
    [
        ("nic a = { ports = 2, rate = 1 Gbps, optics = duplex }, nic b = { ports = 2, rate = 1 Gbps, rail = none }",
         []),
        ("nic a = { ports = 2, rate = 1 Gbps, optics = duplex }, nic b = { ports = 2, rate = 1 Gbps, optics = duplex }",
         ["OPUS305"]),
        ("nic a = { ports = 2, rate = 1 Gbps, rail = none }", ["OPUS305"]),
        ("nic = { ports = 2, rate = 1 Gbps, optics = duplex, per = node }", ["OPUS305"]),
        ("nic = { ports = 2, rate = 1 Gbps, optics = bidi, peers = independent }", ["OPUS305"]),
        ("nic = { ports = 2, rate = 1 Gbps }", ["OPUS209"]),
        ("nic = { ports = 2, rate = 200 GB/s, optics = duplex }", ["OPUS211"]),
        ("nic = { ports = \"2\", rate = 3 s, optics = \"duplex\", perrs = paired, transceivers = 0 }",
         ["OPUS201", "OPUS201", "OPUS210", "OPUS207", "OPUS204"]),
    ],
)  # fmt: skip
def test_nics(nics: str, expected: list[str]) -> None:
    cluster = f"cluster c {{ node_count = 4, gpus_per_node = 2, {nics} }}\n"
    assert codes(HEAD + cluster + FABRIC + JOB) == expected


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("planes = 3", "OPUS307"),
        ("planes = 4", "OPUS307"),
        ("blocks = 3", "OPUS307"),
        ("rail[2] = { switch = switches.polatis_6000n_192 }", "OPUS204"),
        ("rail[0] = { switch = switches.polatis_6000n_192 }, rail[0..1] = {}", "OPUS208"),
        ("rail[1] = { swich = 3 }", "OPUS207"),
        ("rail[1] = 3", "OPUS201"),
        ("rail = {}", "OPUS207"),
        ("rail x = {}", "OPUS207"),
        ("rail[1] = { switch = { matrix = any } }", "OPUS308"),
        ("cabling = share { rail[0..1] = 1..16 }, blocks = 2", "OPUS308"),
        ("cabling = share { rail[0..1] = 1..16 }, rail[1] = { switch = { radix = 64 } }", "OPUS308"),
        ("cabling = share { rail[0..1] = 1..16 }, rail[1] = { switch = { blocked = [3] } }", "OPUS308"),
        ("cabling = share { rail[0..1] = 1..40 }", "OPUS204"),
        ("cabling = share { rail[0..1] = 0..15 }", "OPUS204"),
    ],
)
def test_fabrics_that_contradict(more: str, code: str) -> None:
    fabric = FABRIC.replace("switch =", f"{more}\n switch =")
    assert set(codes(HEAD + CLUSTER + fabric + JOB)) == {code}


def test_a_shared_chassis_may_differ_from_plane_to_plane() -> None:
    share = (
        'planes = 2, cabling = share { rail[0..1] = 1..16 }, switch = switches.polatis_6000_32x32 { name = "s{plane}" }'
    )
    fabric = FABRIC.replace("switch = switches.polatis_6000_32x32", share)
    rails = right(HEAD + CLUSTER + fabric + JOB).fabric.rails
    assert [[s.name for s in rail.switches] for rail in rails] == [["s0", "s1"]] * 2


def test_every_entity_knows_where_its_fields_stand() -> None:
    """Fields of the standard library too: what is wrong with them must have a place to be shown at."""
    model = right(HEAD + CLUSTER + FABRIC + JOB)
    switch = model.fabric.rails[0].switches[0]
    assert switch.at("radix").text == "32"
    assert switch.at("radix").source.name == "std.switches"
    assert model.cluster.at("node_count").text == "4"
    assert model.cluster.at("domain_count") == model.cluster.span


def test_a_wrong_value_in_a_refinement_is_told_where_the_author_wrote_it() -> None:
    fabric = FABRIC.replace("32x32 }", '32x32 { reconfigure = { settle = 3 }, radix = "a" } }')
    _, sink = model_of(HEAD + CLUSTER + fabric + JOB)
    assert [(d.code, d.span.text) for d in sink] == [("OPUS202", "3"), ("OPUS201", '"a"')]
    assert {d.span.source.name for d in sink} == {"test.opus"}


def test_wrong_blocked_positions_are_one_mistake() -> None:
    fabric = FABRIC.replace("32x32 }", "32x32 { blocked = 30..500_000 } }")
    _, sink = model_of(HEAD + CLUSTER + fabric + JOB)
    assert [(d.code, d.span.text) for d in sink] == [("OPUS204", "30..500_000")]
