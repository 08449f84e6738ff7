"""Bisection bandwidth and latency: by hand, and against a count over the plan's circuits one by one."""

from fractions import Fraction
from pathlib import Path

import pytest

from opusc import driver
from opusc.plan.plan import Plan
from opusc.schedule.crossing import cable, crossing, latency
from opusc.source import Source

PROGRAM = """opus 1

use std.switches
use std.fibres

cluster c {
  node_count    = 8
  gpus_per_node = 2
  nic           = { ports = 2, rate = 400 Gbps, optics = duplex }
}

fabric rails {
  cluster = c
  rail_by = local_rank
  switch  = switches.generic { matrix = crossbar, radix = 64 }
  fibre   = fibres.os2 { length = 30 m }
}

job j {
  fabric      = rails
  parallelism = { tp = 2, dp = 8 }
}
"""

RATE = 400 * 10**9


def compiled(*pairs: tuple[str, str]) -> Plan:
    text = PROGRAM
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return driver.compile_source(Source("crossing.opus", text), Path()).plan


@pytest.mark.parametrize("optics", ["duplex", "bidi"])
@pytest.mark.parametrize("matrix", ["crossbar", "any"])
def test_a_ring_crosses_the_middle_twice_and_the_fabrics_carry_all_ports(optics: str, matrix: str) -> None:
    """16 GPUs with 2 ports: 8 GPUs x 2 ports each way. A ring over 8 domains crosses twice on each of 2 rails."""
    found = crossing(compiled(("optics = duplex", f"optics = {optics}"), ("matrix = crossbar", f"matrix = {matrix}")))
    assert (found.packet_rails, found.fat_tree) == (16 * RATE, 16 * RATE)
    assert found.photonic == 16 * RATE
    assert found.lit == (("dp", 4 * RATE),)


def test_an_odd_number_of_domains_has_a_smaller_half() -> None:
    found = crossing(compiled(("node_count    = 8", "node_count    = 9"), ("dp = 8", "dp = 9")))
    assert (found.photonic, found.packet_rails, found.fat_tree) == (16 * RATE, 16 * RATE, 18 * RATE)


def test_stages_in_different_halves_are_joined_and_do_not_reduce_across() -> None:
    found = crossing(compiled(("dp = 8", "dp = 4, pp = 2")))
    # Two copies of a chain of two stages: every GPU of the first stage has both ports at its peer.
    assert found.lit == (("dp", 0), ("pp", 16 * RATE))


def test_blocks_are_not_joined() -> None:
    blocks = ("rail_by = local_rank", "rail_by = local_rank\n  blocks = 2")
    found = crossing(compiled(blocks, ("dp = 8", "dp = 4"), ("fabric      = rails", "fabric = rails\n  nodes = 0..3")))
    assert found.photonic == 0
    assert found.packet_rails == 16 * RATE


def test_lit_is_the_count_of_circuits_one_by_one() -> None:
    """An independent walk over rows: whose transmitter, whose receiver, which halves."""
    plan = compiled(("dp = 8", "dp = 4, pp = 2"))
    counts = dict.fromkeys((phase.name for phase in plan.phases if phase.instances), 0)
    sender, hearer = {}, {}
    for gpu in range(16):
        for port in range(2):
            switch = int(plan.cabling.switch[gpu, port])
            sender[switch, int(plan.cabling.ingress[gpu, port])] = gpu
            hearer[switch, int(plan.cabling.egress[gpu, port])] = gpu
    for row in range(len(plan.circuits)):
        switch = int(plan.circuits.switch[row])
        one = sender[switch, int(plan.circuits.ingress[row])]
        other = hearer[switch, int(plan.circuits.egress[row])]
        if one < 8 <= other:
            counts[plan.phases[plan.parts[int(plan.circuits.part[row])].phase].name] += 1
    assert dict(crossing(plan).lit) == {name: count * RATE for name, count in counts.items()}


def test_latency_is_cables_and_switches() -> None:
    """30 m at 4.8954 ns/m are 146.862 ns; five packet switches of 1 us have six cables."""
    one = cable(compiled())
    assert one == Fraction(146_862)
    assert latency(one, 1, 0) == 2 * 146_862
    assert latency(one, 5, 10**6) == 6 * 146_862 + 5 * 10**6


def test_the_longest_cable_counts_and_a_missing_one_leaves_it_unknown() -> None:
    longer = ("{ length = 30 m }", "{ length = 30 m }\n  rail[1] = { fibre = { length = 31 m } }")
    assert cable(compiled(longer)) == Fraction(31_000 * 4_895_400, 10**6)
    assert cable(compiled(("{ length = 30 m }", "{ connectors = 1 }"))) is None
    assert cable(compiled(("  fibre   = fibres.os2 { length = 30 m }\n", ""))) is None
