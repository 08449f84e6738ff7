"""What `auto` decides for each two phases that share ports, and the layouts that it tries for them."""

from dataclasses import replace
from functools import cache

import pytest

from opusc.diagnostics import Diagnostics
from opusc.driver import compile as compiled
from opusc.schedule.auto import Search, Trial
from opusc.schedule.pairs import How, asked_later
from opusc.schedule.policy import ON_DEMAND, PROVISIONED, Mode
from opusc.schedule.timing import MILLISECOND
from opusc.schedule.variants import Variant, variant_of
from tests.schedule import beaten

#: Three phases that share ports: gradients, keys and values of a sequence in two halves, activations.
JOB = """opus 1

use std.switches
use std.gpus
use std.models

param ports: count = 4
param rate: bandwidth = 800 Gbps

cluster h200 {
  node_count    = 32
  gpus_per_node = 8
  gpu           = gpus.h200
  scale_up      = 450 GB/s
  nic           = { ports = ports, rate = rate / ports, optics = duplex }
}

fabric rails {
  cluster = h200
  rail_by = local_rank
  switch  = switches.polatis_6000n_192 { reconfigure = { settle = 10 ms, relock = 0 ms } }
}

job long_sequences {
  fabric       = rails
  model        = models.llama3_70b
  parallelism  = { tp = 8, cp = 2, dp = 4, pp = 4 }
  batch        = 256
  microbatches = 8
  policy       = auto
}
"""
DELAY = 10 * MILLISECOND
PAIRS = [("dp", "cp"), ("dp", "pp"), ("cp", "pp")]


@cache
def search(ports: int) -> Search:
    plan = compiled(JOB.replace("= auto", "= provisioned"), {"ports": ports})
    variant = variant_of(plan, Diagnostics())
    assert variant is not None
    return Search(variant)


def test_every_pair_is_decided() -> None:
    choice = search(4).choose(DELAY)
    assert [pair.phases for pair in choice.pairs] == PAIRS
    how = {pair.phases: pair.how for pair in choice.pairs}
    assert choice.variant.stated == "pack = [dp, cp]"
    assert how["dp", "cp"] is How.PACKED
    assert how["cp", "pp"] is How.PROVISIONED
    # A change that takes away parts of two phases counts for both.
    assert sum(pair.changes for pair in choice.pairs) >= sum(bool(c.went) for c in choice.result.changes) > 50


def test_the_gain_of_a_pair_is_a_difference_of_simulated_iterations() -> None:
    choice = search(4).choose(DELAY)
    pair = choice.pairs[-1]
    early, late = (
        choice.variant.run(choice.program, replace(choice.trial.policy, later=later), DELAY)
        for later in (choice.trial.policy.later, choice.trial.policy.later | {frozenset(pair.phases)})
    )
    assert early is not None
    assert late is not None
    assert late.iteration - early.iteration == pair.gain > 0


def test_pairs_lie_between_on_demand_and_provisioned() -> None:
    """Asking later for one pair never shortens an iteration, and for all of them is the policy `on_demand`."""
    base = search(2).variants[0]
    program = base.setting.program

    def length(later: frozenset[frozenset[str]], mode: Mode = Mode.PROVISIONED) -> int:
        result = base.run(program, replace(PROVISIONED, mode=mode, later=later), DELAY)
        assert result is not None
        return result.iteration

    provisioned, every = length(frozenset()), frozenset(map(frozenset, PAIRS))
    on_demand = length(frozenset(), Mode.ON_DEMAND)
    assert provisioned < on_demand
    assert length(every) == on_demand
    singles = [length(frozenset([pair])) for pair in every]
    assert all(provisioned <= one <= on_demand for one in singles)
    assert max(singles) > provisioned


def test_a_pair_is_on_demand_where_asking_early_gains_nothing() -> None:
    """At no delay nothing is gained by asking early."""
    measured = search(2)
    policy = asked_later(PROVISIONED, PAIRS, lambda policy: measured.measure(Trial(policy), 0))
    assert policy.later == frozenset(map(frozenset, PAIRS))
    policy = asked_later(PROVISIONED, PAIRS, lambda policy: measured.measure(Trial(policy), DELAY))
    assert frozenset(("cp", "pp")) not in policy.later
    assert asked_later(ON_DEMAND, PAIRS, lambda policy: (0, 0)) == ON_DEMAND


def held(variant: Variant) -> list[int]:
    return [len(phase.ports) for phase in variant.plan.phases]


def test_sets_of_phases_and_splits_of_ports_are_tried() -> None:
    stated = [variant.stated for variant in search(4).variants]
    assert stated[:2] == ["", "pack = [dp, cp]"]
    assert "pack = [dp { ports = 3 }, cp { ports = 1 }]" not in stated, "three ports hold no more rings than two"
    assert [names for names, _ in search(4).refused] == ["dp, cp, pp", "all phases"]
    eight = beaten.search("fig13", ports=8).variants
    assert {tuple(held(v)) for v in eight} >= {(8, 8), (4, 4), (6, 2), (2, 6)}
    assert all(sum(held(v)) == 8 for v in eight[1:])


def test_halves_are_the_best_split_of_figure_13() -> None:
    """More ports for the ring shorten reductions, and lengthen the six messages on the critical path by more."""
    tried = beaten.search("fig13", ports=8)
    lengths = {tuple(held(v)): tried.measure(Trial(variant=at), 0) for at, v in enumerate(tried.variants)}
    assert min((lengths[split], split) for split in lengths if split != (8, 8))[1] == (4, 4)


@pytest.mark.parametrize("ports", [2, 4])
def test_what_was_chosen_for_three_phases_is_shorter_than_both_policies(ports: int) -> None:
    choice = search(ports).choose(DELAY)
    plain = [search(ports).measure(Trial(policy), DELAY) for policy in (ON_DEMAND, PROVISIONED)]
    assert all(one is not None and choice.result.iteration < one[0] for one in plain)
