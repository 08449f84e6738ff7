"""What switches hold, read from their own exports: no connection needed.

Understood, by what is in the text: NETCONF replies and RESTCONF bodies of Polatis, the SCPI answer to
`:oxc:swit:conn:stat?`, `config_db.json` of SONiC, gNMI notifications and SetRequests of the OCP model, Calient's list
of cross-connects, and the whole sets that opusc writes itself.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree

from opusc.control.device import Held, Pair

__all__ = ["held_in"]

_POLATIS = "{http://www.polatis.com/yang/optical-switch}"
_SCPI = re.compile(r"\(@([\d,\s]*)\)\s*,\s*\(@([\d,\s]*)\)")


def held_in(text: str) -> tuple[str, Held]:
    """The format of an export and the cross-connects in it. Raises ValueError with a sentence."""
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith("<"):
        return "NETCONF", frozenset(_netconf(stripped))
    if stripped.startswith(("{", "[")):
        return _json(stripped)
    match = _SCPI.search(stripped)
    if match is not None:
        sides = [[number.strip() for number in side.split(",") if number.strip()] for side in match.groups()]
        if len(sides[0]) != len(sides[1]):
            raise ValueError(f"it lists {len(sides[0])} ingress ports and {len(sides[1])} egress ports")
        return "SCPI", _once(zip(*sides, strict=True))
    raise ValueError("it is neither XML nor JSON, nor an answer over SCPI")


def _netconf(text: str) -> Held:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("a document type has no place in an export")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"it is no XML: {error}") from None
    if not any(element.tag == f"{_POLATIS}cross-connects" for element in root.iter()):
        raise ValueError("it has no `cross-connects` of the model optical-switch")
    found = []
    for pair in root.iter(f"{_POLATIS}pair"):
        ends = [pair.findtext(f"{_POLATIS}{name}") for name in ("ingress", "egress")]
        if ends[0] is None or ends[1] is None:
            raise ValueError("a pair has no ingress or no egress")
        found.append((ends[0].strip(), ends[1].strip()))
    return _once(found)


def _json(text: str) -> tuple[str, Held]:
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise ValueError(f"it is no JSON: {error}") from None
    for name, read in _READERS.items():
        try:
            found = read(tree)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it looks like {name}, and lacks something: {error!r}") from None
        if found is not None:
            return name, _once(found)
    raise ValueError("none of the formats of switches has such a JSON")


def _restconf(tree: Any) -> list[Pair] | None:
    if not isinstance(tree, dict) or "optical-switch:cross-connects" not in tree:
        return None
    rows = tree["optical-switch:cross-connects"].get("pair", [])
    return [(str(row["ingress"]), str(row["egress"])) for row in rows]


def _config_db(tree: Any) -> list[Pair] | None:
    if not isinstance(tree, dict) or not any(name.isupper() for name in tree):
        return None
    return [(str(row["a_side"]), str(row["b_side"])) for row in tree.get("OCS_CROSS_CONNECT", {}).values()]


def _gnmi(tree: Any) -> list[Pair] | None:
    rows = list(_connections(tree))
    if not rows and "port-connection" not in json.dumps(tree):
        return None
    configs = [row["config"] for row in rows]
    return [(str(config["input-port-name"]), str(config["output-port-name"])) for config in configs]


def _connections(tree: Any) -> Iterator[Any]:
    """The entries of every list `port-connection`, wherever it stands: clients wrap them in their own ways."""
    if isinstance(tree, list):
        for item in tree:
            yield from _connections(item)
    elif isinstance(tree, dict):
        for name, value in tree.items():
            if name.rpartition(":")[2] == "port-connection" and isinstance(value, list):
                yield from value
            else:
                yield from _connections(value)


def _calient(tree: Any) -> list[Pair] | None:
    if not isinstance(tree, list):
        return None
    found = []
    for row in tree:
        if "half1" in row:
            first, second = str(row["half1"]["conn"]).split(">")
            found.append((first, second))
        elif "body" in row:  # our own whole sets: requests to post
            found += [(str(one["in"]), str(one["out"])) for one in row["body"] if "in" in one]
    return found


_READERS: dict[str, Callable[[Any], list[Pair] | None]] = {
    "RESTCONF": _restconf,
    "gNMI": _gnmi,
    "CONFIG_DB": _config_db,
    "Calient REST": _calient,
}


def _once(pairs: Any) -> Held:
    """Each port once on its side: an export that says otherwise is damaged."""
    found = list(pairs)
    for side, name in enumerate(("ingress", "egress")):
        counted = Counter(pair[side] for pair in found)
        if len(counted) < len(found):
            raise ValueError(f"{name} {counted.most_common(1)[0][0]} has two circuits")
    return frozenset(found)
