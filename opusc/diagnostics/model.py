"""Errors as values: what a stage found wrong, and the sink it puts them in."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from opusc.source import Span

__all__ = ["CompileError", "Diagnostic", "Diagnostics", "Edit", "Label", "Severity"]


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Label:
    """A further place that a message needs, with what is to be seen there."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text of a span; an empty span inserts."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message.

    `message` stands alone, in the author's words (it is all that concise output shows); `label` says what
    is wrong at `span`; `notes` are facts with numbers; `help` is the way out; `fix`, where there is one,
    can be applied by a machine without a human looking.
    """

    code: str
    severity: Severity
    message: str
    span: Span
    label: str = ""
    secondary: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str = ""
    fix: tuple[Edit, ...] = ()


class CompileError(Exception):
    """The program is wrong. Raised by the driver, never by a rule: rules put values into the sink.

    `diagnostics` holds every message of the run, warnings included.
    """

    def __init__(self, diagnostics: "Diagnostics") -> None:
        super().__init__("\n".join(f"{d.span.place}: {d.severity}[{d.code}] {d.message}" for d in diagnostics))
        self.diagnostics = diagnostics


class Diagnostics:
    """The sink of one run: collects, removes doubles, sorts by place, and stops at a limit; `cut` says that it did, or
    that a stage gave up with more to tell.

    A stage adds as many as it finds; `checkpoint` between stages ends the run where going on would only
    repeat the same mistakes in other words.
    """

    LIMIT = 200

    def __init__(self) -> None:
        self._found: dict[tuple[str, Span, str], Diagnostic] = {}
        self.cut = False

    def add(self, diagnostic: Diagnostic) -> None:
        key = (diagnostic.code, diagnostic.span, diagnostic.message)
        if len(self._found) < self.LIMIT or (diagnostic.severity is Severity.ERROR and not self.has_errors):
            self._found.setdefault(key, diagnostic)
        elif key not in self._found:
            self.cut = True

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        label: str = "",
        *,
        secondary: Iterable[Label] = (),
        notes: Iterable[str] = (),
        help: str = "",
        fix: Iterable[Edit] = (),
    ) -> None:
        self.add(
            Diagnostic(code, Severity.ERROR, message, span, label, tuple(secondary), tuple(notes), help, tuple(fix))
        )

    def warning(
        self,
        code: str,
        message: str,
        span: Span,
        label: str = "",
        *,
        secondary: Iterable[Label] = (),
        notes: Iterable[str] = (),
        help: str = "",
        fix: Iterable[Edit] = (),
    ) -> None:
        self.add(
            Diagnostic(code, Severity.WARNING, message, span, label, tuple(secondary), tuple(notes), help, tuple(fix))
        )

    @property
    def has_errors(self) -> bool:
        return any(d.severity is Severity.ERROR for d in self._found.values())

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self if d.severity is Severity.ERROR]

    @property
    def warnings(self) -> list[Diagnostic]:
        return [d for d in self if d.severity is Severity.WARNING]

    def checkpoint(self) -> None:
        """Raise `CompileError` if anything so far is an error."""
        if self.has_errors:
            raise CompileError(self)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(sorted(self._found.values(), key=lambda d: (d.span.source.name, d.span.start, d.span.end, d.code)))

    def __len__(self) -> int:
        return len(self._found)
