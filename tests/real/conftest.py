"""Real consumers of what opusc writes. Where one is missing the test skips; in CI that is a failure."""

import importlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

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


class NetconfServer(NamedTuple):
    """A server on the loopback interface, whom it is (host key, public) and who may log in (private key of root)."""

    port: int
    host_key: Path
    user_key: Path


YANG = Path(__file__).parent / "yang" / "optical-switch@2018-03-22.yang"


@pytest.fixture
def netconf_server(tmp_path: Path) -> Iterator[NetconfServer]:
    """netconfd with our module, behind an sshd."""
    module("ncclient.manager")
    netconfd, sshd, keygen = program("netconfd"), program("sshd"), program("ssh-keygen")
    subsystem = program("netconf-subsystem")
    if os.geteuid() != 0:
        pytest.skip("sshd and netconfd of this test need root")
    place = tmp_path / "server"
    place.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)], check=True)
    (place / "authorized").write_text((place / "user.pub").read_text())
    port, socket = free_port(), Path(f"/tmp/opusc-{os.getpid()}.sock")
    (place / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {place}/host\nAuthorizedKeysFile {place}/authorized\n"
        f"PidFile {place}/pid\nStrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\n"
        f'Subsystem netconf "{subsystem} --ncxserver-sockname={port}@{socket}"\n'
    )
    os.makedirs("/run/sshd", exist_ok=True)
    log = (place / "log").open("w")
    servers = [
        subprocess.Popen(
            [netconfd, f"--module={YANG}", "--no-startup", "--superuser=root", "--target=running",
             f"--ncxserver-sockname={socket}", f"--port={port}"],
            stdout=log, stderr=log, cwd=place, env={**os.environ, "HOME": str(place)},
        ),
        subprocess.Popen([sshd, "-D", "-f", str(place / "sshd_config")], stdout=log, stderr=log),
    ]  # fmt: skip
    server = NetconfServer(port, place / "host.pub", place / "user")
    assert _answers(server), (place / "log").read_text()[-2000:]
    yield server
    for process in servers:
        process.terminate()
        process.wait(10)
    log.close()
    socket.unlink(missing_ok=True)


def _answers(server: NetconfServer) -> bool:
    manager = module("ncclient.manager")
    for _ in range(100):
        try:
            manager.connect(
                host="127.0.0.1", port=server.port, username="root", key_filename=str(server.user_key),
                hostkey_verify=False, allow_agent=False, look_for_keys=False, timeout=20,
            ).close_session()  # fmt: skip
            return True
        except Exception:
            time.sleep(0.1)
    return False
