"""The page of a diagnostic code, from `docs/errors/`."""

from opusc.diagnostics.codes import CODES
from opusc.diagnostics.suggest import closest
from opusc.resources import errors_dir

__all__ = ["UnknownCodeError", "code_named", "page"]


class UnknownCodeError(Exception):
    """No diagnostic has this code; the text says which one may have been meant."""


def code_named(text: str) -> str:
    """The code that someone means by `OPUS201`, `opus201`, `201`, `error[OPUS201]` or its slug.

    Raises UnknownCodeError.
    """
    wanted = text.strip().removeprefix("error").removeprefix("warning").strip("[]: ").upper()
    if wanted.isdigit():
        wanted = f"OPUS{int(wanted):03d}"
    if wanted in CODES:
        return wanted
    slugs = {code.slug: number for number, code in CODES.items()}
    if text in slugs:
        return slugs[text]
    meant = closest(wanted, CODES) if wanted.startswith("OPUS") else closest(text, slugs)
    hint = f"; did you mean `{meant}`?" if meant else "; `opusc explain` lists all of them"
    raise UnknownCodeError(f"there is no message `{text}`{hint}")


def page(code: str) -> str:
    """The page as Markdown."""
    return (errors_dir() / f"{code}.md").read_text(encoding="utf-8")
