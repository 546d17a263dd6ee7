"""Types of values as coercions see them: what an expression gives, as far as it is known before a row is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from lading.errors import SqlError

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
MAX_DIGITS = 38
_DOUBLE_DIGITS = 15
"""A double keeps any number of so many digits."""


class Kind(Enum):
    """Families of types. Within one, Spark compares and computes as Doris does."""

    TEXT = "text"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    DATE = "date"
    DATETIME = "datetime"
    MOMENT = "timestamp"
    """A moment, with a zone: Spark's timestamp."""
    TEXTS = "array of texts"
    NULL = "null"
    OTHER = "other"
    """Not known, or nothing that is converted without being asked."""


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of an expression."""

    kind: Kind
    precision: int = 0
    """Digits of a decimal, or of an integer that is written out."""
    scale: int = 0
    nested: str = ""
    """What Spark calls a type that is made of others, of which it is known."""

    @property
    def whole(self) -> int:
        """Digits before the point."""
        return self.precision - self.scale

    @property
    def is_number(self) -> bool:
        return self.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE)

    @property
    def is_wide(self) -> bool:
        """Whether it has numbers that no double can hold."""
        return self.kind in (Kind.INTEGER, Kind.DECIMAL) and self.precision > _DOUBLE_DIGITS

    @property
    def spark_name(self) -> str:
        """What a value is cast to, to have this type."""
        return f"decimal({self.precision},{self.scale})" if self.kind is Kind.DECIMAL else _NAMES[self.kind]


_NAMES = {
    Kind.TEXT: "string",
    Kind.BOOLEAN: "boolean",
    Kind.INTEGER: "bigint",
    Kind.DOUBLE: "double",
    Kind.DATE: "date",
    Kind.DATETIME: "timestamp_ntz",
    Kind.MOMENT: "timestamp",
}
TEXT, BOOLEAN, INTEGER, DOUBLE = (ValueType(kind) for kind in (Kind.TEXT, Kind.BOOLEAN, Kind.INTEGER, Kind.DOUBLE))
DATE, DATETIME, MOMENT = (ValueType(kind) for kind in (Kind.DATE, Kind.DATETIME, Kind.MOMENT))
TEXTS, NULL, OTHER = (ValueType(kind) for kind in (Kind.TEXTS, Kind.NULL, Kind.OTHER))
_SPARK = {
    "string": TEXT,
    "boolean": BOOLEAN,
    "tinyint": INTEGER,
    "smallint": INTEGER,
    "int": INTEGER,
    "bigint": INTEGER,
    "float": DOUBLE,
    "double": DOUBLE,
    "date": DATE,
    "timestamp_ntz": DATETIME,
    "timestamp": MOMENT,
    "array<string>": TEXTS,
}


def type_of_spark(name: str) -> ValueType:
    """The type that Spark SQL calls by a name."""
    if found := _DECIMAL.fullmatch(name):
        return decimal(int(found[1]), int(found[2]))
    return _SPARK.get(name, OTHER)


def decimal(precision: int, scale: int) -> ValueType:
    """A decimal of so many digits, at most as many as there can be."""
    return ValueType(Kind.DECIMAL, min(precision, MAX_DIGITS), min(scale, MAX_DIGITS))


def exact_for(target: ValueType) -> ValueType | None:
    """How texts are read in an expression that fills a column of this type; None: as doubles.

    A decimal column gets decimals, with more digits than its own: `12.345 * 100` fits into DECIMAL(10,2). So many that
    the product with a price or a rate is exact, and that no integer part of the column is too long.
    """
    if target.kind is not Kind.DECIMAL:
        return None
    whole = target.precision - target.scale
    scale = max(target.scale, 10 if whole <= 18 else 6)
    return decimal(max(whole, 18) + scale, scale)


def wide(others: list[ValueType]) -> ValueType:
    """A decimal that a text is read as beside numbers that are too long for a double."""
    return decimal(MAX_DIGITS, max([6, *(other.scale for other in others)]))


def check_digits(name: str, text: ValueType, others: Sequence[ValueType]) -> None:
    """Refuse to compare a text that is read as one decimal with another one that has more digits. Raises SqlError."""
    for other in others:
        if other.kind is Kind.DECIMAL and (other.whole > text.whole or other.scale > text.scale):
            kind = other.spark_name.upper()
            msg = f"{name} is a text and is compared with a {kind}: texts are compared with numbers up to {text.whole} "
            msg += f"digits before the point and {text.scale} behind it"
            raise SqlError(msg, todo=f"Write CAST({name} AS {kind}), or CAST the number to STRING or to fewer digits.")


def number_type(written: str) -> ValueType:
    """The type of a number as it is written: with a point it is a decimal, with an exponent a double."""
    if "e" in written.lower():
        return DOUBLE
    whole, point, fraction = written.partition(".")
    digits = len(whole.lstrip("0")) + len(fraction)
    if not point and digits <= 18:
        return ValueType(Kind.INTEGER, digits)
    return decimal(max(digits, 1), len(fraction))


def computed(left: ValueType, right: ValueType) -> ValueType:
    """The type of a sum, a product, a quotient. Its digits only matter for comparisons: as many as can be."""
    kinds = {left.kind, right.kind}
    if Kind.DOUBLE in kinds:
        return DOUBLE
    if Kind.OTHER in kinds or not (left.is_number or right.is_number):
        return OTHER
    return decimal(MAX_DIGITS, max(left.scale, right.scale)) if Kind.DECIMAL in kinds else INTEGER
