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
    "OPUS101": Code("unknown-name", "A name that nothing declares"),
    "OPUS102": Code("declared-twice", "Two declarations have one name"),
    "OPUS103": Code("circular", "A definition, function or file needs itself"),
    "OPUS104": Code("unreadable-file", "A file or module cannot be read"),
    "OPUS105": Code("outside-root", "A file lies outside the project root"),
    "OPUS106": Code("unknown-kind", "A declaration has an unknown kind"),
    "OPUS107": Code("parameter-without-value", "A parameter has neither a default nor a value"),
    "OPUS108": Code("unknown-parameter", "A value is given to a parameter that the program does not have"),
    "OPUS109": Code("no-job", "The program has no job"),
    "OPUS110": Code("later-version", "What is written is planned for a later version"),
    "OPUS120": Code("budget", "The program expands to too much"),
    "OPUS201": Code("wrong-type", "A value of another type is needed"),
    "OPUS202": Code("unit", "A unit is missing or unknown"),
    "OPUS203": Code("wrong-operands", "An operator does not go with its operands"),
    "OPUS204": Code("out-of-range", "A number is out of range"),
    "OPUS205": Code("wrong-call", "A function is called wrongly"),
    "OPUS206": Code("nothing-to-refine", "Only blocks and words have fields to change"),
    "OPUS207": Code("unknown-field", "A field that its block does not have"),
    "OPUS208": Code("stated-twice", "Something is stated twice"),
    "OPUS209": Code("missing-field", "A required field is not stated"),
    "OPUS210": Code("quoted-word", "A word of the language stands in quotes"),
    "OPUS211": Code("unlikely-rate", "A port is faster than known optics"),
    "OPUS212": Code("wrong-element", "An element of a list of edges or cables is wrong"),
    "OPUS213": Code("topology-does-not-fit", "A topology does not fit the size of a group"),
    "OPUS301": Code("too-few-positions", "A switch has fewer positions than the cluster's ports need"),
    "OPUS302": Code("impossible-cable", "A stated cable ends where there is nothing to end on"),
    "OPUS303": Code("doubled-cable", "A NIC port or a switch position has two cables"),
    "OPUS304": Code("credentials", "A management address holds credentials"),
    "OPUS305": Code("wrong-nic", "The NICs of a cluster cannot serve its rails"),
    "OPUS306": Code("uneven-domains", "Nodes and scale-up domains do not fit together"),
    "OPUS307": Code("uneven-planes", "Planes or blocks do not spread evenly"),
    "OPUS308": Code("mixed-switches", "Switches of one fabric do not go together"),
    "OPUS309": Code("wrong-csv", "A cabling file cannot be understood"),
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
    "OPUS412": Code("dialect-missing", "Expert or split data parallelism needs a dialect"),
    "OPUS413": Code("expert-tp", "`expert_tp` is missing, or of another dialect"),
    "OPUS414": Code("experts-do-not-divide", "The expert degree does not divide the ranks"),
    "OPUS415": Code("too-few-gpus", "The job needs more GPUs than the cluster has"),
    "OPUS416": Code("wrong-order", "The rank order is incomplete or impossible"),
    "OPUS417": Code("order-inside-out", "The rank order looks outermost first"),
    "OPUS418": Code("unknown-phase", "A phase or axis that the job does not have"),
    "OPUS419": Code("layers-do-not-divide", "Layers and pipeline stages do not fit together"),
    "OPUS420": Code("not-checked", "A requirement waits for what this version cannot compute"),
    "OPUS421": Code("required", "A requirement does not hold"),
    "OPUS501": Code("port-clash", "Two circuits use one port of a switch"),
    "OPUS502": Code("impossible-port", "A circuit or a cable ends on a port that cannot be used"),
    "OPUS503": Code("wrong-links", "A phase's circuits are not what it asks for"),
    "OPUS504": Code("wrong-exclusions", "Parts that share a port are not declared exclusive"),
    "OPUS505": Code("formula-refuted", "A formula behind the plan is wrong"),
    "OPUS506": Code("unsafe-transition", "A change of configuration is unsafe or not minimal"),
    "OPUS507": Code("undecided", "The solver could not decide"),
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
