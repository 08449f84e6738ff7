"""How the switches of a fabric are reached: options that `push` and `serve` share, and sessions made of them."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opusc.cli.options import delays
from opusc.cli.terminal import UsageError
from opusc.diagnostics.suggest import closest

if TYPE_CHECKING:
    from opusc.control.change import Station
    from opusc.control.device import Held, Patience, Session
    from opusc.diagnostics import Diagnostics
    from opusc.plan.plan import Plan, Switch

__all__ = ["reached", "reaching_options"]

_TRANSPORTS = ("netconf", "restconf", "scpi", "gnmi", "sonic", "rest")


def reaching_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--switch", dest="switches", metavar="NAME", action="append", default=[], help="only this switch; several times"
    )
    parser.add_argument("--over", choices=_TRANSPORTS, help="what the switches speak (default: by their driver)")
    parser.add_argument("--user", metavar="NAME", help="who logs in (default: OPUSC_USER)")
    parser.add_argument("--ca", metavar="FILE", help="authorities that certificates are verified with")
    parser.add_argument("--known-hosts", metavar="FILE", help="host keys (default: ~/.ssh/known_hosts)")
    parser.add_argument("--insecure", action="store_true", help="believe any host key and certificate")
    parser.add_argument(
        "--timeout", metavar="TIME", type=delays, help="for a connection and for each answer (default: 10s)"
    )


def reached(
    plan: "Plan", options: argparse.Namespace, sink: "Diagnostics", *, offline: bool = False
) -> tuple[list["Station"], dict[int, "Session"], "Patience"]:
    """The switches with a session each, not yet opened; nothing where the sink says what the program lacks. `offline`
    asks none of them. Raises UsageError."""
    from opusc.control.access import AccessError, access_from
    from opusc.control.device import Patience, Session
    from opusc.control.goals import station_of
    from opusc.control.opening import MissingClient, opener
    from opusc.control.places import places_of

    reply = max(options.timeout[0] // 10**9, 1) if options.timeout else None
    patience = Patience() if reply is None else Patience(reply=reply, reconnect=6 * reply)
    places = places_of(plan, _switches(plan, options.switches), options.over, None, sink, offline=offline)
    if sink.has_errors:
        return [], {}, patience
    stations = [station_of(plan, plan.switches[at], target) for at, (target, _) in sorted(places.items())]
    sessions: dict[int, Session] = {}
    try:
        for station in stations:
            place = places[station.switch.index][1]
            if offline or place is None:
                sessions[station.switch.index] = Session(_Empty, patience)
                continue
            access = access_from(
                place.host, user=options.user, ca=options.ca, known_hosts=options.known_hosts, insecure=options.insecure
            )
            open_ = opener(station.switch, place, access, patience.reply)
            sessions[station.switch.index] = Session(open_, patience)
    except (AccessError, MissingClient) as error:
        raise UsageError(str(error)) from error
    return stations, sessions, patience


class _Empty:
    """A switch that is not asked: it holds nothing."""

    def read(self) -> "Held":
        return frozenset()

    def change(self, disconnect: object, connect: object) -> None:
        raise AssertionError("nothing is applied offline")

    def close(self) -> None:
        pass


def _switches(plan: "Plan", names: Sequence[str]) -> list["Switch"]:
    known = {switch.name: switch for switch in plan.switches}
    for name in names:
        if name not in known:
            meant = closest(name, list(known))
            hint = f"did you mean `{meant}`?" if meant else f"there are {', '.join(list(known)[:4])}"
            raise UsageError(f"the fabric has no switch `{name}`; {hint}")
    return [switch for name, switch in known.items() if not names or name in names]
