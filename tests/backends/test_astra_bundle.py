"""The run directory of the reconfigurable simulator: traces decoded by the protobuf library from a schema of our own,
communicators and messages checked against the matrices, from the files alone."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml

from opusc.backends.astra_sim import BACKEND
from opusc.backends.base import Options
from opusc.backends.validate import validate
from opusc.cli.main import main
from opusc.diagnostics import Diagnostics
from opusc.driver import compile_source
from opusc.plan.plan import Plan
from opusc.plan.ranks import grid_of, groups
from opusc.source import Source

ROOT = Path(__file__).parents[2]
RAILS = ROOT / "examples" / "photonic-rails" / "photonic-rails.opus"
COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The module that protoc makes of chakra.proto."""
    tools = pytest.importorskip("grpc_tools.protoc", reason="grpcio-tools is in the extra `test`")
    out = tmp_path_factory.mktemp("proto")
    here = Path(__file__).parent
    assert tools.main(["protoc", f"-I{here}", f"--python_out={out}", str(here / "chakra.proto")]) == 0
    sys.path.insert(0, str(out))
    try:
        return importlib.import_module("chakra_pb2")
    finally:
        sys.path.remove(str(out))


class Run(NamedTuple):
    plan: Plan
    folder: Path
    nodes: dict[int, list[Any]]  # by rank, as protobuf decodes them


