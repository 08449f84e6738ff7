"""Twenty mistakes that people make, and what they are told: the line, the fact, the way out, and the fix.

Each case changes one thing in a program that compiles. `says` are words that the message must contain; `fixed`
is the line after the machine-applicable fix, where there is one.
"""

from dataclasses import dataclass

import pytest

import opusc
from opusc.diagnostics import Diagnostic, Severity

BASE = """\
opus 1

use std.switches
use std.models

param tp = 8

cluster c {
  node_count    = 256
  gpus_per_node = 8
  nic           = { ports = 2, rate = 200 Gbps, optics = duplex }
}

fabric rails {
  cluster = c
  rail_by = local_rank
  switch  = switches.generic { matrix = crossbar, radix = 1024 }
}

job j {
  fabric      = rails
  parallelism = { tp = tp, dp = 4, pp = 4 }
}
"""


@dataclass(frozen=True)
class Case:
    name: str
    old: str
    new: str
    code: str
    says: tuple[str, ...]
    fixed: str = ""
    severity: Severity = Severity.ERROR
    also: tuple[str, ...] = ()  # codes of messages that follow from it, at other places


JOB = "  parallelism = { tp = tp, dp = 4, pp = 4 }\n"
PORTS = "ports = 2, rate = 200 Gbps"
CASES = [
    Case(
        "a bare number",
        PORTS,
        "ports = 2, rate = 200",
        "OPUS202",
        ("bandwidth", "200 has no unit", "200 Gbps", "25 GB/s"),
        PORTS,
    ),
    Case(
        "bytes for bits",
        PORTS,
        "ports = 2, rate = 200 GB/s",
        "OPUS211",
        ("1,600 Gbps", "200 Gbps", "25 GB/s"),
        severity=Severity.WARNING,
    ),
    Case(
        "another spelling of a unit",
        PORTS,
        "ports = 2, rate = 200 gbps",
        "OPUS202",
        ("unknown unit `gbps`", "Gbps"),
        PORTS,
    ),
    Case(
        "a cluster too small",
        "node_count    = 256",
        "node_count    = 2000",
        "OPUS301",
        ("4,000 positions", "1,024"),
    ),
    Case(
        "shard beside dp",
        JOB,
        "  dialect     = torchtitan\n  parallelism = { dp = 4, shard = 32 }\n",
        "OPUS207",
        ("`shard` is part of dp", "dp = { replicate = 4, shard = 32 }"),
        "  parallelism = { dp = { replicate = 4, shard = 32 } }",
    ),
    Case(
        "experts without a dialect",
        JOB,
        "  parallelism = { dp = 64, ep = 64 }\n",
        "OPUS412",
        ("megatron", "torchtitan", "span dp", "dp.shard * cp * tp", "dialect"),
    ),
    Case(
        "dp without the experts",
        JOB,
        "  dialect     = megatron\n  parallelism = { dp = 2, ep = 64, expert_tp = 1 }\n",
        "OPUS414",
        ("64", "does not divide", "tp * cp * dp = 2", "did you mean dp = 128"),
    ),
    Case(
        "an order from outside in",
        JOB,
        JOB + "  order = [pp, dp, tp]\n",
        "OPUS417",
        ("innermost first", "pp inside a node", "spreads tp over 8 nodes", "[tp, dp, pp]"),
        severity=Severity.WARNING,
        also=("OPUS411",),
    ),
    Case(
        "an order without pp",
        JOB,
        JOB + "  order = [tp, dp]\n",
        "OPUS416",
        ("leaves out pp (degree 4)",),
        "  order = [tp, dp, pp]",
    ),
    Case(
        "no comma between fields",
        PORTS,
        "ports = 2 rate = 200 Gbps",
        "OPUS001",
        ("`,`", "new line", "`ports`", "`rate`"),
        PORTS,
    ),
    Case(
        "a topology in quotes",
        JOB,
        JOB + '  phase dp { topology = "ring" }\n',
        "OPUS210",
        ("ring", "without quotes"),
        "  phase dp { topology = ring }",
    ),
    Case(
        "a topology in capitals",
        JOB,
        JOB + "  phase dp { topology = Ring }\n",
        "OPUS101",
        ("`Ring`", "`ring`"),
        "  phase dp { topology = ring }",
    ),
    Case(
        "a phase of no axis",
        JOB,
        JOB + "  phase warmup { topology = ring }\n",
        "OPUS418",
        ("`warmup` is no axis of this job", "tp, dp, pp", "phase warmup over dp"),
    ),
    Case(
        "a switch without its module",
        "switches.generic",
        "polatis_6000n_192",
        "OPUS101",
        ("it is `switches.polatis_6000n_192`",),
        "  switch  = switches.polatis_6000n_192 { matrix = crossbar, radix = 1024 }",
    ),
    Case(
        "more planes than ports",
        "  rail_by = local_rank\n",
        "  rail_by = local_rank\n  planes  = 4\n",
        "OPUS307",
        ("planes 2..3 would have no fibre", "each GPU has 2", "at most 2"),
    ),
    Case(
        "a stage too few",
        JOB,
        "  model = models.deepseek_v3\n  stages = [4] * 15\n  parallelism = { tp = 8, dp = 4, pp = 16 }\n",
        "OPUS419",
        ("15 stages for pp = 16", "60 layers of 61", "[4] * 15 + [1]"),
    ),
    Case(
        "a ratio without a unit",
        JOB,
        JOB + "  require overhead < 6\n",
        "OPUS202",
        ("`overhead` is a ratio", "6 %"),
        "  require overhead < 6 %",
    ),
    Case(
        "a rail that is not there",
        "  rail_by = local_rank\n",
        "  rail_by = local_rank\n  rail[8] = { switch = switches.generic { matrix = crossbar, radix = 1024 } }\n",
        "OPUS204",
        ("no rail 8", "0..7"),
    ),
    Case(
        "a node in two jobs",
        JOB,
        "  nodes       = 0..16\n" + JOB + "}\n\njob k {\n  fabric = rails\n  nodes = 16..31\n" + JOB,
        "OPUS208",
        ("node 16 is in both jobs", "`j` and `k`", "ranges include both ends", "16 nodes are `0..15`"),
    ),
    Case(
        "a fault of which fabric",
        "job j {",
        "fault position 17 of rail[3]\n\njob j {",
        "OPUS101",
        ("which fabric?", "`rails.rail`"),
        "fault position 17 of rails.rail[3]",
    ),
    Case(
        "a list by another name",
        "job j {",
        "fault position 17 of rails.rails[3]\n\njob j {",
        "OPUS101",
        ("the list is `rail`",),
        "fault position 17 of rails.rail[3]",
    ),
    Case(
        "counting rails from one",
        "job j {",
        "fault position 17 of rails.rail[8]\n\njob j {",
        "OPUS204",
        ("no rail 8", "0..7", "the eighth is `rail[7]`"),
        "fault position 17 of rails.rail[7]",
    ),
]


