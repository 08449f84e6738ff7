"""Jobs: degrees by dialect, rank order, stages, and the phases that follow from them."""

import pytest

from opusc.model.entities import Dialect, PhaseSpec, Traffic
from tests.model.programs import HEAD, codes, model_of, right


def job(fields: str, gpus: int = 4, nodes: int = 8, uses: str = "use std.models\nuse std.topologies\n") -> str:
    return (
        HEAD + uses
        + f"cluster c {{ node_count = {nodes}, gpus_per_node = {gpus}, "
        "nic = { ports = 2, rate = 200 Gbps, optics = duplex } }\n"
        "fabric rails { cluster = c, rail_by = local_rank, "
        "switch = switches.generic { matrix = crossbar, radix = 64 } }\n"
        f"job j {{\n  fabric = rails\n  {fields}\n}}\n"
    )  # fmt: skip


def phases(fields: str) -> dict[str, tuple[tuple[str, ...], str]]:
    return {p.name: (p.axes, p.topology.name) for p in right(job(fields)).job.phases}


def phase(fields: str, name: str) -> PhaseSpec:
    return next(p for p in right(job(fields)).job.phases if p.name == name)


# --- default phases ------------------------------------------------------------------------------

MEGATRON = "dialect = megatron\n  parallelism = { tp = 4, dp = 8, ep = 8, expert_tp = 1 }"
SPLIT = "dialect = torchtitan\n  parallelism = { tp = 4, dp = { replicate = 2, shard = 4 } }"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("parallelism = {}", {}),
        ("parallelism = { tp = 4 }", {}),
        ("parallelism = { tp = 4, dp = 8 }", {"dp": (("dp", "cp"), "ring")}),
        (
            "parallelism = { tp = 4, cp = 2, dp = 2, pp = 2 }",
            {"dp": (("dp", "cp"), "ring"), "cp": (("cp",), "ring"), "pp": (("pp",), "chain")},
        ),
        ("parallelism = { cp = 8 }", {"dp": (("dp", "cp"), "ring"), "cp": (("cp",), "ring")}),
        ("pipeline = interleaved { chunks = 2 }\n  parallelism = { tp = 4, pp = 8 }", {"pp": (("pp",), "ring")}),
        ("pipeline = interleaved { chunks = 1 }\n  parallelism = { tp = 4, pp = 8 }", {"pp": (("pp",), "chain")}),
        (MEGATRON, {"dp": (("dp", "cp"), "ring"), "ep": (("ep",), "rotor"), "edp": (("edp",), "ring")}),
        (
            "dialect = torchtitan\n  parallelism = { tp = 4, dp = 8, ep = 32 }",
            {"dp": (("dp", "cp"), "ring"), "ep": (("ep",), "rotor")},
        ),
        (SPLIT, {"dp.shard": (("dp.shard", "cp"), "ring"), "dp.replicate": (("dp.replicate",), "ring")}),
    ],
)
def test_default_phases(fields: str, expected: dict[str, tuple[tuple[str, ...], str]]) -> None:
    found = phases(fields)
    assert found == expected
    assert list(found) == list(expected)


def test_tied_embeddings_join_the_first_and_the_last_stage() -> None:
    """GPT-3 ties them. With two stages the pipeline's own link is the one."""
    spec = phase("model = models.gpt3_175b\n  parallelism = { tp = 4, dp = 2, pp = 4 }", "embedding")
    assert spec.axes == ("pp",)
    assert spec.traffic is Traffic.POINT_TO_POINT
    assert spec.topology.edges is not None
    assert [(edge.tail, edge.head) for edge in spec.topology.edges(4)] == [(0, 3)]
    assert "embedding" not in phases("model = models.gpt3_175b\n  parallelism = { tp = 4, dp = 4, pp = 2 }")
    assert "embedding" not in phases("model = models.llama3_8b\n  parallelism = { tp = 4, dp = 2, pp = 4 }")


def test_a_stated_phase_changes_a_default_or_adds_one() -> None:
    found = phases(
        "parallelism = { tp = 4, dp = 8 }\n  phase dp { topology = chain }\n  phase w over tp { topology = mesh }"
    )
    assert found == {"dp": (("dp", "cp"), "chain"), "w": (("tp",), "mesh")}
    assert phase("parallelism = { tp = 4, dp = 8 }\n  phase dp { hold = 50 ms }", "dp").hold == 50 * 10**9


def test_dp_stands_for_its_parts_where_it_is_split() -> None:
    assert phases(SPLIT + "\n  phase w over dp { topology = ring }")["w"] == (("dp.shard", "dp.replicate"), "ring")


@pytest.mark.parametrize(
    "stated",
    [
        "phase w over cp { topology = ring }",  # of degree 1
        "phase w over dpp { topology = ring }",
        "phase w over dp * dp { topology = ring }",
        "phase cp { topology = ring }",
        "phase embedding { topology = ring }",
        "phase edp { topology = ring }",
    ],
)
def test_a_phase_that_nothing_runs_over_is_refused(stated: str) -> None:
    assert codes(job("parallelism = { tp = 4, dp = 8 }\n  " + stated)) == ["OPUS418"]


@pytest.mark.parametrize("stated", ["phase dp { topology = ring }", "phase w over dp * dp.shard { topology = ring }"])
def test_a_split_dp_is_named_by_its_parts(stated: str) -> None:
    assert codes(job(f"{SPLIT}\n  {stated}")) == ["OPUS418"]


def test_axes_of_dense_and_expert_layers_do_not_mix() -> None:
    assert codes(job(MEGATRON + "\n  phase w over ep * dp { topology = ring }")) == ["OPUS418"]
    right(job(MEGATRON + "\n  phase w over ep * edp { topology = ring }"))


