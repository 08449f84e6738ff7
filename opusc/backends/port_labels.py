"""What stands beside the ports of a switch: the names by which people and controllers call them."""

from opusc.backends.registry import GROUPS, get
from opusc.backends.switch_files import SwitchTarget, numbered
from opusc.plan.plan import Switch

__all__ = ["port_labels"]


def port_labels(switch: Switch) -> dict[int, str]:
    """The name of every port of a switch, by its number.

    As the program states it, else by the rule of the switch's maker, else the number itself.
    """
    if switch.kind.driver is not None:
        target = switch.kind.driver.replace("_", "-")
        backend = get(target) if target in GROUPS["controllers"] else None
        found = backend.port_names(switch) if isinstance(backend, SwitchTarget) else None
        if found is not None:
            return found
    if switch.kind.ingress_names and switch.kind.egress_names:
        inputs = dict(enumerate(switch.kind.ingress_names, 1))
        return inputs | {switch.kind.radix + at: name for at, name in enumerate(switch.kind.egress_names, 1)}
    return numbered(switch)
