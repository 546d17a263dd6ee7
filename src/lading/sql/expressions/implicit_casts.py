"""Casts that nobody wrote: how a text is read where a number, a date or a truth is needed.

`TRY_CAST` of Spark is the reader, and NULL the answer for what cannot be read. Two things that it reads and Doris does
not are kept from it: `12d` and `0x1p3` as doubles, and `10:30` as a moment of today.
"""

from __future__ import annotations

import re

from sqlglot import exp

from lading.sql.expressions.functions import call
from lading.sql.expressions.value_types import BOOLEAN, Kind, ValueType, number_type

IMPLICIT = "implicit"
"""Key in the meta of a cast that nobody wrote: the name of the type, for the reason of a bad row."""
_GUARD, _SPARK = "guard", "spark"
JAVA_NUMBER = "[0-9.][dDfF]|[xX]"
TIME_ONLY = "^[^-]*:"
_NUMBER = re.compile(r"[+-]?(?=\.?\d)\d*\.?\d*")


def read_as(node: exp.Expr, wanted: ValueType, source: ValueType) -> exp.Expr:
    """An expression that has the type which is wanted, or NULL."""
    if source.kind not in (Kind.TEXT, Kind.OTHER):
        return _cast(node, wanted.spark_name)  # A date as a datetime, a truth as a number: that always works.
    is_text = source.kind is Kind.TEXT
    if is_text and wanted.kind is Kind.DOUBLE:
        made = _cast(_guarded(node, JAVA_NUMBER), wanted.spark_name)
    elif is_text and wanted.kind is Kind.MOMENT:
        made = _cast(_guarded(node, TIME_ONLY), wanted.spark_name)
    elif is_text and wanted.kind is Kind.DATETIME:
        # Through a moment: a text that says its zone is another time of day in UTC.
        moment = _cast(_guarded(node, TIME_ONLY), "timestamp")
        moment.meta[_GUARD] = True
        made = _cast(moment, wanted.spark_name)
    else:
        made = _cast(node, wanted.spark_name)
    if has_columns(node):  # What the statement itself says is no value of a source.
        made.meta[IMPLICIT] = wanted.spark_name
    return made


def as_text(node: exp.Expr) -> exp.Expr:
    """A number, date or truth as text. That always works."""
    return _cast(node, "string")


def as_integer(node: exp.Expr, kind: ValueType) -> exp.Expr:
    """What integer division and bits work on: the whole part of a number."""
    if kind.kind is Kind.TEXT:
        node = read_as(node, ValueType(Kind.DECIMAL, 38, 6), kind)
    return _cast(node, "bigint")


def for_integer_cast(node: exp.Expr) -> exp.Expr:
    """A text that is to be cast to an integer: Doris reads `10.5` and cuts off what is behind the point."""
    return _cast(node, "decimal(38,18)")


def literal_number(node: exp.Expr) -> exp.Expr | None:
    """A text of the statement that is a number, as the number: it loses no digit; None for all others."""
    if not isinstance(node, exp.Literal) or not node.is_string or not _NUMBER.fullmatch(node.name.strip()):
        return None
    written = node.name.strip()
    number = exp.Literal.number(written.lstrip("+-"))
    return exp.Paren(this=exp.Neg(this=number)) if written.startswith("-") else number


def literal_number_type(node: exp.Expr) -> ValueType:
    """The type of what `literal_number` gave."""
    number = node.find(exp.Literal)
    return number_type(number.name) if number is not None else BOOLEAN


def operand_of(cast: exp.Expr) -> exp.Expr:
    """The value that a cast of `read_as` reads."""
    inner: exp.Expr = cast.this
    while is_guard(inner):
        if isinstance(inner, exp.Case):
            inner = inner.args["default"]
        else:
            inner = inner.expressions[0] if isinstance(inner, exp.Anonymous) else inner.this
    return inner


def is_spark_cast(node: exp.Expr) -> bool:
    """Whether a cast was made here, and its type is one of Spark already."""
    return bool(node.meta.get(_SPARK))


def is_guard(node: exp.Expr) -> bool:
    """Whether a node was put in to keep a text from Spark: it is no more than a part of its cast."""
    return bool(node.meta.get(_GUARD))


def has_columns(node: exp.Expr) -> bool:
    """Whether an expression reads a column."""
    return node.find(exp.Column) is not None


def _guarded(node: exp.Expr, pattern: str) -> exp.Expr:
    """The text, or none where Spark would read it too kindly.

    A look costs a quarter of a replacement, but writes the text twice: casts that stand in casts would grow for ever.
    """
    made: exp.Expr
    if any(IMPLICIT in part.meta for part in node.walk()):
        made = call("regexp_replace", node, exp.Literal.string(pattern), exp.Literal.string("?"))
    else:
        found = exp.RegexpLike(this=node.copy(), expression=exp.Literal.string(pattern))
        made = exp.Case(ifs=[exp.If(this=found, true=exp.Null())], default=node)
    made.meta[_GUARD] = True
    return made


def _cast(node: exp.Expr, name: str) -> exp.Expr:
    made = exp.TryCast(this=node, to=exp.DataType.build(name, dialect="spark"), safe=True)
    made.meta[_SPARK] = True
    return made
