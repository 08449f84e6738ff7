"""`opusc simulate`: the published example, requirements on its results, and what it refuses."""

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from opusc.cli.main import main

RAILS = Path(__file__).parents[2] / "examples" / "photonic-rails" / "photonic-rails.opus"

PROGRAM = """opus 1

use std.switches
use std.gpus
use std.models

cluster c {
  node_count    = 8
  gpus_per_node = 8
  gpu           = gpus.h200
  scale_up      = 450 GB/s
  nic           = { ports = 2, rate = 400 Gbps, optics = duplex }
}

fabric rails {
  cluster = c
  rail_by = local_rank
  switch  = switches.generic { matrix = crossbar, radix = 64, reconfigure = { settle = 10 ms, relock = 0 ms } }
}

job j {
  fabric       = rails
  model        = models.llama3_70b
  parallelism  = { tp = 8, dp = 4, pp = 2 }
  batch        = 64
  microbatches = 1
  pipeline     = gpipe
  policy       = provisioned
}
"""


def simulate(capsys: pytest.CaptureFixture[str], program: Path, *more: str) -> tuple[int, str, str]:
    code = main(["simulate", str(program), *more])
    out, err = capsys.readouterr()
    return code, out, err


def changed(tmp_path: Path, *edits: tuple[str, str], add: str = "") -> Path:
    text = PROGRAM
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    path = tmp_path / "program.opus"
    path.write_text(text + add)
    return path


def codes(capsys: pytest.CaptureFixture[str], program: Path, *more: str) -> tuple[int, list[tuple[str, str]]]:
    code, out, _ = simulate(capsys, program, "--format", "json", *more)
    return code, [(d["code"], d["message"]) for d in json.loads(out)["diagnostics"]]


def test_the_published_figures_of_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    """Figure 12 of arXiv 2602.12521: 2.19 % at zero delay; provisioned 2.44, 3.45 and 5.31 % at 10, 50, 100 ms."""
    code, out, err = simulate(capsys, RAILS, "--reconfigure", "0,10ms,50ms,0.1s", "--policy", "on_demand,provisioned")
    assert code == 0
    assert err == ""
    rows = [re.split(r"  +", line) for line in out.splitlines() if re.match(r"(on_demand|provisioned) ", line)]
    assert [row[1] for row in rows] == ["0 ms", "10 ms", "50 ms", "100 ms"] * 2
    assert [row[3] for row in rows if row[0] == "provisioned"] == ["2.190 %", "2.441 %", "3.447 %", "5.308 %"]
    assert {row[4] for row in rows} == {"2.190 %"}
    assert {row[6] for row in rows} == {"10"}
    assert "all links    11,931.531 ms" in out
    held = re.sub(r"\s+", " ", out)
    assert "held require overhead < 6 %: overhead = 2.441 % (2.190 % at zero delay, 0.251 % from the delay)" in held


def test_delay_and_policy_of_the_program_are_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = simulate(capsys, RAILS, "-D", "delay=100 ms")
    rows = [line for line in out.splitlines() if re.match(r"(on_demand|provisioned) ", line)]
    assert [line.split()[:2] for line in rows] == [["provisioned", "0"], ["provisioned", "100"]]


def test_a_requirement_is_held_to_the_programs_own_delay_whatever_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = codes(capsys, RAILS, "-D", "delay=250 ms", "--reconfigure", "1ms", "--policy", "on_demand")
    assert code == 1
    assert found == [("OPUS421", "required, and not so: `overhead < 6 %`: too slow for production")]


