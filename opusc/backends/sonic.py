"""Target `sonic`: SONiC-OCS switches: CONFIG_DB tables, RFC 6902 patches, and a CLI script.

Ports are `<position>A` and `<position>B`; a cross-connect joins an A to a B, and its key is `<a>-<b>`. Sources:
sonic-net/SONiC doc/ocs/ocs_hld.md (PR 2269), sonic-ocs/sonic-buildimage, sonic-net/sonic-mgmt
docs/testbed/README.testbed.OCS.md. Of a port only the `label` is written: the leaf that blocks it differs
between the published models, and its default is what a plan needs.
"""

import json
import re

from opusc.backends.switch_files import Pairs, SwitchTarget, Wire, sided
from opusc.plan.plan import Switch

__all__ = ["BACKEND"]

_TABLE = "OCS_CROSS_CONNECT"


#: Ports as the module `sonic-ocs` has them: `7A`, or `2-7A` with a line card.
_CALLED = (r"(?:\d+-)?\d+A", r"(?:\d+-)?\d+B")


def _key(a: str, b: str) -> str:
    return f"{a}-{b}"


def _sides(key: str) -> tuple[str, str]:
    match = re.fullmatch(rf"({_CALLED[0]})-({_CALLED[1]})", key)
    if match is None:
        raise ValueError(f"{key} names no two sides")
    return match[1], match[2]


# --- CONFIG_DB -----------------------------------------------------------------------------------


def _config_whole(switch: Switch, pairs: Pairs) -> str:
    """The tables of `config_db.json` that a plan decides."""
    document = {
        "DEVICE_METADATA": {"localhost": {"type": "SonicOCS", "switch_type": "ocs"}},
        _TABLE: {_key(a, b): {"a_side": a, "b_side": b} for a, b in pairs},
    }
    return json.dumps(document, indent=2) + "\n"


def _read_config_whole(text: str) -> Pairs:
    rows = json.loads(text)[_TABLE]
    for key, row in rows.items():
        if key != _key(row["a_side"], row["b_side"]):
            raise ValueError(f"key {key} does not name its sides")
    return tuple((row["a_side"], row["b_side"]) for row in rows.values())


# --- RFC 6902 ------------------------------------------------------------------------------------


def _patch_change(switch: Switch, disconnect: Pairs, connect: Pairs) -> str:
    """Removals first: a port is in one cross-connect at most."""
    steps: list[dict[str, object]] = [{"op": "remove", "path": f"/{_TABLE}/{_key(a, b)}"} for a, b in disconnect]
    steps += [{"op": "add", "path": f"/{_TABLE}/{_key(a, b)}", "value": {"a_side": a, "b_side": b}} for a, b in connect]
    return json.dumps(steps, indent=2) + "\n"


def _read_patch_change(text: str) -> tuple[Pairs, Pairs]:
    steps = json.loads(text)
    order = [step["op"] for step in steps]
    if order != sorted(order, key=["remove", "add"].index):
        raise ValueError("a cross-connect is added before another is removed")
    sides = [_sides(step["path"].removeprefix(f"/{_TABLE}/")) for step in steps]
    gone = tuple(pair for pair, op in zip(sides, order, strict=True) if op == "remove")
    return gone, tuple((s["value"]["a_side"], s["value"]["b_side"]) for s in steps if s["op"] == "add")


def _patch_whole(switch: Switch, pairs: Pairs) -> str:
    """Replace the whole table."""
    value = {_key(a, b): {"a_side": a, "b_side": b} for a, b in pairs}
    return json.dumps([{"op": "add", "path": f"/{_TABLE}", "value": value}], indent=2) + "\n"


def _read_patch_whole(text: str) -> Pairs:
    [step] = json.loads(text)
    if (step["op"], step["path"]) != ("add", f"/{_TABLE}"):
        raise ValueError("a whole set replaces the table")
    return tuple((row["a_side"], row["b_side"]) for row in step["value"].values())


# --- CLI -----------------------------------------------------------------------------------------

_COMMAND = "config ocs cross-connect"


def _cli(verb: str, pairs: Pairs, mode: str = "") -> str:
    return f"{_COMMAND} {verb} {','.join(_key(a, b) for a, b in pairs)}{mode}\n"


def _cli_whole(switch: Switch, pairs: Pairs) -> str:
    """`overwrite` wipes the table and sets these."""
    return _cli("add", pairs, " overwrite") if pairs else ""


def _cli_change(switch: Switch, disconnect: Pairs, connect: Pairs) -> str:
    """`safe` refuses a port that is taken: nothing that the plan does not know is overwritten."""
    return (_cli("delete", disconnect) if disconnect else "") + (_cli("add", connect, " safe") if connect else "")


def _cli_lines(text: str) -> list[tuple[str, Pairs, str]]:
    found = []
    for line in text.splitlines():
        match = re.fullmatch(rf"{_COMMAND} (add|delete) ([\w,-]+)( \w+)?", line)
        if match is None:
            raise ValueError(f"no command: {line}")
        found.append((match[1], tuple(map(_sides, match[2].split(","))), (match[3] or "").strip()))
    return found


def _read_cli_whole(text: str) -> Pairs:
    lines = _cli_lines(text)
    if [(verb, mode) for verb, _, mode in lines] not in ([("add", "overwrite")], []):
        raise ValueError("a whole set is one `add ... overwrite`")
    return lines[0][1] if lines else ()


def _read_cli_change(text: str) -> tuple[Pairs, Pairs]:
    lines = _cli_lines(text)
    if [verb for verb, *_ in lines] not in (["delete", "add"], ["delete"], ["add"]):
        raise ValueError("a change deletes, then adds")
    found = {verb: pairs for verb, pairs, _ in lines}
    return found.get("delete", ()), found.get("add", ())


BACKEND = SwitchTarget(
    name="sonic",
    summary="SONiC-OCS switches: config_db.json, RFC 6902 patches, CLI script",
    driver="sonic",
    names=sided,
    crossbar_only=True,
    called=_CALLED,
    wires=(
        Wire("config-db", "json", _config_whole, _read_config_whole),
        Wire("patch", "json", _patch_whole, _read_patch_whole, _patch_change, _read_patch_change),
        Wire("cli", "sh", _cli_whole, _read_cli_whole, _cli_change, _read_cli_change),
    ),
)
