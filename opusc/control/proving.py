"""A change from what a switch really holds, proved: the order is safe for these very circuits."""

from opusc.control.change import Change, Port, Station
from opusc.control.device import Held, Pair
from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan
from opusc.verify.lemmas import steps_are_safe
from opusc.verify.statement import solve

__all__ = ["prove_change"]


def prove_change(plan: Plan, station: Station, held: Held, change: Change, sink: Diagnostics) -> int:
    """Prove with Z3 that no instant of the change gives a port two circuits, that disconnects come first, that nothing
    is named that stays and that it ends with what it promises. Returns the number of properties; OPUS506 for one that
    does not hold."""
    numbers: dict[Port, int] = {}

    def circuit(pair: Pair) -> tuple[int, int, int]:
        first, second = (numbers.setdefault(port, len(numbers)) for port in station.ends(pair))
        return station.switch.index, first, second

    after = (held - set(change.disconnect)) | set(change.connect)
    steps = [("disconnect", circuit(pair)) for pair in change.disconnect]
    steps += [("connect", circuit(pair)) for pair in change.connect]
    statements = steps_are_safe(map(circuit, sorted(held)), map(circuit, sorted(after)), steps)
    for statement in statements:
        answer = solve(statement)
        if answer.verdict != "proved":
            sink.error(
                "OPUS506", f"it is not proved for {station.name} that {statement.name}", plan.model.fabric.at("switch"),
                answer.verdict, help="this is a defect of opusc: please report it with the program and the export",
            )  # fmt: skip
    return len(statements)
