"""What a sweep has measured so far, a line for each point: a sweep that was stopped goes on from there.

The first line says what was swept (program and the files that it uses by hash, settings, version); a journal of
something else is refused rather than mixed in. A line that was cut off by a crash is measured again.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from opusc.sweep.measure import Record

__all__ = ["Journal", "OtherSweepError"]


class OtherSweepError(Exception):
    """The journal is that of another sweep: the program, a setting or the version differs."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} is of another sweep: {what}")
        self.what = what


class Journal:
    """Measured points by key. `identity` is what makes two sweeps the same."""

    def __init__(self, path: Path, identity: Mapping[str, object]) -> None:
        self.path, self.identity = path, json.loads(json.dumps(identity))
        self.done: dict[str, list[Record]] = {}

    def read(self) -> None:
        """What an earlier run left. Raises OtherSweepError."""
        try:
            lines = self.path.read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return
        if not lines[:-1]:
            return
        found = _parsed(lines[0])
        if not isinstance(found, dict) or found != self.identity:
            names = sorted({*self.identity, *found}) if isinstance(found, dict) else []
            differ = [n for n in names if found.get(n) != self.identity.get(n)] if isinstance(found, dict) else []
            raise OtherSweepError(self.path, f"its {', '.join(differ)} differ" if differ else "its first line says so")
        for line in lines[1:-1]:  # the last is empty, or was cut off
            entry = _parsed(line)
            if isinstance(entry, list) and len(entry) == 2:
                self.done[entry[0]] = entry[1]

    @contextmanager
    def appending(self) -> Iterator["Journal"]:
        """Open for `add`. What was read is written anew, so that a cut-off line is gone."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        with fresh.open("w", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(self.identity, ensure_ascii=False) + "\n")
            file.writelines(_line(key, rows) for key, rows in self.done.items())
        fresh.replace(self.path)
        with self.path.open("a", encoding="utf-8", newline="\n") as self._file:
            yield self

    def add(self, key: str, rows: Sequence[Record]) -> None:
        """Keep the records of a point, on the disk before anything else is measured."""
        self.done[key] = list(rows)
        self._file.write(_line(key, rows))
        self._file.flush()
        os.fsync(self._file.fileno())


def _line(key: str, rows: Sequence[Record]) -> str:
    return json.dumps([key, list(rows)], ensure_ascii=False) + "\n"


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None
