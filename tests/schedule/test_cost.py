"""`opusc cost`: the published cost model to the dollar and the watt, whole chassis, and what the command says."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from opusc.cli.main import main
from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan
from opusc.resources import stdlib_dir
from opusc.schedule import cost
from opusc.schedule.cost import Clos, Comparison, clos, compare, figures

RAILS = Path(__file__).parents[2] / "examples" / "photonic-rails" / "photonic-rails.opus"

#: Component figures, GPUs, rails; then ports, watts and US dollars of photonic rails, packet rails and fat tree.
#: Source: evaluated from the artifact of arXiv 2602.12521 (opusfabric/Opus).
PUBLISHED = [
    ("h200_study", 256, 8, (512, 1309, 1250), ("2760.0", "67273.7", "64356.9"), ("491264", "2138516.1", "2052270.1")),
    (
        "h200_study",
        512,
        8,
        (1024, 2560, 2743),
        ("5520.0", "131680.0", "140727.1"),
        ("982528", "4192248.0", "4459756.8"),
    ),
    (
        "h200_study",
        1024,
        8,
        (2048, 5060, 5120),
        ("11040.0", "260393.8", "263360.0"),
        ("1965056", "8296788.2", "8384496.0"),
    ),
    (
        "h200_study",
        2048,
        8,
        (4096, 10240, 10000),
        ("22080.0", "526720.0", "514855.0"),
        ("3930112", "16768992.0", "16418160.8"),
    ),
    ("gb200_study", 256, 32, (512, 1020, 1250), ("4296.0", "53679.3", "64859.9"), ("491264", "1287091.9", "1526577.8")),
    (
        "gb200_study",
        512,
        32,
        (1024, 2560, 2743),
        ("8592.0", "132636.4", "141532.3"),
        ("982528", "3115630.2", "3306177.7"),
    ),
    (
        "gb200_study",
        1024,
        32,
        (2048, 5247, 5120),
        ("17184.0", "271446.5", "265272.9"),
        ("1965056", "6363498.3", "6231260.4"),
    ),
    (
        "gb200_study",
        2048,
        32,
        (4096, 10240, 10000),
        ("34368.0", "530545.8", "518879.1"),
        ("3930112", "12462520.9", "12212622.6"),
    ),
]

PROGRAM = """opus 1

use std.switches
use std.components

cluster c {{
  node_count    = {nodes}
  gpus_per_node = {rails}
  nic           = {{ transceivers = 1, ports = 2, rate = 400 Gbps, optics = duplex }}
}}

fabric rails {{
  cluster    = c
  rail_by    = local_rank
  switch     = switches.polatis_6000n_192 {{ radix = {radix}, price = {radix} * 520 USD, power = {radix} * 75 W / 192 }}
  components = components.{parts}
}}

