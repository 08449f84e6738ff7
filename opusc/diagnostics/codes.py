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
    "OPUS301": Code("too-few-positions", "A switch has fewer positions than the cluster's ports need"),
    "OPUS302": Code("impossible-cable", "A stated cable ends where there is nothing to end on"),
    "OPUS303": Code("doubled-cable", "A NIC port or a switch position has two cables"),
    "OPUS401": Code("no-ports-to-join", "No two NIC ports can be joined"),
    "OPUS402": Code("not-a-power-of-two", "A hypercube needs a power of two"),
    "OPUS403": Code("wrong-dimensions", "The dimensions do not multiply to the number of domains"),
    "OPUS404": Code("not-pairs", "Pairs must join every domain at most once"),
    "OPUS405": Code("uneven-group", "A group's members are on different rails in different domains"),
    "OPUS406": Code("relay-forbidden", "A phase needs a relay that the job forbids"),
    "OPUS407": Code("no-common-rail", "Two stages have no rail in common"),
    "OPUS408": Code("uncabled-port", "A phase needs a NIC port that has no cable"),
    "OPUS409": Code("across-switches", "A link would cross from one switch to another"),
    "OPUS410": Code("unreachable", "All-to-all traffic has no way between some domains"),
    "OPUS411": Code("tensor-group-outside-domain", "Tensor parallelism leaves its scale-up domain"),
    "OPUS601": Code("phase-not-in-format", "The target cannot say a phase"),
    "OPUS602": Code("fabric-not-in-format", "The target cannot say the fabric"),
    "OPUS603": Code("too-many-configurations", "Too much to write for the target"),
    "OPUS604": Code("number-missing", "The target needs a number that the program does not give"),
    "OPUS605": Code("ranks-not-in-format", "The target numbers or links the ranks in another way"),
    "OPUS606": Code("configurations-clash", "The target has configurations that the plan cannot hold"),
    "OPUS901": Code("internal-error", "A stage of opusc failed in a way that no rule foresaw"),
    "OPUS902": Code("out-of-memory", "opusc ran out of memory or stack"),
    "OPUS903": Code("not-what-was-planned", "What was written is not what the plan says"),
}
