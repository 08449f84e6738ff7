"""`policy = auto` beside the published provisioned runs, at the same port rates."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opusc.diagnostics import Diagnostics
from opusc.driver import compile_source
from opusc.schedule.auto import IDEAS, Choice, Search, Trial
from opusc.schedule.timing import MILLISECOND
from opusc.schedule.variants import variant_of
from opusc.source import Source

DATA = Path(__file__).parent / "data"
RUNS = ("fig12", "fig13", "llama405b")
DELAYS = (10, 50, 100)


@dataclass(frozen=True)
class Beaten:
    """One run at one delay (ms): the published iterations and ours (ms)."""

    run: str
    delay: int
    published_links: float
    published: float
    choice: Choice

    @property
    def ours(self) -> float:
        return self.choice.result.iteration / MILLISECOND

    @property
    def over(self) -> tuple[float, float]:
        """Percent over all links: the published run over the published one, ours over ours."""
        links = self.choice.variant.links.iteration / MILLISECOND
        return (self.published / self.published_links - 1) * 100, (self.ours / links - 1) * 100


@cache
def search(run: str, *, peers: str = "paired", **params: int) -> Search:
    """The search for a published run, before anything is chosen."""
    path = DATA / f"{run}.opus"
    text = path.read_text().replace("optics = duplex }", f"optics = duplex, peers = {peers} }}")
    plan = compile_source(Source(str(path), text), DATA, params, choosing=False).plan
    variant = variant_of(plan, Diagnostics())
    assert variant is not None
    return Search(variant)


@cache
def rows() -> tuple[Beaten, ...]:
    figures = json.loads((DATA / "provisioned.json").read_text())["runs"]
    return tuple(
        Beaten(
            run,
            delay,
            figures[run]["all_links"] / 1e6,
            figures[run][str(delay)] / 1e6,
            search(run).choose(delay * MILLISECOND),
        )
        for run in RUNS
        for delay in DELAYS
    )


def iterations() -> list[str]:
    """The first table of docs/time-model.md: iterations."""
    found = ["| run | delay | published, provisioned | auto | shorter by | published over all links | ours | changes |"]
    found.append("|---|---|---|---|---|---|---|---|")
    for row in rows():
        theirs, ours = row.over
        found.append(
            f"| {row.run} | {row.delay} ms | {row.published:,.2f} ms | {row.ours:,.2f} ms | "
            f"{row.published - row.ours:,.2f} ms | {theirs:.2f} % | {ours:.3f} % | {len(row.choice.result.changes)} |"
        )
    return found


def gains() -> list[str]:
    """The second table: what each idea gains alone / as the last of those chosen, ms; `-` for those that were not."""
    tried = {f.idea.name for row in rows() for f in row.choice.findings if f.tried}
    names = [idea.name for idea in IDEAS if idea.name in tried]
    found = [f"| run | delay | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for row in rows():
        cells = [
            f"{f.alone / MILLISECOND:,.2f} / {f'{f.last / MILLISECOND:,.2f}' if f.chosen else '-'}"
            for f in row.choice.findings
            if f.idea.name in tried
        ]
        found.append(f"| {row.run} | {row.delay} ms | {' | '.join(cells)} |")
    return found


def packed() -> list[str]:
    """The third table: the same rate on four ports, which hold ring and chain at once; what is chosen at two delays."""
    found = [
        "| run | `static` | over all links | pack alone, at 100 ms | chosen at 100 ms | at 500 ms |",
        "|---|---|---|---|---|---|",
    ]
    for run in RUNS:
        tried = search(run, ports=4)
        choices = [tried.choose(delay * MILLISECOND) for delay in (100, 500)]
        static = tried.measure(Trial(variant=1), 0)
        assert static is not None
        assert tried.variants[1].fixed
        over = static[0] / tried.variants[0].links.iteration - 1
        alone = next(f.alone for f in choices[0].findings if f.idea.name == "pack") / MILLISECOND
        chosen = [
            f"{c.result.iteration / MILLISECOND:,.2f} ms, {'packed' if c.variant.packs else 'in turns'}"
            for c in choices
        ]
        cells = f"{static[0] / MILLISECOND:,.2f} ms | {over * 100:.2f} % | {alone:,.2f} ms | {' | '.join(chosen)}"
        found.append(f"| {run} | {cells} |")
    return found


def one_way() -> list[str]:
    """The fourth table: the same where a port need not hear whom it sends to (`peers = independent`), at 100 ms."""
    found = ["| run | two-way rings, all links | auto | shorter by | rings |", "|---|---|---|---|---|"]
    for run in RUNS:
        tried = search(run, peers="independent")
        choice = tried.choose(100 * MILLISECOND)
        links, ours = tried.variants[0].links.iteration / MILLISECOND, choice.result.iteration / MILLISECOND
        rings = "one way" if choice.variant.one_way else "both ways"
        found.append(f"| {run} | {links:,.2f} ms | {ours:,.2f} ms | {links - ours:,.2f} ms | {rings} |")
    return found


def show(*tables: Sequence[str]) -> str:
    return "\n\n".join("\n".join(table) for table in tables)
