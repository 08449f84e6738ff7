"""Units are exact, and every pair of dimensions combines as physics has it, or not at all."""

from fractions import Fraction
from itertools import product

import pytest

from opusc.model.operators import Unfit, apply
from opusc.model.schema import KINDS, Measure
from opusc.model.units import DIMENSIONS, UNITS, Quantity, describe, show
from tests.model.programs import codes, requiring, right

PREFIXES = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
}
#: The unit without prefix, and what it counts in base units (per second, where it is a rate).
BASES = {"bps": 1, "B/s": 8, "B": 8, "b": 1, "FLOPS": 1, "W": 1000, "USD": 100, "s": 10**12}


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_is_its_prefix_times_its_base(name: str) -> None:
    special = {
        "%": Fraction(1, 100), "dB": 1000, "dBm": 1000, "mW": 1, "ms": 10**9, "us": 10**6, "ns": 1000, "ps": 1,
        "\u00b5s": 10**6, "\u03bcs": 10**6, "min": 60 * 10**12, "h": 3600 * 10**12,
        "mm": 1, "m": 1000, "km": 10**6, "dB/km": Fraction(1000, 10**6), "ns/m": 1,
    }  # fmt: skip
    unit = UNITS[name]
    rate = 10**12 if describe(unit.dimension) in ("bandwidth", "compute rate") else 1
    if name in special:
        assert unit.factor == special[name]
        return
    base = next(base for base in sorted(BASES, key=len, reverse=True) if name.endswith(base))
    assert unit.factor * rate == PREFIXES[name.removesuffix(base)] * BASES[base]


def test_every_field_with_a_unit_has_a_real_one() -> None:
    for kind in KINDS.values():
        for field in kind.fields:
            if isinstance(field.type, Measure):
                assert describe(UNITS[field.type.unit].dimension) == field.type.dimension, field.name


@pytest.mark.parametrize("name", UNITS)
def test_a_quantity_is_shown_as_it_can_be_written_again(name: str) -> None:
    unit = UNITS[name]
    shown = show(unit.factor, unit.dimension)
    number, written = shown.split(" ", 1)
    assert Fraction(number.replace(",", "")) * UNITS[written].factor == unit.factor
    assert UNITS[written].dimension == unit.dimension


LINEAR = [name for name, dimension in DIMENSIONS.items() if not dimension.logarithm]


def one(dimension: str, value: int = 1) -> Quantity:
    return Quantity(Fraction(value), DIMENSIONS[dimension])


@pytest.mark.parametrize(("a", "b"), list(product(DIMENSIONS, DIMENSIONS)))
def test_sums_need_one_dimension(a: str, b: str) -> None:
    allowed = {("level", "loss"): "level", ("loss", "level"): "level"}
    if a == b and a != "level":
        allowed[a, b] = a
    if (a, b) in allowed:
        assert apply("+", one(a, 2), one(b, 3)) == one(allowed[a, b], 5)
    else:
        with pytest.raises(Unfit):
            apply("+", one(a), one(b))


@pytest.mark.parametrize(("a", "b"), list(product(DIMENSIONS, DIMENSIONS)))
def test_differences_need_one_dimension(a: str, b: str) -> None:
    allowed = {("level", "loss"): "level", **{(d, d): d for d in DIMENSIONS}, ("level", "level"): "loss"}
    if (a, b) in allowed:
        assert apply("-", one(a, 5), one(b, 2)) == one(allowed[a, b], 3)
    else:
        with pytest.raises(Unfit):
            apply("-", one(a), one(b))


@pytest.mark.parametrize(("a", "b"), list(product(LINEAR, LINEAR)))
def test_products_and_quotients_undo_each_other(a: str, b: str) -> None:
    whole = apply("*", one(a, 6), one(b, 2))
    assert apply("/", whole, one(b, 2)) in (one(a, 6), 6)
    if a == b and a != "ratio":
        assert apply("/", one(a, 6), one(b, 2)) == 3


@pytest.mark.parametrize("operator", ["*", "/"])
@pytest.mark.parametrize("other", DIMENSIONS)
def test_levels_are_never_multiplied(operator: str, other: str) -> None:
    for a, b in ((one("level"), one(other)), (one(other), one("level")), (one("level"), 2), (2, one("level"))):
        with pytest.raises(Unfit):
            apply(operator, a, b)


def test_losses_are_multiplied_by_numbers_only() -> None:
    assert apply("*", 2, one("loss", 3)) == apply("*", one("loss", 3), 2) == one("loss", 6)
    assert apply("/", one("loss", 6), 2) == one("loss", 3)
    for bad in (one("loss"), one("time")):
        with pytest.raises(Unfit):
            apply("*", one("loss"), bad)
    with pytest.raises(Unfit):
        apply("/", 2, one("loss"))


def test_units_in_programs() -> None:
    right(requiring("1 PiB == power(2, 50) * 8 * 1 b and 1 EFLOPS * 1 ps == 1 MFLOPS * 1 s"))
    right(requiring("3 Gbps * 8 s / 24 Gb == 1 and 60 min == 1 h and 10 \u03bcs == 10 us"))
    assert codes(requiring("1 GB == 1 GB/s")) == ["OPUS203"]
    assert codes(requiring("1 Kb == 1 kb")) == ["OPUS202"]
