"""Messages: the value, the sink, the table of codes, did-you-mean, and the renderers."""

from opusc.diagnostics.model import CompileError, Diagnostic, Diagnostics, Edit, Label, Severity

__all__ = ["CompileError", "Diagnostic", "Diagnostics", "Edit", "Label", "Severity"]
