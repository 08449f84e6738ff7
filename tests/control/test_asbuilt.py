"""Cabling as built: faults put into the cabling of real programs are named, exactly these and as what they are."""

import csv
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opusc.backends.cabling import BACKEND
from opusc.backends.ends import ends_of
from opusc.cli.main import main
from opusc.control.cabling.asbuilt import AsBuilt, check_cabling
from opusc.control.cabling.finding import Cause
from opusc.control.cabling.names import Names, NicPort
from opusc.control.cabling.observed import observed
from opusc.diagnostics import Diagnostics
from opusc.driver import compile_file
from opusc.model.entities import Matrix, Optics, Peers, RailBy
from opusc.plan.plan import Plan
from opusc.source import Source
from tests.support import make_plan

EXAMPLE = Path(__file__).parents[2] / "examples" / "two-vendors" / "two-vendors.opus"
Row = dict[str, str]


@cache
def example() -> Plan:
    return compile_file(EXAMPLE).plan


def rows_of(plan: Plan) -> list[Row]:
    whole = next(iter(BACKEND.project(plan)))
    return [dict(zip(whole.columns, row, strict=True)) for row in whole.rows]


def text_of(rows: list[Row]) -> str:
    out = StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def check(plan: Plan, text: str, lit: int | None = None, **names: Any) -> AsBuilt:
    sink = Diagnostics()
    called = Names(plan, **names)
    found = observed([Source("observed.csv", text)], called, lit, sink)
    assert not list(sink), [d.message for d in sink]
    return check_cabling(called, found)


def messages(plan: Plan, rows: list[Row]) -> list[str]:
    return [finding.message for finding in check(plan, text_of(rows)).findings]


PLACE = ("switch", "position", "transmit to", "receive from", "to", "side", "receive")


