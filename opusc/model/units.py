"""Exact quantities with dimensions.

A quantity is a fraction of a base unit and a dimension. Bases: bit, picosecond, milliwatt, US cent,
operation, millimetre, and thousandths of a dB; so what the model needs are integers.
"""

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["DIMENSIONS", "UNITS", "Dimension", "Quantity", "Unit", "describe", "show"]


@dataclass(frozen=True, slots=True)
class Dimension:
    """Exponents of the bases, or an optical level or loss, which are logarithms and only add."""

    bit: int = 0
    time: int = 0
    power: int = 0
    money: int = 0
    operation: int = 0
    length: int = 0
    logarithm: str = ""  # "loss" (dB) | "level" (dBm)

    def times(self, other: "Dimension", sign: int = 1) -> "Dimension | None":
        """The dimension of a product (or quotient, with sign -1); None where there is none."""
        if "level" in (self.logarithm, other.logarithm):
            return None
        if self.logarithm or other.logarithm:
            plain = other if self.logarithm else self
            if plain.length and plain == Dimension(length=plain.length) and not (sign < 0 and other.logarithm):
                return Dimension(length=self.length + sign * other.length, logarithm="loss")
            return self if other == RATIO else other if self == RATIO and sign > 0 else None
        return Dimension(
            self.bit + sign * other.bit,
            self.time + sign * other.time,
            self.power + sign * other.power,
            self.money + sign * other.money,
            self.operation + sign * other.operation,
            self.length + sign * other.length,
        )


RATIO = Dimension()
DIMENSIONS: dict[str, Dimension] = {
    "ratio": RATIO,
    "size": Dimension(bit=1),
    "time": Dimension(time=1),
    "bandwidth": Dimension(bit=1, time=-1),
    "compute rate": Dimension(operation=1, time=-1),
    "power": Dimension(power=1),
    "money": Dimension(money=1),
    "loss": Dimension(logarithm="loss"),
    "level": Dimension(logarithm="level"),
    "length": Dimension(length=1),
    "loss per length": Dimension(length=-1, logarithm="loss"),
    "delay per length": Dimension(time=1, length=-1),
}


@dataclass(frozen=True, slots=True)
class Unit:
    name: str
    factor: Fraction
    dimension: Dimension


_BIT, _PER_S = DIMENSIONS["bandwidth"], Fraction(1, 10**12)
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}


def _table() -> dict[str, Unit]:
    units: list[Unit] = []

    def add(name: str, factor: Fraction | int, dimension: str) -> None:
        units.append(Unit(name, Fraction(factor), DIMENSIONS[dimension]))

    for prefix, factor in _DECIMAL.items():
        add(f"{prefix}bps", factor * _PER_S, "bandwidth")
    for prefix, factor in {**_DECIMAL, **_BINARY}.items():
        add(f"{prefix}B/s", 8 * factor * _PER_S, "bandwidth")
        add(f"{prefix}B", 8 * factor, "size")
    for prefix, factor in {**_DECIMAL, **_BINARY}.items():
        add(f"{prefix}b", factor, "size")
    for name, picoseconds in (
        ("ps", 1), ("ns", 10**3), ("us", 10**6), ("\u00b5s", 10**6), ("\u03bcs", 10**6), ("ms", 10**9), ("s", 10**12),
        ("min", 60 * 10**12), ("h", 3600 * 10**12),
    ):  # fmt: skip
        add(name, picoseconds, "time")
    for name, milliwatts in (("mW", 1), ("W", 10**3), ("kW", 10**6), ("MW", 10**9)):
        add(name, milliwatts, "power")
    for name, cents in (("USD", 100), ("kUSD", 10**5), ("MUSD", 10**8)):
        add(name, cents, "money")
    for prefix in ("M", "G", "T", "P", "E"):
        exponent = {"M": 6, "G": 9, "T": 12, "P": 15, "E": 18}[prefix]
        add(f"{prefix}FLOPS", 10**exponent * _PER_S, "compute rate")
    add("%", Fraction(1, 100), "ratio")
    add("dB", 1000, "loss")
    add("dBm", 1000, "level")
    for name, millimetres in (("mm", 1), ("m", 10**3), ("km", 10**6)):
        add(name, millimetres, "length")
    add("dB/km", Fraction(1000, 10**6), "loss per length")
    add("ns/m", Fraction(10**3, 10**3), "delay per length")
    return {unit.name: unit for unit in units}


#: Every unit, by its exact spelling. 1 GB = 10^9 bytes, 1 GiB = 2^30 bytes; a byte is 8 bits.
UNITS: dict[str, Unit] = _table()


@dataclass(frozen=True, slots=True)
class Quantity:
    """`value` counts base units (bit, ps, mW, cent, operation, thousandths of a dB; 1 for a ratio)."""

    value: Fraction
    dimension: Dimension

    def __str__(self) -> str:
        return show(self.value, self.dimension)


_SHOWN: dict[str, tuple[str, ...]] = {
    "bandwidth": ("Tbps", "Gbps", "Mbps", "kbps", "bps"),
    "size": ("TB", "GB", "MB", "kB", "B", "b"),
    "time": ("h", "min", "s", "ms", "us", "ns", "ps"),
    "power": ("MW", "kW", "W", "mW"),
    "money": ("USD",),
    "ratio": ("%",),
    "loss": ("dB",),
    "level": ("dBm",),
    "length": ("km", "m", "mm"),
    "loss per length": ("dB/km",),
    "delay per length": ("ns/m",),
    "compute rate": ("PFLOPS", "TFLOPS", "GFLOPS"),
}


def describe(dimension: Dimension) -> str:
    """The name of a dimension, for messages."""
    return next((name for name, d in DIMENSIONS.items() if d == dimension), "another dimension")


def show(value: Fraction, dimension: Dimension) -> str:
    """The quantity in its largest unit that leaves a whole number, or the smallest with decimals."""
    names = _SHOWN.get(describe(dimension))
    if names is None:
        return str(value)
    for name in names:
        scaled = value / UNITS[name].factor
        if scaled.denominator == 1 and (scaled != 0 or name == names[-1]):
            return f"{scaled.numerator:,} {name}"
    return f"{float(value / UNITS[names[-1]].factor):.6g} {names[-1]}"