def messages(data: bytes) -> Iterator[bytes]:
    """Frames: a varint and so many bytes."""
    at = 0
    while at < len(data):
        length = shift = 0
        while True:
            byte = data[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        yield data[at : at + length]
        at += length


@pytest.fixture(scope="module")
def run(schema: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """photonic-rails with dp = 2: 64 ranks, tp 8, pp 4."""
    place = tmp_path_factory.mktemp("run")
    plan = compile_source(Source("p", RAILS.read_text()), RAILS.parent, {"dp": 2}).plan
    for name, chunks in BACKEND.write(plan, Options()):
        path = place / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"".join(chunks))
    folder = place / "astra-sim"
    nodes = {}
    for rank in range(plan.world):
        first, *rest = messages((folder / f"workload.{rank}.et").read_bytes())
        assert schema.GlobalMetadata.FromString(first).version == "0.0.4"
        nodes[rank] = [schema.Node.FromString(message) for message in rest]
    return Run(plan, folder, nodes)


def attributes(node: Any) -> dict[str, Any]:
    return {attr.name: getattr(attr, attr.WhichOneof("value")) for attr in node.attr}


def matrices(folder: Path) -> list[np.ndarray]:
    found = []
    for block in (folder / "schedules.txt").read_text().split("BW ")[1:]:
        rows = block.split("END")[0].splitlines()[1:]
        found.append(np.array([[float(cell) for cell in row.split()] for row in rows]))
    return found


def test_what_is_written_is_read_back(run: Run) -> None:
    sink = Diagnostics()
    assert validate(BACKEND, run.plan, run.folder.parent, sink) > 64
    assert list(sink) == []


def test_every_dependency_exists_and_comes_from_before(run: Run) -> None:
    for nodes in run.nodes.values():
        ids = [node.id for node in nodes]
        assert ids == sorted(set(ids))
        known = set(ids)
        for node in nodes:
            assert set(node.data_deps) <= known
            assert not node.ctrl_deps
            assert attributes(node)["is_cpu_op"] is False


def test_messages_have_their_other_end(run: Run) -> None:
    sent: dict[tuple[int, int, int], int] = {}
    heard: dict[tuple[int, int, int], int] = {}
    for rank, nodes in run.nodes.items():
        for node in nodes:
            if node.type in (SEND, RECEIVE):
                a = attributes(node)
                own, table = ("comm_src", sent) if node.type == SEND else ("comm_dst", heard)
                assert a[own] == rank
                key = (a["comm_src"], a["comm_dst"], a["comm_tag"])
                assert key not in table, "tags tell messages apart"
                table[key] = a["comm_size"]
    assert sent == heard != {}


def test_messages_run_over_circuits_of_a_configuration_in_which_both_stages_are_joined(run: Run) -> None:
    found = matrices(run.folder)
    stages = 4
    assert len(found) == 1 << stages
    per_stage = run.plan.world // stages
    for rank, nodes in run.nodes.items():
        for node in nodes:
            if node.type == SEND:
                peer = attributes(node)["comm_dst"]
                bits = sum(1 << (stages - 1 - end // per_stage) for end in (rank, peer))
                assert found[bits][rank, peer] > 0


def test_communicators_are_rings_of_links(run: Run) -> None:
    """Members in ring order: each has a link to the next, the last to the first, where its stage has its ring."""
    members = {int(k): v for k, v in json.loads((run.folder / "workload.json").read_text()).items()}
    assert 0 not in members
    found = matrices(run.folder)
    for ranks in members.values():
        pairs = list(zip(ranks, [*ranks[1:], ranks[0]], strict=True))
        assert all(found[0][a, b] > 0 for a, b in pairs)
    inside = {tuple(r) for r in members.values() if all(matrix[r[0], r[1]] > 0 for matrix in found)}
    spec = next(p.spec for p in run.plan.phases if p.name == "dp")
    dp = {tuple(sorted(g)) for g in groups(grid_of(run.plan.model.job, spec.axes), spec.axes).tolist()}
    assert {tuple(sorted(r)) for r in members.values()} - {tuple(sorted(r)) for r in inside} == dp
    used = {attributes(node)["pg_name"] for nodes in run.nodes.values() for node in nodes if node.type == COLLECTIVE}
    assert {int(name) for name in used} <= set(members)
    for rank, nodes in run.nodes.items():
        for node in nodes:
            if node.type == COLLECTIVE:
                assert rank in members[int(attributes(node)["pg_name"])]


def test_bytes_are_those_that_simulate_counts(run: Run) -> None:
    """An all-gather states the shard of a rank, the others the whole buffer; no collective is empty."""
    kinds: dict[int, set[int]] = {}
    for node in run.nodes[0]:
        if node.type == COLLECTIVE:
            a = attributes(node)
            kinds.setdefault(a["comm_type"], set()).add(a["comm_size"])
    assert set(kinds) <= {0, 2, 6, 7}
    assert all(size > 0 for sizes in kinds.values() for size in sizes)
    layer = 8192 * 8192
    assert any(size % layer == 0 or layer % size == 0 for sizes in kinds.values() for size in sizes)


def test_compute_has_operations_and_bytes(run: Run) -> None:
    compute = [attributes(node) for node in run.nodes[0] if node.type == COMPUTE]
    assert compute
    assert all(a["num_ops"] > 0 and a["tensor_size"] > 0 for a in compute), "the simulator skips empty nodes"


def test_the_small_files(run: Run) -> None:
    system = json.loads((run.folder / "system.json").read_text())
    assert system["roofline-enabled"] == 1
    assert system["all-reduce-implementation"] == ["ring"]
    assert json.loads((run.folder / "remote_memory.json").read_text()) == {"memory-type": "NO_MEMORY_EXPANSION"}
    network = yaml.safe_load((run.folder / "network.yml").read_text())
    assert network["reconfig_time"] == [10_000_000]
    requests = yaml.safe_load((run.folder / "rank_comm_groups.yaml").read_text())
    groups_of = {int(k) for k in json.loads((run.folder / "workload.json").read_text())}
    for own in requests.values():
        for what, after in own.items():
            assert what == -1 or what in groups_of or 0 <= what < run.plan.world
            assert after == sorted(after)


def test_the_script_fails_unless_every_rank_finishes(run: Run, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    copy.mkdir()
    (copy / "run.sh").write_bytes((run.folder / "run.sh").read_bytes())
    fake = tmp_path / "simulator"
    for count, code in ((64, 0), (63, 1)):
        lines = "\n".join(f"echo 'sys[{rank}] finished, 1000 cycles'" for rank in range(count))
        fake.write_text(f"#!/bin/sh\n{lines}\n")
        fake.chmod(0o755)
        done = subprocess.run(["sh", "run.sh", str(fake)], cwd=copy, capture_output=True, text=True)
        assert done.returncode == code
        assert f"{count} of 64 ranks finished" in done.stdout


@pytest.mark.skipif("OPUSC_ASTRA_SIM" not in os.environ, reason="OPUSC_ASTRA_SIM names no simulator")
def test_the_simulator_finishes_every_rank(run: Run) -> None:
    done = subprocess.run(
        ["sh", "run.sh", os.environ["OPUSC_ASTRA_SIM"]], cwd=run.folder, capture_output=True, text=True, timeout=3000
    )
    assert done.returncode == 0, done.stdout + done.stderr


# --- faults --------------------------------------------------------------------------------------


def swap_members(folder: Path) -> None:
    found = json.loads((folder / "workload.json").read_text())
    found["1"] = found["1"][::-1]
    (folder / "workload.json").write_text(json.dumps(found))


def flip_a_byte(folder: Path) -> None:
    path = folder / "workload.5.et"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def cut_off(folder: Path) -> None:
    path = folder / "workload.7.et"
    path.write_bytes(path.read_bytes()[:-3])


def exchange(folder: Path) -> None:
    one, other = (folder / f"workload.{rank}.et" for rank in (0, 63))
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def another_peak(folder: Path) -> None:
    path = folder / "system.json"
    path.write_text(path.read_text().replace('"peak-perf": 9', '"peak-perf": 8'))


def other_requests(folder: Path) -> None:
    path = folder / "rank_comm_groups.yaml"
    path.write_text(path.read_text().replace("[0]", "[1]", 1))


def lose_a_trace(folder: Path) -> None:
    (folder / "workload.9.et").unlink()


@pytest.mark.parametrize(
    "fault", [swap_members, flip_a_byte, cut_off, exchange, another_peak, other_requests, lose_a_trace]
)
def test_faults_in_the_files_are_seen(fault: Callable[[Path], None], run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "astra-sim"
    folder.mkdir()
    for path in run.folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    fault(folder)
    sink = Diagnostics()
    validate(BACKEND, run.plan, tmp_path, sink)
    assert [d.code for d in sink] == ["OPUS903"]


# --- what cannot be said -------------------------------------------------------------------------


def test_without_a_model_there_are_no_traces_and_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = RAILS.read_text()
    text = text.replace("  model        = models.llama_96_layers { sequence = 4096 }\n", "")
    text = text.replace('  require overhead < 6 % else "too slow for production"\n', "").replace("use std.models\n", "")
    (tmp_path / "p.opus").write_text(text)
    assert main(["compile", str(tmp_path / "p.opus"), "-t", "astra-sim", "-o", str(tmp_path / "out")]) == 0
    assert "warning[OPUS607]" in capsys.readouterr().err
    written = {path.name for path in (tmp_path / "out" / "astra-sim").iterdir()}
    assert written == {"schedules.txt", "network.yml", "workload.json", "system.json", "remote_memory.json"}