def test_all_that_a_simulation_measures_can_be_required(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = "require iteration_time < 1 min and reconfigurations == 4\nrequire overhead < 50 %\n"
    assert codes(capsys, changed(tmp_path, add=good)) == (0, [])
    bad = 'require reconfigurations < 4\nrequire iteration_time < 1 ms else "slow"\n'
    bad += "require overhead < 1 % and cost < 1 USD\n"
    code, found = codes(capsys, changed(tmp_path, add=bad))
    assert code == 1
    assert found == [
        ("OPUS421", "required, and not so: `reconfigurations < 4`: it does not hold"),
        ("OPUS421", "required, and not so: `iteration_time < 1 ms`: slow"),
        ("OPUS420", "not checked: `overhead < 1 % and cost < 1 USD`"),
    ]


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, place = changed(tmp_path), tmp_path / "out"
    assert simulate(capsys, program, "-o", str(place), "--policy", "on_demand,provisioned")[0] == 0
    names = ["manifest.json", "overhead.csv", "overhead.svg"]
    names += [f"timeline-{name}.svg" for name in ("all_links", "on_demand", "provisioned")]
    assert sorted(path.name for path in place.iterdir()) == names
    first = {path.name: path.read_bytes() for path in place.iterdir()}
    rows = list(csv.DictReader((place / "overhead.csv").read_text().splitlines()))
    assert [(row["policy"], row["delay_ps"]) for row in rows[1:]] == [
        (policy, delay) for policy in ("on_demand", "provisioned") for delay in ("0", "10000000000")
    ]
    for row in rows:
        assert float(row["overhead"]) == pytest.approx(int(row["iteration_ps"]) / int(rows[0]["iteration_ps"]) - 1)
    assert simulate(capsys, program, "-o", str(place), "--policy", "on_demand,provisioned")[0] == 0
    assert {path.name: path.read_bytes() for path in place.iterdir()} == first


def test_drawings_show_each_stage_and_each_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "out"
    assert simulate(capsys, RAILS, "-o", str(place), "--policy", "on_demand,provisioned")[0] == 0
    plot = ElementTree.parse(place / "overhead.svg").getroot()
    assert len(plot.findall(".//{*}polyline")) == 2
    drawn = ElementTree.parse(place / "timeline-provisioned.svg").getroot()
    kinds = {rect.get("class") for rect in drawn.iter("{http://www.w3.org/2000/svg}rect")} - {None}
    assert kinds == {"compute", "tp", "dp", "pp", "switching"}
    labels = {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert {f"stage {s}" for s in range(4)} <= labels
    links = ElementTree.parse(place / "timeline-all_links.svg").getroot()
    assert not [r for r in links.iter("{http://www.w3.org/2000/svg}rect") if r.get("class") == "switching"]
    width = float(drawn.get("width", "0"))
    assert all(0 <= float(r.get("x", "0")) + float(r.get("width", "0")) <= width for r in drawn.iter("{*}rect"))


@pytest.mark.parametrize(
    ("old", "new", "about"),
    [
        ("pipeline     = gpipe", "pipeline     = dualpipe", "`pipeline = dualpipe`"),
        (
            "policy       = provisioned",
            "phase dp { topology = hypercube }",
            "reductions of phase `dp` over a hypercube",
        ),
        ("policy       = provisioned", "phase mine over dp { topology = ring }", "what phase `mine` carries"),
        ("models.llama3_70b", "models.llama3_70b { layers = 2000000 }", "2,000,000 layers"),
    ],
)
def test_what_is_not_modelled_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, about: str
) -> None:
    code, found = codes(capsys, changed(tmp_path, (old, new)))
    assert code == 1
    assert {name for name, _ in found} == {"OPUS430"}
    assert any(about in message for _, message in found), found


@pytest.mark.parametrize(
    ("edits", "about"),
    [
        ([("batch        = 64", "batch        = 63")], "a batch of 63 does not divide over `dp = 4`"),
        ([("microbatches = 1", "microbatches = 5")], "a batch of 64 does not divide over dp = 4 and 5 micro-batches"),
        (
            [("= gpipe", "= interleaved { chunks = 2 }")],
            "1 micro-batches cannot be interleaved over 2 stages",
        ),
        (
            [("dp = 4, pp = 2", "dp = 4, pp = 2, ep = 2"), ("policy       = provisioned", "dialect = torchtitan")],
            "`ep = 2` has no experts to spread: network `llama3_70b` states none",
        ),
    ],
)
def test_what_cannot_be_an_iteration_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], edits: list[tuple[str, str]], about: str
) -> None:
    code, found = codes(capsys, changed(tmp_path, *edits))
    assert code == 1
    assert found == [("OPUS432", about)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pipeline     = gpipe", "pipeline     = one_f_one_b"),
        ("microbatches = 1", "microbatches = 8"),
        ("policy       = provisioned", "sharding = optimizer"),
        ("policy       = provisioned", "sharding = gradients"),
        ("policy       = provisioned", "sharding = full"),
        ("tp = 8, dp = 4, pp = 2", "tp = 8, cp = 2, dp = 2, pp = 2"),
        ("tp = 8, dp = 4, pp = 2", "tp = 4, dp = 8, pp = 2"),
        ("tp = 8, dp = 4, pp = 2", "tp = 8, pp = 2"),
        ("tp = 8, dp = 4, pp = 2", "tp = 8, dp = { replicate = 2, shard = 2 }, pp = 2"),
        ("ports = 2", "ports = 1"),
        ("policy       = provisioned", "phase dp { topology = mesh }"),
        ("policy       = provisioned", "phase dp { hold = 1 ms }"),
        ("models.llama3_70b", "models.llama3_70b { tied_embeddings = true }"),
        ("models.llama3_70b", "models.llama3_70b { experts = 8, experts_per_token = 2 }"),
        ("policy       = provisioned", "stages = [80, 0]"),
        ("policy       = provisioned", "schedule = [pp, dp]"),
    ],
)
def test_jobs_beyond_the_published_form_are_simulated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    program = changed(tmp_path, (old, new))
    if "replicate" in new:
        program.write_text(program.read_text().replace("job j {", "job j {\n  dialect = torchtitan"))
    code, out, err = simulate(capsys, program, "--policy", "on_demand,provisioned", "--reconfigure", "0,10ms")
    assert (code, err) == (0, "")
    assert len(re.findall(r"^(?:on_demand|provisioned) +\d", out, re.MULTILINE)) == 4


