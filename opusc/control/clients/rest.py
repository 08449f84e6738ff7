"""Switches over HTTP: Polatis RESTCONF, and the REST interface of Calient's (known from client code only).

HTTPS with a verified certificate unless the address says `http://`; the standard library does all that is needed.
"""

import base64
import http.client
import json
import ssl
from typing import Any

from opusc.backends.calient import BACKEND as CALIENT
from opusc.backends.polatis import BACKEND as POLATIS
from opusc.backends.switch_files import Pairs
from opusc.control.access import Access
from opusc.control.device import Garbled, Held, NoEntry, Refused, Unreachable, Untrusted
from opusc.control.places import Place
from opusc.plan.plan import Switch

__all__ = ["CalientRest", "Restconf"]

_LONGEST = 16 << 20  # bytes of an answer
_CONTAINER = "optical-switch:cross-connects"
_DATA = f"/api/data/{_CONTAINER}"
_YANG_JSON = "application/yang-data+json"


class _Http:
    """One connection that is kept open."""

    def __init__(self, place: Place, access: Access, reply: int) -> None:
        seconds = reply / 1000
        if place.tls:
            context = ssl.create_default_context(cafile=access.ca)
            if access.insecure:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if access.client_cert:
                context.load_cert_chain(access.client_cert, access.client_key)
            self._connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                place.host, place.port, timeout=seconds, context=context
            )
        else:
            self._connection = http.client.HTTPConnection(place.host, place.port, timeout=seconds)
        self._headers: dict[str, str] = {}
        if access.password is not None:
            both = f"{access.user or ''}:{access.password}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(both).decode()}"
        try:
            self._connection.connect()
        except ssl.SSLCertVerificationError as error:
            raise Untrusted(error.verify_message) from None
        except OSError as error:
            raise Unreachable(error.strerror or str(error)) from None

    def ask(self, method: str, path: str, body: object = None, form: str = "application/json") -> Any:
        """The JSON that a request gives; None where the answer is empty. A 404 to GET is an empty container."""
        headers = {"Accept": form, **self._headers}
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), form
        try:
            self._connection.request(method, path, data, headers)
            response = self._connection.getresponse()
            text = response.read(_LONGEST)
        except TimeoutError:
            raise Unreachable("no answer in time") from None
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"the connection broke: {error}") from None
        if response.status in (401, 403):
            raise NoEntry(f"{response.status} {response.reason}")
        if response.status == 404 and method == "GET":
            return None
        if response.status >= 300:
            said = " ".join(text.decode("utf-8", "replace").split())[:200]
            raise Refused(f"{response.status} {response.reason}" + (f": {said}" if said else ""))
        if not text.strip():
            return None
        try:
            return json.loads(text)
        except ValueError:
            raise Garbled(f"its answer is no JSON: {text[:60]!r}") from None

    def close(self) -> None:
        self._connection.close()


class Restconf:
    """Polatis: the whole set in one PUT, which replaces what is there. So a change is made of what was read before it:
    circuits of others are put in again as they were, in the same request."""

    def __init__(self, switch: Switch, place: Place, access: Access, reply: int) -> None:
        self._switch, self._http = switch, _Http(place, access, reply)
        [wire] = [wire for wire in POLATIS.wires if wire.name == "restconf"]
        self._whole = wire.whole

    def read(self) -> Held:
        found = self._http.ask("GET", _DATA, form=_YANG_JSON)
        try:
            rows = [] if found is None else found[_CONTAINER].get("pair", [])
            return frozenset((str(row["ingress"]), str(row["egress"])) for row in rows)
        except (KeyError, TypeError, AttributeError) as error:
            raise Garbled(f"its cross-connects are not of the model: {error!r}") from None

    def change(self, disconnect: Pairs, connect: Pairs) -> None:
        wanted = (self.read() - set(disconnect)) | set(connect)
        body = json.loads(self._whole(self._switch, tuple(sorted(wanted, key=lambda p: (int(p[0]), p[1])))))
        self._http.ask("PUT", _DATA, body, _YANG_JSON)

    def close(self) -> None:
        self._http.close()


class CalientRest:
    """Calient S-series: bulk deletes, then bulk adds."""

    def __init__(self, switch: Switch, place: Place, access: Access, reply: int) -> None:
        self._switch, self._http = switch, _Http(place, access, reply)
        [wire] = [wire for wire in CALIENT.wires if wire.name == "rest"]
        assert wire.change is not None
        self._change = wire.change

    def read(self) -> Held:
        found = self._http.ask("GET", "/rest/crossconnects/?id=list")
        try:
            pairs = [str(row["half1"]["conn"]).split(">") for row in found or ()]
            return frozenset((a, b) for a, b in pairs)
        except (KeyError, TypeError, ValueError) as error:
            raise Garbled(f"its cross-connects are no list of `in>out`: {error!r}") from None

    def change(self, disconnect: Pairs, connect: Pairs) -> None:
        for request in json.loads(self._change(self._switch, disconnect, connect)):
            answer = self._http.ask(request["method"], request["path"], request["body"])
            for row in answer if isinstance(answer, list) else ():
                response = row.get("response", row) if isinstance(row, dict) else {}
                if str(response.get("status", "1")) == "0":  # clients take "0" for a failure
                    raise Refused(f"it could not do one of the circuits: {json.dumps(row)[:200]}")

    def close(self) -> None:
        self._http.close()
