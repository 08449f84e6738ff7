"""Which client speaks with a switch."""

from collections.abc import Callable

from opusc.control.access import Access
from opusc.control.device import Device
from opusc.control.places import Place
from opusc.plan.plan import Switch

__all__ = ["MissingClient", "opener"]

#: Transport -> the package that it needs.
NEEDS = {"netconf": "ncclient", "gnmi": "pygnmi", "sonic": "redis"}


class MissingClient(Exception):
    """A transport needs a package that is not installed: a sentence with the way out."""


def opener(switch: Switch, place: Place, access: Access, reply: int) -> Callable[[], Device]:
    """A function that opens a connection. `reply` is in milliseconds. Raises MissingClient; the function, Trouble."""
    package = NEEDS.get(place.transport)
    if package is not None:
        try:
            __import__(package)
        except ImportError as error:
            raise MissingClient(
                f"{place.transport} needs the Python package {package} ({error}): `pip install 'opusc[control]'`"
            ) from None
    make = _makers()[place.transport]
    return lambda: make(switch, place, access, reply)


def _makers() -> dict[str, Callable[[Switch, Place, Access, int], Device]]:
    from opusc.control.clients import gnmi, netconf, rest, scpi, sonic

    return {
        "netconf": netconf.Netconf,
        "restconf": rest.Restconf,
        "scpi": scpi.Scpi,
        "gnmi": gnmi.Gnmi,
        "sonic": sonic.Sonic,
        "rest": rest.CalientRest,
    }
