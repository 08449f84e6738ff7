"""Expressions as canonical text on one line."""

from opusc.syntax import tree

__all__ = ["head_of_field", "inline", "inline_record"]

_OR, _AND, _NOT, _COMPARISON, _RANGE, _SUM, _PRODUCT, _UNARY, _POSTFIX, _ATOM = range(1, 11)
_BINARY = {
    "or": _OR, "and": _AND, "==": _COMPARISON, "!=": _COMPARISON, "<": _COMPARISON, "<=": _COMPARISON,
    ">": _COMPARISON, ">=": _COMPARISON, "in": _COMPARISON, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT,
    "mod": _PRODUCT, "div": _PRODUCT,
}  # fmt: skip


def inline(node: tree.Expression, least: int = 0) -> str:
    """The text of an expression; in parentheses where it binds less than `least`."""
    text, binds = _text(node)
    return text if binds >= least else f"({text})"


def _text(node: tree.Expression) -> tuple[str, int]:
    match node:
        case tree.Name():
            return node.text, _ATOM
        case tree.Number():
            return node.text, _ATOM
        case tree.Quantity():
            return f"{node.text} {node.unit}", _ATOM
        case tree.String():
            return node.span.text, _ATOM
        case tree.Boolean():
            return ("true" if node.value else "false"), _ATOM
        case tree.List():
            return f"[{_items(node.items)}]", _ATOM
        case tree.Tuple():
            return f"({_items(node.items)})", _ATOM
        case tree.Record():
            return inline_record(node), _ATOM
        case tree.Comprehension():
            clauses = " ".join(_clause(*clause) for clause in node.clauses)
            return f"[{inline(node.element)} {clauses}]", _ATOM
        case tree.Tagged():
            return f"{node.tag.text} {inline(node.argument, _ATOM)}", _ATOM
        case tree.Unary():
            if node.operator == "not":
                return f"not {inline(node.operand, _NOT)}", _NOT
            return f"-{inline(node.operand, _UNARY)}", _UNARY
        case tree.Range():
            return f"{inline(node.first, _SUM)}..{inline(node.last, _SUM)}", _RANGE
        case tree.Binary():
            level = _BINARY[node.operator]
            left = level + 1 if level == _COMPARISON else level
            sides = [inline(node.left, left), inline(node.right, level + 1)]
            if node.operator == "or":
                # `a or b and c` is read wrongly: the inner pair keeps its parentheses.
                sides = [
                    f"({text})" if _is_and(x) else text for x, text in zip((node.left, node.right), sides, strict=True)
                ]
            return f"{sides[0]} {node.operator} {sides[1]}", level
        case tree.When():
            return f"if {inline(node.condition, _OR)} then {inline(node.yes)} else {inline(node.no)}", 0
    return _postfix(node), _POSTFIX


def _is_and(node: tree.Expression) -> bool:
    return isinstance(node, tree.Binary) and node.operator == "and"


def _postfix(node: "tree.Attribute | tree.Index | tree.Call | tree.Refine") -> str:
    match node:
        case tree.Attribute():
            return f"{inline(node.value, _POSTFIX)}.{node.name.text}"
        case tree.Index():
            # `word [a, b]` would be a word applied to a list.
            index = inline(node.index) if isinstance(node.value, tree.Name) else _selected(node.index)
            return f"{inline(node.value, _POSTFIX)}[{index}]"
        case tree.Call():
            return f"{inline(node.function, _POSTFIX)}({_items(node.arguments)})"
    return f"{inline(node.base, _POSTFIX)} {inline_record(node.changes)}"


def _selected(node: tree.Expression) -> str:
    """What stands in the brackets of a selection: `3`, `0, 2`. Without a comma a list needs its own brackets."""
    several = isinstance(node, tree.List) and len(node.items) > 1
    return _items(node.items) if several and isinstance(node, tree.List) else inline(node)


def _items(items: tuple[tree.Expression, ...]) -> str:
    return ", ".join(inline(item) for item in items)


def _clause(names: tuple[tree.Name, ...], iterable: tree.Expression, condition: tree.Expression | None) -> str:
    text = f"for {', '.join(name.text for name in names)} in {inline(iterable, _OR)}"
    return text if condition is None else f"{text} if {inline(condition, _OR)}"


def inline_record(node: tree.Record) -> str:
    return f"{{ {', '.join(_item(item) for item in node.items)} }}" if node.items else "{}"


def _item(item: tree.Item) -> str:
    match item:
        case tree.Field():
            # Between commas a choice is easier to see in parentheses.
            return f"{head_of_field(item)} = {inline(item.value, _OR)}"
        case tree.Phase():
            return f"{head_of_phase(item)} {inline_record(item.body)}"
        case tree.Require():
            return require(item)
    return f"{head_of_let(item)} = {inline(item.value)}"


def head_of_field(item: tree.Field) -> str:
    """What stands before the `=` of a field."""
    name = item.name.text
    if item.label is not None:
        return f"{name} {item.label.text}"
    if item.selection is None:
        return name
    if not item.bracketed:
        return f"{name} {inline(item.selection)}"
    return f"{name}[{_selected(item.selection)}]"


def head_of_phase(item: tree.Phase) -> str:
    over = f" over {' * '.join(axis.text for axis in item.axes)}" if item.axes else ""
    return f"phase {item.name.text}{over}"


def head_of_let(item: tree.Let) -> str:
    return f"let {item.name.text}{parameters(item.parameters)}"


def parameters(names: tuple[tree.Name, ...] | None) -> str:
    return "" if names is None else f"({', '.join(name.text for name in names)})"


def require(item: tree.Require) -> str:
    message = "" if item.message is None else f" else {inline(item.message)}"
    return f"require {inline(item.condition)}{message}"
