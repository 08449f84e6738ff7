"""A scanner that never fails: words, numbers, strings, brackets and the rest, of any text.

The parser's own lexer stops at what it does not know; messages about what is wrong need to look around there.
"""

import re
from dataclasses import dataclass

__all__ = ["Lexeme", "scan"]

_LEXEME = re.compile(
    r"""
    (?P<comment>\#[^\n]*)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<open_string>"(?:[^"\\\n]|\\.)*)
  | (?P<newline>\n)
  | (?P<space>[ \t\f]+)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>[0-9][0-9_]*(?:\.[0-9][0-9_]*)?)
  | (?P<open>[\[({])
  | (?P<close>[\])}])
  | (?P<sign>\.\.|==|!=|<=|>=|&&|\|\||//|/\*|=>|->|:=|\*\*|[-+*/=<>.,:%])
  | (?P<other>.)
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Lexeme:
    kind: str  # comment, string, open_string, newline, word, number, open, close, sign, other
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def scan(text: str) -> list[Lexeme]:
    """Everything in a text but its spaces."""
    return [
        Lexeme(str(match.lastgroup), match[0], match.start())
        for match in _LEXEME.finditer(text)
        if match.lastgroup != "space"
    ]