def apply_fix(text: str, diagnostic: Diagnostic) -> str:
    for edit in sorted(diagnostic.fix, key=lambda e: -e.span.start):
        text = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
    return text


def words(diagnostic: Diagnostic) -> str:
    labels = [label.text for label in diagnostic.secondary]
    return " ".join([diagnostic.message, diagnostic.label, *labels, *diagnostic.notes, diagnostic.help])


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_mistake(case: Case) -> None:
    assert case.old in BASE
    text = BASE.replace(case.old, case.new)
    found = [d for d in opusc.check(text) if d.code not in case.also]
    assert [(d.code, d.severity) for d in found] == [(case.code, case.severity)], found
    (diagnostic,) = found
    for needed in case.says:
        assert needed in words(diagnostic), words(diagnostic)
    changed = [line for line in case.new.splitlines() if line and line not in case.old.splitlines()]
    assert diagnostic.span.source.line_text(diagnostic.span.line) in text.splitlines()
    assert changed
    if case.fixed:
        repaired = apply_fix(text, diagnostic)
        assert case.fixed in repaired
        left = {d.code for d in opusc.check(repaired).errors}
        # A repaired fault is one that this version understands and does not compile.
        assert left <= {"OPUS110"} if "fault" in case.new else not left or case.name == "a switch without its module"
    else:
        assert not diagnostic.fix


def test_the_base_program_is_right() -> None:
    """`{ tp = tp }` reads the parameter: no message."""
    assert not list(opusc.check(BASE))


def test_a_job_that_does_not_fit_says_what_would() -> None:
    """tp 8, dp 128, pp 16 on 2,000 nodes of 8."""
    text = BASE.replace("node_count    = 256", "node_count    = 2000").replace("dp = 4, pp = 4", "dp = 128, pp = 16")
    found = list(opusc.check(text.replace("radix = 1024", "radix = 4096")))
    assert [d.code for d in found] == ["OPUS415"]
    assert "16,384 GPUs" in found[0].message
    assert "16,000 (384 short)" in found[0].message
    assert "dp = 125 would fit exactly" in found[0].help
