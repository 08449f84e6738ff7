"""Every diagnostic code: stable for ever, never reused.

The hundreds say which stage speaks: 0 text and syntax, 1 names and modules, 2 types, units and fields,
3 clusters, fabrics and cabling, 4 jobs, phases and the plan, 5 verification, 6 targets, 9 opusc itself.
Each code has a page `docs/errors/OPUSnnn.md` and a failing program `tests/errors/OPUSnnn*.opus`.
"""

from typing import NamedTuple

__all__ = ["CODES", "Code"]


class Code(NamedTuple):
    slug: str
    title: str
    since: str = "0.1"


CODES: dict[str, Code] = {
    "OPUS001": Code("unexpected-text", "The text here is not what the grammar expects"),
}
