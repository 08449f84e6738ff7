"""OCP optical circuit switches over gNMI: SetRequests as the target `ocp-gnmi` writes them.

The messages are pygnmi's; the channel is gRPC's own, since pygnmi's client trusts whatever certificate it is shown.
"""

import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from opusc.backends.ocp_gnmi import BACKEND
from opusc.backends.switch_files import Pairs
from opusc.control.access import Access
from opusc.control.device import Garbled, Held, NoEntry, Refused, Unreachable, Untrusted
from opusc.control.places import Place
from opusc.plan.plan import Switch

__all__ = ["Gnmi"]

T = TypeVar("T")

_PATH = "/ocp-ocs-optical-switch-connections:connections"
_ENTRY = "port-connection"
_JSON_IETF, _CONFIG = 4, 1  # Encoding and GetRequest.DataType of gnmi.proto
_MESSAGE = 64 << 20  # bytes; 10,000 connections take two MB


class Gnmi:
    """One channel."""

    def __init__(self, switch: Switch, place: Place, access: Access, reply: int) -> None:
        import grpc
        from pygnmi.create_gnmi_path import gnmi_path_generator
        from pygnmi.spec.v080 import gnmi_pb2, gnmi_pb2_grpc

        self._switch, self._messages, self._path = switch, gnmi_pb2, gnmi_path_generator
        self._names: dict[tuple[str, str], str] = {}  # of the connections that were read
        self._seconds = reply / 1000
        [wire] = BACKEND.wires
        assert wire.change is not None
        self._change = wire.change
        self._metadata = [(k, v) for k, v in (("username", access.user), ("password", access.password)) if v]
        options: list[tuple[str, Any]] = [
            ("grpc.max_receive_message_length", _MESSAGE),
            ("grpc.max_send_message_length", _MESSAGE),
            ("grpc.enable_retries", 0),
        ]
        if place.tls:
            credentials, more = _credentials(place, access, self._seconds)
            self._channel = grpc.secure_channel(str(place), credentials, options=[*options, *more])
        else:
            self._channel = grpc.insecure_channel(str(place), options=options)
        self._stub = gnmi_pb2_grpc.gNMIStub(self._channel)
        try:
            self._do(lambda: self._stub.Capabilities(gnmi_pb2.CapabilityRequest(), **self._call))
        except BaseException:
            self.close()
            raise

    @property
    def _call(self) -> dict[str, Any]:
        return {"timeout": self._seconds, "metadata": self._metadata}

    def read(self) -> Held:
        request = self._messages.GetRequest(path=[self._path(_PATH)], type=_CONFIG, encoding=_JSON_IETF)
        response = self._do(lambda: self._stub.Get(request, **self._call))
        self._names = {}
        for notification in response.notification:
            for update in notification.update:
                self._names.update(_connections(update.val.json_ietf_val or update.val.json_val))
        return frozenset(self._names)

    def change(self, disconnect: Pairs, connect: Pairs) -> None:
        steps = json.loads(self._change(self._switch, disconnect, connect))
        update = [
            self._messages.Update(
                path=self._path(step["path"]),
                val=self._messages.TypedValue(json_ietf_val=json.dumps(step["val"]).encode()),
            )
            for step in steps.get("update", [])
        ]
        # Whoever made a connection has named it, so it goes by the name that it was read with.
        gone = [
            self._path(f"{_PATH}/{_ENTRY}[name={self._names[pair]}]" if pair in self._names else path)
            for pair, path in zip(disconnect, steps.get("delete", []), strict=True)
        ]
        request = self._messages.SetRequest(delete=gone, update=update)
        self._do(lambda: self._stub.Set(request, **self._call))

    def close(self) -> None:
        self._channel.close()

    def _do(self, work: Callable[[], T]) -> T:
        import grpc

        try:
            return work()
        except grpc.RpcError as error:
            code, said = error.code(), str(error.details() or "")
            if code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
                raise NoEntry(said or str(code)) from None
            if code is grpc.StatusCode.UNAVAILABLE and ("CERTIFICATE" in said.upper() or "peer name" in said.lower()):
                raise Untrusted(said) from None
            if code is grpc.StatusCode.UNAVAILABLE:
                raise Unreachable(said or "no connection") from None
            if code is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise Unreachable("no answer in time") from None
            raise Refused(said or str(code)) from None


def _connections(value: bytes) -> dict[tuple[str, str], str]:
    """The names of all connections of a container by their ends, with or without the prefixes of RFC 7951."""
    if not value:
        return {}
    try:
        tree = {name.rpartition(":")[2]: child for name, child in json.loads(value).items()}
        tree = {name.rpartition(":")[2]: child for name, child in tree.get("connections", tree).items()}
        rows = [(row["config"], str(row["name"])) for row in tree.get(_ENTRY, [])]
        return {(str(row["input-port-name"]), str(row["output-port-name"])): name for row, name in rows}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Garbled(f"its connections are not of the model: {error!r}") from None


def _credentials(place: Place, access: Access, seconds: float) -> tuple[Any, list[tuple[str, str]]]:
    """TLS credentials of a channel, and options that go with them. Verified unless `insecure`, which takes what the
    switch shows for its own root."""
    import grpc

    own = [None if path is None else Path(path).read_bytes() for path in (access.client_key, access.client_cert)]
    roots = None if access.ca is None else Path(access.ca).read_bytes()
    more: list[tuple[str, str]] = []
    if access.insecure:
        try:
            roots = ssl.get_server_certificate((place.host, place.port), timeout=seconds).encode()
        except (OSError, ssl.SSLError) as error:
            raise Unreachable(f"no TLS: {error}") from None
        more = [("grpc.ssl_target_name_override", _name_in(roots) or place.host)]
    return grpc.ssl_channel_credentials(roots, own[0], own[1]), more


def _name_in(certificate: bytes) -> str | None:
    """A name that a certificate is for."""
    from cryptography import x509

    read = x509.load_pem_x509_certificate(certificate)
    try:
        names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        found = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
    except x509.ExtensionNotFound:
        found = [str(a.value) for a in read.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    return found[0] if found else None
