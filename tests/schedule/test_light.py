"""Link budgets and bandwidth of phases: by hand for small programs, exact, and every kind of loss counts."""

from pathlib import Path

import pytest

from opusc import driver
from opusc.cli.main import main
from opusc.diagnostics import CompileError, Diagnostics
from opusc.plan.plan import Plan
from opusc.schedule.light import DB, budget
from opusc.schedule.light import Path as Light
from opusc.schedule.shares import shares
from opusc.source import Source

PROGRAM = """opus 1

use std.switches
use std.transceivers
use std.fibres

cluster c {
  node_count    = 4
  gpus_per_node = 2
  nic           = { ports = 2, rate = 400 Gbps, optics = duplex, transceiver = transceivers.dr4_400g }
}

fabric rails {
  cluster = c
  rail_by = local_rank
  switch  = switches.generic { matrix = crossbar, radix = 32, insertion_loss = 1.5 dB }
  fibre   = fibres.os2 { length = 30 m, connector_loss = 0.25 dB }
}

job j {
  fabric      = rails
  parallelism = { tp = 2, dp = 2, pp = 2 }
}
"""

#: Transmit power less sensitivity of 400GBASE-DR4, 3 dB; by hand: switch 1.5 dB, four connectors of 0.25 dB, 60 m of
#: fibre at 0.4 dB/km.
MARGIN = 3 * DB - 1_500_000_000 - 1_000_000_000 - 24_000_000


def compiled(text: str, root: Path = Path()) -> Plan:
    return driver.compile_source(Source("light.opus", text), root).plan


def paths(text: str, root: Path = Path()) -> tuple[Light, ...]:
    sink = Diagnostics()
    found = budget(compiled(text, root), sink)
    assert found is not None, list(sink)
    return found


def refused(text: str) -> CompileError:
    with pytest.raises(CompileError) as error:
        compiled(text)
    return error.value


def changed(*pairs: tuple[str, str]) -> str:
    text = PROGRAM
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def test_the_margin_is_what_the_sum_by_hand_says_for_each_phase_and_rail() -> None:
    found = paths(PROGRAM)
    assert [(p.phase, p.rail) for p in found] == [("dp", 0), ("dp", 1), ("pp", 0), ("pp", 1)]
    assert {p.margin for p in found} == {MARGIN}
    assert found[0].loss == 3 * DB - MARGIN
    assert [loss.what for loss in found[0].losses] == [
        "switch `generic`",
        "4 connectors of 0.25 dB",
        "60 m of fibre at 0.4 dB/km",
    ]


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (("insertion_loss = 1.5 dB", "insertion_loss = 1.501 dB"), 1_000_000),
        (("connector_loss = 0.25 dB", "connector_loss = 0.26 dB"), 40_000_000),
        (("length = 30 m", "length = 30 m, connectors = 3"), 500_000_000),
        (("length = 30 m", "length = 30.001 m"), 800),
        (("length = 30 m", "length = 30 m, loss = 0.5 dB/km"), 6_000_000),
        (("length = 30 m", "length = 30 m, patch_panels = 2, patch_panel_loss = 0.1 dB"), 400_000_000),
        (("transceivers.dr4_400g", "transceivers.dr4_400g { sensitivity = -5.8 dBm }"), 100_000_000),
        (("transceivers.dr4_400g", "transceivers.dr4_400g { transmit_power = -3 dBm }"), 100_000_000),
    ],
    ids=["switch", "connector loss", "connectors", "a millimetre", "fibre loss", "panels", "sensitivity", "power"],
)
def test_every_kind_of_loss_counts_to_the_billionth_of_a_db(change: tuple[str, str], lost: int) -> None:
    assert {p.margin for p in paths(changed(change))} == {MARGIN - lost}


def test_a_rail_with_cables_of_its_own_is_the_worst() -> None:
    text = changed(("0.25 dB }\n}", "0.25 dB }\n  rail[1] = { fibre = { length = 1030 m } }\n}"))
    by_rail = {p.rail: p.margin for p in paths(text) if p.phase == "dp"}
    assert by_rail == {0: MARGIN, 1: MARGIN - 800_000_000}


