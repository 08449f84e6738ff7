"""Simulating figure 12 of arXiv 2602.12521 at one delay, beside the least that any model must do; then large jobs.

    python benchmarks/bench_simulate.py

The floor adds up the duration of every operation of every stage once, in plain Python: what a model costs that knows
the operations and nothing of order, overlap or circuits. `program` is what comes before either: deriving the operations
of 96 layers and their durations. `provisioned` simulates twice, the first time to learn the order of the parts. Best of
nine.

The large job is Llama-3 405B on 131,072 GPUs with 256 micro-batches, 1F1B, with whole and with sharded parameters:
`from plan` derives the operations and arranges them, then one simulation for each policy. Compiling is not counted.

`policy = auto`: from plan to choice, the audit of what was chosen included.
"""

import time
from collections.abc import Callable
from pathlib import Path

from opusc.diagnostics import Diagnostics
from opusc.driver import compile as compiled
from opusc.driver import compile_source
from opusc.plan.plan import Plan
from opusc.schedule import ON_DEMAND, PROVISIONED, Accelerator, Rates, lower, simulate
from opusc.schedule.choice import choose
from opusc.schedule.job import setting
from opusc.schedule.operations import Program
from opusc.schedule.timing import MILLISECOND
from opusc.schedule.transformer import Transformer, workload
from opusc.source import Source

DATA = Path(__file__).parents[1] / "tests" / "schedule" / "data"
LIMIT = 0.050  # seconds, what an interactive answer may take
LARGE_LIMIT = 2.0  # seconds, for the large job from plan to answer

LARGE = """opus 1

use std.switches
use std.gpus
use std.models

cluster c {
  node_count    = 16384
  gpus_per_node = 8
  gpu           = gpus.h200
  scale_up      = 450 GB/s
  nic           = { ports = 2, rate = 400 Gbps, optics = duplex }
}

fabric rails {
  cluster = c
  rail_by = local_rank
  switch  = switches.generic { matrix = crossbar, radix = 65536, reconfigure = { settle = 10 ms, relock = 0 ms } }
}

job j {
  fabric       = rails
  model        = models.llama3_405b
  parallelism  = { tp = 8, dp = 1024, pp = 16 }
  stages       = [8] * 15 + [6]
  batch        = 262144
  microbatches = 256
  sharding     = SHARDING
}
"""


def fig12() -> Program:
    shape = Transformer(
        tokens=64 * 4096,
        width=8192,
        feed_forward=28672,
        heads=64,
        kv_heads=8,
        vocabulary=32000,
        gated=True,
        tp=8,
        dp=4,
    )
    rates = Rates(450 * 2**30, 50 * 2**30, 50 * 2**30)
    return lower(workload("fig12", shape, (24,) * 4), Accelerator(989 * 10**12, 4800 * 10**9), rates)


def best(run: Callable[[], object]) -> float:
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    program = fig12()
    count = sum(len(stage.names) for stage in program.stages)

    def floor() -> list[int]:
        found = []
        for stage in program.stages:
            total = 0
            for duration in stage.durations:
                total += duration
            found.append(total)
        return found

    least = best(floor)
    print(f"fig12: {count:,} operations in {len(program.stages)} stages\n")
    print(f"{'':14}{'ms':>9}{'floors':>9}")
    for name, run in (
        ("floor", floor),
        ("program", fig12),
        ("on demand", lambda: simulate(program, ON_DEMAND, 10 * MILLISECOND)),
        ("provisioned", lambda: simulate(program, PROVISIONED, 10 * MILLISECOND)),
    ):
        took = best(run)
        print(f"{name:14}{took * 1000:9.3f}{took / least:9.1f}" + ("  over the limit" if took > LIMIT else ""))
    for sharding in ("none", "full"):
        large(sharding)
    print("\npolicy = auto\n")
    for job in ("fig12", "fig13", "llama405b"):
        chosen(job, turns(job))
    chosen("131,072 GPUs", compiled(LARGE.replace("SHARDING", "none")))


def large(sharding: str) -> None:
    plan = compiled(LARGE.replace("SHARDING", sharding))
    begin = time.perf_counter()
    made = setting(plan, Diagnostics())
    assert made is not None
    program = made.program
    assert program.timetable is not None
    took = time.perf_counter() - begin
    print(f"\n{plan.world:,} GPUs, sharding {sharding}: {len(program.timetable.rows):,} operations\n")
    print(f"{'from plan':14}{took * 1000:9.1f} ms" + ("  over the limit" if took > LARGE_LIMIT else ""))
    for name, policy in (("on demand", ON_DEMAND), ("provisioned", PROVISIONED)):
        begin = time.perf_counter()
        simulate(program, policy, 10 * MILLISECOND)
        print(f"{name:14}{(time.perf_counter() - begin) * 1000:9.1f} ms")


def turns(job: str) -> Plan:
    """The plan of a job whose phases take turns, before anything is chosen."""
    path = DATA / f"{job}.opus"
    params = {"delay": "100 ms"}
    return compile_source(Source(str(path), path.read_text()), DATA, params, choosing=False).plan


def chosen(name: str, plan: Plan) -> None:
    begin = time.perf_counter()
    choice = choose(plan, Diagnostics())
    assert choice is not None
    print(f"{name:14}{(time.perf_counter() - begin) * 1000:9.1f} ms, {choice.tried} simulations")


if __name__ == "__main__":
    main()
