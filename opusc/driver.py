"""The pipeline on one page.

    text --parse--> syntax tree --build_model--> model --build_plan--> plan --verify--> proved plan

Between plan and proof, `policy = auto` chooses another plan of the same model, and a schedule for it.

Each stage is a function of what the last one made. It puts what is wrong into the sink, many messages a run;
the checkpoint after it stops where going on would only repeat the same mistakes in other words.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from opusc.diagnostics import CompileError, Diagnostics
from opusc.source import Source

if TYPE_CHECKING:
    from opusc.plan.plan import Plan
    from opusc.schedule.auto import Choice
    from opusc.schedule.requirements import Held
    from opusc.verify import Report

__all__ = ["STAGES", "Compilation", "check", "compile", "compile_file", "compile_source", "decode", "guarded", "read"]

STAGES = ("syntax", "model", "plan", "choice", "proof", "requirements")

T = TypeVar("T")

_LONGEST = 16 << 20  # bytes read of a program; the parser refuses less than that with a message


@dataclass(frozen=True)
class Compilation:
    """What a run made. `diagnostics` holds warnings only; `seconds` says how long each stage took. `choice` is what
    `policy = auto` chose, where there was anything to choose; `held` are the requirements on the plan that hold."""

    source: Source
    plan: "Plan"
    report: "Report"
    diagnostics: Diagnostics
    seconds: Mapping[str, float]
    choice: "Choice | None" = None
    held: "tuple[Held, ...]" = ()


def compile_source(
    source: Source,
    root: Path,
    params: Mapping[str, object] | None = None,
    entering: Callable[[str], None] = lambda stage: None,
    *,
    choosing: bool = True,
    deciding: bool = True,
) -> Compilation:
    """Compile a text. `use` reads below `root`; `entering` is told each stage before it runs. Without `choosing`
    `policy = auto` is left open: phases take turns. Requirements on an iteration are left to the caller then. Without
    `deciding` all requirements on results are.

    Raises CompileError.
    """
    sink = Diagnostics()
    seconds: dict[str, float] = {}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        entering(name)
        begin = time.perf_counter()
        with guarded(name, source, sink):
            yield
        seconds[name] = time.perf_counter() - begin

    with stage("syntax"):
        from opusc.syntax.parser import parse

        program = parse(source, sink)
    with stage("model"):
        from opusc.model.build import build_model
        from opusc.model.loader import Loader

        model = _made(build_model(program, Loader(root), _as_text(params), sink), sink)
    with stage("plan"):
        from opusc.plan.build import build_plan

        plan = _made(build_plan(model, sink), sink)
    choice = None
    with stage("choice"):
        if choosing and model.job.policy == "auto":
            from opusc.schedule.choice import choose, scheduled

            choice = choose(plan, sink)
            plan = scheduled(choice) if choice is not None else plan
    with stage("proof"):
        from opusc.verify import verify

        report = verify(plan, sink)
    held: tuple[Held, ...] = ()
    with stage("requirements"):
        if deciding and any(requirement.decide is not None for requirement in model.requirements):
            from opusc.schedule.iterations import measure
            from opusc.schedule.requirements import decide

            held = decide(plan, sink, partial(measure, plan, choice) if choosing else None)
            plan = _checked(plan, held)
    return Compilation(source, plan, report, sink, seconds, choice, held)


def compile_file(
    path: str | Path,
    params: Mapping[str, object] | None = None,
    root: str | Path | None = None,
    entering: Callable[[str], None] = lambda stage: None,
) -> Compilation:
    """Compile a file. `root` is the folder that `use` may read below; the file's own by default.

    Raises CompileError, and OSError when the file cannot be read.
    """
    source = read(Path(path))
    return compile_source(source, Path(path).parent if root is None else Path(root), params, entering)


def read(path: Path) -> Source:
    """A program file. Raises OSError, and CompileError when it is no text."""
    with path.open("rb") as file:
        return decode(str(path), file)


def decode(name: str, stream: BinaryIO) -> Source:
    """A program from an open file. Raises CompileError when it is no text.

    Of a longer one only the beginning is read: the parser says that it is too long.
    """
    from opusc.model import loader

    data = stream.read(_LONGEST + 1)
    if len(data) > _LONGEST:
        return Source(name, data.decode("utf-8", "replace"))
    sink = Diagnostics()
    return _made(loader.decode(data, name, None, sink), sink)


def compile(
    path_or_text: str | Path, params: Mapping[str, object] | None = None, root: str | Path | None = None
) -> "Plan":
    """The proved plan of a program: of a file, or of a text (a string with a line end in it).

    `params` gives values to the program's `param`s, as on the command line (`{"dp": 8, "delay": "25 ms"}`).
    Raises CompileError when the program is wrong, and OSError when a file cannot be read.
    """
    return _compile(path_or_text, params, root).plan


def check(
    path_or_text: str | Path, params: Mapping[str, object] | None = None, root: str | Path | None = None
) -> Diagnostics:
    """Every message about a program, as `compile` takes it: empty when there is nothing to say."""
    try:
        return _compile(path_or_text, params, root).diagnostics
    except CompileError as error:
        return error.diagnostics


def _compile(path_or_text: str | Path, params: Mapping[str, object] | None, root: str | Path | None) -> Compilation:
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        source = Source("<text>", path_or_text.replace("\r\n", "\n"))
        return compile_source(source, Path.cwd() if root is None else Path(root), params)
    return compile_file(path_or_text, params, root)


@contextmanager
def guarded(stage: str, source: Source, sink: Diagnostics, passing: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Run a stage: what it did not foresee becomes a message, and errors in the sink end the run.

    Exceptions in `passing` are somebody else's to handle. Raises CompileError.
    """
    try:
        yield
    except CompileError:
        raise
    except passing:
        raise
    except (RecursionError, MemoryError) as error:
        what = "memory" if isinstance(error, MemoryError) else "stack"
        sink.error(
            "OPUS902",
            f"opusc ran out of {what} in stage `{stage}`",
            source.span(0, 0),
            help="split the program, or give the process more memory",
        )
    except Exception as error:
        if os.environ.get("OPUSC_DEBUG") == "1":
            raise
        sink.error(
            "OPUS901",
            f"internal compiler error in stage `{stage}`: {type(error).__name__}: {error}",
            source.span(0, 0),
            notes=["this is a defect of opusc, not of your program"],
            help="please report it with this program; OPUSC_DEBUG=1 shows where it happened",
        )
    sink.checkpoint()


def _checked(plan: "Plan", held: "tuple[Held, ...]") -> "Plan":
    """The plan with what was decided: nothing of it is "not checked"."""
    decided = {id(one.requirement) for one in held}
    requirements = tuple(replace(one, checked=one.checked or id(one) in decided) for one in plan.model.requirements)
    return replace(plan, model=replace(plan.model, requirements=requirements))


def _made(value: T | None, sink: Diagnostics) -> T:
    """What a stage made. One that made nothing must have said why."""
    sink.checkpoint()
    if value is None:
        raise AssertionError("the stage made nothing and gave no reason")
    return value


def _as_text(params: Mapping[str, object] | None) -> dict[str, str]:
    """Values as the command line would give them: `True` is `true`."""
    return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in (params or {}).items()}
