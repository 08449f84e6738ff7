"""Reading the files that a program uses: modules and cabling, confined to the project root."""

import os
from pathlib import Path
from typing import Protocol

from opusc.diagnostics import Diagnostics
from opusc.resources import stdlib_dir
from opusc.source import Source, Span

__all__ = ["FileLoader", "Loader", "MemoryLoader", "standard_modules", "standard_text"]

MAX_BYTES = 64 * 1024 * 1024


def standard_modules() -> list[str]:
    return sorted(path.stem for path in stdlib_dir().glob("*.opus"))


def standard_text(module: str) -> str:
    return (stdlib_dir() / f"{module}.opus").read_text(encoding="utf-8")


class FileLoader(Protocol):
    def file(self, path: str, near: Source, span: Span, sink: Diagnostics) -> Source | None:
        """The text of a file that `near` names at `span`; None after a diagnostic."""


class Loader:
    """Reads files below `root`. A path is relative to the file that names it."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def file(self, path: str, near: Source, span: Span, sink: Diagnostics) -> Source | None:
        folder = Path(near.name).resolve().parent
        base = folder if Path(near.name).is_file() and folder.is_relative_to(self.root) else self.root
        try:
            full = (base / path).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            sink.error("OPUS104", f"`{path}` cannot be read: {error}", span, "named here")
            return None
        if Path(path).is_absolute() or not full.is_relative_to(self.root):
            sink.error(
                "OPUS105",
                f"`{path}` lies outside the project root",
                span,
                "outside",
                notes=["a program reads only files below the folder of its main file"],
                help="move the file below it, or name a higher folder with --root",
            )
            return None
        try:
            if full.exists() and not full.is_file():
                sink.error("OPUS104", f"`{path}` is no ordinary file", span, "named here")
                return None
            if full.stat().st_size > MAX_BYTES:
                sink.error("OPUS104", f"`{path}` is larger than 64 MiB", span, "too large")
                return None
            raw = full.read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            sink.error("OPUS104", f"`{path}` cannot be read: {reason}", span, "named here")
            return None
        return decode(raw, os.path.normpath(base / path), span, sink)


class MemoryLoader:
    """Files from a mapping: for tests, and for editors with unsaved text."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def file(self, path: str, near: Source, span: Span, sink: Diagnostics) -> Source | None:
        if path not in self.files:
            sink.error("OPUS104", f"`{path}` cannot be read: no such file", span, "named here")
            return None
        return decode(self.files[path].encode(), path, span, sink)


def decode(raw: bytes, name: str, span: Span | None, sink: Diagnostics) -> Source | None:
    """Bytes as a source: UTF-8, without byte-order mark, lines ended by \\n."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = span or Source(name, "").span(0, 0)
        label = "named here" if span else ""
        sink.error("OPUS104", f"`{name}` is not UTF-8 (byte {error.start})", where, label)
        return None
    return Source(name, text.replace("\r\n", "\n").replace("\r", "\n"))
