"""Explanations: findings in the author's words, at the author's lines."""

from collections.abc import Iterable, Iterator

from opusc.diagnostics import Diagnostics, Label
from opusc.model.entities import Optics
from opusc.plan.plan import Plan
from opusc.source import Span
from opusc.verify.finding import CLASH, EXCLUSION, UNDECIDED, Finding, gpu_name

__all__ = ["circuit_text", "explain"]

#: Findings of one code and phase that are told; the rest is counted.
_TOLD = 3


def explain(plan: Plan, findings: Iterable[Finding], sink: Diagnostics) -> None:
    """Put every finding into the sink as an error, at the phase it is about."""
    told: dict[tuple[str, int], int] = {}
    for finding in sorted(findings, key=lambda f: not f.circuits):
        key = (finding.code, finding.phase)
        told[key] = told.get(key, 0) + 1
        if told[key] <= _TOLD:
            _tell(plan, finding, sink)


def _tell(plan: Plan, finding: Finding, sink: Diagnostics) -> None:
    rows = [row for row in finding.circuits if 0 <= row < len(plan.circuits)]
    text, notes = finding.text, [circuit_text(plan, row) for row in rows[:4]]
    if finding.code == CLASH and len(rows) >= 2:
        text = f"{text}: {_short(plan, rows[0])} and {_short(plan, rows[1])}"
    own = _has_own_input(plan, finding)
    if finding.code == UNDECIDED:
        help_ = "nothing is emitted that is not proved; split the phase, or give the machine more time"
    elif own:
        help_ = "check the cabling and the edges that the program states; if they are right, please report this"
    else:
        help_ = "this is a defect of opusc, not of your program: please report it with the program"
    sink.error(
        finding.code,
        text,
        _span(plan, finding),
        "asked for here" if finding.phase >= 0 else "",
        secondary=_labels(plan, finding, rows),
        notes=[*finding.notes, *notes],
        help=help_,
    )


def _has_own_input(plan: Plan, finding: Finding) -> bool:
    """Whether the author stated cables or edges that this is about, so that the cause may be theirs."""
    stated = bool(plan.model.fabric.cabling.cables)
    return stated or (finding.phase >= 0 and plan.phases[finding.phase].spec.topology.edges is not None)


def _span(plan: Plan, finding: Finding) -> Span:
    phase = finding.phase if finding.phase >= 0 else plan.parts[finding.part].phase if finding.part >= 0 else -1
    return plan.phases[phase].spec.span if 0 <= phase < len(plan.phases) else plan.model.job.span


def _labels(plan: Plan, finding: Finding, rows: list[int]) -> list[Label]:
    """The other phase of a clash, the edges that made the circuits, and the cables on which they end."""
    found: dict[tuple[Span, str], Label] = {}
    for row in rows[:4]:
        phase = plan.phases[plan.parts[int(plan.circuits.part[row])].phase]
        if phase.index != finding.phase and finding.code in (CLASH, EXCLUSION):
            text = f"phase `{phase.name}` asks for the other"
            found.setdefault((phase.spec.span, text), Label(phase.spec.span, text))
        for span, text in [*_edges(plan, row), *_cables(plan, row)]:
            found.setdefault((span, text), Label(span, text))
    return list(found.values())


def _edges(plan: Plan, row: int) -> Iterator[tuple[Span, str]]:
    """The stated edges between the two domains that a circuit joins, and the loop iteration that made them."""
    phase = plan.phases[plan.parts[int(plan.circuits.part[row])].phase]
    if phase.spec.topology.edges is None:
        return
    ends = {gpu for gpu, _ in _nic_ports(plan, row)}
    for instances in phase.instances:
        for copy in range(len(instances.exits)):
            vertices = [v for v, gpu in enumerate(instances.exits[copy].tolist()) if gpu in ends]
            if len(vertices) == 2:
                for edge in phase.spec.topology.edges(instances.shape.n):
                    if {edge.tail, edge.head} == set(vertices):
                        made = f", for {edge.turn}" if edge.turn else ""
                        yield edge.span, f"edge ({edge.tail}, {edge.head}){made}"
                return


def _cables(plan: Plan, row: int) -> Iterator[tuple[Span, str]]:
    """The stated cables at the ends of a circuit."""
    per_node = plan.model.cluster.gpus_per_node
    ends = {(gpu // per_node, gpu % per_node, port) for gpu, port in _nic_ports(plan, row)}
    for cable in plan.model.fabric.cabling.cables:
        if (cable.node, cable.gpu, cable.port) in ends:
            yield cable.span, f"port {cable.port} of GPU {cable.gpu} of node {cable.node} is cabled here"


def _nic_ports(plan: Plan, row: int) -> list[tuple[int, int]]:
    """(GPU, port) at the ends of a circuit, as far as the cabling knows them: the sender's end first."""
    c, cabling = plan.circuits, plan.cabling
    here = cabling.switch == c.switch[row]
    found: list[tuple[int, int]] = []
    for number in (int(c.ingress[row]), int(c.egress[row])):
        at = (here & ((cabling.ingress == number) | (cabling.egress == number))).nonzero()
        found += [(int(at[0][0]), int(at[1][0]))] if len(at[0]) else []
    return found


def circuit_text(plan: Plan, row: int) -> str:
    """`dp[0]: ingress 3 to egress 35 of rails.rail[0], port 0 of GPU 1 of node 2 (rank 5) to ...`."""
    c = plan.circuits
    part = plan.parts[int(c.part[row])].name
    number = int(c.switch[row])
    switch = plan.switches[number].name if 0 <= number < len(plan.switches) else f"switch {number}"
    text = f"`{part}`: ingress {c.ingress[row]} to egress {c.egress[row]} of {switch}"
    ends = [_end_text(plan, gpu, port) for gpu, port in _nic_ports(plan, row)]
    join = " and " if plan.model.cluster.rail_nic.optics is Optics.BIDI else " to "
    return f"{text}, {join.join(ends)}" if ends else text


def _end_text(plan: Plan, gpu: int, port: int) -> str:
    rank = int(plan.rank_of_gpu[gpu])
    return f"port {port} of {gpu_name(plan, gpu)}" + (f" (rank {rank})" if rank >= 0 else "")


def _short(plan: Plan, row: int) -> str:
    """A circuit by its ranks, for a message: `rank 3 to rank 5 of dp[0]`."""
    ranks = [int(plan.rank_of_gpu[gpu]) for gpu, _ in _nic_ports(plan, row)]
    ends = " to ".join(f"rank {rank}" if rank >= 0 else "an unused GPU" for rank in ranks)
    return f"{ends or 'a circuit'} of `{plan.parts[int(plan.circuits.part[row])].name}`"