job j {{
  fabric      = rails
  parallelism = {{ tp = {rails}, dp = {nodes} }}
}}
"""


def program(parts: str = "h200_study", gpus: int = 128, rails: int = 8, radix: int = 192) -> str:
    return PROGRAM.format(parts=parts, nodes=gpus // rails, rails=rails, radix=radix)


def compared(text: str) -> Comparison:
    import opusc

    plan: Plan = opusc.compile(text)
    sink = Diagnostics()
    known = figures(plan.model.fabric, sink)
    assert known is not None, [d.message for d in sink]
    return compare(plan, known)


# --- the published counting ----------------------------------------------------------------------


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row[0]}-{row[1]}")
def test_the_published_model_to_the_tenth_of_a_dollar_and_a_watt(row: tuple[Any, ...]) -> None:
    parts, gpus, rails, ports, watts, dollars = row
    found = compared(program(parts, gpus, rails, radix=512)).published
    assert tuple(c.ports for c in found) == ports
    for count, watt, dollar in zip(found, watts, dollars, strict=True):
        assert abs(count.power / 1000 - Fraction(watt)) <= Fraction(1, 20)
        assert abs(count.cost / 100 - Fraction(dollar)) <= Fraction(1, 20)


def test_the_sample_is_the_reference(shared: Path) -> None:
    document = json.loads((shared / "reference" / "opus-cost-power.json").read_text())
    keys = ("opus", "rail", "fat_tree")
    rows = [
        (
            f"{generation.lower()}_study",
            row["gpus"],
            row["gpus"] // row["servers"],
            (row["ocs_ports"], row["rail_ports"], row["fat_tree_ports"]),
            tuple(str(row["power_w"][key]) for key in keys),
            tuple(str(row["cost_usd"][key]) for key in keys),
        )
        for generation, found in document["rows"].items()
        for row in found
    ]
    assert rows == PUBLISHED
    assert {row[1] for row in rows} == {256, 512, 1024, 2048}


def test_the_library_has_the_components_of_the_reference(shared: Path) -> None:
    document = json.loads((shared / "reference" / "opus-cost-power.json").read_text())
    text = (stdlib_dir() / "components.opus").read_text()
    for generation, parts in document["components"].items():
        own = text.split(f"components {generation.lower()}_study")[1]
        stated = dict(re.findall(r"(\w+) += (\w+)", own.split("}")[0]))
        ports = int(stated["packet_switch_ports"])
        assert int(stated["transceiver_power"]) == parts["transceiver_W"]
        assert int(stated["transceiver_price"]) == parts["transceiver_USD"]
        power, price = int(stated["packet_switch_power"]), int(stated["packet_switch_price"])
        assert Fraction(power, ports) == Fraction(parts["switch_port_W"])
        assert Fraction(price, ports) == Fraction(parts["switch_port_USD"])
        assert (stated["transceivers"] == "both_ends") == parts["transceivers_at_both_ends"]


def test_the_published_claim_over_23_times_the_power_and_4_times_the_cost() -> None:
    for parts, gpus, rails, *_ in PUBLISHED:
        photonic, packet, tree = compared(program(parts, gpus, rails, radix=512)).published
        if parts == "h200_study":
            assert min(packet.power, tree.power) > 23 * photonic.power
            assert min(packet.cost, tree.cost) > 4 * photonic.cost


def test_roots_are_rounded_to_the_nearest_integer() -> None:
    for number in range(1, 5000):
        for degree in (2, 3):
            root = cost._nearest_root(number, degree)
            assert (2 * root - 1) ** degree <= 2**degree * number <= (2 * root + 1) ** degree


# --- whole chassis -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endpoints", "ports", "tiers", "switches", "wired"),
    [
        (1, 64, 1, 1, 1),
        (64, 64, 1, 1, 64),
        (65, 64, 2, 3 + 2, 65 + 2 * 3 * 22),  # 22 endpoints a leaf; 21 middle stages of 3 ports fit a spine
        (128, 64, 2, 4 + 2, 128 + 2 * 128),
        (2048, 64, 2, 64 + 32, 2048 + 2 * 2048),  # r^2 / 2 endpoints: 3 r / 2 switches
        (65536, 64, 3, 5 * 64 * 64 // 4, 5 * 65536),  # r^3 / 4 endpoints: 5 r^2 / 4 switches, all ports wired
        (16, 4, 3, 20, 80),
        (3, 2, 0, 0, 0),
        (65537, 64, 0, 0, 0),
    ],
)
def test_clos_fabrics_of_whole_switches(endpoints: int, ports: int, tiers: int, switches: int, wired: int) -> None:
    assert clos(endpoints, ports) == (Clos(tiers, switches, wired) if tiers else None)


def test_no_clos_fabric_has_more_cables_than_ports_or_fewer_uplinks_than_endpoints() -> None:
    for ports in (3, 4, 6, 8, 9, 16):
        before = 0
        for endpoints in range(1, ports * (ports // 2) ** 2 + 1):
            made = clos(endpoints, ports)
            assert made is not None
            assert made.wired <= made.switches * ports
            assert made.wired >= (2 * made.tiers - 1) * endpoints
            assert made.tiers >= before
            before = made.tiers


def test_whole_chassis_by_hand() -> None:
    """128 H200s: 8 optical switches; a packet switch for each rail of 16; 4 leaves and 2 spines."""
    photonic, packet, tree = compared(program()).whole
    assert packet is not None
    assert tree is not None
    assert (photonic.switches, photonic.ports, photonic.hops) == (8, 8 * 192, 1)
    assert photonic.power == (8 * 75 + 128 * 10) * 1000
    assert photonic.cost == (8 * 192 * 520 + 128 * 879) * 100
    assert (packet.switches, packet.hops) == (8, 1)
    assert packet.power == (8 * 2524 + (128 + 128) * 10) * 1000
    assert (tree.switches, tree.hops) == (6, 3)
    assert tree.cost == (6 * 37299 + (128 + 384) * 879) * 100


def test_a_small_fabric_pays_for_chassis_that_it_does_not_fill() -> None:
    small, full = compared(program(gpus=16)), compared(program(gpus=768))
    assert small.whole[0].cost > 5 * small.published[0].cost
    assert full.whole[0] == replace(full.published[0], switches=8)


def test_rails_that_share_a_chassis_pay_for_one() -> None:
    shared = ", ".join(f"rail {rail} = {32 * rail + 1}..{32 * rail + 32}" for rail in range(6))
    text = program(gpus=96, rails=6).replace("= local_rank", f"= local_rank\n  cabling = share {{ {shared} }}")
    assert compared(text).whole[0].switches == 1


def test_each_port_needs_a_transceiver_where_the_nic_says_nothing_else() -> None:
    one, two = compared(program()), compared(program().replace("transceivers = 1, ", ""))
    assert two.endpoints == 2 * one.endpoints == 256
    assert two.published[0].cost - one.published[0].cost == 128 * 87900
    assert two.published[2].ports == 1250


def test_one_end_counts_the_transceivers_of_the_gpus_only() -> None:
    both = program()
    one = both.replace("components.h200_study", "components.h200_study { transceivers = one_end }")
    for two, less in ((compared(both).published, compared(one).published), (compared(both).whole, compared(one).whole)):
        assert two[0] == less[0]
        for more, fewer in zip(two[1:], less[1:], strict=True):
            assert more is not None
            assert fewer is not None
            assert more.power > fewer.power
            assert more.ports == fewer.ports


# --- the command ---------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, *more: str) -> tuple[int, list[tuple[str, str]]]:
    path = tmp_path / "program.opus"
    path.write_text(text)
    code = main(["cost", str(path), "--format", "json", *more])
    return code, [(d["code"], d["message"]) for d in json.loads(capsys.readouterr().out)["diagnostics"]]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_example_reads_well(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["cost", str(RAILS)]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    assert re.search(r"^photonic +256 +1,380 +1\.00 +245,632 +1\.00$", out, re.MULTILINE)
    assert re.search(r"^packet rails +640 +32,920 +23\.86 +1,048,062 +4\.27$", out, re.MULTILINE)
    assert re.search(r"^photonic +1,536 +1,880 +1\.00 +911,232 +1\.00$", out, re.MULTILINE)
    assert "hops         1 photonic, 3 packet rails, 5 fat tree" in out
    assert "switches     8 photonic, 8 packet rails, 6 fat tree" in out


def test_the_documentation_shows_what_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["cost", str(RAILS)]) == 0
    page = (Path(__file__).parents[2] / "docs" / "cost-model.md").read_text()
    assert f"```text\n{capsys.readouterr().out.rstrip()}\n```" in page


def test_requirements_on_cost_and_power_are_held_to_whole_chassis(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = "require cost < 2 MUSD\nrequire power < 30 kW and cost >= 911232 USD\n"
    assert run(capsys, tmp_path, program() + good) == (0, [])
    bad = 'require cost < 911232 USD else "too dear"\nrequire power < 1880 W\nrequire overhead < 6 %\n'
    code, found = run(capsys, tmp_path, program() + bad)
    assert code == 1
    assert found == [
        ("OPUS421", "required, and not so: `cost < 911232 USD`: too dear"),
        ("OPUS421", "required, and not so: `power < 1880 W`: it does not hold"),
        ("OPUS420", "not checked: `overhead < 6 %`"),
    ]


def test_a_requirement_that_held_is_said_with_its_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.opus"
    path.write_text(program() + "require power < 30 kW\n")
    assert main(["cost", str(path)]) == 0
    out = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "held require power < 30 kW: power = 1,880 W (photonic rails in whole chassis)" in out


@pytest.mark.parametrize(
    ("switch", "parts", "about"),
    [
        ("polatis_6000n_192", "", "the `components` of fabric `rails`"),
        (
            "polatis_6000n_192",
            "  components = components.generic\n",
            "`packet_switch_price` and `transceivers` of components `generic`",
        ),
        ("calient_s320", "  components = components.h200_study\n", "`power` and `price` of switch `calient_s320`"),
        ("palomar_136", "  components = components.h200_study\n", "`price` of switch `palomar_136`"),
    ],
)
def test_numbers_are_demanded_never_made_up(
    switch: str, parts: str, about: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = re.sub(r"  switch  .*\n  components .*\n", f"  switch = switches.{switch}\n{parts}", program())
    code, found = run(capsys, tmp_path, text)
    assert code == 1
    assert [name for name, _ in found] == ["OPUS431"]
    assert about in found[0][1]


def test_a_figure_missing_in_one_place_is_demanded_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = program().replace("polatis_6000n_192 {", 'palomar_136 { address = "10.0.0.{rail}" },\n  # {')
    text = re.sub(r",\n  # .*", "", text)
    code, found = run(capsys, tmp_path, text)
    assert (code, found) == (1, [("OPUS431", "the cost model needs `price` of switch `palomar_136`")])


@pytest.mark.parametrize(
    "field",
    [
        "transceiver_power", "transceiver_price", "packet_switch_ports", "packet_switch_power",
        "packet_switch_price", "transceivers",
    ],
)  # fmt: skip
def test_each_figure_is_needed(field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (stdlib_dir() / "components.opus").read_text().split("components h200_study ")[1].split("}")[0]
    kept = "\n".join(line for line in lines.splitlines() if not line.strip().startswith(f"{field} "))
    text = program().replace("fabric rails", f"components own {kept}\n}}\n\nfabric rails")
    code, found = run(capsys, tmp_path, text.replace("components.h200_study", "own"))
    assert (code, found) == (1, [("OPUS431", f"the cost model needs `{field}` of components `own`")])


def test_more_endpoints_than_three_tiers_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.opus"
    path.write_text(program().replace("h200_study", "h200_study { packet_switch_ports = 4 }"))
    assert main(["cost", str(path)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^fat tree +- +- +- +- +-$", out, re.MULTILINE)
    assert "8 photonic, 160 packet rails, fat tree: more than 3 tiers" in re.sub(r"\s+", " ", out)
