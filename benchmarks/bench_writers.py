"""Writing circuit schedules for the published simulator: opusc's streamed writer beside a naive dense one.

    python benchmarks/bench_writers.py [GPUS ...]

Both write the same file for tp 8, pp 4 and dp = GPUS / 32 (128, 512 and 2,048 GPUs unless told otherwise): all
2^4 matrices. The naive writer is what one would write first: for each configuration and each pair of ranks,
decide the bandwidth and format it. It works from the degrees alone, so equal bytes also check the plan. The
times of opusc include planning and finding the links; both write to a file. Up to 512 GPUs: the best of three.
"""

import argparse
import filecmp
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from opusc.backends.astra_matrices import GB
from opusc.backends.astra_sim import BACKEND, SCHEDULES
from opusc.backends.base import Options
from opusc.diagnostics import Diagnostics
from opusc.model.entities import (
    CablingKind,
    CablingSpec,
    Cluster,
    Dialect,
    Fabric,
    Job,
    Matrix,
    Model,
    Nic,
    Optics,
    Parallelism,
    PhaseSpec,
    Pipeline,
    PipelineKind,
    RailBy,
    RailSpec,
    SwitchKind,
    TopologySpec,
    Traffic,
)
from opusc.plan.build import build_plan
from opusc.plan.plan import Plan
from opusc.source import Source, Span

TP, PP = 8, 4
SCALE_UP, SCALE_OUT = 450, 50  # GB/s of 2^30 bytes, as in the published H200 runs


def make_plan(gpus: int) -> Plan:
    """The photonic-rails example at another size, without its text."""
    here = Span(Source("<benchmark>", "opus 1\n"), 0, 6)
    dp, nodes = gpus // (TP * PP), gpus // TP
    switch = SwitchKind(name="large", matrix=Matrix.CROSSBAR, radix=2 * nodes, settle=10**10, relock=0, span=here)
    nic = Nic(role="", ports=2, rate=SCALE_OUT * GB, optics=Optics.DUPLEX, span=here)
    cluster = Cluster(
        name="c",
        node_count=nodes,
        gpus_per_node=TP,
        gpus_per_domain=TP,
        use=TP,
        nics=(nic,),
        scale_up=SCALE_UP * GB,
        span=here,
    )
    fabric = Fabric(
        name="rails",
        cluster=cluster,
        rail_by=RailBy.LOCAL_RANK,
        rails=tuple(RailSpec(index=r, switches=(switch,), span=here) for r in range(TP)),
        planes=1,
        blocks=1,
        cabling=CablingSpec(kind=CablingKind.IN_ORDER, span=here),
        span=here,
    )
    phases = tuple(
        PhaseSpec(name=axis, axes=(axis,), topology=TopologySpec(name=word, span=here), traffic=traffic, span=here)
        for axis, word, traffic in (("dp", "ring", Traffic.REDUCTION), ("pp", "chain", Traffic.POINT_TO_POINT))
    )
    job = Job(
        name="j",
        fabric=fabric,
        parallelism=Parallelism(tp=TP, dp=dp, pp=PP, span=here),
        dialect=Dialect.MEGATRON,
        order=("tp", "cp", "ep", "dp", "pp"),
        phases=phases,
        pipeline=Pipeline(kind=PipelineKind.GPIPE, span=here),
        span=here,
    )
    sink = Diagnostics()
    plan = build_plan(Model(job=job, requirements=(), parameters={}, sources=(here.source,)), sink)
    if plan is None:
        raise SystemExit("\n".join(d.message for d in sink))
    return plan


def naive(tp: int, dp: int, pp: int) -> Iterator[str]:
    """The same file by nested loops; rank = pp * (dp * tp) + dp * tp + tp, dp and pp at least 3."""
    ranks = tp * dp * pp
    for number in range(2**pp):
        bits = [number >> (pp - 1 - stage) & 1 for stage in range(pp)]
        yield f"BW {number}\n"
        for i in range(ranks):
            row = []
            for j in range(ranks):
                row.append(f"{_bandwidth(i, j, tp, dp, pp, bits)}")
            yield " ".join(row) + "\n"
        yield "END\n"


def _bandwidth(i: int, j: int, tp: int, dp: int, pp: int, bits: list[int]) -> int:
    tp_i, dp_i, pp_i = i % tp, i // tp % dp, i // (tp * dp)
    tp_j, dp_j, pp_j = j % tp, j // tp % dp, j // (tp * dp)
    if i != j and dp_i == dp_j and pp_i == pp_j:
        return SCALE_UP
    if tp_i == tp_j and dp_i == dp_j and abs(pp_i - pp_j) == 1 and bits[pp_i] and bits[pp_j]:
        return SCALE_OUT
    if tp_i == tp_j and pp_i == pp_j and (dp_i - dp_j) % dp in (1, dp - 1):
        joined = bits[pp_i] and ((pp_i > 0 and bits[pp_i - 1]) or (pp_i < pp - 1 and bits[pp_i + 1]))
        return 0 if joined else SCALE_OUT
    return 0


def ours(gpus: int, directory: Path) -> Path:
    plan = make_plan(gpus)
    for name, chunks in BACKEND.write(plan, Options()):
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            file.writelines(chunks)
    return directory / SCHEDULES


def naively(gpus: int, directory: Path) -> Path:
    path = directory / "naive.txt"
    with path.open("w", newline="\n") as file:
        file.writelines(naive(TP, gpus // (TP * PP), PP))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gpus", nargs="*", type=int, default=[128, 512, 2048])
    print(f"{'GPUs':>6} {'size':>12} {'naive':>10} {'opusc':>10} {'ratio':>7}  same bytes")
    for gpus in parser.parse_args().gpus:
        if gpus % (TP * PP) or gpus // (TP * PP) < 3:
            raise SystemExit(f"{gpus} GPUs: must be a multiple of {TP * PP}, at least {3 * TP * PP}")
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            fast = slow = float("inf")
            for _ in range(3 if gpus <= 512 else 1):
                begin = time.perf_counter()
                mine = ours(gpus, directory)
                between = time.perf_counter()
                theirs = naively(gpus, directory)
                end = time.perf_counter()
                fast, slow = min(fast, between - begin), min(slow, end - between)
            same = filecmp.cmp(mine, theirs, shallow=False)
            size = mine.stat().st_size
        print(f"{gpus:>6,} {size:>12,} {slow:>9.3f}s {fast:>9.3f}s {slow / fast:>6.0f}x  {'yes' if same else 'NO'}")
        if not same:
            raise SystemExit("the two files differ")


if __name__ == "__main__":
    main()
