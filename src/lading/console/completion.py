"""What can be written next in a statement: its first words, properties, tables and columns. Pure.

Only what stands before the cursor, and the rest of its statement, is looked at; it need not be right yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from lading.sources.registry import kinds
from lading.sql.properties.jobs import JOB_PROPERTY_NAMES
from lading.sql.properties.routine import ROUTINE_PROPERTY_NAMES
from lading.sql.syntax.parse import FORMS

MOST = 100
"""A list that is longer than this is not read."""
_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|\#[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<text>'(?:[^'\\]|\\.|'')*(?:'|\Z)|"(?:[^"\\]|\\.|"")*(?:"|\Z))
      | (?P<word>`[^`]*(?:`|\Z)|[^\W\d][\w$]*(?:\.(?:`[^`]*(?:`|\Z)|[\w$]*))*)
      | (?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
_NAMES_TABLES = frozenset(("INTO", "FROM", "JOIN", "TABLE", "DESCRIBE", "DESC", "COMPACTION"))
_NEW = frozenset(("JOB", "LOAD", "AS", "DATABASE", "CATALOG", "USER", "ROLE", "EXISTS", "COMMENT", "IDENTIFIED", "BY"))
"""What stands before a name that is new, or that nobody here knows."""
_WORDS = (
    "SELECT", "FROM", "WHERE", "INSERT INTO", "ON STREAMING DO", "PROPERTIES (", "COLUMNS (", "COMMENT", "BY NAME",
    "GROUP BY", "ORDER BY", "LIMIT", "LEFT JOIN", "BETWEEN", "IS NOT NULL", "IF NOT EXISTS", "USING delta",
    "USING iceberg", "AS SCHEMA OF", "PRECEDING FILTER", "CASE WHEN", "DISTINCT",
)  # fmt: skip
"""What stands between names. Not the whole grammar: the words that people write most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One thing that can be written."""

    label: str
    kind: str
    """Of which sort it is, as the editor draws it: keyword, property, type (a table), variable (a column), function."""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What can take the place of the letters from `start` up to the cursor. No option: nothing is offered."""

    start: int
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is there, as far as somebody may see it."""

    tables: Mapping[str, str]
    """Formats by name, as a statement in the current database would write it."""
    columns: Callable[[str], Mapping[str, str]]
    """Types by name, of a table that a statement names; empty when it is not there. It may be slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    kind: str
    text: str
    start: int

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind == "word" else ""


def complete(text: str, at: int, known: Known, *, is_asked: bool = False) -> Completion:
    """What can stand at `at`. `is_asked`: somebody wants the list, also before the first letter."""
    before = _last_statement(list(_tokens(text[:at])))
    rest = _first_statement(_tokens(text[at:]))
    current = _current(before, at)
    if current is not None:
        before = before[:-1]
    typed = current.text if current is not None else ""
    start = current.start if current is not None else at
    if current is not None and current.kind == "text":
        return _property(typed[1:], start + 1, before)
    if not typed and not is_asked:
        return Completion(start=at)
    if forms := _forms(before, typed):
        return Completion(start=before[0].start if before else start, options=forms)
    if names := _property_names(before):
        # The name comes with its quotes; the value is still to be written.
        return _fit(typed, start, ((f'"{name}" = ', "property", "") for name in names))
    return _fit(typed, start, _names(typed, before, [*before, *rest], known))


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        if found.lastgroup and found.lastgroup != "skip":
            yield _Token(kind=found.lastgroup, text=found.group(), start=found.start())


def _last_statement(tokens: list[_Token]) -> list[_Token]:
    ends = [number for number, token in enumerate(tokens) if token.text == ";"]
    return tokens[ends[-1] + 1 :] if ends else tokens


def _first_statement(tokens: Iterable[_Token]) -> list[_Token]:
    found: list[_Token] = []
    for token in tokens:
        if token.text == ";":
            break
        found.append(token)
    return found


def _current(tokens: Sequence[_Token], at: int) -> _Token | None:
    """The token that is being written: it ends at the cursor, and a string has no end yet."""
    if not tokens or tokens[-1].start + len(tokens[-1].text) != at:
        return None
    last = tokens[-1]
    if last.kind == "text":
        is_open = len(last.text) == 1 or last.text[-1] != last.text[0]
        return last if is_open else None
    return last if last.kind == "word" else None


