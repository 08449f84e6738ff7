"""What an iteration moves, against closed forms: bytes of sharding, experts, context parallelism, tied tables."""

from collections import Counter, defaultdict
from itertools import product

import pytest

from opusc.diagnostics import Diagnostics
from opusc.driver import compile as compiled
from opusc.plan.neighbours import targets
from opusc.plan.plan import Directions, Plan
from opusc.schedule import ALL_LINKS, ON_DEMAND, PROVISIONED, simulate
from opusc.schedule.blocks import Sizes, layer_weights
from opusc.schedule.carriers import Carrier, legs_of
from opusc.schedule.job import Setting, setting
from opusc.schedule.operations import Busy, Collective, Send
from opusc.schedule.timing import Algorithm
from tests.schedule.general import GPU, PLAIN

PROGRAM = """opus 1

use std.switches
use std.gpus

network small {{
  layers = 8, width = 1024, feed_forward = 4096, heads = 16, kv_heads = 4, vocabulary = 32000, sequence = 2048
  gated = true
  {network}
}}

cluster c {{
  node_count    = {nodes}
  gpus_per_node = {gpus}
  gpu           = gpus.h200
  scale_up      = 450 GB/s
  nic           = {{ ports = {ports}, rate = 400 Gbps, optics = duplex }}
}}

fabric rails {{
  cluster = c
  rail_by = local_rank
  switch  = switches.generic {{ matrix = crossbar, radix = 512, reconfigure = {{ settle = 1 ms, relock = 0 ms }} }}
}}

job j {{
  fabric       = rails
  model        = small
  parallelism  = {{ {degrees} }}
  batch        = {batch}
  microbatches = {microbatches}
  {job}
}}
"""


def made(
    degrees: str,
    *,
    nodes: int = 8,
    gpus: int = 4,
    ports: int = 2,
    batch: int = 64,
    microbatches: int = 4,
    job: str = "",
    network: str = "",
    arithmetic: bool = False,
) -> tuple[Plan, Setting]:
    text = PROGRAM.format(
        degrees=degrees, nodes=nodes, gpus=gpus, ports=ports, batch=batch, microbatches=microbatches, job=job,
        network=network,
    )  # fmt: skip
    plan, sink = compiled(text), Diagnostics()
    found = setting(plan, sink, arithmetic=arithmetic)
    assert found is not None, [str(d) for d in sink]
    return plan, found


def moved(found: Setting, stage: int = 0) -> dict[tuple[str, Algorithm], Counter[int]]:
    """How often each size is moved by stage, phase and algorithm."""
    sizes: dict[tuple[str, Algorithm], Counter[int]] = defaultdict(Counter)
    for op in found.workload.stages[stage]:
        if isinstance(op.work, Collective):
            sizes[op.work.axis, op.work.algorithm][op.work.size] += 1
    return dict(sizes)


def total(counter: Counter[int]) -> int:
    return sum(size * count for size, count in counter.items())


LAYER = (1024 * (1024 + 2 * 256) + 1024 * 1024 + 3 * 1024 * 4096) // 4  # elements on one of four tensor ranks
TABLE = 1024 * 32000 // 4


def test_gradients_are_reduced_once_an_iteration() -> None:
    _, found = made("tp = 4, dp = 4, pp = 2")
    for stage in (0, 1):
        assert moved(found, stage) == {("dp", Algorithm.ALL_REDUCE): Counter({LAYER: 4, TABLE: 1})}


