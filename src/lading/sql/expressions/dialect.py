"""Doris expressions as sqlglot trees, with function calls left as they were written.

sqlglot turns calls of functions it knows into its own nodes and writes them as it thinks the other dialect says
it. That is meant well and loses arguments: DATE_ADD(a, INTERVAL 1 HOUR) becomes a day, FROM_UNIXTIME loses its
format. Here every call stays a name and its arguments; `functions` decides about each name by itself.
"""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot import exp, parse
from sqlglot.dialects.doris import Doris
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import TokenError
from sqlglot.parsers.doris import DorisParser

from lading.errors import NotSupportedError, SqlError
from lading.sql.syntax.spans import Span
from lading.suggest import did_you_mean

_SYNTAX = ("CAST", "TRY_CAST", "CONVERT", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")
"""Functions whose arguments have a grammar of their own."""
_SELECT = "SELECT "
_VARIABLE = "${"
_WORD = re.compile(r"[A-Za-z0-9_]+")
_SHARED = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
UNITS = frozenset((*_SHARED, "MILLISECOND", "MICROSECOND"))
"""The units that Doris and Spark both know. They are written without quotes, so nothing else may be one."""
_FIELDS = frozenset((*_SHARED, "DAYOFWEEK", "DOW", "DOY", "YEAROFWEEK"))
"""What EXTRACT takes out of a date."""
_UNIT_FIRST = frozenset(("timestampdiff", "timestampadd", "dateadd", "datediff", "date_diff"))
_WITH_UNIT = 3


class LadingDoris(Doris):
    """Doris, with function calls left as they were written."""

    SUPPORTS_USER_DEFINED_TYPES = True

    class Parser(DorisParser):
        FUNCTIONS: ClassVar[dict[str, object]] = {}  # type: ignore[assignment]  # narrower than theirs
        FUNCTION_PARSERS: ClassVar[dict[str, object]] = {  # type: ignore[assignment]  # narrower than theirs
            name: parser for name, parser in DorisParser.FUNCTION_PARSERS.items() if name in _SYNTAX
        }
        # `array(a, b)[1]` is a part of an array. With these it would be an array of 1.
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, object]] = {}  # type: ignore[assignment]  # narrower than theirs
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, object]] = {  # type: ignore[assignment]  # narrower than theirs
            "CASE": DorisParser.NO_PAREN_FUNCTION_PARSERS["CASE"],
        }


def parse_expression_tree(text: str, span: Span) -> exp.Expr:
    """The tree of one expression, with an alias when there is one. `span` is where it is, for the message."""
    tree = _parse(f"{_SELECT}{text}", span, shift=len(_SELECT))
    written = {name for name, part in tree.args.items() if part}
    if not isinstance(tree, exp.Select) or written != {"expressions"} or len(tree.expressions) != 1:
        msg = f"mismatched input: {_short(text)} is not one expression"
        raise SqlError(msg, place=span, hint="expected one expression")
    _check_variables(tree, span)
    found: exp.Expr = tree.expressions[0]
    return found


def _check_variables(tree: exp.Expr, span: Span) -> None:
    """Refuse `${env:NAME}`: Spark puts the variable of the service in its place, also within quotes."""
    if any(_VARIABLE in part.name for part in tree.find_all(exp.Literal, exp.Identifier)):
        msg = f"{_VARIABLE} cannot be used in an expression: Spark would put a variable of the machine in its place"
        raise NotSupportedError(msg, place=span, hint="a variable", todo="Write concat('$', '{') for the letters.")


def parse_query_tree(text: str, span: Span) -> exp.Expr:
    """The tree of a query."""
    return _parse(text, span, shift=0)


def place_of(node: exp.Expr, span: Span, *, shift: int = len(_SELECT)) -> Span:
    """Where a node of an expression's tree stands in the statement; the whole expression when nobody knows.

    `shift` is what is before the text in its tree: nothing, when it is a query.
    """
    places = [part.meta for part in node.walk() if "start" in part.meta]
    if not places:
        return span
    start = min(int(place["start"]) for place in places) - shift
    end = max(int(place["end"]) for place in places) + 1 - shift
    return span.inner(max(start, 0), end)


def name_place(node: exp.Expr, span: Span) -> Span:
    """Where the name of a call stands."""
    if "start" not in node.meta:
        return place_of(node, span)
    return span.inner(int(node.meta["start"]) - len(_SELECT), int(node.meta["end"]) + 1 - len(_SELECT))