def test_the_jacks_of_cabling_files_are_patch_panels(tmp_path: Path) -> None:
    """A cable that goes through a panel loses what the panel does; the files say how many there are."""
    near, far = ["node,gpu,port,far"], ["near,position"]
    for node in range(4):
        for gpu in range(2):
            for port in range(2):
                near.append(f"{node},{gpu},{port},jack-{node}-{gpu}-{port}")
                far.append(f"jack-{node}-{gpu}-{port},{node * 2 + port + 1}")
    (tmp_path / "near.csv").write_text("\n".join(near) + "\n")
    (tmp_path / "far.csv").write_text("\n".join(far) + "\n")
    text = changed(("length = 30 m", "length = 30 m, patch_panel_loss = 0.1 dB"))
    text = text.replace("rail_by = local_rank", 'rail_by = local_rank\n  cabling = csv ["near.csv", "far.csv"]')
    assert {p.margin for p in paths(text, tmp_path)} == {MARGIN - 200_000_000}
    # What the author states has precedence over the count of jacks.
    stated = text.replace("length = 30 m", "length = 30 m, patch_panels = 3")
    assert {p.margin for p in paths(stated, tmp_path)} == {MARGIN - 600_000_000}


@pytest.mark.parametrize(("near", "far", "loss"), [("10", "20.5", 2 * 30_500 * 400), ("10", "", None)])
def test_pieces_of_a_cable_add_up_and_none_may_be_missing(
    near: str, far: str, loss: int | None, tmp_path: Path
) -> None:
    first, last = ["node,gpu,port,far,length"], ["near,position,length"]
    for node, gpu, port in ((n, g, p) for n in range(4) for g in range(2) for p in range(2)):
        first.append(f"{node},{gpu},{port},jack-{node}-{gpu}-{port},{near}")
        last.append(f"jack-{node}-{gpu}-{port},{node * 2 + port + 1},{far}")
    (tmp_path / "near.csv").write_text("\n".join(first) + "\n")
    (tmp_path / "far.csv").write_text("\n".join(last) + "\n")
    text = changed(("length = 30 m", "patch_panel_loss = 0 dB"))
    text = text.replace("rail_by = local_rank", 'rail_by = local_rank\n  cabling = csv ["near.csv", "far.csv"]')
    if loss is not None:
        assert {p.margin for p in paths(text, tmp_path)} == {MARGIN + 24_000_000 - loss}
        return
    with pytest.raises(CompileError) as error:
        compiled(text, tmp_path)
    assert "a piece of this cable has no length" in next(iter(error.value.diagnostics)).message


def cabled(folder: Path, cell: str = "{}") -> str:
    """A program whose cabling comes from a file with a length for each cable: that of node n is n + 1 metres."""
    rows = ["node,gpu,port,position,length"]
    for node in range(4):
        for gpu in range(2):
            rows += [f"{node},{gpu},{port},{node * 2 + port + 1},{cell.format(node + 1)}" for port in range(2)]
    (folder / "cabling.csv").write_text("\n".join(rows) + "\n")
    text = changed(("length = 30 m, ", ""))
    return text.replace("rail_by = local_rank", 'rail_by = local_rank\n  cabling = csv "cabling.csv"')


@pytest.mark.parametrize("cell", ["{}", "{}.000 m", "{}m"])
def test_cabling_files_say_how_long_each_cable_is(cell: str, tmp_path: Path) -> None:
    """Stages hold nodes 0, 1 and 2, 3. The longest ring has cables of 3 and 4 m, the longest join of 2 and 4 m."""
    base = MARGIN + 24_000_000
    found = {(p.phase, p.rail): p.margin for p in paths(cabled(tmp_path, cell), tmp_path)}
    ring, join = base - 7000 * 400, base - 6000 * 400
    assert found == {("dp", 0): ring, ("dp", 1): ring, ("pp", 0): join, ("pp", 1): join}


