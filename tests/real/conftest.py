"""Real consumers of what opusc writes. Where one is missing the test skips; in CI that is a failure."""

import importlib
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opusc.backends.base import Options
from opusc.backends.emit import emit
from opusc.diagnostics import Diagnostics
from opusc.driver import compile_source
from opusc.plan.plan import Plan
from opusc.source import Source

PROGRAM = """\
opus 1

use std.switches

cluster c {{
  node_count    = 8
  gpus_per_node = 1
  nic           = {{ ports = 2, rate = 200 Gbps, optics = duplex }}
}}

fabric rails {{
  cluster = c
  rail_by = local_rank
  switch  = switches.generic {{ matrix = crossbar, radix = 16, driver = {driver} }}
}}

job j {{
  fabric      = rails
  parallelism = {{ dp = 2, pp = 4 }}
}}
"""
SWITCH = "rails.rail-0"


def missing(what: str) -> None:
    """Skip where people work without this server; fail where CI should have installed it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is not installed, and CI must have it")
    pytest.skip(f"{what} is not installed")


def program(name: str, *places: str) -> str:
    """The path of an executable."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", *places]))
    if found is None:
        missing(name)
    return str(found)


def module(name: str) -> Any:
    """A Python package that only these tests need."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing(f"the Python package {name}")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def files(tmp_path: Path) -> Callable[[str], tuple[Plan, Path]]:
    """A function that compiles the program for a driver and writes its target."""

    def make(target: str) -> tuple[Plan, Path]:
        text = PROGRAM.format(driver=target.replace("-", "_"))
        plan = compile_source(Source("<test>", text), tmp_path).plan
        emit(plan, [target], tmp_path, Options(), Diagnostics())
        return plan, tmp_path / target / SWITCH

    return make
