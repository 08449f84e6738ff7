"""The output directory: written beside its place, then put there in one step, with a manifest.

A run that fails leaves what was there as it was. A directory is only ever replaced when every file in it is
one that opusc wrote, which its `manifest.json` says.
"""

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from opusc.source import Source
from opusc.version import __version__

__all__ = ["MANIFEST", "OutputError", "files_in", "inside", "manifest", "replacing", "write_file"]

MANIFEST = "manifest.json"
_FORMAT = 1
_CHUNK = 1 << 20


class OutputError(Exception):
    """The output directory cannot be written: an error of the invocation, not of the program."""


def inside(directory: Path, name: str) -> Path:
    """The path of an output file `name` (with `/` between folders), its folder made.

    Raises OutputError when the name would leave the directory or cannot be a file name everywhere.
    """
    path = PurePosixPath(name)
    unsafe = any(c in name for c in '\\:*?"<>|') or any(ord(c) < 32 for c in name)
    if not name or unsafe or path.is_absolute() or any(p in ("..", ".", "") for p in name.split("/")):
        raise OutputError(f"`{name}` cannot be the name of an output file")
    target = directory.joinpath(*path.parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def files_in(directory: Path) -> list[str]:
    """Every file below a directory, as sorted names with `/` between folders."""
    found = [p.relative_to(directory) for p in directory.rglob("*") if p.is_symlink() or not p.is_dir()]
    return sorted(path.as_posix() for path in found)


def manifest(
    directory: Path, *, targets: Sequence[str], parameters: Mapping[str, str], sources: Sequence[Source]
) -> dict[str, Any]:
    """What the directory holds and what it was made from. The same input gives the same manifest."""
    return {
        "format": _FORMAT,
        "opusc": __version__,
        "targets": list(targets),
        "parameters": dict(sorted(parameters.items())),
        "sources": [
            {"name": s.name, "sha256": hashlib.sha256(s.text.encode("utf-8", "surrogatepass")).hexdigest()}
            for s in sorted(sources, key=lambda source: source.name)
        ],
        "files": [
            {"path": name, "size": (directory / name).stat().st_size, "sha256": _sha256(directory / name)}
            for name in files_in(directory)
            if name != MANIFEST
        ],
    }


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A new directory to write into, which takes the place of `target` when the block ends without exception.

    The block writes the manifest last. Raises OutputError when `target` must not be
    replaced or cannot be.
    """
    target = Path(os.path.realpath(target))
    _may_replace(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent))
    except OSError as error:
        raise OutputError(f"cannot write to `{target.parent}`: {error.strerror}") from error
    try:
        yield staging
        _check_staging(staging)
        staging.chmod(0o777 & ~_umask())
        _put(staging, target)
    except OSError as error:
        raise OutputError(f"cannot write `{target}`: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def write_file(path: Path, content: bytes) -> None:
    """Write beside the file, then move into its place: a crash must not leave half of it. Raises OutputError."""
    target = Path(os.path.realpath(path))
    try:
        descriptor, beside = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.chmod(beside, target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask())
            os.replace(beside, target)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"cannot write `{path}`: {error.strerror or error}") from error


def _check_staging(staging: Path) -> None:
    """A backend that forgot the manifest or left a link is a defect that must not reach the user's disk."""
    if not (staging / MANIFEST).is_file():
        raise AssertionError("an output directory without manifest")
    linked = [p for p in staging.rglob("*") if p.is_symlink()]
    if linked:
        raise AssertionError(f"a link in the output directory: {linked[0].name}")


def _may_replace(target: Path) -> None:
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise OutputError(f"`{target}` is not a directory")
    present = files_in(target)
    if not present:
        return
    if Path.cwd() == target or target in Path.cwd().parents:
        raise OutputError(f"`{target}` is the directory that you are in; name one inside it or elsewhere")
    known = _listed(target)
    if known is None:
        raise OutputError(f"`{target}` was not written by opusc (it has no {MANIFEST}); choose another directory")
    foreign = [name for name in present if name not in known]
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise OutputError(
            f"`{target}` holds `{foreign[0]}`{more}, which opusc did not write; move it or choose another directory"
        )


def _listed(target: Path) -> frozenset[str] | None:
    """The files that the manifest of a directory names, or None when there is no manifest of ours."""
    try:
        read = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
        if not isinstance(read["opusc"], str):
            return None
        return frozenset([MANIFEST, *(str(entry["path"]) for entry in read["files"])])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _put(staging: Path, target: Path) -> None:
    """Swap in one step where the system can; else move the old directory aside and back if that fails."""
    if not target.exists():
        staging.rename(target)
        return
    if _exchange(staging, target):
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
    try:
        target.rename(aside / target.name)
        try:
            staging.rename(target)
        except OSError:
            (aside / target.name).rename(target)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    """Exchange two directories atomically; False where kernel or file system cannot."""
    if sys.platform != "linux":
        return False
    import ctypes

    here, swap = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of renameat2(2)
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return bool(rename(here, os.fsencode(a), here, os.fsencode(b), swap) == 0)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
