"""How Spark reads a text, one by one: for the few that are not written in the usual way.

Each function takes the bytes of a text and gives None for what Spark cannot read. What depends on the day, on tables of
time zones or on the version of Java is not decided here: UnsureError.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal

from lading.pipeline.vector.arrays import UnsureError

_BLANK = bytes(range(0x21)) + b"\x7f"
"""What Spark cuts off both ends: blanks and control characters."""
_JAVA_BLANK = "".join(map(chr, range(0x21)))
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
_HEX = re.compile(r"[+-]?0[xX]")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE]([+-]?\d+))?")
_INFINITE = {"inf": 1, "+inf": 1, "infinity": 1, "+infinity": 1, "-inf": -1, "-infinity": -1}
_TRUE, _FALSE = (b"t", b"true", b"y", b"yes", b"1"), (b"f", b"false", b"n", b"no", b"0")
_DATE = re.compile(rb"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIME = re.compile(
    rb"([+-]?)([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T]([0-9]{1,2})"
    rb"(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?([^0-9.].*)?)?)?)?)?)?",
    re.DOTALL,
)
_CLOCK = re.compile(rb"\s*T|[0-9]{1,2}:")
_ZERO_ZONES = ("Z", "UTC", "GMT", "UT")
_OFFSET = re.compile(r"([+-])([0-9]{1,2})(?::([0-9]{1,2}))?")
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MOST_EXPONENT = 5_000
_EXACT = Context(prec=20_000, rounding=ROUND_HALF_UP)
_DAY_US = 86_400_000_000


def decoded(raw: bytes) -> str:
    """Bytes as a text."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        msg = "a text that is not UTF-8"
        raise UnsureError(msg) from error


def integer(raw: bytes, bits: int) -> int | None:
    """A whole number of so many bits."""
    cut = raw.strip(_BLANK)
    if _INTEGER.fullmatch(cut) is None:
        return None
    if len(cut) > 100:
        msg = "a number of more than a hundred digits"
        raise UnsureError(msg)
    number = int(cut)
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def double(raw: bytes) -> float | None:
    """A double, as Java reads it."""
    text = decoded(raw).strip(_JAVA_BLANK)
    if _DOUBLE.fullmatch(text) is not None:
        return float(text.rstrip("dDfF"))
    if _HEX.match(text):
        msg = "a hexadecimal number"
        raise UnsureError(msg)
    small = text.lower()
    if small in _INFINITE:
        return _INFINITE[small] * float("inf")
    return float("nan") if small == "nan" or text in ("+NaN", "-NaN") else None


def decimal(raw: bytes) -> Decimal | None:
    """A decimal with all of its digits."""
    text = decoded(raw).strip(_JAVA_BLANK)
    found = _DECIMAL.fullmatch(text)
    if found is None:
        return None
    if len(text) > 1000 or abs(int(found[3] or 0)) > _MOST_EXPONENT:
        msg = "a number with an exponent of more than four digits"
        raise UnsureError(msg)
    number = Decimal(text)
    # More digits before the point than any decimal has. Beyond the last digit of any decimal nothing is of matter.
    if number.is_zero():
        return Decimal(0)
    return (
        None
        if number.adjusted() >= 38
        else number.quantize(Decimal("1e-100"), context=_EXACT)
        if _is_long(number)
        else number
    )


def _is_long(number: Decimal) -> bool:
    return int(number.as_tuple().exponent) < -100


def boolean(raw: bytes) -> bool | None:
    """A truth."""
    small = raw.strip(_BLANK).lower()
    return True if small in _TRUE else False if small in _FALSE else None


def date(raw: bytes) -> int | None:
    """Days since 1970."""
    found = _DATE.fullmatch(raw.strip(_BLANK))
    if found is None:
        return None
    days = _days(found[1], found[2], found[3], found[4])
    return days if days is not None and -(2**31) <= days < 2**31 else None


def _days(sign: bytes, year: bytes, month: bytes | None, day: bytes | None) -> int | None:
    years = -int(year) if sign == b"-" else int(year)
    months, days = int(month or 1), int(day or 1)
    if not 1 <= months <= 12:
        return None
    is_leap = years % 4 == 0 and (years % 100 != 0 or years % 400 == 0)
    if not 1 <= days <= _DAYS[months - 1] + (is_leap and months == 2):
        return None
    return civil_days(years, months, days)


def civil_days(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date in the Gregorian calendar, which is taken to have been there always."""
    shifted = year - (month <= 2)
    era, of_era = shifted // 400, shifted % 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


def moment(raw: bytes, *, has_zone: bool) -> int | None:
    """Microseconds since 1970. `has_zone`: a zone in the text counts; else it is only looked at."""
    cut = raw.strip(_BLANK)
    found = _TIME.fullmatch(cut)
    if found is None:
        if (has_zone and _CLOCK.match(raw)) or (has_zone and _CLOCK.match(cut)):
            msg = "a time without a date, which is one of today"
            raise UnsureError(msg)
        return None
    days = _days(found[1], found[2], found[3], found[4])
    hour, minute, second = (int(found[n] or 0) for n in (5, 6, 7))
    offset_us = 0 if found[9] is None else _offset_us(decoded(found[9]).strip(_JAVA_BLANK))
    if days is None or offset_us is None or hour > 23 or minute > 59 or second > 59:
        return None
    micros = int((found[8] or b"")[:6].ljust(6, b"0"))
    total = days * _DAY_US + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros
    total -= offset_us if has_zone else 0
    return total if -(2**63) <= total < 2**63 else None


def _offset_us(zone: str) -> int | None:
    if zone in _ZERO_ZONES:
        return 0
    found = _OFFSET.fullmatch(zone)
    if found is None:
        msg = f"the time zone {zone[:40]}"
        raise UnsureError(msg)
    hours, minutes = int(found[2]), int(found[3] or 0)
    if minutes > 59 or hours * 60 + minutes > 18 * 60:
        return None
    seconds = (hours * 60 + minutes) * 60
    return (-seconds if found[1] == "-" else seconds) * 1_000_000