def test_the_patch_list_has_the_lengths_and_gives_the_same_budget(tmp_path: Path) -> None:
    text = cabled(tmp_path, "{}.25")
    program = tmp_path / "program.opus"
    program.write_text(text)
    assert main(["compile", str(program), "-o", str(tmp_path / "build"), "-t", "cabling"]) == 0
    written = (tmp_path / "build" / "cabling" / "cabling.csv").read_text()
    assert written.splitlines()[0].endswith(",length")
    assert written.splitlines()[1].endswith(",1.250")
    before = paths(text, tmp_path)
    (tmp_path / "cabling.csv").write_text(written)
    assert paths(text, tmp_path) == before


@pytest.mark.parametrize("cell", ["{} ft", "-{}", "{}.0001", "1e{}"])
def test_a_length_that_is_none_is_told_with_its_row(cell: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError) as error:
        compiled(cabled(tmp_path, cell), tmp_path)
    assert {d.code for d in error.value.diagnostics} == {"OPUS309"}
    assert "no length" in next(iter(error.value.diagnostics)).message


@pytest.mark.parametrize("matrix", ["crossbar", "any"])
def test_bidi_light_passes_a_circulator_at_each_end(matrix: str) -> None:
    text = changed(
        ("optics = duplex, transceiver = transceivers.dr4_400g", "optics = bidi, transceiver = transceivers.dr4_400g"),
        ("matrix = crossbar", f"matrix = {matrix}"),
    )
    assert "`circulator_loss`" in next(iter(refused(text + "require margin > 0 dB\n").diagnostics)).message
    text = text.replace("dr4_400g }", "dr4_400g { circulator_loss = 0.2 dB } }")
    assert {p.margin for p in paths(text)} == {MARGIN - 400_000_000}


def test_the_limit_itself_decides() -> None:
    """0.476 dB are left: `>=` holds, `>` does not, to the last digit."""
    compiled(PROGRAM + "require margin >= 0.476 dB\n")
    error = refused(PROGRAM + "require margin > 0.476 dB\n")
    assert [d.code for d in error.diagnostics] == ["OPUS421"]
    notes = next(iter(error.diagnostics)).notes
    assert notes[0].startswith("margin = 0.476 dB (dp[0] on rail 0: GPU 0 port ")
    assert notes[1:] == (
        "switch `generic`: 1.5 dB",
        "4 connectors of 0.25 dB: 1 dB",
        "60 m of fibre at 0.4 dB/km: 0.024 dB",
    )


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ((", transceiver = transceivers.dr4_400g", ""), "the `transceiver` of the NIC"),
        (("transceivers.dr4_400g", "transceivers.generic { sensitivity = -5 dBm }"), "`transmit_power`"),
        (("length = 30 m, ", ""), "`length` of fibre `os2` of rail 0"),
        ((", connector_loss = 0.25 dB", ""), "`connector_loss`"),
        ((", insertion_loss = 1.5 dB", ""), "`insertion_loss` of switch `generic`"),
        (("length = 30 m", "length = 30 m, patch_panels = 1"), "`patch_panel_loss`"),
        (("fibres.os2", "fibres.generic"), "`loss`"),
    ],
)
def test_a_missing_number_is_demanded_by_name_and_only_by_who_needs_it(change: tuple[str, str], missing: str) -> None:
    text = changed(change)
    compiled(text)
    error = refused(text + "require margin > 0 dB\n")
    assert {d.code for d in error.diagnostics} == {"OPUS441"}
    assert missing in next(iter(error.diagnostics)).message


# --- bandwidth -----------------------------------------------------------------------------------


def least(text: str) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for share in shares(compiled(text)):
        found.setdefault(share.phase, set()).add(share.ports)
        assert share.bandwidth == share.ports * 400_000_000_000
    return found


RINGS = (
    ("node_count    = 4", "node_count    = 8"),
    ("parallelism = { tp = 2, dp = 2, pp = 2 }", "parallelism = { tp = 2, dp = 4, pp = 2 }"),
)


