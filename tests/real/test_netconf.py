"""A real NETCONF server (netconfd behind sshd) takes the Polatis messages, and holds what each configuration says."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from opusc.backends.switch_files import slug
from opusc.plan.configurations import walk
from opusc.plan.plan import Plan
from tests.real.conftest import free_port, module, program

YANG = Path(__file__).parent / "yang" / "optical-switch@2018-03-22.yang"
SWITCH = "{http://www.polatis.com/yang/optical-switch}"
Files = Callable[[str], tuple[Plan, Path]]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Any]:
    """An ncclient session with a server that loads our module, on the loopback interface."""
    manager = module("ncclient.manager")
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
    connected = None
    for _ in range(100):
        try:
            connected = manager.connect(
                host="127.0.0.1", port=port, username="root", key_filename=str(place / "user"),
                hostkey_verify=False, allow_agent=False, look_for_keys=False, timeout=20,
            )  # fmt: skip
            break
        except Exception:
            time.sleep(0.1)
    assert connected is not None, (place / "log").read_text()[-2000:]
    yield connected
    connected.close_session()
    for server in servers:
        server.terminate()
        server.wait(10)
    log.close()
    socket.unlink(missing_ok=True)


def held(session: Any) -> dict[str, str]:
    root = ElementTree.fromstring(session.get_config("running").data_xml)
    pairs = root.iter(f"{SWITCH}pair")
    return {p.findtext(f"{SWITCH}ingress", ""): p.findtext(f"{SWITCH}egress", "") for p in pairs}


def send(session: Any, text: str) -> None:
    from ncclient.xml_ import to_ele

    for message in text.split("]]>]]>"):
        session.dispatch(to_ele(message.strip()))


def wanted(folder: Path, name: str) -> dict[str, str]:
    root = ElementTree.fromstring((folder / "netconf" / f"configuration-{name}.xml").read_text())
    pairs = root.iter(f"{SWITCH}pair")
    return {p.findtext(f"{SWITCH}ingress", ""): p.findtext(f"{SWITCH}egress", "") for p in pairs}


def test_a_server_follows_the_changes_of_a_schedule(files: Files, session: Any) -> None:
    plan, folder = files("polatis")
    order = [slug(c.name) for c in walk(plan)]
    send(session, (folder / "netconf" / f"configuration-{order[0]}.xml").read_text())
    assert held(session) == wanted(folder, order[0]) != {}
    for before, after in zip(order, [*order[1:], order[0]], strict=True):
        send(session, (folder / "netconf" / f"change-{before}-to-{after}.xml").read_text())
        assert held(session) == wanted(folder, after)


def test_a_server_refuses_a_change_from_another_state_and_keeps_its_own(files: Files, session: Any) -> None:
    from ncclient.operations import RPCError

    plan, folder = files("polatis")
    first, second = (slug(c.name) for c in walk(plan))
    send(session, (folder / "netconf" / f"configuration-{second}.xml").read_text())
    before = held(session)
    text = (folder / "netconf" / f"change-{first}-to-{second}.xml").read_text()
    with pytest.raises(RPCError):
        send(session, text.split("]]>]]>")[1])  # creates pairs that are there
    assert held(session) == before
