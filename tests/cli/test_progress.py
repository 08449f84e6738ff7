"""The progress line: only on a terminal, only when it takes long, and gone afterwards."""

import io
import time

from opusc.progress import Progress

STAGES = ("syntax", "model", "plan", "proof")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_names_the_stage_and_how_far_it_is() -> None:
    progress = Progress(STAGES)
    assert progress.line(1.25) == "[....................] syntax, 1.2 s"
    progress.enter("proof")
    assert progress.line(62.04) == "[###############.....] proof, 62.0 s"


def test_nothing_is_drawn_in_time_or_without_a_terminal() -> None:
    quick = Terminal()
    with Progress(STAGES, quick, patience=5).shown() as progress:
        progress.enter("plan")
    assert quick.getvalue() == ""
    file = io.StringIO()
    with Progress(STAGES, file, patience=0).shown() as progress:
        time.sleep(0.01)
    assert file.getvalue() == ""


def test_a_long_run_is_drawn_and_wiped() -> None:
    terminal = Terminal()
    with Progress(STAGES, terminal, patience=0.001).shown() as progress:
        progress.enter("proof")
        deadline = time.monotonic() + 10
        while "proof" not in terminal.getvalue() and time.monotonic() < deadline:
            time.sleep(0.005)
    assert "] proof, " in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