class Built:
    """A cabling as built, to put faults into."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rows = rows_of(plan)
        self.at = {(row["node"], row["gpu"], row["port"]): row for row in self.rows}

    def row(self, node: int, gpu: int, port: int) -> Row:
        return self.at[str(node), str(gpu), str(port)]

    def place(self, row: Row) -> Row:
        return {name: row[name] for name in PLACE if name in row}

    def permute(self, rows: list[Row], order: list[int]) -> None:
        """Row i goes to the place of row order[i]."""
        places = [self.place(row) for row in rows]
        for row, target in zip(rows, order, strict=True):
            row.update(places[target])

    def swap(self, a: Row, b: Row) -> None:
        self.permute([a, b], [1, 0])

    def cross(self, row: Row) -> None:
        row["transmit to"], row["receive from"] = row["receive from"], row["transmit to"]

    def lose(self, row: Row) -> None:
        self.rows.remove(row)

    def found(self) -> AsBuilt:
        return check(self.plan, text_of(self.rows))


def nic(plan: Plan, row: Row) -> NicPort:
    return int(row["node"]) * plan.model.cluster.gpus_per_node + int(row["gpu"]), int(row["port"])


# --- no difference -------------------------------------------------------------------------------

PLANS: dict[str, dict[str, Any]] = {
    "crossbar": {"nodes": 6, "gpus": 2, "tp": 2, "dp": 6},
    "bidi": {"nodes": 6, "gpus": 2, "tp": 2, "dp": 6, "optics": Optics.BIDI},
    "any": {"nodes": 6, "gpus": 2, "tp": 2, "dp": 6, "matrix": Matrix.ANY},
    "any bidi": {"nodes": 6, "gpus": 2, "tp": 2, "dp": 6, "optics": Optics.BIDI, "matrix": Matrix.ANY},
    "planes": {"nodes": 6, "gpus": 2, "tp": 2, "dp": 6, "planes": 2, "ports": 4},
    "blocks": {"nodes": 6, "gpus": 2, "tp": 2, "dp": 3, "pp": 2, "blocks": 2, "phases": ()},
    "racks": {"nodes": 12, "gpus": 4, "domain": 12, "tp": 12, "dp": 4, "rail_by": RailBy.DOMAIN_RANK},
}


@pytest.mark.parametrize("name", PLANS)
def test_the_patch_list_as_observed_gives_no_difference(name: str) -> None:
    plan = make_plan(**PLANS[name])
    result = Built(plan).found()
    assert result.findings == ()
    assert result.right == result.cables == len(rows_of(plan)) > 0


@pytest.mark.parametrize("name", PLANS)
def test_an_exchange_and_a_loss_are_named_on_every_fabric(name: str) -> None:
    plan = make_plan(**PLANS[name])
    built = Built(plan)
    a, b = built.row(1, 0, 0), built.row(2, 0, 0)
    if name == "racks":
        b = built.row(4, 0, 0)  # the rail's next node
    built.swap(a, b)
    lost = built.row(5, 1, 1)
    built.lose(lost)
    exchanged, missing = built.found().findings
    assert (exchanged.cause, set(exchanged.ports)) == (Cause.EXCHANGED, {nic(plan, a), nic(plan, b)})
    assert (missing.cause, missing.ports) == (Cause.MISSING, (nic(plan, lost),))


# --- each cause ----------------------------------------------------------------------------------


def test_the_words_of_an_exchange() -> None:
    built = Built(example())
    built.swap(built.row(5, 2, 0), built.row(6, 2, 0))
    [finding] = built.found().findings
    assert finding.message == "rail 2: node 5 port 0 and node 6 port 0 are exchanged"
    assert finding.action == (
        "at rails.rail[2], exchange the cables in position 11 (11/203) and position 13 (13/205)"
    )  # fmt: skip


def test_a_shift_around_and_one_that_pushes_the_last_cable_out() -> None:
    built = Built(example())
    around = [built.row(node, 1, port) for node in range(4, 8) for port in (0, 1)]
    built.permute(around, [*range(1, 8), 0])
    out = [built.row(node, 3, port) for node in range(2, 5) for port in (0, 1)]
    last = out[-1]
    built.permute(out, [*range(1, 6), 0])
    built.lose(last)
    first, second, missing = built.found().findings
    assert first.message == "rail 1: the cables of positions 9..16 are plugged in 1 place higher"
    assert "take out what is in position 9" in first.action
    assert second.message == "rail 3: the cables of positions 5..9 are plugged in 1 place higher"
    assert "beginning with the one in position 6" in second.action
    assert (missing.cause, missing.ports) == (Cause.MISSING, (nic(example(), last),))


def test_nodes_one_place_off_are_a_shift_by_two_cables() -> None:
    built = Built(example())
    rows = [built.row(node, 0, port) for node in range(8, 12) for port in (0, 1)]
    built.permute(rows, [*range(2, 8), 0, 1])
    [finding] = built.found().findings
    assert finding.message == "rail 0: the cables of positions 17..24 are plugged in 2 places higher"
    assert len(finding.ports) == 8


def test_a_cycle_is_told_in_its_order() -> None:
    built = Built(example())
    built.permute([built.row(3, 5, 0), built.row(9, 5, 1), built.row(17, 5, 0), built.row(20, 5, 0)], [1, 2, 3, 0])
    [finding] = built.found().findings
    assert finding.cause is Cause.CYCLE
    assert "node 3 port 0, node 9 port 1, node 17 port 0 and node 20 port 0" in finding.message
    assert "cycle of 4" in finding.message


def test_a_cable_in_a_place_of_nobody() -> None:
    built = Built(example())
    built.row(3, 0, 0).update({"position": "77", "transmit to": "77", "receive from": "269"})
    [finding] = built.found().findings
    assert finding.cause is Cause.MOVED
    assert finding.message == "rail 0: node 3 port 0 is in position 77 (77/269), which belongs to no cable"
    assert finding.action.endswith("move position 77 (77/269) -> position 7 (7/199)")


def test_crossed_fibres_at_home_and_away() -> None:
    built = Built(example())
    built.cross(built.row(2, 0, 0))
    a, b = built.row(5, 1, 0), built.row(6, 1, 0)
    built.swap(a, b)
    built.cross(b)
    found = built.found().findings
    assert [(f.cause, len(f.ports)) for f in found] == [
        (Cause.REVERSED, 1),
        (Cause.EXCHANGED, 2),
        (Cause.REVERSED, 1),
    ]
    assert found[0].message == "rail 0: node 2 port 0 has transmit and receive crossed"
    assert found[2].ports == (nic(example(), b),)


def test_single_fibres_of_two_cables_exchanged() -> None:
    built = Built(example())
    a, b = built.row(2, 0, 0), built.row(3, 0, 1)
    a["receive from"], b["receive from"] = b["receive from"], a["receive from"]
    [finding] = built.found().findings
    assert finding.cause is Cause.FIBRES
    assert finding.message == (
        "rail 0: the receive fibre of node 2 port 0 and the receive fibre of node 3 port 1 are exchanged"
    )


def test_rails_of_a_node_planes_of_a_gpu_nodes_and_switches() -> None:
    built = Built(example())
    for port in (0, 1):
        built.swap(built.row(7, 3, port), built.row(7, 4, port))
    assert [f.message for f in built.found().findings] == ["node 7: rails 3 and 4 are exchanged"]

    built = Built(example())
    for gpu in range(8):
        for port in (0, 1):
            built.swap(built.row(3, gpu, port), built.row(9, gpu, port))
    assert [f.message for f in built.found().findings] == ["nodes 3 and 9 are exchanged, with all their 32 cables"]

    built = Built(example())
    for node in range(24):
        for port in (0, 1):
            built.swap(built.row(node, 0, port), built.row(node, 1, port))
    [finding] = built.found().findings
    assert finding.cause is Cause.SWITCHES
    assert len(finding.ports) == 96

    plan = make_plan(**PLANS["planes"])
    built = Built(plan)
    for port in (0, 2):
        built.swap(built.row(2, 1, port), built.row(2, 1, port + 1))
    [finding] = built.found().findings
    assert finding.message == "rail 1: node 2 GPU 1 has planes 0 and 1 exchanged"


def test_one_port_of_two_rails_is_an_exchange_of_two_cables() -> None:
    built = Built(example())
    built.swap(built.row(7, 3, 0), built.row(7, 4, 0))
    [finding] = built.found().findings
    assert finding.cause is Cause.EXCHANGED
    assert finding.message == "rails 3 and 4: node 7 GPU 3 port 0 and node 7 GPU 4 port 0 are exchanged"
    assert finding.action == "at node 7, exchange the cables in GPU 3 port 0 and GPU 4 port 0"


def test_what_is_not_observed_is_told_for_a_switch_a_node_a_cable_a_fibre() -> None:
    built = Built(example())
    for row in list(built.rows):
        if row["switch"] == "rails.rail[2]" or row["node"] == "9" or (row["node"], row["gpu"]) == ("3", "4"):
            built.lose(row)
    built.row(1, 0, 0)["receive from"] = ""
    found = built.found()
    assert [f.message.partition(" was not")[0] for f in found.findings] == [
        "rail 0: the receive fibre of node 1 port 0 is missing or",
        "node 9",
        "rail 2: nothing was observed at rails.rail[2], none of its 48 cables",
        "rail 4: the cable of node 3 port 0 is missing or",
        "rail 4: the cable of node 3 port 1 is missing or",
    ]
    assert found.missing == 48 + 14 + 2


def test_unknown_cables_and_what_was_observed_twice() -> None:
    built = Built(example())
    extra = dict(built.row(1, 7, 0)) | {"node": "77", "position": "60", "transmit to": "60A", "receive from": "60B"}
    twice = dict(built.row(1, 7, 1)) | {"position": "70", "transmit to": "70A", "receive from": "70B"}
    built.rows += [extra, twice]
    built.row(4, 6, 0).update(built.place(built.row(5, 6, 0)))
    clash, at_two, unknown = built.found().findings
    assert (clash.cause, at_two.cause, unknown.cause) == (Cause.TWICE, Cause.TWICE, Cause.UNKNOWN)
    assert "position 11 (11A/11B) was observed with two cables: node 4 port 0 and node 5 port 0" in clash.message
    assert "node 1 port 1 was observed twice: in position 4 (4A/4B) and position 70 (70A/70B)" in at_two.message
    assert "`77 GPU 7 port 0`" in unknown.message


def test_the_same_row_in_two_files_is_no_difference() -> None:
    rows = rows_of(example())
    assert messages(example(), rows + rows[:5]) == []


# --- every set of disjoint faults is named exactly ---------------------------------------------------


@dataclass
class Expected:
    found: Counter[tuple[Cause, tuple[NicPort, ...]]] = field(default_factory=Counter)

    def add(self, cause: Cause, plan: Plan, rows: list[Row]) -> None:
        self.found[cause, tuple(sorted(nic(plan, row) for row in rows))] += 1


def spoil(built: Built, rows: list[Row], random: Random, expected: Expected) -> None:
    """One fault of a random kind in neighbouring cables of one switch."""
    plan = built.plan
    kind = random.choice(["swap", "around", "out", "cycle", "lose", "cross", "free", "nothing"])
    n = len(rows)
    if kind == "swap" or (kind in ("around", "out", "cycle") and n < 5):
        pair = random.sample(rows, 2)
        built.swap(*pair)
        expected.add(Cause.EXCHANGED, plan, pair)
    elif kind == "around":
        by = random.choice([1, n - 1])
        built.permute(rows, [(i + by) % n for i in range(n)])
        expected.add(Cause.SHIFTED, plan, rows)
    elif kind == "out":
        by = random.choice([1, n - 1])
        last = rows[-1] if by == 1 else rows[0]
        built.permute(rows, [(i + by) % n for i in range(n)])
        built.lose(last)
        expected.add(Cause.SHIFTED, plan, [row for row in rows if row is not last])
        expected.add(Cause.MISSING, plan, [last])
    elif kind == "cycle":
        three = [rows[0], rows[1], rows[4]]  # uneven gaps: no shift
        built.permute(three, random.choice([[1, 2, 0], [2, 0, 1]]))
        expected.add(Cause.CYCLE, plan, three)
    elif kind == "lose":
        built.lose(rows[0])
        expected.add(Cause.MISSING, plan, rows[:1])
    elif kind == "cross":
        built.cross(rows[0])
        expected.add(Cause.REVERSED, plan, rows[:1])
    elif kind == "free":
        free = {"position": "190", "transmit to": "190", "receive from": "382"}
        if "A" in rows[0]["transmit to"]:
            free |= {"transmit to": "190A", "receive from": "190B"}
        if any(row["position"] == "190" and row["switch"] == rows[0]["switch"] for row in built.rows):
            return
        rows[0].update(free)
        expected.add(Cause.MOVED, plan, rows[:1])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 8))
def test_disjoint_faults_are_named_exactly(seed: int, rails: int) -> None:
    random, built, expected = Random(seed), Built(example()), Expected()
    for rail in random.sample(range(8), rails):
        rows = [row for row in built.rows if row["rail"] == str(rail)]
        rows.sort(key=lambda row: int(row["position"]))
        start = 0
        while (size := random.randint(2, 9)) <= len(rows) - start:
            if random.random() < 0.6:
                spoil(built, rows[start : start + size], random, expected)
            start += size
    random.shuffle(built.rows)
    found = Counter((f.cause, tuple(sorted(f.ports))) for f in built.found().findings)
    assert found == expected.found


# --- who sees whom ----------------------------------------------------------------------------------


def sight(plan: Plan, parts: list[int], at: dict[NicPort, NicPort], lost: set[NicPort] = frozenset()) -> str:  # type: ignore[assignment]
    """What NIC ports see while parts are lit, when NIC port x is in the place of `at[x]`."""
    ends, c = ends_of(plan), plan.circuits
    inside = {place: port for port, place in at.items()}
    per_node = plan.model.cluster.gpus_per_node
    lines = ["node,interface,neighbor,neighbor_port,part"]
    both = plan.model.cluster.rail_nic.optics is Optics.BIDI
    for i in range(len(c)):
        if int(c.part[i]) not in parts:
            continue
        a = int(ends.sender[i]), int(ends.sender_port[i])
        b = int(ends.receiver[i]), int(ends.receiver_port[i])
        for x, y in ((a, b), (b, a)) if both else ((a, b),):
            sender, receiver = inside.get(x, x), inside.get(y, y)
            if sender in lost or receiver in lost:
                continue
            names = [f"node{p[0] // per_node},gpu{p[0] % per_node}p{p[1]}" for p in (receiver, sender)]
            lines.append(f"{names[0]},{names[1]},{plan.parts[int(c.part[i])].name}")
    return "\n".join(lines) + "\n"


RINGS: dict[str, Any] = {"nodes": 12, "gpus": 2, "tp": 2, "dp": 12, "peers": Peers.INDEPENDENT, "ports": 1}


def test_what_is_seen_of_a_right_cabling_gives_no_difference() -> None:
    for options in (RINGS, {"nodes": 8, "gpus": 2, "tp": 2, "dp": 4, "pp": 2}, PLANS["bidi"]):
        plan = make_plan(**options)
        assert check(plan, sight(plan, [0], {})).findings == ()


def test_an_exchange_is_told_from_one_way_rings() -> None:
    plan = make_plan(**RINGS)
    a, b = (5 * 2 + 1, 0), (8 * 2 + 1, 0)
    [finding] = check(plan, sight(plan, [0], {a: b, b: a})).findings
    assert finding.message == "rail 1: node 5 port 0 and node 8 port 0 are exchanged"


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_disjoint_exchanges_are_told_exactly_from_what_rings_see(seed: int) -> None:
    random, plan = Random(seed), make_plan(**RINGS)
    nodes = random.sample(range(12), 4)
    pairs = [((nodes[i] * 2, 0), (nodes[i + 1] * 2, 0)) for i in range(0, random.choice([2, 4]), 2)]
    at = {x: y for a, b in pairs for x, y in ((a, b), (b, a))}
    found = check(plan, sight(plan, [0], at)).findings
    assert {(f.cause, f.ports) for f in found} == {(Cause.EXCHANGED, (min(p), max(p))) for p in pairs}


def test_a_cycle_a_loss_and_neighbours_are_told_from_one_way_rings() -> None:
    plan = make_plan(**RINGS)
    a, b, c = (2, 0), (8, 0), (14, 0)
    found = check(plan, sight(plan, [0], {a: b, b: c, c: a}, {(20, 0)})).findings
    assert [(f.cause, set(f.ports)) for f in found] == [(Cause.CYCLE, {a, b, c}), (Cause.MISSING, {(20, 0)})]


def test_one_part_of_pairwise_links_leaves_two_explanations_and_another_part_decides() -> None:
    plan = make_plan(nodes=8, gpus=1, dp=4, pp=2, phases=None)
    a, b = (1, 0), (2, 0)
    dp, pp = ([p.index for p in plan.parts if p.name.startswith(name)] for name in ("dp", "pp"))
    [finding] = check(plan, sight(plan, dp, {a: b, b: a})).findings
    assert finding.cause is Cause.UNCERTAIN
    assert "either node 1 port 0 and node 2 port 0, or" in finding.message
    assert "pp" in finding.action
    found = check(plan, sight(plan, [*dp, *pp], {a: b, b: a})).findings
    assert [(f.cause, f.ports) for f in found] == [(Cause.EXCHANGED, (a, b))]


def test_no_light_on_a_link_names_both_its_ends() -> None:
    plan = make_plan(nodes=8, gpus=1, dp=4, pp=2)
    [finding] = check(plan, sight(plan, [0], {}, {(1, 0)})).findings
    assert finding.cause is Cause.MISSING
    assert (1, 0) in finding.ports
    assert len(finding.ports) == 2


def test_a_port_that_sees_two_is_told() -> None:
    plan = make_plan(**RINGS)
    text = sight(plan, [0], {})
    name = plan.parts[0].name
    found = check(plan, text + f"node3,gpu0p0,node7,gpu0p0,{name}\n").findings
    assert {f.cause for f in found} == {Cause.TWICE}


# --- reading ---------------------------------------------------------------------------------------


def wrong(text: str, **options: Any) -> str:
    sink = Diagnostics()
    observed([Source("observed.csv", text)], Names(example()), options.get("lit"), sink)
    assert {d.code for d in sink} == {"OPUS725"}
    return next(iter(sink)).message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("host;rank\nnode1;3\n", "`observed.csv` has no column for the nic"),
        ("host,gpu,port\nnode1,3,0\n", "`observed.csv` has no column for the position"),
        ("host,node,gpu,port,position\n", "columns `host` and `node` both mean `node`"),
        ("host,gpu,port,position\n", "`observed.csv` has no rows"),
        ("host,nic,switch,position\nnode1,enp3s0f1,rails.rail[0],4\n", "`enp3s0f1` is no name of a NIC port"),
        ("host,nic,switch,position\nnode1,mlx5_1,ocs-west,4\n", "no switch of the program is called `ocs-west`"),
        ("host,nic,switch,position\nnode1,mlx5_1,rail[0],900\n", "`900` is no position of a switch"),
        ("host,nic,switch,switch port\nnode1,mlx5_1,rail[0],7C\n", "rails.rail[0] has no port `7C`"),
        ("host,nic,neighbor,neighbor port\nnode1,mlx5_1,node2,mlx5_1\n", "which part was lit is not said"),
        ("host,nic,neighbor,neighbor port,part\nnode1,nic1,node2,nic1,dq\n", "the plan has no part `dq`"),
    ],
)
def test_what_cannot_be_understood_is_said(text: str, message: str) -> None:
    assert wrong(text).startswith(message)


def test_dumps_of_switches_of_hosts_and_of_scanners_are_read() -> None:
    rows = rows_of(example())
    plan = example()
    for switch in plan.switches:
        mine = [row for row in rows if row["switch"] == switch.name]
        # As `show lldp table` prints it on the switch, one file for each switch.
        text = "LocalPort;RemoteDevice;RemotePortID;Capability;RemotePortDescr\n"
        text += "".join(
            f"{row['transmit to']};dgx-{int(row['node']):03}.rack.example;gpu{row['gpu']}p{row['port']};O;x\n"
            for row in mine
        )
        sink = Diagnostics()
        names = Names(plan)
        found = observed(
            [Source(f"dumps/{switch.name.replace('[', '-').replace(']', '')}.csv", text)], names, None, sink
        )
        assert not list(sink)
        assert {f.cause for f in check_cabling(names, found).findings} == {Cause.MISSING}
        assert check_cabling(names, found).right == len(mine)
    # Hosts counted from 1, devices by their number, switches by their address.
    address = {switch.name: switch.kind.address for switch in plan.switches}
    assert all(address.values())
    text = "Hostname,HCA,OCS,Position\n" + "".join(
        f"h{int(row['node']) + 1},mlx5_{int(row['gpu']) * 2 + int(row['port'])},{address[row['switch']]},"
        f"{row['position']}\n"
        for row in rows
    )
    assert check(plan, text, first_node=1).findings == ()
    # Names that say nothing, told apart by the user.
    text = "host,interface,ocs,position\nnode0,ens3f1,west,1\n"
    result = check(plan, text, nics={"ens3f1": (0, 0)}, switches={"west": 0})
    assert result.right == 1


# --- the command -----------------------------------------------------------------------------------


def test_the_command_reports_at_80_columns_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    built = Built(example())
    path = tmp_path / "scan.csv"
    path.write_text(text_of(built.rows))
    assert main(["verify-cabling", str(EXAMPLE), "--observed", str(path)]) == 0
    assert "differences  none" in capsys.readouterr().out
    built.swap(built.row(5, 2, 0), built.row(6, 2, 0))
    built.lose(built.row(8, 0, 0))
    path.write_text(text_of(built.rows))
    assert main(["verify-cabling", str(EXAMPLE), "--observed", str(path)]) == 1
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert out.index("rail 0: the cable of node 8") < out.index("rail 2: node 5 port 0 and node 6 port 0 are exchanged")
    assert "differences  1 exchanged, 1 missing" in out


def test_the_command_says_what_is_wrong_with_its_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify-cabling", str(EXAMPLE), "--observed", str(tmp_path / "none.csv")]) == 2
    (tmp_path / "x.csv").write_text("host,nic,neighbor,neighbor port\nnode1,nic1,node2,nic1\n")
    arguments = ["verify-cabling", str(EXAMPLE), "--observed", str(tmp_path / "x.csv")]
    assert main([*arguments, "--lit", "dq"]) == 2
    assert "`--lit`: the plan has no part `dq`" in capsys.readouterr().err
    assert main([*arguments, "--switch-name", "a=b"]) == 2
