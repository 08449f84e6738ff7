"""Every program ends soon: what asks for too much, or needs itself, is refused with one message.

Each of these once hung or crashed a compiler of this kind; a test that does not return is a failed one.
"""

import pytest

from tests.model.programs import codes, requiring, right


def doubling(name: str, depth: int) -> str:
    """Lists that share their halves: 2^depth elements in the space of `depth` pairs."""
    return f"let {name}0 = [1, 1]\n" + "".join(f"let {name}{i + 1} = [{name}{i}, {name}{i}]\n" for i in range(depth))


@pytest.mark.parametrize(
    ("condition", "before"),
    [
        ("sum(0..10_000_000) > 0", ""),
        ("len([i for i in 0..10_000_000]) > 0", ""),
        ("len([1 for i in 0..3000 for j in 0..3000 if false]) == 0", ""),
        ("len([i for i in a if i in a]) > 0", "let a = [i for i in 0..20_000]\n"),
        ("reverse(0..100_000_000) == []", ""),
        ("a59 == 0", "".join(f"let a{i} = a{i + 1} + 1\n" for i in range(2000)) + "let a2000 = 0\n"),
        ('b39 == ""', 'let b0 = "xx"\n' + "".join(f'let b{i + 1} = "{{b{i}}}{{b{i}}}"\n' for i in range(40))),
        ("a[0] == 0", "let a = [i for i in 0..99_999_999_999_999_999_999_999]\n"),
    ],
)
def test_too_much(condition: str, before: str) -> None:
    found = codes(requiring(condition, before))
    assert set(found) == {"OPUS120"}
    assert len(found) <= 2


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("len([0] * 100_000_000_000_000_000_000) > 0", "OPUS203"),
        ("power(10, 1_000_000_000) > 0", "OPUS205"),
        ("sum([[1] * 1000 for i in 0..1900]) == []", "OPUS205"),
    ],
)
def test_too_large(condition: str, code: str) -> None:
    assert codes(requiring(condition)) == [code]


def test_numbers_do_not_explode() -> None:
    calls = "f(" * 20 + "10" + ")" * 20
    assert codes(requiring(f"{calls} > 0", "let f(x) = x * x\n")) == ["OPUS203"]


def test_lists_that_share_their_parts_are_compared_and_shown_once() -> None:
    both = doubling("a", 60) + doubling("b", 60)
    right(requiring("a60 == b60", both))
    assert codes(requiring("a60 == [b60, b60]", both)) == ["OPUS421"]
    assert codes(requiring("[1 for i in a60 for j in [1] if nothing] == []", both)) == ["OPUS101"]


def test_long_chains_of_names_do_not_nest() -> None:
    chain = "let a0 = 0\n" + "".join(f"let a{i + 1} = a{i} + 1\n" for i in range(3000))
    right(requiring("a3000 == 3000", chain))


@pytest.mark.parametrize(
    "before",
    [
        "let a = b\nlet b = a\n",
        "param a: count = b\nparam b: count = a\n",
        "let f(x) = f(x - 1)\nlet a = f(3)\n",
        "let f(x) = g(x)\nlet g(x) = f(x)\nlet a = f(3)\n",
    ],
)
def test_what_needs_itself_is_refused_once_even_where_nothing_uses_it(before: str) -> None:
    assert codes(requiring("true", before)) == ["OPUS103"]


def test_a_function_may_be_applied_to_its_own_result() -> None:
    right(requiring("f(f(f(1))) == 4", "let f(x) = x + 1\n"))


def test_many_unknown_names_are_soon_told() -> None:
    """A suggestion for each out of all others would take minutes."""
    names = "".join(f"let a{i} = b{i}\n" for i in range(4000))
    found = codes(requiring("true", names))
    assert set(found) == {"OPUS101"}
    long = "x" * 100_000
    assert codes(requiring("true", f"let {long}y = 1\nlet a = {long}z\n")) == ["OPUS101"]
