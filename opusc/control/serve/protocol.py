"""The lines of the published controller's protocol (opusfabric/Opus, arXiv 2602.12521), text over TCP.

    rank -> controller   COMM;<communicator>,<ranks>,<local rank>
    controller -> rank   CHECKIN_ACK;<communicator>,<0 scale-out | 1 scale-up>
    rank -> controller   CONFIG_REQ;<communicator>,<backend id>,<collective counter>
    controller -> rank   CONFIG_ACK;<communicator>

`<ranks>` are the members, `0-8-16-24` with any of `- _ : | /` or blanks between, or only how many there are. A backend
id above 10 is that of a pipeline pair: a tenth of it is the number of the later stage.
"""

import re
from dataclasses import dataclass

__all__ = ["LONGEST", "Checkin", "ProtocolError", "Request", "acknowledged", "checked_in", "parsed"]

LONGEST = 64 << 10  # bytes of a line: a communicator of 8,192 ranks takes 48,000

_NAME = re.compile(r"[^\s,;]{1,200}")
_NUMBER = re.compile(r"[0-9]{1,12}")


class ProtocolError(ValueError):
    """A line that is not of the protocol: a sentence."""


@dataclass(frozen=True, slots=True)
class Checkin:
    """A rank registers for a communicator. `members` are the global ranks where the line lists them."""

    communicator: str
    size: int
    members: tuple[int, ...]
    local_rank: int


@dataclass(frozen=True, slots=True)
class Request:
    """A rank needs the circuits of its next collective. `pair` is the later of two pipeline stages, None for others."""

    communicator: str
    backend: int
    counter: int

    @property
    def pair(self) -> int | None:
        return self.backend // 10 if self.backend > 10 else None


def parsed(line: bytes) -> Checkin | Request:
    """The message of a line without its end. Raises ProtocolError."""
    try:
        text = line.decode("ascii").strip()
    except UnicodeDecodeError:
        raise ProtocolError("a line is not ASCII") from None
    verb, semicolon, rest = text.partition(";")
    fields = rest.split(",")
    if not semicolon or verb not in ("COMM", "CONFIG_REQ") or len(fields) != 3:
        raise ProtocolError(f"no message: {text[:60]!r}")
    name, second, third = (field.strip() for field in fields)
    if not _NAME.fullmatch(name) or not _NUMBER.fullmatch(third):
        raise ProtocolError(f"wrong fields: {text[:60]!r}")
    if verb == "CONFIG_REQ":
        if not _NUMBER.fullmatch(second):
            raise ProtocolError(f"wrong fields: {text[:60]!r}")
        return Request(name, int(second), int(third))
    members = [number for number in re.split(r"[-_:|/\s\[\]]+", second) if number]
    if not members or not all(map(_NUMBER.fullmatch, members)):
        raise ProtocolError(f"no ranks: {text[:60]!r}")
    if len(members) == 1:
        return Checkin(name, int(members[0]), (), int(third))
    return Checkin(name, len(members), tuple(map(int, members)), int(third))


def checked_in(communicator: str, *, inside: bool) -> bytes:
    """The answer once all ranks have registered; `inside`: they share a scale-up domain."""
    return f"CHECKIN_ACK;{communicator},{int(inside)}\n".encode()


def acknowledged(communicator: str) -> bytes:
    """The answer once the circuits are there."""
    return f"CONFIG_ACK;{communicator}\n".encode()
