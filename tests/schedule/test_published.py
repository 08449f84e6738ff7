"""The model against the published simulations (arXiv 2602.12521): every cell, nothing fitted.

`pytest tests/schedule/test_published.py -s` prints the table. Each mechanism of the model is removed in turn, and
the same limits must then be missed: a gate that passes without a mechanism would not test it.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opusc.schedule.operations import Collective, Compute
from opusc.schedule.policy import ON_DEMAND, PROVISIONED, Rendezvous
from opusc.schedule.timing import compute_time
from opusc.schedule.transformer import layer_operations, workload
from tests.schedule import published

SAMPLE = published.sample()


def test_the_sample_meets_every_limit() -> None:
    cells = published.all_cells(SAMPLE["runs"])
    print("\n" + published.show(cells))
    assert len(cells) == 98
    assert [str(cell) for cell in cells if not cell.good] == []


def test_all_published_runs_meet_every_limit(shared: Path) -> None:
    cells = published.all_cells(published.reference(shared / "reference"))
    print("\n" + published.show(cells))
    assert len({cell.run for cell in cells}) == 10
    assert [str(cell) for cell in cells if not cell.good] == []


@pytest.mark.parametrize(
    "fault",
    [{"reduce_passes": 0}, {"chunks": 1}, {"recovery": 0}, {"latency": 0, "recovery": 0}],
    ids=["no reduction cost", "one chunk", "links free at once", "no latency"],
)
def test_without_a_mechanism_of_the_rings_the_gate_breaks(fault: dict[str, int]) -> None:
    assert _missed(SAMPLE["runs"], fault)


def test_without_the_vote_the_gate_breaks() -> None:
    """Members that ask only when the ring is not there never expose the reductions: no cost at zero delay."""
    voteless = [replace(policy, rendezvous=Rendezvous.AT_CHANGE) for policy in (ON_DEMAND, PROVISIONED)]
    run = next(run for run in SAMPLE["runs"] if run["name"] == "fig14-gb200-dp16")
    cells = list(published.iteration_cells(run, published.program(run), *voteless))
    assert [cell.what for cell in cells if not cell.good] == ["on demand, 10 ms", "provisioned, 10 ms"]


def _missed(runs: list[dict[str, Any]], fault: dict[str, int]) -> list[str]:
    found = []
    for run in runs:
        gpu, rates = published.hardware(run)
        made = published.program(run, gpu, replace(rates, **fault))
        found += [str(cell) for cell in published.iteration_cells(run, made) if not cell.good]
    return found


# --- the operations ------------------------------------------------------------------------------


def _compare_layer(name: str, run: Mapping[str, Any], rows: list[tuple[str, list[Any], list[str]]]) -> None:
    """Every operation of a middle layer: flops, bytes, and what it waits for, position by position."""
    ours = layer_operations(published.shape(name, run["dp"], run["tp"]))
    assert len(ours) == len(rows)
    at = {op.name: i for i, op in enumerate(ours)}
    theirs_at = {row[0]: i for i, row in enumerate(rows)}
    for op, (label, work, after) in zip(ours, rows, strict=True):
        if isinstance(op.work, Compute):
            assert [op.work.flops, op.work.size] == work, (name, op.name, label)
        else:
            assert isinstance(op.work, Collective)
            assert [op.work.axis, op.work.algorithm.value, op.work.size] == work, (name, op.name, label)
        outside = sorted(n.split(" layer: ")[0] for n in after if n not in theirs_at)
        assert sorted(n for n in op.after if n not in at) == outside, (name, op.name, label)
        assert {at[n] for n in op.after if n in at} == {theirs_at[n] for n in after if n in theirs_at}, op.name


def _compare_stages(name: str, run: Mapping[str, Any], stages: list[dict[str, Any]]) -> None:
    """The seconds of compute and the number of collectives and sends of each size, stage by stage."""
    layers = (128 if name == "llama405b" else 96) // run["pp"]
    made = workload(name, published.shape(name, run["dp"], run["tp"]), (layers,) * run["pp"])
    gpu = published.hardware({**run, "scale_out_GBps": 50})[0]
    for ops, total in zip(made.stages, stages, strict=True):
        seconds = sum(compute_time(op.work.flops, op.work.size, gpu) for op in ops if isinstance(op.work, Compute))
        assert seconds / 10**12 == pytest.approx(total["compute_s"], abs=6e-5)
        kinds: dict[str, int] = {}
        for op in ops:
            if isinstance(op.work, Collective):
                key = f"{op.work.axis} {op.work.algorithm} {op.work.size}"
                kinds[key] = kinds.get(key, 0) + 1
            elif hasattr(op.work, "size") and not isinstance(op.work, Compute):
                kinds[f"pp send {op.work.size}"] = kinds.get(f"pp send {op.work.size}", 0) + 1
        assert kinds == {key: n for key, n in total["communication"].items() if not key.startswith("pp recv")}


def test_a_layer_and_the_stages_of_the_sample_are_the_published_operations() -> None:
    run = next(r for r in SAMPLE["runs"] if r["name"] == "fig12")
    traced = SAMPLE["workload"]["fig12"]
    _compare_layer("fig12", run, traced["middle_layer"])
    _compare_stages("fig12", run, traced["stages"])


def test_layers_and_stages_of_all_traces_are_the_published_operations(shared: Path) -> None:
    import json

    runs = json.loads((shared / "reference" / "opus-workload.json").read_text())["runs"]
    assert len(runs) == 7
    for name, run in runs.items():
        rows = [
            (
                op["op"],
                [op["flops"], op["bytes"]] if "flops" in op else [op["axis"], op["collective"], op["comm_bytes"]],
                op["after"],
            )
            for op in run["middle_layer"]
        ]
        _compare_layer(name, run, rows)
        _compare_stages(name, run, run["stages"])


def test_the_tables_of_the_documentation_are_these_figures() -> None:
    """The rows of the sample in docs/time-model.md, digit by digit."""
    page = (Path(__file__).parents[2] / "docs" / "time-model.md").read_text()
    whats = ("all links", "circuits, zero delay", "on demand, 10 ms", "provisioned, 10 ms")
    for run in SAMPLE["runs"]:
        made = published.program(run)
        found = {cell.what: cell for cell in published.iteration_cells(run, made)}
        cells = [found.get(what) for what in whats]
        shown = [
            f"{c.ours:,.2f} / {c.published:,.2f} ({(c.ours / c.published - 1) * 100:+.3f} %)" if c else ""
            for c in cells
        ]
        assert f"| {run['name']} | {' | '.join(shown)} |" in page
        for label, _ in published.POLICIES if len(run["reconfig_ms"]) > 1 else ():
            added = [c for c in published.sweep_cells(run, made) if c.what.startswith(label) and "added" in c.what]
            shown = [f"{c.ours:,.2f} / {c.published:,.2f}" for c in added]
            assert f"| {run['name']}, {label} | {' | '.join(shown)} |" in page