def _parse(text: str, span: Span, *, shift: int) -> exp.Expr:
    try:
        trees = parse(text, dialect=LadingDoris)
    except SqlglotParseError as error:
        raise _syntax_error(error, text, span, shift) from error
    except RecursionError as error:
        raise too_deep(span) from error
    except TokenError as error:
        msg = "The expression cannot be cut into words"
        raise SqlError(msg, place=span, hint="cannot be read") from error
    if len(trees) != 1 or trees[0] is None:
        msg = "mismatched input: expected one expression"
        raise SqlError(msg, place=span, hint="expected one expression")
    _check_units(trees[0], span)
    return trees[0]


def _check_units(tree: exp.Expr, span: Span) -> None:
    """Units such as the YEAR of EXTRACT are written without quotes; one that was quoted could be any text."""
    for node in tree.find_all(exp.Extract, exp.Interval, exp.Var):
        if isinstance(node, exp.Extract):
            _check_unit(node.this, _FIELDS, span)
        elif isinstance(node, exp.Interval):
            unit = node.args.get("unit")
            for part in (unit.this, unit.expression) if isinstance(unit, exp.IntervalSpan) else (unit,):
                if part is not None:
                    _check_unit(part, UNITS, span)
        elif not _WORD.fullmatch(node.name):
            msg = f"mismatched input {_short(node.name)!r} in an expression"
            raise SqlError(msg, place=span, hint="expected a word")


def _check_unit(unit: exp.Expr, known: frozenset[str], span: Span) -> None:
    word = unit.name.upper()
    if not isinstance(unit, exp.Var) or not {word, word.removesuffix("S")} & known:
        raise unknown_unit(unit.sql(dialect="doris"), known, span)


def has_unit(node: exp.Anonymous) -> bool:
    """Whether a call takes a unit first, as TIMESTAMPDIFF(HOUR, a, b) does."""
    return node.name.lower() in _UNIT_FIRST and len(node.expressions) == _WITH_UNIT


def is_unit(node: exp.Expr) -> bool:
    """Whether a word is a unit: one of the list, and not in quotes."""
    is_bare = isinstance(node, exp.Column) and not node.table and not node.this.args.get("quoted")
    return is_bare and node.name.upper() in UNITS


def unknown_unit(written: str, known: frozenset[str], place: Span) -> SqlError:
    """The error for what is in the place of a unit and is none."""
    msg = f"mismatched input {_short(written)!r}, expected a unit of time"
    return SqlError(msg, place=place, hint="expected a unit", todo=f"Units are: {', '.join(sorted(known))}.")


def too_deep(span: Span) -> SqlError:
    """The error for brackets within brackets within brackets."""
    msg = "The statement is nested too deeply"
    return SqlError(msg, place=span, hint="too deep", todo="Write it with fewer brackets.")


def _syntax_error(error: SqlglotParseError, text: str, span: Span, shift: int) -> SqlError:
    found = error.errors[0] if error.errors else {}
    wrong = str(found.get("highlight") or "")
    end = _offset(text, int(found.get("line") or 1), int(found.get("col") or 0)) - shift
    size = span.end - span.start
    place = span.inner(max(end - len(wrong), 0), end) if wrong and 0 < end <= size else span
    msg = f"mismatched input {_short(wrong)!r} in an expression" if wrong else "mismatched input in an expression"
    before = _WORD_BEFORE.search(text[: max(end + shift - len(wrong), 0)])
    meant = did_you_mean(before[1], _CLAUSES) if before else ""
    todo = f"{meant}Correct the statement."
    return SqlError(msg, place=place, hint=_plain(str(found.get("description") or "")), todo=todo)


_CLAUSES = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "JOIN", "BETWEEN", "UNION")
"""A word like one of these, right before what does not fit, was read as a name: `SELECT * FORM t`."""
_WORD_BEFORE = re.compile(r"\b([A-Za-z]+)\s+\Z")


def _offset(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return sum(len(part) + 1 for part in lines[: line - 1]) + column


def _plain(description: str) -> str:
    if description.startswith("Required keyword"):
        return "something is missing here"
    return description.split(".")[0].replace("Invalid expression / Unexpected token", "not expected here").lower()


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
