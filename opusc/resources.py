"""Where the grammar, the standard library and the error pages lie: in the wheel, or in a checkout."""

from pathlib import Path

__all__ = ["errors_dir", "grammar_file", "stdlib_dir"]

_PACKAGE = Path(__file__).parent
_WHEEL = _PACKAGE / "_data"
_CHECKOUT = _PACKAGE.parent


def _find(in_wheel: str, in_checkout: str) -> Path:
    installed = _WHEEL / in_wheel
    return installed if installed.exists() else _CHECKOUT / in_checkout


def grammar_file() -> Path:
    return _find("grammar/opus.lark", "grammar/opus.lark")


def stdlib_dir() -> Path:
    return _find("stdlib", "stdlib")


def errors_dir() -> Path:
    return _find("errors", "docs/errors")
