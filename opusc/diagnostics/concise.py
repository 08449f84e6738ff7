"""One line a message, as compilers print them: editors, `grep` and continuous integration read it."""

from collections.abc import Iterable

from opusc.diagnostics.layout import clean
from opusc.diagnostics.model import Diagnostic

__all__ = ["render"]


def render(diagnostics: Iterable[Diagnostic]) -> str:
    """`file:line:column: error[CODE] message`, a line each; columns count characters from 1."""
    return "".join(clean(f"{d.span.place}: {d.severity}[{d.code}] {d.message}") + "\n" for d in diagnostics)
