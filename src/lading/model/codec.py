"""Records to JSON and back: versioned, complete, strict.

The form follows the dataclass: every field is written, and reading fails when one is missing or unknown, so a field
can be neither forgotten nor silently dropped. `VERSION` rises when the form changes, and `_UPGRADES` says how an
older form becomes the next one. A newer form is refused.
"""

from __future__ import annotations

import hashlib
import json
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from lading.errors import RecordError
from lading.model.bill import Bill, check_bill

VERSION = 6

_PLAIN = frozenset({type(None), bool, int, float, str})

Json = Any
"""Whatever `json` reads and writes."""


def _bill_2(body: dict[str, Json]) -> dict[str, Json]:
    """Form 2 knows of partitions that were given up, and of finished ones that listings lack."""
    positions = body["positions"]
    partitions = {
        name: {**state, "given_up": False, "missing_since": None} for name, state in positions["partitions"].items()
    }
    return {**body, "positions": {**positions, "partitions": partitions}}


def _bill_3(body: dict[str, Json]) -> dict[str, Json]:
    """Form 3 is as form 2, but for what the marks of files mean: an older Lading would load forgotten files again."""
    return body


def _bill_4(body: dict[str, Json]) -> dict[str, Json]:
    """Form 4 lacks what nothing ever filled or read."""
    dropped = ("watermark", "listener", "definition_hash", "spark_version")
    return {name: value for name, value in body.items() if name not in dropped}


def _bill_5(body: dict[str, Json]) -> dict[str, Json]:
    """Form 5 has event times, a watermark, state, listeners, and rows that came too late or twice."""
    positions = body["positions"]
    partitions = {name: {**state, "event_us": None, "read_at": None} for name, state in positions["partitions"].items()}
    body = {**body, "positions": {**positions, "partitions": partitions, "watermark_us": None}}
    fates = {name: with_all_fates(body[name]) for name in ("tally", "totals")}
    return {**body, "state": None, "listening": None, "joined": [], **fates}


def _bill_6(body: dict[str, Json]) -> dict[str, Json]:
    """Form 6 says which rows in quarantine were taken up again. Of those of older forms none was."""
    return {**body, "replayed_through": 0}


def with_all_fates(tally: dict[str, Json]) -> dict[str, Json]:
    """A written Tally of the time when there were no watermarks and no state."""
    rows = tally["rows"]
    return {**tally, "rows": {**rows, "late": 0, "duplicate": 0}, "written": rows["loaded"], "ahead": 0}


_UPGRADES: dict[int, Callable[[dict[str, Json]], dict[str, Json]]] = {
    1: _bill_2,
    2: _bill_3,
    3: _bill_4,
    4: _bill_5,
    5: _bill_6,
}


def render_bill(bill: Bill) -> bytes:
    """Write a bill as its file's content."""
    check_bill(bill)
    body = encode(bill)
    return json.dumps({"lading": "bill", "version": VERSION, "digest": _digest(body), "bill": body}).encode()


def parse_bill(content: bytes, *, where: str) -> Bill:
    """Read a bill's file. `where` is only for the message."""
    try:
        envelope = json.loads(content)
    except ValueError as error:
        raise _unreadable(where, f"it is not JSON ({error})") from error
    if not isinstance(envelope, dict) or envelope.get("lading") != "bill":
        raise _unreadable(where, "it is JSON, but not a bill")
    body = _current_form(envelope, where)
    bill: Bill = decode(Bill, body, where=where)
    check_bill(bill)
    return bill


def _current_form(envelope: dict[str, Json], where: str) -> Json:
    version, body = envelope.get("version"), envelope.get("bill")
    if not isinstance(version, int) or not isinstance(body, dict):
        raise _unreadable(where, "it has no version or no body")
    if version > VERSION:
        msg = f"The bill {where} has form {version}; this Lading reads forms up to {VERSION}"
        raise RecordError(msg, left="Nothing was changed.", todo="Use the newer Lading that wrote it.")
    if _digest(body) != envelope.get("digest"):
        msg = f"The bill {where} is inconsistent: its content is not what was written"
        raise RecordError(
            msg, left="Nothing was changed.", todo="Restore it from a copy of the table's _lading folder."
        )
    for old in range(version, VERSION):
        body = _UPGRADES[old](body)
    return body


