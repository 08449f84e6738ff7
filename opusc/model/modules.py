"""Top-level names: what a file declares, what it uses, and what the command line sets."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

from opusc.diagnostics import Diagnostics, Edit, Label
from opusc.diagnostics.suggest import closest
from opusc.model.blocks import block_of, define
from opusc.model.evaluate import Evaluator, Stop
from opusc.model.functions import FUNCTIONS
from opusc.model.loader import FileLoader, standard_modules
from opusc.model.operators import Unfit, apply, shown
from opusc.model.schema import KINDS, TOPOLOGIES
from opusc.model.units import DIMENSIONS, Quantity, describe
from opusc.model.values import Applied, Block, Bound, Builtin, Interval, Missing, Module, Scope, Thunk, Value, kind_of
from opusc.resources import stdlib_dir
from opusc.source import Source, Span
from opusc.syntax import tree
from opusc.syntax.parser import parse, parse_expression

__all__ = ["Modules"]

_ENUMERATIONS = {
    "topology": TOPOLOGIES,
    "optics": ("duplex", "bidi"),
    "peers": ("paired", "independent"),
    "matrix": ("crossbar", "any"),
    "dialect": ("megatron", "torchtitan"),
    "policy": ("on_demand", "provisioned", "static", "auto"),
}
#: A unit of each dimension, for messages.
_EXAMPLES = {
    "ratio": "%", "size": "GB", "time": "ms", "bandwidth": "Gbps", "compute_rate": "TFLOPS", "power": "W",
    "money": "USD", "loss": "dB", "level": "dBm", "length": "m", "loss_per_length": "dB/km", "delay_per_length": "ns/m",
}  # fmt: skip
_PARAMETER_TYPES = ("count", "number", "text", "truth", *(d.replace(" ", "_") for d in DIMENSIONS), *_ENUMERATIONS)


class Modules:
    """Loads files and gives each its scope. `values` records parameters as they are used."""

    def __init__(self, loader: FileLoader, ev: Evaluator, settings: Mapping[str, str]) -> None:
        self.loader, self.ev, self.settings = loader, ev, dict(settings)
        self.sink: Diagnostics = ev.sink
        self.sources: dict[str, Source] = {}
        self.parameters: dict[str, str] = {}
        self.loading: list[tuple[str, Span]] = []
        self.scopes: dict[str, Scope] = {}
        self.requires: list[tuple[tree.Require, Scope]] = []
        self.builtins = Scope(None, {name: Builtin(name) for name in FUNCTIONS})

    def scope_of(self, program: tree.Program, main: bool) -> Scope:
        """The names of a file. Only the main file's parameters can be set from outside."""
        self.sources[program.source.name] = program.source
        scope = Scope(Scope(self.builtins))
        taken: dict[str, Span] = {}
        for entry in program.entries:
            name = _name_of(entry)
            if name is not None:
                if before := taken.get(name.text):
                    self.sink.error(
                        "OPUS102", f"`{name.text}` is declared twice", name.span, "again here",
                        secondary=[Label(before, "first here")],
                    )  # fmt: skip
                    continue
                taken[name.text] = name.span
            self._declare(entry, scope, program.source, main)
        if main:
            self._check_settings(program)
        self._evaluate_in_order(program, scope)
        return scope

    def _evaluate_in_order(self, program: tree.Program, scope: Scope) -> None:
        """Every `let` and `param`, used or not: what is wrong is said, and long chains of names do not nest."""
        for entry in program.entries:
            if isinstance(entry, tree.Let | tree.Parameter):
                found = scope.names.get(entry.name.text)
                if isinstance(found, Thunk):
                    with suppress(Stop):
                        self.ev.force(found, entry.name.span)

    def _declare(self, entry: tree.Entry, scope: Scope, source: Source, main: bool) -> None:
        match entry:
            case tree.Use():
                self._use(entry, scope, source)
            case tree.Require():
                self.requires.append((entry, scope))
            case tree.Let():
                scope.names[entry.name.text] = define(entry, scope)
            case tree.Parameter():
                thunk = Thunk(Bound(entry.default or entry.name, scope), "param", entry.name.span)
                thunk.make = lambda: self._parameter(entry, scope, main)
                scope.names[entry.name.text] = thunk
            case tree.Declaration():
                self._declaration(entry, scope)

    # --- declarations --------------------------------------------------------------------------

    def _declaration(self, entry: tree.Declaration, scope: Scope) -> None:
        kind, name = entry.kind.text, entry.name.text
        declared = [k.name for k in KINDS.values() if k.declared]
        if kind not in declared:
            made = isinstance(entry.value, tree.Record)
            near = closest(kind, declared if made else [*declared, "let", "param"])
            self.sink.error(
                "OPUS106",
                f"`{kind}` is no kind of declaration",
                entry.kind.span,
                f"did you mean `{near}`?" if near else "unknown kind",
                help=f"kinds: {', '.join(declared)}" + ("" if made else "; a value has a name by `let` or `param`"),
                fix=[Edit(entry.kind.span, near)] if near else [],
            )
            # The author meant what is near; uses of the name are no further mistakes.
            if not made and near not in declared:
                scope.names[name] = Thunk(Bound(entry.value, scope), "let", entry.name.span)
                return
            kind = near or kind
        self._check_head(entry, kind)
        if isinstance(entry.value, tree.Record):
            block = block_of(entry.value, scope, kind, name)
            names = None if entry.parameters is None else tuple(p.text for p in entry.parameters)
            scope.names[name] = replace(block, span=entry.name.span, parameters=names)
            return
        thunk = Thunk(Bound(entry.value, scope), kind, entry.name.span)
        thunk.make = lambda: self._taken(thunk, kind, name)
        scope.names[name] = thunk

    def _taken(self, thunk: Thunk, kind: str, name: str) -> Value:
        """A block that was taken from another, under its own name."""
        value = self.ev.bound(thunk.bound)
        if not isinstance(value, Block) or (value.kind and value.kind != kind):
            self.ev.fail("OPUS201", f"{kind} `{name}` is {kind_of(value)}", thunk.bound.span, kind_of(value))
        return replace(value, span=thunk.span, kind=kind, name=name)

    def _check_head(self, entry: tree.Declaration, kind: str) -> None:
        """The name and the parameters of a declaration."""
        name, parameters = entry.name, entry.parameters or ()
        if kind == "topology" and name.text in TOPOLOGIES:
            self.sink.error(
                "OPUS102", f"`{name.text}` is a topology of the language", name.span, "another name is needed",
                help=f"`topology = {name.text}` would always mean that one",
            )  # fmt: skip
        if parameters and kind != "topology":
            self.sink.error(
                "OPUS207", f"a {kind} has no parameters: only topologies have", parameters[0].span, "not taken",
                help="use a `param`, or a refinement: `base { field = value }`",
            )  # fmt: skip
        for at, parameter in enumerate(parameters):
            if parameter.text in [p.text for p in parameters[:at]]:
                self.sink.error("OPUS102", f"two parameters are called `{parameter.text}`", parameter.span, "again")

    def force_declaration(self, name: str, scope: Scope) -> Block | None:
        """A declared block; None when it is wrong, which has been said."""
        found = scope.names[name]
        with suppress(Stop):
            value = self.ev.force(found, found.span) if isinstance(found, Thunk) else found
            return value if isinstance(value, Block) else None
        return None

    # --- parameters ----------------------------------------------------------------------------

    def _parameter(self, entry: tree.Parameter, scope: Scope, main: bool) -> Value:
        name = entry.name.text
        words = _ENUMERATIONS.get(entry.type.text, ()) if entry.type else ()
        value = self._given(name, scope, words) if main and name in self.settings else None
        if value is None:
            if entry.default is None:
                self.ev.fail(
                    "OPUS107", f"parameter `{name}` has no value", entry.name.span, "no default",
                    help=f"set it with `-D {name}=...`" if main else "give it a default: this file is used by another",
                )  # fmt: skip
            value = (self.ev.evaluate(entry.default, scope, words), entry.default.span)
        self._check_type(entry, *value)
        if entry.domain is not None:
            self._check_domain(entry, entry.domain, *value, scope, words)
        if main:
            self.parameters[name] = shown(value[0])
        return value[0]

    def _given(self, name: str, scope: Scope, words: tuple[str, ...]) -> tuple[Value, Span]:
        source = Source(f"-D {name}", self.settings[name])
        expression = parse_expression(source, self.sink)
        if expression is None:
            raise Stop
        return self.ev.evaluate(expression, scope, words), source.whole

    def _check_type(self, entry: tree.Parameter, value: Value, span: Span) -> None:
        if entry.type is None:
            return
        wanted = entry.type.text
        if wanted not in _PARAMETER_TYPES:
            near = closest(wanted, _PARAMETER_TYPES)
            self.ev.fail(
                "OPUS201",
                f"`{wanted}` is no type of parameter",
                entry.type.span,
                f"did you mean `{near}`?" if near else "unknown type",
                help=f"types: {', '.join(_PARAMETER_TYPES)}",
            )
        fits = {
            "count": isinstance(value, int) and not isinstance(value, bool) and value >= 1,
            "number": not isinstance(value, bool) and not isinstance(value, Quantity) and hasattr(value, "numerator"),
            "text": isinstance(value, str),
            "truth": isinstance(value, bool),
        }.get(wanted, isinstance(value, Applied) if wanted in _ENUMERATIONS else False)
        if isinstance(value, Quantity):
            fits = describe(value.dimension).replace(" ", "_") == wanted
        if not fits:
            self._wrong_type(entry, wanted, value, span)

    def _wrong_type(self, entry: tree.Parameter, wanted: str, value: Value, span: Span) -> NoReturn:
        name, elsewhere = entry.name.text, span.source is not entry.span.source
        secondary = [Label(entry.name.span, "declared here")] if elsewhere else []
        plain = isinstance(value, int | Fraction) and not isinstance(value, bool)
        if wanted == "count" and plain and Fraction(value).denominator == 1:  # type: ignore[arg-type]
            message = f"parameter `{name}` is {shown(value)}; a count is at least 1"
            self.ev.fail("OPUS204", message, span, "out of range", secondary=secondary)
        if wanted in _EXAMPLES and plain:
            self.ev.fail(
                "OPUS202", f"parameter `{name}` is a {wanted.replace('_', ' ')}; {shown(value)} has no unit", span,
                "no unit", secondary=secondary, help=f"for example `{shown(value)} {_EXAMPLES[wanted]}`",
            )  # fmt: skip
        article = "whole number" if wanted == "count" else wanted.replace("_", " ")
        self.ev.fail(
            "OPUS201", f"parameter `{name}` is a {article}, not {kind_of(value)}", span, shown(value),
            secondary=secondary,
        )  # fmt: skip

    def _check_domain(
        self,
        entry: tree.Parameter,
        domain: tree.Expression,
        value: Value,
        span: Span,
        scope: Scope,
        words: tuple[str, ...],
    ) -> None:
        number = entry.type is not None and entry.type.text == "number"  # untyped ranges are of whole numbers
        if isinstance(domain, tree.Range) and (isinstance(value, Quantity) or number):
            inside, text = self._is_between(domain, value, scope)
        else:
            allowed = self.ev.evaluate(domain, scope, words)
            if not isinstance(allowed, tuple | Interval):
                self.ev.fail(
                    "OPUS201", f"the domain of a parameter is a list or a range, not {kind_of(allowed)}", domain.span
                )
            inside, text = _is_one_of(value, allowed), shown(allowed)
        if not inside:
            self.ev.fail(
                "OPUS204",
                f"parameter `{entry.name.text}` is {shown(value)}; it must be in {text}",
                span,
                "out of its domain",
                secondary=[Label(domain.span, "the domain")],
            )

    def _is_between(self, domain: tree.Range, value: Value, scope: Scope) -> tuple[bool, str]:
        """Whether a quantity or fraction lies in a range, ends included, and the range in words."""
        first, last = (self.ev.evaluate(end, scope) for end in (domain.first, domain.last))
        try:
            inside = bool(apply("<=", first, value)) and bool(apply("<=", value, last))
        except Unfit as error:
            self.ev.fail("OPUS203", str(error), domain.span, scope=scope)
        return inside, f"{shown(first)}..{shown(last)}"

    def _check_settings(self, program: tree.Program) -> None:
        known = [entry.name.text for entry in program.entries if isinstance(entry, tree.Parameter)]
        for name in self.settings:
            if name not in known:
                near = closest(name, known)
                source = Source(f"-D {name}", self.settings[name])
                self.sink.error(
                    "OPUS108",
                    f"the program has no parameter `{name}`",
                    source.whole,
                    f"did you mean `{near}`?" if near else "set here",
                    help=f"parameters: {', '.join(known)}" if known else "it has no parameters at all",
                )

    def file(self, path: str, near: Source, span: Span, sink: Diagnostics) -> Source | None:
        """A file that the program reads as data: it counts among the sources."""
        source = self.loader.file(path, near, span, sink)
        if source is not None:
            self.sources.setdefault(source.name, source)
        return source

    # --- use -----------------------------------------------------------------------------------

    def _use(self, entry: tree.Use, scope: Scope, source: Source) -> None:
        if entry.module is not None:
            names = [part.text for part in entry.module]
            home = entry.module[-1].text
            alias = entry.alias or entry.module[-1]
            used = self._standard(entry, names)
            if used is None and (near := closest(names[-1], standard_modules())):
                scope.names[near] = Missing()  # the author meant this one; its names are no further mistakes
        else:
            assert entry.path is not None
            path = "".join(p for p in entry.path.parts if isinstance(p, str))
            if any(not isinstance(p, str) for p in entry.path.parts) or not path:
                label = "not known before the file is read" if path else "empty"
                self.sink.error("OPUS104", "the path of a file is a plain text", entry.path.span, label)
                return
            home = stem = _stem(path)
            alias = entry.alias or tree.Name(stem, span=entry.path.span)
            if not stem.isidentifier() and entry.alias is None:
                self.sink.error(
                    "OPUS104", f"`{stem}` is no name: say how the module is called", entry.path.span,
                    help=f'use "{path}" as NAME',
                )  # fmt: skip
            used = self.loader.file(path, source, entry.path.span, self.sink)
        inner = None if used is None else self._load(used, entry.span)
        scope.names[alias.text] = Missing() if inner is None else Module(alias.text, inner, home)

    def _standard(self, entry: tree.Use, names: list[str]) -> Source | None:
        known = standard_modules()
        if len(names) == 2 and names[0] == "std" and names[1] in known:
            path = stdlib_dir() / f"{names[1]}.opus"
            return Source(f"std.{names[1]}", path.read_text(encoding="utf-8"))
        near = closest(names[-1], known)
        self.sink.error(
            "OPUS104",
            f"there is no module `{'.'.join(names)}`",
            entry.module[0].span.to(entry.module[-1].span) if entry.module else entry.span,
            f"did you mean `std.{near}`?" if near else "unknown module",
            help=f"standard modules: {', '.join(f'std.{m}' for m in known)}; files are used by path: "
            'use "parts/racks.opus"',
        )
        return None

    def _load(self, source: Source, span: Span) -> Scope | None:
        if source.name in self.scopes:
            return self.scopes[source.name]
        names = [name for name, _ in self.loading]
        if source.name in names:
            cycle = [*names[names.index(source.name) :], source.name]
            self.sink.error(
                "OPUS103", "files use each other in a circle: " + " -> ".join(cycle), span, "closes the circle"
            )
            return None
        if len(self.loading) > 30:
            self.sink.error("OPUS104", "files use files more than 30 deep", span)
            return None
        self.loading.append((source.name, span))
        try:
            scope = self.scope_of(parse(source, self.sink), main=False)
        finally:
            self.loading.pop()
        self.scopes[source.name] = scope
        return scope


def _is_one_of(value: Value, allowed: tuple[Value, ...] | Interval) -> bool:
    for item in (allowed,) if isinstance(allowed, Interval) else allowed:
        with suppress(Unfit):  # of another kind, so another value
            if apply("in", value, item) if isinstance(item, Interval) else apply("==", value, item):
                return True
    return False


def _name_of(entry: tree.Entry) -> tree.Name | None:
    """The name that an entry declares."""
    match entry:
        case tree.Let() | tree.Parameter() | tree.Declaration():
            return entry.name
        case tree.Use(module=module, path=path, alias=alias):
            if alias is not None or module is not None:
                return alias or (module or ())[-1]
            if path is not None and len(path.parts) == 1 and isinstance(path.parts[0], str):
                return tree.Name(_stem(path.parts[0]), span=path.span)
    return None


def _stem(path: str) -> str:
    return path.rsplit("/", 1)[-1].removesuffix(".opus")
