"""Putting Spark expressions into each other without changing what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser

from lading.errors import NotSupportedError

_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")
"""Functions whose arguments have a grammar of their own."""


class _PlainSpark(Spark):
    """Spark's SQL, with function calls left as they were written: sqlglot knows better and writes others."""

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, object]] = {}  # type: ignore[assignment]  # narrower than theirs
        FUNCTION_PARSERS: ClassVar[dict[str, object]] = {  # type: ignore[assignment]  # narrower than theirs
            name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name in _SYNTAX
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, object]] = {  # type: ignore[assignment]  # narrower than theirs
            "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"],
        }


def substitute(text: str, values: Mapping[str, str]) -> str:
    """An expression with others in the place of some columns, which are named in small letters.

    The arguments of a lambda are no columns. A text that would not come back as it was is refused, so nothing is
    changed besides.
    """
    if not values:
        return text
    holder = exp.Paren(this=_parse(text))
    for column in list(holder.find_all(exp.Column)):
        value = values.get(column.name.lower())
        if value is not None and not column.table:
            column.replace(exp.Paren(this=_parse(value)))
    return _write(holder.this)


def _parse(text: str) -> exp.Expr:
    try:
        tree: exp.Expr = parse_one(text, dialect=_PlainSpark)
    except (SqlglotError, RecursionError) as error:
        raise _cannot(text) from error
    holder = exp.Paren(this=tree)
    for column in list(holder.find_all(exp.Column)):
        # Columns always stand in backquotes; a bare word is a unit, as in TIMESTAMPDIFF(HOUR, a, b).
        if isinstance(column.this, exp.Identifier) and not column.this.quoted and not column.table:
            column.replace(exp.Var(this=column.name))
    if _write(holder.this) != text:
        raise _cannot(text)
    found: exp.Expr = holder.this
    return found


def _write(tree: exp.Expr) -> str:
    return tree.sql(dialect=_PlainSpark, identify=True, comments=False)


def _cannot(text: str) -> NotSupportedError:
    msg = f"The expression {text} cannot be used inside of another one"
    return NotSupportedError(msg, todo="Write it out where it is needed, without the name of the column.")
