"""A line on the terminal that says which stage a long compile is in."""

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

__all__ = ["Progress"]

_PATIENCE = 1.0  # seconds without a sign of life that people accept
_INTERVAL = 0.1
_WIDTH = 20


class Progress:
    """Shows `[########............] proof, 3.2 s` once the work takes longer than a second.

    Draws only on a terminal, from a thread, because a stage may spend minutes inside one library call.
    """

    def __init__(self, stages: Sequence[str], stream: TextIO | None = None, patience: float = _PATIENCE) -> None:
        self._stages = tuple(stages)
        self._stream = sys.stderr if stream is None else stream
        self._patience = patience
        self._stage = self._stages[0]
        self._drawn = False
        self._over = threading.Event()

    @contextmanager
    def shown(self) -> Iterator["Progress"]:
        """Draw while the block runs; leave the line clean for whatever is printed next."""
        if not self._stream.isatty():
            yield self
            return
        thread = threading.Thread(target=self._draw_until_over, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()
            if self._drawn:
                self._stream.write("\r\x1b[K")
                self._stream.flush()

    def enter(self, stage: str) -> None:
        self._stage = stage

    def _draw_until_over(self) -> None:
        begin = time.monotonic()
        wait = self._patience
        while not self._over.wait(wait):
            wait = _INTERVAL
            self._stream.write("\r" + self.line(time.monotonic() - begin) + "\x1b[K")
            self._stream.flush()
            self._drawn = True

    def line(self, seconds: float) -> str:
        done = self._stages.index(self._stage) if self._stage in self._stages else 0
        filled = _WIDTH * done // len(self._stages)
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {self._stage}, {seconds:.1f} s"