def _digest(body: Json) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _unreadable(where: str, why: str) -> RecordError:
    msg = f"The bill {where} cannot be read: {why}"
    return RecordError(msg, left="Nothing was changed.", todo="Restore it from a copy of the table's _lading folder.")


def encode(value: Any) -> Json:
    """Turn a record into what `json` writes."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if is_dataclass(kind):
        parts = ((name, getattr(value, name)) for name, _ in _shape(kind))
        return {name: part if type(part) in _PLAIN else encode(part) for name, part in parts}
    match value:
        case bool() | int() | float() | str():
            return value
        case Enum():
            return value.value
        case datetime():
            return value.isoformat()
        case tuple() | list():
            return [encode(item) for item in value]
        case Mapping():
            return {key: encode(item) for key, item in value.items()}
    msg = f"{kind.__name__} has no form in JSON"
    raise TypeError(msg)


def decode(kind: Any, value: Json, *, where: str) -> Any:
    """Turn what `json` read into a record of this kind; strict about fields and types."""
    return _decoder(kind)(value, where)


@cache
def _decoder(kind: Any) -> Callable[[Json, str], Any]:
    """What decodes one kind of value. Made once per kind: a restart reads many bills."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _optional_decoder(kind)
    if origin is tuple:
        return _tuple_decoder(kind)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_decoder(kind)
    return _record_decoder(kind) if is_dataclass(kind) else _plain_decoder(kind)


def _optional_decoder(kind: Any) -> Callable[[Json, str], Any]:
    inner = _decoder(next(arm for arm in get_args(kind) if arm is not type(None)))
    return lambda value, where: None if value is None else inner(value, where)


def _tuple_decoder(kind: Any) -> Callable[[Json, str], Any]:
    inner = _decoder(get_args(kind)[0])

    def decode_tuple(value: Json, where: str) -> tuple[Any, ...]:
        _expect(isinstance(value, list), kind, where)
        return tuple([inner(item, where) for item in value])

    return decode_tuple


def _mapping_decoder(kind: Any) -> Callable[[Json, str], Any]:
    inner = _decoder(get_args(kind)[1])

    def decode_mapping(value: Json, where: str) -> dict[str, Any]:
        _expect(isinstance(value, dict), kind, where)
        return {key: inner(item, where) for key, item in value.items()}

    return decode_mapping


def _record_decoder(kind: Any) -> Callable[[Json, str], Any]:
    decoders = {name: _decoder(hint) for name, hint in _shape(kind)}

    def decode_record(value: Json, where: str) -> Any:
        if not isinstance(value, dict) or value.keys() != decoders.keys():
            got = sorted(value) if isinstance(value, dict) else type(value).__name__
            raise _unreadable(where, f"{kind.__name__} has other fields than it should: {got}")
        return kind(**{name: inner(value[name], where) for name, inner in decoders.items()})

    return decode_record


def _plain_decoder(kind: Any) -> Callable[[Json, str], Any]:
    plain = getattr(kind, "__supertype__", kind)
    allowed = (float, int) if plain is float else (plain,)

    def decode_parsed(value: Json, where: str) -> Any:
        _expect(plain is not datetime or isinstance(value, str), kind, where)
        try:
            return datetime.fromisoformat(value) if plain is datetime else plain(value)
        except ValueError as error:
            raise _unreadable(where, f"{value!r} is not a {plain.__name__}") from error

    def decode_plain(value: Json, where: str) -> Any:
        if type(value) not in allowed:
            _expect(False, kind, where)
        return value

    return decode_parsed if plain is datetime or issubclass(plain, Enum) else decode_plain


def _expect(holds: bool, kind: Any, where: str) -> None:
    if not holds:
        raise _unreadable(where, f"a value is not {getattr(kind, '__name__', kind)}")


@cache
def _shape(kind: Any) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in fields(kind))
