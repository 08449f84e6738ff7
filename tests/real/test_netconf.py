"""A real NETCONF server (netconfd behind sshd) takes the Polatis messages, and holds what each configuration says."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from opusc.backends.switch_files import slug
from opusc.plan.configurations import walk
from opusc.plan.plan import Plan
from tests.real.conftest import NetconfServer, module

SWITCH = "{http://www.polatis.com/yang/optical-switch}"
Files = Callable[[str], tuple[Plan, Path]]


@pytest.fixture
def session(netconf_server: NetconfServer) -> Iterator[Any]:
    """An ncclient session with the server."""
    manager = module("ncclient.manager")
    connected = manager.connect(
        host="127.0.0.1", port=netconf_server.port, username="root", key_filename=str(netconf_server.user_key),
        hostkey_verify=False, allow_agent=False, look_for_keys=False, timeout=20,
    )  # fmt: skip
    yield connected
    connected.close_session()


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