@pytest.mark.parametrize(
    ("old", "new", "about"),
    [
        ("  batch        = 64\n", "", "`batch`"),
        ("  microbatches = 1\n", "", "`microbatches`"),
        ("  model        = models.llama3_70b\n", "", "`model`"),
        ("  gpu           = gpus.h200\n", "", "`gpu`"),
        ("  scale_up      = 450 GB/s\n", "", "`scale_up`"),
        ("450 GB/s", "1 bps", "`scale_up`"),
        ("rate = 400 Gbps", "rate = 1 bps", "`rate`"),
        ("gpus.h200", "gpus.h200 { memory_bandwidth = 1 bps }", "`memory_bandwidth`"),
        (", reconfigure = { settle = 10 ms, relock = 0 ms }", "", "`settle` and `relock`"),
    ],
)
def test_numbers_without_a_default_are_demanded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, about: str
) -> None:
    code, found = codes(capsys, changed(tmp_path, (old, new)))
    assert code == 1
    assert [name for name, _ in found] == ["OPUS431"]
    assert about in found[0][1]


def test_delays_on_the_command_line_need_no_delay_in_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = changed(tmp_path, (", reconfigure = { settle = 10 ms, relock = 0 ms }", ""))
    assert codes(capsys, program, "--reconfigure", "0,5ms") == (0, [])


@pytest.mark.parametrize("given", ["10", "ten", "10ms,", "-1ms", "1h", "10 MS", "1e3ms"])
def test_delays_have_units(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["simulate", str(RAILS), f"--reconfigure={given}"])
    assert stopped.value.code == 2
    assert "should be a time" in capsys.readouterr().err


def test_wider_elements_take_longer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def all_links(*more: str) -> str:
        found = re.search(r"all links +([\d,.]+) ms", simulate(capsys, changed(tmp_path), *more)[1])
        assert found
        return found[1].replace(",", "")

    assert float(all_links("--bytes-per-element", "2")) > 1.3 * float(all_links())


