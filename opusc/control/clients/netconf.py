"""Polatis over NETCONF (SSH, port 830): messages as the target `polatis` writes them, through ncclient.

The host key must be known: in ~/.ssh/known_hosts, or in the file that was given.
"""

import re
from collections.abc import Callable
from typing import Any, TypeVar
from xml.etree import ElementTree

from opusc.backends.polatis import BACKEND
from opusc.backends.switch_files import Pairs
from opusc.control.access import Access
from opusc.control.device import Garbled, Held, NoEntry, Refused, Unreachable, Untrusted
from opusc.control.places import Place
from opusc.plan.plan import Switch

__all__ = ["Netconf"]

T = TypeVar("T")

_SWITCH = "{http://www.polatis.com/yang/optical-switch}"
_FILTER = '<cross-connects xmlns="http://www.polatis.com/yang/optical-switch"/>'


class Netconf:
    """One session."""

    def __init__(self, switch: Switch, place: Place, access: Access, reply: int) -> None:
        from ncclient import manager, transport

        self._switch = switch
        [wire] = [wire for wire in BACKEND.wires if wire.name == "netconf"]
        assert wire.change is not None
        self._change = wire.change
        handler = manager.make_device_handler({"name": "default"})
        session = transport.SSHSession(handler)
        self._session: Any = None

        def connect() -> Any:
            if access.known_hosts is not None:
                session.load_known_hosts(access.known_hosts)
            elif not access.insecure:
                session.load_known_hosts()
            session.connect(
                host=place.host,
                port=place.port,
                timeout=reply / 1000,
                username=access.user,
                password=access.password,
                key_filename=access.ssh_key,
                hostkey_verify=not access.insecure,
                allow_agent=access.agent,
                look_for_keys=access.agent and access.ssh_key is None,
            )
            return manager.Manager(session, handler, timeout=reply / 1000)

        try:
            self._session = _do(connect)
        except BaseException:
            if session.transport:
                session.close()
            raise

    def read(self) -> Held:
        text = _do(lambda: self._session.get_config("running", filter=("subtree", _FILTER)).data_xml)
        try:
            root = ElementTree.fromstring(text)
        except ElementTree.ParseError as error:
            raise Garbled(f"its configuration is no XML: {error}") from None
        found = set()
        for pair in root.iter(f"{_SWITCH}pair"):
            ends = [pair.findtext(f"{_SWITCH}{name}") for name in ("ingress", "egress")]
            if ends[0] is None or ends[1] is None:
                raise Garbled("a pair of its configuration has no ingress or no egress")
            found.add((ends[0], ends[1]))
        return frozenset(found)

    def change(self, disconnect: Pairs, connect: Pairs) -> None:
        from ncclient.xml_ import to_ele

        for message in self._change(self._switch, disconnect, connect).split("]]>]]>"):
            plain = re.sub(r"<!--.*?-->", "", message).strip()
            _do(lambda plain=plain: self._session.dispatch(to_ele(plain)))  # type: ignore[misc]

    def close(self) -> None:
        from contextlib import suppress

        with suppress(Exception):
            self._session.close_session()


def _do(work: Callable[[], T]) -> T:
    """What ncclient and the SSH library raise, as our own troubles."""
    from ncclient.operations import RPCError, TimeoutExpiredError
    from ncclient.transport import errors

    try:
        return work()
    except errors.SSHUnknownHostError as error:
        raise Untrusted(f"its host key is not known ({error.fingerprint})") from None
    except errors.AuthenticationError as error:
        raise NoEntry(str(error) or "it does not take our credentials") from None
    except RPCError as error:
        raise Refused(" ".join(str(error.message or error.tag or error).split())) from None
    except TimeoutExpiredError:
        raise Unreachable("no answer in time") from None
    except errors.TransportError as error:
        raise Unreachable(str(error) or "the connection broke") from None
    except OSError as error:
        raise Unreachable(error.strerror or str(error)) from None
    except Exception as error:  # paramiko's own, of which it has many
        if "BadHostKey" in type(error).__name__ or "host key" in str(error).lower():
            raise Untrusted(str(error)) from None
        if type(error).__module__.startswith("paramiko"):
            raise Unreachable(str(error) or type(error).__name__) from None
        raise
