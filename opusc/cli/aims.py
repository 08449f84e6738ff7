"""Which configuration the options of a command name."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opusc.cli.planview import chosen_parts
from opusc.cli.terminal import UsageError

if TYPE_CHECKING:
    from opusc.control.change import Station
    from opusc.control.goals import Step
    from opusc.plan.plan import Plan

__all__ = ["aimed"]


def aimed(plan: "Plan", options: argparse.Namespace, stations: Sequence["Station"]) -> list["Step"]:
    """The step of `--phase`: the whole configuration, or with --stage or --step only these parts. Raises UsageError."""
    from opusc.control.goals import part_step, whole_step
    from opusc.plan.configurations import configurations

    if options.stage is not None or options.step is not None:
        parts = [part.index for part in chosen_parts(plan, options.phase, options.stage, options.step)]
        return [part_step(plan, ", ".join(plan.parts[part].name for part in parts), parts, stations)]
    whole = [c for c in configurations(plan) if plan.phases[plan.parts[c.parts[0]].phase].name == options.phase]
    if len(whole) > 1:
        names = ", ".join(str(number) for number in range(len(whole)))
        raise UsageError(f"phase `{options.phase}` takes turns: name one with --step, {names}")
    if not whole:
        chosen_parts(plan, options.phase, None, None)  # says why
    return [whole_step(plan, whole[0], stations)] if whole else []
