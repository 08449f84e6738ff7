"""Jobs of every kind, at random: `simulate` has a result or a message, and what `auto` chooses is legal.

A schedule that the audit objects to, a stall, or any other exception is OPUS901 and exit code 2.
"""

import random
from collections import Counter
from pathlib import Path

import pytest

from opusc.cli.main import main

PROGRAM = """\
opus 1

use std.switches
use std.gpus
use std.models

cluster c {{
  node_count    = {nodes}
  gpus_per_node = 8
  gpu           = gpus.h100
  scale_up      = 450 GB/s
  nic           = {{ ports = {ports}, rate = 200 Gbps, optics = {optics} }}
}}

fabric f {{
  cluster = c
  rail_by = local_rank
  switch  = switches.generic {{
    matrix      = {matrix}
    radix       = 1024
    reconfigure = {{ settle = {settle} ms, relock = 0 ms }}
  }}
}}

job j {{
  fabric       = f
  dialect      = {dialect}
  model        = models.{model} {{ sequence = 4096 }}
  parallelism  = {{ tp = {tp}, cp = {cp}, dp = {dp}, pp = {pp}{experts} }}
  batch        = {batch}
  microbatches = {microbatches}
  pipeline     = {pipeline}
  sharding     = {sharding}
  efficiency   = 50 %
  policy       = {policy}
}}
"""


def program(number: int) -> str:
    """A job of at most 256 GPUs."""
    pick = random.Random(number).choice
    tp, cp, dp, pp = pick([1, 2, 4, 8]), pick([1, 1, 1, 2, 4]), pick([1, 2, 3, 4, 8]), pick([1, 2, 4])
    model, dialect = pick(["llama3_8b", "mixtral_8x7b"]), pick(["megatron", "torchtitan"])
    experts = ""
    if model.startswith("mixtral"):
        experts = f", ep = {pick([1, 2, 4, 8])}" + (f", expert_tp = {pick([1, tp])}" if dialect == "megatron" else "")
    microbatches = pick([1, 2, 4])
    return PROGRAM.format(
        nodes=-(-tp * cp * dp * pp // 8),
        ports=pick([1, 2, 2, 3, 4]),
        optics=pick(["duplex", "duplex, peers = independent", "bidi"]),
        matrix=pick(["crossbar", "any"]),
        dialect=dialect,
        model=model,
        tp=tp, cp=cp, dp=dp, pp=pp,
        experts=experts,
        batch=microbatches * dp * pick([1, 2]),
        microbatches=microbatches,
        pipeline=pick(["gpipe", "one_f_one_b", "interleaved { chunks = 2 }"]),
        sharding=pick(["none", "optimizer", "gradients", "full"]),
        settle=pick([1, 1, 100]),
        policy=pick(["on_demand", "provisioned", "static", "auto", "auto", "auto"]),
    )  # fmt: skip


def run(numbers: range, directory: Path, capsys: pytest.CaptureFixture[str]) -> Counter[int]:
    ended: Counter[int] = Counter()
    wrong = {}
    for number in numbers:
        path = directory / f"{number}.opus"
        path.write_text(program(number))
        code = main(["simulate", str(path), "--format", "concise"])
        ended[code] += 1
        said = "".join(capsys.readouterr())
        if code not in (0, 1) or "OPUS9" in said:
            wrong[number] = said
    assert wrong == {}
    return ended


def test_random_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(range(30), tmp_path, capsys)
    assert ended[0] >= 12, "most jobs are simulated"


@pytest.mark.slow
def test_many_random_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(range(1000, 1250), tmp_path, capsys)
