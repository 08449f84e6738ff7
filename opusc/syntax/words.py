"""The words and signs that messages about syntax know."""

import re

__all__ = [
    "BEGIN",
    "COMPARISONS",
    "DECLARATION",
    "FIELD",
    "FOREIGN",
    "FORMS",
    "HEAD",
    "KEYWORDS",
    "NAMES",
    "QUOTES",
    "WAITING",
]

KEYWORDS = frozenset(
    [
        "and",
        "as",
        "div",
        "else",
        "false",
        "fault",
        "for",
        "if",
        "in",
        "let",
        "mod",
        "not",
        "of",
        "or",
        "over",
        "param",
        "phase",
        "require",
        "then",
        "true",
        "use",
    ]
)
#: Notation of other languages, and ours.
FOREIGN = {
    "&&": "and", "||": "or", "!": "not", ":=": "=", "=>": "=", "->": "=", "'": '"', "\u2260": "!=", "\u2264": "<=",
    "\u2265": ">=", "\u00d7": "*", "\u2212": "-", "\u2013": "-", "\u2026": "..",
}  # fmt: skip
QUOTES = "\u2018\u2019\u201c\u201d\u00ab\u00bb"

#: The words that begin an item.
BEGIN = ("fault", "let", "param", "phase", "require", "use")
#: What a value must follow.
WAITING = frozenset(
    [
        *["=", "+", "-", "*", "/", "..", "==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "mod", "div"],
        *["in", "of", "over", "if", "then", "else", "require"],
    ]
)
#: What stands before the `=` or `{` of an item: `ports =`, `nic storage =`, `rail[0..3] =`, `rail 0 =`, `job j {`.
_WORDS = r"[A-Za-z_]\w*[ \t]*(?:\[[^\]\n]*\]|[0-9]+(?:[ \t]*\.\.[ \t]*[0-9]+)?|[A-Za-z_]\w*)?[ \t]*"
FIELD = re.compile(_WORDS + r"=(?!=)")
HEAD = re.compile(_WORDS + r"(?:=(?!=)|\{)")
#: The same at the top level, where two words stand.
DECLARATION = re.compile(r"[A-Za-z_]\w*[ \t]+[A-Za-z_]\w*[ \t]*(?:=(?!=)|\{)")

#: Words for the parser's terminals, in the order in which a message names them.
NAMES = {
    "NAME": "a name", "NUMBER": "a number", "STRING": "a text", "EQUAL": "`=`", "LBRACE": "`{`", "COMMA": "`,`",
    "_NL": "a new line", "RBRACE": "`}`", "RSQB": "`]`", "RPAR": "`)`", "COLON": "`:`", "_THEN": "`then`",
    "_ELSE": "`else`", "IN": "`in`", "_FOR": "`for`", "_OF": "`of`",
}  # fmt: skip

#: How an item that begins with a word is written.
FORMS = {
    "use": 'write `use std.switches`, or `use "directory/file.opus"`',
    "param": "write `param NAME: TYPE in DOMAIN = VALUE`; all but the name may be left out",
    "let": "write `let NAME = VALUE`, or `let NAME(ARGUMENT) = VALUE`",
    "fault": "write `fault node 7 of CLUSTER`",
    "phase": "write `phase NAME over AXIS * AXIS { ... }`",
    "require": 'write `require CONDITION else "message"`',
    "for": "repetition stands in a list: `[VALUE for NAME in 0..3]`",
    "if": "a choice stands in a value: `NAME = if CONDITION then VALUE else VALUE`",
}
COMPARISONS = frozenset(["==", "!=", "<", "<=", ">", ">="])
