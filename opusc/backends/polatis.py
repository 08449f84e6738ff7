"""Target `polatis`: HUBER+SUHNER Polatis switches, over NETCONF, RESTCONF, SCPI or TL1.

Ports are 1..N and N + 1..2N (an `NxCC` model joins any two of 1..N). Sources: YANG `optical-switch`, revision
2018-03-22, in the ONOS repository (opennetworkinglab/onos, models/polatis); RESTCONF, SCPI and TL1 as working
clients use them (QualiSystems/cloudshell-L1-polatis and others), since no manual is public.

An edit that deletes an ingress and creates it anew would name one list key twice in one message, which servers
merge; so a change over NETCONF is two messages in one file, separated by the end-of-message mark `]]>]]>` of RFC
6242, to be sent one after the other.
"""

import json
import re
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from opusc.backends.switch_files import Pairs, SwitchTarget, Wire, numbered
from opusc.plan.plan import Switch

__all__ = ["BACKEND"]

_NETCONF = "urn:ietf:params:xml:ns:netconf:base:1.0"
_SWITCH = "http://www.polatis.com/yang/optical-switch"
_END = "\n]]>]]>\n"


# --- NETCONF -------------------------------------------------------------------------------------


def _edit(lines: list[str], container: str = "", default: str = "none") -> str:
    body = "\n".join(f"      {line}" for line in lines)
    return (
        f'<edit-config xmlns="{_NETCONF}">\n'
        "  <target><running/></target>\n"
        f"  <default-operation>{default}</default-operation>\n"
        "  <error-option>rollback-on-error</error-option>\n"
        f'  <config xmlns:nc="{_NETCONF}">\n'
        f'    <cross-connects xmlns="{_SWITCH}"{container}>\n'
        + (f"{body}\n" if lines else "")
        + "    </cross-connects>\n  </config>\n</edit-config>"
    )


def _pair(ingress: str, egress: str, operation: str = "") -> str:
    attribute = f' nc:operation="{operation}"' if operation else ""
    ends = f"<ingress>{escape(ingress)}</ingress>" + (f"<egress>{escape(egress)}</egress>" if egress else "")
    return f"<pair{attribute}>{ends}</pair>"


def _netconf_whole(switch: Switch, pairs: Pairs) -> str:
    return _edit([_pair(a, b) for a, b in pairs], ' nc:operation="replace"') + "\n"


def _netconf_change(switch: Switch, disconnect: Pairs, connect: Pairs) -> str:
    # The egress stands in a comment: only the key deletes, and a person may want to see what goes.
    gone = [f"{_pair(a, '', 'delete')} <!-- from {escape(b)} -->" for a, b in disconnect]
    messages = [_edit(gone)] if gone else []
    # A switch that holds nothing may have no container either: `merge` makes it, `none` would fail.
    messages += [_edit([_pair(a, b, "create") for a, b in connect], default="merge")] if connect else []
    return _END.join(messages) + "\n"


