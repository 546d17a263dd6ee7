"""Type names of Doris and of Spark, as Spark SQL names them.

DATETIME is a date and time of day without a time zone, so it becomes timestamp_ntz and not timestamp, which is a
moment. CHAR(n) and VARCHAR(n) become string with a greatest length. LARGEINT has 128 bits; decimal(38,0) is the
nearest type that tables can keep. A DECIMAL without digits is refused: Doris and Spark disagree about them.
"""

from __future__ import annotations

from dataclasses import dataclass

from lading.errors import NotSupportedError, SqlError
from lading.model.nested_types import quoted_field
from lading.sql.syntax.cursor import Cursor
from lading.sql.syntax.spans import Span
from lading.suggest import did_you_mean

_PLAIN = {
    "BOOLEAN": "boolean", "BOOL": "boolean",
    "TINYINT": "tinyint", "BYTE": "tinyint",
    "SMALLINT": "smallint", "SHORT": "smallint",
    "INT": "int", "INTEGER": "int",
    "BIGINT": "bigint", "LONG": "bigint", "SIGNED": "bigint",
    "LARGEINT": "decimal(38,0)",
    "FLOAT": "float", "REAL": "float",
    "DOUBLE": "double",
    "STRING": "string", "TEXT": "string", "JSON": "string", "JSONB": "string", "VARIANT": "string",
    "BINARY": "binary", "VARBINARY": "binary",
    "DATE": "date", "DATEV1": "date", "DATEV2": "date",
    "DATETIME": "timestamp_ntz", "DATETIMEV1": "timestamp_ntz", "DATETIMEV2": "timestamp_ntz",
    "TIMESTAMP_NTZ": "timestamp_ntz",
    "TIMESTAMP": "timestamp", "TIMESTAMP_LTZ": "timestamp", "TIMESTAMPTZ": "timestamp",
}  # fmt: skip
_DECIMALS = ("DECIMAL", "DECIMALV2", "DECIMALV3", "DEC", "NUMERIC")
_LETTERS = ("CHAR", "VARCHAR", "CHARACTER")
_KNOWN = (*_PLAIN, *_DECIMALS, *_LETTERS, "ARRAY", "MAP", "STRUCT")
_WITH_FRACTION = ("DATETIME", "DATETIMEV2", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ")
_MOST_DIGITS = 38
_MOST_FRACTION = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeName:
    """A type of a column."""

    name: str
    """As Spark SQL names it."""
    max_length: int | None = None
    """The n of CHAR(n) and VARCHAR(n)."""


def parse_type(text: str, place: Span | None = None) -> TypeName:
    """Read the name of a type. `place` is where it is, for the message."""
    try:
        cursor = Cursor(text)
        found = read_type(cursor)
        if not cursor.is_done:
            cursor.fail("the end of the type")
    except SqlError as error:
        msg = f"Type {text} is not known: {error.what}"
        raise type(error)(msg, place=place or error.place, hint="unknown type") from error
    return found


def read_type(cursor: Cursor) -> TypeName:
    """Take the name of a type."""
    span = cursor.token.span
    word = cursor.identifier("a type").upper()
    if word in _LETTERS:
        return TypeName(name="string", max_length=_length(cursor))
    if word in _DECIMALS:
        return TypeName(name=_decimal(cursor, span))
    if word in ("ARRAY", "MAP", "STRUCT"):
        return TypeName(name=_nested(cursor, word))
    if word not in _PLAIN:
        msg = f"mismatched input '{span.slice}': no column can have this type"
        known = did_you_mean(word, _KNOWN).strip() or f"Known are: {', '.join(sorted(_PLAIN))}, …"
        raise SqlError(msg, place=span, hint="unknown type", todo=known)
    if word == "DOUBLE":
        cursor.accept("PRECISION")
    if word in _WITH_FRACTION:
        _fraction(cursor)
    elif word in ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT") and cursor.accept_symbol("("):
        cursor.number("a width")  # INT(11) of MySQL: how wide to print it, which changes nothing
        cursor.expect_symbol(")")
    return TypeName(name=_PLAIN[word])


def _length(cursor: Cursor) -> int | None:
    if not cursor.accept_symbol("("):
        return None
    if cursor.accept_symbol("*"):
        cursor.expect_symbol(")")
        return None
    span = cursor.token.span
    length = cursor.number("a length")
    if length < 1:
        msg = "mismatched input: a length is at least 1"
        raise SqlError(msg, place=span, hint="at least 1")
    cursor.expect_symbol(")")
    return length


def _decimal(cursor: Cursor, span: Span) -> str:
    if not cursor.accept_symbol("("):
        msg = "DECIMAL without digits means different things to Doris and to Spark"
        raise NotSupportedError(msg, place=span, hint="how many digits?", todo="Write for example DECIMAL(18,2).")
    digits = cursor.number("a number of digits")
    scale = cursor.number("a number of digits") if cursor.accept_symbol(",") else 0
    cursor.expect_symbol(")")
    if not 1 <= digits <= _MOST_DIGITS or scale > digits:
        msg = (
            f"decimal({digits},{scale}) is not possible: 1 to {_MOST_DIGITS} digits, of which some are behind the point"
        )
        raise SqlError(msg, place=Span(cursor.text, span.start, cursor.previous.span.end), hint="not possible")
    return f"decimal({digits},{scale})"


def _fraction(cursor: Cursor) -> None:
    """Take the digits of a second: tables always keep microseconds."""
    if not cursor.accept_symbol("("):
        return
    span = cursor.token.span
    if cursor.number("a number of digits") > _MOST_FRACTION:
        msg = f"A time has at most {_MOST_FRACTION} digits of a second"
        raise SqlError(msg, place=span, hint=f"at most {_MOST_FRACTION}")
    cursor.expect_symbol(")")


def _nested(cursor: Cursor, word: str) -> str:
    cursor.expect_symbol("<")
    if word == "STRUCT":
        inner = _fields(cursor)
    else:
        parts = [_inner(cursor)]
        while cursor.accept_symbol(","):
            parts.append(_inner(cursor))
        if len(parts) != (2 if word == "MAP" else 1):
            cursor.fail("," if word == "MAP" else ">")
        inner = ",".join(parts)
    cursor.close_angle()
    return f"{word.lower()}<{inner}>"


def _fields(cursor: Cursor) -> str:
    fields, taken = list[str](), set[str]()
    while True:
        span = cursor.token.span
        name = cursor.identifier("the name of a field")
        if name.lower() in taken:
            msg = f"Field {name} is there twice"
            raise SqlError(msg, place=span, hint="named before")
        taken.add(name.lower())
        cursor.accept_symbol(":")
        fields.append(f"{quoted_field(name)}:{_inner(cursor)}")
        if not cursor.accept_symbol(","):
            return ",".join(fields)


def _inner(cursor: Cursor) -> str:
    """A type inside another. Nobody looks at lengths there."""
    span = cursor.token.span
    found = read_type(cursor)
    if found.max_length is not None:
        msg = "A text inside of another type cannot have a length"
        raise NotSupportedError(msg, place=span, hint="no length here", todo="Write STRING.")
    if found.name == "binary":
        msg = "BINARY cannot be inside of another type: what is nested is JSON on its way, which has no bytes"
        raise NotSupportedError(msg, place=span, hint="no bytes here", todo="Write STRING.")
    return found.name
