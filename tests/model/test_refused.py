"""What this version does not compile is refused once; what it would compile wrongly is refused as well."""

import pytest

from tests.model.programs import CLUSTER, FABRIC, HEAD, JOB, PROGRAM, codes, model_of, right


@pytest.mark.parametrize(
    "text",
    [
        "opus 1\nuse std.tpu\npod v4 = tpu.v4 { cube_count = 64 }\nslice s { pod = v4 }\nslice t { pod = v4 }\n",
        PROGRAM + "fault position 3 of rails.rail[0]\nfault node 1 of c\n",
        PROGRAM + "job k { fabric = rails, parallelism = { dp = 2 } }\njob l { fabric = rails, parallelism = {} }\n",
        PROGRAM.replace("node_count = 4", "node_count = 4, spares = { nodes = [3] }"),
    ],
)
def test_later_things_are_refused_once(text: str) -> None:
    assert codes(text) == ["OPUS110"]


def test_a_schedule_names_phases() -> None:
    model = right(PROGRAM.replace("pp = 2 }", "pp = 2 }\n  schedule = [pp, dp] * 2 + [pp]"))
    assert model.job.schedule == ("pp", "dp", "pp", "dp", "pp")
    for wrong, code in (("[pp, ddp]", "OPUS101"), ("pp", "OPUS201"), ("[pp, 3]", "OPUS418"), ("[cp]", "OPUS101")):
        assert codes(PROGRAM.replace("pp = 2 }", f"pp = 2 }}\n  schedule = {wrong}")) == [code]


def test_pack_names_phases_and_gives_them_ports() -> None:
    model = right(PROGRAM.replace("pp = 2 }", "pp = 2 }\n  pack = [dp { ports = 1 }, pp]"))
    assert [(packed.phase, packed.ports) for packed in model.job.pack] == [("dp", 1), ("pp", None)]
    for wrong, code in (
        ("[pp, ddp]", "OPUS101"),
        ("pp", "OPUS201"),
        ("[pp, 3]", "OPUS418"),
        ("[pp, pp]", "OPUS208"),
        ("[pp { port = 1 }]", "OPUS207"),
        ("[pp { ports = 3 }]", "OPUS204"),
        ("[pp { ports = 0 }]", "OPUS204"),
        ("[pp { ports = dp }]", "OPUS101"),
    ):
        assert codes(PROGRAM.replace("pp = 2 }", f"pp = 2 }}\n  pack = {wrong}")) == [code], wrong


def cabled(how: str, optics: str = "duplex", switch: str = "{}") -> str:
    cluster = CLUSTER.replace("gpus_per_node = 2", "gpus_per_node = 1").replace("duplex", optics)
    fabric = FABRIC.replace("32x32 }", f"32x32 {switch}\n cabling = {how} }}")
    return HEAD + cluster + fabric + "job j { fabric = rails, parallelism = { dp = 4 } }\n"


@pytest.mark.parametrize(
    ("files", "places"),
    [
        # Two NIC ports at the near side of one jack.
        (("node,gpu,port,far\n0,0,0,P\n0,0,1,P\n", "near,position\nP,1\n"), ("a.csv:3:1", "a.csv:2:1")),
        # Two cables at the far side of one jack.
        (("node,gpu,port,far\n0,0,0,P\n", "near,position\nP,1\nP,2\n"), ("b.csv:3:1", "b.csv:2:1")),
    ],
)
def test_a_jack_has_one_cable_on_each_side(files: tuple[str, str], places: tuple[str, str]) -> None:
    _, sink = model_of(cabled('csv ["a.csv", "b.csv"]'), files={"a.csv": files[0], "b.csv": files[1]})
    assert [(d.code, d.span.place, d.secondary[0].span.place) for d in sink] == [("OPUS303", *places)]


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ("node,gpu,port,port,position\n0,0,0,0,1\n", "a.csv:1:1"),
        ("node,gpu,port,position\n0,0,0,1\n0,0,1,\n", "a.csv:3:1"),
        # A note of two lines stands before the wrong row, and in it.
        ('node,gpu,port,position,note\n0,0,0,1,"a\nb"\n0,0,1,x,"c\nd"\n', "a.csv:4:1"),
    ],
)
def test_tables_that_leave_doubt(table: str, place: str) -> None:
    _, sink = model_of(cabled('csv "a.csv"'), files={"a.csv": table})
    assert [(d.code, d.span.place) for d in sink] == [("OPUS309", place)]


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("explicit { of = [(0, 0, 0, 7, 7)] }", "OPUS303"),
        ("share { rail 0 = [1, 2, 2] }", "OPUS303"),
        ("share { rail 0 = 30..37 }", "OPUS204"),
        ("share { rail 0 = 0..7 }", "OPUS204"),
        ('csv "a.csv" { columns = 3 }', "OPUS201"),
        ('csv "a.csv" { columns = { node = 3 } }', "OPUS201"),
        ('csv("a.csv", "b.csv")', "OPUS205"),
    ],
)
def test_cabling_that_cannot_be(how: str, code: str) -> None:
    text = cabled(how, switch="{ matrix = any }")
    assert codes(text, files={"a.csv": "node,gpu,port,position\n0,0,0,1\n"}) == [code]


