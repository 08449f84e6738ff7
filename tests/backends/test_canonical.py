"""Columns and canonical JSON: the text is what `json` would write, and comes back as it was."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opusc.backends.canonical import dump, load
from opusc.backends.columns import column_text, parse_column

NUMBERS = st.lists(st.integers(-(2**40), 2**40), max_size=400)


@given(NUMBERS)
def test_a_column_is_the_decimal_text_of_its_numbers(numbers: list[int]) -> None:
    text = b"".join(column_text(np.array(numbers, dtype=np.int64)))
    assert text == ",".join(map(str, numbers)).encode()
    assert parse_column(text).tolist() == numbers


@pytest.mark.parametrize("low", [0, -1, 10**9])
def test_long_columns_are_written_in_pieces_that_join(low: int) -> None:
    numbers = np.arange(low, low + 300_000)
    pieces = list(column_text(numbers))
    assert len(pieces) > 1
    assert np.array_equal(parse_column(b"".join(pieces)), numbers)


@pytest.mark.parametrize("text", [b"1,,2", b"1,2,", b",", b"1.5", b"1 2", b"1,-", b"x", b"--1"])
def test_what_is_no_column_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="not a list"):
        parse_column(text)


def test_canonical_text_is_sorted_indented_and_ends_a_line() -> None:
    value = {"b": np.arange(3), "a": [{"y": 1, "x": []}], "c": {}, "d": ["x", None, True], "e": [[1, 2], []]}
    assert b"".join(dump(value)).decode() == (
        '{\n  "a": [\n    {\n      "x": [],\n      "y": 1\n    }\n  ],\n  "b": [0,1,2],\n  "c": {},\n'
        '  "d": ["x", null, true],\n  "e": [\n    [1,2],\n    []\n  ]\n}\n'
    )


def test_floats_have_no_place() -> None:
    with pytest.raises(TypeError, match="float"):
        list(dump({"a": 1.5}))


WORDS = st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS.filter(bool), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_loading_gives_back_what_was_dumped_for_json_and_for_us(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    path = tmp_path_factory.getbasetemp() / "value.json"
    path.write_bytes(b"".join(dump(value)))
    assert json.loads(path.read_text(encoding="utf-8")) == value
    assert _plain(load(path)) == value


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{\n  "a": [1,,2]\n}\n')
    with pytest.raises(ValueError, match="not a list"):
        load(path)
