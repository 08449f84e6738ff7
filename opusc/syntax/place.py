"""Where the parser stopped, and what stands around it."""

from dataclasses import dataclass
from functools import cached_property

from opusc.source import Source, Span
from opusc.syntax.scan import Lexeme

__all__ = ["END", "PAIRS", "Place"]

PAIRS = {"(": ")", "[": "]", "{": "}"}
#: Stands for what is before the first lexeme and after the last.
END = Lexeme("end", "", 0)


@dataclass(frozen=True)
class Place:
    """Where the parser stopped: character `at` of `text`, in which earlier mistakes are blanked."""

    source: Source
    text: str
    lexemes: list[Lexeme]
    at: int

    @cached_property
    def index(self) -> int:
        """The lexeme that the parser did not like; one too many at the end of the text."""
        return next((i for i, lexeme in enumerate(self.lexemes) if lexeme.end > self.at), len(self.lexemes))

    @property
    def here(self) -> Lexeme:
        return self.lexemes[self.index] if self.index < len(self.lexemes) else END

    @cached_property
    def before(self) -> Lexeme:
        """The lexeme before, newlines left out."""
        at = self.index - 1
        while at >= 0 and self.lexemes[at].kind == "newline":
            at -= 1
        return self.lexemes[at] if at >= 0 else END

    @property
    def after(self) -> Lexeme:
        return self.lexemes[self.index + 1] if self.index + 1 < len(self.lexemes) else END

    @property
    def first(self) -> Lexeme:
        return next((x for x in self.lexemes if x.kind != "newline"), END)

    def earlier(self, count: int) -> Lexeme:
        """The lexeme so many before."""
        return self.lexemes[self.index - count] if self.index >= count else END

    @property
    def begins_item(self) -> bool:
        """Whether nothing stands before on this line."""
        return self.earlier(1).kind in ("newline", "end")

    @cached_property
    def open(self) -> list[Lexeme]:
        """Brackets that are open here, outermost first."""
        stack: list[Lexeme] = []
        for lexeme in self.lexemes[: self.index]:
            if lexeme.kind == "open":
                stack.append(lexeme)
            elif lexeme.kind == "close" and stack and PAIRS[stack[-1].text] == lexeme.text:
                stack.pop()
        return stack

    @property
    def in_list(self) -> bool:
        """Whether the innermost bracket is [ or (, where newlines mean nothing and fields cannot stand."""
        return bool(self.open) and self.open[-1].text != "{"

    @cached_property
    def inside(self) -> list[bool]:
        """For each lexeme, whether the innermost bracket around it is [ or (."""
        stack: list[str] = []
        found = []
        for lexeme in self.lexemes:
            found.append(bool(stack) and stack[-1] != "{")
            if lexeme.kind == "open":
                stack.append(lexeme.text)
            elif lexeme.kind == "close" and stack:
                stack.pop()
        return found

    def item_start(self, index: int) -> int:
        """The first lexeme of the item around a lexeme: back to a newline or comma of its block, out of [ and (."""
        lexemes = self.lexemes
        depth = 0
        while index > 0:
            before = lexemes[index - 1]
            if before.kind == "close":
                depth += 1
            elif before.kind == "open":
                if depth == 0 and before.text == "{":
                    return index
                depth = max(depth - 1, 0)
            elif depth == 0 and (before.kind == "newline" or before.text == ",") and not self.inside[index - 1]:
                return index
            index -= 1
        return index

    @cached_property
    def unclosed(self) -> Lexeme | None:
        """The bracket that was most likely not closed, if that is the mistake."""
        if not self.open:
            return None
        inner = self.open[-1]
        if self.here is END:
            return inner
        if inner.text == "{":
            return inner if self._declaration_inside() else None
        if self.here.kind == "close" and self.here.text != PAIRS[inner.text]:
            return inner
        on_a_later_line = "\n" in self.text[inner.start : self.here.start]
        return inner if on_a_later_line and not self._closes(inner) else None

    def _closes(self, opener: Lexeme) -> bool:
        """Whether what opens there is closed anywhere, before a bracket around it is."""
        depth = 0
        for lexeme in self.lexemes[self.lexemes.index(opener) :]:
            if lexeme.kind == "open":
                depth += 1
            elif lexeme.kind == "close":
                depth -= 1
                if depth == 0:
                    return lexeme.text == PAIRS[opener.text]
        return False

    def _declaration_inside(self) -> bool:
        """Whether a declaration starts in the first column while a block is open: `fabric f {`."""
        line = self.text.rfind("\n", 0, self.here.start) + 1
        words = self.text[line : self.here.start].split()
        starts = bool(words) and not self.text[line].isspace() and self.open[-1].start < line
        return starts and ((self.here.text == "{" and len(words) == 2) or words[0] in ("param", "use", "fault"))

    @property
    def stray(self) -> bool:
        """A closing bracket that closes nothing."""
        return self.here.kind == "close" and (not self.open or PAIRS[self.open[-1].text] != self.here.text)

    def span(self, lexeme: Lexeme) -> Span:
        if lexeme is END:
            end = len(self.text.rstrip())
            return self.source.span(end, end)
        if lexeme.kind == "newline":
            return self.source.span(lexeme.start, lexeme.start)
        return self.source.span(lexeme.start, lexeme.end)
