"""Words of the language that take something: arguments in braces, or a value behind them."""

__all__ = ["APPLIED", "ARGUMENTS"]

#: The fields of the words that have any: `interleaved { chunks = 2 }`.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "ring": ("one_way",),
    "flattened_butterfly": ("dims",),
    "pairs": ("of",),
    "edges": ("of",),
    "interleaved": ("chunks",),
    "share": ("rail",),
    "explicit": ("of",),
    "csv": ("columns",),
    "trace": ("compute",),
}
#: The words that stand before a value: `csv "cabling.csv"`.
APPLIED = ("csv", "trace")
