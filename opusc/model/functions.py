"""The functions of the language: pure, bounded, and few."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from opusc.model.operators import BITS, LONGEST, Unfit, apply
from opusc.model.units import Quantity
from opusc.model.values import Interval, Value, kind_of, size_of

__all__ = ["FUNCTIONS", "Signature", "Spend"]

#: Tells the evaluator how many values a function is about to make.
Spend = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Signature:
    parameters: str
    doc: str
    run: Callable[..., Value]

    def apply(self, arguments: Sequence[Value], spend: Spend) -> Value:
        """Raises operators.Unfit when the values do not fit."""
        wanted = [p for p in self.parameters.split(", ") if p]
        many = wanted[-1].endswith("...")
        if len(arguments) != len(wanted) and not (many and len(arguments) >= len(wanted)):
            raise Unfit(f"takes ({self.parameters}), not {len(arguments)} values")
        if self.run is not _length:
            spend(sum(size_of(a) for a in arguments if isinstance(a, tuple | Interval)))
        return self.run(*arguments)


def _list(value: Value) -> Sequence[Value]:
    if isinstance(value, tuple):
        return value
    if isinstance(value, Interval):
        return list(value)
    raise Unfit(f"a list or a range is needed, not {kind_of(value)}")


def _int(value: Value) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Unfit(f"a whole number is needed, not {kind_of(value)}")


def _ints(value: Value) -> list[int]:
    return [_int(item) for item in _list(value)]


def _fold(operator: str, start: Value) -> Callable[[Value], Value]:
    def run(value: Value) -> Value:
        items = _list(value)
        total: Value = items[0] if items else start
        made = 0
        for item in items[1:]:
            total = apply(operator, total, item)
            made += len(total) if isinstance(total, tuple) else 0
            if made > LONGEST:
                raise Unfit("adding up these lists takes too long; join them in a comprehension")
        return total

    return run


def _extreme(operator: str) -> Callable[..., Value]:
    def run(*values: Value) -> Value:
        items = _list(values[0]) if len(values) == 1 else values
        if not items:
            raise Unfit("an empty list has none")
        best = items[0]
        for item in items[1:]:
            if apply(operator, item, best):
                best = item
        return best

    return run


def _round(rule: Callable[[Fraction], int]) -> Callable[[Value], Value]:
    def run(value: Value) -> Value:
        if isinstance(value, int | Fraction) and not isinstance(value, bool):
            return rule(Fraction(value))
        raise Unfit(f"a number is needed, not {kind_of(value)}")

    return run


def _length(value: Value) -> Value:
    if isinstance(value, tuple | Interval):
        return size_of(value)
    if isinstance(value, str):
        return len(value)
    raise Unfit(f"{kind_of(value)} has no length")


def _power(base: Value, exponent: Value) -> Value:
    a, n = _int(base), _int(exponent)
    if n < 0:
        raise Unfit("the exponent is negative")
    if n * max(abs(a).bit_length(), 1) > BITS:
        raise Unfit(f"the result has more than {BITS:,} bits")
    return int(a**n)


def _log2(value: Value) -> Value:
    n = _int(value)
    if n < 1 or n & (n - 1):
        raise Unfit(f"{n} is not a power of two")
    return n.bit_length() - 1


def _digits(number: Value, sizes: Value) -> Value:
    rest, found = _int(number), []
    for size in _ints(sizes):
        if size < 1:
            raise Unfit("a size below 1")
        found.append(rest % size)
        rest //= size
    return tuple(found)


def _number(digits: Value, sizes: Value) -> Value:
    total, stride = 0, 1
    places, counts = _ints(digits), _ints(sizes)
    if len(places) != len(counts):
        raise Unfit(f"{len(places)} digits for {len(counts)} sizes")
    for digit, size in zip(places, counts, strict=True):
        total += digit * stride
        stride *= size
    return total


def _replace(items: Value, at: Value, value: Value) -> Value:
    found, index = list(_list(items)), _int(at)
    if not 0 <= index < len(found):
        raise Unfit(f"index {index} of a list of {len(found)}")
    found[index] = value
    return tuple(found)


def _zip(a: Value, b: Value) -> Value:
    left, right = _list(a), _list(b)
    if len(left) != len(right):
        raise Unfit(f"{len(left)} and {len(right)} elements do not pair up")
    return tuple((x, y) for x, y in zip(left, right, strict=True))


def _absolute(value: Value) -> Value:
    if isinstance(value, Quantity) and value.dimension.logarithm != "level":
        return Quantity(abs(value.value), value.dimension)
    return apply("-", 0, value) if apply("<", value, 0) else value


FUNCTIONS: dict[str, Signature] = {
    "len": Signature("list", "the number of elements", _length),
    "sum": Signature("list", "the elements added up; 0 for none", _fold("+", 0)),
    "product": Signature("list", "the elements multiplied; 1 for none", _fold("*", 1)),
    "min": Signature("value...", "the smallest of the values, or of one list", _extreme("<")),
    "max": Signature("value...", "the largest of the values, or of one list", _extreme(">")),
    "abs": Signature("number", "the number or quantity without its sign", _absolute),
    "floor": Signature("number", "the largest whole number not above", _round(floor)),
    "ceil": Signature("number", "the smallest whole number not below", _round(ceil)),
    "power": Signature("base, exponent", "base multiplied by itself, exponent times", _power),
    "log2": Signature("number", "the exponent of a power of two; an error for other numbers", _log2),
    "reverse": Signature("list", "the elements from the last to the first", lambda v: tuple(reversed(_list(v)))),
    "zip": Signature("a, b", "pairs of the elements of two lists of one length", _zip),
    "digits": Signature("number, sizes", "the mixed-radix digits of a number, lowest first", _digits),
    "number": Signature("digits, sizes", "the number with these mixed-radix digits, lowest first", _number),
    "replace": Signature("list, index, value", "the list with one element replaced", _replace),
}
