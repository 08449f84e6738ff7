"""Target `calient`: Calient S-series switches, over REST or TL1.

Known from client code only (QualiSystems/cloudshell-L1-calient and others); no manual of the interface is
public. Ports are called `shelf.module.port`, which only the program can say. The hardware guide of the S320
(page 44) asks for explicit deletes before adds: a bulk change then takes less than 200 ms, and up to 500 ms if
the switch has to resolve the conflicts itself.
"""

import json
import re

from opusc.backends.switch_files import Pairs, SwitchTarget, Wire
from opusc.plan.plan import Switch

__all__ = ["BACKEND"]

_GROUP = "SYSTEM"
_ADD, _DELETE = "/rest/crossconnects/?id=badd", "/rest/crossconnects/?id=bdel"
_DELETE_ALL = "/rest/crossconnects/?id=deleteall"


# --- REST: a list of requests, to be posted in order ---------------------------------------------


def _post(path: str, body: object) -> dict[str, object]:
    return {"method": "POST", "path": path, "body": body}


def _adds(pairs: Pairs) -> list[dict[str, object]]:
    return [_post(_ADD, [{"in": a, "out": b, "dir": "uni"} for a, b in pairs])] if pairs else []


def _rest_whole(switch: Switch, pairs: Pairs) -> str:
    """Everything away, then this set: the switch is dark in between."""
    return json.dumps([_post(_DELETE_ALL, []), *_adds(pairs)], indent=2) + "\n"


def _rest_change(switch: Switch, disconnect: Pairs, connect: Pairs) -> str:
    gone = [_post(_DELETE, [{"conn": f"{a}>{b}"} for a, b in disconnect])] if disconnect else []
    return json.dumps(gone + _adds(connect), indent=2) + "\n"


def _read_rest(text: str, first: str) -> tuple[Pairs, Pairs]:
    requests = {request["path"]: request["body"] for request in json.loads(text)}
    if list(requests) not in ([first, _ADD], [first], [_ADD]):
        raise ValueError("deletes come before adds")
    gone = tuple(tuple(row["conn"].split(">")) for row in requests.get(_DELETE, []))
    return tuple((a, b) for a, b in gone), tuple((row["in"], row["out"]) for row in requests.get(_ADD, []))


def _read_rest_whole(text: str) -> Pairs:
    return _read_rest(text, _DELETE_ALL)[1]


def _read_rest_change(text: str) -> tuple[Pairs, Pairs]:
    return _read_rest(text, _DELETE)


# --- TL1 -----------------------------------------------------------------------------------------


def _enter(pairs: Pairs, tag: int) -> list[str]:
    """A cross-connect is entered and activated."""
    lines = []
    for at, (a, b) in enumerate(pairs):
        lines += [
            f"ENT-CRS::{a},{b}:{tag + 2 * at}::{_GROUP},1WAY;",
            f"ACT-CRS::{a},{b}:{tag + 2 * at + 1}::{a}>{b},{_GROUP};",
        ]
    return lines


def _tl1_change(switch: Switch, disconnect: Pairs, connect: Pairs) -> str:
    lines = []
    for at, (a, b) in enumerate(disconnect):
        lines += [
            f"CANC-CRS::{a},{b}:{2 * at + 1}::,{_GROUP},{a}>{b};",
            f"DLT-CRS::{a},{b}:{2 * at + 2}::,{_GROUP},{a}>{b};",
        ]
    return "".join(f"{line}\n" for line in lines + _enter(connect, len(lines) + 1))


def _tl1_whole(switch: Switch, pairs: Pairs) -> str:
    """The set for a switch that holds nothing."""
    return "".join(f"{line}\n" for line in _enter(pairs, 1))


def _read_tl1_change(text: str) -> tuple[Pairs, Pairs]:
    found: dict[str, list[tuple[str, str]]] = {verb: [] for verb in ("CANC", "DLT", "ENT", "ACT")}
    for at, line in enumerate(text.splitlines(), 1):
        match = re.fullmatch(rf"(CANC|DLT|ENT|ACT)-CRS::([\w.]+),([\w.]+):{at}::.*;", line)
        if match is None:
            raise ValueError(f"line {at} is no command")
        if match[1] in ("CANC", "DLT") and found["ENT"]:
            raise ValueError("a cross-connect is deleted after another was entered")
        found[match[1]].append((match[2], match[3]))
    if found["CANC"] != found["DLT"] or found["ENT"] != found["ACT"]:
        raise ValueError("each cross-connect is cancelled and deleted, or entered and activated")
    return tuple(found["DLT"]), tuple(found["ENT"])


def _read_tl1_whole(text: str) -> Pairs:
    return _read_tl1_change(text)[1]


BACKEND = SwitchTarget(
    name="calient",
    summary="Calient S-series: REST and TL1, as known from client code only",
    driver="calient",
    names=lambda switch: None,
    crossbar_only=True,
    called=(r"[\w.]+", r"[\w.]+"),
    wires=(
        Wire("rest", "json", _rest_whole, _read_rest_whole, _rest_change, _read_rest_change),
        Wire("tl1", "txt", _tl1_whole, _read_tl1_whole, _tl1_change, _read_tl1_change),
    ),
)
