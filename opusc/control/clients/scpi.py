"""Polatis over SCPI (TCP 5025): lines as the target `polatis` writes them, then `:syst:err:all?` after each.

SCPI has neither credentials nor a proof of who answers; it belongs on a network of its own. That error queries answer
`0,"No error"` or `<code>,"<text>"` is IEEE 488.2; that commands do not answer is what clients of these switches expect.
"""

import re
import socket

from opusc.backends.polatis import BACKEND
from opusc.backends.switch_files import Pairs
from opusc.control.access import Access
from opusc.control.device import Garbled, Held, Refused, Unreachable
from opusc.control.places import Place
from opusc.plan.plan import Switch

__all__ = ["Scpi"]

_LONGEST = 1 << 20  # bytes of an answer; 20,000 pairs take half of it
_ERROR = re.compile(r'([+-]?\d+)\s*,\s*"([^"]*)"')
_STATE = re.compile(r"\(@([\d,\s]*)\),\s*\(@([\d,\s]*)\)")


class Scpi:
    """One connection."""

    def __init__(self, switch: Switch, place: Place, access: Access, reply: int) -> None:
        self._switch = switch
        [wire] = [wire for wire in BACKEND.wires if wire.name == "scpi"]
        assert wire.change is not None
        self._change = wire.change
        try:
            self._socket = socket.create_connection((place.host, place.port), reply / 1000)
        except OSError as error:
            raise Unreachable(error.strerror or str(error)) from None
        self._file = self._socket.makefile("rb")
        self._errors()  # whatever stands in the queue is not ours

    def read(self) -> Held:
        text = self._ask(":oxc:swit:conn:stat?")
        match = _STATE.fullmatch(text)
        if match is None:
            raise Garbled(f"its answer to conn:stat? is no list of pairs: {text[:60]!r}")
        sides = [[number.strip() for number in side.split(",") if number.strip()] for side in match.groups()]
        if len(sides[0]) != len(sides[1]):
            raise Garbled(f"it lists {len(sides[0])} ingress ports and {len(sides[1])} egress ports")
        return frozenset(zip(*sides, strict=True))

    def change(self, disconnect: Pairs, connect: Pairs) -> None:
        for line in self._change(self._switch, disconnect, connect).splitlines():
            self._send(line)
            wrong = self._errors()
            if wrong:
                raise Refused("; ".join(wrong))

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def _errors(self) -> list[str]:
        text = self._ask(":syst:err:all?")
        found = _ERROR.findall(text)
        if not found:
            raise Garbled(f"its answer to syst:err:all? is no list of errors: {text[:60]!r}")
        return [f"{said} ({code})" for code, said in found if int(code) != 0]

    def _send(self, line: str) -> None:
        try:
            self._socket.sendall(line.encode() + b"\n")
        except OSError as error:
            raise Unreachable(f"the connection broke: {error.strerror or error}") from None

    def _ask(self, line: str) -> str:
        self._send(line)
        try:
            answer = self._file.readline(_LONGEST)
        except TimeoutError:
            raise Unreachable("no answer in time") from None
        except OSError as error:
            raise Unreachable(f"the connection broke: {error.strerror or error}") from None
        if not answer.endswith(b"\n"):
            cut = len(answer) < _LONGEST
            raise Unreachable("it closed the connection") if cut else Garbled("its answer has no end")
        return answer.decode("ascii", "replace").strip()
