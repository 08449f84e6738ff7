"""What differs between the cabling as built and as the program assumes it: one cause each, with what to do."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from opusc.control.cabling.names import NicPort
from opusc.diagnostics import Diagnostic
from opusc.diagnostics.model import Severity
from opusc.source import Span

__all__ = ["Cause", "Finding", "as_diagnostics", "in_order"]


class Cause(StrEnum):
    EXCHANGED = "exchanged"  # two cables, each in the other's place
    SHIFTED = "shifted"  # neighbours along a front panel, each as many places too far
    CYCLE = "cycle"  # three or more cables, each in the next one's place
    MOVED = "moved"  # one cable, or a chain of them that ends at a free place
    RAILS = "rails exchanged"  # of one node
    PLANES = "planes exchanged"  # of one GPU
    NODES = "nodes exchanged"
    SWITCHES = "switches exchanged"
    REVERSED = "reversed"  # transmit and receive of one port
    FIBRES = "fibres exchanged"  # single fibres of duplex pairs
    MISSING = "missing"
    UNKNOWN = "unknown"
    TWICE = "observed twice"
    UNCERTAIN = "uncertain"  # several explanations


_CODES = {
    Cause.REVERSED: "OPUS727",
    Cause.FIBRES: "OPUS727",
    Cause.MISSING: "OPUS728",
    Cause.UNKNOWN: "OPUS729",
    Cause.TWICE: "OPUS730",
    Cause.UNCERTAIN: "OPUS731",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause. `message` stands alone; `facts` say where each cable is and belongs; `action` is what to do."""

    cause: Cause
    message: str
    facts: tuple[str, ...]
    action: str
    ports: tuple[NicPort, ...]  # the cables that it explains
    order: tuple[int, int, int]  # rail, switch, position: where it is printed
    span: Span | None = None  # a row that shows it

    @property
    def code(self) -> str:
        return _CODES.get(self.cause, "OPUS726")


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """By rail, switch and position."""
    return tuple(sorted(findings, key=lambda f: (f.order, f.cause, f.ports)))


def as_diagnostics(findings: Iterable[Finding], program: Span) -> list[Diagnostic]:
    """Findings as messages: at the row that shows them, else at the program's cabling."""
    return [
        Diagnostic(
            f.code,
            Severity.ERROR,
            f.message,
            program if f.span is None else f.span,
            "the cabling as the program assumes it" if f.span is None else "observed here",
            notes=f.facts,
            help=f.action,
        )
        for f in findings
    ]
