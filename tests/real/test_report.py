"""Reports in Chromium: no message on the console, every interaction works, at 128 and at 4,096 GPUs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opusc.cli.main import main
from tests.real.conftest import module, program

RAILS = Path(__file__).parents[2] / "examples" / "photonic-rails" / "photonic-rails.opus"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = module("playwright.sync_api")
    chromium = program("chromium")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


def opened(browser: Any, path: Path, width: int = 1280) -> tuple[Any, list[str]]:
    page = browser.new_page(viewport={"width": width, "height": 900})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if not request.url.startswith("file:") else None)
    page.goto(path.as_uri())
    return page, said


def written(folder: Path, text: str, *arguments: str) -> Path:
    (folder / "p.opus").write_text(text)
    assert main(["compile", str(folder / "p.opus"), "-t", "report", "-o", str(folder / "out"), *arguments]) == 0
    return folder / "out" / "report.html"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("small"), RAILS.read_text())


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    generic = "switches.generic { matrix = crossbar, radix = 1024,"
    text = RAILS.read_text().replace("switches.polatis_6000n_192 {", generic)
    return written(tmp_path_factory.mktemp("large"), text, "-D", "dp=128")


def pixels(page: Any) -> str:
    return str(page.evaluate("document.getElementById('canvas').toDataURL()"))


def test_a_click_on_a_node_shows_what_it_is_joined_to(browser: Any, small: Path) -> None:
    page, said = opened(browser, small)
    assert page.inner_text("#legend") == "32 circuits on rail 0 join 16 pairs of nodes."
    before = pixels(page)
    page.click("#canvas", position={"x": 80 + 62 + 20, "y": 34 + 20})  # node 1 stands second in the first row
    assert page.inner_text("#details h3") == "Node 1"
    assert "Ranks 8..15, pipeline stage 0." in page.inner_text("#details")
    assert page.locator("#details tbody tr").count() == 4
    assert "node 0 GPU 0 port 0, rank 0" in page.inner_text("#details")
    assert pixels(page) != before
    page.click("#canvas", position={"x": 5, "y": 5})
    assert page.inner_text("#details") == ""
    assert said == []


def test_the_keyboard_reaches_everything(browser: Any, small: Path) -> None:
    page, said = opened(browser, small)
    page.focus("#drawing")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert page.inner_text("#details h3") == "Node 5"
    page.keyboard.press("Escape")
    assert page.inner_text("#details") == ""
    page.fill("#node", "15")
    page.press("#node", "Enter")
    assert page.inner_text("#details h3") == "Node 15"
    page.fill("#node", "16")
    page.press("#node", "Enter")
    assert page.inner_text("#details") == ""
    assert said == []


def test_phases_parts_and_rails_are_chosen(browser: Any, small: Path) -> None:
    page, said = opened(browser, small)
    first = pixels(page)
    page.select_option("#part", label="pp: all parts")
    assert page.inner_text("#legend") == "24 circuits on rail 0 join 12 pairs of nodes."
    assert pixels(page) != first
    page.select_option("#part", label="pp[1-2]")
    assert page.inner_text("#legend") == "8 circuits on rail 0 join 4 pairs of nodes."
    page.select_option("#rail", label="rail 3")
    page.fill("#node", "6")
    page.press("#node", "Enter")
    assert "rails.rail[3]" in page.inner_text("#details")
    assert "GPU 3" in page.inner_text("#details")
    page.click("[data-phase='0']")
    assert page.input_value("#part") == "phase 0"
    assert said == []


def test_the_other_sections_are_there(browser: Any, small: Path) -> None:
    page, said = opened(browser, small)
    assert page.locator("#time figure svg").count() == 2
    assert "12,222.813 ms" in page.inner_text("#time")
    assert page.locator("#cost tbody tr").count() == 6
    page.click("#proof summary")
    assert page.locator("#proof details tbody tr").count() > 30
    assert said == []


@pytest.mark.parametrize("width", [400, 1280])
def test_it_is_readable_in_narrow_windows(browser: Any, small: Path, large: Path, width: int) -> None:
    for path in (small, large):
        page, said = opened(browser, path, width)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, "tables and drawings scroll inside the page"
        assert said == []


def test_4096_gpus(browser: Any, large: Path) -> None:
    assert large.stat().st_size < 5_000_000
    page, said = opened(browser, large)
    assert page.inner_text("#legend") == "1,024 circuits on rail 0 join 512 pairs of nodes."
    page.fill("#node", "511")
    page.press("#node", "Enter")
    assert "node 510 GPU 0" in page.inner_text("#details")
    assert said == []


def test_it_follows_the_dark_mode(browser: Any, small: Path) -> None:
    page, said = opened(browser, small)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    before = pixels(page)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    assert pixels(page) != before
    assert said == []
