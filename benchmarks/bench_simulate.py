"""Simulating figure 12 of arXiv 2602.12521 at one delay, beside the least that any model must do.

    python benchmarks/bench_simulate.py

The floor adds up the duration of every operation of every stage once, in plain Python: what a model costs that knows
the operations and nothing of order, overlap or circuits. `program` is what comes before either: deriving the operations
of 96 layers and their durations. `provisioned` simulates twice, the first time to learn the order of the parts. Best of
nine.
"""

import time
from collections.abc import Callable

from opusc.schedule import ON_DEMAND, PROVISIONED, Accelerator, Rates, lower, simulate
from opusc.schedule.operations import Program
from opusc.schedule.timing import MILLISECOND
from opusc.schedule.transformer import Transformer, workload

LIMIT = 0.050  # seconds, what an interactive answer may take


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


if __name__ == "__main__":
    main()
