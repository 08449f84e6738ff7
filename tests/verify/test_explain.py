"""Objections are told in the author's words, at the author's lines."""

import numpy as np

from opusc.diagnostics import Diagnostic, Diagnostics
from opusc.diagnostics.codes import CODES
from opusc.plan.plan import Plan
from opusc.verify import verify
from opusc.verify.explain import explain
from opusc.verify.finding import CLASH, UNDECIDED, Finding
from opusc.verify.report import Method, Obligation, Report
from tests.verify.mutations import MUTATIONS, edited
from tests.verify.plans import plan


def told(broken: Plan) -> list[Diagnostic]:
    sink = Diagnostics()
    verify(broken, sink)
    assert all(d.code in CODES for d in sink)
    return list(sink)


def clash(name: str, part: str) -> list[Diagnostic]:
    """Two circuits of a part made to share an egress port."""
    whole = plan(name)
    rows = whole.rows(next(p.index for p in whole.parts if p.name == part))
    egress = int(whole.circuits.egress[rows.start])
    broken = edited(whole, egress=(rows.start + 1, egress))
    assert broken is not None
    return [d for d in told(broken) if d.code == CLASH]


def test_a_clash_names_both_circuits_by_rank_and_port() -> None:
    found = clash("crossbar, duplex", "dp[0]")
    assert found
    for diagnostic in found:
        assert "`dp[0]`" in diagnostic.message
        assert "rank 0 to rank 2 of `dp[0]` and rank 0 to rank 2" in diagnostic.message
        named = [note for note in diagnostic.notes if note.startswith("`dp[0]`: ingress")]
        assert len(named) == 2
        assert "port 0 of GPU 0 of node 0 (rank 0)" in named[0]


def test_a_clash_of_stated_edges_points_at_them() -> None:
    labels = {(label.text, label.span.place) for d in clash("stated edges", "warmup[0]") for label in d.secondary}
    assert ("edge (0, 3)", "<edges>:1:1") in labels


def test_a_clash_of_edges_that_a_loop_made_names_its_turn() -> None:
    labels = {label.text for d in clash("stated edges", "gossip[0] step 0") for label in d.secondary}
    assert "edge (5, 0), for step = 1, i = 5" in labels


def test_a_clash_on_stated_cables_points_at_them_and_does_not_blame_opusc_alone() -> None:
    found = clash("listed cables", "dp[0]")
    assert any("cabled here" in label.text for d in found for label in d.secondary)
    assert all("check the cabling" in d.help for d in found)


def test_what_no_program_can_cause_asks_for_a_report() -> None:
    for name in ("exclusion forgotten", "circuit dropped", "ring split into two"):
        broken = MUTATIONS[name][0](plan("photonic rails"), 0)
        assert broken is not None
        found = told(broken)
        assert found
        assert all("please report it" in d.help for d in found), name


def test_a_flood_is_cut_short() -> None:
    sink = Diagnostics()
    explain(plan("photonic rails"), [Finding(CLASH, f"clash {k}", phase=0) for k in range(50)], sink)
    assert len(sink) == 3


def test_no_answer_is_an_error() -> None:
    sink = Diagnostics()
    explain(plan("photonic rails"), [Finding(UNDECIDED, "the solver could not decide whether pigs fly")], sink)
    (diagnostic,) = sink.errors
    assert diagnostic.code == UNDECIDED
    assert "nothing is emitted that is not proved" in diagnostic.help


def test_a_time_out_fails_the_plan(monkeypatch: object) -> None:
    from opusc.verify import formulas
    from opusc.verify.statement import Answer

    patch = monkeypatch.setattr  # type: ignore[attr-defined]
    patch(formulas, "solve", lambda statement: Answer("unknown", "timeout"))
    found = told(plan("photonic rails"))
    assert {d.code for d in found} == {UNDECIDED}
    assert any("timeout" in note for d in found for note in d.notes)


def test_circuits_that_are_not_there_are_told_too() -> None:
    """Whatever is broken, telling it never fails."""
    whole = plan("crossbar, duplex")
    for mutation, _ in MUTATIONS.values():
        broken = mutation(whole, 1)
        if broken is not None:
            assert told(broken)


def test_the_summary_has_one_line_for_each_method() -> None:
    report = Report(
        (
            Obligation("a", Method.SYMBOLIC, 1, 1.4),
            Obligation("b", Method.SYMBOLIC, 1, 2.0),
            Obligation("c", Method.COMPARED, 1200, 0.6),
            Obligation("d", Method.CHECKED, 5, 1.0),
        )
    )
    assert report.summary == (
        "2 formulas by Z3, once for all ranks (3 ms)",
        "1,200 rows compared with the formulas (1 ms)",
        "1 property by an independent checker (1 ms)",
    )


def test_a_plan_without_circuits_is_proved() -> None:
    from tests.support import make_plan

    whole = make_plan(nodes=1, gpus=4, dp=4)
    assert len(whole.circuits) == 0
    assert np.array_equal(whole.exclusions, np.zeros((0, 2)))
    sink = Diagnostics()
    verify(whole, sink)
    assert list(sink) == []
