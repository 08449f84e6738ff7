"""What went wrong with switches, as diagnostics: which switch, which port and whose it is, and what to do."""

from collections.abc import Iterable

from opusc.control.change import Change
from opusc.control.device import Garbled, NoEntry, Refused, Trouble, Unreachable, Untrusted
from opusc.control.holders import Holders
from opusc.control.push import Fate, Mismatch, Outcome, Reading
from opusc.diagnostics import Diagnostics
from opusc.plan.plan import Plan

__all__ = ["tell_outcomes", "tell_readings"]

_SHOWN = 6  # circuits that a message names

#: Kind of trouble -> code and what to do.
_TROUBLES: tuple[tuple[type[Trouble], str, str], ...] = (
    (Unreachable, "OPUS740", "check its address, its power and the network between; nothing was left half done"),
    (
        Untrusted,
        "OPUS741",
        "if it is the switch that you mean, put its host key into ~/.ssh/known_hosts or --known-hosts, or the "
        "authority of its certificate into --ca",
    ),
    (NoEntry, "OPUS742", "set OPUSC_USER and OPUSC_PASSWORD, a key in OPUSC_SSH_KEY, or an entry in ~/.netrc"),
    (Refused, "OPUS743", "the switch says why; it was asked to go back to what it held"),
    (Garbled, "OPUS744", "check that --over names what it speaks; its answer is not that"),
    (Mismatch, "OPUS745", "somebody else may be changing it, or a port may be faulty; `opusc push` shows what differs"),
)


def tell_readings(plan: Plan, readings: Iterable[Reading], sink: Diagnostics) -> None:
    """Switches that could not be read, and circuits of others in the way."""
    for reading in readings:
        if reading.trouble is not None:
            _trouble(reading, reading.trouble, "cannot be read", (), sink)
        elif reading.change is not None and reading.change.blocking:
            holders = Holders(plan, reading.station)
            count = len(reading.change.blocking)
            what = f"{count} circuit{'s' * (count > 1)} of others"
            sink.error(
                "OPUS746",
                f"{reading.station.name} holds {what} on ports that the program needs",
                reading.station.switch.kind.at("address"),
                "this switch",
                notes=_circuits(holders, reading.change.blocking),
                help="if they may go, say so: "
                + " ".join(f"--take '{reading.station.name}:{a}>{b}'" for a, b in reading.change.blocking[:2]),
            )  # fmt: skip


def tell_outcomes(plan: Plan, step: str, outcomes: Iterable[Outcome], sink: Diagnostics) -> None:
    """Switches that failed in a step, each with the ports that differ, and those that could not be put back."""
    for outcome in outcomes:
        if outcome.trouble is not None:
            notes = _left(Holders(plan, outcome.station), outcome.left)
            back = outcome.fate is Fate.PUT_BACK
            notes.append("it was put back to what it held" if back else f"it was {outcome.fate}")
            _trouble(outcome.reading, outcome.trouble, f"did not take `{step}`", notes, sink)
        if outcome.fate is Fate.LOST:
            cause = str(outcome.returning or outcome.trouble or "it is not known why")
            sink.error(
                "OPUS747",
                f"{outcome.station.name} could not be put back to what it held before `{step}`: {cause}",
                outcome.station.switch.kind.at("address"),
                "its circuits are not those of any configuration",
                help="bring it back by hand; `opusc push` without --apply shows what it holds and lacks",
            )


def _trouble(reading: Reading, trouble: Trouble, what: str, notes: Iterable[str], sink: Diagnostics) -> None:
    code, help_ = next((code, text) for kind, code, text in _TROUBLES if isinstance(trouble, kind))
    kind = reading.station.switch.kind
    place = f"at {kind.address}" if kind.address else ""
    sink.error(code, f"{reading.station.name} {what}: {trouble}", kind.at("address"), place, notes=notes, help=help_)


def _left(holders: Holders, left: Change | None) -> list[str]:
    """The circuits that a switch lacks, and those that it should not hold."""
    if left is None:
        return []
    lacks = [f"it lacks {text}" for text in _circuits(holders, left.connect)]
    return lacks + [f"it still holds {text}" for text in _circuits(holders, (*left.disconnect, *left.blocking))]


def _circuits(holders: Holders, pairs: Iterable[tuple[str, str]]) -> list[str]:
    found = [holders.circuit(pair) for pair in pairs]
    return found[:_SHOWN] + ([f"{len(found) - _SHOWN:,} more"] if len(found) > _SHOWN else [])