def _netconf_pairs(text: str) -> list[tuple[str | None, str, str]]:
    """(operation, ingress, egress or "") of every pair of a message."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("a document type has no place in a configuration")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from None
    found = []
    for pair in root.iter(f"{{{_SWITCH}}}pair"):
        ends = [pair.findtext(f"{{{_SWITCH}}}{name}", "") for name in ("ingress", "egress")]
        found.append((pair.get(f"{{{_NETCONF}}}operation"), ends[0], ends[1]))
    return found


def _read_netconf_whole(text: str) -> Pairs:
    return tuple((a, b) for _, a, b in _netconf_pairs(text))


def _read_netconf_change(text: str) -> tuple[Pairs, Pairs]:
    was = dict(re.findall(r"<ingress>([^<]+)</ingress></pair> <!-- from ([^<]+) -->", text))
    found = [pair for message in text.split(_END) for pair in _netconf_pairs(message)]
    kinds = [kind for kind, *_ in found]
    if kinds != sorted(kinds, key=lambda kind: ("delete", "create").index(kind or "")):
        raise ValueError("a pair is created before another is deleted")
    gone = tuple((a, was[a]) for kind, a, _ in found if kind == "delete")
    return gone, tuple((a, b) for kind, a, b in found if kind == "create")


# --- RESTCONF ------------------------------------------------------------------------------------

_CONTAINER = "optical-switch:cross-connects"


def _restconf_whole(switch: Switch, pairs: Pairs) -> str:
    """The body of PUT /api/data/optical-switch:cross-connects, which replaces the whole set."""
    rows = [{"ingress": int(a), "egress": int(b)} for a, b in pairs]
    return json.dumps({_CONTAINER: {"pair": rows}}, indent=2) + "\n"


def _read_restconf_whole(text: str) -> Pairs:
    return tuple((str(row["ingress"]), str(row["egress"])) for row in json.loads(text)[_CONTAINER]["pair"])


# --- SCPI ----------------------------------------------------------------------------------------


def _scpi(command: str, pairs: Pairs) -> str:
    return f":oxc:swit:conn:{command} (@{','.join(a for a, _ in pairs)}),(@{','.join(b for _, b in pairs)})\n"


def _scpi_whole(switch: Switch, pairs: Pairs) -> str:
    return _scpi("only", pairs) if pairs else ":oxc:swit:disc:all\n"


def _scpi_change(switch: Switch, disconnect: Pairs, connect: Pairs) -> str:
    return (_scpi("sub", disconnect) if disconnect else "") + (_scpi("add", connect) if connect else "")


def _scpi_lines(text: str) -> list[tuple[str, Pairs]]:
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r":oxc:swit:conn:(\w+) \(@([\d,]*)\),\(@([\d,]*)\)", line)
        if match is None and line != ":oxc:swit:disc:all":
            raise ValueError(f"no command: {line}")
        sides = [] if match is None else [match[2].split(","), match[3].split(",")]
        found.append((match[1] if match else "only", tuple(zip(*sides, strict=True)) if sides else ()))
    return found


def _read_scpi_whole(text: str) -> Pairs:
    [(command, pairs)] = _scpi_lines(text)
    if command != "only":
        raise ValueError(f"{command} is no whole set")
    return pairs


def _read_scpi_change(text: str) -> tuple[Pairs, Pairs]:
    lines = _scpi_lines(text)
    if [command for command, _ in lines] not in (["sub", "add"], ["sub"], ["add"]):
        raise ValueError("a change is `sub`, then `add`")
    commands = dict(lines)
    return commands.get("sub", ()), commands.get("add", ())


# --- TL1 -----------------------------------------------------------------------------------------


def _tl1_whole(switch: Switch, pairs: Pairs) -> str:
    """Every patch of the set; TL1 has no command that replaces all."""
    return "".join(f'ENT-PATCH:"":{a},{b}:{at}:;\n' for at, (a, b) in enumerate(pairs, 1))


def _tl1_change(switch: Switch, disconnect: Pairs, connect: Pairs) -> str:
    gone = "".join(f'DLT-PATCH:"":{a}&{b}:{at}:;\n' for at, (a, b) in enumerate(disconnect, 1))
    come = "".join(f'ENT-PATCH:"":{a},{b}:{at}:;\n' for at, (a, b) in enumerate(connect, len(disconnect) + 1))
    return gone + come


def _read_tl1_change(text: str) -> tuple[Pairs, Pairs]:
    gone: list[tuple[str, str]] = []
    come: list[tuple[str, str]] = []
    for at, line in enumerate(text.splitlines(), 1):
        match = re.fullmatch(rf'(ENT|DLT)-PATCH:"":(\d+)[,&](\d+):{at}:;', line)
        if match is None:
            raise ValueError(f"line {at} is no patch command")
        if match[1] == "DLT" and come:
            raise ValueError("a patch is deleted after another was entered")
        (gone if match[1] == "DLT" else come).append((match[2], match[3]))
    return tuple(gone), tuple(come)


def _read_tl1_whole(text: str) -> Pairs:
    gone, come = _read_tl1_change(text)
    if gone:
        raise ValueError("a whole set deletes nothing")
    return come


BACKEND = SwitchTarget(
    name="polatis",
    summary="Polatis switches: NETCONF edit-config, RESTCONF PUT, SCPI, TL1",
    driver="polatis",
    names=numbered,
    called=(r"\d+", r"\d+"),
    wires=(
        Wire("netconf", "xml", _netconf_whole, _read_netconf_whole, _netconf_change, _read_netconf_change),
        Wire("restconf", "json", _restconf_whole, _read_restconf_whole),
        Wire("scpi", "txt", _scpi_whole, _read_scpi_whole, _scpi_change, _read_scpi_change),
        Wire("tl1", "txt", _tl1_whole, _read_tl1_whole, _tl1_change, _read_tl1_change),
    ),
)
