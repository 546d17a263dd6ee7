"""What a table is called and how it was made, beside the table: `<table>/_lading/table.json`. And what one place is.

The store has the same. It may be lost; with this the table can be given its name again, with what the format itself
does not keep, such as the lengths of texts.

The form has a version, like a bill's. A newer version is refused. Fields of the card that are not known are passed
over, so one may be added to it without a new version; what is missing, or is unknown within the spec, is refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lading.errors import ConfigError, RecordError
from lading.model.codec import decode, encode
from lading.model.s3_access import bucket_path
from lading.model.table import TableSpec
from lading.storage.store import ObjectStore
from lading.tables.bills import FOLDER
from lading.tables.registry import NAMES

KEY = f"{FOLDER}/table.json"
VERSION = 1
_KIND = "table"
_LEFT, _TODO = "Nothing was changed.", "Restore it from a copy."


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCard:
    """One table. It has no keys and no place: it is found where it lies."""

    database: str
    name: str
    format: str
    """As USING writes it."""
    catalog: str = ""
    """Name of the catalog; empty for tables that need none."""
    spec: TableSpec | None = None
    created_at: datetime


def leave_card(storage: ObjectStore, card: TableCard) -> None:
    """Write the card of a table that was just made. One that is there is replaced.

    It is of a table that was dropped and whose files stayed, or of the same statement, which was cut off.
    """
    body = {"lading": _KIND, "version": VERSION, _KIND: encode(card)}
    content = json.dumps(body, indent=1, ensure_ascii=False).encode()
    if storage.put_if_absent(KEY, content):
        return
    storage.delete([KEY])
    # Dies here: the table has no card, and no name in the store yet. In the warehouse its folder says what it is, and
    # CREATE TABLE may be run again; at a place of its own `lading recover database.table=location` names it.
    storage.put_if_absent(KEY, content)


def read_card(storage: ObjectStore) -> TableCard | None:
    """The card of the table at a place; None when there is none. Raises RecordError for one that cannot be read."""
    content = storage.get(KEY)
    if content is None:
        return None
    where = f"{storage.uri}/{KEY}"
    try:
        envelope = json.loads(content)
    except ValueError as error:
        raise _unreadable(where, "it is not JSON") from error
    body = _current_form(envelope, where)
    try:
        known = {field.name for field in fields(TableCard)}
        card: TableCard = decode(TableCard, {key: body[key] for key in body.keys() & known}, where=where)
    except RecordError as error:
        raise _unreadable(where, error.what.partition(" cannot be read: ")[2]) from error
    if card.format not in NAMES:
        msg = f"{where} names a format that is not known: {card.format}"
        raise RecordError(msg, left=_LEFT, todo=_TODO)
    return card


def _current_form(envelope: Any, where: str) -> dict[str, Any]:
    if isinstance(envelope, dict) and "lading" not in envelope:
        return envelope  # The first cards were bare.
    if not isinstance(envelope, dict) or envelope["lading"] != _KIND:
        raise _unreadable(where, "it is JSON, but does not tell of a table")
    version, body = envelope.get("version"), envelope.get(_KIND)
    if type(version) is not int or not isinstance(body, dict):
        raise _unreadable(where, "it has no version or no body")
    if version > VERSION:
        msg = f"{where} has form {version}; this Lading reads forms up to {VERSION}"
        raise RecordError(msg, left=_LEFT, todo="Use the newer Lading that wrote it.")
    return body


def _unreadable(where: str, why: str) -> RecordError:
    return RecordError(f"{where} cannot be read: {why}", left=_LEFT, todo=_TODO)


# Places.


def local_path(location: str) -> Path | None:
    """The folder that a location means, after all links; None when it is not on a disk."""
    parts = urlsplit(location)
    if parts.scheme not in ("", "file"):
        return None
    return Path(unquote(parts.path) if parts.scheme else location).resolve()


def is_same_place(one: str, other: str) -> bool:
    """Whether two locations mean one place, however they are written."""
    return place_path(one) == place_path(other)


def place_path(location: str) -> str:
    """What can be compared: the folder after all links, or bucket and key, whichever scheme of S3 is written."""
    path, in_bucket = local_path(location), bucket_path(location)
    if in_bucket is not None:
        bucket, _, key = in_bucket.partition("/")
        return f"s3://{bucket}/{key.strip('/')}".rstrip("/")
    return location.rstrip("/") if path is None else str(path)


def settle_place(location: str) -> str:
    """A location as it is kept: it means the same wherever a process was started, and to all libraries."""
    if (in_bucket := bucket_path(location)) is not None:
        bucket, _, key = in_bucket.partition("/")
        return f"{location.partition('://')[0]}://{bucket}/{key.strip('/')}".rstrip("/")
    parts = urlsplit(location)
    if parts.scheme == "file" and location not in (f"file:{parts.path}", f"file://{parts.path}"):
        location = str(local_path(location))  # With a host, or written in an unusual way.
    elif parts.scheme == "file" and (".." in parts.path.split("/") or "%" in parts.path):
        location = str(local_path(location))  # Not everybody decodes it.
    elif parts.scheme:
        return location.rstrip("/")
    path = Path(location)
    return str(path if path.is_absolute() and ".." not in path.parts else path.resolve())


def check_location(location: str) -> None:
    """Refuse a place for a table that libraries and engines take for different places. Raises ConfigError."""
    if why := _why_not(location):
        msg = f"A table cannot be at {location!r}: {why}"
        raise ConfigError(msg, left="Nothing was made.", todo="Choose another location.")


def _why_not(location: str) -> str:
    try:
        parts = urlsplit(location)
    except ValueError:
        return "it cannot be read"
    if not location.strip() or any(ord(letter) < ord(" ") or letter == "\x7f" for letter in location):
        return "it is empty, or has control characters"
    if (in_bucket := bucket_path(location)) is not None:
        bucket, _, key = in_bucket.partition("/")
        return _why_not_in_bucket(bucket, key.strip("/"))
    if parts.scheme == "file" and (parts.netloc not in ("", "localhost") or parts.query or parts.fragment):
        return "it names a host, or has ? or #; write the path without file://"
    return ""


def _why_not_in_bucket(bucket: str, key: str) -> str:
    if not bucket:
        return "it names no bucket"
    if "?" in key or "#" in key:
        return "some who read it take what comes after ? or # for no part of the name"
    if key and any(part in ("", ".", "..") for part in unquote(key).split("/")):
        return "some who read it leave out its parts that are empty or made of dots"
    return ""
