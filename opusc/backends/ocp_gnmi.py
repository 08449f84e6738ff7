"""Target `ocp-gnmi`: the Open Compute Project's model for optical circuit switches, over gNMI.

Model version 0.8.0 (2026-08-28, a strawman): opencomputeproject/ocp-net-optical-circuit-switching,
connection-management/yang. A file is one SetRequest: paths, and values in JSON_IETF (RFC 7951). gNMI applies
deletes, then replaces, then updates, all or nothing; a whole set replaces the container, a change deletes and
updates single connections and never names one that stays.
"""

import json
import re

from opusc.backends.switch_files import Pairs, SwitchTarget, Wire, sided
from opusc.plan.plan import Switch

__all__ = ["BACKEND"]

_PATH = "/ocp-ocs-optical-switch-connections:connections"
_ENTRY = re.compile(rf"{_PATH}/port-connection\[name=(.+)-(.+)\]")


def _name(a: str, b: str) -> str:
    return f"{a}-{b}"


def _connection(a: str, b: str) -> dict[str, object]:
    name = _name(a, b)
    return {"name": name, "config": {"name": name, "input-port-name": a, "output-port-name": b}}


def _whole(switch: Switch, pairs: Pairs) -> str:
    value = {"port-connection": [_connection(a, b) for a, b in pairs]}
    return json.dumps({"replace": [{"path": _PATH, "val": value}]}, indent=2) + "\n"


def _ends(connection: dict[str, object]) -> tuple[str, str]:
    config = connection["config"]
    assert isinstance(config, dict)
    a, b = str(config["input-port-name"]), str(config["output-port-name"])
    if not connection["name"] == config["name"] == _name(a, b):
        raise ValueError(f"connection {connection['name']} has another name than its ends")
    return a, b


def _read_whole(text: str) -> Pairs:
    request = json.loads(text)
    [step] = request["replace"]
    if list(request) != ["replace"] or step["path"] != _PATH:
        raise ValueError("a whole set is one replace of the container")
    return tuple(_ends(connection) for connection in step["val"]["port-connection"])


def _change(switch: Switch, disconnect: Pairs, connect: Pairs) -> str:
    entry = f"{_PATH}/port-connection[name={{}}]"
    request: dict[str, object] = {}
    if disconnect:
        request["delete"] = [entry.format(_name(a, b)) for a, b in disconnect]
    if connect:
        request["update"] = [{"path": entry.format(_name(a, b)), "val": _connection(a, b)} for a, b in connect]
    return json.dumps(request, indent=2) + "\n"


def _read_change(text: str) -> tuple[Pairs, Pairs]:
    request = json.loads(text)
    gone = []
    for path in request.get("delete", []):
        match = _ENTRY.fullmatch(path)
        if match is None:
            raise ValueError(f"no connection: {path}")
        gone.append((match[1], match[2]))
    come = []
    for step in request.get("update", []):
        ends = _ends(step["val"])
        if step["path"] != f"{_PATH}/port-connection[name={_name(*ends)}]":
            raise ValueError(f"{step['path']} does not name its value")
        come.append(ends)
    return tuple(gone), tuple(come)


BACKEND = SwitchTarget(
    name="ocp-gnmi",
    summary="OCP OCS model 0.8.0: gNMI SetRequests in JSON_IETF",
    driver="ocp_gnmi",
    names=sided,
    crossbar_only=True,
    wires=(Wire("set-request", "json", _whole, _read_whole, _change, _read_change),),
)
