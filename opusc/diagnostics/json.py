"""Messages for programs. The form is stable: `schema/diagnostics.schema.json` describes it.

Lines and columns count from 1 and offsets from 0, all in characters of the text with line ends normalised
to `\\n` and without byte-order mark. `end` is the first place that no longer belongs to the span.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from opusc.diagnostics.codes import CODES
from opusc.diagnostics.model import Diagnostic, Severity
from opusc.source import Span

__all__ = ["VERSION", "document", "render", "schema_file"]

VERSION = 1


def schema_file() -> Path:
    """The JSON Schema of what `render` gives."""
    return Path(__file__).parent / "schema" / "diagnostics.schema.json"


def document(diagnostics: Iterable[Diagnostic], *, cut: bool = False) -> dict[str, Any]:
    """The document as `schema_file` describes it. `cut`: there are more messages, which are not in it."""
    found = list(diagnostics)
    return {
        "version": VERSION,
        "diagnostics": [_diagnostic(d) for d in found],
        "summary": {
            "errors": sum(d.severity is Severity.ERROR for d in found),
            "warnings": sum(d.severity is Severity.WARNING for d in found),
            **({"more": True} if cut else {}),
        },
    }


def render(diagnostics: Iterable[Diagnostic], *, cut: bool = False) -> str:
    return json.dumps(document(diagnostics, cut=cut), indent=2, ensure_ascii=False) + "\n"


def _diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    code = CODES.get(diagnostic.code)
    edits = [{"span": _span(edit.span), "replacement": edit.replacement} for edit in diagnostic.fix]
    return {
        "code": diagnostic.code,
        "slug": code.slug if code else "",
        "severity": str(diagnostic.severity),
        "message": diagnostic.message,
        "span": _span(diagnostic.span),
        "label": diagnostic.label,
        "secondary": [{"span": _span(label.span), "label": label.text} for label in diagnostic.secondary],
        "notes": list(diagnostic.notes),
        "help": diagnostic.help,
        "fix": {"edits": edits} if edits else None,
    }


def _span(span: Span) -> dict[str, Any]:
    return {
        "file": span.source.name,
        "start": _place(span, span.start),
        "end": _place(span, span.end),
    }


def _place(span: Span, offset: int) -> dict[str, int]:
    line, column = span.source.position(offset)
    return {"offset": offset, "line": line, "column": column}
