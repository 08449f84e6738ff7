"""What `policy = auto` chose, as files: the ideas with what each gains (CSV), and the whole schedule (JSON)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from opusc.schedule.auto import Choice
from opusc.schedule.circuits import Part
from opusc.schedule.policy import Rendezvous, Scope
from opusc.verify.report import Obligation

__all__ = ["choices_csv", "choices_json"]


def choices_csv(choices: Mapping[int, Choice]) -> str:
    """One row for each delay and idea. `alone`: what it gains on top of the published policy; `last`: what the chosen
    schedule would lose without it. Picoseconds."""
    lines = ["delay_ps,idea,chosen,alone_ps,last_ps"]
    for delay, choice in sorted(choices.items()):
        for found in choice.findings:
            chosen = f'"{found.chosen}"' if "," in found.chosen else found.chosen or "no"
            if found.tried:
                lines.append(f"{delay},{found.idea.name},{chosen},{found.alone},{found.last}")
    return "\n".join(lines) + "\n"


def choices_json(choices: Mapping[int, Choice], proved: Mapping[int, Sequence[Obligation]]) -> str:
    """The schedule of each delay: what was chosen and why, the parts held at the start, every change in order, and what
    was proved of it. Times in picoseconds."""
    document = {
        "format": "opusc-auto",
        "version": 1,
        "schedules": [_schedule(choice, proved.get(delay, ())) for delay, choice in sorted(choices.items())],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _schedule(choice: Choice, proved: Sequence[Obligation]) -> dict[str, Any]:
    trial = choice.trial
    never = choice.variant.fixed
    return {
        "delay": choice.delay,
        "iteration": choice.result.iteration,
        "all_links": choice.variant.links.iteration,
        "all_links_in_this_order": choice.reference,
        "published": {"policy": str(choice.published_mode), "iteration": choice.published},
        "packed": list(choice.variant.packs),
        "asking": None
        if never
        else {
            "policy": str(trial.policy.mode),
            "agree": "at changes" if trial.policy.rendezvous is Rendezvous.AT_CHANGE else "before every collective",
            "waits_for": "its own circuits" if trial.policy.scope is Scope.FOOTPRINT else "the whole fabric",
        },
        "order": {
            "hand_back_first": trial.order.hand_back,
            "held_reductions": trial.order.hold,
            "reductions_together": trial.order.batch,
        },
        "why": [
            {"idea": f.idea.name, "what": f.idea.what, "chosen": f.chosen or None, "alone": f.alone, "last": f.last}
            for f in choice.findings
            if f.tried
        ],
        "pairs": [
            {"phases": list(p.phases), "how": str(p.how), "changes": p.changes, "gain": p.gain} for p in choice.pairs
        ],
        "not_packed": [{"phases": names, "because": list(why)} for names, why in choice.refused],
        "start": _names(choice.start),
        "changes": [
            {"drained": c.drained, "lit": c.lit, "go": _names(c.went), "come": _names(c.came)}
            for c in choice.result.changes
        ],
        "proved": [{"what": o.name, "of": o.count} for o in proved],
    }


def _names(parts: frozenset[Part]) -> list[str]:
    return [str(part) for part in sorted(parts)]