def test_an_edge_rule_is_told_once_though_many_groups_use_it() -> None:
    """Groups of one size share their edges; the planner and the proofs ask again."""
    from opusc import check

    body = "phase dp { topology = edges { of = [(0, 1), (0, 9), (1, 1), (0, 1), 5] } }"
    text = HEAD + CLUSTER + FABRIC + f"job j {{ fabric = rails, parallelism = {{ dp = 4, cp = 2 }}, {body} }}\n"
    assert [(d.code, d.span.text) for d in check(text)] == [
        ("OPUS212", "(0, 9)"),
        ("OPUS212", "(1, 1)"),
        ("OPUS212", "(0, 1)"),
        ("OPUS212", "5"),
    ]


def test_a_wrong_loop_of_edges_is_one_mistake_and_what_it_cuts_off_is_none() -> None:
    from opusc import check

    for edges in ("[(i, i) for i in members]", "[(0, 9)]"):
        body = f"phase dp {{ topology = edges {{ of = {edges} }}, traffic = all_to_all }}"
        text = HEAD + CLUSTER + FABRIC + f"job j {{ fabric = rails, parallelism = {{ dp = 8 }}, {body} }}\n"
        assert [d.code for d in check(text)] == ["OPUS212"]


@pytest.mark.parametrize(
    ("topology", "expected"),
    [
        ("pairs", ["OPUS410"]),
        ("pairs, traffic = point_to_point", []),
        ("edges { of = [(0, 1), (2, 3)] }", ["OPUS410"]),
        ("edges { of = [] }", ["OPUS410"]),
        ("edges { of = [(0, 1), (1, 2), (2, 3)] }", []),
        ("topologies.star", []),
        ("topologies.torus { dims = [-2, -2] }", ["OPUS213"]),
        ("topologies.circulant { strides = [] }", ["OPUS213"]),
        ("topologies.circulant { strides = [2] }", ["OPUS410"]),
        ("topologies.bipartite { left = 0 }", ["OPUS213"]),
    ],
)
def test_a_reduction_reaches_every_domain(topology: str, expected: list[str]) -> None:
    from opusc import check

    job = f"job j {{ fabric = rails, parallelism = {{ tp = 2, dp = 4 }}, phase dp {{ topology = {topology} }} }}\n"
    assert [d.code for d in check(HEAD + "use std.topologies\n" + CLUSTER + FABRIC + job)] == expected


def test_one_way_links_must_lead_back() -> None:
    from opusc import check

    cluster = CLUSTER.replace("duplex", "duplex, peers = independent")
    for edges, expected in (("[(0, 1), (1, 2), (2, 3)]", ["OPUS410"]), ("[(0, 1), (1, 2), (2, 3), (3, 0)]", [])):
        phase = f"phase dp {{ topology = edges {{ of = {edges} }} }}"
        job = f"job j {{ fabric = rails, parallelism = {{ tp = 2, dp = 4 }}, {phase} }}\n"
        assert [d.code for d in check(HEAD + cluster + FABRIC + job)] == expected


def test_nodes_may_be_parts_of_domains() -> None:
    """A job on one node of each domain of two: its domains have only the GPUs that it uses."""
    from opusc import check, compile

    cluster = "cluster c { domain_count = 3, domain = { node_count = 2, gpus_per_node = 2 }, "
    cluster += "nic = { ports = 2, rate = 200 Gbps, optics = duplex } }\n"
    fabric = FABRIC.replace("local_rank", "domain_rank")
    text = HEAD + cluster + fabric + "job j { fabric = rails, nodes = NODES, parallelism = { tp = 2, dp = 3 } }\n"
    assert list(check(text.replace("NODES", "[0, 2, 4]"))) == []
    plan = compile(text.replace("NODES", "[1, 3, 5]"))
    assert {plan.switches[s].rails[0] for s in plan.circuits.switch.tolist()} == {2, 3}
    assert [d.code for d in check(text.replace("NODES", "[0, 2, 5]"))] == ["OPUS405"]


def test_a_program_without_mistakes_has_no_messages() -> None:
    assert codes(HEAD + CLUSTER + FABRIC + JOB) == []
