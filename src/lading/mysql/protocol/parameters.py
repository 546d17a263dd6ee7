"""Prepared statements: their parameters, from the bytes of the protocol to literals of SQL."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from decimal import Decimal

from lading.mysql.protocol.answers import Rows
from lading.mysql.protocol.constants import ColumnType
from lading.mysql.protocol.errors import Fault, malformed
from lading.mysql.protocol.packets import Reader
from lading.mysql.protocol.statement_text import fill, question_marks
from lading.sql.syntax.tokens import quote_string

_NUMBERS = {
    ColumnType.TINY: "b",
    ColumnType.SHORT: "h",
    ColumnType.YEAR: "h",
    ColumnType.LONG: "i",
    ColumnType.INT24: "i",
    ColumnType.LONGLONG: "q",
}
_TIMES = (ColumnType.DATE, ColumnType.DATETIME, ColumnType.TIMESTAMP)
_EXACT = (ColumnType.DECIMAL, ColumnType.NEWDECIMAL)
PART_BYTES = 128
"""What a parameter that comes in pieces takes beside its bytes."""


@dataclass(slots=True)
class Prepared:
    """A statement with question marks."""

    number: int
    text: str
    marks: list[int] = field(init=False)
    types: list[tuple[ColumnType, bool]] = field(default_factory=list)
    """Of the last run, with whether they are unsigned: a client sends them once."""
    rows: Rows | None = None
    """What the client fetches little by little."""
    long_parts: dict[int, bytearray] = field(default_factory=dict)
    """Parameters that were sent in pieces before the run."""
    long_bytes: int = 0
    """What they take."""
    is_too_long: bool = False
    """Too much was sent for the next run. It has no answer: the run is refused."""

    def __post_init__(self) -> None:
        self.marks = question_marks(self.text)

    def reset(self) -> None:
        """Forget what was sent for the next run, and what is left of the last."""
        self._forget_parts()
        self.rows = None

    def append(self, parameter: int, data: bytes, room: int) -> None:
        """Keep a piece of a long parameter. When there is no room for it none is kept, and the run is refused."""
        more = len(data) + (0 if parameter in self.long_parts else PART_BYTES)
        if self.is_too_long or more > room:
            self._forget_parts()
            self.is_too_long = True
            return
        self.long_parts.setdefault(parameter, bytearray()).extend(data)
        self.long_bytes += more

    def _forget_parts(self) -> None:
        self.long_parts, self.long_bytes, self.is_too_long = {}, 0, False

    def bound(self, reader: Reader, codec: str, limit: int) -> str:
        """The statement with its parameters in it."""
        long_parts, is_too_long = self.long_parts, self.is_too_long
        self._forget_parts()
        if is_too_long:
            told = f"The parameters that were sent in pieces take more than 'max_allowed_packet' bytes ({limit})"
            raise Fault(1153, "08S01", told)
        if not self.marks:
            return self.text
        number = len(self.marks)
        nulls = reader.take((number + 7) // 8)
        if reader.uint(1):
            self.types = [_type(reader) for _ in range(number)]
        if len(self.types) != number:
            msg = "the types of the parameters are missing"
            raise malformed(msg)
        literals: list[str] = []
        for at, (kind, unsigned) in enumerate(self.types):
            if nulls[at // 8] >> (at % 8) & 1:
                literals.append("NULL")
            elif at in long_parts:
                literals.append(_string(bytes(long_parts[at]), codec))
            else:
                literals.append(_literal(reader, kind, codec, unsigned=unsigned))
        return fill(self.text, self.marks, literals)


def literal_of(value: str | float | Decimal | None) -> str:
    """A value of a variable, as SQL."""
    match value:
        case None:
            return "NULL"
        case str():
            return quote_string(value, "'")
        case Decimal():
            return _signed(f"{value:f}")
        case float():
            return _signed(_double(value))
    return _signed(repr(value))


def _double(value: float) -> str:
    """With an exponent: a number with only a point is an exact one."""
    text = repr(value)
    return text if "e" in text or not math.isfinite(value) else f"{text}e0"


def _type(reader: Reader) -> tuple[ColumnType, bool]:
    number, flag = reader.uint(1), reader.uint(1)
    try:
        return ColumnType(number), bool(flag & 0x80)
    except ValueError as error:
        msg = f"there is no type {number}"
        raise malformed(msg) from error


def _literal(reader: Reader, kind: ColumnType, codec: str, *, unsigned: bool) -> str:
    if form := _NUMBERS.get(kind):
        form = form.upper() if unsigned else form
        return _signed(str(struct.unpack(f"<{form}", reader.take(struct.calcsize(f"<{form}")))[0]))
    if kind is ColumnType.FLOAT:
        return _signed(_double(struct.unpack("<f", reader.take(4))[0]))
    if kind is ColumnType.DOUBLE:
        return _signed(_double(struct.unpack("<d", reader.take(8))[0]))
    if kind is ColumnType.NULL:
        return "NULL"
    if kind in _TIMES:
        return f"'{_moment(Reader(reader.counted()), kind)}'"
    if kind is ColumnType.TIME:
        return f"'{_duration(Reader(reader.counted()))}'"
    if kind in _EXACT:
        return _exact(reader.counted(), codec)
    return _string(reader.counted(), codec)


def _signed(number: str) -> str:
    """Two minus signs beside each other would begin a comment."""
    if number.lstrip("-") in ("inf", "nan"):
        raise Fault(1367, "22007", f"Illegal {number} value: a parameter is not a number")
    return f" {number}" if number.startswith("-") else number


def _exact(data: bytes, codec: str) -> str:
    text = _decoded(data, codec)
    return _signed(text) if text.lstrip("+-").replace(".", "", 1).isdecimal() else quote_string(text, "'")


def _string(data: bytes, codec: str) -> str:
    return quote_string(_decoded(data, codec), "'")


def _decoded(data: bytes, codec: str) -> str:
    try:
        return data.decode(codec)
    except UnicodeDecodeError as error:
        raise Fault(1300, "HY000", f"A parameter is not text in {codec}; Lading takes no other bytes") from error


def _moment(reader: Reader, kind: ColumnType) -> str:
    year, month, day = (0, 0, 0) if reader.is_done else (reader.uint(2), reader.uint(1), reader.uint(1))
    text = f"{year:04}-{month:02}-{day:02}"
    if reader.is_done:
        return text if kind is ColumnType.DATE else f"{text} 00:00:00"
    text += f" {reader.uint(1):02}:{reader.uint(1):02}:{reader.uint(1):02}"
    return text if reader.is_done else f"{text}.{reader.uint(4):06}"


def _duration(reader: Reader) -> str:
    if reader.is_done:
        return "00:00:00"
    sign = "-" if reader.uint(1) else ""
    hours = reader.uint(4) * 24 + reader.uint(1)
    text = f"{sign}{hours:02}:{reader.uint(1):02}:{reader.uint(1):02}"
    return text if reader.is_done else f"{text}.{reader.uint(4):06}"