def test_sharded_optimizer() -> None:
    """ZeRO-1: reduce-scatter the gradients, gather the parameters: 2 W (n - 1) / n bytes, as an all-reduce."""
    _, found = made("tp = 4, dp = 4, pp = 2", job="sharding = optimizer")
    assert moved(found) == {
        ("dp", Algorithm.REDUCE_SCATTER): Counter({LAYER: 4, TABLE: 1}),
        ("dp", Algorithm.ALL_GATHER): Counter({LAYER // 4: 4, TABLE // 4: 1}),
    }


def test_sharded_gradients() -> None:
    """ZeRO-2: they are reduced after each of four micro-batches, since nobody keeps them whole."""
    _, found = made("tp = 4, dp = 4, pp = 2", job="sharding = gradients")
    assert moved(found)["dp", Algorithm.REDUCE_SCATTER] == Counter({LAYER: 16, TABLE: 4})
    assert moved(found)["dp", Algorithm.ALL_GATHER] == Counter({LAYER // 4: 4, TABLE // 4: 1})


@pytest.mark.parametrize(("pipeline", "kept"), [("gpipe", 0), ("one_f_one_b", 4)])
def test_sharded_parameters(pipeline: str, kept: int) -> None:
    """ZeRO-3: a layer is gathered before each pass and its gradients scattered: 3 W (n - 1) / n bytes a layer and
    micro-batch. In 1F1B the last stage turns around at once and keeps the last unit, here its table."""
    _, found = made("tp = 4, dp = 4, pp = 2", job=f"sharding = full\n  pipeline = {pipeline}")
    assert moved(found, 0) == {
        ("dp", Algorithm.ALL_GATHER): Counter({LAYER // 4: 4 * 4 * 2, TABLE // 4: 4 * 2}),
        ("dp", Algorithm.REDUCE_SCATTER): Counter({LAYER: 4 * 4, TABLE: 4}),
    }
    assert moved(found, 1)["dp", Algorithm.ALL_GATHER] == Counter({LAYER // 4: 4 * 4 * 2, TABLE // 4: 4 * 2 - kept})


def test_bytes_of_a_sharded_layer_on_the_wire() -> None:
    """At 1 byte/us the legs of gather, gather and scatter take 3 W (n - 1) / n us."""
    ring = [Carrier(1, 8, PLAIN.ring_rate, (0,))]
    whole = 8000
    gather = sum(legs_of(ring, Algorithm.ALL_GATHER, whole // 8, GPU, PLAIN)[1])
    scatter = sum(legs_of(ring, Algorithm.REDUCE_SCATTER, whole, GPU, PLAIN)[1])
    assert 2 * gather + scatter == 3 * whole * 7 // 8 * 10**6
    assert sum(legs_of(ring, Algorithm.ALL_REDUCE, whole, GPU, PLAIN)[1]) == gather + scatter


def test_hybrid_sharding() -> None:
    """Inside a shard group every micro-batch, between replicas once, and only of the shard."""
    _, found = made(
        "tp = 4, dp = { replicate = 2, shard = 4 }", job="dialect = torchtitan\n  sharding = full", microbatches=2
    )
    sizes = moved(found)
    assert sizes["dp.shard", Algorithm.REDUCE_SCATTER] == Counter({LAYER: 16, TABLE: 4})
    assert sizes["dp.replicate", Algorithm.ALL_REDUCE] == Counter({LAYER // 4: 8, TABLE // 4: 2})


def test_replicated_gradients_over_two_levels() -> None:
    """Nothing sharded, dp in two parts: scatter, all-reduce of the shard, gather."""
    _, found = made("tp = 4, dp = { replicate = 2, shard = 4 }", job="dialect = torchtitan", microbatches=2)
    sizes = moved(found)
    assert total(sizes["dp.shard", Algorithm.REDUCE_SCATTER]) == 8 * LAYER + 2 * TABLE
    assert total(sizes["dp.replicate", Algorithm.ALL_REDUCE]) * 4 == 8 * LAYER + 2 * TABLE
    assert total(sizes["dp.shard", Algorithm.ALL_GATHER]) * 4 == 8 * LAYER + 2 * TABLE


def test_context_parallelism() -> None:
    """A block of keys and values is 2 t w_kv / tp; it visits cp - 1 ranks, and comes back with its gradients."""
    _, found = made("tp = 4, cp = 4, dp = 2", batch=8, microbatches=2)
    block = 2 * (2 * 2048 // 4) * 256 // 4
    assert moved(found)["cp", Algorithm.EXCHANGE] == Counter({block: 8 * 2, 2 * block: 8 * 2})
    ring = [Carrier(1, 4, PLAIN.ring_rate, (0,))]
    assert sum(legs_of(ring, Algorithm.EXCHANGE, block, GPU, PLAIN)[1]) == 3 * block * 10**6


EXPERTS = "experts = 16, experts_per_token = 2"


def test_experts() -> None:
    """Each of t / tp tokens goes to k experts and back, forward and backward: four exchanges of t k w / tp bytes."""
    _, found = made("dp = 16, ep = 8", nodes=16, gpus=1, job="dialect = torchtitan", network=EXPERTS)
    visits = 1 * 2048 * 2 * 1024
    sizes = moved(found)
    assert sizes["ep", Algorithm.ALL_TO_ALL] == Counter({visits: 8 * 4 * 4})
    expert = 3 * 1024 * 4096
    assert sizes["edp", Algorithm.ALL_REDUCE] == Counter({16 // 8 * expert: 8})
    assert sizes["dp", Algorithm.ALL_REDUCE] == Counter({1024 * (1024 + 512) + 1024 * 1024: 8, 4 * TABLE: 2})


def test_experts_hold_all_weights_between_them() -> None:
    """Weights of all ranks together do not depend on how experts are spread."""
    wholes = set()
    for ep in (1, 2, 8):
        _, found = made(f"dp = 16, ep = {ep}", nodes=16, gpus=1, job="dialect = torchtitan", network=EXPERTS)
        axis = "edp" if ep > 1 else "dp"
        sizes = moved(found)[axis, Algorithm.ALL_REDUCE]
        wholes.add(max(sizes) * ep if ep > 1 else max(sizes) - (1024 * (1024 + 512) + 1024 * 1024))
    assert wholes == {16 * 3 * 1024 * 4096}


@pytest.mark.parametrize("topology", ["rotor", "mesh", "flattened_butterfly { dims = [2, 4] }", "hypercube"])
@pytest.mark.parametrize("ports", [2, 8])
def test_an_exchange_moves_every_message_over_every_hop(topology: str, ports: int) -> None:
    """Second opinion on the busiest circuit: walk every message through the plan's routes, step by step."""
    plan, found = made(
        "dp = 8, ep = 8", gpus=1, ports=ports, job=f"dialect = torchtitan\n  phase ep {{ topology = {topology} }}",
        network=EXPERTS,
    )  # fmt: skip
    phase = next(phase for phase in plan.phases if phase.name == "ep")
    [shape] = {i.shape for i in phase.instances}
    assert found.network is not None
    [carrier] = found.network.carriers["ep", 0]
    assert (carrier.inside, carrier.domains) == (1, 8)
    via = {
        (source, target): on
        for routes in phase.routes
        for source, target, on in zip(routes.source.tolist(), routes.target.tolist(), routes.via.tolist(), strict=True)
    }
    step_of = {}
    for step, links in reversed(list(enumerate(shape.steps))):
        for link in links:
            for a, b in enumerate(targets(link.neighbour, 8).tolist()):
                if b >= 0:
                    step_of.update({(a, b): step} | ({} if link.directions is Directions.FORWARD else {(b, a): step}))
    carried: dict[tuple[int, int], Counter[tuple[int, int]]] = defaultdict(Counter)
    for source, target in product(range(8), repeat=2):
        at, turn, last = source, 0, -1
        while at != target:
            on = via.get((at, target), target)
            turn += step_of[at, on] < last
            last = step_of[at, on]
            carried[turn, last][at, on] += 1
            at = on
    # Links side by side (two ports to one neighbour) share what they carry.
    assert [step for step, _ in carrier.loads] == [step for _, step in sorted(carried)]
    for (_, load), key in zip(carrier.loads, sorted(carried), strict=True):
        assert max(carried[key].values()) / 2 <= load <= max(carried[key].values())
    assert sum(sum(c.values()) for c in carried.values()) >= 8 * 7


def test_time_of_an_exchange_over_a_rotor() -> None:
    """Seven rotations, two at a time: four steps of an eighth of the bytes each."""
    plan, found = made("dp = 8, ep = 8", gpus=1, job="dialect = torchtitan", network=EXPERTS)
    assert found.network is not None
    parts, times = legs_of(found.network.carriers["ep", 0], Algorithm.ALL_TO_ALL, 8000, GPU, found.rates)
    assert [plan.parts[part].name for part in parts] == [f"ep[0] step {step}" for step in range(len(parts))]
    port = 400 * 10**9 // 8
    assert set(times) == {1000 * 10**12 // port + found.rates.latency + found.rates.endpoint}


def test_tied_tables_meet_at_both_ends() -> None:
    _, found = made("tp = 4, dp = 2, pp = 4", network="tied_embeddings = true")
    for stage, other in ((0, 3), (3, 0)):
        [send] = [op.work for op in found.workload.stages[stage] if isinstance(op.work, Send) and op.work.phase != "pp"]
        assert (send.to, send.size, send.phase) == (other, TABLE, "embedding")
    assert all(simulate(found.program, policy).iteration > 0 for policy in (ALL_LINKS, ON_DEMAND, PROVISIONED))


def test_compute_does_not_depend_on_how_it_is_cut() -> None:
    """All ranks together do the same arithmetic, whatever the pipeline; memory-bound passes aside."""

    def computed(degrees: str, **more: object) -> int:
        _, found = made(degrees, arithmetic=True, **more)  # type: ignore[arg-type]
        work = [op.work for stage in found.workload.stages for op in stage if not op.name.endswith("update")]
        return sum(w.duration for w in work if isinstance(w, Busy))

    base = computed("tp = 4, dp = 2, pp = 4")
    assert computed("tp = 4, dp = 2, pp = 4", job="pipeline = gpipe") == base
    assert computed("tp = 4, dp = 2, pp = 4", job="pipeline = interleaved { chunks = 2 }") == pytest.approx(
        base, rel=0.02
    )


def test_weights_of_a_layer() -> None:
    _, found = made("tp = 4, dp = 4, pp = 2")
    assert layer_weights(Sizes(found.shape)) == (LAYER, 0)