# --- degrees and order ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("parallelism = { dp = 8, ep = 8 }", "OPUS412"),
        ("parallelism = { dp = { replicate = 2, shard = 4 } }", "OPUS412"),
        ("dialect = megatron\n  parallelism = { dp = 8, ep = 8 }", "OPUS413"),
        ("dialect = megatron\n  parallelism = { dp = 8, ep = 3, expert_tp = 1 }", "OPUS414"),
        ("dialect = torchtitan\n  parallelism = { dp = 8, ep = 8, expert_tp = 1 }", "OPUS413"),
        ("dialect = torchtitan\n  parallelism = { tp = 4, dp = 8, ep = 5 }", "OPUS414"),
        ("dialect = torchtitan\n  parallelism = { dp = { replicate = 8, shard = 4 }, ep = 8 }", "OPUS414"),
        ("dialect = torchtitan\n  order = [tp, pp, dp]\n  parallelism = { tp = 2, pp = 2, dp = 2 }", "OPUS416"),
        ("order = [tp, tp, dp]\n  parallelism = { tp = 4, dp = 8 }", "OPUS416"),
        ('order = "tp-cp-ep-dp-pp"\n  parallelism = { tp = 4, dp = 8 }', "OPUS210"),
        ("parallelism = { tp = 4, dp = 9 }", "OPUS415"),
        ("nodes = 0..3\n  parallelism = { tp = 4, dp = 5 }", "OPUS415"),
        ("nodes = [1, 2, 1]\n  parallelism = { tp = 4 }", "OPUS208"),
        ("nodes = 0..8\n  parallelism = { tp = 4 }", "OPUS204"),
        ("parallelism = { tp = 0 }", "OPUS204"),
        ("parallelism = { tp = 1.5 }", "OPUS201"),
    ],
)
def test_degrees_that_do_not_fit(fields: str, code: str) -> None:
    assert codes(job(fields)) == [code]


def test_pipelines_of_dense_and_expert_layers_must_coincide() -> None:
    """With pp between tp and the rest, pp has stride tp for dense layers and expert_tp for experts."""
    degrees = "parallelism = { tp = 4, pp = 2, dp = 4, ep = 4, expert_tp = "
    text = f"dialect = megatron\n  order = [tp, pp, cp, ep, dp]\n  {degrees}"
    assert codes(job(text + "1 }")) == ["OPUS416"]
    right(job(text + "4 }"))


def test_the_missing_axis_is_put_where_the_default_order_has_it() -> None:
    text = job(
        "dialect = megatron\n  order = [tp, cp, dp, pp]\n  parallelism = { tp = 4, dp = 8, ep = 8, expert_tp = 1 }"
    )
    (diagnostic,) = model_of(text)[1]
    (edit,) = diagnostic.fix
    assert edit.replacement == "[tp, cp, ep, dp, pp]"
    fixed = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
    assert right(fixed).job.order == ("tp", "cp", "ep", "dp", "pp")


@pytest.mark.parametrize(
    ("fields", "order"),
    [
        ("parallelism = { tp = 4, dp = 8 }", ("tp", "cp", "dp", "pp")),
        ("dialect = megatron\n  parallelism = { tp = 4, dp = 8 }", ("tp", "cp", "ep", "dp", "pp")),
        (SPLIT, ("tp", "cp", "dp.shard", "dp.replicate", "pp")),
        (
            "dialect = megatron\n  order = [tp, cp, pp, dp]\n  parallelism = { tp = 4, dp = 8 }",
            ("tp", "cp", "pp", "dp", "ep"),
        ),
        (
            SPLIT.replace("torchtitan", "megatron") + "\n  order = [tp, dp.shard, dp.replicate]",
            ("tp", "dp", "cp", "ep", "pp"),
        ),
    ],
)
def test_order(fields: str, order: tuple[str, ...]) -> None:
    assert right(job(fields)).job.order == order


def test_the_whole_dp_degree_is_the_product_of_its_parts() -> None:
    p = right(job(SPLIT)).job.parallelism
    assert (p.dp, p.dp_replicate, p.dp_shard, p.world) == (8, 2, 4, 32)


# --- layers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "help"),
    [
        ("model = models.deepseek_v3\n  parallelism = { tp = 4, pp = 8 }", "[8] * 7 + [5]"),
        (
            "model = models.llama3_8b\n  pipeline = interleaved { chunks = 3 }\n  parallelism = { tp = 4, pp = 8 }",
            "[4] * 8",
        ),
        ("model = models.llama3_8b\n  stages = [8] * 7\n  parallelism = { tp = 4, pp = 8 }", "[4] * 8"),
        ("model = models.llama3_8b { layers = 9 }\n  parallelism = { tp = 4, pp = 8 }", "[2] * 1 + [1] * 7"),
    ],
)
def test_layers_that_do_not_divide_are_spread_by_the_author(fields: str, help: str) -> None:
    """Some trainers drop the rest without a word."""
    (diagnostic,) = model_of(job(fields))[1]
    assert diagnostic.code == "OPUS419"
    assert f"`{help}`" in diagnostic.help or f"`stages = {help}`" in diagnostic.help
    stated = [line for line in fields.split("\n") if "stages" not in line]
    right(job("\n  ".join([*stated, f"stages = {help}"])))


def test_a_dialect_is_kept() -> None:
    assert right(job(MEGATRON)).job.dialect is Dialect.MEGATRON
    assert right(job("parallelism = { tp = 4 }")).job.dialect is None