def test_arithmetic_counting_and_efficiency(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twice the operations and half the speed: four times the compute; both are said."""
    half = ("policy       = provisioned", "efficiency   = 50 %")

    def links(*edits: tuple[str, str], more: tuple[str, ...] = ()) -> tuple[float, str]:
        out = simulate(capsys, changed(tmp_path, *edits), "--reconfigure", "0", "--policy", "on_demand", *more)[1]
        found = re.search(r"all links +([\d,.]+) ms", out)
        assert found
        return float(found[1].replace(",", "")), re.sub(r"\s+", " ", out)

    plain, said = links()
    assert "a multiply-add as one operation" in said
    assert "of the roofline" not in said
    slow, said = links(half)
    assert plain < slow < 2 * plain
    assert "at 50.0 % of the roofline, as the job states" in said
    whole, said = links(more=("--counting", "arithmetic"))
    assert whole > 1.5 * plain
    assert "2 bytes an element, a multiply-add as two operations" in said


@pytest.mark.parametrize("bad", ["0 %", "101 %", "-1 %", "2", "3 ms", "true"])
def test_efficiency_is_a_share(tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: str) -> None:
    code, found = codes(capsys, changed(tmp_path, ("policy       = provisioned", f"efficiency = {bad}")))
    assert code == 1
    assert [name for name, _ in found] in (["OPUS204"], ["OPUS201"])


def test_the_rail_whose_switch_lacks_times_is_pointed_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = "  rail[3] = { switch = switches.generic { matrix = crossbar, radix = 32 } }\n}\n\njob j"
    code, _, err = simulate(capsys, changed(tmp_path, ("}\n\njob j", other)))
    assert code == 1
    assert "needs `settle` and `relock` of switch `generic`" in re.sub(r"\s+", " ", err)
    assert "radix = 32 }" in err


def test_a_phase_may_be_held(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def added(hold: str) -> int:
        edit = ("policy       = provisioned", f"microbatches = 2\n  phase dp {{ hold = {hold} }}")
        program = changed(tmp_path, ("  microbatches = 1\n", ""), edit)
        assert simulate(capsys, program, "-o", str(tmp_path / "out"), "--policy", "on_demand")[0] == 0
        rows = list(csv.DictReader((tmp_path / "out" / "overhead.csv").read_text().splitlines()))
        return int(rows[-1]["iteration_ps"])

    assert added("1 ps") == added("2 ps")
    assert added("20 s") > added("1 ps")


def test_spare_ports_repeat_the_circuits_and_their_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two stages and four ports: rings have two circuits to each neighbour, the join of the stages four."""
    _, out, _ = simulate(capsys, changed(tmp_path, ("ports = 2", "ports = 4")))
    assert "100.0 GB/s to each neighbour of a ring, 200.0 GB/s between stages" in re.sub(r"\s+", " ", out)


def test_stages_may_have_different_numbers_of_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With one micro-batch stages take turns, so the iteration stays; but a stage with more layers computes longer."""

    def links(*edits: tuple[str, str]) -> dict[str, str]:
        assert simulate(capsys, changed(tmp_path, *edits), "-o", str(tmp_path / "out"))[0] == 0
        return next(csv.DictReader((tmp_path / "out" / "overhead.csv").read_text().splitlines()))

    even = links()
    assert links(("policy       = provisioned", "stages = [40, 40]")) == even
    uneven = links(("policy       = provisioned", "stages = [50, 30]"))
    assert uneven["iteration_ps"] == even["iteration_ps"]
    assert int(uneven["exposed_stage_0_ps"]) < int(even["exposed_stage_0_ps"])


def test_a_network_states_its_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = "network mine { layers = 4, width = 512, heads = 8 }"
    code, found = codes(capsys, changed(tmp_path, ("models.llama3_70b", "mine"), add=bare))
    assert code == 1
    names = ("feed_forward", "vocabulary", "sequence", "gated")
    assert sorted(found) == sorted(("OPUS431", f"the time model needs `{name}` of network `mine`") for name in names)
    full = bare.replace("heads = 8", "heads = 8, feed_forward = 2048, vocabulary = 1000, sequence = 128, gated = false")
    assert codes(capsys, changed(tmp_path, ("models.llama3_70b", "mine"), add=full)) == (0, [])


@pytest.mark.parametrize(
    ("times", "delay"),
    [
        ("settle = 10 ms, relock = 0 ms", "10 ms"),
        ("settle = 0 ms, relock = 10 ms", "10 ms"),
        ("settle = 0 ms, relock = 0 ms, control = 10 ms", "10 ms"),
        ("settle = 7 ms, relock = 2 ms, control = 1 ms", "10 ms"),
        ("settle = 7 ms, relock = 2500 us, control = 250 us", "9.75 ms"),
    ],
)
def test_a_change_takes_settle_relock_and_control(
    times: str, delay: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = changed(tmp_path, ("settle = 10 ms, relock = 0 ms", times))
    code, out, err = simulate(capsys, program)
    assert (code, err) == (0, "")
    assert re.search(rf"^provisioned +{delay} +[\d,.]+ ms", out, re.MULTILINE), out


def test_the_slowest_switch_of_the_fabric_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slower = "switches.generic { matrix = crossbar, radix = 64, reconfigure = { settle = 1 ms, relock = 30 ms } }"
    program = changed(tmp_path, ("relock = 0 ms } }\n", f"relock = 0 ms }} }}\n  rail[3] = {{ switch = {slower} }}\n"))
    code, out, err = simulate(capsys, program)
    assert (code, err) == (0, "")
    assert re.search(r"^provisioned +31 ms", out, re.MULTILINE), out
