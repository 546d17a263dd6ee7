"""Walking over tokens: what every parser of a statement needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NoReturn

from lading.errors import SqlError
from lading.sql.statements.parts import Expression, QualifiedName
from lading.sql.syntax.spans import Span
from lading.sql.syntax.tokens import Kind, Token, tokenize
from lading.suggest import did_you_mean

_MANY = 8
_NEVER_A_COLUMN = ("FROM", "WHERE")
_WANT_MORE = frozenset(("AND", "OR", "NOT", "LIKE", "REGEXP", "RLIKE", "IN", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE"))
"""Words after which an expression is not complete, so that what follows is a column, whatever its name."""
_LEVELS = "A database within another one is one part, in quotes: catalog.`outer.inner`.name."
_OPENING = {"(": ")", "[": "]", "{": "}"}


class Cursor:
    """A place between two tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokenize(text)
        self._at = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._at]

    @property
    def previous(self) -> Token:
        """The token that was taken last."""
        return self._tokens[max(self._at - 1, 0)]

    def look(self, ahead: int) -> Token:
        """A token further on."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        """The next token, which is then behind the cursor."""
        token = self.token
        if token.kind is not Kind.END:
            self._at += 1
        return token

    @property
    def is_done(self) -> bool:
        """Whether the statement ends here."""
        return self.token.kind is Kind.END or self.token.is_symbol(";")

    def sees(self, *words: str) -> bool:
        """Whether these words come next."""
        return all(self.look(number).upper == word for number, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Take these words when all of them come next."""
        if not self.sees(*words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Take these words, or say which one is missing."""
        for word in words:
            if not self.accept(word):
                self.fail(word)

    def accept_symbol(self, symbol: str) -> bool:
        """Take this symbol when it comes next."""
        if not self.token.is_symbol(symbol):
            return False
        self._at += 1
        return True

    def expect_symbol(self, symbol: str) -> None:
        """Take this symbol, or say that it is missing."""
        if not self.accept_symbol(symbol):
            self.fail(symbol)

    def choose(self, *words: str) -> str:
        """Take one of these words and say which."""
        for word in words:
            if self.accept(word):
                return word
        raise self.mismatch(*words)

    def fail(self, *expected: str, todo: str | None = None) -> NoReturn:
        """Say that something else was expected here."""
        raise self.mismatch(*expected, todo=todo)

    def mismatch(self, *expected: str, todo: str | None = None) -> SqlError:
        """The error for a token that does not fit here; `todo` where more can be said than what was meant."""
        wanted = (
            "a statement"
            if len(expected) > _MANY
            else " or ".join([", ".join(expected[:-1]), expected[-1]] if len(expected) > 1 else expected)
        )
        if self.token.kind is Kind.END:
            end = self.previous.span.end
            msg = f"mismatched input '<EOF>': the statement ends too early, expected {wanted}"
            place, advice = Span(self.text, end, end), todo or "Correct the statement."
            return SqlError(msg, place=place, hint=f"expected {wanted}", todo=advice, expected=expected)
        span = self.token.span
        msg = f"mismatched input '{span.slice}', expected {wanted}"
        near = did_you_mean(self.token.value, expected) if self.token.kind is Kind.WORD else ""
        advice = near.strip() or todo or "Correct the statement."
        return SqlError(msg, place=span, hint=f"expected {wanted}", todo=advice, expected=expected)

    def identifier(self, what: str) -> str:
        """Take a name, quoted or not."""
        if self.token.kind not in (Kind.WORD, Kind.QUOTED) or not self.token.value:
            self.fail(what)
        return self.take().value

    def qualified(self, what: str) -> QualifiedName:
        """Take [[catalog.]db.]name."""
        return self._qualified(what, self.identifier)

    def database(self) -> QualifiedName:
        """Take [catalog.]db; the database is the name, and the catalog its `db`."""
        start = self.token.span.start
        parts = [self.identifier("the name of a database")]
        while self.accept_symbol("."):
            parts.append(self.identifier("the name of a database"))
        span = Span(self.text, start, self.previous.span.end)
        if len(parts) > 2:
            msg = "The name of a database has at most two parts: [catalog.]db"
            raise SqlError(msg, place=span, hint="too many parts", todo=_LEVELS)
        return QualifiedName(name=parts[-1], db=parts[0] if len(parts) == 2 else None, span=span)

    def _qualified(self, what: str, read: Callable[[str], str]) -> QualifiedName:
        start = self.token.span.start
        parts = [read(what)]
        while self.accept_symbol("."):
            parts.append(read(what))
        span = Span(self.text, start, self.previous.span.end)
        if len(parts) > 3:
            msg = f"labelParts in load should be [[catalog.]db.]label: the name of a {what} has at most three parts"
            raise SqlError(msg, place=span, hint="too many parts", todo=_LEVELS)
        if "." in parts[-1]:
            noun = what.removeprefix("the name of a ")
            msg = f"'{parts[-1]}' cannot be the name of a {noun}: it has a dot in it"
            raise SqlError(msg, place=span, hint="a dot in a name", todo="Quote each part of the name on its own.")
        catalog, db, name = [None] * (3 - len(parts)) + [*parts]
        return QualifiedName(name=name or "", db=db, catalog=catalog, span=span)

    def label(self, what: str) -> str:
        """Take the name of a job, which may have hyphens when nothing stands between its parts."""
        if self.token.kind is Kind.QUOTED:
            return self.identifier(what)
        name = self.identifier(what)
        while self._joins("-"):
            self._at += 1
            name += "-" + self.take().value
        return name

    def qualified_label(self, what: str) -> QualifiedName:
        """Take [[catalog.]db.]job."""
        return self._qualified(what, self.label)

    def _joins(self, symbol: str) -> bool:
        after = self.look(1)
        return (
            self.token.is_symbol(symbol)
            and self.token.span.start == self.previous.span.end
            and after.kind in (Kind.WORD, Kind.NUMBER)
            and re.fullmatch(r"\w+", after.value) is not None
            and after.span.start == self.token.span.end
        )

    def string(self, what: str) -> str:
        """Take a string literal and give its content."""
        if self.token.kind is not Kind.STRING:
            self.fail(what)
        return self.take().value

    def number(self, what: str) -> int:
        """Take a whole number."""
        if self.token.kind is not Kind.NUMBER or not self.token.value.isdigit():
            self.fail(what)
        return int(self.take().value)

    def listed(self, read: Callable[[], None]) -> None:
        """Take `( item, item … )`; `read` takes one item."""
        self.expect_symbol("(")
        read()
        while self.accept_symbol(","):
            read()
        if not self.accept_symbol(")"):
            self.fail(",", ")")

    def properties(self) -> dict[str, str]:
        """Take `( key = value, … )`."""
        found: dict[str, str] = {}

        def read() -> None:
            span = self.token.span
            key = self._property_part("the name of a property")
            if key in found:
                msg = f"Property {key} is set twice"
                raise SqlError(msg, place=span, hint="set before", todo="Keep one of the two.")
            self.expect_symbol("=")
            found[key] = self._property_part("a value")

        if self.token.is_symbol("(") and self.look(1).is_symbol(")"):
            self._at += 2
            return found
        self.listed(read)
        return found

    def _property_part(self, what: str) -> str:
        sign = "-" if self.token.is_symbol("-") and self.look(1).kind is Kind.NUMBER else ""
        if sign:
            self._at += 1
        if self.token.kind in (Kind.END, Kind.SYMBOL):
            self.fail(what)
        value = self.take()
        parts = [sign, value.value]
        while value.kind is Kind.WORD and self.token.is_symbol(".") and self.look(1).kind in (Kind.WORD, Kind.NUMBER):
            self._at += 1
            parts += [".", self.take().value]
        return "".join(parts)

    def expression(self, stops: Iterable[str], what: str = "an expression") -> Expression:
        """Take everything up to a comma, a closing bracket, the end, or one of the words, outside of brackets."""
        stop_words = frozenset(stops)
        first = self._at
        while not self.is_done and not self._stops(stop_words, first):
            if self.token.kind is Kind.SYMBOL and self.token.value in _OPENING:
                self._skip_brackets()
            else:
                self._at += 1
        if self._at == first:
            self.fail(what)
        span = Span(self.text, self._tokens[first].span.start, self.previous.span.end)
        return Expression(text=self.text[span.start : span.end], span=span)

    def _stops(self, words: frozenset[str], first: int) -> bool:
        if self.token.kind is Kind.SYMBOL:
            return self.token.value in (",", ")", "]", "}")
        if self.token.upper not in words:
            return False
        if self._at == first:
            return self.token.upper in _NEVER_A_COLUMN
        before = self.previous
        if before.is_symbol(".") or before.upper in _WANT_MORE:
            return False
        return not (self.token.upper == "FROM" and before.upper == "DISTINCT")

    def _skip_brackets(self) -> None:
        """Take everything from an opening bracket to the one that closes it."""
        open_ones: list[Token] = []
        while True:
            token = self.token
            if self.is_done:
                closing = _OPENING[open_ones[-1].value]
                msg = f"mismatched input: {open_ones[-1].value} is not closed"
                raise SqlError(msg, place=open_ones[-1].span, hint=f"no {closing} follows")
            if token.kind is Kind.SYMBOL and token.value in _OPENING:
                open_ones.append(token)
            elif token.kind is Kind.SYMBOL and token.value in _OPENING.values():
                if token.value != _OPENING[open_ones[-1].value]:
                    self.fail(_OPENING[open_ones[-1].value])
                open_ones.pop()
            self._at += 1
            if not open_ones:
                return

    def close_angle(self) -> None:
        """Take one `>`, also the first half of `>>`."""
        token = self.token
        if token.is_symbol(">>"):
            second = Token(Kind.SYMBOL, ">", token.span.inner(1, 2))
            self._tokens = (*self._tokens[: self._at], second, *self._tokens[self._at + 1 :])
            return
        self.expect_symbol(">")

    def rest(self) -> Span:
        """Take everything up to the end of the statement."""
        start = self.token.span.start
        while not self.is_done:
            self._at += 1
        return Span(self.text, start, self.previous.span.end)
