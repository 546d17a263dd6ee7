"""Reading properties: a table of rules for each family, one engine for all of them.

A rule knows the name of a property, the field of the record it fills, how its text becomes a value and how the
value becomes text again. So every name that is printed is accepted, and the reverse.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from lading.errors import SqlError
from lading.suggest import did_you_mean

Read = Callable[[str, str], Any]
"""Name and text to the value; raises SqlError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One property."""

    name: str
    field: str
    """The field of the record that holds the value. Empty: it is checked, and what it may say is so anyway."""
    read: Read


def refuse(message: str, *, todo: str = "Correct the property.", **facts: Any) -> SqlError:
    """The error for a property that cannot be used."""
    return SqlError(message, todo=todo, **facts)


def known_names(name: str, known: Iterable[str]) -> str:
    """What to do about a property of another name."""
    names = sorted(known)
    return did_you_mean(name, names).strip() or f"Known are: {', '.join(names)}."


def read_fields(rules: Sequence[Rule], properties: Mapping[str, str]) -> dict[str, Any]:
    """The values of those rules whose property is there, by field."""
    read = {rule.field: rule.read(rule.name, properties[rule.name]) for rule in rules if rule.name in properties}
    return {field: value for field, value in read.items() if field}


def whole(accept: Callable[[int], bool], fragment: str) -> Read:
    """A whole number within bounds. `fragment` is what the message says after the name."""

    def read(name: str, text: str) -> int:
        if re.fullmatch(r"[+-]?\d{1,19}", text.strip()) is None or not accept(int(text)):
            msg = f"{name} {fragment}, and it is {text!r}"
            raise refuse(msg, property=name, value=text)
        return int(text)

    return read


def ratio(fragment: str) -> Read:
    """A number from 0 to 1."""

    def read(name: str, text: str) -> float:
        is_number = re.fullmatch(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", text) is not None
        if not is_number or not 0 <= float(text) <= 1:
            msg = f"{name} {fragment}, and it is {text!r}"
            raise refuse(msg, property=name, value=text)
        return float(text)

    return read


_UNITS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
_DURATION = re.compile(r"(\d{1,9})\s*([a-z]*)", re.IGNORECASE)


def duration(name: str, text: str) -> float:
    """Seconds: `30 seconds`, `5 minutes`, `24 hours`; a number alone counts seconds."""
    found = _DURATION.fullmatch(text.strip())
    unit = found[2].lower().removesuffix("s") or "second" if found else ""
    if found is None or unit not in _UNITS:
        msg = f"{name} should be a length of time, and it is {text!r}"
        units = ", ".join(f"{unit}s" for unit in _UNITS)
        raise refuse(msg, property=name, value=text, todo=f"Write a number and a unit: {units}.")
    return int(found[1]) * _UNITS[unit]


def boolean(name: str, text: str) -> bool:
    """true or false."""
    if text.strip().lower() not in ("true", "false"):
        msg = f"{name} should be a boolean, and it is {text!r}"
        raise refuse(msg, property=name, value=text)
    return text.strip().lower() == "true"


def only(allowed: bool, message: str, todo: str) -> Read:
    """A boolean that can say one thing only: the other is refused by a message."""

    def read(name: str, text: str) -> None:
        if boolean(name, text) is not allowed:
            raise refuse(message, property=name, value=text, todo=todo)

    return read


def never(message: str, todo: str) -> Read:
    """A property that is known and always refused. `{}` in the message is what it says."""

    def read(name: str, text: str) -> None:
        raise refuse(message.format(text), property=name, value=text, todo=todo)

    return read


def word(*allowed: str, message: str = "") -> Read:
    """One of some words, in any case; the value has the case of the list."""

    def read(name: str, text: str) -> str:
        for candidate in allowed:
            if candidate.lower() == text.strip().lower():
                return candidate
        told = message.format(text) if message else f"{name} should be one of {', '.join(allowed)}"
        msg = f"{told} ({name} is {text!r})"
        todo = f"{did_you_mean(text.strip(), allowed)}Correct the property."
        raise refuse(msg, property=name, value=text, todo=todo)

    return read


def text(name: str, given: str) -> str:
    """Any text."""
    return given


def needed(name: str, given: str) -> str:
    """A text that says something."""
    if not given.strip():
        msg = f"{name} is a required property and must not be empty"
        raise refuse(msg, property=name)
    return given.strip()


def names(name: str, given: str) -> tuple[str, ...]:
    """Names with commas between them."""
    found = tuple(part.strip() for part in given.split(","))
    if not all(found):
        msg = f"{name} has an empty part: {given!r}"
        raise refuse(msg, property=name, value=given)
    return found


def json_paths(name: str, given: str) -> tuple[str, ...]:
    """A JSON list of paths, each of which begins with `$`."""
    if not given.strip():
        return ()
    try:
        found = json.loads(given)
    except ValueError as error:
        msg = f"Invalid json path: {name} is not a JSON list: {given!r}"
        raise refuse(msg, property=name, value=given) from error
    if not isinstance(found, list) or not all(isinstance(path, str) and is_json_path(path) for path in found):
        msg = f"Invalid json path: {name} must be a list of paths such as $.a.b, and it is {given!r}"
        raise refuse(msg, property=name, value=given)
    return tuple(found)


_PATH = re.compile(r"""\$(\.|(\.[^.\[\]"]+|\."[^"]+"|\[(\d+|\*|"[^"]+"|'[^']+')\])*)""")


def is_json_path(path: str) -> bool:
    """Whether this is a path that can be followed."""
    return _PATH.fullmatch(path.strip()) is not None


def json_root(name: str, given: str) -> str:
    """One path, or nothing."""
    if given and not is_json_path(given):
        msg = f"Invalid json path: {name} must be a path such as $.a.b, and it is {given!r}"
        raise refuse(msg, property=name, value=given)
    return given.strip()


def at_most_one_byte(name: str, given: str) -> str:
    """No letter, or one of one byte."""
    if len(given.encode()) > 1:
        msg = f"{name} should not be longer than one byte, and it is {given!r}"
        raise refuse(msg, property=name, value=given)
    return given


def one_byte(name: str, given: str) -> str:
    """One letter of one byte."""
    if len(given.encode()) != 1:
        msg = f"{name} must be single-char, and it is {given!r}"
        raise refuse(msg, property=name, value=given)
    return given


_ZONE = re.compile(r"[A-Za-z0-9_+/-]+")
_OFFSET = re.compile(r"[+-](0\d|1[0-4]):[0-5]\d")


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def timezone(name: str, given: str) -> str:
    """A time zone: a name of the tz database, or an offset such as +08:00.

    Names cannot be checked on a machine that has no tz database; there every name of the right form is taken. It is
    written into SQL between quotes.
    """
    zone = {"CST": "Asia/Shanghai", "PRC": "Asia/Shanghai"}.get(given.strip(), given.strip())
    if _OFFSET.fullmatch(zone) or zone in _zones() or (not _zones() and _ZONE.fullmatch(zone)):
        return zone
    msg = f"{name} is not a time zone: Unknown or incorrect time zone: {given!r}"
    raise refuse(msg, property=name, value=given, todo="Write for example Europe/Berlin or +08:00.")
