"""`policy = auto`: shorter than the published provisioned iterations, legal, proved, and for the reasons that it gives.

`pytest tests/schedule/test_auto.py -s` prints the tables: ours beside the published figures, and what each idea gains.
"""

from dataclasses import replace

import pytest

from opusc.backends.simulation import timeline_svg
from opusc.cli.choosing import prove
from opusc.diagnostics import Diagnostics
from opusc.schedule import audit
from opusc.schedule.auto import IDEAS, Trial
from opusc.schedule.policy import PROVISIONED
from opusc.schedule.timing import MILLISECOND
from tests.schedule import beaten


def test_every_published_provisioned_iteration_is_beaten() -> None:
    print("\n" + beaten.show(beaten.iterations(), beaten.gains(), beaten.packed(), beaten.one_way()))
    assert len(beaten.rows()) == 9
    assert [(row.run, row.delay) for row in beaten.rows() if not row.ours < row.published] == []
    # Not by a model that is faster: with all links ours takes as long as theirs.
    for row in beaten.rows():
        assert row.choice.variant.links.iteration / MILLISECOND == pytest.approx(row.published_links, rel=2e-4)
    # Figure 12, as published: 2.44, 3.45 and 5.31 % over the iteration with all links.
    assert [round(row.over[0], 2) for row in beaten.rows()[:3]] == [2.44, 3.45, 5.31]
    assert all(row.over[1] < 0.02 for row in beaten.rows())


def test_the_tables_of_the_documentation_are_these() -> None:
    page = (beaten.DATA.parents[2] / "docs" / "time-model.md").read_text()
    assert "\n".join(beaten.iterations()) in page
    assert "\n".join(beaten.gains()) in page
    assert "\n".join(beaten.packed()) in page
    assert "\n".join(beaten.one_way()) in page
    assert all(f"| {idea.name} | " in page for idea in IDEAS)


def test_the_timelines_of_the_documentation_are_these() -> None:
    images = beaten.DATA.parents[2] / "docs" / "images"
    choice = next(row.choice for row in beaten.rows() if (row.run, row.delay) == ("fig13", 100))
    provisioned = choice.variant.run(choice.variant.setting.program, PROVISIONED, choice.delay, record=True)
    assert provisioned is not None
    for name, result in (("auto", choice.result), ("provisioned", provisioned)):
        drawn = timeline_svg(result, f"fig13: {name}, 100 ms a change")
        assert drawn == (images / f"fig13-{name}.svg").read_text()


def test_nothing_is_left_to_gain_from_faster_changes() -> None:
    """All changes are hidden: packet switches take exactly as long in the same order of operations."""
    assert [row.choice.result.iteration - row.choice.reference for row in beaten.rows()] == [0] * 9


def test_it_runs_at_the_published_rates() -> None:
    """The ports of a GPU carry no more than in the published runs: 50 and 100 GiB/s to each of two neighbours."""
    for run, rate in (("fig12", 50), ("fig13", 100), ("llama405b", 100)):
        rates = beaten.search(run).variants[0].setting.rates
        assert (rates.ring_rate, rates.join_rate) == (rate * 2**30, rate * 2**30)


@pytest.mark.parametrize("at", range(9))
def test_what_was_chosen_is_legal_and_proved(at: int) -> None:
    choice = beaten.rows()[at].choice
    assert audit.reordering(choice.variant.setting.workload, choice.workload) == []
    assert audit.timeline(choice.workload, choice.program, choice.result, choice.start, choice.variant.exclusive) == []
    sink = Diagnostics()
    proved = prove(choice, choice.variant.plan, sink)
    assert list(sink) == []
    assert [o.name for o in proved][-2:] == ["the last configuration is the first", "traffic meets light"]
    assert len(choice.result.changes) == 6


@pytest.mark.parametrize("run", beaten.RUNS)
def test_gains_are_differences_of_simulated_iterations(run: str) -> None:
    """Taking an idea out of what was chosen lengthens the iteration by what the table says, and by no less than 0."""
    search = beaten.search(run)
    delay = 100 * MILLISECOND
    choice = search.choose(delay)
    found = {f.idea.name: f for f in choice.findings}
    assert list(found) == [idea.name for idea in IDEAS]
    assert all(f.last >= 0 for f in choice.findings)
    assert all(f.last > 0 for f in choice.findings if f.chosen), "what makes no difference is not chosen"
    without = replace(choice.trial, order=replace(choice.trial.order, hand_back=False))
    slower = search.measure(without, delay)
    assert slower is not None
    assert slower[0] - choice.result.iteration == found["hand-back"].last


@pytest.mark.parametrize("run", beaten.RUNS)
def test_without_the_ideas_nothing_is_gained(run: str) -> None:
    """The published rule on the same search is the published figure: the gain is that of the ideas."""
    for row in beaten.rows():
        if row.run == run:
            plain = beaten.search(run).measure(Trial(), row.delay * MILLISECOND)
            assert plain is not None
            assert plain[0] / MILLISECOND == pytest.approx(row.published, rel=1e-3)


def test_packing_is_measured_where_ports_suffice() -> None:
    """Four ports of half the rate hold ring and chain at once. Each then has half the rate, and nothing changes."""
    search = beaten.search("fig13", ports=4)
    assert [v.packs for v in search.variants] == [(), ("dp", "pp")]
    quick, slow = search.choose(100 * MILLISECOND), search.choose(1000 * MILLISECOND)
    assert quick.variant.packs == ()
    assert slow.variant.packs == ("dp", "pp")
    assert slow.result.changes == ()
    sink = Diagnostics()
    assert {o.method for o in prove(slow, search.variants[0].plan, sink)} >= {"symbolic", "compared", "checked"}
    assert list(sink) == []
    assert beaten.search("fig13").refused[0][0] == "dp, pp", "two ports hold one of them"


def test_rings_lead_one_way_where_peers_allow() -> None:
    """Both ports send to the next domain: twice the rate, proved by both opinions, and shorter than all links."""
    tried = beaten.search("fig12", peers="independent")
    stated = [variant.stated for variant in tried.variants]
    assert stated == ["", "phase dp { topology = ring { one_way = true } }", "pack = [dp, pp]"]
    assert [v.setting.rates.ring_rate // 2**30 for v in tried.variants] == [50, 100, 50]
    choice = tried.choose(100 * MILLISECOND)
    assert choice.variant.one_way == ("dp",)
    assert choice.result.iteration < beaten.rows()[2].choice.result.iteration
    assert choice.result.iteration >= choice.reference
    sink = Diagnostics()
    assert {o.method for o in prove(choice, tried.variants[0].plan, sink)} >= {"symbolic", "compared", "checked"}
    assert list(sink) == []
    found = {f.idea.name: f for f in choice.findings}
    assert found["one-way"].chosen
    assert found["one-way"].last > 0
    assert not found["pack"].chosen
