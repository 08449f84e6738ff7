"""The two opinions share no code, and the checker's own arithmetic is right where the planner's could be copied."""

import ast
from pathlib import Path

import numpy as np
import pytest

from opusc.model.entities import Dialect, Matrix, Optics, Peers, RailBy
from opusc.verify import second_opinion
from opusc.verify.structure_model import graph_of, group_numbers, world_of
from tests.support import make_model, make_plan, phase

VERIFY = Path(__file__).parents[2] / "opusc" / "verify"
CHECKER = sorted(VERIFY.glob("structure*.py"))

#: All that the checker may know of the package: the model, the plan's own types, and how to say what it found.
KNOWN = {"opusc.model.entities", "opusc.plan.plan", "opusc.verify.finding", "opusc.verify.report"}


def imported(text: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            found |= {f"{module}.{a.name}" for a in node.names} if module in ("opusc", "opusc.plan") else {module}
    return {name for name in found if name.startswith(("opusc", "z3"))}


@pytest.mark.parametrize("path", CHECKER, ids=lambda p: p.stem)
def test_the_checker_shares_no_code_with_planner_or_proofs(path: Path) -> None:
    strange = imported(path.read_text()) - KNOWN - {f"opusc.verify.{p.stem}" for p in CHECKER}
    assert strange == set()


@pytest.mark.parametrize("path", [VERIFY / "finding.py", VERIFY / "report.py"], ids=lambda p: p.stem)
def test_nor_does_what_it_shares_with_them(path: Path) -> None:
    assert imported(path.read_text()) <= {"opusc.plan.plan"}


@pytest.mark.parametrize(
    "text",
    [
        "from opusc.plan import neighbours",
        "from opusc.plan.ranks import place",
        "def f():\n    import z3",
        "from opusc.verify.rows import decode",
        "import opusc.plan.groups",
    ],
)
def test_shared_code_would_be_seen(text: str) -> None:
    assert imported(text) - KNOWN


@pytest.mark.parametrize("path", CHECKER, ids=lambda p: p.stem)
def test_of_the_plan_the_checker_uses_data_only(path: Path) -> None:
    """Types of the plan and their fields: no neighbour function is ever evaluated."""
    assert "neighbour" not in {n.attr for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)}
    assert "targets" not in path.read_text()


# --- arithmetic, against values worked out by hand -----------------------------------------------


def test_groups_by_hand() -> None:
    job = make_model(nodes=4, gpus=4, tp=2, dp=4, pp=2, ep=4, expert_tp=2).job
    world = world_of(job)
    assert group_numbers(world, ("dp", "cp")).tolist() == [0, 1] * 4 + [2, 3] * 4
    assert group_numbers(world, ("pp",)).tolist() == [*range(8), *range(8)]
    assert group_numbers(world, ("ep",)).tolist() == [0, 1] * 4 + [2, 3] * 4
    assert world.stage.tolist() == [0] * 8 + [1] * 8
    titan = make_model(
        nodes=2, gpus=4, tp=2, dp=4, dp_replicate=2, dp_shard=2, ep=2, dialect=Dialect.TORCHTITAN, phases=()
    ).job
    assert group_numbers(world_of(titan), ("ep",)).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert group_numbers(world_of(titan), ("dp.replicate",)).tolist() == [0, 1, 2, 3, 0, 1, 2, 3]


def test_places_by_hand() -> None:
    from dataclasses import replace

    job = replace(make_model(nodes=4, gpus=4, use=3, tp=3, dp=2).job, nodes=(3, 1))
    world = world_of(job)
    assert world.gpu.tolist() == [12, 13, 14, 4, 5, 6]
    assert world.rail[world.gpu].tolist() == [0, 1, 2, 0, 1, 2]
    racks = world_of(make_model(nodes=4, gpus=2, domain=4, rail_by=RailBy.DOMAIN_RANK, dp=8).job)
    assert racks.rail.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("topology", "n", "dims", "arcs"),
    [
        ("ring", 5, None, {(v, (v + d) % 5) for v in range(5) for d in (1, 4)}),
        ("chain", 4, None, {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)}),
        ("rotor", 3, None, {(v, w) for v in range(3) for w in range(3) if v != w}),
        ("hypercube", 4, None, {(0, 1), (1, 0), (0, 2), (2, 0), (1, 3), (3, 1), (2, 3), (3, 2)}),
        ("flattened_butterfly", 6, (2, 3), {(v, w) for v in range(6) for w in range(6)
                                            if v != w and (v % 2 == w % 2 or v // 2 == w // 2)}),
    ],
)  # fmt: skip
def test_graphs_by_hand(topology: str, n: int, dims: tuple[int, ...] | None, arcs: set[tuple[int, int]]) -> None:
    graph = graph_of(world_of(make_model(dp=4).job), phase("dp", ("dp",), topology, dims=dims), n, (0, 1))
    assert graph is not None
    v, w = np.divmod(np.arange(n * n), n)
    meant = graph.times(v, w)
    assert {(int(a), int(b)) for a, b, t in zip(v, w, meant, strict=True) if t} == arcs
    assert graph.size == len(arcs)


@pytest.mark.parametrize("matrix", list(Matrix))
@pytest.mark.parametrize("optics", list(Optics))
@pytest.mark.parametrize("peers", list(Peers))
@pytest.mark.parametrize("ports", [1, 2, 3, 4])
@pytest.mark.parametrize("dp", [2, 3, 4])
def test_nothing_is_held_against_right_plans(matrix: Matrix, optics: Optics, peers: Peers, ports: int, dp: int) -> None:
    """No false alarm on any kind of ports, for even, odd and smallest groups."""
    if optics is Optics.BIDI and matrix is Matrix.CROSSBAR and ports == 1:
        return  # all ports on one side: the planner refuses
    whole = make_plan(
        nodes=dp * 2, gpus=2, tp=2, dp=dp, pp=2, ep=dp, expert_tp=2, ports=ports, matrix=matrix, optics=optics,
        peers=peers,
    )  # fmt: skip
    assert second_opinion(whole)[1] == []
