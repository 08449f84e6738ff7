"""Operators on values: exact, with dimensions."""

from fractions import Fraction

from opusc.model.units import DIMENSIONS, Dimension, Quantity
from opusc.model.values import Applied, Block, Builtin, Function, Interval, Module, Value, kind_of, size_of

__all__ = ["LONGEST", "Unfit", "apply", "shown"]

BITS = 4096
LONGEST = 1_000_000
COMPARED = 2_000_000
RATIO = DIMENSIONS["ratio"]


class Unfit(Exception):
    """These values do not go together; the text says why."""


def shown(value: Value, depth: int = 3) -> str:
    """A value as an author would write it; lists inside lists only to a depth, for they may share their parts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        if not depth:
            return "[...]"
        return "[" + ", ".join(shown(v, depth - 1) for v in value[:8]) + (", ..." if len(value) > 8 else "") + "]"
    if isinstance(value, Applied):
        return value.word
    if isinstance(value, int | Fraction | str | Quantity | Interval):
        return str(value)
    return kind_of(value)


def apply(operator: str, left: Value, right: Value) -> Value:
    """`left operator right`. Raises Unfit."""
    if operator in ("==", "!="):
        return _equal(left, right) == (operator == "==")
    if operator == "in":
        if isinstance(right, Interval):
            return isinstance(left, int) and right.first <= left <= right.last
        if isinstance(right, tuple):
            return any(_equal(left, item) for item in right)
        raise Unfit(f"`in` needs a list or a range on its right, not {kind_of(right)}")
    if operator in ("<", "<=", ">", ">="):
        return _ordered(operator, left, right)
    if operator in ("mod", "div"):
        if not (_is_int(left) and _is_int(right)):
            raise Unfit(f"`{operator}` is for whole numbers, not {kind_of(left)} and {kind_of(right)}")
        if right == 0:
            raise Unfit(f"`{operator}` by zero")
        return left % right if operator == "mod" else left // right  # type: ignore[operator]
    if isinstance(left, tuple | Interval) or isinstance(right, tuple | Interval):
        return _lists(operator, left, right)
    return _arithmetic(operator, left, right)


def _is_int(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | Fraction) and not isinstance(value, bool)


def _equal(left: Value, right: Value) -> bool:
    """Equality of lists without recursion, and once for each pair of lists, which may be shared many times over."""
    waiting: list[tuple[Value, Value]] = [(left, right)]
    seen: set[tuple[int, int]] = set()
    steps = 0
    while waiting:
        a, b = waiting.pop()
        steps += 1
        if steps > COMPARED:
            raise Unfit(f"more than {COMPARED:,} elements to compare")
        if isinstance(a, tuple | Interval) and isinstance(b, tuple | Interval):
            if size_of(a) != size_of(b):
                return False
            if a is b or (id(a), id(b)) in seen:
                continue
            seen.add((id(a), id(b)))
            if isinstance(a, Interval) and isinstance(b, Interval):
                if a.size and a != b:
                    return False
            else:
                waiting += zip(a, b, strict=True)
        elif not _same(a, b):
            return False
    return True


def _same(left: Value, right: Value) -> bool:
    if isinstance(left, Applied) and isinstance(right, Applied):
        return left.word == right.word
    for value in (left, right):
        if isinstance(value, Block | Builtin | Function | Module):
            raise Unfit(f"{kind_of(value)} cannot be compared")
    if isinstance(left, Quantity) or isinstance(right, Quantity):
        a, b = _comparable(left, right)
        return a == b
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    return bool(left == right)


def _ordered(operator: str, left: Value, right: Value) -> bool:
    a, b = _comparable(left, right)
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]


def _comparable(left: Value, right: Value) -> tuple[Fraction, Fraction]:
    if _is_number(left) and _is_number(right):
        return Fraction(left), Fraction(right)  # type: ignore[arg-type]
    if isinstance(left, Quantity) and isinstance(right, Quantity) and left.dimension == right.dimension:
        return left.value, right.value
    raise Unfit(f"{kind_of(left)} cannot be compared with {kind_of(right)}")


def _lists(operator: str, left: Value, right: Value) -> Value:
    if operator == "+" and isinstance(left, tuple | Interval) and isinstance(right, tuple | Interval):
        _bounded(size_of(left) + size_of(right))
        return (*left, *right)
    if operator == "*":
        items, count = (left, right) if isinstance(left, tuple | Interval) else (right, left)
        if isinstance(count, int) and not isinstance(count, bool) and isinstance(items, tuple | Interval):
            if count < 0:
                raise Unfit("a list cannot be repeated less than 0 times")
            _bounded(size_of(items) * count)
            return tuple(items) * count
    raise Unfit(f"`{operator}` does not go with {kind_of(left)} and {kind_of(right)}")


def _bounded(length: int) -> None:
    if length > LONGEST:
        raise Unfit(f"a list of {_brief(length)} elements is too long; {LONGEST:,} is the limit")


def _brief(count: int) -> str:
    return f"{count:,}" if count < 10**15 else "more than 10^15"


def _arithmetic(operator: str, left: Value, right: Value) -> Value:
    if _is_number(left) and _is_number(right):
        return _plain(_compute(operator, Fraction(left), Fraction(right)))  # type: ignore[arg-type]
    a, b = _as_quantity(left), _as_quantity(right)
    if a is None or b is None:
        raise Unfit(f"`{operator}` does not go with {kind_of(left)} and {kind_of(right)}")
    value = _compute(operator, a.value, b.value)
    if operator in "+-":
        return Quantity(value, _sum_dimension(operator, left, right, a.dimension, b.dimension))
    dimension = a.dimension.times(b.dimension, 1 if operator == "*" else -1)
    if dimension is None:
        raise Unfit(f"{kind_of(left)} {operator} {kind_of(right)} has no meaning")
    if dimension == RATIO and not (isinstance(left, Quantity) and isinstance(right, Quantity)):
        return _plain(value) if not isinstance(left, Quantity) else Quantity(value, dimension)
    return _plain(value) if dimension == RATIO and operator == "/" else Quantity(value, dimension)


def _sum_dimension(operator: str, left: Value, right: Value, a: Dimension, b: Dimension) -> Dimension:
    if a == b and isinstance(left, Quantity) and isinstance(right, Quantity):
        # The difference of two levels is a loss; their sum has no meaning.
        if a.logarithm != "level":
            return a
        if operator == "-":
            return DIMENSIONS["loss"]
    if a.logarithm == "level" and b == DIMENSIONS["loss"]:
        return a
    if operator == "+" and a == DIMENSIONS["loss"] and b.logarithm == "level":
        return b
    raise Unfit(f"`{operator}` does not go with {kind_of(left)} and {kind_of(right)}")


def _as_quantity(value: Value) -> Quantity | None:
    if isinstance(value, Quantity):
        return value
    return Quantity(Fraction(value), RATIO) if _is_number(value) else None  # type: ignore[arg-type]


def _compute(operator: str, a: Fraction, b: Fraction) -> Fraction:
    if operator == "/" and b == 0:
        raise Unfit("division by zero")
    value = {"+": a.__add__, "-": a.__sub__, "*": a.__mul__, "/": a.__truediv__}[operator](b)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > BITS:
        raise Unfit(f"the result has more than {BITS:,} bits")
    return value


def _plain(value: Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value
