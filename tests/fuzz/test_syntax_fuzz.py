"""Any text at all: the parser answers with a tree and messages, never with an exception, and in bounded time."""

import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opusc.diagnostics import Diagnostic, Diagnostics
from opusc.diagnostics.codes import CODES
from opusc.resources import stdlib_dir
from opusc.source import Source, Span
from opusc.syntax import tree
from opusc.syntax.parser import parse, parse_expression
from opusc.syntax.scan import scan

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted([*ROOT.glob("examples/*/*.opus"), *stdlib_dir().glob("*.opus")])
TEXTS = [path.read_text(encoding="utf-8") for path in PROGRAMS]

#: The longest that one text of a few thousand characters may take; generous, since machines differ.
SECONDS = 5.0

FEW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))

SOUP = [
    *"{}[]()=,.:;+-*/<>!&|%#\"'\\\n$@?^~`",
    *["\n\n", "\t", "\r", "\u00a0", "\u201c", "\u201d", "\u00b5s", "\u03bc", "\U0001f600", "\x00", "\ufeff"],
    *["opus 1\n", "opus", "use", "as", "param", "let", "phase", "require", "fault", "if", "then", "else", "for", "in"],
    *["mod", "div", "and", "or", "not", "of", "over", "true", "false", "cluster", "c", "dp", "rail", "x", "Gbps"],
    *["..", "==", "!=", "<=", ">=", "&&", "||", "//", "/*", "*/", "=>", "->", ":=", "**"],
    *["0", "1", "1.5", "1e9", "0x10", "200 Gbps", "6 %", "1_000", "7.", ".5"],
    *['"a"', '"{x}"', '"{', '"{}"', '"{{', '}"', '"\\', '"{"a"}"', "{ a = 1 }", "(1, 2)", "[i for i in 1..2]"],
]
tokens = st.lists(st.sampled_from(SOUP), max_size=60)


def answer(text: str) -> tuple[tree.Program, list[Diagnostic]]:
    """Parse a text; every message must have a known code, words, and places inside the text."""
    source, sink = Source("t.opus", text), Diagnostics()
    started = time.perf_counter()
    program = parse(source, sink)
    assert time.perf_counter() - started < SECONDS
    found = list(sink)
    for diagnostic in found:
        assert diagnostic.code in CODES
        assert diagnostic.message
        assert "_NL" not in diagnostic.message
        spans = [diagnostic.span, *(label.span for label in diagnostic.secondary), *(e.span for e in diagnostic.fix)]
        for span in spans:
            inside(span, source)
    for entry in program.entries:
        inside(entry.span, source)
    return program, found


def inside(span: Span, source: Source) -> None:
    assert span.source is source
    assert 0 <= span.start <= span.end <= len(source.text)


def mutated(text: str, seed: int, changes: int) -> str:
    """A program with some characters or words taken out, doubled, swapped or replaced."""
    dice = random.Random(seed)
    for _ in range(changes):
        lexemes = scan(text)
        if len(lexemes) < 3:
            return text
        one, other = dice.choice(lexemes), dice.choice(lexemes)
        first, second = sorted((one, other), key=lambda x: x.start)
        at = dice.randrange(len(text))
        match dice.randrange(8):
            case 0:
                text = text[: one.start] + text[one.end :]
            case 1:
                text = text[: one.end] + " " + one.text + text[one.end :]
            case 2 if first is not second:
                between = text[first.end : second.start]
                text = text[: first.start] + second.text + between + first.text + text[second.end :]
            case 3:
                text = text[: one.start] + dice.choice(SOUP) + text[one.end :]
            case 4:
                text = text[:at] + text[at + 1 :]
            case 5:
                text = text[:at] + text[at] + text[at:]
            case 6:
                text = text[:at] + dice.choice(SOUP) + text[at:]
            case _:
                text = text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]
    return text


# --- quick ---------------------------------------------------------------------------------------


@FEW
@given(tokens)
def test_token_soup(words: list[str]) -> None:
    answer(" ".join(words))
    answer("opus 1\n" + "".join(words))


@FEW
@given(tokens)
def test_token_soup_in_a_value(words: list[str]) -> None:
    answer("opus 1\nlet a = " + " ".join(words) + "\ncluster c {\n  x = " + " ".join(words) + "\n}\n")


@FEW
@given(st.text(max_size=200))
def test_random_text(text: str) -> None:
    answer(text)


@FEW
@given(st.text(alphabet='{}"\\ a1.\n', max_size=40))
def test_random_strings(text: str) -> None:
    answer(f'opus 1\nlet a = "{text}"\n')
    source, sink = Source("<-D>", text), Diagnostics()
    if parse_expression(source, sink) is None:
        assert len(sink) > 0


@FEW
@given(st.sampled_from(TEXTS), st.integers(0, 2**32), st.integers(1, 3))
def test_programs_with_a_few_changes(text: str, seed: int, changes: int) -> None:
    answer(mutated(text, seed, changes))


@FEW
@given(st.sampled_from(TEXTS), st.data())
def test_programs_that_end_too_soon(text: str, data: st.DataObject) -> None:
    answer(text[: data.draw(st.integers(0, len(text)))])


# --- long ----------------------------------------------------------------------------------------


@pytest.mark.slow
@MANY
@given(tokens)
def test_much_token_soup(words: list[str]) -> None:
    answer(" ".join(words))
    answer("opus 1\nlet a = " + " ".join(words))


@pytest.mark.slow
@MANY
@given(st.sampled_from(TEXTS), st.integers(0, 2**32), st.integers(1, 20))
def test_programs_with_many_changes(text: str, seed: int, changes: int) -> None:
    answer(mutated(text, seed, changes))


@pytest.mark.slow
@MANY
@given(st.text(max_size=2000))
def test_much_random_text(text: str) -> None:
    answer(text)