def _forms(before: Sequence[_Token], typed: str) -> tuple[Option, ...]:
    """Statements that begin with the words so far."""
    if any(token.kind != "word" for token in before):
        return ()
    said = " ".join([*(token.word for token in before), typed.upper()])
    found = [form for form in FORMS if form.startswith(said)] if said not in FORMS else []
    return tuple(Option(label=form, kind="keyword") for form in found[:MOST])


def _property(typed: str, start: int, before: Sequence[_Token]) -> Completion:
    """Inside of a string: the name of a property, where one can stand."""
    if not before or before[-1].text not in ("(", ","):
        return Completion(start=start)
    return _fit(typed, start, ((name, "property", "") for name in _property_names(before)))


def _property_names(before: Sequence[_Token]) -> list[str]:
    """The properties that can be written in the open parenthesis, but for those that stand in it already."""
    if not before or before[-1].text not in ("(", ","):
        return []
    depth, given = 0, set[str]()
    for number in range(len(before) - 1, -1, -1):
        token = before[number]
        if token.text == ")":
            depth += 1
        elif token.text == "(":
            if not depth:
                head = before[number - 1].word if number else ""
                return sorted(_of(head, before[0:2]) - given)
            depth -= 1
        elif token.kind == "text" and not depth and before[number - 1].text in ("(", ","):
            given.add(token.text[1:-1])
    return []


def _of(head: str, first: Sequence[_Token]) -> frozenset[str]:
    if head in _source_names():
        return _source_names()[head]
    words = [token.word for token in first if token.word != "EXPLAIN"]
    if head == "PROPERTIES" and "JOB" in words:
        return JOB_PROPERTY_NAMES
    if head == "PROPERTIES" and "ROUTINE" in words:
        return ROUTINE_PROPERTY_NAMES
    return frozenset()


@cache
def _source_names() -> dict[str, frozenset[str]]:
    return {name: frozenset(kind.property_names) for name, kind in kinds().items()}


def _names(
    typed: str, before: Sequence[_Token], statement: Sequence[_Token], known: Known
) -> Iterator[tuple[str, str, str]]:
    """Tables where one is named; else columns of those that the statement names, and words."""
    last = before[-1].word if before else ""
    is_new = last in _NEW or (last == "TABLE" and before[0].word == "CREATE")
    if is_new:
        return
    is_routine = [token.word for token in before[:3]] == ["CREATE", "ROUTINE", "LOAD"]
    if last in _NAMES_TABLES or (last == "ON" and is_routine):
        yield from ((name, "type", form) for name, form in known.tables.items())
        if last in ("FROM", "JOIN"):
            yield from ((f"{kind}(", "function", "source") for kind in kinds())
        return
    for table in _tables(statement, is_routine=is_routine):
        # `t.` and `t.c`: the name of the table stands before that of the column.
        mark = (
            f"{table.rpartition('.')[2]}." if typed.lower().startswith(f"{table.rpartition('.')[2].lower()}.") else ""
        )
        yield from ((f"{mark}{name}", "variable", kind) for name, kind in known.columns(table).items())
    if len(typed) != 1:  # One letter is an alias more often than a word.
        yield from ((word, "keyword", "") for word in _WORDS)


def _tables(statement: Sequence[_Token], *, is_routine: bool) -> list[str]:
    """The tables that a statement names, in order."""
    found: list[str] = []
    for one, other in pairwise(statement):
        names = one.word in _NAMES_TABLES or (is_routine and one.word == "ON")
        if names and other.kind == "word" and other.word not in _source_names() and other.text not in found:
            found.append(other.text.replace("`", ""))
    return found


def _fit(typed: str, start: int, options: Iterable[tuple[str, str, str]]) -> Completion:
    """Those that begin with what was typed, then those that contain it. One that is written already is not offered."""
    wanted = typed.lower().lstrip("`")
    first, then = list[Option](), list[Option]()
    for label, kind, detail in options:
        name = label.lower().lstrip('"')
        if name.rstrip(' ="(') == wanted:
            return Completion(start=start)
        if name.startswith(wanted):
            first.append(Option(label=label, kind=kind, detail=detail))
        elif len(wanted) > 1 and wanted in name and kind != "keyword":
            then.append(Option(label=label, kind=kind, detail=detail))
    return Completion(start=start, options=tuple((first + then)[:MOST]))
