"""The small files of a run directory of ASTRA-sim, and their readers: network, system, memory, communicators, requests.

Keys are those that the published reconfigurable simulator and upstream ASTRA-sim read. "GB/s" is 2^30 bytes per
second in a network and 10^9 in a system file.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from opusc.backends.astra_matrices import decimal_text
from opusc.backends.base import Unreadable
from opusc.plan.plan import Plan
from opusc.schedule.timing import Rates

__all__ = [
    "LINK_LATENCY_NS",
    "MEMORY",
    "Document",
    "Groups",
    "Requests",
    "groups_text",
    "json_text",
    "network_text",
    "read_groups",
    "read_json",
    "read_network",
    "read_requests",
    "requests_text",
    "run_script",
    "system",
]

#: Latency of every link in the published runs, ns (`network.yml` of figures 12-15; ASTRA-sim's HGX-H100 sample).
LINK_LATENCY_NS = Fraction("936.25")

#: Nothing is offloaded.
MEMORY: Mapping[str, Any] = {"memory-type": "NO_MEMORY_EXPANSION"}


@dataclass(frozen=True)
class Document:
    """A file of keys and values."""

    title: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Groups:
    """Communicators: the members of each in ring order."""

    title: str
    members: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True)
class Requests:
    """When each rank asks early: rank, then what it asks for, then after which of its communications."""

    title: str
    ranks: Mapping[int, Mapping[int, tuple[int, ...]]]


def system(plan: Plan, dimensions: int) -> dict[str, Any]:
    """`system.json`: rings on every dimension, and the GPU where the cluster names one.

    `preferred-dataset-splits`, `endpoint-delay` and `active-chunks-per-dimension` are those of the published runs, and
    of the time model.
    """
    rates = Rates(1, 1, 1)
    found: dict[str, Any] = {
        "scheduling-policy": "LIFO",
        "endpoint-delay": rates.endpoint // 1000,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": rates.chunks,
        **{
            f"{name}-implementation": ["ring"] * dimensions
            for name in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
        },
        "collective-optimization": "localBWAware",
    }
    gpu = plan.model.cluster.gpu
    if gpu is not None and gpu.peak and gpu.memory_bandwidth:
        found["local-mem-bw"] = Fraction(gpu.memory_bandwidth, 8 * 10**9)
        found["peak-perf"] = Fraction(gpu.peak, 10**12)
        found["roofline-enabled"] = 1
    return found


# --- JSON ----------------------------------------------------------------------------------------


def json_text(fields: Mapping[str, Any]) -> bytes:
    """One key a line, numbers exact."""
    rows = [f"  {json.dumps(key)}: {_value(value)}" for key, value in fields.items()]
    return ("{\n" + ",\n".join(rows) + "\n}\n").encode()


def _value(value: Any) -> str:
    return decimal_text(value) if isinstance(value, Fraction) else json.dumps(value)


def read_json(path: Path) -> Document:
    """A file that `json_text` wrote. Raises Unreadable."""
    try:
        found = json.loads(path.read_text(encoding="ascii"), parse_float=Fraction)
    except ValueError as error:
        raise Unreadable(f"{path.name}: {error}") from error
    if not isinstance(found, dict):
        raise Unreadable(f"{path.name} is no object")
    return Document(path.name, found)


def groups_text(members: Sequence[Sequence[int]]) -> Iterator[bytes]:
    """The communicators, numbered from 1: 0 means everybody upstream, and crashes the reconfigurable simulator."""
    yield b"{\n"
    for number, ranks in enumerate(members, 1):
        comma = "," if number < len(members) else ""
        yield f'  "{number}": [{", ".join(map(str, ranks))}]{comma}\n'.encode()
    yield b"}\n"


def read_groups(path: Path) -> Groups:
    """Raises Unreadable."""
    found = read_json(path).fields
    try:
        return Groups(path.name, {int(key): tuple(map(int, ranks)) for key, ranks in found.items()})
    except (TypeError, ValueError) as error:
        raise Unreadable(f"{path.name}: {error}") from error


# --- YAML ----------------------------------------------------------------------------------------


def network_text(rows: Iterable[tuple[str, Sequence[str], str]]) -> bytes:
    """`key: [ values ]`, a list even of one, and a remark. The simulator's parser takes lists only."""
    return "".join(f"{key}: [ {', '.join(values)} ]  # {remark}\n" for key, values, remark in rows).encode()


def read_network(path: Path) -> dict[str, list[str]]:
    """The lists of a network file, as text. Raises Unreadable."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        key, colon, rest = line.partition(": [ ")
        value, bracket, _ = rest.partition(" ]")
        if not colon or not bracket or key in found:
            raise Unreadable(f"{path.name}: `{line[:40]}` is not `key: [ value ]`")
        found[key] = value.split(", ")
    return found


def requests_text(ranks: Mapping[int, Mapping[int, Sequence[int]]]) -> Iterator[bytes]:
    """Requests of all ranks that have some."""
    if not any(ranks.values()):
        yield b"{}\n"
    for rank, wanted in ranks.items():
        if wanted:
            rows = "".join(f"  {what}: [{', '.join(map(str, after))}]\n" for what, after in wanted.items())
            yield f"{rank}:\n{rows}".encode()


def read_requests(path: Path) -> Requests:
    """Raises Unreadable."""
    ranks: dict[int, dict[int, tuple[int, ...]]] = {}
    own: dict[int, tuple[int, ...]] = {}
    lines = path.read_text(encoding="ascii").splitlines()
    for line in [] if lines == ["{}"] else lines:
        key, colon, rest = line.partition(":")
        try:
            if not colon:
                raise ValueError("no key")
            if not line.startswith(" "):
                own = ranks[int(key)] = {}
                continue
            own[int(key)] = tuple(map(int, rest.strip(" []").split(", ")))
        except ValueError as error:
            raise Unreadable(f"{path.name}: `{line[:40]}`: {error}") from error
    return Requests(path.name, ranks)


# --- the command ---------------------------------------------------------------------------------


def run_script(about: Sequence[str], options: Sequence[tuple[str, str]], ranks: int, binary: str) -> bytes:
    """A shell script that runs a simulator in its own directory and fails unless every rank finishes.

    The simulators exit with 0 also when a rank waits for ever, append to `log/log.log`, and keep every trace open.
    """
    remarks = "".join(f"# {line}\n" for line in about)
    arguments = " \\\n  ".join(f"--{name}={value}" for name, value in options)
    return f"""#!/bin/sh
{remarks}#
# sh run.sh /path/to/{binary} [MORE OPTIONS]
set -eu
simulator=${{1:?"usage: sh run.sh /path/to/{binary} [MORE OPTIONS]"}}
shift
case $simulator in /*) ;; */*) simulator=$PWD/$simulator ;; esac
cd "$(dirname "$0")"
rm -rf log
ulimit -n {ranks + 256} 2> /dev/null || true
"$simulator" \\
  {arguments} \\
  "$@" > output.txt 2>&1 || {{ tail -n 20 output.txt; exit 1; }}
finished=$(cat output.txt log/log.log 2> /dev/null | grep -o 'sys\\[[0-9]*\\] finished' | sort -u | wc -l)
grep -h -o 'sys\\[0\\] finished, [0-9]* cycles' output.txt log/log.log 2> /dev/null | head -n 1 || true
echo "$finished of {ranks} ranks finished"
[ "$finished" -eq {ranks} ]
""".encode()
