"""`require`: conditions that hold, fail, or wait for what this version cannot compute.

A condition over parameters and fields is decided here. One that names a result is checked for its units and kept with a
function that decides it once the result is there: from the plan alone (`PLANNED`), or from a simulated iteration; where
that is not to be had, it stays "not checked".
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from opusc.diagnostics import Diagnostics, Edit
from opusc.model.entities import Decision, Requirement
from opusc.model.evaluate import Evaluator, Stop
from opusc.model.operators import shown
from opusc.model.units import DIMENSIONS, UNITS, Quantity
from opusc.model.values import Block, Builtin, Function, Module, Scope, Thunk, Value, kind_of
from opusc.source import Span
from opusc.syntax import tree

__all__ = ["COSTED", "MEASURED", "PER_PHASE", "PLANNED", "SIMULATED", "of_phase", "requirement"]

#: What later stages measure, with the unit that a comparison needs ("" for a plain number).
MEASURED = {
    "overhead": ("ratio", "%"),
    "iteration_time": ("time", "s"),
    "reconfigurations": ("", ""),
    "cost": ("money", "USD"),
    "power": ("power", "W"),
    "margin": ("loss", "dB"),
    "bandwidth": ("bandwidth", "Gbps"),
}

#: Those of them that `opusc simulate` measures.
SIMULATED = frozenset({"overhead", "iteration_time", "reconfigurations"})
#: Those that `opusc cost` measures: of the photonic rails, in whole chassis.
COSTED = frozenset({"cost", "power"})
#: Those that may ask for one phase: `margin(dp)`; without one the worst of all phases is meant.
PER_PHASE = frozenset({"margin", "bandwidth"})
#: Those that follow from the plan alone, so that every command decides them.
PLANNED = COSTED | PER_PHASE


def requirement(ev: Evaluator, node: tree.Require, scope: Scope) -> Requirement | None:
    """What becomes of a `require`; None when it fails or has no meaning, and the sink says so."""
    text = node.condition.span.text
    try:
        node = replace(node, condition=_named(ev, node.condition, scope))
    except Stop:
        return None
    needs = tuple(dict.fromkeys(name.text for name in _names(node.condition) if _measured(name, scope)))
    try:
        if needs:
            _check_units(ev, node.condition, scope)
            planned = all(of_phase(name)[0] in PLANNED for name in needs)
            return Requirement(text=text, checked=planned, needs=needs, decide=_decision(node, scope), span=node.span)
        holds = ev.truth(node.condition, scope)
        message = ev.evaluate(node.message, scope) if node.message else ""
        if not isinstance(message, str):
            assert node.message is not None
            ev.fail("OPUS201", f"a text is needed after `else`, not {kind_of(message)}", node.message.span)
        if holds:
            return Requirement(text=text, checked=True, span=node.span)
    except Stop:
        return None
    values = _values(ev, node.condition, scope)
    ev.sink.error(
        "OPUS421",
        f"required, and not so: `{text}`" + (f": {message}" if message else ""),
        node.condition.span,
        "does not hold",
        notes=[f"{name} = {value}" for name, value in values.items()],
    )
    return None


def of_phase(name: str) -> tuple[str, str]:
    """`margin(dp.shard)` is the measure `margin` of phase `dp.shard`; the phase is "" where all are meant."""
    measure, _, phase = name.removesuffix(")").partition("(")
    return measure, phase


def _named(ev: Evaluator, node: tree.Expression, scope: Scope) -> tree.Expression:
    """The expression with each `margin(dp)` as one name: what is measured of a phase is a result too."""
    if isinstance(node, tree.Call) and isinstance(node.function, tree.Name):
        name = node.function
        if name.text in PER_PHASE and _measured(name, scope):
            phase = _path(node.arguments[0]) if len(node.arguments) == 1 else ""
            if not phase:
                ev.fail("OPUS203", f"`{name.text}` is measured of one phase", node.span, f"`{name.text}(dp)`")
            return tree.Name(f"{name.text}({phase})", span=node.span)
    if isinstance(node, tree.Binary):
        return replace(node, left=_named(ev, node.left, scope), right=_named(ev, node.right, scope))
    return replace(node, operand=_named(ev, node.operand, scope)) if isinstance(node, tree.Unary) else node


def _path(node: tree.Expression) -> str:
    """A phase as it is written, `dp` or `dp.shard`; "" for anything else."""
    if isinstance(node, tree.Attribute):
        before = _path(node.value)
        return before and f"{before}.{node.name.text}"
    return node.text if isinstance(node, tree.Name) else ""


def _decision(node: tree.Require, scope: Scope) -> Decision:
    def decide(measured: Mapping[str, Fraction], sink: Diagnostics) -> str | None:
        ev = Evaluator(sink)
        values: dict[str, Thunk | Value] = {}
        for name, value in measured.items():
            dimension = MEASURED[of_phase(name)[0]][0]
            values[name] = Quantity(value, DIMENSIONS[dimension]) if dimension else int(value)
        known = Scope(scope, values)
        try:
            if ev.truth(node.condition, known):
                return ""
            message = ev.evaluate(node.message, known) if node.message else None
        except Stop:
            return None
        return message if isinstance(message, str) and message else "it does not hold"

    return decide


def _measured(name: tree.Name, scope: Scope) -> bool:
    return of_phase(name.text)[0] in MEASURED and isinstance(scope.find(name.text), Builtin | None)


def _names(node: object) -> list[tree.Name]:
    """Every name in an expression, left to right; names of fields are none."""
    return [found for found in _inside(node, (tree.Name,)) if isinstance(found, tree.Name)]


def _inside(node: object, kinds: tuple[type, ...]) -> list[tree.Expression]:
    """The outermost parts of an expression that are of some kinds, left to right."""
    if isinstance(node, kinds):
        return [node]  # type: ignore[list-item]
    if isinstance(node, tuple):
        return [found for item in node for found in _inside(item, kinds)]
    if isinstance(node, tree.Attribute | tree.Field):
        return _inside(node.value, kinds)
    if isinstance(node, tree.Call) and isinstance(node.function, tree.Name):
        return _inside(node.arguments, kinds)  # `power(2, 3)` is the function, `power` a result
    if isinstance(node, Span) or not hasattr(node, "__dataclass_fields__"):
        return []
    return [found for child in node.__dataclass_fields__ for found in _inside(getattr(node, child), kinds)]


def _values(ev: Evaluator, node: tree.Expression, scope: Scope) -> dict[str, str]:
    """The names and fields in a condition, with their values; blocks, modules and functions have none to show."""
    found: dict[str, str] = {}
    for name in _inside(node, (tree.Name, tree.Attribute)):
        root = name
        while isinstance(root, tree.Attribute):
            root = root.value
        if not isinstance(root, tree.Name) or scope.find(root.text) is None:
            continue  # a variable of a comprehension
        with suppress(Stop):
            value = ev.evaluate(name, scope)
            if not isinstance(value, Block | Module | Builtin | Function):
                found[name.span.text] = shown(value)
    return found


def _check_units(ev: Evaluator, node: tree.Expression, scope: Scope) -> None:
    """Each comparison with a measured result must have its unit on the other side."""
    if isinstance(node, tree.Binary) and node.operator in ("and", "or"):
        _check_units(ev, node.left, scope)
        _check_units(ev, node.right, scope)
        return
    if isinstance(node, tree.Unary) and node.operator == "not":
        _check_units(ev, node.operand, scope)
        return
    if not isinstance(node, tree.Binary) or node.operator not in ("<", "<=", ">", ">=", "==", "!="):
        ev.fail("OPUS203", "a measured result is compared with a limit", node.span, "no comparison")
    for side, other in ((node.left, node.right), (node.right, node.left)):
        if isinstance(side, tree.Name) and _measured(side, scope):
            _check_limit(ev, side.text, other, scope)


def _check_limit(ev: Evaluator, name: str, limit: tree.Expression, scope: Scope) -> None:
    dimension, unit = MEASURED[of_phase(name)[0]]
    value = ev.evaluate(limit, scope)
    if isinstance(value, Quantity) and dimension and value.dimension == DIMENSIONS[dimension]:
        return
    plain = isinstance(value, int | Fraction) and not isinstance(value, bool)
    if not dimension and plain:
        return
    if plain:
        end = Span(limit.span.source, limit.span.end, limit.span.end)
        ev.fail(
            "OPUS202", f"`{name}` is a {dimension}; {shown(value)} has no unit", limit.span, "no unit",
            help=f"write `{limit.span.text} {unit}`", fix=[Edit(end, f" {unit}")],
        )  # fmt: skip
    assert unit in UNITS or not unit
    ev.fail(
        "OPUS203", f"`{name}` cannot be compared with {shown(value)}", limit.span, f"needs {unit or 'a plain number'}"
    )
