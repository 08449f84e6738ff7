"""Cabling as stated: shared chassis, inline, and CSV files joined through patch panels."""

import pytest

from opusc.model.entities import CablingKind, CablingSpec
from tests.model.programs import PROGRAM, codes, model_of, right

PORTS = [(n, g, p) for n in range(4) for g in range(2) for p in range(2)]


def cabled(how: str) -> str:
    return PROGRAM.replace("32x32 }", f"32x32\n  cabling = {how}\n}}")


def table(header: str, row: str = "{n},{g},{p},{x}", end: str = "\n") -> str:
    rows = [row.format(n=n, g=g, p=p, x=2 * n + p + 1) for n, g, p in PORTS]
    return end.join([header, *rows]) + end


CSV = 'csv "c.csv"'
WHOLE = table("node,gpu,port,position")


def rows(cabling: CablingSpec) -> list[tuple[int, int, int, int]]:
    return [(c.node, c.gpu, c.port, c.position) for c in cabling.cables]


EXPECTED = [(n, g, p, 2 * n + p + 1) for n, g, p in PORTS]


@pytest.mark.parametrize(
    ("how", "files"),
    [
        ("explicit { of = [(n, g, p, 2 * n + p + 1) for n in 0..3 for g in 0..1 for p in 0..1] }", {}),
        (CSV, {"c.csv": WHOLE}),
        ('csv ["c.csv"]', {"c.csv": WHOLE}),
        (CSV, {"c.csv": "\ufeff" + table("node,gpu,port,position", end="\r\n")}),
        (CSV, {"c.csv": table("position, rack ,node,gpu,port", '"{x}", r1 ,node0{n},{g},{p}') + "\n,,,,\n"}),
        (
            'csv "c.csv" { columns = { node = "Host", position = "OCS port" } }',
            {"c.csv": table("Host,gpu,port,OCS port")},
        ),
        (
            'csv ["nic.csv", "panel.csv"] { columns = { far = "jack", near = "jack" } }',
            {
                "nic.csv": table("node,gpu,port,jack", "{n},{g},{p},J{n}-{g}-{p}"),
                "panel.csv": table("jack,position", "J{n}-{g}-{p},{x}"),
            },
        ),
        (
            'csv ["nic.csv", "between.csv", "panel.csv"]',
            {
                "nic.csv": table("node,gpu,port,far", "{n},{g},{p},J{n}-{g}-{p}"),
                "between.csv": table("near,far", "J{n}-{g}-{p},K{n}-{g}-{p}"),
                "panel.csv": table("near,position", "K{n}-{g}-{p},{x}"),
            },
        ),
    ],
)
def test_the_same_cables_however_stated(how: str, files: dict[str, str]) -> None:
    model = right(cabled(how), files=files)
    assert model.fabric.cabling.kind is CablingKind.LISTED
    assert rows(model.fabric.cabling) == EXPECTED
    assert {s.name for s in model.sources} >= set(files), "the plan's manifest names every file"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "empty"),
        ("node,gpu,port,position\n", 1, "no rows"),
        (WHOLE.replace("node", "nod"), 1, "no column `node`"),
        (WHOLE.replace(",", ";"), 1, "no column `node`"),
        (WHOLE + "1,2\n", 18, "2 cells under 4 columns"),
        (WHOLE.replace("3,1,1,8", "3,1,x,8"), 17, "`x` is no port"),
        (WHOLE.replace("3,1,1,8", "3,1,1,-8"), 17, "`-8` is no position"),
        (WHOLE.replace("3,1,1,8", "\uff13,1,1,8"), 17, "is no node"),
        (WHOLE.replace("3,1,1,8", "3,1,1," + "8" * 3000), 17, "is no position"),
        (WHOLE + '"3,1,1,8\n', 18, "1 cells under 4 columns"),
        (WHOLE + "3,1,\0,8\n", 18, "is no port"),
        (WHOLE.replace("0,0,0,1", "0,0\u2028,0\x0c,1").replace("3,1,1,8", "3,1,x,8"), 17, "`x` is no port"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_at_its_line(text: str, line: int, says: str) -> None:
    _, sink = model_of(cabled(CSV), files={"c.csv": text})
    (diagnostic,) = sink
    assert diagnostic.code == "OPUS309"
    assert (diagnostic.span.source.name, diagnostic.span.line) == ("c.csv", line)
    assert says in diagnostic.message
    assert len(diagnostic.message) < 200


def test_panels_must_join_end_to_end() -> None:
    how = cabled('csv ["nic.csv", "panel.csv"]')
    nic = table("node,gpu,port,far", "{n},{g},{p},J{n}-{g}-{p}")
    panel = table("near,position", "J{n}-{g}-{p},{x}")
    _, sink = model_of(how, files={"nic.csv": nic, "panel.csv": panel.replace("J1-1-1,4\n", "")})
    assert [(d.code, d.span.place) for d in sink] == [("OPUS309", "nic.csv:9:1")]
    _, sink = model_of(how, files={"nic.csv": nic, "panel.csv": panel + "J0-0-0,30\n"})
    assert [(d.code, d.span.place, d.secondary[0].span.place) for d in sink] == [
        ("OPUS303", "panel.csv:18:1", "panel.csv:2:1")
    ]


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ('csv "missing.csv"', "OPUS104"),
        ('csv "c.csv" { columns = { host = "Host" } }', "OPUS207"),
        ('csv "c.csv" { column = 3 }', "OPUS207"),
        ("explicit { of = [(0, 0, 0)] }", "OPUS212"),
        ('explicit { of = ["a"] }', "OPUS212"),
        ("explicit", "OPUS209"),
        ("share { rail 0 = 1..8 }", "OPUS209"),
        ("share { rail 0 = 1..8\n rail 1 = 8..15 }", "OPUS303"),
        ("share { rail 0 = 1..8\n rail 2 = 9..16 }", "OPUS204"),
        ("shared { rail 0 = 1..8 }", "OPUS101"),
    ],
)
def test_wrong_cabling(how: str, code: str) -> None:
    assert codes(cabled(how), files={"c.csv": WHOLE}) == [code]


def test_rails_share_a_chassis() -> None:
    model = right(cabled("share {\n    rail 0 = 1..8\n    rail 1 = 25..32\n  }"))
    assert model.fabric.cabling.kind is CablingKind.SHARE
    assert model.fabric.cabling.share == ((0, tuple(range(1, 9))), (1, tuple(range(25, 33))))


def test_files_in_the_wrong_order_are_one_mistake() -> None:
    how = cabled('csv ["nic.csv", "panel.csv"]')
    nic = table("node,gpu,port,far", "{n},{g},{p},J{n}-{g}-{p}")
    (found,) = model_of(how, files={"nic.csv": nic, "panel.csv": "near,position\nK1,1\n"})[1]
    assert found.code == "OPUS309"
    assert found.notes == ("15 more of 16 cables end so",)


def test_a_file_that_is_wrong_in_every_row_does_not_fill_the_screen() -> None:
    _, sink = model_of(cabled(CSV), files={"c.csv": table("node,gpu,port,position", "{n},{g},{p},x{x}")})
    assert [d.span.line for d in sink] == list(range(2, 12))
