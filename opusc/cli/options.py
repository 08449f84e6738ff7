"""Options that several commands share, and the types of their values."""

import argparse
import re

__all__ = ["delays", "index", "part_options", "policies", "program_options", "size_in_bytes"]


def program_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-D",
        dest="params",
        metavar="NAME=VALUE",
        type=_definition,
        action="append",
        default=[],
        help="give a param its value, for example -D dp=8",
    )
    parser.add_argument("--root", metavar="DIR", help="folder that `use` may read below (default: the program's own)")
    parser.add_argument(
        "--format",
        choices=("text", "concise", "json"),
        default="text",
        help="form of the messages (default: text)",
    )


def part_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--phase", metavar="NAME", help="only this phase, for example dp")
    parser.add_argument("--stage", metavar="N", type=index, help="only this pipeline stage")
    parser.add_argument("--step", metavar="N", type=index, help="only this step")


def _definition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier() or not value.strip():
        raise argparse.ArgumentTypeError(f"`{text}` should be NAME=VALUE, for example dp=8")
    return name.strip(), value.strip()


def index(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"`{text}` should be a number from 0")
    return int(text)


_PICOSECONDS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}


def delays(text: str) -> list[int]:
    """Picoseconds of each delay of a list."""
    found = []
    for item in text.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:\.(\d{1,12}))?\s*([a-z]*)", item.strip(), re.ASCII)
        unit = _PICOSECONDS.get(match[3]) if match else None
        zero = match is not None and not match[3] and not int(match[1]) and not int(match[2] or 0)
        if match is None or (unit is None and not zero):
            raise argparse.ArgumentTypeError(f"`{item.strip()}` should be a time such as 10ms or 0.5s")
        decimals = match[2] or ""
        found.append(int(match[1] + decimals) * (unit or 1) // 10 ** len(decimals))
    return found


def policies(text: str) -> list[str]:
    """Names of policies, each once."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in ("on_demand", "provisioned", "static", "auto"):
            raise argparse.ArgumentTypeError(f"`{name}` should be on_demand, provisioned, static or auto")
    return list(dict.fromkeys(names))


_SIZES = {"": 1, "B": 1}
_SIZES |= {f"{prefix}B": 1000**power for power, prefix in enumerate("kMGT", 1)}
_SIZES |= {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", 1)}


def size_in_bytes(text: str) -> int:
    match = re.fullmatch(r"(\d{1,15})\s*([A-Za-z]*)", text.strip(), re.ASCII)
    if match is None or match[2] not in _SIZES:
        raise argparse.ArgumentTypeError(f"`{text}` should be a size such as 500 MB or 2 GiB")
    return int(match[1]) * _SIZES[match[2]]