def test_phases_that_take_turns_have_all_ports_and_packed_ones_a_share() -> None:
    assert least(changed(*RINGS)) == {"dp": {2}, "pp": {2}}
    four = (*RINGS, ("ports = 2", "ports = 4"), ("fabric      = rails", "fabric      = rails\n  pack = [dp, pp]"))
    assert least(changed(*four)) == {"dp": {2}, "pp": {2}}
    static = (*RINGS, ("ports = 2", "ports = 3"), ("fabric      = rails", "fabric      = rails\n  policy = static"))
    assert least(changed(*static)) == {"dp": {2}, "pp": {1}}


@pytest.mark.parametrize(("optics", "matrix"), [("duplex", "any"), ("bidi", "crossbar"), ("bidi", "any")])
def test_the_kind_of_port_does_not_change_what_a_ring_gives(optics: str, matrix: str) -> None:
    changes = (*RINGS, ("optics = duplex", f"optics = {optics}"), ("matrix = crossbar", f"matrix = {matrix}"))
    assert least(changed(*changes))["dp"] == {2}


def test_a_phase_that_gives_too_little_fails_with_what_it_gives() -> None:
    text = changed(*RINGS, ("ports = 2", "ports = 3"), ("fabric      = rails", "fabric = rails\n  policy = static"))
    compiled(text + "require bandwidth(dp) >= 800 Gbps and bandwidth >= 400 Gbps\n")
    error = refused(text + "require bandwidth(pp) >= 800 Gbps\n")
    notes = next(iter(error.diagnostics)).notes
    assert notes[0] == "bandwidth(pp) = 400 Gbps of a rank and direction (1 port at once in pp[0-1])"
    assert notes[1] == "pp[0-1] on rail 0: 1 port at once, 400 Gbps (8 ranks)"


def test_a_phase_inside_its_domains_has_nothing_to_measure() -> None:
    inside = changed(("parallelism = { tp = 2, dp = 2, pp = 2 }", "parallelism = { dp = 2, pp = 4 }"))
    error = refused(inside + "require bandwidth(dp) >= 400 Gbps\n")
    assert [d.code for d in error.diagnostics] == ["OPUS442"]
    assert "lies inside scale-up domains" in next(iter(error.diagnostics)).message


# --- every command says the same -----------------------------------------------------------------

RAILS = Path(__file__).parents[2] / "examples" / "photonic-rails" / "photonic-rails.opus"


@pytest.mark.parametrize("command", ["check", "compile", "cost", "simulate", "show"])
@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("overhead < 2.45 %", True),
        ("overhead < 2.44 %", False),
        ("reconfigurations == 10", True),
        ("reconfigurations < 10", False),
        ("cost <= 911232 USD", True),
        ("cost < 911232 USD", False),
        ("power < 1.8 kW", False),
        ("bandwidth(dp) >= 2 * 50 GiB/s", True),
        ("bandwidth >= 2 * 50 GiB/s", False),  # the ends of the chain have one neighbour
    ],
)
def test_commands_decide_a_requirement_alike(
    command: str,
    condition: str,
    holds: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "program.opus"
    program.write_text(RAILS.read_text() + f"\nrequire {condition}\n")
    assert main([command, str(program)]) == (0 if holds else 1)
    streams = capsys.readouterr()
    assert ("OPUS421" in streams.err) is not holds
    assert "OPUS420" not in streams.err
    if holds and command in ("compile", "cost"):
        assert f"require {condition}: " in " ".join(streams.out.split())


def test_one_condition_may_name_results_of_both_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.opus"
    program.write_text(RAILS.read_text() + "\nrequire overhead < 3 % and cost < 900 kUSD\n")
    assert main(["check", str(program)]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "overhead = 2.441 % (2.190 % at zero delay" in said
    assert "8 switches `polatis_6000n_192`: 798,720 USD" in said


def test_what_cannot_be_simulated_is_not_checked_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.opus"
    program.write_text(RAILS.read_text().replace("  scale_up      = 450 GiB/s\n", ""))
    assert main(["check", str(program)]) == 0
    said = capsys.readouterr().err
    assert "OPUS420" in said
    assert "`scale_up` of cluster `h200`" in said
