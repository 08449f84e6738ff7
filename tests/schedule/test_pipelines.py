"""Pipelines against their closed forms: order of the blocks, bubbles, what is kept in memory."""

from collections import Counter
from fractions import Fraction

import pytest

from opusc.schedule import ALL_LINKS, ON_DEMAND, PROVISIONED, simulate
from opusc.schedule.pipelines import Block, interleaved, one_f_one_b
from tests.schedule.general import circuits, layout, order, program

SHAPES = [(1, 1, 1), (2, 2, 1), (4, 4, 2), (4, 8, 2), (4, 8, 4), (3, 9, 3), (8, 16, 2), (2, 6, 5)]


def bubble(stages: int, batches: int, pipeline: str, chunks: int = 1) -> Fraction:
    """Idle time of a stage over its compute, when nothing else takes time."""
    made = layout(stages, batches, pipeline=pipeline, chunks=chunks)
    result = simulate(program(made, circuits(stages, 1, ring=True)), ALL_LINKS)
    assert len(set(result.exposed)) == 1
    return Fraction(result.exposed[0], result.iteration - result.exposed[0])


@pytest.mark.parametrize("pipeline", ["gpipe", "one_f_one_b"])
@pytest.mark.parametrize(("stages", "batches", "_"), SHAPES)
def test_bubble_of_gpipe_and_1f1b(pipeline: str, stages: int, batches: int, _: int) -> None:
    """(p - 1) / m: arXiv 2104.04473, section 2.2."""
    assert bubble(stages, batches, pipeline) == Fraction(stages - 1, batches)


@pytest.mark.parametrize(("stages", "batches", "chunks"), SHAPES)
def test_bubble_of_interleaving(stages: int, batches: int, chunks: int) -> None:
    """(p - 1) / (m v): arXiv 2104.04473, section 2.2."""
    assert bubble(stages, batches, "interleaved", chunks) == Fraction(stages - 1, batches * chunks)


@pytest.mark.parametrize("pipeline", ["gpipe", "one_f_one_b", "interleaved"])
@pytest.mark.parametrize(("stages", "batches", "chunks"), SHAPES)
def test_every_block_runs_once_and_backward_after_forward(
    pipeline: str, stages: int, batches: int, chunks: int
) -> None:
    count = chunks if pipeline == "interleaved" else 1
    for stage in range(stages):
        blocks = order(pipeline, stage, stages, batches, count)
        every = {Block(way, b, c) for way in (True, False) for b in range(batches) for c in range(count)}
        assert Counter(blocks) == Counter(every)
        for batch in range(batches):
            for chunk in range(count):
                assert blocks.index(Block(True, batch, chunk)) < blocks.index(Block(False, batch, chunk))


def in_flight(blocks: tuple[Block, ...]) -> int:
    most = now = 0
    for block in blocks:
        now += 1 if block.forward else -1
        most = max(most, now)
    return most


def test_micro_batches_in_flight() -> None:
    """GPipe keeps all, 1F1B as many as stages are left, interleaving p v + 2 (p - s - 1) + 1 - p chunks' worth."""
    assert in_flight(order("gpipe", 1, 4, 8)) == 8
    assert [in_flight(one_f_one_b(s, 4, 8)) for s in range(4)] == [4, 3, 2, 1]
    assert [in_flight(one_f_one_b(s, 4, 2)) for s in range(4)] == [2, 2, 2, 1]
    assert [in_flight(interleaved(s, 4, 8, 2)) for s in range(4)] == [11, 9, 7, 5]


def test_interleaving_takes_whole_groups() -> None:
    with pytest.raises(ValueError, match="groups"):
        interleaved(0, 4, 6, 2)


def test_sends_are_exposed_once_on_the_way_there_and_once_on_the_way_back() -> None:
    """GPipe, 2 stages, 1 micro-batch, sends of 5 us: 10 + 5 + 10 + 20 + 5 + 20."""
    made = layout(2, 1, pipeline="gpipe", activation=5)
    assert simulate(program(made, circuits(2, 1)), ALL_LINKS).iteration == 70 * 10**6


def test_changes_of_a_1f1b_pipeline() -> None:
    """Two stages of two layers: the last gradient is handed back as soon as it is there, between two reductions."""
    made = layout(2, 4, layers=2, weights=10, activation=5, dp=2)
    tables = program(made, circuits(2, 2))
    for policy in (ON_DEMAND, PROVISIONED):
        assert [str(change) for change in simulate(tables, policy, 10**6).changes] == [
            "dp[0], dp[1] -> pp[0-1]",
            "pp[0-1] -> dp[1]",
            "dp[1] -> pp[0-1]",
            "pp[0-1] -> dp[1]",
            " -> dp[0]",
        ]
